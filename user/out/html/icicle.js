// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// One call tree on real time: an axis, a row for each depth, and below them the spans that outlived
// the one around them (they may overlap anything). Zoomed and moved by pointer and keys.

const icicle = (() => {
	const ROW = 18, AXIS = 22, ROWS_MAX = 160, TEXT_LEAST = 28;
	const WORDS = {aside: 'outlived the span around it', instant: 'instant', value: 'value',
		open: 'had no end', keyed: 'keyed'};

	// Gives each event its row; returns how many there are.
	function lay(events) {
		let rows = 0;
		const aside = [], ends = [];
		for (const e of events) {
			if (e.kind === 'aside' || e.kind === 'keyed') {
				aside.push(e);
			} else {
				e.y = e.depth;
				rows = Math.max(rows, e.depth + 1);
			}
		}
		for (const e of aside) {
			let k = ends.findIndex(end => end <= e.start);
			if (k < 0)
				k = ends.length;
			ends[k] = e.start + e.ns;
			e.y = rows + k;
		}
		return Math.min(rows + ends.length, ROWS_MAX);
	}

	// tell(text): what the keys have come to. choose(row): an event's span was chosen.
	function make(host, label, tell, choose) {
		const canvas = el('canvas', {tabindex: '0', role: 'application',
			'aria-label': label + '. Plus and minus zoom, arrow keys move, Escape shows all.'});
		let tree = null, rows = 0, whole = 1, from = 0, to = 1, boxes = [], zoomed = null;
		host.append(canvas);

		function show(t, scaleNs) {
			tree = t;
			rows = lay(t.events);
			whole = Math.max(scaleNs, 1);
			reset();
		}

		function reset() {
			zoomed = null;
			look(0, whole);
		}

		function look(a, b) {
			const span = Math.min(Math.max(b - a, Math.min(2, whole)), whole);
			from = Math.min(Math.max(a, 0), whole - span);
			to = from + span;
			host.dataset.from = Math.round(from);
			host.dataset.to = Math.round(to);
			ask();
		}

		function ticks(c, width, ink, line) {
			const s = axis.scale(from, to, false), step = 10 ** Math.floor(Math.log10((to - from) / (width / 90)));
			const every = [1, 2, 5, 10].map(m => m * step).find(v => v >= (to - from) / (width / 90));
			c.font = `11px ${theme.css('--sans')}`;
			for (let i = Math.ceil(from / every); i * every <= to; i++) {
				const x = s.at(i * every) * width;
				c.fillStyle = line;
				c.fillRect(Math.round(x), AXIS - 5, 1, rows * ROW + 5);
				const text = i ? '+' + format.tick(format.time(Number((i * every).toPrecision(12)))) : '0';
				const w = c.measureText(text).width;
				c.fillStyle = ink;
				if (x + w + 4 < width)
					c.fillText(text, x + 3, AXIS - 8);
			}
		}

		function box(c, colour, e, x, w, y) {
			c.fillStyle = theme.frame(e.name);
			if (e.kind === 'instant' || e.kind === 'value') {
				// A moment has no width: a mark at its time.
				c.fillStyle = colour.ink;
				c.beginPath();
				c.moveTo(x - 4, y + 3);
				c.lineTo(x + 4, y + 3);
				c.lineTo(x, y + ROW - 5);
				c.fill();
				boxes.push({e, x: x - 4, w: 8, y});
				return;
			}
			c.fillRect(x, y, w, ROW - 1);
			if (e.kind !== 'span') {
				c.strokeStyle = colour.ink;
				c.setLineDash([3, 3]);
				c.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 1), ROW - 2);
				c.setLineDash([]);
			}
			if (w > TEXT_LEAST) {
				c.fillStyle = colour.frameInk;
				c.fillText(flame.fitted(c, format.shortName(e.name), w - 8), x + 4, y + 13);
			}
			boxes.push({e, x, w, y});
		}

		function draw() {
			if (!tree)
				return;
			const width = host.clientWidth, height = AXIS + rows * ROW + 2;
			const c = dom.canvas(canvas, width, height);
			const colour = {ink: theme.css('--quiet'), frameInk: theme.css('--frame-ink')};
			ticks(c, width, colour.ink, theme.css('--line'));
			c.font = `11.5px ${theme.css('--sans')}`;
			boxes = [];
			const ends = [];
			for (const e of tree.events) {
				const x0 = (e.start - from) / (to - from) * width;
				const x1 = (e.start + e.ns - from) / (to - from) * width;
				if (e.y >= rows || x1 < 0 || x0 > width)
					continue;
				const x = Math.max(x0, 0), w = Math.max(Math.min(x1, width) - x - (x1 - x0 > 3 ? 1 : 0), 0.8);
				// What falls into a pixel that its row has drawn already is not seen.
				if (e.kind === 'span' && x + w < (ends[e.y] || -1) + 0.6)
					continue;
				ends[e.y] = x + w;
				box(c, colour, e, x, w, AXIS + e.y * ROW);
			}
			host.dataset.drawn = boxes.length;
		}

		const ask = dom.drawn(host, draw);

		function lines(e) {
			const out = [e.name, ['starts at', '+' + format.exactTime(e.raw.start)]];
			if (e.kind !== 'instant' && e.kind !== 'value')
				out.push(['takes', format.exactTime(e.raw.ns)], ['share', format.share(e.ns / tree.ns)]);
			if (WORDS[e.kind])
				out.push(['note', WORDS[e.kind]]);
			return out;
		}

		function under(event) {
			const at = canvas.getBoundingClientRect(), x = event.clientX - at.left, y = event.clientY - at.top;
			// Marks and later ones lie on top.
			const b = boxes.findLast(o => x >= o.x && x <= o.x + Math.max(o.w, 3) && y >= o.y && y < o.y + ROW);
			return b && b.e;
		}

		function zoomAt(t, factor) {
			look(t - (t - from) * factor, t + (to - t) * factor);
		}

		let drag = null;
		canvas.addEventListener('pointerdown', event => {
			drag = {x: event.clientX, from, to, moved: false};
		});
		canvas.addEventListener('pointermove', event => {
			if (drag && event.buttons) {
				const by = (drag.x - event.clientX) / host.clientWidth * (drag.to - drag.from);
				drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 4;
				if (drag.moved) {
					dom.tipOff();
					look(drag.from + by, drag.to + by);
				}
				return;
			}
			const e = under(event);
			canvas.style.cursor = e ? 'pointer' : to - from < whole ? 'grab' : 'default';
			if (e)
				dom.tip(event, lines(e));
			else
				dom.tipOff();
		});
		canvas.addEventListener('pointerleave', dom.onLeave(dom.tipOff));
		canvas.addEventListener('click', event => {
			const e = drag && drag.moved ? null : under(event);
			drag = null;
			if (!e)
				return;
			tell(lines(e).map(l => Array.isArray(l) ? l.join(' ') : l).join(', '));
			if (e === zoomed || !e.ns)
				reset();
			else
				look(e.start, e.start + e.ns);
			zoomed = to - from < whole && e !== zoomed ? e : null;
			if (e.row >= 0)
				choose(e.row, false);
			if (event.pointerType === 'touch')
				dom.tip(event, lines(e));
		});
		canvas.addEventListener('dblclick', reset);
		canvas.addEventListener('wheel', event => {
			if (!event.ctrlKey)
				return; // the page scrolls
			event.preventDefault();
			const x = (event.clientX - canvas.getBoundingClientRect().left) / host.clientWidth;
			zoomAt(from + x * (to - from), event.deltaY > 0 ? 1.25 : 0.8);
		}, {passive: false});
		canvas.addEventListener('keydown', event => {
			const step = (to - from) / 5;
			const act = {
				'+': () => zoomAt((from + to) / 2, 0.6), '=': () => zoomAt((from + to) / 2, 0.6),
				'-': () => zoomAt((from + to) / 2, 1.6), ArrowLeft: () => look(from - step, to - step),
				ArrowRight: () => look(from + step, to + step), Escape: reset,
			}[event.key];
			if (!act)
				return;
			event.preventDefault();
			act();
			tell(`${format.time(from)} to ${format.time(to)}`);
		});
		return {show};
	}

	return {make};
})();
