// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The percentile curve and the histogram of the spans that are selected.

const charts = (() => {
	// The least and the greatest over all spans.
	const least = (spans, f) => Math.min(...spans.map(f).filter(Number.isFinite));
	const most = (spans, f) => Math.max(...spans.map(f).filter(Number.isFinite));
	const stroke = i => ({stroke: theme.series(i), 'stroke-width': 2, 'stroke-dasharray':
		['', '7 3', '2 3', '9 3 2 3', '12 4', '4 4'][i]});

	const drawable = spans => spans.filter(s => s.curve.length);

	function nothing(host, spans) {
		const cut = spans.some(s => s.n > 0);
		host.append(el('p', {class: 'quiet empty'}, cut
			? 'This page has charts only of the spans with most time. This one has its figures above.'
			: 'Nothing to draw: the file holds no measurement of this span.'));
	}

	// 1 in `x` is slower.
	function percent(x) {
		if (x <= 1)
			return '0%';
		const nines = Math.max(0, Math.round(Math.log10(x)) - 2);
		return (100 - 100 / x).toFixed(nines) + '%';
	}

	function curve(host, all, log) {
		const spans = drawable(all);
		host.replaceChildren();
		if (!spans.length)
			return nothing(host, all);
		const first = spans[0], n = most(spans, s => s.curve.at(-1)[0]);
		const at = (s, rank) => s.curve.at(-1)[0] / (s.curve.at(-1)[0] - rank + 1);
		const lo = least(spans, s => s.curve[0][1]), hi = most(spans, s => s.curve.at(-1)[1]);
		const y = axis.scale(lo > 0 && log ? lo : Math.min(lo, 0), hi, log && lo >= 0);
		const x = axis.scale(1, Math.max(n, 10), true);
		const xTicks = [1, 2];
		for (let k = 10; k <= x.hi; k *= 10)
			xTicks.push(k);
		const f = axis.frame(host, {x, y, xTicks, xText: percent,
			yText: (v, step) => data.tickOf(first, v, step),
			label: 'Percentile curve: ' + spans.map(s => `${s.name}, maximum ` +
				data.timeOf(s, s.max)).join('; ')});
		spans.forEach(s => f.area.append(axis.line(
			s.curve.map(([rank, v]) => [f.px(at(s, rank)), f.py(v)]), stroke(all.indexOf(s)))));
		axis.hover(f, t => {
			const want = x.back(Math.min(Math.max(t, 0), 1));
			const lines = [`1 in ${format.count(Math.round(want))} takes at least`];
			for (const s of spans) {
				// The point nearest to it; beyond its last one a span has nothing to say.
				const near = s.curve.reduce((a, b) => Math.abs(Math.log(at(s, b[0]) / want)) <
					Math.abs(Math.log(at(s, a[0]) / want)) ? b : a);
				lines.push([s.name, at(s, near[0]) < want / 2 ? '–' : data.exactOf(s, near[1])]);
			}
			return {x: f.px(want), lines};
		});
	}

	function histogram(host, all, log) {
		const spans = drawable(all);
		host.replaceChildren();
		if (!spans.length)
			return nothing(host, all);
		const first = spans[0], shares = spans.length > 1;
		const steps = spans.every(s => s.steps.length);
		let lo = least(spans, s => s.curve[0][1]), hi = most(spans, s => s.curve.at(-1)[1]);
		// The same for all, and bars of at least three pixels.
		let octave = Math.min(...spans.map(s => s.octave));
		const octaves = Math.log2(Math.max(hi, 2) / Math.max(lo, 1));
		while (steps && octave > 1 && octaves * octave * 3 > host.clientWidth - 80)
			octave /= 2;
		const sets = spans.map(s => {
			const list = data.buckets(s, octave), total = list.reduce((sum, b) => sum + b[2], 0);
			return list.map(([a, b, n]) => ({a, b, n, y: shares ? n / total : n}));
		});
		for (const b of sets.flat()) {
			lo = Math.min(lo, b.a);
			hi = Math.max(hi, b.b);
		}
		const x = axis.scale(lo, hi, steps, 1.02);
		const tops = sets.flat().map(b => b.y);
		const yLow = log ? (shares ? Math.min(...tops) / 2 : 0.7) : 0;
		const y = {...axis.scale(yLow, Math.max(...tops) * (log ? 1.4 : 1.05), false)};
		if (log) {
			// Down to below the rarest: one is a value, too.
			const a = Math.log10(yLow), b = Math.log10(y.hi);
			Object.assign(y, {lo: yLow, log: true, at: v => (Math.log10(Math.max(v, yLow)) - a) / (b - a)});
		}
		const f = axis.frame(host, {x, y, xText: (v, step) => data.tickOf(first, v, step),
			yText: v => format.tick(shares ? format.share(v) : v < 1 ? '' : format.rate(v)),
			label: `Histogram of ${spans.map(s => s.name).join('; ')}`});
		const single = list => list.every(b => b.a === b.b);
		sets.forEach((list, i) => {
			const base = f.py(y.lo);
			let d = '';
			for (const b of list) {
				let left = f.px(b.a), right = f.px(b.b);
				if (single(list)) {
					const half = Math.max(1, Math.min(8, f.w / list.length / 3));
					left -= half;
					right += half;
				}
				const gap = right - left > 4 && !shares ? 1 : 0;
				d += `M${left.toFixed(1)} ${base.toFixed(1)}V${f.py(b.y).toFixed(1)}` +
					`H${Math.max(right - gap, left + 0.5).toFixed(1)}V${base.toFixed(1)}Z`;
			}
			const colour = theme.series(all.indexOf(spans[i]));
			f.area.append(svg('path', {d, fill: colour, 'fill-opacity': shares ? 0.35 : 0.85,
				stroke: shares ? colour : 'none', 'stroke-width': 1}));
		});
		if (!shares && first.class === 'span' && first.floor > x.lo && first.floor < x.hi) {
			const at = f.px(first.floor);
			f.over.append(svg('line', {class: 'floor', x1: at, x2: at, y1: f.top, y2: f.top + f.h}),
				svg('text', {class: 'floor', x: at + 4, y: f.top + 10}, 'floor'));
		}
		axis.hover(f, t => {
			const v = x.back(Math.min(Math.max(t, 0), 1));
			const gap = b => v < b.a ? f.px(b.a) - f.px(v) : v > b.b ? f.px(v) - f.px(b.b) : 0;
			const found = sets.map(list => list.reduce((a, b) => (gap(b) < gap(a) ? b : a)));
			const near = found.reduce((a, b) => (gap(b) < gap(a) ? b : a));
			if (gap(near) > 12)
				return null;
			return {x: f.px(Math.min(Math.max(v, near.a), near.b)), lines: [
				near.a === near.b ? data.timeOf(first, near.a)
					: `${data.timeOf(first, near.a)} to below ${data.timeOf(first, near.b)}`,
				...found.map((b, i) => [spans[i].name, gap(b) > 12 ? '0' : format.count(b.n) + ' (' +
					format.share(b.n / sets[i].reduce((sum, c) => sum + c.n, 0)) + ')']),
			]};
		});
	}

	return {curve, histogram, stroke, nothing, least, most};
})();
