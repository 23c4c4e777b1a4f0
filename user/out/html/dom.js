// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Making elements. Text only ever enters as text nodes and attributes: nothing here parses HTML.

const dom = (() => {
	const SVG = 'http://www.w3.org/2000/svg';

	function fill(node, attrs, children) {
		for (const [key, v] of Object.entries(attrs || {})) {
			if (key.startsWith('on'))
				node.addEventListener(key.slice(2), v);
			else if (v !== undefined && v !== null && v !== false)
				node.setAttribute(key, v === true ? '' : v);
		}
		node.append(...children.filter(c => c !== null && c !== undefined));
		return node;
	}

	const el = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);
	const svg = (tag, attrs, ...children) =>
		fill(document.createElementNS(SVG, tag), attrs, children);
	const get = id => document.getElementById(id);

	// Calls draw() now, and once for each frame in which the width of `node` or the colours changed.
	const redraws = [];
	function drawn(node, draw) {
		let width = -1, asked = false;
		const ask = () => {
			if (asked)
				return;
			asked = true;
			requestAnimationFrame(() => {
				asked = false;
				draw();
			});
		};
		new ResizeObserver(() => {
			if (node.clientWidth === width)
				return;
			width = node.clientWidth;
			ask();
		}).observe(node);
		redraws.push({ask, draw});
		return ask;
	}

	// --- the one tooltip ---

	const tipNode = get('tip');
	// lines: [heading, [label, value], ...]
	function tip(event, lines) {
		const rect = event.target.getBoundingClientRect ? event.target.getBoundingClientRect()
								: {left: 0, bottom: 0};
		const x = event.clientX || rect.left, y = event.clientY || rect.bottom;

		tipNode.replaceChildren(...lines.map(line => Array.isArray(line)
			? el('div', {class: 'pair'}, el('span', {}, line[0]), el('b', {}, line[1]))
			: el('div', {class: 'name'}, line)));
		tipNode.hidden = false;
		const w = tipNode.offsetWidth, h = tipNode.offsetHeight, room = innerWidth - 8;
		const left = x + 14 + w < room ? x + 14 : Math.max(8, Math.min(x - w - 14, room - w));
		const top = y + 14 + h < innerHeight - 8 ? y + 14 : Math.max(8, y - h - 14);
		tipNode.style.left = left + 'px';
		tipNode.style.top = top + 'px';
	}

	function tipOff() {
		tipNode.hidden = true;
	}

	addEventListener('scroll', tipOff, {passive: true, capture: true});
	addEventListener('pointerdown', tipOff, {capture: true});
	// A finger has left as soon as it has touched: what it touched stays told until the next touch.
	const onLeave = off => event => {
		if (event.pointerType !== 'touch')
			off();
	};

	// A canvas with the pixels that the screen has; returns its context in CSS pixels.
	function canvas(node, width, height) {
		const ratio = Math.min(devicePixelRatio || 1, 3);
		const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));

		if (node.width !== w || node.height !== h) {
			node.width = w;
			node.height = h;
		}
		node.style.width = width + 'px';
		node.style.height = height + 'px';
		const c = node.getContext('2d');
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, width, height);
		return c;
	}

	return {el, svg, get, drawn, tip, tipOff, onLeave, canvas, 
		redrawAll: () => redraws.forEach(r => r.ask()), redrawNow: () => redraws.forEach(r => r.draw())};
})();
const {el, svg} = dom;
