#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page of `report --html` in a real browser: that it draws what the recording holds, that zoom,
search, sorting and selection work, that no name can leave its place, that nothing is loaded."""

import hashlib
import os
import subprocess

from harness import QBPF, between, case, check, equal, main
from html_page import MKTRACE, TMP, data_of, made, opened, quiet, text, the_browser, tip

FIXTURES = "none unhit one instants values hostile known odd cut many wide deep".split()
ROW = 20  # px of a row of the flame graph
HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!--<script> \" ' \\ & <img src=x onerror=alert(1)>",
]


def column(b, n):
    """What a column of the table of spans shows, from the top."""
    return b.js(
        f"[...document.querySelectorAll('#spans-table tbody tr')].map(r => r.cells[{n}].innerText)"
    )


def frame_at(b, share, row):
    """(x, y) of the flame graph where `share` of its width and the row's middle are."""
    left, top, width, _ = b.box("#flame-scroll canvas")
    return left + share * width, top + (row + 0.5) * ROW


def name_at(b, share, row):
    x, y = frame_at(b, share, row)
    b.mouse("mouseMoved", x, y)
    b.frame()
    return tip(b).split("\n")[0]


def settled(b):
    """Zooming moves for a moment; then nothing is drawn any more."""
    b.js("new Promise(r => setTimeout(r, 250))")
    b.frame()


def same_name(a, b):
    equal(a, b, "name of the frame there")


# --- it renders ---------------------------------------------------------------------------------


@case
def t_every_recording():
    """each kind of recording, the empty ones too: drawn, no error, no request, no NaN"""
    for name in FIXTURES:
        b = opened(name)
        for dark in (False, True):
            b.scheme("dark" if dark else "light")
            b.frame()
        quiet(b, name)
        shown = b.js("document.body.innerText")
        for word in ("NaN", "undefined", "[object", "Infinity"):
            check(word not in shown, f"{name}: the page says {word}")
        bad = b.js(
            "[...document.querySelectorAll('svg *')].flatMap(e => [...e.attributes])"
            ".filter(a => /NaN|undefined|Infinity/.test(a.value)).map(a => a.name + '=' + a.value).slice(0, 3)"
        )
        equal(bad, [], f"{name}: attributes")


@case
def t_each_span_selected():
    """every span of every small recording can be selected without a fault"""
    for name in ("values", "hostile", "odd", "instants", "unhit"):
        b = opened(name)
        n = b.js("document.querySelectorAll('#spans-table tbody tr').length")
        check(n > 0, f"{name}: spans")
        for i in range(n):
            b.js(f"document.querySelectorAll('#spans-table tbody tr')[{i}].click()")
            b.frame()
            equal(
                b.js("document.getElementById('detail').dataset.spans"),
                b.js(f"document.querySelectorAll('#spans-table tbody tr')[{i}].cells[0].title"),
                "selected",
            )
        quiet(b, name)


@case
def t_facts():
    """the head says what was recorded, and what is missing"""
    b = opened("known")
    head = text(b, "#header")
    for word in ("<b>target</b>", "4\u202f000", "99.4% of 4\u202f025", "25", "2023-11-14 22:13:20 UTC"):
        check(word in head, f"{word!r} in {head!r}")
    check("25 spans found the ring full" in head, head)
    b.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    head = text(b, "#header")
    for word in ("qbpf attach -p 4000 -o </script>", "/opt/<i>exe</i>", "<u>red zone</u>", "1 site was"):
        check(word in head, f"{word!r} in {head!r}")
    b = opened("cut")
    head = text(b, "#header")
    check("not closed cleanly" in head and "not known" in head, head)
    b = opened("odd")
    check("found the ring full" not in text(b, "#header"), "no loss, no warning")


# --- the table ----------------------------------------------------------------------------------


@case
def t_sorting():
    """the table sorts by each column, both ways, and says so"""
    b = opened("known")
    equal(
        column(b, 0),
        ["known:tick", "known:bravo", "known:charlie", "known:delta"],
        "by total, greatest first",
    )
    b.click_on('[data-sort="name"]')
    equal(
        column(b, 0),
        ["known:bravo", "known:charlie", "known:delta", "known:tick"],
        "by name",
    )
    aria = "document.querySelector('[data-sort=name]').parentNode.getAttribute('aria-sort')"
    equal(b.js(aria), "ascending", "aria-sort")
    b.click_on('[data-sort="name"]')
    equal(column(b, 0)[0], "known:tick", "by name, descending")
    equal(b.js(aria), "descending", "aria-sort")
    b.click_on('[data-sort="p50"]')
    equal(column(b, 7), ["1.00 us", "600 ns", "300 ns", "200 ns"], "by p50")
    b.click_on('[data-sort="lost"]')
    equal(column(b, 0)[0], "known:bravo", "by lost")
    quiet(b)


@case
def t_filter():
    """the filter leaves the rows whose name has it, in any case"""
    b = opened("known")
    b.type_into("#spans-filter", "BRAV")
    equal(column(b, 0), ["known:bravo"], "rows")
    equal(text(b, "#spans-shown"), "1 of 4", "how many")
    b.type_into("#spans-filter", "")
    equal(len(column(b, 0)), 4, "rows without a filter")
    b = opened("many")
    b.type_into("#spans-filter", "Class3999::")
    equal(column(b, 0), ["ns::Class3999::method(int, double)"], "one that was not listed before")
    quiet(b)


@case
def t_selection():
    """a row that is selected drives figures and charts; more rows are compared"""
    b = opened("known")
    labels = (
        "['curve', 'histogram', 'overtime'].map(i => "
        "document.querySelector('#' + i + ' .chart svg').getAttribute('aria-label'))"
    )
    check(all("known:tick" in label for label in b.js(labels)), "charts of the first")
    b.click_on('#spans-table tr[data-row="2"]')
    check(all("known:charlie" in label for label in b.js(labels)), "charts of the third")
    equal(text(b, '#figures [data-key="max"] dd'), "3.00 us", "its maximum")
    equal(
        b.js("document.querySelector('#figures [data-key=\"total\"] dd').title").replace("\u202f", ""),
        f"{300 * 999 + 3000} ns",
        "its total, exact",
    )
    calls = text(b, "#calls")
    check("known:tick" in calls and "known:delta" in calls and "known:bravo" not in calls, calls)
    b.click_on('#spans-table tr[data-row="0"]', modifiers=2)
    equal(b.js("document.getElementById('series').children.length"), 2, "two compared")
    check(
        all("known:charlie" in label and "known:tick" in label for label in b.js(labels)),
        "charts of both",
    )
    equal(
        b.js("[...document.querySelectorAll('tr[aria-selected=true]')].map(r => r.dataset.row)"),
        ["0", "2"],
        "marked",
    )
    b.click_on("#series .drop")
    equal(b.js("document.getElementById('detail').dataset.spans"), "known:tick", "one taken out")
    b.js("document.querySelector('#spans-table tr[data-row=\"0\"]').focus()")
    b.key("ArrowDown")
    equal(b.js("document.getElementById('detail').dataset.spans"), "known:bravo", "by key")
    b.click_on("#calls button.link")
    equal(b.js("document.getElementById('detail').dataset.spans"), "known:tick", "its caller")
    quiet(b)


@case
def t_charts():
    """curve, histogram and figures over time tell the exact figures under the pointer"""
    b = opened("known")

    def at(chart, share):
        x, y, w, h = b.box(f"#{chart} .chart svg .pane")
        b.mouse("mouseMoved", x + share * w, y + h / 2)
        b.frame()
        return tip(b)

    said = at("curve", 0.999)
    check("10\u202f000 ns" in said and said.startswith("1 in 9"), said)
    check("1\u202f000 ns" in at("curve", 0.3), "median")
    check("999 (99.9%)" in at("histogram", 0.01), at("histogram", 0.01))
    said = at("overtime", 0.9)
    check("p50" in said and "1.00 us" in said and "came\n10" in said, said)
    b.click_on('#spans-table tr[data-row="1"]')
    check("up to 25" in at("overtime", 0.22), at("overtime", 0.22))
    check("not in the file" not in at("overtime", 0.6), "losses elsewhere")
    check(b.js("document.querySelectorAll('#overtime .lost').length") > 0, "losses are marked")
    for option in ("curve-log", "histogram-log"):
        before = b.js("document.querySelector('.charts').innerHTML.length")
        b.click_on("#" + option)
        check(b.js("document.querySelector('.charts').innerHTML.length") != before, option)
    quiet(b)


# --- the flame graph ----------------------------------------------------------------------------


@case
def t_frames():
    """the flame graph has each frame at its place, as wide as its share"""
    b = opened("known")
    equal(data_of(b, "#flame-scroll")["frames"], "5", "frames, with the one of all")
    for share, row, name in (
        (0.5, 0, "all"),
        (0.01, 1, "known:tick"),
        (0.99, 1, "known:tick"),
        (0.01, 2, "known:bravo"),
        (0.59, 2, "known:bravo"),
        (0.61, 2, "known:charlie"),
        (0.89, 2, "known:charlie"),
        (0.91, 2, ""),
        (0.61, 3, "known:delta"),
        (0.79, 3, "known:delta"),
        (0.81, 3, ""),
    ):
        same_name(name_at(b, share, row), name)
    name_at(b, 0.7, 2)
    said = tip(b)
    for line in ("count\n1000", "total\n302\u202f700 ns", "max\n3\u202f000 ns", "of all time\n30.0%"):
        check(line.replace("1000", "1\u202f000") in said, f"{line!r} in {said!r}")
    b.js("document.querySelector('[name=flame-by][value=count]').click()")
    b.frame()
    same_name(name_at(b, 0.24, 2), "known:bravo")
    same_name(name_at(b, 0.26, 2), "known:charlie")
    same_name(name_at(b, 0.74, 2), "known:charlie")
    same_name(name_at(b, 0.76, 2), "")
    quiet(b)


@case
def t_zoom():
    """a click zooms; Escape, the path above and a double click lead back"""
    b = opened("known")
    b.click(*frame_at(b, 0.7, 2))
    settled(b)
    equal(data_of(b, "#flame-scroll")["zoom"], "known:tick/known:charlie", "zoomed to")
    equal(b.js("document.getElementById('detail').dataset.spans"), "known:charlie", "selected too")
    for share, row, name in (
        (0.01, 1, "known:tick"),
        (0.01, 2, "known:charlie"),
        (0.99, 2, "known:charlie"),
        (0.65, 3, "known:delta"),
        (0.68, 3, ""),
    ):
        same_name(name_at(b, share, row), name)
    b.js("document.querySelector('#flame-scroll canvas').focus()")
    b.key("Escape")
    equal(data_of(b, "#flame-scroll")["zoom"], "known:tick", "one back")
    b.click(*frame_at(b, 0.7, 2))
    settled(b)
    b.click_on("#flame-path button")
    equal(data_of(b, "#flame-scroll")["zoom"], "", "by the path above")
    settled(b)
    x, y = frame_at(b, 0.3, 2)
    b.click(x, y)
    settled(b)
    equal(data_of(b, "#flame-scroll")["zoom"], "known:tick/known:bravo", "zoomed again")
    b.click(*frame_at(b, 0.3, 2), clicks=2)
    settled(b)
    equal(data_of(b, "#flame-scroll")["zoom"], "", "by double click")
    same_name(name_at(b, 0.59, 2), "known:bravo")
    quiet(b)


@case
def t_flame_keys():
    """the flame graph is walked by keys, and says where they are"""
    b = opened("known")
    b.js("document.querySelector('#flame-scroll canvas').focus()")
    for key, name in (
        ("ArrowDown", "known:tick"),
        ("ArrowDown", "known:bravo"),
        ("ArrowRight", "known:charlie"),
        ("ArrowDown", "known:delta"),
        ("ArrowUp", "known:charlie"),
        ("ArrowLeft", "known:bravo"),
    ):
        b.key(key)
        equal(data_of(b, "#flame-scroll")["focus"], name, key)
    said = b.js("document.getElementById('flame-live').textContent")
    check("known:bravo" in said and "60.0%" in said, said)
    b.key("Enter")
    equal(data_of(b, "#flame-scroll")["zoom"], "known:tick/known:bravo", "Enter")
    quiet(b)


@case
def t_search():
    """a search marks its frames and tells their share, nested ones once"""
    b = opened("known")
    for wanted, frames, share in (
        ("charlie", "1", 0.3),
        ("CHARLIE", "1", 0.3),
        ("known:", "4", 1.0),
        ("a", "3", 0.9),  # bravo, charlie, and delta in it
        ("nowhere", "0", 0.0),
    ):
        b.type_into("#flame-search", wanted)
        got = data_of(b, "#flame-scroll")
        equal(got["matched"], frames, f"frames with {wanted}")
        between(float(got["matchedShare"]), share - 2e-6, share + 2e-6, f"share of {wanted}")
    b.type_into("#flame-search", "delta")
    equal(text(b, "#flame-matched"), "1 frame, 20.0% of time", "what it says")
    marked = b.screenshot()
    b.type_into("#flame-search", "")
    equal(text(b, "#flame-matched"), "", "nothing wanted")
    check(b.screenshot() != marked, "matches look different")
    b.js("document.querySelector('[name=flame-by][value=count]').click()")
    b.type_into("#flame-search", "charlie")
    equal(text(b, "#flame-matched"), "1 frame, 50.0% of hits", "by count")
    quiet(b)


@case
def t_threads():
    """one thread's tree, and all merged, by the choice above the flame graph"""
    b = opened("known", "per-thread")
    equal(text(b, "#flame-thread option"), "all threads", "first choice")
    equal(data_of(b, "#flame-scroll")["frames"], "5", "merged")
    name_at(b, 0.5, 1)
    check("count\n1\u202f000" in tip(b), tip(b))
    b.js(
        "(e => { e.selectedIndex = 1; e.dispatchEvent(new Event('change')); })"
        "(document.getElementById('flame-thread'))"
    )
    b.frame()
    name_at(b, 0.5, 1)
    check("count\n750" in tip(b), tip(b))
    quiet(b)


@case
def t_wide_and_deep():
    """1,111 frames are drawn; 600 levels are reached by scrolling"""
    b = opened("wide")
    equal(data_of(b, "#flame-scroll")["frames"], "1112", "frames")
    b.type_into("#flame-search", "level3_7")
    equal(data_of(b, "#flame-scroll")["matched"], "100", "frames found")
    between(float(data_of(b, "#flame-scroll")["matchedShare"]), 0.0999, 0.1001, "share")
    b.click(*frame_at(b, 0.35, 2))
    settled(b)
    equal(data_of(b, "#flame-scroll")["zoom"], "wide:root/wide:level1_3", "zoom")
    equal(data_of(b, "#flame-scroll")["frames"], str(3 + 10 + 100), "frames in view")
    b = opened("deep")
    b.js("document.getElementById('flame-scroll').scrollTop = 1e6")
    b.frame()
    left, top, width, height = b.box("#flame-scroll")
    b.mouse("mouseMoved", left + width / 5, top + height - ROW / 2)
    b.frame()
    said = tip(b)
    check("total\n802 ns" in said, said)  # the innermost of 600: 2,000 - 2 * 599
    quiet(b)


# --- the slowest --------------------------------------------------------------------------------


@case
def t_slowest():
    """the slowest spans are listed, drawn on real time beside the median, and can be zoomed"""
    b = opened("known")
    equal(text(b, "#slowest-title"), "Slowest spans: known:tick", "title")
    items = b.js("[...document.querySelectorAll('#slowest-list button b')].map(e => e.innerText)")
    equal(items, ["10.0 us"] + ["1.00 us"] * 9, "list")
    check("10× median" in text(b, "#slowest-list li"), text(b, "#slowest-list li"))
    slow, median = data_of(b, "#tree-slow"), data_of(b, "#tree-median")
    equal((slow["drawn"], slow["from"], slow["to"]), ("4", "0", "10000"), "slow one")
    equal((median["drawn"], median["to"]), ("4", "10000"), "the median, on the same scale")
    b.click_on("#slowest-scale")
    equal(data_of(b, "#tree-median")["to"], "1000", "on its own scale")
    left, top, width, _ = b.box("#tree-slow canvas")
    b.mouse("mouseMoved", left + 0.8 * width, top + 22 + 2.5 * 18)
    b.frame()
    said = tip(b)
    check("known:delta" in said and "+7\u202f000 ns" in said and "takes\n2\u202f000 ns" in said, said)
    b.click(left + 0.8 * width, top + 22 + 2.5 * 18)
    slow = data_of(b, "#tree-slow")
    equal((slow["from"], slow["to"]), ("7000", "9000"), "zoomed")
    b.js("document.querySelector('#tree-slow canvas').focus()")
    b.key("-", "-")
    check(int(data_of(b, "#tree-slow")["from"]) < 7000, "zoomed out a bit")
    b.key("Escape")
    equal(data_of(b, "#tree-slow")["to"], "10000", "all again")
    b.click_on('#slowest-list [data-tree="3"]')
    equal(data_of(b, "#slowest")["tree"], "3", "another")
    equal(data_of(b, "#tree-slow")["to"], "1000", "its length")
    paths = text(b, "#slowest-paths")
    for word in ("known:tick", "known:bravo", "6.00 us", "60.0%"):
        check(word in paths, f"{word} in {paths}")
    quiet(b)


@case
def t_odd_events():
    """what nests in nothing has rows of its own, a moment is a mark"""
    b = opened("odd")
    drawn = int(data_of(b, "#tree-slow")["drawn"])
    check(drawn >= 2, f"drawn: {drawn}")
    left, top, width, _ = b.box("#tree-slow canvas")
    share = 700 / int(data_of(b, "#tree-slow")["to"])
    b.mouse("mouseMoved", left + share * width, top + 22 + 1.4 * 18)
    b.frame()
    check("odd:mark" in tip(b) and "+700 ns" in tip(b) and "takes" not in tip(b), tip(b))
    quiet(b)


# --- looks --------------------------------------------------------------------------------------


@case
def t_themes():
    """light and dark follow the system until the button chooses, and differ"""
    b = opened("known")
    shots = {}
    for name in ("light", "dark"):
        b.scheme(name)
        b.frame()
        equal(b.js("document.documentElement.dataset.theme"), name, "theme")
        shots[name] = hashlib.sha256(b.screenshot()).digest()
    check(shots["light"] != shots["dark"], "they look the same")
    b.click_on("#theme")
    equal(b.js("document.documentElement.dataset.theme"), "light", "chosen against the system")
    b.frame()
    check(b.js("document.documentElement.dataset.theme") == "light", "stays")
    b.js("try { localStorage.clear() } catch (e) { /* none */ }")
    quiet(b)


@case
def t_contrast():
    """text stands out from its ground by 4.5 to 1 in both themes"""
    b = opened("known")
    rate = """(() => {
        const c = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const rgb = name => {
            c.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
            c.fillRect(0, 0, 1, 1);
            return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const light = v => v.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92
            : ((x + 0.055) / 1.055) ** 2.4).reduce((s, x, i) => s + x * [0.2126, 0.7152, 0.0722][i], 0);
        const ratio = (a, b) => {
            const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05);
        };
        return Object.fromEntries([['--ink', '--panel'], ['--quiet', '--panel'], ['--quiet', '--page'],
            ['--quiet', '--raised'], ['--accent', '--panel'], ['--accent', '--chosen'],
            ['--quiet', '--chosen'], ['--warn', '--warn-back'], ['--hit-ink', '--hit'],
            ['--frame-ink', '--frame-all'],
            ...[0, 1, 2, 3, 4, 5].map(i => ['--series-' + i, '--panel'])]
            .map(([a, b]) => [a + ' on ' + b, ratio(a, b)]));
    })()"""
    for name in ("light", "dark"):
        b.scheme(name)
        b.frame()
        for pair, ratio in b.js(rate).items():
            check(ratio >= 4.5, f"{name}: {pair}: {ratio:.2f}")


@case
def t_sizes():
    """from 360 px to 4K nothing sticks out, no label of an axis touches another"""
    overlap = """(() => {
        const bad = [];
        for (const g of document.querySelectorAll('.chart .grid')) {
            const boxes = [...g.querySelectorAll('text')].filter(t => t.textContent)
                .map(t => [t.getBoundingClientRect(), t.textContent]);
            boxes.forEach(([a, s], i) => boxes.slice(i + 1).forEach(([b, t]) => {
                if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
                    bad.push(s + ' on ' + t);
            }));
        }
        return bad;
    })()"""
    for page in ("known", "hostile", "values", "many", "instants"):
        b = opened(page)
        for width in (360, 768, 1024, 1440, 2560, 3840):
            b.size(width, 900)
            b.frame()
            b.frame()
            wide = b.js("document.documentElement.scrollWidth")
            check(wide <= width, f"{page} at {width} px is {wide} px wide")
            out = b.js(
                "[...document.querySelectorAll('section, header > *, figure, .chart svg, canvas')]"
                ".filter(e => e.getBoundingClientRect().right > innerWidth + 0.5)"
                ".map(e => e.tagName + '#' + e.id)"
            )
            equal(out, [], f"{page} at {width} px: stick out")
            equal(b.js(overlap), [], f"{page} at {width} px: labels")
            equal(
                b.js(
                    "document.querySelector('#flame-scroll canvas') ? "
                    "Math.abs(document.querySelector('#flame-scroll canvas').clientWidth - "
                    "document.getElementById('flame-scroll').clientWidth) <= 1 : true"
                ),
                True,
                f"{page} at {width} px: the flame graph fills its place",
            )
        quiet(b, page)


@case
def t_high_dpi_and_print():
    """a canvas has the pixels of the screen; the page prints, in light"""
    b = the_browser()
    b.size(1000, 800, 2)
    b.open(made("known"))
    b.frame()
    got = b.js("(c => [c.width, c.clientWidth])(document.querySelector('#flame-scroll canvas'))")
    equal(got[0], 2 * got[1], "pixels")
    b.scheme("dark")
    b.js(
        "addEventListener('beforeprint', () => {"
        " window.printed = document.documentElement.dataset.theme; })"
    )
    pdf = b.call("Page.printToPDF")["data"]
    check(len(pdf) > 5000, "printed")
    equal(b.js("window.printed"), "light", "theme on paper")
    equal(b.js("document.documentElement.dataset.theme"), "dark", "theme afterwards")
    quiet(b)


# --- hostile names, and the policy --------------------------------------------------------------


@case
def t_hostile():
    """names are shown as they are and are never anything but text"""
    b = opened("hostile")
    names = b.js(
        "[...document.querySelectorAll('#spans-table tbody tr')].map(r => r.cells[0].title)"
    )
    for name in HOSTILE:
        check(name in names, f"{name!r} in {names!r}")
    check('operator""_kg a"b\\c \\u{01}\ufffd\\u{1b}[31m é' in names, "control bytes by their number")
    check("bidi \\u{202e}drawkcab" in names, "directions by their number")
    check("__proto__" in names and "constructor" in names, "names of JavaScript's own")
    equal(
        b.js("document.querySelectorAll('img, iframe, i, u, s, main script, header b b').length"),
        0,
        "elements that are none of the page's",
    )
    equal(b.js("document.title"), "<b>target</b>: qbpf report", "title")
    seen = {name_at(b, x / 40, 1) for x in range(1, 40)}
    for name in HOSTILE:
        check(name in seen, f"{name!r} in {seen!r}")
    b.type_into("#flame-search", "</script>")
    equal(data_of(b, "#flame-scroll")["matched"], "1", "found by its text")
    quiet(b)


@case
def t_policy():
    """the page may run and load nothing else: its policy refuses it"""
    b = opened("known")
    quiet(b)
    b.js(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s); const a = document.createElement('div');"
        "a.setAttribute('onclick', 'window.ran = 2'); document.body.append(a); a.click(); })()"
    )
    equal(b.js("window.ran === undefined"), True, "a foreign script")
    equal(
        b.js("fetch('data:text/plain,x').then(() => 'loaded', () => 'refused')"),
        "refused",
        "a request",
    )
    equal(
        b.js(
            "new Promise(r => { const i = new Image(); i.onload = () => r('loaded');"
            "i.onerror = () => r('refused'); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; })"
        ),
        "refused",
        "an image",
    )
    equal(
        b.js(
            "['format', 'dom', 'el', 'svg', 'data', 'theme', 'axis', 'charts', 'overtime', 'table',"
            "'detail', 'flame', 'icicle', 'slowest', 'gpu', 'gpuTables', 'header'].filter(k => Object.hasOwn(window, k))"
        ),
        [],
        "globals",
    )


# --- large --------------------------------------------------------------------------------------


@case
def t_two_million():
    """a recording of 2 million spans: a small page that loads and answers"""
    b = the_browser()
    trace, page = os.path.join(TMP, "big.qbpf"), os.path.join(TMP, "big.html")
    subprocess.run([MKTRACE, "--spans", "2000000", "--threads", "4", trace], check=True, timeout=300)
    with open(page, "wb") as f:
        subprocess.run([QBPF, "report", trace, "--html"], stdout=f, check=True, timeout=300)
    check(os.path.getsize(page) < 4 << 20, f"{os.path.getsize(page)} bytes")
    b.open(page)
    b.frame()
    held = b.js("[...document.querySelectorAll('#header .tile b')][1].innerText").replace("\u202f", "")
    between(int(held), 1_990_000, 2_010_000, "spans in the file")
    check(int(data_of(b, "#flame-scroll")["frames"]) >= 11, "frames")
    b.type_into("#flame-search", "alpha")
    check(float(data_of(b, "#flame-scroll")["matchedShare"]) > 0, "search")
    b.click(*frame_at(b, 0.5, 1))
    settled(b)
    check(data_of(b, "#flame-scroll")["zoom"] != "", "zoom")
    b.click_on('#spans-table tr[data-row="3"]')
    check(b.js("document.querySelector('#curve .chart svg path') !== null"), "charts")
    equal(b.js("document.querySelectorAll('#slowest-list li').length") > 0, True, "slowest")
    quiet(b)


main()
