# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""speedscope's prebuilt page from npm, served on loopback and read back in a headless chromium."""

import functools
import http.server
import os
import shutil
import subprocess
import threading
import urllib.parse

import browser
from harness import BUILD, Skip, check

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
        try:
            p = subprocess.run(["npm", "pack", "--silent", SPEEDSCOPE], cwd=into, capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            raise Skip(f"npm does not fetch {SPEEDSCOPE} in 120 s") from None
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
