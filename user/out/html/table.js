// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The table of spans: sorted by any column, filtered by name; its rows choose what the charts show.

const table = (() => {
	const COLUMNS = [
		{key: 'name', text: 'span', left: true},
		{key: 'kind', text: 'kind', left: true},
		{key: 'held', text: 'count', show: s => format.count(s.raw.held)},
		{key: 'total', text: 'total', show: s => format.time(s.total)},
		{key: 'share', text: 'self share', title: 'time in the span itself, as a share of all of that time',
			show: s => format.share(s.share)},
		...['min', 'mean', 'p50', 'p90', 'p99', 'p999', 'p9999', 'max'].map(key => ({
			key, text: {p999: 'p99.9', p9999: 'p99.99'}[key] || key, measure: true,
			show: s => Number.isFinite(s[key]) ? below(s, s[key]) + data.timeOf(s, s[key]) : '–',
		})),
		{key: 'lost', text: 'lost', show: s => Number.isFinite(s.lost) ? format.count(s.lost) : '–'},
	];
	const SHOWN_MAX = 500; // rows in the document at once; the filter finds the others
	const TITLES = {span: 'durations', instant: 'intervals between hits', value: 'values'};

	let sort = {key: 'total', down: true}, filter = '', rows = [];

	// As the text report marks what is not to be told from an empty span.
	const below = (s, v) => (s.class === 'span' && s.floor > 0 && v <= s.floor ? '~' : '');

	const selfSum = data.spans.reduce((sum, s) => sum + (s.self || 0), 0);
	for (const s of data.spans)
		s.share = selfSum > 0 && Number.isFinite(s.self) ? s.self / selfSum : NaN;

	function sorted() {
		const {key, down} = sort, sign = down ? -1 : 1;
		const wanted = filter.toLowerCase();
		return data.spans.filter(s => s.name.toLowerCase().includes(wanted)).sort((a, b) => {
			if (typeof a[key] === 'string')
				return sign * a[key].localeCompare(b[key]) || a.row - b.row;
			const x = Number.isFinite(a[key]), y = Number.isFinite(b[key]);
			// What is not known stands last, in either direction.
			return x && y ? sign * (a[key] - b[key]) || a.row - b.row : y - x || a.row - b.row;
		});
	}

	function headings(redraw) {
		return el('thead', {}, el('tr', {}, ...COLUMNS.map(c => el('th', {
			scope: 'col', class: c.left ? 'left' : null, title: c.title,
			'aria-sort': sort.key !== c.key ? 'none' : sort.down ? 'descending' : 'ascending',
		}, el('button', {type: 'button', 'data-sort': c.key, onclick: () => {
			sort = {key: c.key, down: sort.key === c.key ? !sort.down : !c.left};
			redraw();
			dom.get('spans-table').querySelector(`[data-sort="${c.key}"]`).focus();
		}}, c.text)))));
	}

	function line(s, chosen) {
		const place = chosen.indexOf(s);
		const chip = el('span', {class: 'chip' + (place < 0 ? '' : ' on'), 'aria-hidden': 'true'});
		if (place >= 0)
			chip.style.background = theme.series(place);
		return el('tr', {'data-row': s.row, tabindex: '-1', 'aria-selected': place >= 0 ? 'true' : 'false',
			class: s.held ? null : 'never'},
		...COLUMNS.map(c => {
			if (c.key === 'name')
				return el('th', {scope: 'row', class: 'left', title: s.name}, chip,
					el('bdi', {}, format.shortName(s.name)));
			if (c.key === 'kind')
				return el('td', {class: 'left quiet', title: TITLES[s.class]},
					s.class === 'span' || s.class === s.kind ? s.kind : s.kind + ' (hits)');
			const exact = s.raw[c.key];
			return el('td', {title: exact === undefined ? null : c.measure || c.key === 'total'
				? data.exactOf(s, exact) : format.digits(exact)}, c.show(s));
		}));
	}

	// choose(row, add): the caller's way to select.
	function start(state, choose) {
		const node = dom.get('spans-table'), input = dom.get('spans-filter');

		function redraw() {
			const all = sorted();
			rows = all.slice(0, SHOWN_MAX);
			node.replaceChildren(headings(redraw), el('tbody', {},
				...rows.map(s => line(s, state.chosen))));
			mark();
			dom.get('spans-shown').textContent = all.length === data.spans.length && !filter
				? '' : `${format.count(all.length)} of ${format.count(data.spans.length)}`;
			const left = data.num(data.doc.spans_left_out), hints = [];
			if (all.length > rows.length)
				hints.push(`The first ${format.count(rows.length)} of ${format.count(all.length)} ` +
					'are listed: filter to find others.');
			if (left)
				hints.push(`${format.count(left)} spans with less time are not in this page.`);
			if (data.num(data.doc.charts_left_out))
				hints.push(`${format.count(data.doc.charts_left_out)} spans with less time have ` +
					'figures but no charts here.');
			if (rows.some(s => below(s, s.min)))
				hints.push('~ not to be told from an empty span.');
			hints.push('Click a row for its charts, Ctrl-click or press Space to compare up to six.');
			dom.get('spans-hint').textContent = hints.join(' ');
		}

		// Selection moves without rebuilding the rows, so that focus and scrolling stay.
		function mark() {
			for (const tr of node.tBodies[0].rows) {
				const place = state.chosen.indexOf(data.spans[tr.dataset.row]);
				const chip = tr.querySelector('.chip');
				tr.setAttribute('aria-selected', place >= 0 ? 'true' : 'false');
				tr.tabIndex = place === 0 ? 0 : -1;
				chip.classList.toggle('on', place >= 0);
				chip.style.background = place >= 0 ? theme.series(place) : '';
			}
			if (!node.querySelector('tbody tr[tabindex="0"]') && node.tBodies[0].rows[0])
				node.tBodies[0].rows[0].tabIndex = 0;
		}

		node.addEventListener('click', event => {
			const tr = event.target.closest('tbody tr');
			if (tr)
				choose(Number(tr.dataset.row), event.ctrlKey || event.metaKey || event.shiftKey);
		});
		node.addEventListener('keydown', event => {
			const tr = event.target.closest('tbody tr');
			if (!tr)
				return;
			const to = {ArrowDown: tr.nextElementSibling, ArrowUp: tr.previousElementSibling}[event.key];
			if (to) {
				to.focus();
				choose(Number(to.dataset.row), false);
			} else if (event.key === 'Enter' || event.key === ' ') {
				choose(Number(tr.dataset.row), event.key === ' ');
			} else {
				return;
			}
			event.preventDefault();
		});
		input.addEventListener('input', () => {
			filter = format.name(input.value);
			redraw();
		});
		redraw();
		return {mark};
	}

	return {start};
})();
