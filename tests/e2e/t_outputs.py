#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What report, export, check, diff and list write: never over what they read or write besides, whole
or not at all, and `-` is stdout."""

import json
import os
import resource
import shutil
import subprocess
import xml.etree.ElementTree as ET

from export_truth import main, tmp, trace
from harness import QBPF, Skip, case, check, equal

RULE = "* count >= 0"


def qbpf(*args, code=0, limit=None):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    p = subprocess.run([QBPF, *args], capture_output=True, timeout=60, preexec_fn=small if limit else None)
    equal(p.returncode, code, f"exit code of {args} ({p.stderr!r})")
    equal(p.stderr.count(b"\n"), 1 if code else 0, f"lines of {args}: {p.stderr!r}")
    return p


def read(path):
    with open(path, "rb") as f:
        return f.read()


def folder(name):
    """A folder with a trace, another name of it, a budget and an ELF file."""
    path = os.path.join(tmp, name)
    os.mkdir(path)
    shutil.copy(trace("strategy").path, os.path.join(path, "t.qbpf"))
    os.symlink("t.qbpf", os.path.join(path, "link"))
    os.link(os.path.join(path, "t.qbpf"), os.path.join(path, "hard"))
    with open(os.path.join(path, "budget"), "w") as f:
        f.write(RULE + "\n")
    shutil.copy("/proc/self/exe", os.path.join(path, "elf"))
    return path


@case
def inputs():
    """no output goes over an input, by whatever name: exit 2, one line, the input is whole"""
    d = folder("inputs")
    t, other, budget, elf = (os.path.join(d, n) for n in ("t.qbpf", "other.qbpf", "budget", "elf"))
    shutil.copy(t, other)
    before = {n: read(os.path.join(d, n)) for n in os.listdir(d)}
    for name in (t, os.path.join(d, "link"), os.path.join(d, "hard"), os.path.join(d, ".", "t.qbpf")):
        for args in (["report", t, "--json=" + name], ["report", t, "--html=" + name],
                     ["export", "-f", "csv", "-o", name, t],
                     ["check", t, RULE, "--json=" + name], ["check", t, RULE, "--junit", name],
                     ["check", other, RULE, "--baseline", t, "--junit", name],
                     ["diff", t, other, "--json=" + name], ["diff", other, t, "--json=" + name]):
            p = qbpf(*args, code=2)
            check(name.encode() in p.stderr and b"input" in p.stderr, f"{args}: {p.stderr!r}")
            equal(p.stdout, b"", f"stdout of {args}")
    qbpf("check", t, "--budget", budget, "--junit", budget, code=2)
    qbpf("list", elf, "--json=" + elf, code=2)
    equal({n: read(os.path.join(d, n)) for n in os.listdir(d)}, before, "files")


@case
def nothing_was_measured():
    """an attach that fails leaves no file that was not there, and keeps what an older one had"""
    out = os.path.join(folder("nothing"), "out.json")
    qbpf("attach", "-p", "4194305", "--json=" + out, code=1)
    check(not os.path.exists(out), "no empty document")
    with open(out, "w") as f:
        f.write("older")
    qbpf("attach", "-p", "4194305", "--json=" + out, code=1)
    equal(read(out), b"older", "the older document")


@case
def one_file_twice():
    """two outputs are two files: exit 2, and neither is there"""
    d = folder("twice")
    t, out = os.path.join(d, "t.qbpf"), os.path.join(d, "out")
    before = sorted(os.listdir(d))
    for a, b in ((out, out), (out, os.path.join(d, ".", "out"))):
        qbpf("report", t, "--json=" + a, "--html=" + b, code=2)
        qbpf("check", t, RULE, "--json=" + a, "--junit", b, code=2)
    qbpf("report", t, "--json", "--html", code=2)
    qbpf("check", t, RULE, "--json", "--junit", "-", code=2)
    for args in (["report", t, "--json="], ["check", t, RULE, "--junit", ""], ["export", "-f", "csv", "-o", "", t]):
        check(b"empty file name" in qbpf(*args, code=2).stderr, args)
    equal(sorted(os.listdir(d)), before, "files")
    for args in (["report", t, "--html=/dev/null", "--json=/dev/null"], ["report", t, "--html=/dev/null", "--json=-"]):
        qbpf(*args)


@case
def dash():
    """- is stdout, without the text"""
    d = folder("dash")
    t = os.path.join(d, "t.qbpf")
    cwd = os.getcwd()
    os.chdir(d)
    try:
        json.loads(qbpf("report", t, "--json=-").stdout)
        check(qbpf("report", t, "--html=-").stdout.lower().startswith(b"<!doctype html>"), "a page")
        check(qbpf("export", t, "-f", "csv", "-o", "-").stdout.startswith(b"kind,"), "csv")
        ET.fromstring(qbpf("check", t, RULE, "--junit", "-").stdout)
        json.loads(qbpf("check", t, RULE, "--json=-").stdout)
        json.loads(qbpf("diff", t, t, "--json=-").stdout)
        json.loads(qbpf("list", "elf", "--json=-").stdout)
        check(not os.path.exists("-"), "a file -")
    finally:
        os.chdir(cwd)


@case
def whole_or_not():
    """a file that may not grow further: exit 1, one line, the older file as it was, nothing left"""
    d = folder("full")
    t, out, elf = (os.path.join(d, n) for n in ("t.qbpf", "out", "elf"))
    before = sorted(os.listdir(d))
    commands = (["report", t, "--json=" + out], ["report", t, "--html=" + out],
                ["export", "-f", "csv", "-o", out, t], ["export", "-f", "perfetto", "-o", out, t],
                ["check", t, "--budget", os.path.join(d, "budget"), "--junit", out],
                ["check", t, RULE, "--json=" + out], ["diff", t, t, "--all", "--json=" + out],
                ["list", elf, "-f", "*", "--json=" + out])
    for args in commands:
        p = qbpf(*args, code=1, limit=512)
        check(out.encode() in p.stderr and b"File too large" in p.stderr, f"{args}: {p.stderr!r}")
        equal(sorted(os.listdir(d)), before, f"files after {args}")
    for args in commands:
        with open(out, "w") as f:
            f.write("older")
        qbpf(*args, code=1, limit=512)
        equal(read(out), b"older", args)
        equal(sorted(os.listdir(d)), sorted([*before, "out"]), f"files after {args}")
    link = os.path.join(d, "to-out")
    os.symlink("out", link)
    os.chmod(out, 0o640)
    qbpf("report", t, "--json=" + link)
    check(os.path.islink(link) and json.loads(read(out)), "through a link")
    equal(os.stat(out).st_mode & 0o777, 0o640, "mode")


@case
def closed_folder():
    """a file that may be written, in a folder where none may be made, is written in place"""
    uid = None if os.geteuid() else 65534
    if uid and subprocess.run(["test", "-x", QBPF], user=uid).returncode:
        raise Skip("nobody may not run qbpf where it is")
    d = folder("closed")
    t, out = os.path.join(d, "t.qbpf"), os.path.join(d, "out")
    with open(out, "w") as f:
        f.write("older")
    os.chmod(out, 0o666)
    os.chmod(tmp, 0o755)
    os.chmod(d, 0o555)
    try:
        p = subprocess.run([QBPF, "report", t, "--json=" + out], capture_output=True, timeout=60, user=uid)
        equal((p.returncode, p.stderr), (0, b""), "report")
        json.loads(read(out))
        p = subprocess.run([QBPF, "report", t, "--json=" + out + "2"], capture_output=True, timeout=60, user=uid)
        equal((p.returncode, p.stderr.count(b"\n")), (1, 1), f"a new one: {p.stderr!r}")
        check(b"Permission denied" in p.stderr, p.stderr)
    finally:
        os.chmod(d, 0o755)


main()
