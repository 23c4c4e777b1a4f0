// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the GPU did, as tables: the figures of the summary document's `gpu`.

const gpuTables = (() => {
	const {num} = data;
	const ROWS_MAX = 200;
	const DIRECTIONS = {to_device: 'host to device', to_host: 'device to host', on_device: 'on the device',
		between_devices: 'between devices', on_host: 'on the host', memset: 'memset', other: 'other'};
	const CAUSES = ['host', 'sync', 'call', 'launch', 'dependency', 'unknown'];
	// In words, what is in no figure or not in all.
	const OUTSIDE = [
		['before_probes', 'launches before the probes were armed'],
		['after_probes', 'launches after the probes were let go'],
		['before_agent', 'spans before the agent was at work'],
		['after_agent', 'spans after the agent was at work'],
		['partly', 'spans that the agent saw a part of'],
		['untimed', 'activities whose times cannot be'],
		['no_call', 'activities without the API call that asked for them'],
		['no_activity', 'launches, copies or memsets that nothing came of (captured into a graph, or lost)'],
		['dropped', 'records that CUPTI dropped'],
		['late', 'activities that came too late to be put into the order of time'],
		['overflow', 'records for which a table had no room'],
		['unknown_records', 'records of types that this qbpf does not know'],
	];

	// --- cells: [what is shown, exact] ---

	const time = v => v === undefined || v === null ? ['–'] : [format.time(num(v)), format.exactTime(v)];
	const count = v => [v === undefined ? '–' : format.count(v)];
	const bytes = v => [format.bytes(num(v)), format.digits(v) + ' bytes'];
	const rate = v => v === null ? ['–'] : [format.bytes(num(v)) + '/s', format.digits(v) + ' bytes/s'];
	const mean = part => part ? time(part.mean_ns) : ['–'];
	const each = (sum, n) => num(n) > 0 ? [format.time(num(sum) / num(n))] : ['–'];
	const text = v => [v === undefined ? '–' : v.trim() ? format.name(v) : `"${v}"`];
	const symbol = v => [format.shortName(text(v)[0]), text(v)[0]];

	// columns: [heading, row => cell, title]; the first is the row's name, with a bar as long as share(row).
	function table(id, caption, rows, columns, share, leftOut, note) {
		if (!rows || !rows.length)
			return null;
		const shown = rows.slice(0, ROWS_MAX), more = rows.length - shown.length + (leftOut || 0);
		const cell = (c, row, i) => {
			const [value, exact] = c[1](row);
			if (i)
				return el('td', {title: exact}, value);
			const bar = el('span', {class: 'bar'});
			bar.style.width = 100 * Math.min(share ? share(row) || 0 : 0, 1) + '%';
			return el('th', {class: 'left', scope: 'row', title: exact || value}, el('bdi', {}, value), share ? bar : null);
		};
		return el('div', {class: 'gpu-table', id}, el('h3', {}, caption), el('div', {class: 'scroll', tabindex: '0',
			'aria-label': caption}, el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((c, i) =>
			el('th', {scope: 'col', class: i ? null : 'left', title: c[2]}, c[0])))),
		el('tbody', {}, ...shown.map(row => el('tr', {}, ...columns.map((c, i) => cell(c, row, i))))))),
		note ? el('p', {class: 'quiet'}, note) : null,
		more ? el('p', {class: 'quiet'}, `${format.count(more)} more are not in this table.`) : null);
	}

	const shareOf = (rows, key) => {
		const all = rows.reduce((sum, r) => sum + num(r[key]), 0);
		return r => num(r[key]) / all;
	};

	function kernels(doc) {
		const shape = k => k.grid ? [`${k.varies ? '≤ ' : ''}${k.grid.join('×')} / ${k.block.join('×')}`] : ['–'];
		return table('gpu-kernels', 'Kernels', doc.kernels, [
			['kernel', k => symbol(k.name)], ['count', k => count(k.count)], ['total', k => time(k.sum_ns)],
			['min', k => time(k.min_ns)], ['mean', k => time(k.mean_ns)], ['p50', k => time(k.p50_ns)],
			['p99', k => time(k.p99_ns)], ['max', k => time(k.max_ns)],
			['delay', k => mean(k.delay), 'mean, from the launch\'s begin to the kernel\'s start'],
			['launch', k => mean(k.launch), 'mean, of the host\'s call; without the first ones'],
			['first', k => each(k.first_launch_ns, k.first_launches), 'mean, of the first launch in a process; – where the agent came later'],
			['grid / block', shape],
		], shareOf(doc.kernels, 'sum_ns'), doc.left_out.kernels);
	}

	function copies(doc) {
		const name = c => [DIRECTIONS[c.direction], c.pageable && 'pageable', c.synchronous && 'synchronous']
			.filter(Boolean).join(', ');
		return table('gpu-copies', 'Copies and memsets', doc.copies, [
			['direction', c => text(name(c))], ['count', c => count(c.count)], ['bytes', c => bytes(c.bytes)],
			['total', c => time(c.sum_ns)], ['rate', c => rate(c.bytes_per_s)], ['mean', c => time(c.mean_ns)],
			['p99', c => time(c.p99_ns)], ['max', c => time(c.max_ns)], ['delay', c => mean(c.delay),
				'mean, from the call\'s begin to the start'],
			['alone', c => time(c.alone_ns), 'without a kernel beside it on the device'],
			['host waits', c => c.synchronous && c.host ? time(c.host.sum_ns) : ['–']],
			['tiny', c => count(c.tiny), '4 KiB or less'],
		], shareOf(doc.copies, 'sum_ns'));
	}

	// Bars of how many found the queue how long: 1; 2; 3 or 4; 5 to 8 ..
	function queue(found) {
		const all = found.reduce((a, b) => a + num(b), 0), most = Math.max(...found.map(num), 1);
		const span = i => i < 2 ? String(i + 1) : i === 11 ? '1025 or more' : `${2 ** (i - 1) + 1} to ${2 ** i}`;
		const words = found.map((n, i) => `${span(i)}: ${format.share(num(n) / all)}`).join(', ');
		const W = 9, H = 16;
		return [svg('svg', {width: W * 12, height: H + 1, role: 'img', 'aria-label': words, class: 'queue'},
			...found.map((n, i) => {
				const h = num(n) > 0 ? Math.max(num(n) / most * H, 1.5) : 0;
				return svg('rect', {x: i * W, y: H - h, width: W - 2, height: h});
			}), svg('line', {x1: 0, x2: W * 12, y1: H + 0.5, y2: H + 0.5})), words];
	}

	function streams(doc, names) {
		const delay = key => s => s.delay ? time(s.delay[key]) : ['–'];
		const queueMean = s => num(s.to_ns) > num(s.from_ns)
			? [(num(s.queue_ns) / (num(s.to_ns) - num(s.from_ns))).toFixed(2)] : ['–'];
		return table('gpu-streams', 'Streams: delay from call to start, and queue', doc.streams, [
			['stream', s => text(`${names.deviceOf(s)}, ${names.streamName(doc.streams.indexOf(s))}`)],
			['kernels', s => count(s.kernels)], ['their time', s => time(s.kernel_ns)],
			['copies', s => count(num(s.copies) + num(s.memsets))],
			['their time', s => time(num(s.copy_ns) + num(s.memset_ns))],
			['delay min', delay('min_ns')], ['p50', delay('p50_ns')], ['p90', delay('p90_ns')],
			['p99', delay('p99_ns')], ['max', delay('max_ns')], ['idle', s => time(s.idle_ns)],
			['queue mean', queueMean, 'asked for and not done, over time'], ['max', s => count(s.queue_max)],
			['how long when asked', s => queue(s.queue_found), 'how many found the queue, with themselves, ' +
				'1; 2; 3 or 4; 5 to 8 long, and so on'],
		], null, doc.left_out.streams);
	}

	// One bar in parts, as long as the device's time: busy, then each cause.
	function parts(device) {
		const all = num(device.to_ns) - num(device.from_ns), bar = el('div', {class: 'parts', role: 'img',
			'aria-label': `busy ${format.share(num(device.busy_ns) / all)}`});
		const add = (ns, fill, title) => {
			const part = el('span', {title: `${title}: ${format.time(ns)}, ${format.share(ns / all)}`});
			part.style.width = 100 * ns / all + '%';
			part.style.background = `var(${fill})`;
			bar.append(part);
		};
		add(num(device.busy_ns), '--gpu-busy', 'busy');
		for (const i of device.idle)
			add(num(i.sum_ns), `--idle-${CAUSES.indexOf(i.cause)}`, format.name(i.text));
		return all > 0 ? bar : null;
	}

	function idle(device, n) {
		const all = num(device.to_ns) - num(device.from_ns);
		const share = part => format.share(num(part) / all);
		const name = format.name(device.text);
		const said = num(device.activities) ? `busy ${share(device.busy_ns)} of ${format.time(all)}: kernels ` +
			`${share(device.compute_ns)}, copies ${share(device.copy_ns)}, both at once ${share(device.overlap_ns)}; ` +
			`idle ${format.time(num(device.idle_ns))}` : 'nothing ran on it';
		return el('div', {class: 'gpu-device', 'data-device': n}, el('p', {}, el('b', {}, el('bdi', {}, name)), ' ',
			said), num(device.activities) ? parts(device) : null, table(`gpu-idle-${n}`, `Why ${name} was idle`,
			device.idle, [
				['cause', i => text(i.text)], ['gaps', i => count(i.gaps)], ['total', i => time(i.sum_ns)],
				['of its time', i => [share(i.sum_ns)]], ['longest', i => time(i.max_ns)],
			], i => num(i.sum_ns) / num(device.idle_ns), device.idle_left_out));
	}

	function spans(doc) {
		return table('gpu-spans', 'What the GPU did for each span: means', doc.spans, [
			['span', s => symbol(s.name)], ['count', s => count(s.count)], ['mean', s => each(s.sum_ns, s.count)],
			['own', s => each(s.own_ns, s.count)], ['in launches', s => each(s.launch_ns, s.count)],
			['in waits', s => each(s.wait_ns, s.count)], ['GPU busy', s => each(s.busy_ns, s.count),
				'what it had asked for ran meanwhile'],
			['GPU after', s => each(s.after_ns, s.count), 'the same, when it had ended'],
			['launches', s => [num(s.count) ? (num(s.launches) / num(s.count)).toFixed(1) : '–']],
			['copied', s => [num(s.count) ? format.bytes(Math.floor(num(s.copy_bytes) / num(s.count))) : '–']],
		], null, doc.left_out.spans, 'mean = own + in launches + in waits');
	}

	function calls(doc) {
		return table('gpu-calls', 'CUDA calls of the host', doc.calls, [
			['call', c => text(c.name)], ['kind', c => text(c.class)], ['count', c => count(c.count)],
			['total', c => time(c.sum_ns)], ['mean', c => time(c.mean_ns)], ['p50', c => time(c.p50_ns)],
			['p99', c => time(c.p99_ns)], ['max', c => time(c.max_ns)],
			['failed', c => c.failed ? [format.count(c.failed), `the last with error ${c.error}`] : ['–']],
		], shareOf(doc.calls, 'sum_ns'), doc.left_out.calls);
	}

	function clock(doc) {
		const within = doc.convert_error_ns;
		const first = doc.clock_change_ns ? 'GPU times drift against the host\'s: their error changed by ' +
			`${format.time(num(doc.clock_change_ns))} or more`
			: doc.clock_error_ns !== null ? `GPU times are right to within ${format.time(num(doc.clock_error_ns))}`
				: 'how right GPU times are, nothing tells';
		return first + (within !== undefined ? ` (converted from CUPTI's clock to within ${format.time(num(within))})`
			: '');
	}

	function ended(doc) {
		const WHY = {fatal: 'CUPTI reported a fatal error', sudden: 'it ended suddenly'};
		return (doc.agents ?? []).filter(a => WHY[a.end]).map(a => {
			const ns = num(a.to_ns) - num(doc.probes.from_ns ?? a.to_ns);
			return el('p', {class: 'quiet'}, `Nothing of the GPU is known of process ${a.pid} ` +
				`${ns > 0 ? `after ${format.time(ns)} of tracing` : 'since the start'}: ${WHY[a.end]}.`);
		});
	}

	function outside(doc) {
		const all = {...doc, ...doc.missing, ...doc.launches, ...doc.outside};
		const lines = OUTSIDE.filter(([key]) => num(all[key]) > 0)
			.map(([key, words]) => el('li', {}, `${words}: ${format.count(all[key])}`));
		return lines.length ? el('div', {class: 'quiet', id: 'gpu-outside'}, 'Not in all of these figures:',
			el('ul', {}, ...lines)) : null;
	}

	function start(doc, names) {
		const deviceOf = s => names.deviceName(doc.devices.findIndex(d => d.ring === s.ring && d.device === s.device));
		dom.get('gpu-clock').textContent = clock(doc);
		dom.get('gpu-advice').append(...doc.advice.map(a => el('li', {'data-kind': a.kind}, el('bdi', {},
			format.name(a.text)))));
		dom.get('gpu-advice').hidden = !doc.advice.length;
		dom.get('gpu-tables').append(...[
			...doc.devices.map(idle), doc.left_out.devices ? el('p', {class: 'quiet'},
				`${format.count(doc.left_out.devices)} more devices are not on this page.`) : null,
			kernels(doc), copies(doc), streams(doc, {...names, deviceOf}), spans(doc), calls(doc), ...ended(doc), outside(doc),
		].filter(Boolean));
	}

	return {start};
})();
