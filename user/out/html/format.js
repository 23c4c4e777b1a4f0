// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers and names as people read them; the same units and digits as the text report.

const format = (() => {
	const three = v => v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0);

	// v in the largest unit in which it is at least 1.
	function scaled(v, step, units) {
		let i = 0;
		while (i < units.length - 1 && v >= (step === 1000 ? 999.5 : step)) {
			v /= step;
			i++;
		}
		if (i === 0 && Number.isInteger(v))
			return v + units[0];
		return (v < 1e15 ? three(v) : v.toPrecision(3)) + units[i];
	}

	function time(ns) {
		if (!Number.isFinite(ns))
			return '–';
		return (ns < 0 ? '-' : '') + scaled(Math.abs(ns), 1000, [' ns', ' us', ' ms', ' s']);
	}

	// With as many digits as it takes to tell v from v + step.
	function fineTime(v, step) {
		const units = [[1e9, ' s'], [1e6, ' ms'], [1e3, ' us'], [1, ' ns']];
		const [size, unit] = units.find(u => Math.abs(v) >= u[0]) || units[3];
		return (v / size).toFixed(Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))) + unit;
	}

	// All digits, in groups; `raw` may be a string that no double could hold.
	function digits(raw) {
		const text = String(raw);
		return /^-?\d+(\.\d)?$/.test(text) ? text.replace(/\B(?=(\d{3})+(\.|$))/g, '\u202f') : text;
	}

	// Of a tick: no digits that say nothing.
	const tick = text => text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');

	function share(x) {
		const pct = x * 100;
		if (!Number.isFinite(pct))
			return '–';
		if (pct > 0 && pct < 0.005)
			return '<0.01%';
		if (pct > 99.9 && pct < 100)
			return '>99.9%';
		return pct >= 99.95 ? pct.toFixed(0) + '%' : pct.toFixed(pct < 9.995 ? 2 : 1) + '%';
	}

	function value(v) {
		if (Number.isNaN(v))
			return '–';
		if (!Number.isFinite(v))
			return v > 0 ? '∞' : '-∞';
		if (Number.isInteger(v) && Math.abs(v) < 1e7)
			return String(v);
		const text = v.toPrecision(4);
		return text.includes('e') ? text : String(Number(text));
	}

	function exactTime(raw) {
		const whole = typeof raw === 'string' || Number.isInteger(raw);
		return digits(whole ? raw : Number(raw).toFixed(1)) + ' ns';
	}

	// What would hide or reorder text is shown by its number: control bytes, directions, blanks of
	// no width.
	const hidden = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f' +
		'\\u2028-\\u202e\\u2060-\\u2069\\ufeff]', 'g');
	function name(text) {
		return text.replace(hidden,
			c => '\\u{' + c.charCodeAt(0).toString(16).padStart(2, '0') + '}');
	}

	// The qualified name stays, a parameter list gives way.
	function shortName(text) {
		const paren = text.indexOf('(', 1);
		if (paren < 0 || text.length < 60 || text.startsWith('(') || /^operator/.test(text))
			return text;
		return text.slice(0, paren) + '(…)';
	}

	return {
		time, fineTime, tick, digits, share, value, exactTime, name, shortName,
		count: digits,
		rate: v => scaled(v, 1000, ['', ' k', ' M', ' G']),
		bytes: v => scaled(v, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']),
	};
})();
