#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""qbpf export, as speedscope itself shows it: the prebuilt page from npm, in a headless chromium."""

import collections
import functools
import http.server
import os
import shutil
import subprocess
import threading
import urllib.parse

import browser
from export_truth import export, main, trace, valid
from harness import BUILD, Skip, case, check, equal

SPEEDSCOPE = "speedscope@1.25.0"


def speedscope_app():
    """The folder of the prebuilt page, fetched once."""
    if not shutil.which("npm"):
        raise Skip("no npm")
    if not browser.find():
        raise Skip("no chromium")
    into = os.path.join(BUILD, "npm")
    page = os.path.join(into, "package", "dist", "release")
    if not os.path.exists(os.path.join(page, "index.html")):
        os.makedirs(into, exist_ok=True)
        p = subprocess.run(["npm", "pack", "--silent", SPEEDSCOPE], cwd=into, capture_output=True, timeout=120)
        if p.returncode:
            raise Skip(f"npm cannot fetch {SPEEDSCOPE}: {p.stderr.decode()[-100:].strip()!r}")
        archive = os.path.join(into, p.stdout.decode().split()[-1])
        subprocess.run(["tar", "-xzf", archive, "-C", into], check=True)
    return page


class Served:
    """A folder on a port of this machine's own."""

    def __init__(self, folder, files):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                data = files.get(urllib.parse.unquote(self.path[1:]))
                if data is None:
                    return super().do_GET()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=folder))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


def shown_ns(text):
    """The time in "1.94ms (23%)", and what its last digit is worth."""
    number = text.split(" ")[0]
    for unit, ns in (("µs", 1e3), ("ms", 1e6), ("ns", 1), ("s", 1e9)):
        if number.endswith(unit):
            digits = number[: -len(unit)]
            return float(digits) * ns, ns / 10 ** len(digits.partition(".")[2])
    check(False, f"a time: {text!r}")


def load(b, url, name):
    """Opens a file by speedscope's own import, turns to its table; [(total, self, name)]."""
    b.call("Page.navigate", url="about:blank")
    b.wait("location.href === 'about:blank'")
    b.call("Page.navigate", url=f"{url}index.html#profileURL=" + urllib.parse.quote(url + name, safe=""))
    b.wait(r"/\(1\/\d+\)|Sandwich/.test(document.body?.innerText) && document.title !== 'speedscope'",
           f"speedscope to show {name}")
    b.key("3", text="3", code=51)
    b.wait("document.body.innerText.includes('Symbol Name')", "its table")
    b.frame()
    return b.js("[...document.querySelectorAll('tr')].map(r => [...r.querySelectorAll('td')]"
                ".map(c => c.innerText.trim())).filter(r => r.length === 3 && r[1].endsWith('%)'))")


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
