#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf export as a command: options, selection, what becomes of its output when something fails."""

import csv
import io
import os
import pty
import subprocess
import sys

from export_truth import FORMATS, MKTRACE, SPAN, Truth, export, main, run, same, tmp, trace, valid
from harness import QBPF, case, check, equal
from perfetto_reader import Perfetto


@case
def formats_by_name():
    """-o chooses the format by its ending, as -f does, and writes the same bytes"""
    truth = trace("strategy")
    for fmt, suffix in FORMATS.items():
        out = os.path.join(tmp, "named" + suffix)
        run("-o", out, truth.path)
        with open(out, "rb") as f:
            equal(f.read(), export(truth, fmt), f"{suffix} and {fmt}")
        equal(os.stat(out).st_mode & 0o777, 0o666 & ~umask(), "mode")
    left = [f for f in os.listdir(tmp) if f.startswith("named") and not f.endswith(tuple(FORMATS.values()))]
    equal(left, [], "files left over")


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@case
def usage_errors():
    """wrong usage is exit code 2 and one line"""
    path = trace("strategy").path
    for args in (["-f", "perfetto"], [path], ["-f", "svg", path], ["-f", "csv", path, path],
                 ["-o", "x.unknown", path], ["--by", "weight", "-f", "folded", path], ["--bad", path],
                 ["-f", "csv", "--by", "count", path], ["-o", os.path.join(tmp, "x.json"), "--by", "time", path],
                 ["-f", "chrome", "--gpu-tracks", path],
                 ["-f", "csv", "--from", "soon", path], ["-f", "csv", "--from", "-1", path],
                 ["-f", "csv", "--to", "nan", path], ["-f", "csv", "--from", "2s", "--to", "1s", path]):
        p = run(*args, code=2)
        equal(p.stdout, b"", "stdout")
        equal(os.path.exists(os.path.join(tmp, "x.json")), False, "a file")
    for by in ("time", "count"):
        check(run("--by", by, "-f", "folded", path).stdout, f"folded by {by}")


@case
def no_half_files():
    """a failed export leaves nothing, and an older file as it was"""
    folder = os.path.join(tmp, "fail")
    os.mkdir(folder)
    good = trace("strategy")
    with open(good.path, "rb") as f:
        data = bytearray(f.read())
    middle = len(data) // 2
    data[middle] ^= 0x55  # in a block of events
    bad = os.path.join(tmp, "damaged.qbpf")
    with open(bad, "wb") as f:
        f.write(data)
    for fmt, suffix in FORMATS.items():
        out = os.path.join(folder, "x" + suffix)
        with open(out, "w") as f:
            f.write("older")
        p = run("-o", out, bad, code=1)
        check(b"offset" in p.stderr, f"where it is damaged: {p.stderr}")
        with open(out) as f:
            equal(f.read(), "older", "the older file")
        equal(run("-f", fmt, os.path.join(tmp, "none.qbpf"), code=1).stdout, b"", "stdout")
    equal(sorted(os.listdir(folder)), sorted("x" + s for s in FORMATS.values()), "files")
    p = run("-f", "csv", "-o", good.path, good.path, code=2)
    check(b"an input" in p.stderr, f"{p.stderr}")
    Truth(good.path)  # still whole
    run("-f", "csv", "-o", "/nonexistent/x.csv", good.path, code=1)
    for fmt in FORMATS:
        p = run("-f", fmt, "-o", "/dev/full", good.path, code=1)
        check(b"No space left" in p.stderr, f"{fmt}: {p.stderr}")
        run("-f", fmt, "-o", "/dev/null", good.path)


@case
def links_and_modes():
    """a symbolic link stays one, a file keeps its mode"""
    truth, real = trace("strategy"), os.path.join(tmp, "real.csv")
    link = os.path.join(tmp, "link.csv")
    with open(real, "w"):
        pass
    os.chmod(real, 0o600)
    os.symlink(real, link)
    run("-o", link, truth.path)
    check(os.path.islink(link), "still a link")
    equal(os.stat(real).st_mode & 0o777, 0o600, "mode")
    with open(real, "rb") as f:
        equal(f.read(), export(truth, "csv"), "what it holds")


@case
def quiet_pipe():
    """a reader that goes away is no fault"""
    truth = trace("mixed")
    for fmt in FORMATS:
        p = subprocess.Popen([QBPF, "export", "-f", fmt, truth.path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.read(1)
        p.stdout.close()
        equal(p.wait(60), 0, f"exit code of {fmt}")
        equal(p.stderr.read(), b"", "stderr")


@case
def terminals():
    """binary data is not written to a terminal, text is"""
    path = trace("strategy").path
    for fmt, code in (("perfetto", 2), ("folded", 0)):
        leader, follower = pty.openpty()
        p = subprocess.run([QBPF, "export", "-f", fmt, path], stdout=follower, stderr=subprocess.PIPE)
        equal(p.returncode, code, f"exit code of {fmt}")
        os.close(follower)
        os.close(leader)


def rows_of(truth, *args):
    raw = export(truth, "csv", *args).decode()
    return list(csv.DictReader(io.StringIO(raw, newline="")))


@case
def selection():
    """--span, --thread, --from and --to choose events; what matches nothing is an error"""
    truth = trace("strategy")
    all_rows = rows_of(truth)
    picked = lambda **want: [r for r in all_rows if all(r[k] == v for k, v in want.items())]  # noqa: E731
    equal(rows_of(truth, "--span", "order:send"), picked(name="order:send"), "--span")
    equal(rows_of(truth, "--span", "on_tick"), picked(name="strategy:on_tick"), "--span, short")
    equal(rows_of(truth, "--span", "order:*"), [r for r in all_rows if r["name"].startswith("order:")], "glob")
    tid = truth.threads[1][1]
    equal(rows_of(truth, "--thread", tid), picked(tid=str(tid)), "--thread TID")
    name = valid(truth.threads[2][2])
    equal(rows_of(truth, "--thread", name), picked(thread=name), "--thread NAME")
    low, high = truth.start + 2_000_000, truth.start + 3_500_000
    inside = [r for r in all_rows
              if int(r["start_ns"]) <= high and int(r["start_ns"]) + int(r["dur_ns"]) >= low]
    check(0 < len(inside) < len(all_rows), "the range is part of it")
    equal(rows_of(truth, "--from", "2ms", "--to", "3500us"), inside, "--from, --to")
    whole = Perfetto(export(truth, "perfetto", "--from", "2ms", "--to", "3500us"))
    same([(s.name, s.start, s.end - s.start) for s in whole.slices],
         [(r["name"], int(r["start_ns"]), int(r["dur_ns"])) for r in inside], "a range as perfetto")
    later = [r for r in all_rows if int(r["start_ns"]) + int(r["dur_ns"]) >= low]
    equal(rows_of(truth, "--from", "0.002"), later, "--from alone")
    for args in (["--span", "nothing"], ["--thread", "nobody"], ["--thread", "1"], ["--from", "1000s"]):
        run("-f", "csv", *args, truth.path, code=1)


@case
def unclosed():
    """a recording that was not closed is exported as far as it goes, with a line that says so"""
    truth = trace("strategy", "--spans", "5000", "--no-close")
    for fmt in FORMATS:
        p = run("-f", fmt, truth.path)
        check(b"not closed" in p.stderr, f"{fmt}: {p.stderr}")
    p = Perfetto(export(truth, "perfetto"))
    equal(len(p.slices), len(truth.of(SPAN)), "spans")
    equal(p.instants[-1].args["recording_closed"], 0, "recording_closed")


@case
def flat_memory():
    """memory does not grow with the trace"""
    path = os.path.join(tmp, "large.qbpf")
    subprocess.run([MKTRACE, "--shape", "mixed", "--spans", "3000000", "--threads", "4", path], check=True)
    for fmt in FORMATS:
        # A small process in between: a child's figure begins with that of the process it is made from.
        measure = ("import os, sys; p = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); "
                   "_, s, u = os.wait4(p, 0); print(s, u.ru_maxrss)")
        out = subprocess.run(
            [sys.executable, "-S", "-c", measure, QBPF, "export", "-f", fmt, "-o", os.devnull, path],
            check=True, capture_output=True).stdout.split()
        equal(int(out[0]), 0, f"status of {fmt}")
        check(int(out[1]) < 64 << 10, f"{fmt}: {int(out[1])} KiB")
    os.unlink(path)


if __name__ == "__main__":
    main()
