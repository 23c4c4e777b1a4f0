// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is selected: its figures, its charts, who calls it and whom it calls.

const detail = (() => {
	const FIGURES = [['count', 'held'], ['min', 'min'], ['mean', 'mean'], ['p50', 'p50'], ['p90', 'p90'],
		['p99', 'p99'], ['p99.9', 'p999'], ['p99.99', 'p9999'], ['max', 'max'], ['total', 'total'],
		['self', 'self'], ['still open', 'open'], ['floor', 'floor'], ['price', 'price'],
		['NaN', 'nan']];
	const PLAIN = ['held', 'open', 'nan'], NS = ['total', 'self', 'floor', 'price'];
	const TITLES = {span: 'Latency', instant: 'Intervals between hits', value: 'Values'};
	const EDGES_SHOWN = 12;

	// What the kernel's histogram says of all of them, where the file has not all.
	function ofKernel(s) {
		const all = s.raw.kernel, told = FIGURES.filter(([, key]) => all && all[key] !== undefined);
		if (!all)
			return [];
		return [el('div', {class: 'quiet'}, `all ${format.count(all.n)}, as the kernel counted them ` +
			'(within 1.6%):'), ...told.map(([text, key]) => el('div', {'data-kernel': key},
			el('dt', {}, text), el('dd', {}, data.timeOf(s, data.num(all[key])))))];
	}

	function figures(s) {
		return FIGURES.filter(([, key]) => s.raw[key] !== undefined).map(([text, key]) => {
			const raw = s.raw[key], plain = PLAIN.includes(key);
			const short = plain ? format.count(raw) : NS.includes(key) ? format.time(s[key])
				: data.timeOf(s, s[key]);
			const exact = plain ? format.digits(raw) : NS.includes(key) ? format.exactTime(raw)
				: data.exactOf(s, raw);
			return el('div', {'data-key': key}, el('dt', {}, text), el('dd', {title: exact}, short));
		});
	}

	function edgeTable(caption, edges, other, choose) {
		if (!edges.length)
			return el('p', {class: 'quiet'}, caption + ': none.');
		const most = Math.max(...edges.map(e => e.total), 1);
		const rows = edges.slice(0, EDGES_SHOWN).map(e => {
			const row = other(e), bar = el('span', {class: 'bar'});
			bar.style.width = 100 * e.total / most + '%';
			const name = row === -2 ? el('span', {class: 'quiet'}, 'nothing around it')
				: row < 0 || !data.spans[row] ? el('span', {class: 'quiet'}, data.nameOf(row))
				: el('button', {type: 'button', class: 'link', title: data.nameOf(row),
					onclick: () => choose(row, false)},
				el('bdi', {}, format.shortName(data.nameOf(row))));
			return el('tr', {}, el('th', {class: 'left', scope: 'row'}, name, bar),
				el('td', {title: format.digits(e.raw.count)}, format.count(e.raw.count)),
				el('td', {title: format.exactTime(e.raw.total)}, format.time(e.total)));
		});
		return el('table', {}, el('thead', {}, el('tr', {}, el('th', {class: 'left', scope: 'col'}, caption),
			el('th', {scope: 'col'}, 'count'), el('th', {scope: 'col'}, 'time'))),
		el('tbody', {}, ...rows), edges.length > EDGES_SHOWN
			? el('tfoot', {}, el('tr', {}, el('td', {class: 'left quiet', colspan: 3},
				`and ${edges.length - EDGES_SHOWN} with less time`))) : null);
	}

	function calls(s, choose) {
		const node = dom.get('calls').querySelector('.calls');
		if (s.kind === 'keyed' || s.class === 'value') {
			node.replaceChildren(el('p', {class: 'quiet'}, 'It is in no call tree.'));
			return;
		}
		const left = data.num(data.doc.edges_left_out);
		node.replaceChildren(
			edgeTable('called by', data.edges.filter(e => e.callee === s.row), e => e.caller, choose),
			edgeTable('calls', data.edges.filter(e => e.caller === s.row), e => e.callee, choose),
			left ? el('p', {class: 'quiet'}, `${format.count(left)} pairs with less time are not in this page.`)
				: '');
	}

	function series(chosen, choose) {
		dom.get('series').replaceChildren(...chosen.map((s, i) => {
			const mark = svg('svg', {width: 26, height: 10, 'aria-hidden': 'true'},
				svg('line', {x1: 1, x2: 25, y1: 5, y2: 5, ...charts.stroke(i), 'stroke-width': 3}));
			const drop = chosen.length > 1 ? el('button', {type: 'button', class: 'drop',
				'aria-label': 'Take out ' + s.name, onclick: () => choose(s.row, true)}, '×') : '';
			return el('li', {title: s.name}, mark, el('bdi', {}, format.shortName(s.name)), drop);
		}));
	}

	function start(state, choose) {
		const host = id => dom.get(id).querySelector('.chart');
		const draws = {
			curve: () => charts.curve(host('curve'), state.chosen, dom.get('curve-log').checked),
			histogram: () => charts.histogram(host('histogram'), state.chosen,
				dom.get('histogram-log').checked),
			overtime: () => overtime.draw(host('overtime'), state.chosen, dom.get('overtime-metric').value),
		};
		const asks = {};
		for (const [id, draw] of Object.entries(draws))
			asks[id] = dom.drawn(host(id), draw);
		dom.get('curve-log').addEventListener('change', draws.curve);
		dom.get('histogram-log').addEventListener('change', draws.histogram);
		dom.get('overtime-metric').addEventListener('change', draws.overtime);
		const dress = dom.drawn(dom.get('series'), () => series(state.chosen, choose));

		return function show() {
			const [s] = state.chosen;
			dom.get('detail').hidden = !s;
			if (!s)
				return;
			dom.get('detail-title').textContent = TITLES[s.class];
			dom.get('detail').dataset.spans = state.chosen.map(x => x.name).join('\n');
			dom.get('figures').replaceChildren(...figures(s));
			dom.get('kernel').replaceChildren(...ofKernel(s));
			dress();
			calls(s, choose);
			Object.values(draws).forEach(draw => draw());
		};
	}

	return {start};
})();
