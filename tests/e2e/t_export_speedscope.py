#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf export, as speedscope itself shows it: the prebuilt page from npm, in a headless chromium."""

import collections

import browser
from export_truth import export, main, trace, valid
from harness import case, check, equal
from speedscope import Served, load, shown_ns, speedscope_app


@case
def speedscope_shows_it():
    """speedscope (from npm, in chromium) loads its own format, Chrome's JSON and folded stacks"""
    page = speedscope_app()
    truth = trace("strategy")
    nested = [e for e in truth.nest() if e.thread == 0]
    total, own = collections.Counter(), collections.Counter()
    for e in nested:
        total[valid(truth.names[e.span])] += e.dur
        own[valid(truth.names[e.span])] += e.dur - e.child
    files = {"own.speedscope.json": export(truth, "speedscope"), "chrome.json": export(truth, "chrome")}
    with Served(page, files) as served, browser.Browser() as b:
        b.size(1400, 1200)
        for name in files:
            rows = load(b, served.url, name)
            equal(sorted(r[2] for r in rows), sorted(total), f"frames in {name}")
            for shown_total, shown_self, frame in rows:
                for shown, want in ((shown_total, total), (shown_self, own)):
                    ns, digit = shown_ns(shown)
                    check(abs(ns - want[frame]) <= digit, f"{name}: {frame} {shown}, really {want[frame]}")
            equal([line for line in b.complaints() if line.startswith("exception")], [], "exceptions")


@case
def speedscope_takes_all():
    """speedscope (from npm, in chromium) loads every shape in three formats"""
    page = speedscope_app()
    with browser.Browser() as b:
        b.size(1400, 1200)
        for shape in ("mixed", "hostile", "deep", "equal", "open", "overlap", "backwards", "tidreuse", "uptime"):
            truth = trace(shape)
            files = {f"{shape}.{suffix}": export(truth, fmt) for fmt, suffix in
                     (("speedscope", "speedscope.json"), ("chrome", "json"), ("folded", "folded"))}
            with Served(page, files) as served:
                for name in files:
                    check(load(b, served.url, name), f"{name} has frames")
                    gone = [line for line in b.complaints() if line.startswith("exception")]
                    equal(gone, [], f"exceptions at {name}")


if __name__ == "__main__":
    main()
