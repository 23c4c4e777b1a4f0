// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The head of the page: what was recorded, for how long, and first of all what is missing from it.

const header = (() => {
	const {doc, num} = data, r = doc.recording, totals = doc.totals;

	function started() {
		const ms = Number(BigInt(r.realtime_ns) / 1000000n);
		return ms > 0 ? new Date(ms).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC') : '';
	}

	const base = path => path.split('/').pop();

	function title() {
		const names = doc.processes.map(p => format.name(p.comm || base(p.exe)));
		return [...new Set(names)].slice(0, 4).join(', ') || 'recording';
	}

	// Fewer in the file than the kernel counted is a fact for each reader, not a footnote.
	function heldText() {
		const counted = num(totals.counted);
		if (!Number.isFinite(counted))
			return ['in the file', format.count(totals.held), 'how many happened is not known'];
		if (!counted)
			return ['in the file', format.count(totals.held), 'nothing happened'];
		return ['in the file', format.count(totals.held),
			`${format.share(num(totals.held) / counted)} of ${format.count(totals.counted)}`];
	}

	function overhead() {
		const price = num(totals.price_ns), duration = num(r.duration_ns);
		if (!(price > 0) || !(duration > 0))
			return null;
		return ['tracing cost the target', (totals.price_whole ? '' : '≥ ') + format.share(price / duration),
			`of one CPU, ${format.time(price)} in all`];
	}

	function tiles() {
		const lost = num(totals.lost), skipped = num(totals.skipped);
		return [
			['duration', format.time(num(r.duration_ns)), started()],
			heldText(),
			['lost', Number.isFinite(lost) ? format.count(totals.lost) : 'not known',
				lost > 0 ? 'counted, not in the file' : ''],
			skipped > 0 ? ['left out on purpose', format.count(totals.skipped),
				[r.slow && '--slow ' + format.name(r.slow), r.sample > 1 && `--sample ${r.sample}`]
					.filter(Boolean).join(', ')] : null,
			overhead(),
			['threads', format.count(r.threads), ''],
		].filter(Boolean).map(([text, value, more]) => el('div', {class: 'tile'}, el('dt', {}, text),
			el('dd', {}, el('b', {}, value), more ? el('span', {class: 'quiet'}, more) : '')));
	}

	function notes() {
		const out = [], lost = num(totals.lost);
		if (!r.clean)
			out.push('This recording was not closed cleanly: it is read up to its last whole block ' +
				`(byte ${format.count(r.cut_at)}). How much is missing is not known.`);
		if (lost > 0)
			out.push(`${format.count(totals.lost)} spans found the ring full and are not in this file. ` +
				'Figures here are of those that are in it; red marks show when some were lost.');
		if (num(totals.skipped) > 0)
			out.push('Spans were left out on purpose, so these figures are not of all of them' +
				(r.slow ? ': the recording holds slow ones only.' : '.'));
		if (!totals.exact)
			out.push('There were too many distinct values to keep each exactly: figures are within 0.025%.');
		if (num(totals.backwards) > 0)
			out.push(`${format.count(totals.backwards)} events end before they begin: the file is damaged. ` +
				'They are in no figure.');
		if (num(totals.unknown) > 0)
			out.push(`${format.count(totals.unknown)} events are of spans, threads or kinds that the file ` +
				'does not explain. They are in no figure.');
		if (num(r.unknown_blocks) > 0)
			out.push(`${format.count(r.unknown_blocks)} blocks are of kinds that this version does not know.`);
		return out.map(text => el('p', {class: 'note'}, text));
	}

	function facts() {
		const rows = [
			['command', format.name(r.command)],
			...doc.processes.map(p => ['process ' + p.tgid, format.name(p.exe || p.comm)]),
			['host', [r.hostname, r.kernel].map(format.name).filter(Boolean).join(', Linux ')],
			['CPU', format.name(r.cpu) + (r.cpus ? `, ${r.cpus} online` : '')],
			['clock', format.name(r.clocksource) + (num(r.clock_error_ns) > 0
				? `, read to within ${format.time(num(r.clock_error_ns))}` : '')],
			['ring', num(r.ring_bytes) > 0 ? format.bytes(num(r.ring_bytes)) : ''],
			['file', num(r.file_bytes) > 0 ? format.bytes(num(r.file_bytes)) : ''],
			['sites armed', format.count(doc.armed_sites)],
			['qbpf', format.name(r.version)],
		];
		return el('dl', {class: 'facts'}, ...rows.filter(row => row[1]).map(([k, v]) =>
			el('div', {}, el('dt', {}, k), el('dd', {}, el('bdi', {}, v)))));
	}

	function refused() {
		const n = num(doc.refused_sites);
		if (!n)
			return '';
		return el('details', {}, el('summary', {}, `${format.count(n)} ${n === 1 ? 'site was' : 'sites were'} ` +
			'refused: nothing there was measured'),
		el('ul', {}, ...doc.refused.map(s => el('li', {}, el('bdi', {}, format.name(s.name || '?')),
			` at 0x${num(s.off).toString(16)} in `, el('bdi', {}, format.name(s.path || '?')), ': ',
			el('bdi', {}, format.name(s.reason))))), n > doc.refused.length
			? el('p', {class: 'quiet'}, `and ${format.count(n - doc.refused.length)} more`) : '');
	}

	function start() {
		const name = title(), button = el('button', {type: 'button', id: 'theme', class: 'theme',
			'aria-label': 'Switch between light and dark', title: 'Light or dark',
			onclick: theme.toggle},
		svg('svg', {width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true'},
			svg('circle', {cx: 9, cy: 9, r: 7, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6}),
			svg('path', {d: 'M9 2a7 7 0 0 1 0 14z', fill: 'currentColor'})));
		document.title = `${name}: qbpf report`;
		dom.get('header').append(
			el('div', {class: 'bar-top'},
				el('div', {}, el('p', {class: 'brand'}, 'qbpf report'), el('h1', {}, el('bdi', {}, name))),
				el('nav', {'aria-label': 'Sections'}, ...[['spans', 'Spans'], ['detail', 'Latency'],
					['flame', 'Flame graph'], ['slowest', 'Slowest'], ['gpu', 'GPU']].filter(([id]) => !dom.get(id).hidden)
					.map(([id, text]) => el('a', {href: '#' + id}, text))),
				button),
			...notes(), el('dl', {class: 'tiles'}, ...tiles()),
			el('details', {}, el('summary', {}, 'Recording'), facts()), refused());
		dom.get('footer').textContent = `Times are CLOCK_MONOTONIC ns. qbpf ${format.name(r.version)}.`;
	}

	return {start};
})();
