#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The markers of qbpf/probe.h, hit for real and seen by tracers that know nothing of qbpf:
bpftrace, gdb and perf. The program itself says what they must see."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import ROOT, Skip, case, check, equal, main

SOURCE = os.path.join(ROOT, "tests", "workloads", "w_marker.c")
LEAVES = 100000
DIR = tempfile.mkdtemp(prefix="qbpf-markers-")

# How a marker's arguments are to be printed: d number, s string, p pointer to an int.
MARKERS = {
    "small": "dddddd",
    "wide": "dddddd",
    "real": "ddddd",
    "dval__value": "d",
    "fval__value": "d",
    "ival__value": "d",
    "text": "sss",
    "place": "dddddd",
    "deep": "dddd",
    "address": "p",
    "constant": "dddddd",
    "inlined": "dd",
    "twelve": "dddsdd",  # bpftrace 0.17 knows no arg6
    "costly": "d",
}

C = ["-std=c99"]
CXX = ["-x", "c++", "-std=c++11"]
# compiler, flags: every level with both, in C and C++, and what moves arguments about
BUILDS = [
    ("gcc", C + ["-O0"]),
    ("gcc", C + ["-O1", "-fPIC", "-pie"]),
    ("gcc", C + ["-O2"]),
    ("gcc", C + ["-O3", "-fomit-frame-pointer", "-march=x86-64-v3"]),
    ("gcc", C + ["-O2", "-mno-red-zone"]),
    ("gcc", C + ["-O0", "-fomit-frame-pointer"]),
    ("gcc", C + ["-O2", "-fno-omit-frame-pointer", "-no-pie", "-static"]),
    ("g++", CXX + ["-O0"]),
    ("g++", CXX + ["-O3", "-flto"]),
    ("clang", C + ["-O0"]),
    ("clang", C + ["-O1", "-fomit-frame-pointer"]),
    ("clang", C + ["-O2", "-mno-red-zone"]),
    ("clang", C + ["-O3"]),
    ("clang++", CXX + ["-O0", "-fomit-frame-pointer"]),
    ("clang++", CXX + ["-O2", "-fPIC", "-pie"]),
]


def need(*tools):
    if os.geteuid() != 0:
        raise Skip("needs root")
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")


def build(compiler, flags, name, extra=()):
    out = os.path.join(DIR, name)
    lto = ["-fuse-ld=lld"] if compiler.startswith("clang") and "-flto" in flags else []
    subprocess.run(
        [compiler, *flags, *lto, "-g", "-w", "-I" + os.path.join(ROOT, "include"), *extra,
         SOURCE, "-o", out],
        check=True,
    )
    return out


def said(path):
    """The program's own account: what each marker must show, and its last two lines."""
    with open(path) as f:
        lines = f.read().splitlines()
    return lines[:-2], lines[-2], lines[-1]


def shorten(line):
    name, *args = line.split(" ")
    return " ".join([name, *args[: len(MARKERS[name])]])


def bpftrace_script(binary, functions=True):
    show = {"d": "arg%d", "s": "str(arg%d)", "p": "*(int32 *)arg%d"}
    fmt = {"d": "%ld", "s": "%s", "p": "%d"}
    out = []
    for name, kinds in MARKERS.items():
        text = " ".join(["=" + name] + [fmt[k] for k in kinds])
        args = ", ".join([f'"{text}\\n"'] + [show[k] % i for i, k in enumerate(kinds)])
        out.append(f"usdt:{binary}:mk:{name} {{ printf({args}); }}")
    out.append(f"usdt:{binary}:mk:leaf {{ @leaves = count(); @sum = sum(arg0); }}")
    for span in ("scope", "inner"):
        for edge in ("begin", "end"):
            out.append(f"usdt:{binary}:mk:{span}__{edge} {{ @{span}_{edge} = count(); }}")
    if functions:
        out.append(f"usdt:{binary}:qbpf_func:* {{ @func = count(); }}")
    return "\n".join(out)


def trace(binary, log):
    done = subprocess.run(
        ["bpftrace", "-B", "full", "-e", bpftrace_script(binary), "-c",
         f"{binary} {LEAVES} {log}"],
        capture_output=True, text=True, timeout=240,
        env={**os.environ, "BPFTRACE_STRLEN": "32"},
    )
    check("Parse error" not in done.stderr, f"{binary}: an operand does not parse: {done.stderr}")
    equal(done.returncode, 0, f"{binary}: bpftrace: {done.stderr[-2000:]}")
    seen = [l[1:] for l in done.stdout.splitlines() if l.startswith("=")]
    maps = dict(re.findall(r"^@(\w+): (\d+)$", done.stdout, re.M))
    return seen, {k: int(v) for k, v in maps.items()}


def one_build(n):
    need("bpftrace", BUILDS[n][0])
    compiler, flags = BUILDS[n]
    binary = build(compiler, flags, f"w{n}")
    log = binary + ".log"
    seen, maps = trace(binary, log)
    lines, leaves, spans = said(log)
    want = [shorten(l) for l in lines]
    # Several CPUs' buffers may be printed out of turn; each marker's own hits are distinct enough.
    equal(sorted(seen), sorted(want), "what bpftrace printed")
    check(any(l.startswith("costly ") for l in want), "the semaphore was never up")
    total = LEAVES * (LEAVES - 1) // 2
    equal(leaves, f"leaves {LEAVES} {total} 0", "the leaf's data below the stack pointer")
    equal((maps["leaves"], maps["sum"]), (LEAVES, total), "the leaf's hits and their sum")
    equal(spans, "spans 100", "the program's spans")
    for edge in ("scope_begin", "scope_end", "inner_begin", "inner_end"):
        equal(maps[edge], 100, edge)
    equal(maps["func"], 200, "begins and ends of the function")


def register():
    for n, (compiler, flags) in enumerate(BUILDS):
        def run(n=n):
            one_build(n)

        run.__doc__ = f"bpftrace sees every value right: {compiler} {' '.join(flags)}"
        run.__name__ = f"bpftrace_{n}"
        case(run)


register()


def gdb(binary, commands):
    args = ["gdb", "-q", "-batch", "-nx", "-ex", "set confirm off", "-ex", "set pagination off"]
    for c in commands:
        args += ["-ex", c]
    done = subprocess.run(args + [binary], capture_output=True, text=True, timeout=240)
    return done.stdout + done.stderr


TYPES = {"d": "(long)", "u": "(unsigned long)", "s": "(char *)"}


def gdb_twelve(compiler, flags, name):
    """All twelve arguments, the caller's frame and the locals."""
    binary = build(compiler, flags, name)
    log = binary + ".log"
    kinds = "duusdduudddd"
    commands = [f"set args 10 {log}", "break -probe-stap mk:twelve", "run", "continue", "bt"]
    commands += [f'printf "<%s>\\n", {TYPES[k]}$_probe_arg{i}' if k == "s" else
                 f'printf "<%ld>\\n", {TYPES[k]}$_probe_arg{i}' for i, k in enumerate(kinds)]
    commands += ["delete", "continue"]
    out = gdb(binary, commands)
    lines, _, _ = said(log)
    want = [l for l in lines if l.startswith("twelve ")][1].split(" ")[1:]
    equal(re.findall(r"^<(.*)>$", out, re.M), want, f"gdb's arguments of {name}: {out}")
    return out


@case
def gdb_arguments():
    """gdb reads all twelve arguments, at every level"""
    need("gdb", "gcc", "clang")
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            gdb_twelve(compiler, C + [level], f"g_{compiler}{level}")


@case
def gdb_backtrace():
    """gdb finds the caller from a marker that has moved the stack pointer"""
    need("gdb", "gcc")
    for n, flags in enumerate((["-O2"], ["-O1"], ["-O3", "-fno-omit-frame-pointer"], ["-O0"])):
        out = gdb_twelve("gcc", C + flags, f"b{n}")
        check(re.search(r"^#1 .* in main ", out, re.M), f"gcc {flags}: no caller in: {out}")
    out = gdb_twelve("clang", C + ["-O2", "-fno-omit-frame-pointer"], "b_clang") \
        if shutil.which("clang") else "#1 0 in main "
    check(re.search(r"^#1 .* in main ", out, re.M), f"clang with frame pointers: {out}")


@case
def perf_counts():
    """perf counts the markers and reads their arguments"""
    need("perf", "gcc")
    binary = build("gcc", C + ["-O2"], "w_perf")
    cache = ["perf", "--buildid-dir", os.path.join(DIR, "buildid")]
    data = os.path.join(DIR, "perf.data")
    log = binary + ".log"
    events = ["small", "real", "place", "leaf"]
    added = []
    try:
        subprocess.run([*cache, "buildid-cache", "--add", binary], check=True, capture_output=True)
        for e in events:
            done = subprocess.run([*cache, "probe", f"sdt_mk:{e}"], capture_output=True, text=True)
            if done.returncode:
                raise Skip(f"perf probe: {(done.stderr.strip() or '?').splitlines()[-1]}")
            added.append(e)
        subprocess.run(
            [*cache, "record", "-o", data, *sum((["-e", f"sdt_mk:{e}"] for e in events), []),
             binary, "500", log],
            check=True, capture_output=True,
        )
        out = subprocess.run([*cache, "script", "-i", data], check=True, capture_output=True,
                             text=True).stdout
    finally:
        for e in added:
            subprocess.run(["perf", "probe", "-d", f"sdt_mk:{e}"], capture_output=True)
    lines, leaves, _ = said(log)
    equal(leaves.split(" ")[3], "0", "the leaf's data")
    equal(len(re.findall(r"sdt_mk:leaf:", out)), 500, "hits of the leaf")
    for e in ("small", "real", "place"):
        got = [re.findall(r"arg\d+=(-?\d+)", l) for l in out.splitlines() if f"sdt_mk:{e}:" in l]
        want = [l.split(" ")[1:] for l in lines if l.startswith(e + " ")]
        equal(len(got), len(want), f"hits of {e}")
        for g, w in zip(got, want):
            # perf shows every number modulo its size
            equal(len(g), len(w), f"arguments of {e}")
            for a, b in zip(g, w):
                check(any((int(a) - int(b)) % (1 << s) == 0 and abs(int(a)) < (1 << s)
                          for s in (8, 16, 32, 64)), f"{e}: perf says {a}, expected {b}")


@case
def exceptions():
    """Spans and functions in C++ end on every exception, and bpftrace sees as many ends as begins"""
    need("bpftrace", "g++", "clang++")
    source = os.path.join(ROOT, "tests", "workloads", "w_marker_cxx.cc")
    for compiler, level in (("g++", "-O2"), ("clang++", "-O2"), ("g++", "-O0")):
        binary = os.path.join(DIR, "cxx_" + compiler.replace("+", "x") + level)
        subprocess.run([compiler, "-std=c++11", level, "-I" + os.path.join(ROOT, "include"), source,
                        "-o", binary], check=True)
        done = subprocess.run(
            ["bpftrace", "-B", "full", "-e",
             f"usdt:{binary}:cx:* {{ @cx[probe] = count(); }}"
             f"usdt:{binary}:qbpf_func:* {{ @fn[probe] = count(); }}", "-c", f"{binary} 1000"],
            capture_output=True, text=True, timeout=240)
        equal(done.returncode, 0, done.stderr[-2000:])
        said_ = dict(re.findall(r"^(\S+) (\d+)$", done.stdout, re.M))
        seen = dict(re.findall(r"^@\w+\[usdt:.*:(\w+)\]: (\d+)$", done.stdout, re.M))
        for span in ("doubled", "destructor", "fails", "catches", "handler", "lambda"):
            check(int(said_[span]) >= 500, f"{span}: {said_}")
            equal((seen[span + "__begin"], seen[span + "__end"]), (said_[span],) * 2, span)
        lines = {n.split("__")[0] for n in seen if re.match(r"L\d+__", n)}
        got = sorted((seen[n + "__begin"], seen[n + "__end"]) for n in lines)
        want = sorted((said_[f],) * 2 for f in ("cx::book<T>::update", "cx::crosses"))
        equal(got, want, "functions")


def interrupt(tracer):
    """bpftrace 0.17 can sleep through a SIGINT that comes just before it waits for events."""
    try:
        for _ in range(120):
            tracer.send_signal(signal.SIGINT)
            try:
                tracer.communicate(timeout=2)
                return
            except subprocess.TimeoutExpired:
                pass
    finally:
        tracer.kill()


@case
def optimised():
    """Linux 6.18 and later turn an armed marker into a call, and back"""
    need("bpftrace", "g++")
    release = tuple(int(x) for x in re.findall(r"\d+", os.uname().release)[:2])
    if release < (6, 18) or os.uname().machine != "x86_64":
        raise Skip("this kernel does not optimise uprobes")
    binary = os.path.join(DIR, "strategy")
    subprocess.run(["g++", "-O2", "-no-pie", "-I" + os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "tests", "workloads", "w_strategy.cc"), "-o", binary,
                    "-lpthread"], check=True)
    notes = subprocess.run(["readelf", "-nW", binary], capture_output=True, text=True).stdout
    site = int(re.search(r"Name: tick__begin\s+Location: (\w+)", notes).group(1), 16)

    def code(pid):
        with open(f"/proc/{pid}/mem", "rb") as mem:
            mem.seek(site)
            return mem.read(5)

    program = subprocess.Popen([binary, "--rate", "2000"], stdout=subprocess.PIPE, text=True)
    try:
        check(program.stdout.readline().startswith("ready "), "the program's ready line")
        nop = code(program.pid)
        equal(nop.hex(), "0f1f440000", "the idle marker")
        tracer = subprocess.Popen(
            ["bpftrace", "-B", "line", "-p", str(program.pid), "-e",
             f"usdt:{binary}:strategy:tick__begin {{ @n++; if (@n == 100) {{ printf(\"armed\\n\"); }}"
             " }"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            while True:
                line = tracer.stdout.readline()
                check(line, "bpftrace ended")
                if line.startswith("armed"):
                    break
            equal(code(program.pid)[0], 0xE8, "the armed marker's first byte: a call")
        finally:
            interrupt(tracer)
        equal(code(program.pid), nop, "the marker after the tracer has gone")
    finally:
        program.terminate()
        out, _ = program.communicate(timeout=60)
    check("count strategy:tick " in out, "the program's counts")


@case
def same_as_sdt():
    """The same source with sys/sdt.h gives bpftrace the same counts and values"""
    need("bpftrace", "gcc")
    if subprocess.run(["gcc", "-E", "-"], input="#include <sys/sdt.h>\n", text=True,
                      capture_output=True).returncode:
        raise Skip("sys/sdt.h is not installed")
    binary = build("gcc", C + ["-O2"], "w_sdt", ["-DW_MARKER_SDT"])
    ours = build("gcc", C + ["-O2"], "w_ours")
    seen = {}
    for b in (binary, ours):
        # no double, no semaphore, no memory operand with an index: bpftrace 0.17 reads none of them
        names = [n for n in ("small", "wide", "text", "address", "inlined") if n in MARKERS]
        script = "\n".join(l for l in bpftrace_script(b, False).splitlines()
                           if re.search(r":mk:(%s) " % "|".join(names), l))
        done = subprocess.run(
            ["bpftrace", "-B", "full", "-e", script, "-c", f"{b} 10 {b}.log"],
            capture_output=True, text=True, timeout=240)
        equal(done.returncode, 0, done.stderr[-2000:])
        seen[b] = sorted(l for l in done.stdout.splitlines() if l.startswith("="))
    check(len(seen[ours]) >= 15, "hits")
    equal(seen[ours], seen[binary], "what bpftrace printed")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(DIR, ignore_errors=True)
