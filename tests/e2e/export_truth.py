# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of `qbpf export` share: traces of every shape, what is in them (by the second reader
of tests/tools/qtrace.py), and the command."""

import codecs
import collections
import functools
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

import harness
from harness import BUILD, QBPF, ROOT, case, check, equal

sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import qtrace  # noqa: E402
from qtrace import ASIDE, INSTANT, KEYED, OPEN, SPAN, VALUE  # noqa: E402, F401

MKTRACE = os.path.join(BUILD, "tests", "mktrace")
FORMATS = {
    "perfetto": ".pftrace",
    "chrome": ".json",
    "speedscope": ".speedscope.json",
    "folded": ".folded",
    "csv": ".csv",
    "hgrm": ".hgrm",
}
# Shapes whose spans nest as their depths say.
NESTED = ["strategy", "hostile", "deep", "many", "overlap", "equal", "keyed", "values", "instants",
          "open", "tidreuse", "uptime"]
SHAPES = NESTED + ["backwards", "lost", "empty", "mixed"]
HIST_F64 = 2

tmp = tempfile.mkdtemp(prefix="qbpf-export-")


def each_byte(e):
    return "\ufffd" * (e.end - e.start), e.end


codecs.register_error("each-byte", each_byte)


def valid(name):
    return name.decode("utf-8", "each-byte")


def plain(name):
    return "".join(f"\\x{ord(c):02x}" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in valid(name))


class Event:
    def __init__(self, thread, raw):
        self.thread = thread
        (self.kind, self.start, self.end, self.child, self.arg, self.span, self.node, self.depth,
         self.begin_tid) = raw
        self.dur = max(self.end - self.start, 0)
        self.parent = None


class Truth:
    def __init__(self, path):
        t = qtrace.Trace(path)
        self.path, self.tables = path, t.tables
        self.names = [None] + [s[0] for s in t.tables["spans"]]
        self.hist = [None] + [s[3] for s in t.tables["spans"]]
        self.threads = t.tables["threads"]
        self.events = [Event(thread, raw) for thread, raw in t.events()]
        meta = t.tables["meta"][0]
        self.start = meta[7]
        self.zero = min([self.start] + [min(e.start, e.end) for e in self.events])

    def value(self, e):
        if self.hist[e.span] == HIST_F64:
            return struct.unpack("<d", struct.pack("<Q", e.arg))[0]
        return e.arg - (1 << 64) if e.arg >> 63 else e.arg

    def of(self, *kinds):
        return [e for e in self.events if e.kind in kinds]

    def nest(self):
        """Sets each event's parent, from depth alone: events come in the order of their ends, the
        unended last."""
        waiting = collections.defaultdict(list)
        nested = [e for e in self.events if e.kind in (SPAN, INSTANT)]
        nested += sorted(self.of(OPEN), key=lambda e: -e.depth)
        for e in nested:
            waits = waiting[e.thread]
            while waits and e.kind != INSTANT and waits[-1].depth > e.depth:
                waits.pop().parent = e
            waits.append(e)
        return nested


@functools.lru_cache(maxsize=None)
def trace(shape, *options):
    path = os.path.join(tmp, "-".join((shape,) + options).replace("/", "_") + ".qbpf")
    options = list(options) or ["--spans", "6000", "--threads", "3"]
    subprocess.run([MKTRACE, "--shape", shape, *options, path], check=True)
    return Truth(path)


def run(*args, code=0, **kw):
    p = subprocess.run([QBPF, "export", *map(str, args)], capture_output=True, timeout=300, **kw)
    equal(p.returncode, code, f"exit code of export {args} ({p.stderr[-300:]})")
    if code:
        equal(p.stderr.count(b"\n"), 1, f"lines of {p.stderr!r}")
    return p


def export(truth, fmt, *args):
    return run("-f", fmt, *args, truth.path).stdout


def same(got, want, what):
    """Two multisets."""
    got, want = collections.Counter(got), collections.Counter(want)
    more, fewer = list((got - want).items()), list((want - got).items())
    check(not more and not fewer, f"{what}: too much {more[:3]}, missing {fewer[:3]}")


def per_shape(fn):
    """One case for each shape."""
    for shape in SHAPES:

        def run_one(shape=shape):
            fn(shape)

        run_one.__name__ = f"{fn.__name__}_{shape}"
        run_one.__doc__ = f"{fn.__doc__}: {shape}"
        case(run_one)
    return fn


def expected_losses(truth):
    for span, _, start, end, lost, skipped in truth.tables["losses"]:
        if lost or skipped:
            what = f"{lost} lost" if lost else f"{skipped} left out"
            yield f"{plain(truth.names[span])}: {what}", start, end - start, lost, skipped


def main():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        harness.main()
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
