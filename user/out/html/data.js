// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The recording, as html_data.h describes it, made ready for drawing: every number both as a double
// (.total) and as it was written (.raw.total), which is exact.

const data = (() => {
	const doc = JSON.parse(dom.get('data').textContent);
	const num = v => v === null || v === undefined ? NaN : Number(v);
	const LEFT_OUT = 'left out of this page', UNKNOWN = 'not known';

	const FIGURES = ['held', 'counted', 'lost', 'skipped', 'open', 'floor', 'price', 'total', 'self',
		'n', 'nan', 'sum', 'min', 'mean', 'max', 'p50', 'p90', 'p99', 'p999', 'p9999'];

	function pairs(list) {
		const out = [];
		for (let i = 0; i + 1 < (list || []).length; i += 2)
			out.push([num(list[i]), num(list[i + 1])]);
		return out;
	}

	const spans = doc.spans.map((s, row) => {
		const span = {
			row, raw: s, name: s.name.trim() ? format.name(s.name) : `"${s.name}"`, kind: s.kind, class: s.class,
			time: s.class !== 'value', rounded: !!s.rounded,
			curve: pairs(s.curve), octave: num(s.octave), steps: pairs(s.steps), bars: [],
		};
		for (const key of FIGURES)
			span[key] = num(s[key]);
		for (let i = 0; i + 2 < (s.bars || []).length; i += 3)
			span.bars.push([num(s.bars[i]), num(s.bars[i + 1]), num(s.bars[i + 2])]);
		if (s.windows) {
			span.windows = {};
			for (const [key, list] of Object.entries(s.windows))
				span.windows[key] = list.map(num);
		}
		span.losses = new Map(pairs(doc.losses[row]));
		return span;
	});

	const nameOf = row => row >= 0 && spans[row] ? spans[row].name : row === -3 ? UNKNOWN : LEFT_OUT;
	const timeOf = (span, v) => span.time ? format.time(v) : format.value(v);
	// `step`: how far apart the ticks are, where three digits do not tell them apart.
	const tickOf = (span, v, step) => step ? (span.time ? format.fineTime(v, step) : String(v))
		: format.tick(timeOf(span, v));
	// A double beyond 2^53 is not exact, and shall not look it.
	const exactOf = (span, raw) => typeof raw === 'number' && Math.abs(raw) > Number.MAX_SAFE_INTEGER
		? timeOf(span, raw) : span.time ? format.exactTime(raw) : format.digits(raw);

	// [low edge, high edge, n], `octave` of them to an octave: span.octave or a smaller power of two.
	function buckets(span, octave) {
		if (span.bars.length)
			return span.bars;
		const merge = span.octave / octave;
		const edge = i => i < 0 ? 0 : Math.ceil(2 ** (i / octave));
		const sums = new Map();
		for (const [i, n] of span.steps) {
			const k = i < 0 ? -1 : Math.floor(i / merge);
			sums.set(k, (sums.get(k) || 0) + n);
		}
		return [...sums].map(([k, n]) => [edge(k), Math.max(edge(k + 1), edge(k) + 1), n]);
	}

	function thread(index) {
		const t = doc.threads[index];
		if (!t)
			return 'thread ' + index;
		return (t.name ? format.name(t.name) + ' ' : '') + t.tid;
	}

	// --- the call tree ---

	const nodes = doc.nodes.map(([parent, row, th, count, total, self, min, max, p50, p99]) => ({
		parent, row, thread: th, count: num(count), total: num(total), self: num(self),
		min: num(min), max: num(max), p50: num(p50), p99: num(p99),
		raw: {count, total, self, min, max, p50, p99},
	}));

	const add = (a, b) => {
		const sum = BigInt(a) + BigInt(b);
		return sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : String(sum);
	};

	// One node of two threads: sums add, percentiles of it are not known.
	function absorb(into, n) {
		for (const key of ['count', 'total', 'self']) {
			into.raw[key] = add(into.raw[key], n.raw[key]);
			into[key] = num(into.raw[key]);
		}
		if (!(into.min <= n.min)) {
			into.min = n.min;
			into.raw.min = n.raw.min;
		}
		if (!(into.max >= n.max)) {
			into.max = n.max;
			into.raw.max = n.raw.max;
		}
		into.p50 = into.p99 = NaN;
		into.raw.p50 = into.raw.p99 = null;
	}

	// The tree of one thread, or of all (-1) with equal places merged: {row, children, ...}.
	function tree(which) {
		const root = {row: -1, name: 'all', children: [], byRow: new Map(), depth: 0};
		const kids = new Map();
		nodes.forEach((n, i) => {
			if (!kids.has(n.parent))
				kids.set(n.parent, []);
			kids.get(n.parent).push(i);
		});
		const work = [[-1, root]];
		if (kids.has(-2)) {
			// What was around these is not in the file.
			const lost = {row: -3, name: UNKNOWN, children: [], byRow: new Map(), up: root, depth: 1,
				count: 0, total: 0, self: 0, raw: {count: 0, total: 0, self: 0}};
			root.children.push(lost);
			work.push([-2, lost]);
		}
		while (work.length) {
			const [index, into] = work.pop();
			for (const i of kids.get(index) || []) {
				const n = nodes[i];
				if (which >= 0 && n.thread !== which)
					continue;
				let node = into.byRow.get(n.row);
				if (node) {
					absorb(node, n);
				} else {
					node = {...n, raw: {...n.raw}, name: nameOf(n.row), children: [],
						byRow: new Map(), up: into, depth: into.depth + 1};
					into.byRow.set(n.row, node);
					into.children.push(node);
				}
				work.push([i, node]);
			}
		}
		return root;
	}

	const treeThreads = [...new Set(nodes.map(n => n.thread))].filter(t => t >= 0);

	// --- who calls whom ---

	const edges = doc.edges.map(([caller, callee, count, total]) => ({
		caller, callee, count: num(count), total: num(total), raw: {count, total},
	}));

	// --- the slowest spans ---

	function slow(t) {
		return t && {
			at: num(t.at), ns: num(t.ns), thread: thread(t.thread), raw: t, leftOut: num(t.left_out),
			events: t.events.map(([row, depth, start, ns, kind]) => ({
				row, depth, start: num(start), ns: num(ns), kind: kind || 'span',
				name: nameOf(row), raw: {start, ns},
			})),
		};
	}
	const step = ([row, ns, self]) => ({row, name: nameOf(row), ns: num(ns), self: num(self),
		raw: {ns, self}});
	const slowest = {
		root: doc.slowest.root, trees: doc.slowest.trees.map(slow), median: slow(doc.slowest.median),
		slowestPath: doc.slowest.slowest_path.map(step),
		medianPath: doc.slowest.median_path.map(step),
	};

	return {doc, num, spans, nameOf, timeOf, tickOf, exactOf, buckets, thread, tree, treeThreads, edges,
		slowest, windows: {n: doc.windows.n, from: num(doc.windows.from_ns),
			to: num(doc.windows.to_ns)}};
})();
