// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is selected, and that each view shows it.

(() => {
	const COMPARED_MAX = 6;
	const state = {chosen: []};
	let views = [];

	// `add`: beside those that are selected, or out from among them.
	function choose(row, add) {
		const s = data.spans[row];
		if (!s)
			return;
		if (!add) {
			state.chosen = [s];
		} else if (state.chosen.includes(s)) {
			if (state.chosen.length > 1)
				state.chosen = state.chosen.filter(x => x !== s);
		} else if (state.chosen[0].class !== s.class) {
			// Durations, intervals and values have no axis in common.
			state.chosen = [s];
		} else if (state.chosen.length < COMPARED_MAX) {
			state.chosen = [...state.chosen, s];
		}
		views.forEach(show => show());
	}

	const first = data.spans.find(s => s.held > 0);
	if (first)
		state.chosen = [first];
	slowest.start(choose);
	gpu.start(choose);
	flame.start(choose);
	const rows = table.start(state, choose), show = detail.start(state, choose);
	views = [rows.mark, show];
	show();
	header.start();
	dom.redrawAll();
	document.documentElement.dataset.ready = 'true';
})();
