// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Light and dark, and the colours that depend on it.

const theme = (() => {
	const system = matchMedia('(prefers-color-scheme: dark)');
	const KEY = 'qbpf-theme';
	let chosen = null, paper = false;

	try {
		chosen = localStorage.getItem(KEY);
	} catch (e) {
		// A page from a file may have no storage: the choice then lasts as long as the page.
	}

	const dark = () => !paper && (chosen ? chosen === 'dark' : system.matches);

	function apply() {
		document.documentElement.dataset.theme = dark() ? 'dark' : 'light';
		dom.redrawAll();
	}

	// Paper is light; it does not wait for a frame.
	function print(on) {
		paper = on;
		apply();
		dom.redrawNow();
	}

	function toggle() {
		chosen = dark() ? 'light' : 'dark';
		try {
			localStorage.setItem(KEY, chosen);
		} catch (e) {
			// As above.
		}
		apply();
	}

	system.addEventListener('change', apply);
	addEventListener('beforeprint', () => print(true));
	addEventListener('afterprint', () => print(false));
	apply();

	// A colour of the style sheet.
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	// The same name has the same colour in each view and each page. Lightness is nearly constant, so
	// that text on it can be read; hues are told apart by their labels, never by colour alone.
	const hues = new Map();
	function hash(text) {
		let h = 2166136261;
		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 16777619);
		h ^= h >>> 15;
		h = Math.imul(h, 2246822519);
		return (h ^ (h >>> 13)) >>> 0;
	}
	function frame(name) {
		if (!hues.has(name)) {
			const h = hash(name);
			hues.set(name, [h % 24 * 15, (h >>> 8) % 3]);
		}
		const [hue, step] = hues.get(name);
		return dark() ? `oklch(${0.4 + step * 0.035} 0.075 ${hue})`
			      : `oklch(${0.88 - step * 0.035} 0.075 ${hue})`;
	}

	return {toggle, css, frame, dark, series: i => css('--series-' + i)};
})();
