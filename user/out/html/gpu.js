// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What devices and streams did beside a slow span of the host and beside the median one: the span's
// tree, its thread's CUDA calls, why each device was idle, and each stream, on the same time.

const gpu = (() => {
	const doc = data.doc.gpu, {num} = data;
	const SPAN_ROWS = 12, CALL_ROWS = 4, STREAM_ROWS = 24, ROWS_MAX = 400;
	const CAUSES = ['host was late', 'host waited', 'host in another call', 'asked for, not begun yet',
		'waited for an event', 'not known'];
	const FILLS = {'host to device': '--gpu-up', 'device to host': '--gpu-down', 'on the device': '--gpu-on',
		'memset': '--gpu-set'};
	const live = text => {
		dom.get('gpu-live').textContent = text;
	};

	const nameOf = (i, none) => i === -2 ? 'left out of this page' : i < 0 ? none
		: doc.names[i].trim() ? format.name(doc.names[i]) : `"${doc.names[i]}"`;
	const streamText = s => `stream ${s.stream}${s.default ? ' (default)' : ''}`;
	// Of the device's other contexts, their number too.
	function streamName(i) {
		const s = doc.streams[i];
		if (!s)
			return 'other streams';
		const same = doc.streams.filter(o => o.ring === s.ring && o.device === s.device && o.stream === s.stream);
		return streamText(s) + (same.length > 1 ? `, context ${s.context}` : '') +
			(s.generation ? `, process no. ${s.generation}` : '');
	}
	const deviceName = i => doc.devices[i] ? format.name(doc.devices[i].text) : 'other devices';

	// --- what one window holds ---

	function act([kind, device, stream, start, ns, name, call, own, asked, bytes, correlation, ...shape]) {
		const text = kind === 'kernel' ? nameOf(name, '(unnamed)') : kind === 'graph' ? `graph ${name}`
			: kind === 'memset' ? 'memset' : `copy ${kind}`;
		const more = [['on', `${deviceName(device)}, ${streamName(stream)}`]];
		if (start > asked || call >= 0)
			more.push(['after its call began', format.time(start - asked)]);
		if (num(bytes) > 0)
			more.push(['bytes', format.bytes(num(bytes))],
				['rate', num(ns) > 0 ? format.bytes(num(bytes) / num(ns) * 1e9) + '/s' : '–']);
		if (shape.length)
			more.push(['grid, block', `${shape.slice(0, 3).join('×')}, ${shape.slice(3).join('×')}`]);
		more.push(['correlation', String(correlation)]);
		if (!own)
			more.push(['note', 'not asked for by this span']);
		return {kind: num(ns) > 0 ? 'span' : 'moment', type: kind, name: text, start, ns: num(ns), row: -1, device,
			stream, call, own, fill: FILLS[kind] || (kind === 'kernel' || kind === 'graph' ? null : '--gpu-other'),
			faint: !own, more, links: [], raw: {start, ns}};
	}

	function call([start, ns, name, waits, error]) {
		const more = [];
		if (waits)
			more.push(['note', 'the host waits for the GPU']);
		if (error)
			more.push(['failed', `error ${error}`]);
		return {kind: 'span', name: nameOf(name, '(unnamed call)'), start, ns: num(ns), row: -1,
			fill: waits ? '--gpu-wait' : '--gpu-call', more, links: [], raw: {start, ns}};
	}

	function idle([device, start, ns, cause, of]) {
		const who = cause === 0 ? (of === -1 ? 'in no traced span' : 'in ' + data.nameOf(of < 0 ? -1 : of))
			: cause <= 2 ? 'in ' + nameOf(of, 'a call without a name') : '';
		return {kind: 'span', name: `idle: ${CAUSES[cause]}${who && ', ' + who}`, start, ns: num(ns), device,
			row: cause === 0 && of >= 0 ? of : -1, fill: `--idle-${cause}`, more: [['on', deviceName(device)]],
			raw: {start, ns}};
	}

	// Where e goes among events that do not touch each other, in order; -1: it would touch one.
	function room(row, e) {
		let lo = 0, hi = row.length;
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (row[mid].start < e.start)
				lo = mid + 1;
			else
				hi = mid;
		}
		const before = row[lo - 1], next = row[lo];
		return before && before.start + before.ns > e.start || next && (next.start === e.start ||
			next.start < e.start + e.ns) ? -1 : lo;
	}

	// Puts events that may overlap into rows from `y` on, those that are not faint first; returns the first
	// row after them.
	function pack(events, y, most) {
		const rows = [];
		for (const e of [...events.filter(v => !v.faint), ...events.filter(v => v.faint)]) {
			let k = rows.findIndex(row => room(row, e) >= 0);
			if (k < 0)
				k = rows.push([]) - 1;
			rows[k].splice(room(rows[k], e), 0, e);
			e.y = k < most ? y + k : ROWS_MAX;
		}
		return y + Math.min(rows.length, most);
	}

	const groupBy = (list, key) => {
		const groups = new Map();
		for (const e of list)
			groups.set(key(e), [...(groups.get(key(e)) || []), e]);
		return [...groups].sort((a, b) => a[0] - b[0]);
	};

	function layTree(tree, out) {
		if (!tree)
			return 0;
		const rows = Math.min(icicle.lay(tree.events), SPAN_ROWS);
		out.bands.push({y: 0, text: tree.thread});
		out.events.push(...tree.events.filter(e => e.y < rows));
		return rows;
	}

	// A tree as icicle.js takes it.
	function scene(w, tree) {
		const acts = w.acts.map(act), calls = w.calls.map(call), gaps = w.idle.map(idle);
		const out = {events: [], bands: [], ns: num(w.ns), streams: 0};
		for (const a of acts) {
			const by = calls[a.call];
			if (by) {
				a.links.push(by);
				by.links.push(a);
				a.more.unshift(['asked for by', by.name]);
			}
		}
		let y = layTree(tree, out);
		if (calls.length) {
			out.bands.push({y, text: 'CUDA calls'});
			y = pack(calls, y, CALL_ROWS);
		}
		for (const [device, mine] of groupBy([...gaps, ...acts], e => e.device)) {
			out.bands.push({y, text: deviceName(device)});
			const why = gaps.filter(g => g.device === device);
			y = pack(why, y, 1) + (why.length ? 0 : 1);
			for (const [stream, list] of groupBy(mine.filter(e => e.type), e => e.stream)) {
				out.bands.push({y, text: streamName(stream)});
				y = pack(list, y, STREAM_ROWS);
				out.streams++;
			}
		}
		out.rows = Math.min(y, ROWS_MAX);
		out.events.push(...calls, ...gaps, ...acts);
		out.hidden = out.events.filter(e => e.y >= out.rows).length;
		out.walk = [...calls, ...acts].filter(e => e.y < out.rows && (!e.type || e.own))
			.sort((a, b) => a.start - b.start || a.y - b.y);
		// To the end of what the span asked for, but not for long.
		out.whole = Math.min(Math.max(out.ns, ...acts.filter(a => a.own).map(a => a.start + a.ns)), 2 * out.ns);
		return out;
	}

	function left(w, s) {
		const parts = [[w.acts_left_out, 'activities (what other spans asked for, and the shortest)'],
			[w.calls_left_out, 'shorter calls'], [w.idle_left_out, 'shorter idle times']]
			.filter(([n]) => num(n) > 0).map(([n, what]) => `${format.count(n)} ${what}`);
		if (s.hidden)
			parts.push(`${format.count(s.hidden)} more, of too many at once`);
		return (parts.length ? ` Left out of this picture: ${parts.join(', ')}.` : '') + (num(w.untimed)
			? ` ${format.count(w.untimed)} activities of impossible times have no place here.` : '');
	}

	function legend() {
		const chip = (fill, text) => {
			const node = el('span', {class: 'chip on'});
			node.style.background = `var(${fill})`;
			return el('li', {}, node, text);
		};
		return [
			el('ul', {class: 'series legend', 'aria-label': 'Colours of streams and calls'},
				...Object.entries(FILLS).map(([kind, fill]) => chip(fill, kind === 'memset' ? kind : 'copy ' + kind)),
				chip('--gpu-call', 'call'), chip('--gpu-wait', 'call that waits'), el('li', {class: 'quiet'},
					'kernels and graphs: a colour of their own; faint: not asked for by this span')),
			el('ul', {class: 'series legend', 'aria-label': 'Why a device is idle'}, el('li', {}, 'idle:'),
				...CAUSES.map((text, i) => chip(`--idle-${i}`, text))),
		];
	}

	// One picture with its heading: returns show(window, tree, what it is called, scale).
	function picture(place, id, choose) {
		const head = el('p', {class: 'tree-head'}), host = el('div', {class: 'icicle', id});
		const hint = el('p', {class: 'quiet'});
		place.append(head, host, hint);
		const view = icicle.make(host, 'Spans, CUDA calls, devices and streams on real time. Up and down step ' +
			'through calls and what they made the GPU do, Enter zooms to it', live, choose);
		return (s, w, text, scale) => {
			head.replaceChildren(el('b', {}, text), ` ${format.time(num(w.ns))} at ${format.time(num(w.at))}`);
			hint.textContent = left(w, s).trim();
			hint.hidden = !hint.textContent;
			host.dataset.streams = s.streams;
			host.dataset.rows = s.rows;
			view.show(s, scale);
		};
	}

	function timeline(choose) {
		const {trees, median} = data.slowest, place = dom.get('gpu-pictures');
		const select = dom.get('gpu-window'), same = dom.get('gpu-scale');
		const whole = !trees.length && !median;
		const slow = doc.windows.slice(0, whole ? 1 : trees.length);
		const mid = median && doc.windows.length > trees.length ? doc.windows[trees.length] : null;
		dom.get('gpu-legend').append(...legend());
		const show = slow.length ? picture(place, 'gpu-slow', choose) : null;
		const showMid = mid ? picture(place, 'gpu-median', choose) : null;
		const other = mid && scene(mid, median);
		place.append(el('p', {class: 'quiet'}, 'Point at or choose a kernel or copy to see the call that asked ' +
			'for it, a call to see what it made the GPU do. Ctrl-wheel or + and - zoom, drag to move, Escape or ' +
			'double click for all.' + (whole ? '' : ' Shaded: after the span\'s end.')));
		if (whole)
			dom.get('gpu-timeline').textContent = 'Over time';
		select.append(...slow.map((w, i) => el('option', {value: i}, whole ? 'the whole recording'
			: `slow no. ${i + 1}: ${format.time(num(w.ns))} at ${format.time(num(w.at))}`)));
		select.hidden = slow.length < 2;
		same.parentNode.hidden = !mid || !show;

		function draw() {
			const i = Number(select.value), one = show && scene(slow[i], trees[i]);
			if (show)
				show(one, slow[i], whole ? 'the whole recording' : `slow no. ${i + 1}`, one.whole);
			if (showMid)
				showMid(other, mid, 'median', one && same.checked ? Math.max(one.whole, other.whole) : other.whole);
		}
		select.addEventListener('change', draw);
		same.addEventListener('change', draw);
		if (show || showMid)
			draw();
	}

	function start(choose) {
		if (!doc)
			return;
		dom.get('gpu').hidden = false;
		gpuTables.start(doc, {deviceName, streamName});
		timeline(choose);
	}

	return {start};
})();
