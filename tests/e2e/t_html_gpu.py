#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The GPU's section of `report --html` in a real browser: its tables are those of `report --json`, its
pictures have every stream and what runs in it, arrows, keys; no name leaves its place."""

import json
import os
import re
import subprocess

from harness import QBPF, case, check, equal, main
from html_page import MKTRACE, TMP, data_of, made, opened, quiet, text, the_browser, tip

ROW, AXIS = 18, 22  # px of a picture
CAUSES = "host late, ", "host waited in ", "host was in ", "asked for", "waited for an event", "cause not"


def rows(b, table):
    """[{heading: text}] of one table; equal headings are told apart by a number."""
    head = b.js(f"[...document.querySelectorAll('#{table} thead th')].map(e => e.innerText)")
    keys = [k if head.index(k) == i else f"{k} {i}" for i, k in enumerate(head)]
    cells = b.js(
        f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.cells].map("
        "c => [c.innerText, c.title]))"
    )
    return [dict(zip(keys, row)) for row in cells]


def exact(cell):
    """The number in a cell's title: all its digits."""
    return int(re.sub(r"[^0-9]", "", cell[1])) if cell[1] else None


def number(cell):
    return int(cell[0].replace("\u202f", ""))


def page_of(*options):
    """(page, report --json's gpu) of a recording made up."""
    name = os.path.join(TMP, "made" + "".join(options))
    if not os.path.exists(name + ".html"):
        subprocess.run([MKTRACE, "--shape", "gpu", *options, name], check=True, timeout=120)
        for kind in ("html", "json"):
            with open(f"{name}.{kind}", "wb") as f:
                subprocess.run([QBPF, "report", name, "--" + kind], stdout=f, check=True, timeout=120)
    with open(name + ".json", "rb") as f:
        return name + ".html", json.load(f)["gpu"]


def opened_page(*options):
    path, gpu = page_of(*options)
    b = the_browser()
    b.open(path)
    b.frame()
    return b, gpu


def small():
    return opened_page("--spans", "3000", "--threads", "2")


def document(path):
    with open(path, encoding="utf-8") as f:
        return json.loads(f.read().split('id="data">')[1].split("</script>")[0])


def place(b, picture, share, row):
    """Where `share` of the picture's time and a row's middle are."""
    left, top, width, _ = b.box(f"#{picture} canvas")
    gutter = int(data_of(b, f"#{picture}")["left"])
    return left + gutter + share * (width - gutter), top + AXIS + (row + 0.5) * ROW


def told(b, picture, share, row):
    b.mouse("mouseMoved", *place(b, picture, share, row))
    b.frame()
    return tip(b)


# --- when it is there ---------------------------------------------------------------------------


@case
def t_absent():
    """a recording without GPU records has no such section, no link to it, no data"""
    for name in ("known", "none"):
        b = opened(name)
        equal(b.js("document.getElementById('gpu').hidden"), True, "hidden")
        check("GPU" not in text(b, "#header nav"), text(b, "#header nav"))
        check("gpu" not in document(made(name)), "no data")
        quiet(b, name)


@case
def t_every_recording():
    """every recording with GPU records, light and dark: drawn, no complaint, no NaN"""
    for name in ("gpu", "gpu-alone", "gpu-hostile", "gpu-many"):
        b = opened(name)
        for dark in ("dark", "light"):
            b.scheme(dark)
            b.frame()
            equal(b.js("document.documentElement.dataset.theme"), dark, "theme")
        shown = b.js("document.getElementById('gpu').innerText")
        for word in ("NaN", "undefined", "[object", "Infinity"):
            check(word not in shown, f"{name}: the page says {word}")
        check(int(data_of(b, "#gpu-slow")["drawn"]) > 0, "drawn")
        check("GPU" in text(b, "#header nav"), text(b, "#header nav"))
        quiet(b, name)


@case
def t_themes():
    """the pictures have colours of their own in the dark"""
    b = opened("gpu")
    b.box("#gpu-slow")
    light = b.screenshot()
    fills = "[...document.querySelectorAll('#gpu-legend .chip')].map(e => getComputedStyle(e).backgroundColor)"
    before = b.js(fills)
    equal(len(set(before[:6])), 6, "different colours of what runs")
    equal(len(set(before[6:])), 6, "different colours of causes")
    b.scheme("dark")
    b.frame()
    after = b.js(fills)
    equal([x for x, y in zip(before, after) if x == y], [], "the same in the dark")
    check(b.screenshot() != light, "drawn anew")
    quiet(b)


# --- tables -------------------------------------------------------------------------------------


@case
def t_kernels():
    """the kernels' rows are those of report --json"""
    b, gpu = small()
    got = rows(b, "gpu-kernels")
    equal(
        [[number(r["count"])] + [exact(r[k]) for k in ("total", "min", "mean", "p50", "p99", "max", "delay")]
         for r in got],
        [[k["count"]] + [k[f + "_ns"] for f in ("sum", "min", "mean", "p50", "p99", "max")]
         + [k["delay"]["mean_ns"] if "delay" in k else None] for k in gpu["kernels"]],
        "figures",
    )
    equal(got[0]["kernel"], ["signal(float const*, float*, int)"] * 2, "first")
    check(any(r["kernel"][0] == '<b>odd"\\u{01}\ufffd' for r in got), "odd bytes by their number")
    equal([r["grid / block"][0] for r in got][0], "128×1×1 / 256×1×1", "grid")
    quiet(b)


@case
def t_copies():
    """the copies' rows are those of report --json, with their rates"""
    b, gpu = small()
    equal(
        [[number(r["count"])] + [exact(r[k]) for k in ("bytes", "total", "rate", "max", "alone", "host waits")]
         for r in rows(b, "gpu-copies")],
        [[c["count"], c["bytes"], c["sum_ns"], c["bytes_per_s"], c["max_ns"], c.get("alone_ns"),
          c["host"]["sum_ns"] if c["synchronous"] else None] for c in gpu["copies"]],
        "figures",
    )
    equal(
        [r["direction"][0] for r in rows(b, "gpu-copies")],
        [{"to_device": "host to device", "to_host": "device to host", "memset": "memset"}[c["direction"]]
         + ", pageable" * c["pageable"] + ", synchronous" * c["synchronous"] for c in gpu["copies"]],
        "directions",
    )


@case
def t_idle():
    """each device's idle causes are those of report --json, with the span that was late"""
    b, gpu = small()
    equal(len(gpu["devices"]), 2, "devices")
    for n, device in enumerate(gpu["devices"]):
        got = rows(b, f"gpu-idle-{n}")
        equal(
            [[number(r["gaps"]), exact(r["total"]), exact(r["longest"])] for r in got],
            [[i["gaps"], i["sum_ns"], i["max_ns"]] for i in device["idle"]],
            "figures",
        )
        for r, i in zip(got, device["idle"]):
            which = ["host", "sync", "call", "launch", "dependency", "unknown"].index(i["cause"])
            check(r["cause"][0].startswith(CAUSES[which]), f"{r['cause'][0]} is {i['cause']}")
            check(r["cause"][0].endswith(i.get("name", "")), f"{r['cause'][0]} names {i.get('name')}")
        parts = b.js(f"[...document.querySelectorAll('[data-device=\"{n}\"] .parts span')].length")
        equal(parts, 1 + len(device["idle"]), "parts of the bar")
        check(f"GPU {n} (Example GPU)" in text(b, f'[data-device="{n}"]'), "whose")


@case
def t_streams():
    """the streams' rows are those of report --json: delay and queue as distributions"""
    b, gpu = small()
    got = rows(b, "gpu-streams")
    equal(
        [[number(r["kernels"]), exact(r["delay min"]), exact(r["p50"]), exact(r["p90"]), exact(r["p99"]),
          exact(r["max"]), number(r["max 12"])] for r in got],
        [[s["kernels"]] + [s["delay"][k + "_ns"] for k in ("min", "p50", "p90", "p99", "max")] + [s["queue_max"]]
         for s in gpu["streams"]],
        "figures",
    )
    for r, s in zip(got, gpu["streams"]):
        check(sum(s["queue_found"]) > 0 and s["queue_found"][-1] > 0, "found")
        said = r["how long when asked"][1].split(", ")
        equal(len(said), len(s["queue_found"]), "bars")
        share = float(said[0].split(": ")[1].strip("%<>")) / 100
        want = s["queue_found"][0] / sum(s["queue_found"])
        check(abs(share - want) < 0.001, f"{said[0]} is {want}")
        check(r["stream"][0].startswith(f"GPU {s['device']} (Example GPU), stream {s['stream']}"), r["stream"][0])


@case
def t_spans_calls_advice():
    """spans, calls, advice and what is left out are those of report --json"""
    b, gpu = small()
    equal([number(r["count"]) for r in rows(b, "gpu-spans")], [s["count"] for s in gpu["spans"]], "spans")
    equal(
        [[r["call"][0], number(r["count"]), exact(r["total"])] for r in rows(b, "gpu-calls")],
        [[c["name"], c["count"], c["sum_ns"]] for c in gpu["calls"]],
        "calls",
    )
    equal(
        b.js("[...document.querySelectorAll('#gpu-advice li')].map(e => [e.dataset.kind, e.innerText])"),
        [[a["kind"], a["text"]] for a in gpu["advice"]],
        "advice",
    )
    check(any(re.search(r"\d", a["text"]) for a in gpu["advice"]), "there is some, with figures")
    said = text(b, "#gpu-outside")
    check(f"activities whose times cannot be: {gpu['untimed']}" in said and gpu["untimed"] > 0, said)
    check(f"that asked for them: {gpu['missing']['no_call']}" in said, said)


# --- pictures -----------------------------------------------------------------------------------


@case
def t_picture():
    """spans, calls, idle causes, streams at their times; overlapping and zero-length kernels visible"""
    b = opened("gpu")
    slow = data_of(b, "#gpu-slow")
    # tick, calls, device 0: idle, stream 7, stream 8 in two rows; device 1: idle, stream 7.
    equal((slow["rows"], slow["streams"], slow["from"], slow["to"]), ("8", "3", "0", "80000"), "slow one")
    for ns, row, want in (
        (60000, 0, ["gpu:tick", "takes\n80\u202f000 ns"]),
        (1500, 1, ["cudaMemcpyAsync"]),
        (20000, 1, ["cudaStreamSynchronize", "the host waits for the GPU"]),
        (32000, 2, ["idle: host waited, in cudaStreamSynchronize", "GPU 0 (Example GPU)"]),
        (60000, 2, ["idle: host was late, in gpu:tick"]),
        (2000, 2, ["idle: asked for, not begun yet"]),
        (5000, 3, ["copy host to device", "asked for by\ncudaMemcpyAsync", "80.0 KiB", "15.3 GiB/s",
                   "after its call began\n2.00 us"]),
        (20000, 3, ["signal(float const*, float*, int)", "128×1×1, 256×1×1", "stream 7"]),
        (12000, 4, ["signal(", "takes\n10\u202f000 ns", "cudaGraphLaunch", "stream 8"]),
        (17000, 5, ["signal(", "starts at\n+15\u202f000 ns"]),
        (26000, 4, ["signal(", "starts at\n+26\u202f000 ns", "takes\n0 ns", "takes no time"]),
        (60000, 6, ["idle: host was late, in gpu:tick", "GPU 1 (Example GPU)"]),
        (9250, 7, ["memset", "GPU 1 (Example GPU), stream 7", "4.00 KiB"]),
    ):
        said = told(b, "gpu-slow", ns / 80000, row)
        for word in want:
            check(word in said, f"{word!r} at {ns} in row {row}: {said!r}")
    median = data_of(b, "#gpu-median")
    equal((median["rows"], median["to"]), ("8", "80000"), "the median, on the same scale")
    b.click_on("#gpu-scale")
    equal(data_of(b, "#gpu-median")["to"], "50000", "on its own scale")
    quiet(b)


@case
def t_links():
    """a kernel shows the call that asked for it, a call all that it made the GPU do"""
    b = opened("gpu")
    b.box("#gpu-slow")
    plain = b.screenshot()
    told(b, "gpu-slow", 20000 / 80000, 3)
    equal(data_of(b, "#gpu-slow")["linked"], "1", "of a kernel")
    check(b.screenshot() != plain, "something is drawn")
    told(b, "gpu-slow", 6750 / 80000, 1)
    equal(data_of(b, "#gpu-slow")["linked"], "3", "of a graph's launch")
    told(b, "gpu-slow", 20000 / 80000, 1)
    equal(data_of(b, "#gpu-slow")["linked"], "0", "of a wait")
    b.click(*place(b, "gpu-slow", 20000 / 80000, 3))
    slow = data_of(b, "#gpu-slow")
    equal((slow["from"], slow["to"]), ("8000", "30000"), "a click zooms")
    b.mouse("mouseMoved", 2, 2)
    b.key("Escape")
    b.frame()
    equal(data_of(b, "#gpu-slow")["linked"], "1", "what was chosen stays linked")
    quiet(b)


@case
def t_keys():
    """keys step through calls and activities in their order, zoom, move and tell where they are"""
    b = opened("gpu")
    b.js("document.querySelector('#gpu-slow canvas').focus()")
    names = []
    for _ in range(12):
        b.key("ArrowDown")
        names.append(data_of(b, "#gpu-slow")["current"])
    signal = "signal(float const*, float*, int)"
    equal(
        names,
        ["cudaMemcpyAsync", "copy host to device", "cudaLaunchKernel", "cudaGraphLaunch", "cudaMemsetAsync", signal,
         "cudaStreamSynchronize", "memset", signal, signal, signal, signal],
        "in order of time; the last stays",
    )
    check("starts at +26\u202f000 ns" in text_of_live(b), text_of_live(b))
    b.key("ArrowUp")
    b.key("ArrowUp")
    check("starts at +10\u202f000 ns" in text_of_live(b), text_of_live(b))
    equal(data_of(b, "#gpu-slow")["linked"], "1", "with its call")
    b.key("Enter")
    slow = data_of(b, "#gpu-slow")
    equal((slow["from"], slow["to"]), ("10000", "20000"), "Enter zooms")
    b.key("ArrowRight")
    equal(data_of(b, "#gpu-slow")["from"], "12000", "moved")
    b.key("-", "-")
    check(int(data_of(b, "#gpu-slow")["from"]) < 12000, "zoomed out a bit")
    b.key("Escape")
    equal(data_of(b, "#gpu-slow")["to"], "80000", "all again")
    quiet(b)


def text_of_live(b):
    return b.js("document.getElementById('gpu-live').textContent")


@case
def t_windows():
    """each slow span can be chosen; every stream with something in its time is drawn"""
    b, _ = small()
    doc = document(page_of("--spans", "3000", "--threads", "2")[0])
    trees, windows = doc["slowest"]["trees"], doc["gpu"]["windows"]
    equal(len(windows), len(trees) + 1, "a window of each, and of the median")
    equal([w["at"] for w in windows[:-1]], [t["at"] for t in trees], "at the same times")
    equal(windows[-1]["at"], doc["slowest"]["median"]["at"], "the median's")
    equal(b.js("document.getElementById('gpu-window').options.length"), len(trees), "to choose from")
    for i in (0, 1, 7, len(trees) - 1):
        b.js(f"(e => {{ e.value = {i}; e.dispatchEvent(new Event('change')); }})"
             "(document.getElementById('gpu-window'))")
        b.frame()
        w = windows[i]
        check(f"slow no. {i + 1}" in text(b, "#gpu-pictures"), "which")
        equal(data_of(b, "#gpu-slow")["streams"], str(len({(a[1], a[2]) for a in w["acts"]})), "streams")
        end = max([w["ns"]] + [a[3] + a[4] for a in w["acts"] if a[7]])
        equal(data_of(b, "#gpu-slow")["to"], str(min(end, 2 * w["ns"])), "to the end of what it asked for")
        # What it asked for and what ran meanwhile, and nothing else.
        for a in w["acts"]:
            check(a[7] or (a[3] <= w["ns"] and a[3] + a[4] >= 0), f"{a} in {w['ns']}")
            check(a[6] < 0 or w["calls"][a[6]][0] == a[8], "the call that asked for it")
    quiet(b)


@case
def t_alone():
    """without a span of the host the picture is of the whole recording"""
    b = opened("gpu-alone")
    check("the whole recording" in text(b, "#gpu-pictures"), text(b, "#gpu-pictures"))
    equal(data_of(b, "#gpu-slow")["streams"], "3", "streams")
    equal(b.js("document.getElementById('gpu-median')"), None, "no median")
    doc = document(made("gpu-alone"))
    equal(len(doc["gpu"]["windows"][0]["acts"]), 20 * 6, "activities")
    quiet(b)


# --- hostile, large -----------------------------------------------------------------------------


@case
def t_hostile():
    """names are shown as they are and are never anything but text"""
    b = opened("gpu-hostile")
    names = [r["kernel"][1] for r in rows(b, "gpu-kernels")]
    for name in (
        "</script><script>document.title='owned'</script>",
        "<!--<script> \" ' \\ & <img src=x onerror=alert(1)>",
        "a\"b'c\\d\\u{01}\ufffd\ufffd(",
        "__proto__",
        '""',
    ):
        check(name in names, f"{name!r} in {names!r}")
    longest = [n for n in names if n.startswith("xxx")]
    check(len(longest) == 1 and len(longest[0]) < 1100 and "more)" in longest[0], f"{longest}")
    equal(b.js("document.querySelectorAll('#gpu img, #gpu i, #gpu script').length"), 0, "elements of names")
    check("owned" not in b.js("document.title"), "title")
    for i, name in enumerate(["</script>", "<!--<script>", "a\"b'c\\d", "xxxx", "__proto__", '""']):
        said = told(b, "gpu-slow", (5 + i * 10) / 100, 3)
        check(said.startswith(name), f"{name!r} at no. {i}: {said!r}")
    width = b.js("[document.documentElement.scrollWidth, innerWidth]")
    check(width[0] <= width[1], f"nothing wider than the window: {width}")
    quiet(b)


@case
def t_bounds():
    """more than a page holds: a small page that says what it left out, the longest kept"""
    path = made("gpu-many")
    check(os.path.getsize(path) < 16 << 20, f"{os.path.getsize(path)} bytes")
    w = document(path)["gpu"]["windows"][0]
    equal((len(w["acts"]), w["acts_left_out"]), (4000, 16000), "activities")
    equal(min(a[4] for a in w["acts"]), 100 + 320, "the longest: 4,000 of 20,000 of 100 to 499 ns")
    b = opened("gpu-many")
    said = text(b, "#gpu-pictures")
    check("16\u202f000 activities" in said and "16\u202f000 shorter calls" in said, said)
    check(int(data_of(b, "#gpu-slow")["rows"]) <= 400, "rows")
    check("more are not in this table" in text(b, "#gpu-kernels"), "kernels")
    check("more are not in this table" in text(b, "#gpu-streams"), "streams")
    equal(len(rows(b, "gpu-kernels")), 200, "rows of the table")
    quiet(b)


@case
def t_large():
    """half a million activities from many threads at once: a small page; a span's own are all there"""
    b, gpu = opened_page("--spans", "450000", "--threads", "400")
    path, _ = page_of("--spans", "450000", "--threads", "400")
    check(gpu["activities"] > 450_000, f"{gpu['activities']} activities")
    check(os.path.getsize(path) < 16 << 20, f"{os.path.getsize(path)} bytes")
    windows = document(path)["gpu"]["windows"]
    held = sum(len(w["acts"]) + len(w["calls"]) + len(w["idle"]) for w in windows)
    check(50_000 < held <= 60_000, f"{held} in all pictures")
    for w in windows:
        check(w["acts_left_out"] > 0, "some were left out")
        # Each tick copies there, launches, copies back; nothing of that gives way to others.
        check(sum(a[7] for a in w["acts"]) >= 3, "what it asked for itself")
        check(all(w["calls"][a[6]][0] == a[8] for a in w["acts"] if a[7]), "with its call")
    quiet(b)


main()
