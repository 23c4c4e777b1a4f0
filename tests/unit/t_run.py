#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/run.py itself: what it counts as passed, failed and skipped, and its last line."""

import os
import subprocess
import sys
import tempfile
import time

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.py")

# name, script, (passed, failed, skipped), text that must be in the output
CASES = [
    ("all pass", "echo 1..2; echo ok 1 - a; echo ok 2 - b", (2, 0, 0), "ok   unit/t_x.sh"),
    ("one fails", "echo ok 1 - a; echo not ok 2 - b; exit 1", (1, 1, 0), "FAIL unit/t_x.sh: b"),
    ("failed case, exit status 0", "echo not ok 1 - b", (0, 1, 0), "FAIL unit/t_x.sh: b"),
    ("skip with reason", "echo ok 1 - a '# SKIP' no gdb; echo ok 2 - b", (1, 0, 1), "a: no gdb"),
    ("cmocka's skip", "echo '# no gdb'; echo 'not ok 1 # SKIP a'; echo ok 2 - b", (1, 0, 1), "a: no gdb"),
    ("whole file skipped", "echo no root here; exit 77", (0, 0, 1), "all: no root here"),
    ("plan 1..0", "echo '1..0 # SKIP no perf'", (0, 0, 1), "all: no perf"),
    ("crash", "echo ok 1 - a; kill -SEGV $$", (1, 1, 0), "killed by SIGSEGV"),
    ("no TAP", "echo hello", (0, 1, 0), "printed no case"),
    ("exit status alone", "echo ok 1 - a; exit 3", (1, 1, 0), "3 although no case failed"),
    ("plan not met", "echo 1..3; echo ok 1 - a", (1, 1, 0), "1 of 3 cases ran"),
    ("two groups", "echo 1..1; echo ok 1 - a; echo 1..1; echo ok 1 - b", (2, 0, 0), "2 passed"),
    # Long enough for the first line on a busy machine.
    ("time-out", "# timeout: 10\necho ok 1 - a; sleep 600", (1, 1, 0), "killed after 10 s"),
    ("stderr of a failure", "echo not ok 1 - b; echo why >&2", (0, 1, 0), "stderr: why"),
    ("a child that is left", "echo ok 1 - a; sleep 600 &", (1, 0, 0), "1 passed"),
]


def run(script, words=()):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "tests", "unit"))
        with open(os.path.join(root, "tests", "unit", "t_x.sh"), "w") as f:
            f.write(script + "\n")
        env = dict(os.environ, QBPF_TEST_ROOT=root, CI="")
        start = time.monotonic()
        p = subprocess.run(
            [sys.executable, RUN, "--build", root, *words],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return p.returncode, p.stdout, time.monotonic() - start


def main():
    print(f"1..{len(CASES) + 1}")
    failed = 0
    n = 0
    for name, script, (ok, bad, skip), text in CASES:
        n += 1
        rc, out, seconds = run(script)
        last = out.splitlines()[-1] if out else ""
        good = (
            last == f"{ok} passed, {bad} failed, {skip} skipped"
            and text in out
            and rc == (1 if bad or not ok else 0)
            and seconds < 300
        )
        failed += not good
        print(f"{'' if good else 'not '}ok {n} - {name}")
        if not good:
            print("".join(f"# rc={rc} {s}\n" for s in out.splitlines()))
    rc, out, _ = run("echo ok 1 - a", ["nothing_of_that_name"])
    good = rc == 1 and out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    print(f"{'' if good else 'not '}ok {n + 1} - a name that matches no test")
    return 1 if failed or not good else 0


if __name__ == "__main__":
    sys.exit(main())
