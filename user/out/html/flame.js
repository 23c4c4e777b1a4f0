// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The flame graph: callers above, callees below, a frame as wide as its share. Drawn on a canvas that
// stays in view while its frame is scrolled, and only what is in view and wide enough to be seen.

const flame = (() => {
	const ROW = 20, LEAST = 0.7, TEXT_LEAST = 28, PAD = 5;
	const MOVE_MS = 160;
	const still = matchMedia('(prefers-reduced-motion: reduce)');

	let root, zoomed, focus, by = 'time', wanted = '', boxes = [], levels = 1, moving = null;
	const host = dom.get('flame-scroll');
	const canvas = el('canvas', {tabindex: '0', role: 'application',
		'aria-label': 'Flame graph. Arrow keys move between frames, Enter zooms, Escape goes back.'});
	const space = el('div', {class: 'space'}, canvas);

	// Weight and place (x, w in 0 .. 1 of all) of each node, siblings by name so that pages compare.
	// By time, a frame can be narrower than what it calls: spans that outlive the one around them.
	function layout() {
		const order = [], work = [root];
		while (work.length) {
			const n = work.pop();
			order.push(n);
			work.push(...n.children);
		}
		levels = 1;
		for (const n of order.reverse()) {
			const inner = n.children.reduce((sum, c) => sum + c.weight, 0);
			n.weight = by === 'count' ? (n.count || 0) + inner : Math.max(n.total || 0, inner);
			levels = Math.max(levels, n.depth + 1);
		}
		root.x = 0;
		root.w = 1;
		for (const n of order.reverse()) {
			let x = n.x;
			n.children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
			for (const c of n.children) {
				c.x = x;
				c.w = root.weight ? c.weight / root.weight : 0;
				x += c.w;
			}
		}
	}

	// --- search ---

	function search() {
		const text = wanted.toLowerCase();
		let sum = 0, frames = 0;
		const work = [[root, false]];
		while (work.length) {
			const [n, inside] = work.pop();
			n.hit = !!text && n !== root && n.name.toLowerCase().includes(text);
			frames += n.hit;
			// Of nested matches the outermost counts: no time twice.
			if (n.hit && !inside)
				sum += n.weight;
			for (const c of n.children)
				work.push([c, inside || n.hit]);
		}
		const out = dom.get('flame-matched'), share = root.weight ? sum / root.weight : 0;
		out.textContent = text ? `${format.count(frames)} ${frames === 1 ? 'frame' : 'frames'}, ` +
			`${format.share(share)} of ${by === 'count' ? 'hits' : 'time'}` : '';
		host.dataset.matched = text ? frames : '';
		host.dataset.matchedShare = text ? share.toFixed(6) : '';
	}

	// --- drawing ---

	// The stretch of 0 .. 1 in view; moves to a new one in a few frames.
	function view() {
		const to = {x: zoomed.x, w: zoomed.w || 1};
		if (!moving)
			return to;
		const t = Math.min(1, (performance.now() - moving.start) / MOVE_MS), e = 1 - (1 - t) ** 3;
		if (t >= 1)
			moving = null;
		return {x: moving ? moving.from.x + (to.x - moving.from.x) * e : to.x,
			w: moving ? moving.from.w + (to.w - moving.from.w) * e : to.w};
	}

	function colours() {
		const c = name => theme.css(name);
		return {ink: c('--frame-ink'), all: c('--frame-all'), hit: c('--hit'), hitInk: c('--hit-ink'),
			rest: c('--frame-rest'), focus: c('--focus'), gap: c('--panel'), font: c('--sans')};
	}

	function box(c, look, n, x, y, w) {
		const above = n.depth < zoomed.depth, gap = w > 3 ? 1 : 0;
		c.globalAlpha = above ? 0.55 : wanted && !n.hit ? 0.4 : 1;
		c.fillStyle = n === root ? look.all : n.hit ? look.hit : theme.frame(n.name);
		c.fillRect(x, y, w - gap, ROW - 1);
		c.globalAlpha = 1;
		if (w > TEXT_LEAST) {
			c.fillStyle = n.hit ? look.hitInk : look.ink;
			const left = Math.max(x, 0) + PAD, room = Math.min(x + w, space.clientWidth) - left - PAD;
			c.fillText(fitted(c, n === root ? allText() : format.shortName(n.name), room), left, y + 14);
		}
		boxes.push({n, x, y, w});
	}

	const allText = () => by === 'count' ? `all: ${format.count(root.weight)} hits`
		: `all: ${format.time(root.weight)}`;

	// As much of the text as there is room for.
	function fitted(c, text, room) {
		if (c.measureText(text).width <= room)
			return text;
		let lo = 0, hi = text.length;
		while (lo < hi) {
			const mid = (lo + hi + 1) >> 1;
			if (c.measureText(text.slice(0, mid) + '…').width <= room)
				lo = mid;
			else
				hi = mid - 1;
		}
		return lo > 1 ? text.slice(0, lo) + '…' : '';
	}

	function draw() {
		const width = host.clientWidth, whole = levels * ROW;
		const height = Math.min(whole, host.clientHeight || whole), top = host.scrollTop;
		space.style.height = whole + 'px';
		const c = dom.canvas(canvas, width, height), look = colours(), v = view();
		c.font = `12px ${look.font}`;
		boxes = [];
		const work = [root];
		while (work.length) {
			const n = work.pop();
			const x = (n.x - v.x) / v.w * width, w = n.w / v.w * width, y = n.depth * ROW - top;
			if (x + w < 0.01 || x > width - 0.01 || y >= height)
				continue;
			if (y + ROW > 0)
				box(c, look, n, Math.max(x, 0), y, Math.min(x + w, width) - Math.max(x, 0));
			let rest = 0, at = 0;
			for (const k of n.children) {
				const kw = k.w / v.w * width;
				if (kw >= LEAST) {
					work.push(k);
				} else {
					// Too narrow for a frame of their own: one grey strip where they stand.
					at = rest ? at : (k.x - v.x) / v.w * width;
					rest = (k.x - v.x) / v.w * width + kw - at;
				}
			}
			if (rest >= LEAST && y + 2 * ROW > 0) {
				c.fillStyle = look.rest;
				c.fillRect(at, y + ROW, rest, ROW - 1);
			}
		}
		outline(c, look);
		host.dataset.frames = boxes.length;
		if (moving)
			requestAnimationFrame(draw);
	}

	function outline(c, look) {
		const b = document.activeElement === canvas && boxes.find(x => x.n === focus);
		if (!b)
			return;
		c.strokeStyle = look.focus;
		c.lineWidth = 2;
		c.strokeRect(b.x + 1, b.y + 1, Math.max(b.w - 3, 2), ROW - 3);
	}

	// --- moving about ---

	function pathOf(n) {
		const out = [];
		for (; n; n = n.up)
			out.unshift(n);
		return out;
	}

	function zoom(n) {
		if (!still.matches && n !== zoomed)
			moving = {from: view(), start: performance.now()};
		zoomed = n;
		const path = pathOf(n);
		host.dataset.zoom = path.slice(1).map(x => x.name).join('/');
		dom.get('flame-path').replaceChildren(...path.length < 2 ? [] : path.flatMap((x, i) => [
			i ? ' › ' : '', i === path.length - 1 ? el('b', {}, format.shortName(x.name))
				: el('button', {type: 'button', class: 'link', onclick: () => zoom(x)},
					format.shortName(x.name))]));
		tell(n);
		ask();
	}

	function lines(n) {
		if (n === root)
			return ['all', ['time', format.time(root.weight)]].slice(0, by === 'count' ? 1 : 2)
				.concat(by === 'count' ? [['hits', format.count(root.weight)]] : []);
		const out = [n.name, ['count', format.digits(n.raw.count)]];
		if (n.total > 0 || by === 'time') {
			out.push(['total', format.exactTime(n.raw.total)], ['self', format.exactTime(n.raw.self)],
				['mean', format.time(n.total / n.count)]);
			for (const key of ['min', 'p50', 'p99', 'max'])
				if (Number.isFinite(n[key]))
					out.push([key, format.exactTime(n.raw[key])]);
		}
		const own = by === 'count' ? n.weight : n.total;
		out.push([by === 'count' ? 'of all hits' : 'of all time', format.share(own / root.weight)]);
		if (n.up !== root && n.up.weight)
			out.push(['of ' + format.shortName(n.up.name), format.share(own / n.up.weight)]);
		if (own < n.weight)
			out.push(['drawn wider', 'what it calls goes on after it']);
		return out;
	}

	// For those who hear the page: where the keys have come to.
	function tell(n) {
		focus = n;
		dom.get('flame-live').textContent = lines(n).map(l => Array.isArray(l) ? l.join(' ') : l).join(', ');
		host.dataset.focus = n.name;
	}

	function beside(n, by1) {
		const list = n.up ? n.up.children.filter(c => c.w > 0) : [];
		return list[list.indexOf(n) + by1];
	}

	function key(event, choose) {
		const first = focus.children.reduce((a, b) => (!a || b.weight > a.weight ? b : a), null);
		const to = {ArrowUp: focus.up, ArrowDown: first, ArrowLeft: beside(focus, -1),
			ArrowRight: beside(focus, 1), Home: root}[event.key];
		if (event.key.startsWith('Arrow') || event.key === 'Home') {
			if (to)
				tell(to);
			const y = focus.depth * ROW;
			if (y < host.scrollTop || y + ROW > host.scrollTop + host.clientHeight)
				host.scrollTop = y - host.clientHeight / 2;
			ask();
		} else if (event.key === 'Enter') {
			zoom(focus);
			if (focus.row >= 0)
				choose(focus.row, false);
		} else if (event.key === 'Escape' || event.key === 'Backspace') {
			zoom(zoomed.up || root);
		} else {
			return;
		}
		event.preventDefault();
	}

	function under(event) {
		const at = canvas.getBoundingClientRect(), x = event.clientX - at.left, y = event.clientY - at.top;
		const b = boxes.find(o => x >= o.x && x < o.x + o.w && y >= o.y && y < o.y + ROW);
		return b && b.n;
	}

	function pointer(choose) {
		canvas.addEventListener('pointermove', event => {
			const n = under(event);
			canvas.style.cursor = n ? 'pointer' : 'default';
			if (n)
				dom.tip(event, lines(n));
			else
				dom.tipOff();
		});
		canvas.addEventListener('pointerleave', dom.onLeave(dom.tipOff));
		canvas.addEventListener('click', event => {
			const n = under(event);
			if (!n)
				return;
			// A frame that is zoomed to already: one step back.
			zoom(n === zoomed && n.up ? n.up : n);
			if (n.row >= 0)
				choose(n.row, false);
			if (event.pointerType === 'touch')
				dom.tip(event, lines(n));
		});
		canvas.addEventListener('dblclick', () => zoom(root));
	}

	let ask = () => {};

	function load(thread) {
		root = data.tree(thread);
		zoomed = focus = root;
		layout();
		search();
		zoom(root);
	}

	function start(choose) {
		if (!data.doc.nodes.length) {
			host.replaceChildren(el('p', {class: 'quiet empty'}, 'No span of this recording is in a call tree.'));
			host.dataset.frames = 0;
			for (const node of dom.get('flame').querySelectorAll('.head > :not(h2)'))
				node.hidden = true;
			return;
		}
		host.append(space);
		ask = dom.drawn(host, draw);
		const threads = dom.get('flame-thread'), left = data.num(data.doc.nodes_left_out);
		if (data.treeThreads.length > 1) {
			threads.hidden = false;
			threads.append(el('option', {value: -1}, 'all threads'),
				...data.treeThreads.map(t => el('option', {value: t}, data.thread(t))));
			threads.addEventListener('change', () => load(Number(threads.value)));
		}
		dom.get('flame-hint').textContent = (left ? `${format.count(left)} places of the tree with less ` +
			'time are not in this page. ' : '') + 'Click a frame to zoom, again or Escape to go back, ' +
			'double click for all. Siblings stand by name, not by time.';
		for (const radio of document.getElementsByName('flame-by'))
			radio.addEventListener('change', () => {
				by = radio.value;
				host.dataset.by = by;
				layout();
				search();
				zoom(zoomed);
			});
		dom.get('flame-search').addEventListener('input', event => {
			wanted = format.name(event.target.value);
			search();
			ask();
		});
		host.addEventListener('scroll', ask, {passive: true});
		canvas.addEventListener('keydown', event => key(event, choose));
		canvas.addEventListener('focus', ask);
		canvas.addEventListener('blur', ask);
		pointer(choose);
		host.dataset.by = by;
		load(-1);
		// Counts alone, of instants: by time there is nothing to see.
		if (!root.weight)
			dom.get('flame').querySelector('[value=count]').click();
	}

	return {start, fitted};
})();
