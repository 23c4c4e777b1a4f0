#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Turns the consoles of run.sh's guests into one TAP stream.

    relay.py SERIES=CONSOLE_LOG...

Each case of a guest becomes a case here, under its kernel's name. What must have been printed
and was not (the guest's last line, a test's end, the cases that a test announced) is a failure.
"""

import glob
import os
import re
import sys

LAST_LINE = "### all tests were started and have ended"
CASE = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)$")
SKIP = re.compile(r"#\s*SKIP\b\s*(.*)$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)")


class Tap:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def case(self, good, name, skip=None):
        self.n += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.n} - {name}" + (f" # SKIP {skip}" if skip is not None else ""))

    def remark(self, text):
        print(f"# {text}")


class File:
    """One test file of one guest, while its lines go by."""

    def __init__(self, tap, kernel, name):
        self.tap, self.where = tap, f"{kernel} {name}"
        self.planned = self.seen = self.failed = 0
        self.remark = ""
        self.explaining = False  # after a failed case: the remarks that follow say why

    def line(self, line):
        m = PLAN.match(line)
        if m:
            self.planned += int(m.group(1))
            return
        m = CASE.match(line)
        if not m:
            if line.startswith("#"):
                self.remark = line.strip("# ")
                if self.explaining:
                    self.tap.remark(self.remark)
            return
        self.seen += 1
        self.explaining = bool(m.group(1))
        skip = SKIP.search(m.group(2))
        if skip:
            name = m.group(2)[: skip.start()].strip(" -")
            # cmocka prints the name where others give the reason.
            name, why = (name, skip.group(1)) if name else (skip.group(1), self.remark)
            self.explaining = False
            self.tap.case(True, f"{self.where}: {name}", why)
        else:
            self.failed += bool(m.group(1))
            self.tap.case(not m.group(1), f"{self.where}: {m.group(2)}")
        self.remark = ""

    def end(self, rc):
        if rc == 77 and not self.seen:
            self.tap.case(True, self.where, self.remark)
        elif rc == 137:
            self.tap.case(False, f"{self.where}: killed, by the time-out or a signal")
        elif rc > 128:
            self.tap.case(False, f"{self.where}: died of signal {rc - 128}")
        elif rc and not self.failed:
            self.tap.case(False, f"{self.where}: exit status {rc} although no case failed")
        elif not self.seen and not self.planned:
            self.tap.case(False, f"{self.where}: printed no case")
        if self.seen < self.planned:
            self.tap.case(False, f"{self.where}: {self.seen} of {self.planned} cases ran")


def relay(tap, series, log):
    with open(log, errors="replace") as f:
        # A terminal's line ends and control sequences, of the firmware above all.
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1bc", "", f.read().replace("\r", ""))
    if text.startswith("### absent"):
        tap.case(True, f"{series}: boot", "this distribution has no such kernel")
        return
    for died in sorted(glob.glob(log + ".died.*")):
        with open(died, errors="replace") as f:
            panic = re.search(r"Kernel panic[^\r\n]*", f.read())
        tap.remark(f"{series}: started again, its kernel died before init ran: {panic.group() if panic else 'no panic seen'}")
    kernel, test, finished, errors = series, None, False, []
    for line in text.splitlines():
        line = line.rstrip()
        if line.startswith("### kernel "):
            kernel = line.split()[2]
        elif line.startswith("### begin "):
            test, errors = File(tap, kernel, line.split()[2]), []
        elif line.startswith("### stderr "):
            errors.append(line[len("### stderr "):])
        elif line.startswith("### end ") and test:
            before = tap.failed
            rc, uptime_s = (int(w) for w in line.split()[3:5])
            test.end(rc)
            tap.remark(f"{test.where}: ended {uptime_s} s after the boot")
            if test.failed or tap.failed > before:
                for e in errors:
                    tap.remark(f"{test.where}: {e}")
            test = None
        elif line == LAST_LINE:
            finished = True
        elif test:
            test.line(line)
    tap.case(finished, f"{kernel}: the guest reached its last line")
    if not finished or os.environ.get("KEEP"):
        for line in text.splitlines()[-60:] if not os.environ.get("KEEP") else text.splitlines():
            tap.remark(f"{kernel} console: {line}")


def main():
    tap = Tap()
    for arg in sys.argv[1:]:
        series, log = arg.split("=", 1)
        relay(tap, series, log)
    print(f"1..{tap.n}")
    return 1 if tap.failed or not tap.n else 0


if __name__ == "__main__":
    sys.exit(main())
