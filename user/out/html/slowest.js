// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The slowest outermost spans: a list, the call tree of the one that is selected on real time, the
// median one under it, and where the time of both goes.

const slowest = (() => {
	const {trees, median} = data.slowest;
	const live = text => {
		dom.get('slowest-live').textContent = text;
	};
	let current = 0;

	function item(t, i, show) {
		const bar = el('span', {class: 'bar'});
		bar.style.width = 100 * t.ns / Math.max(trees[0].ns, 1) + '%';
		return el('li', {}, el('button', {type: 'button', 'data-tree': i, 'aria-pressed': 'false',
			onclick: () => show(i)},
		el('b', {title: format.exactTime(t.raw.ns)}, format.time(t.ns)),
		el('span', {class: 'quiet'}, median && median.ns > 0
			? `${format.value(Number((t.ns / median.ns).toPrecision(3)))}× median` : ''),
		el('span', {class: 'quiet'}, `at ${format.time(t.at)}`),
		el('span', {class: 'quiet who'}, el('bdi', {}, t.thread)), bar));
	}

	function pathTable(caption, steps, total) {
		if (!steps.length)
			return null;
		return el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {},
			el('th', {class: 'left', scope: 'col'}, 'path of most time'), el('th', {scope: 'col'}, 'time'),
			el('th', {scope: 'col'}, 'self'), el('th', {scope: 'col'}, 'share'))),
		el('tbody', {}, ...steps.map((s, i) => {
			const bar = el('span', {class: 'bar'}), name = el('bdi', {}, format.shortName(s.name));
			bar.style.width = 100 * Math.min(s.ns / Math.max(total, 1), 1) + '%';
			name.style.paddingInlineStart = Math.min(i, 12) * 10 + 'px';
			return el('tr', {}, el('th', {class: 'left', scope: 'row', title: s.name}, name, bar),
				el('td', {title: format.exactTime(s.raw.ns)}, format.time(s.ns)),
				el('td', {title: format.exactTime(s.raw.self)}, format.time(s.self)),
				el('td', {}, format.share(total ? s.ns / total : NaN)));
		})));
	}

	function heading(text, t) {
		const left = t.leftOut ? `, ${format.count(t.leftOut)} inner events left out` : '';
		return [el('b', {}, text), ` ${format.time(t.ns)} at ${format.time(t.at)}, `,
			el('bdi', {}, t.thread), left];
	}

	function start(choose) {
		const section = dom.get('slowest');
		if (!trees.length) {
			section.hidden = true;
			return;
		}
		dom.get('slowest-title').textContent = 'Slowest spans: ' +
			format.shortName(data.nameOf(data.slowest.root));
		const place = dom.get('slowest-trees'), list = dom.get('slowest-list');
		const slowHead = el('p', {class: 'tree-head'}), slowHost = el('div', {class: 'icicle', id: 'tree-slow'});
		place.append(slowHead, slowHost);
		const slow = icicle.make(slowHost, 'Slow span on real time', live, choose);
		let other = null, otherHost = null;
		if (median) {
			otherHost = el('div', {class: 'icicle', id: 'tree-median'});
			place.append(el('p', {class: 'tree-head'}, ...heading('median', median)), otherHost);
			other = icicle.make(otherHost, 'Median span on real time', live, choose);
		} else {
			dom.get('slowest-scale').parentNode.hidden = true;
		}
		place.append(el('p', {class: 'quiet'}, 'Click a frame to zoom, Ctrl-wheel or + and - to zoom ' +
			'anywhere, drag to move, Escape or double click for all.'));

		function show(i) {
			const t = trees[i];
			current = i;
			section.dataset.tree = i;
			for (const b of list.querySelectorAll('button'))
				b.setAttribute('aria-pressed', Number(b.dataset.tree) === i ? 'true' : 'false');
			slowHead.replaceChildren(...heading(`slow no. ${i + 1}`, t));
			slow.show(t, t.ns);
			if (other)
				other.show(median, dom.get('slowest-scale').checked ? Math.max(t.ns, median.ns) : median.ns);
		}

		list.append(...trees.map((t, i) => item(t, i, show)));
		dom.get('slowest-scale').addEventListener('change', () => show(current));
		dom.get('slowest-paths').append(...[
			pathTable('The slowest', data.slowest.slowestPath, trees[0].ns),
			median && pathTable('The median', data.slowest.medianPath, median.ns),
		].filter(Boolean));
		show(0);
	}

	return {start};
})();
