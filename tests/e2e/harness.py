# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the end-to-end tests share: TAP, workloads that say when they are ready, and qbpf
sessions that are waited for by their ready line, never by sleeping."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback

# How long anything is waited for: it only ends what hangs, so that a loaded machine does not matter.
PATIENCE_S = 120

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("QBPF_BUILD") or os.environ.get("BUILD") or os.path.join(ROOT, "build")
if not os.path.isabs(BUILD):
    BUILD = os.path.join(ROOT, BUILD)
QBPF = os.path.join(BUILD, "qbpf")

_cases = []


class Skip(Exception):
    pass


class Failure(Exception):
    pass


def case(fn):
    """Registers a test function; its docstring's first line, or its name, names the case."""
    _cases.append(fn)
    return fn


def check(cond, what):
    if not cond:
        raise Failure(what)


def equal(got, want, what):
    if got != want:
        raise Failure(f"{what}: got {got!r}, expected {want!r}")


def between(got, low, high, what):
    if got is None or not low <= got <= high:
        raise Failure(f"{what}: got {got!r}, expected {low!r} .. {high!r}")


def main():
    only = sys.argv[1:]
    cases = [c for c in _cases if not only or any(o in c.__name__ for o in only)]
    failed = 0
    print(f"1..{len(cases)}", flush=True)
    for n, fn in enumerate(cases, 1):
        name = (fn.__doc__ or fn.__name__).splitlines()[0].strip()
        try:
            fn()
            print(f"ok {n} - {name}", flush=True)
        except Skip as e:
            print(f"ok {n} - {name} # SKIP {e}", flush=True)
        except Exception as e:  # noqa: BLE001: every way to fail is a failed case
            failed += 1
            print(f"not ok {n} - {name}", flush=True)
            for line in str(e).splitlines() or [""]:
                print(f"#   {type(e).__name__}: {line}", flush=True)
            if not isinstance(e, Failure):
                for line in traceback.format_exc().splitlines():
                    print(f"#   {line}", flush=True)
    sys.exit(1 if failed else 0)


def work(name):
    """Path of a built workload."""
    return os.path.join(BUILD, "tests", name)


def state_of(pid):
    """R, S, T ... of its first thread; None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def await_state(pid, states):
    """Until it is in one of these; the last that was seen. What is in the kernel for a moment is in D."""
    end = time.monotonic() + PATIENCE_S
    while (now := state_of(pid)) not in states and now and time.monotonic() < end:
        time.sleep(0.01)
    return now


def runs(pid):
    """Goes on: it is not stopped, and has not ended."""
    return await_state(pid, "RS") in ("R", "S")


class Workload:
    """A target. It prints "ready" when it waits for a line (or just runs), and at its end
    lines "NAME COUNT" that say what really happened."""

    def __init__(self, argv, ready="ready", env=None, **kw):
        self.argv = [str(a) for a in argv]
        self.p = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            **kw,
        )
        self.out = b""
        self.pid = self.p.pid
        if ready:
            self.wait_for(ready)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()

    def wait_for(self, text, times=1, timeout=PATIENCE_S):
        """Until it has said so, that often."""
        end = time.monotonic() + timeout
        while self.out.count(text.encode()) < times:
            left = end - time.monotonic()
            r, _, _ = select.select([self.p.stdout], [], [], max(left, 0))
            data = os.read(self.p.stdout.fileno(), 65536) if r else b""
            if not data:
                raise Failure(f"{self.argv[0]} did not say {text!r}: {self.out!r}")
            self.out += data

    def go(self, line="go"):
        self.p.stdin.write((line + "\n").encode())
        self.p.stdin.flush()

    def finish(self, timeout=PATIENCE_S):
        """Waits for the end; returns the counts that it printed."""
        out, err = self.p.communicate(timeout=timeout)
        self.out += out
        self.err = err.decode(errors="replace")
        if self.p.returncode != 0:
            raise Failure(f"{self.argv[0]} ended with {self.p.returncode}: {self.err}")
        return self.counts()

    def counts(self):
        text = self.out.decode(errors="replace")
        return {m[1]: int(m[2]) for m in re.finditer(r"^count (\S+) (\d+)$", text, re.M)}


class Qbpf:
    """A qbpf process; .wait_ready() returns once its probes are armed."""

    def __init__(self, *args, env=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **kw):
        self.args = [str(a) for a in args]
        self.p = subprocess.Popen(
            [QBPF] + self.args,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            **kw,
        )
        self.err = b""
        self.rest = b""  # of stdout: read and not yet used

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()

    def wait_err(self, text, times=1, timeout=PATIENCE_S):
        """Until stderr says so, that often."""
        end = time.monotonic() + timeout
        while self.err.count(text.encode()) < times:
            r, _, _ = select.select([self.p.stderr], [], [], max(end - time.monotonic(), 0))
            data = os.read(self.p.stderr.fileno(), 65536) if r else b""
            if not data:
                self.p.kill()
                raise Failure(
                    f"qbpf {' '.join(self.args)} did not say {text!r}: {self.err.decode()}"
                )
            self.err += data

    def wait_ready(self):
        self.wait_err(", ready in ")
        return self

    def line(self, timeout=PATIENCE_S):
        """The next line of stdout."""
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            left = max(end - time.monotonic(), 0)
            r, _, _ = select.select([self.p.stdout], [], [], left)
            data = os.read(self.p.stdout.fileno(), 65536) if r else b""
            if not data:
                self.p.kill()
                raise Failure(f"qbpf {' '.join(self.args)} printed no line: {self.rest!r}")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def snapshot(self):
        """The figures of now, of a session with --json on stdout that has no interval."""
        self.p.send_signal(signal.SIGUSR1)
        return summary(self.line())

    def await_count(self, span, n, key="count"):
        """Until a figure of the span is so large."""
        end = time.monotonic() + PATIENCE_S
        while (now := spans(self.snapshot())[span].get(key, 0)) < n:
            if time.monotonic() > end:
                raise Failure(f"{key} of {span} is {now}, never {n}")
            time.sleep(0.01)

    def stop(self, sig=signal.SIGINT, timeout=PATIENCE_S, code=0):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        return self.finish(timeout, code)

    def finish(self, timeout=PATIENCE_S, code=0):
        try:
            out, err = self.p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Failure(f"qbpf {' '.join(self.args)} did not end: {self.err!r}") from None
        self.err += err
        self.out = (self.rest + (out or b"")).decode(errors="replace")
        if code is not None:
            equal(
                self.p.returncode,
                code,
                f"exit code of qbpf {' '.join(self.args)} ({self.err.decode(errors='replace')})",
            )
        return self.out

    def err_text(self):
        return self.err.decode(errors="replace")


def attach_json(pid, *args, **kw):
    return Qbpf("attach", "-p", pid, "--json", *args, **kw)


def summary(text):
    doc = json.loads(text)
    equal(doc["schema"], "qbpf.summary/1", "schema")
    return doc


def spans(doc):
    return {s["name"]: s for s in doc["spans"]}


def tree_paths(doc):
    """{"a/b": node} of the call tree, names joined by '/'."""
    out = {}

    def walk(nodes, prefix):
        for n in nodes:
            path = prefix + n["name"]
            out[path] = n
            walk(n.get("children", []), path + "/")

    walk(doc.get("tree", []), "")
    return out


def trace(workload_argv, *args, env=None, qenv=None):
    """The common shape: start, attach, let it run to its end; (summary, counts)."""
    with Workload(workload_argv, env=env) as w:
        with attach_json(w.pid, *args, env=qenv) as q:
            q.wait_ready()
            w.go()
            counts = w.finish()
            return summary(q.finish()), counts
