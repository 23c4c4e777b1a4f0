// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// One call tree on real time: an axis, a row for each depth, and below them the spans that outlived
// the one around them (they may overlap anything). Zoomed and moved by pointer and keys.
//
// A tree may bring more, and then has its rows laid already (e.y): `rows`; `bands`: [{y, text}], parts with
// a name at the left; `walk`: events that the keys step through; of an event `fill`, a colour of its
// own, `faint`, `more` to tell, and `links`, the events that belong to it.

const icicle = (() => {
	const ROW = 18, AXIS = 22, ROWS_MAX = 160, TEXT_LEAST = 28, GUTTER_MAX = 190;
	const WORDS = {aside: 'outlived the span around it', instant: 'instant', value: 'value',
		open: 'had no end', keyed: 'keyed', moment: 'takes no time'};
	// They have no width: a mark at their time.
	const MARKS = ['instant', 'value', 'moment'];

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
		let left = 0, width = 1, current = null, over = null;
		host.append(canvas);

		function show(t, scaleNs) {
			tree = t;
			rows = t.rows || lay(t.events);
			current = over = null;
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

		const xOf = ns => left + (ns - from) / (to - from) * width;

		function ticks(c, ink, line) {
			const step = 10 ** Math.floor(Math.log10((to - from) / (width / 90)));
			const every = [1, 2, 5, 10].map(m => m * step).find(v => v >= (to - from) / (width / 90));
			c.font = `11px ${theme.css('--sans')}`;
			for (let i = Math.ceil(from / every); i * every <= to; i++) {
				const x = xOf(i * every);
				c.fillStyle = line;
				c.fillRect(Math.round(x), AXIS - 5, 1, rows * ROW + 5);
				const text = i ? '+' + format.tick(format.time(Number((i * every).toPrecision(12)))) : '0';
				const w = c.measureText(text).width;
				c.fillStyle = ink;
				if (x + w + 4 < left + width)
					c.fillText(text, x + 3, AXIS - 8);
			}
		}

		function box(c, colour, e, x, w, y) {
			c.fillStyle = e.fill ? theme.css(e.fill) : theme.frame(e.name);
			c.globalAlpha = e.faint ? 0.4 : 1;
			if (MARKS.includes(e.kind)) {
				c.fillStyle = colour.ink;
				c.beginPath();
				c.moveTo(x - 4, y + 3);
				c.lineTo(x + 4, y + 3);
				c.lineTo(x, y + ROW - 5);
				c.fill();
				c.globalAlpha = 1;
				boxes.push({e, x: x - 4, w: 8, y});
				return;
			}
			c.fillRect(x, y, w, ROW - 1);
			c.globalAlpha = 1;
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

		// The names of the parts, and where the tree's own time ends when more is shown.
		function bands(c, colour, whole) {
			c.fillStyle = colour.raised;
			if (xOf(tree.ns) < left + width)
				c.fillRect(Math.max(xOf(tree.ns), left), AXIS, left + width - Math.max(xOf(tree.ns), left), rows * ROW);
			c.font = `11.5px ${theme.css('--sans')}`;
			for (const b of tree.bands || []) {
				c.fillStyle = colour.line;
				c.fillRect(0, AXIS + b.y * ROW - 1, whole, 1);
				c.fillStyle = colour.ink;
				c.fillText(flame.fitted(c, b.text, left - 10), 4, AXIS + b.y * ROW + 13);
			}
		}

		// The event that is pointed at or chosen, what belongs to it, and an arrow to each.
		function links(c, ink) {
			const e = over || current, at = new Map(boxes.map(b => [b.e, b]));
			const outlined = e ? [e, ...(e.links || [])].filter(k => at.has(k)) : [];
			c.strokeStyle = c.fillStyle = ink;
			c.lineWidth = 1.5;
			for (const {x, y, w} of outlined.map(k => at.get(k)))
				c.strokeRect(x - 0.5, y - 0.5, w + 1, ROW);
			for (const k of outlined.slice(1)) {
				const [a, b] = (k.y < e.y ? [k, e] : [e, k]).map(v => at.get(v));
				const x = b.x + Math.min(b.w / 2, 3);
				c.beginPath();
				c.moveTo(a.x + Math.min(a.w / 2, 3), a.y + ROW);
				c.lineTo(x, b.y - 1);
				c.stroke();
				c.beginPath();
				c.moveTo(x - 3.5, b.y - 7);
				c.lineTo(x + 3.5, b.y - 7);
				c.lineTo(x, b.y);
				c.fill();
			}
			host.dataset.linked = Math.max(outlined.length - 1, 0);
		}

		function draw() {
			if (!tree)
				return;
			const whole = host.clientWidth;
			const c = dom.canvas(canvas, whole, AXIS + rows * ROW + 2);
			const colour = {ink: theme.css('--quiet'), frameInk: theme.css('--frame-ink'), line: theme.css('--line'),
				raised: theme.css('--raised')};
			c.font = `11.5px ${theme.css('--sans')}`;
			left = tree.bands ? Math.min(GUTTER_MAX, whole * 0.28,
				Math.max(...tree.bands.map(b => c.measureText(b.text).width)) + 16) : 0;
			width = Math.max(whole - left, 1);
			host.dataset.left = Math.round(left);
			bands(c, colour, whole);
			ticks(c, colour.ink, colour.line);
			c.font = `11.5px ${theme.css('--sans')}`;
			boxes = [];
			const ends = [];
			for (const e of tree.events) {
				const x0 = xOf(e.start), x1 = xOf(e.start + e.ns);
				if (e.y >= rows || x1 < left || x0 > left + width)
					continue;
				const x = Math.max(x0, left);
				const w = Math.max(Math.min(x1, left + width) - x - (x1 - x0 > 3 ? 1 : 0), 0.8);
				// What falls into a pixel that its row has drawn already is not seen.
				if (e.kind === 'span' && x + w < (ends[e.y] || -1) + 0.6)
					continue;
				ends[e.y] = x + w;
				box(c, colour, e, x, w, AXIS + e.y * ROW);
			}
			host.dataset.drawn = boxes.length;
			links(c, theme.css('--ink'));
		}

		const ask = dom.drawn(host, draw);

		function pointAt(e) {
			if (over !== e && tree && tree.walk)
				ask();
			over = e;
		}

		function lines(e) {
			const start = format.exactTime(e.raw.start);
			const out = [e.name, ['starts at', start.startsWith('-') ? start : '+' + start]];
			if (e.kind !== 'instant' && e.kind !== 'value')
				out.push(['takes', format.exactTime(e.raw.ns)], ['share', format.share(e.ns / tree.ns)]);
			if (WORDS[e.kind])
				out.push(['note', WORDS[e.kind]]);
			return out.concat(e.more || []);
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

		const said = e => lines(e).map(l => Array.isArray(l) ? l.join(' ') : l).join(', ');

		// `by` events on from the one that is chosen; what is out of sight is moved into it.
		function walk(by) {
			const list = tree.walk, at = list.indexOf(current);
			if (!list.length)
				return '';
			current = list[Math.min(Math.max(at < 0 && by < 0 ? list.length - 1 : at + by, 0), list.length - 1)];
			over = null;
			host.dataset.current = current.name;
			if (current.start < from || current.start + current.ns > to)
				look(current.start - (to - from) / 4, current.start + (to - from) * 3 / 4);
			const y = AXIS + current.y * ROW;
			if (y < host.scrollTop || y + ROW > host.scrollTop + host.clientHeight)
				host.scrollTop = y - host.clientHeight / 2;
			ask();
			return said(current);
		}

		let drag = null;
		canvas.addEventListener('pointerdown', event => {
			drag = {x: event.clientX, from, to, moved: false};
		});
		canvas.addEventListener('pointermove', event => {
			if (drag && event.buttons) {
				const by = (drag.x - event.clientX) / width * (drag.to - drag.from);
				drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 4;
				if (drag.moved) {
					dom.tipOff();
					look(drag.from + by, drag.to + by);
				}
				return;
			}
			const e = under(event);
			pointAt(e);
			canvas.style.cursor = e ? 'pointer' : to - from < whole ? 'grab' : 'default';
			if (e)
				dom.tip(event, lines(e));
			else
				dom.tipOff();
		});
		canvas.addEventListener('pointerleave', dom.onLeave(() => {
			pointAt(null);
			dom.tipOff();
		}));
		canvas.addEventListener('click', event => {
			const e = drag && drag.moved ? null : under(event);
			drag = null;
			if (!e)
				return;
			tell(said(e));
			current = e;
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
			const x = (event.clientX - canvas.getBoundingClientRect().left - left) / width;
			zoomAt(from + x * (to - from), event.deltaY > 0 ? 1.25 : 0.8);
		}, {passive: false});
		canvas.addEventListener('keydown', event => {
			const step = (to - from) / 5;
			const act = {
				'+': () => zoomAt((from + to) / 2, 0.6), '=': () => zoomAt((from + to) / 2, 0.6),
				'-': () => zoomAt((from + to) / 2, 1.6), ArrowLeft: () => look(from - step, to - step),
				ArrowRight: () => look(from + step, to + step), Escape: reset,
				...tree && tree.walk ? {ArrowDown: () => walk(1), ArrowUp: () => walk(-1),
					Enter: () => current && current.ns && look(current.start, current.start + current.ns)} : {},
			}[event.key];
			if (!act)
				return;
			event.preventDefault();
			tell(act() || `${format.time(from)} to ${format.time(to)}`);
		});
		return {show};
	}

	return {make, lay};
})();
