// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Scales, ticks, and the frame of a chart: axes, grid, a place to draw in, a cross-hair.

const axis = (() => {
	const LABEL = 11; // px of the tick labels' font
	const measure = document.createElement('canvas').getContext('2d');

	function textWidth(text, px, weight) {
		measure.font = `${weight || 400} ${px}px ${theme.css('--sans')}`;
		return measure.measureText(text).width;
	}

	// {lo, hi, log}; a range of no width, or without logarithm, is made to have one. A logarithmic one
	// spans a factor of `least` at least, so that no noise fills the chart.
	function scale(lo, hi, log, least = 1.5) {
		if (!Number.isFinite(lo) || !Number.isFinite(hi)) {
			lo = 0;
			hi = 1;
		}
		log = log && hi > 0;
		if (log) {
			lo = Math.max(lo, Math.min(1, hi / 10));
			if (hi / lo < least) {
				lo /= least;
				hi *= least;
			}
		} else if (hi - lo < Math.abs(hi) * 1e-9 || hi === lo) {
			const room = Math.abs(hi) / 2 || 1;
			lo -= room;
			hi += room;
		}
		const f = log ? v => Math.log10(Math.max(v, lo / 10)) : v => v;
		const a = f(lo), b = f(hi);
		return {
			lo, hi, log,
			at: v => (f(v) - a) / (b - a),
			back: t => log ? 10 ** (a + t * (b - a)) : a + t * (b - a),
		};
	}

	function logTicks(s, room) {
		const first = Math.floor(Math.log10(s.lo)), last = Math.floor(Math.log10(s.hi) + 1e-9);
		const decades = Math.log10(s.hi / s.lo), out = [];
		const every = Math.max(1, Math.ceil(decades / room));
		const fine = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]
			.find(list => decades * list.length <= room || list.length === 1);

		if (decades < 0.25)
			return linearTicks(s, room);
		for (let k = first; k <= last; k++)
			for (const m of fine)
				if (m * 10 ** k >= s.lo * 0.999 && m * 10 ** k <= s.hi * 1.001 &&
				    (m > 1 || k % every === 0))
					out.push(Number((m * 10 ** k).toPrecision(6)));
		return out;
	}

	function linearTicks(s, room) {
		const rough = (s.hi - s.lo) / Math.max(1, room), base = 10 ** Math.floor(Math.log10(rough));
		const step = [1, 2, 5, 10].map(m => m * base).find(v => v >= rough * 0.75) || base * 10;
		const out = [], first = Math.ceil(s.lo / step - 1e-9);

		for (let i = first; i * step <= s.hi + step * 1e-9 && out.length < 50; i++)
			out.push(Number((i * step).toPrecision(12)));
		return out;
	}

	const ticks = (s, room) => (s.log ? logTicks : linearTicks)(s, Math.max(2, room));

	// [v, label] of each; where labels are the same they get the digits that tell them apart.
	function labelled(values, text) {
		const short = values.map(v => text(v));
		const step = values.length > 1 ? Math.abs(values[1] - values[0]) : 0;
		const same = short.some((s, i) => s && short.indexOf(s) !== i);
		return values.map((v, i) => [v, same && step ? text(v, step) : short[i]]);
	}

	// Those of [at, text] in ascending order that do not touch the one before.
	function sparse(labels, widthOf) {
		let end = -Infinity;
		return labels.filter(([at, text]) => {
			const half = widthOf(text) / 2;
			if (at - half < end + 10)
				return false;
			end = at + half;
			return true;
		});
	}

	/*
	 * o: {x, y: scales, xText, yText: (v, step of ticks that are close) => label, label}; optional: xTicks: [v, ...], height, left: room
	 * for the labels at the left, at least.
	 * Returns {area, over, left, top, w, h, px(v), py(v)}: `area` is clipped, `over` is not.
	 */
	function frame(host, o) {
		const width = Math.max(host.clientWidth, 200);
		const height = o.height || Math.round(Math.min(300, Math.max(210, width * 0.5)));
		const yTicks = labelled(ticks(o.y, (height - 50) / 34), o.yText);
		const left = Math.ceil(Math.max(o.left || 24, ...yTicks.map(t => textWidth(t[1], LABEL)))) + 10;
		const top = 10, bottom = o.xText ? 26 : 8, right = 14;
		const w = width - left - right, h = height - top - bottom;
		const px = v => left + o.x.at(v) * w, py = v => top + (1 - o.y.at(v)) * h;
		const root = svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
			'aria-label': o.label});
		const id = host.parentNode.id + '-clip' + host.children.length;
		const grid = svg('g', {class: 'grid'}), area = svg('g', {'clip-path': `url(#${id})`});

		root.append(svg('clipPath', {id}, svg('rect', {x: left, y: top - 4, width: w + 8,
			height: h + 5})), grid);
		let below = Infinity;
		for (const [v, text] of yTicks) {
			const y = py(v);
			if (!text || y < top - 1 || y > top + h + 1 || below - y < 14)
				continue;
			below = y;
			grid.append(svg('line', {x1: left, x2: left + w, y1: y, y2: y}),
				svg('text', {x: left - 7, y: y + 4, 'text-anchor': 'end'}, text));
		}
		if (o.xText) {
			const labels = labelled(o.xTicks || ticks(o.x, w / 84), o.xText)
				.map(([v, text]) => [px(v), text]);
			for (const [x, text] of sparse(labels, t => textWidth(t, LABEL))) {
				const half = textWidth(text, LABEL) / 2;
				const at = Math.min(Math.max(x, half), width - half);
				grid.append(svg('line', {x1: x, x2: x, y1: top, y2: top + h + 4}),
					svg('text', {x: at, y: top + h + 18, 'text-anchor': 'middle'}, text));
			}
		}
		grid.append(svg('line', {class: 'base', x1: left, x2: left + w, y1: top + h, y2: top + h}));
		const over = svg('g');
		root.append(area, over);
		host.append(root);
		return {root, area, over, left, top, w, h, px, py};
	}

	// hit(t): what the pointer is at, t = 0 .. 1 along the x axis: {x, lines} or null.
	function hover(f, hit) {
		const cross = svg('line', {class: 'cross', y1: f.top, y2: f.top + f.h, visibility: 'hidden'});
		const pane = svg('rect', {x: f.left, y: f.top, width: Math.max(f.w, 0),
			height: f.h, class: 'pane'});
		const move = event => {
			const box = f.root.getBoundingClientRect();
			const found = hit((event.clientX - box.left - f.left) / f.w);
			if (!found)
				return off();
			cross.setAttribute('x1', found.x);
			cross.setAttribute('x2', found.x);
			cross.setAttribute('visibility', 'visible');
			dom.tip(event, found.lines);
		};
		const off = () => {
			cross.setAttribute('visibility', 'hidden');
			dom.tipOff();
		};
		pane.addEventListener('pointermove', move);
		pane.addEventListener('pointerdown', move);
		pane.addEventListener('pointerleave', dom.onLeave(off));
		f.over.append(cross, pane);
	}

	// A line through [x, y]; NaN lifts the pen. A point without neighbours is drawn as a dot.
	function line(points, attrs) {
		let d = '', dots = '';
		points.forEach(([x, y], i) => {
			if (!Number.isFinite(y))
				return;
			const before = i > 0 && Number.isFinite(points[i - 1][1]);
			const after = i + 1 < points.length && Number.isFinite(points[i + 1][1]);
			const at = x.toFixed(1) + ' ' + y.toFixed(1);
			if (before || after)
				d += (before ? 'L' : 'M') + at;
			else
				dots += 'M' + at + 'h0.01';
		});
		return svg('g', {fill: 'none', 'stroke-linecap': 'round', ...attrs}, d ? svg('path', {d}) : null,
			dots ? svg('path', {d: dots, 'stroke-width': 5, 'stroke-dasharray': 'none'}) : null);
	}

	return {scale, frame, hover, line, textWidth};
})();
