# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pages of recordings made by hand, or by mktrace, in the one browser of a test."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile

import browser
from harness import BUILD, QBPF, Skip, equal

DRIVER = os.path.join(BUILD, "tests", "html_driver")
MKTRACE = os.path.join(BUILD, "tests", "mktrace")

TMP = tempfile.mkdtemp(prefix="qbpf-html-")
atexit.register(shutil.rmtree, TMP, True)
_browser = None


def the_browser():
    global _browser
    if not browser.find():
        raise Skip("no chromium")
    if not _browser:
        _browser = browser.Browser()
        atexit.register(_browser.close)
    _browser.scheme("light")
    _browser.size(1440, 900)
    return _browser


def made(name, *args):
    """Path of a fixture's page."""
    path = os.path.join(TMP, "-".join((name, *args)) + ".html")
    if not os.path.exists(path):
        with open(path, "wb") as f:
            subprocess.run([DRIVER, name, *args], stdout=f, check=True, timeout=120)
    return path


def opened(name, *args):
    b = the_browser()
    b.open(made(name, *args))
    b.frame()
    return b


def quiet(b, what=""):
    equal(b.complaints(), [], f"complaints {what}")


def text(b, selector):
    return b.js(f"document.querySelector({json.dumps(selector)}).innerText")


def data_of(b, selector):
    return b.js(f"({{...document.querySelector({json.dumps(selector)}).dataset}})")


def tip(b):
    return b.js("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
