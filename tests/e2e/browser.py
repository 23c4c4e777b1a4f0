# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless chromium, driven over its DevTools pipe: JSON messages that end in a NUL byte. Collects
what a page must not do: write to the console, throw, break its own security policy, ask the network."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

TIMEOUT_S = 180  # it only ends what hangs


class BrowserError(Exception):
    pass


def find():
    """Path of a chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    def __init__(self, path=None):
        self.dir = tempfile.mkdtemp(prefix="qbpf-chromium-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        argv = [
            path or find(),
            "--headless=new",
            "--no-sandbox",  # root may not use it
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--disable-sync",
            "--no-first-run",
            "--no-default-browser-check",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.dir}",
            "about:blank",
        ]

        def fds():
            # The browser reads at 3 and writes to 4.
            a, b = os.dup(to_read), os.dup(from_write)
            a, b = (os.dup2(a, 50), os.dup2(b, 51))
            os.dup2(a, 3)
            os.dup2(b, 4)

        # DISPLAY and the like would only make it look for a desktop.
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
        env["HOME"] = self.dir
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.p = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            close_fds=False,
            preexec_fn=fds,
            start_new_session=True,
            env=env,
        )
        os.close(to_read)
        os.close(from_write)
        self.out, self.inp = to_write, from_read
        self.rest = b""
        self.next_id = 0
        self.events = []
        try:
            self.session = None
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
                self.call(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        os.close(self.out)
        os.close(self.inp)
        try:
            # A group of its own: all its helpers end with it.
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- the protocol ---

    def _message(self, end):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            ready = select.select([self.inp], [], [], max(left, 0))[0]
            data = os.read(self.inp, 1 << 20) if ready else b""
            if not data:
                with open(self.log.name, errors="replace") as f:
                    said = f.read()[-2000:]
                raise BrowserError(("it is gone: " if ready else "no answer: ") + said)
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, timeout=TIMEOUT_S, **params):
        self.next_id += 1
        m = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        data = json.dumps(m).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        end = time.monotonic() + timeout
        while True:
            m = self._message(end)
            if m.get("id") == self.next_id:
                if "error" in m:
                    raise BrowserError(f"{method}: {m['error']}")
                return m["result"]
            if "method" in m:
                self.events.append(m)

    def complaints(self):
        """What the page did that it must not: one line each."""
        self.js("0")  # all that came before it has arrived
        out = []
        for m in self.events:
            p = m["params"]
            if m["method"] == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                out.append("exception: " + d.get("exception", {}).get("description", d["text"]))
            elif m["method"] == "Runtime.consoleAPICalled":
                out.append(f"console.{p['type']}: {[a.get('value') for a in p['args']]}")
            elif m["method"] == "Log.entryAdded":
                out.append(f"log: {p['entry']['text']}")
            elif m["method"] == "Audits.issueAdded":
                out.append(f"issue: {json.dumps(p['issue'])[:300]}")
            elif m["method"] == "Network.requestWillBeSent":
                url = p["request"]["url"]
                if not url.startswith("file:") or p.get("type") != "Document":
                    out.append("request: " + url[:200])
        return out

    # --- the page ---

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("document.documentElement?.dataset.ready === 'true'", "the page to be ready")

    def js(self, expression, timeout=TIMEOUT_S):
        """Value of an expression in the page; a promise is waited for."""
        r = self.call(
            "Runtime.evaluate",
            timeout,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in r:
            d = r["exceptionDetails"]
            raise BrowserError(f"{expression}: {d.get('exception', {}).get('description', d['text'])}")
        return r["result"].get("value")

    def wait(self, expression, what=None, timeout=TIMEOUT_S):
        """Until it is true; looked at before each frame."""
        end = time.monotonic() + timeout
        while True:
            value = self.js(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"waited in vain for {what or expression}; {self.complaints()}")
            time.sleep(0.02)

    def frame(self):
        """Until what was asked for has been drawn."""
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def mouse(self, kind, x, y, clicks=0, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=clicks, **more)

    def click(self, x, y, clicks=1, modifiers=0):
        self.mouse("mouseMoved", x, y)
        for n in range(1, clicks + 1):
            held = {"button": "left", "buttons": 1, "modifiers": modifiers}
            self.mouse("mousePressed", x, y, n, **held)
            self.mouse("mouseReleased", x, y, n, button="left", modifiers=modifiers)
        self.frame()

    def box(self, selector):
        """(left, top, width, height) in the window, scrolled to it."""
        return self.js(
            f"new Promise(done => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); requestAnimationFrame(() => requestAnimationFrame("
            "() => { const r = e.getBoundingClientRect(); done([r.left, r.top, r.width, r.height]); }"
            ")); })"
        )

    def click_on(self, selector, modifiers=0):
        x, y, w, h = self.box(selector)
        self.click(x + min(w / 2, 60), y + h / 2, modifiers=modifiers)

    def key(self, key, text=None, code=0):
        more = {"text": text} if text else {}
        codes = {"Enter": 13, "Escape": 27, " ": 32, "Backspace": 8}
        more["windowsVirtualKeyCode"] = code or codes.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)
        self.frame()

    def type_into(self, selector, text):
        self.js(f"(e => {{ e.focus(); e.select(); }})(document.querySelector({json.dumps(selector)}))")
        if text:
            self.call("Input.insertText", text=text)
        else:
            self.key("Backspace")
        self.frame()

    def size(self, width, height, ratio=1):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=ratio,
            mobile=False,
        )
        self.frame()

    def scheme(self, name):
        """The system's wish: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.frame()

    def screenshot(self, path=None, full=False):
        """PNG of the window, or of the whole page; its bytes."""
        more = {}
        if full:
            w, h = self.js("[innerWidth, document.documentElement.scrollHeight]")
            more = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": w, "height": h, "scale": 1},
            }
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"])
        if path:
            with open(path, "wb") as f:
                f.write(png)
        return png
