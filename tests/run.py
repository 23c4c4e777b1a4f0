#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the tests and counts their cases.

    tests/run.py --build DIR [--kernels] [TEST...]

Finds the tests by layer (tests/unit, bpf, cudasim, e2e, kernels), runs each file in a process group
of its own with a time-out, and reads TAP from its stdout. Prints one line for each file, one for
each case that failed or was skipped, and last of all a plain line:

    N passed, N failed, N skipped

Exits 1 when anything failed or nothing ran. A file that crashes, prints no TAP, stops before its
plan is met or is not built counts as a failure. TEST is a path or a part of a test's name.

Tests of unit/ run side by side; those of bpf/, e2e/ and cudasim/ one at a time, because they time
things and count what the whole machine does. bpf/ and e2e/ need root: without it they are skipped,
visibly.
The time-out only ends what hangs: 900 s, many times what any file takes on a loaded machine;
`timeout: N` in a comment among a test's first 40 lines changes it.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# QBPF_TEST_ROOT: another tree, for the test of this runner itself.
ROOT = os.environ.get(
    "QBPF_TEST_ROOT", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)
TIMEOUT_S = 900
OUTPUT_MAX = 4 << 20  # bytes of a test's output that are looked at
TAIL_LINES = 40

CASE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)\s*(#\s*SKIP\b\s*(.*))?$", re.I)
DIRECTIVE = re.compile(r"#\s*(SKIP|TODO)\b\S*\s*(.*)$", re.I)


class Test:
    """One test file: what to run, and where its text is (for its time-out)."""

    def __init__(self, layer, name, command, source):
        self.layer = layer
        self.name = name
        self.command = command
        self.source = source

    def timeout_s(self):
        try:
            with open(self.source, errors="replace") as f:
                for _, line in zip(range(40), f):
                    m = re.match(r"\s*(?:#|\*|//|/\*)\s*timeout:\s*(\d+)", line)
                    if m:
                        return int(m.group(1))
        except OSError:
            pass
        return TIMEOUT_S


class Result:
    def __init__(self):
        self.passed = 0
        self.failed = []  # (case, reason)
        self.skipped = []
        self.seconds = 0.0
        self.output = ""


# --- finding the tests ---------------------------------------------------------------------------


def compiled(build, layer, folder):
    for src in sorted(glob.glob(os.path.join(ROOT, "tests", layer, "t_*.c"))):
        name = os.path.basename(src)[:-2]
        yield Test(layer, f"{layer}/{name}", [os.path.join(build, folder, name)], src)


def scripts(layer):
    # Helpers that tests import or source are not executable.
    for src in sorted(
        glob.glob(os.path.join(ROOT, "tests", layer, "*.sh"))
        + glob.glob(os.path.join(ROOT, "tests", layer, "*.py"))
    ):
        base = os.path.basename(src)
        if base.startswith("t_") or os.access(src, os.X_OK):
            how = ["bash", src] if src.endswith(".sh") else [sys.executable, src]
            yield Test(layer, f"{layer}/{base}", how, src)


def discover(build, kernels):
    tests = list(compiled(build, "unit", "tests")) + list(scripts("unit"))
    tests += list(compiled(build, "bpf", "tests/bpf")) + list(scripts("bpf"))
    for layer in ("cudasim", "e2e"):
        tests += [t for t in scripts(layer) if os.path.basename(t.source).startswith("t_")]
    boot = os.path.join(ROOT, "tests", "kernels", "run.sh")
    if kernels and os.path.exists(boot):
        tests.append(Test("kernels", "kernels/run.sh", ["bash", boot], boot))
    return tests


def wanted(test, words):
    if not words:
        return True
    paths = {os.path.realpath(test.command[-1]), os.path.realpath(test.source)}
    return any(os.path.realpath(w) in paths or w in test.name for w in words)


# --- running one ---------------------------------------------------------------------------------

running = set()
running_lock = threading.Lock()


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def run_child(test, env, out, err):
    """The exit status (negative: signal), or None when the time-out struck."""
    child = subprocess.Popen(
        test.command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        cwd=ROOT,
        env=env,
        start_new_session=True,
    )
    with running_lock:
        running.add(child.pid)
    try:
        return child.wait(timeout=test.timeout_s())
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(child.pid)  # also what a test has left behind
        child.wait()
        with running_lock:
            running.discard(child.pid)


def text_of(f):
    f.seek(0)
    return f.read(OUTPUT_MAX).decode(errors="replace")


def read_tap(text, res):
    """Adds the cases of one TAP stream to res. Returns (planned, seen)."""
    planned = seen = 0
    remark = ""  # the last comment before a case: cmocka's skip() has no other place for a reason
    for line in text.splitlines():
        line = line.rstrip()
        if line.startswith("#"):
            remark = line.strip("# ")
            continue
        m = PLAN.match(line)
        if m:
            planned += int(m.group(1))
            if m.group(2) and int(m.group(1)) == 0:
                res.skipped.append(("all", m.group(3)))
            continue
        m = CASE.match(line)
        if not m:
            continue
        seen += 1
        name = m.group(3)
        d = DIRECTIVE.search(name)
        case = (name[: d.start()] if d else name).strip(" -") or f"case {m.group(2) or seen}"
        if d and d.group(1).upper() == "SKIP":
            # cmocka prints `not ok N # SKIP name`.
            if case.startswith("case ") and d.group(2):
                res.skipped.append((d.group(2), remark))
            else:
                res.skipped.append((case, d.group(2)))
        elif m.group(1):
            res.failed.append((case, ""))
        else:
            res.passed += 1
        remark = ""
    return planned, seen


def last_line(text):
    lines = [s for s in text.splitlines() if s.strip()]
    return lines[-1].strip() if lines else ""


def run_test(test, env):
    res = Result()
    if not os.path.exists(test.command[-1]):
        res.failed.append(("build", f"{test.command[-1]} is not built"))
        return res
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            rc = run_child(test, env, out, err)
        except OSError as e:
            res.failed.append(("start", str(e)))
            return res
        stdout, stderr = text_of(out), text_of(err)
    res.seconds = time.monotonic() - start
    planned, seen = read_tap(stdout, res)
    if rc is None:
        res.failed.append(("time-out", f"killed after {test.timeout_s()} s"))
    elif rc == 77 and not seen:
        if not res.skipped:
            res.skipped.append(("all", last_line(stdout) or last_line(stderr)))
    elif rc < 0:
        res.failed.append(("crash", f"killed by {signal.Signals(-rc).name}"))
    elif rc and not res.failed:
        res.failed.append(("exit status", f"{rc} although no case failed"))
    elif not seen and not res.skipped:
        res.failed.append(("TAP", "printed no case"))
    if rc is not None and seen < planned:
        res.failed.append(("plan", f"{seen} of {planned} cases ran"))
    if res.failed:
        for label, text in (("stdout", stdout), ("stderr", stderr)):
            lines = [s for s in text.splitlines() if not re.match(r"^ok\b", s)]
            res.output += "".join(f"    {label}: {s}\n" for s in lines[-TAIL_LINES:])
    return res


# --- reporting -----------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, test, res):
        self.passed += res.passed
        self.failed += len(res.failed)
        self.skipped += len(res.skipped)
        word = "FAIL" if res.failed else "ok" if res.passed else "skip"
        print(
            f"{word:4} {test.name}: {res.passed} passed, {len(res.failed)} failed, "
            f"{len(res.skipped)} skipped ({res.seconds:.1f} s)"
        )
        for kind, cases in (("FAIL", res.failed), ("skip", res.skipped)):
            for case, reason in cases:
                print(f"  {kind} {test.name}: {case}" + (f": {reason}" if reason else ""))
        if res.output:
            print(res.output, end="")
        sys.stdout.flush()

    def skip(self, test, reason):
        res = Result()
        res.skipped.append(("all", reason))
        self.add(test, res)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0


def main():
    ap = argparse.ArgumentParser(description="Run qbpf's tests.")
    ap.add_argument("--build", default="build", help="where make left the tests")
    ap.add_argument("--kernels", action="store_true", help="boot the older kernels too")
    ap.add_argument("tests", nargs="*", help="paths, or parts of names; default: all")
    args = ap.parse_args()

    build = os.path.abspath(args.build)
    kernels = args.kernels or os.environ.get("CI") == "true" or "kernels" in "".join(args.tests)
    env = dict(
        os.environ,
        BUILD=build,
        QBPF=os.path.join(build, "qbpf"),
        CMOCKA_MESSAGE_OUTPUT="TAP",
        PYTHONDONTWRITEBYTECODE="1",
        LC_ALL="C.UTF-8",
    )
    tests = [t for t in discover(build, kernels) if wanted(t, args.tests)]
    for w in args.tests:
        if not any(wanted(t, [w]) for t in tests):
            print(f"FAIL {w}: no such test")
            print("0 passed, 1 failed, 0 skipped")
            return 1

    report = Report()
    unit = [t for t in tests if t.layer == "unit"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for test, res in zip(unit, pool.map(lambda t: run_test(t, env), unit)):
            report.add(test, res)
    for test in tests:
        if test.layer == "unit":
            continue
        if os.geteuid() != 0 and test.layer in ("bpf", "e2e"):
            report.skip(test, "needs root")
            continue
        report.add(test, run_test(test, env))
    return report.finish()


def stop(signum, _frame):
    with running_lock:
        for pid in running:
            kill_group(pid)
    os._exit(128 + signum)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    sys.exit(main())
