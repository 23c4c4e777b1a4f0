// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Percentiles over time, with how often the span came, and where the file lacks some.

const overtime = (() => {
	const LEFT = 50; // of both frames, so that they stand under one another
	const METRICS = [['p50', 'p50'], ['p99', 'p99'], ['max', 'max']];

	const ofWindow = i => {
		const {from, to, n} = data.windows;
		return from + (i + 0.5) * (to - from) / n;
	};
	const nsText = ns => ns === 0 ? '0 s' : format.tick(format.time(ns));

	// The lines to draw: three of one span, or one of each of several.
	function linesOf(all, spans, metric) {
		if (spans.length > 1)
			return spans.map(s => ({s, text: s.name, v: s.windows[metric],
				attrs: charts.stroke(all.indexOf(s))}));
		const colour = theme.series(all.indexOf(spans[0]));
		const looks = {
			p50: {stroke: colour, 'stroke-width': 2},
			p99: {stroke: colour, 'stroke-width': 1.5, 'stroke-dasharray': '5 3'},
			max: {stroke: colour, 'stroke-width': 1, 'stroke-opacity': 0.65},
		};
		return METRICS.map(([key, text]) => ({s: spans[0], text, v: spans[0].windows[key],
			attrs: {...looks[key], 'stroke-linecap': 'round'}}));
	}

	// Each line's name at its right end, as far as they do not touch.
	function endLabels(f, lines) {
		const ends = lines.map(l => {
			const i = l.v.findLastIndex(Number.isFinite);
			return i < 0 ? null : {l, x: f.px(ofWindow(i)), y: f.py(l.v[i])};
		}).filter(Boolean).sort((a, b) => a.y - b.y);
		let last = -Infinity;
		for (const e of ends) {
			if (e.y - last < 12)
				continue;
			last = e.y;
			f.over.append(svg('text', {class: 'end', x: Math.min(e.x, f.left + f.w) - 2,
				y: Math.max(e.y - 5, f.top + 8), 'text-anchor': 'end'}, e.l.text));
		}
	}

	// A mark where the file lacks some, and a shade the deeper the more it lacks.
	function losses(f, spans) {
		const w = f.w / data.windows.n;
		for (let i = 0; i < data.windows.n; i++) {
			const lost = spans.reduce((sum, s) => sum + (s.losses.get(i) || 0), 0);
			const held = spans.reduce((sum, s) => sum + s.windows.count[i], 0);
			if (lost) {
				const at = {class: 'lost', x: f.left + i * w, width: Math.max(w, 1.5)};
				const share = lost / (lost + held);
				f.area.append(svg('rect', {...at, y: f.top, height: f.h, opacity: 0.04 + 0.4 * share}),
					svg('rect', {...at, y: f.top - 4, height: 3}));
			}
		}
	}

	function counts(host, x, spans, all) {
		const totals = spans.map(s => s.windows.count);
		const y = axis.scale(0, Math.max(1, ...totals.flat()), false);
		const f = axis.frame(host, {x, y, height: 92, left: LEFT, xText: nsText,
			yText: v => Number.isInteger(v) ? format.tick(format.rate(v)) : '', label: 'How many in each stretch of time'});
		const w = f.w / data.windows.n;
		losses(f, spans);
		totals.forEach((list, k) => {
			if (spans.length > 1) {
				f.area.append(axis.line(list.map((v, i) => [f.px(ofWindow(i)), f.py(v)]),
					{...charts.stroke(all.indexOf(spans[k])), 'stroke-width': 1.5}));
				return;
			}
			let d = '';
			list.forEach((n, i) => {
				if (n > 0)
					d += `M${(f.left + i * w).toFixed(1)} ${(f.top + f.h).toFixed(1)}` +
						`V${f.py(n).toFixed(1)}h${Math.max(w - (w > 3 ? 1 : 0), 0.5).toFixed(1)}` +
						`V${(f.top + f.h).toFixed(1)}Z`;
			});
			f.area.append(svg('path', {d, fill: theme.series(all.indexOf(spans[k])),
				'fill-opacity': 0.75}));
		});
		return f;
	}

	function draw(host, all, metric) {
		const spans = all.filter(s => s.windows);
		host.replaceChildren();
		dom.get('overtime-choice').hidden = spans.length < 2;
		if (!spans.length || !data.windows.n)
			return charts.nothing(host, all);
		const lines = linesOf(all, spans, metric), values = lines.flatMap(l => l.v);
		const lo = charts.least(values, v => v), hi = charts.most(values, v => v);
		const {from, to, n} = data.windows;
		const x = axis.scale(from, Math.max(to, from + 1), false);
		const y = axis.scale(lo, hi * (hi > 0 ? 1.1 : 0.9), spans[0].time && lo > 0);
		const f = axis.frame(host, {x, y, height: 190, left: LEFT, 
			yText: (v, step) => data.tickOf(spans[0], v, step),
			label: 'Percentiles over time of ' + spans.map(s => s.name).join('; ')});
		losses(f, spans);
		for (const l of lines)
			f.area.append(axis.line(l.v.map((v, i) => [f.px(ofWindow(i)), f.py(v)]), l.attrs));
		endLabels(f, lines);
		const under = counts(host, x, spans, all);
		const hit = t => {
			const i = Math.min(n - 1, Math.max(0, Math.floor(t * n)));
			const start = from + i * (to - from) / n, end = from + (i + 1) * (to - from) / n;
			const told = [`${nsText(start)} to ${nsText(end)}`];
			for (const l of lines)
				told.push([l.text, data.timeOf(l.s, l.v[i])]);
			for (const s of spans) {
				told.push([spans.length > 1 ? s.name : 'came', format.count(s.windows.count[i])]);
				if (s.losses.has(i))
					told.push(['not in the file', 'up to ' + format.count(s.losses.get(i))]);
			}
			return {x: f.px(ofWindow(i)), lines: told};
		};
		axis.hover(f, hit);
		axis.hover(under, t => {
			const found = hit(t);
			return {...found, x: under.px(ofWindow(Math.min(n - 1, Math.max(0, Math.floor(t * n)))))};
		});
	}

	return {draw};
})();
