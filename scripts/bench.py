#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What qbpf costs, next to bpftrace on the same programs.

    sudo make bench, or: sudo scripts/bench.py [--build DIR] [--rounds N] [--only WORD]

Prints one JSON document on stdout (schema qbpf.bench/1) and a table on stderr. Takes about three
minutes. Run it on an idle machine.

Each figure of a span is that of one process: it runs bare, then a tool attaches, it runs again,
the tool detaches, and so in turn for every tool, round after round, so that a disturbance of the
machine falls on all of them. A figure is the median over the rounds of "traced less bare", in CPU
time of the traced thread, kernel included. In every run both tools must have counted every
iteration, else there is no figure but an error.

The same sites are also armed with empty programs (bpftrace's). What they cost is the kernel's own
part; how much of a bar it fills depends on what a breakpoint costs on the machine.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import bench_trace  # noqa: E402
from bench_tools import BenchError, Bpftrace, Qbpf, Target  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WARM = 2000  # iterations while armed before the measured run
BARE = 1000000
RUN_NS = 150e6  # length of a measured run
FUNCTIONS = 1000
BIG_FUNCTIONS, BIG_SIZE = 100000, 1000  # 100 MB of text
BPFTRACE_PATIENCE_S = 20

HIST = "@h = hist(nsecs - @s[tid]); delete(@s[tid]);"


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


# --- what a span costs ---------------------------------------------------------------------------


class Variant:
    """One tool on one program. why: not measured, because."""

    def __init__(self, name, target, attach, why=None):
        self.name, self.target, self.attach, self.why = name, target, attach, why
        self.counts = not name.endswith("_empty")
        self.bare, self.net = [], []

    def round(self):
        if self.why:
            return
        bare = self.target.go(BARE)
        tool = self.attach(self.target.pid)
        try:
            first = self.target.go(WARM)
            n = max(WARM, int(RUN_NS / first))
            traced = self.target.go(n)
            counted = tool.counted()
        finally:
            tool.kill()
        if self.counts and counted != WARM + n:
            raise BenchError(f"{self.name}: counted {counted} of {WARM + n}")
        self.bare.append(bare)
        self.net.append(traced - bare)

    def result(self):
        if not self.net:
            return {"net_ns": None, "why": self.why}
        return {
            "net_ns": round(statistics.median(self.net), 1),
            "bare_ns": round(statistics.median(self.bare), 2),
            "rounds_ns": [round(x, 1) for x in self.net],
        }


def span_script(path, first="@s[tid] = nsecs;", last=HIST):
    begin, end = (f"usdt:{path}:bench:span__{x}" for x in ("begin", "end"))
    return f"{begin} {{ {first} }} {end} {{ {last} }}"


def func_script(path, name="bench_call", first="@s[tid] = nsecs;", last=HIST):
    begin, end = (f"{x}:{path}:{name}" for x in ("uprobe", "uretprobe"))
    return f"{begin} {{ {first} }} {end} {{ {last} }}"


def variants(b, targets):
    probe, sdt, fentry, throw = (b.work("w_bench" + x) for x in ("", "_sdt", "_fentry", "_throw"))

    def qbpf(*args):
        return lambda pid: Qbpf(b.qbpf, pid, *args)

    def bpftrace(script):
        return lambda pid: Bpftrace(pid, script)

    def func(way):
        return qbpf("-f", "bench_call", "--returns", way)

    empty = {"first": "", "last": ""}
    table = [
        ("marker_qbpf", probe, "span", qbpf()),
        ("marker_bpftrace_sdt", sdt, "span", bpftrace(span_script(sdt))),
        ("marker_bpftrace_probe_h", probe, "span", bpftrace(span_script(probe))),
        ("marker_sdt_empty", sdt, "span", bpftrace(span_script(sdt, **empty))),
        ("marker_probe_h_empty", probe, "span", bpftrace(span_script(probe, **empty))),
        ("function_qbpf", probe, "func", func("uretprobe")),
        ("function_bpftrace", probe, "func", bpftrace(func_script(probe))),
        ("function_empty", probe, "func", bpftrace(func_script(probe, **empty))),
        ("function_qbpf_ret", probe, "func", func("ret")),
        ("function_qbpf_guard", throw, "func", func("guard")),
        ("function_nop5_qbpf", fentry, "func", func("uretprobe")),
        ("function_nop5_bpftrace", fentry, "func", bpftrace(func_script(fentry))),
    ]
    out = []
    for name, path, mode, attach in table:
        if not b.bpftrace and ("bpftrace" in name or "empty" in name):
            continue
        if (path, mode) not in targets:
            targets[path, mode] = Target(path, mode)
        out.append(Variant(name, targets[path, mode], attach))
        if "guard" in name:
            out[-1].why = b.not_guarded(targets[path, mode].pid)
    return out


def span_costs(b):
    targets = {}
    try:
        vs = variants(b, targets)
        for r in range(b.rounds):
            say(f"what a span costs, round {r + 1} of {b.rounds}")
            for v in vs if r % 2 == 0 else reversed(vs):
                v.round()
    finally:
        for t in targets.values():
            t.kill()
    res = {v.name: v.result() for v in vs}

    def net(name):
        return res.get(name, {}).get("net_ns")

    b.detail["span_cost"] = res
    marker, func = net("marker_qbpf"), net("function_qbpf")
    b.ratio("marker span; bpftrace: built with sys/sdt.h", marker, net("marker_bpftrace_sdt"), 0.30)
    b.ratio("function span", func, net("function_bpftrace"), 0.60)
    b.ratio("marker span, equal sites", marker, net("marker_bpftrace_probe_h"), 1.10)
    b.price("function span, --returns ret", net("function_qbpf_ret"))
    b.price("function span, --returns guard", net("function_qbpf_guard"))
    b.state("kernel alone: marker, 1-byte nops (sys/sdt.h)", net("marker_sdt_empty"), "ns")
    b.state("kernel alone: marker, 5-byte nops (probe.h)", net("marker_probe_h_empty"), "ns")
    b.state("kernel alone: function", net("function_empty"), "ns")
    b.price(
        "function span, nop5 at its entry", net("function_nop5_qbpf"), net("function_nop5_bpftrace")
    )


# --- 1,000 functions -----------------------------------------------------------------------------


def compile_to(path, *sources):
    cc = os.environ.get("CC", "cc")
    subprocess.run([cc, "-O1", "-fcf-protection=none", "-o", path, *sources], check=True)
    return path


MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%s
int main(void)
{
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = atol(line + 3);

		for (long i = 0; i < n; i++) {
			%s
		}
		printf("done %%ld\\n", n);
		fflush(stdout);
	}
	return 0;
}
"""


BODY = '{ __asm__ volatile("" : : : "rbx"); }'


def many_functions(folder):
    names = [f"many_{i:04}" for i in range(FUNCTIONS)]
    funcs = "\n".join(f"__attribute__((noinline)) void {n}(void) {BODY}" for n in names)
    src = os.path.join(folder, "many.c")
    with open(src, "w") as f:
        f.write(MAIN % (funcs, "\n".join(f"{n}();" for n in names)))
    return compile_to(os.path.join(folder, "many"), src)


def thousand(b, folder):
    path = many_functions(folder)
    target = Target(path)
    arm, disarm, outside, hits = [], [], [], 5
    try:
        for r in range(3):
            say(f"1,000 functions, run {r + 1} of 3")
            q = Qbpf(b.qbpf, target.pid, "-f", "many_*")
            target.go(hits)
            if r == 2:
                q.snapshot()
                memory = q.memory_kib()
            stop = time.monotonic()
            counted = q.counted()
            outside.append((time.monotonic() - stop) * 1e3)
            if counted != hits * FUNCTIONS or len(q.doc["spans"]) != FUNCTIONS:
                raise BenchError(f"counted {counted} of {hits * FUNCTIONS} calls")
            arm.append(q.said_ms("armed .* sites"))
            disarm.append(q.said_ms("disarmed"))
    finally:
        target.kill()
    b.detail["thousand_functions"] = {
        "arm_ms": arm,
        "disarm_ms": disarm,
        "interrupt_to_exit_ms": [round(x, 1) for x in outside],
        "memory_kib": memory,
        "map_bytes": q.doc["price"]["map_bytes"],
    }
    b.below("arm 1,000 functions", statistics.median(arm), 100, "ms")
    b.below("disarm 1,000 functions", statistics.median(disarm), 100, "ms")
    b.below("resident memory, 1,000 spans hit", round(memory["VmRSS"] / 1024, 1), 40, "MiB")
    b.state("kernel memory of the maps, same", round(q.doc["price"]["map_bytes"] / 2**20, 1), "MiB")


def thousand_bpftrace(b, folder):
    """Last of all: it goes on taking its probes away for a minute after it was killed."""
    if not b.bpftrace:
        return
    target = Target(many_functions(folder))
    say("1,000 functions, bpftrace")
    try:
        t = Bpftrace(target.pid, func_script(target.argv[0], "many_*"), 1, BPFTRACE_PATIENCE_S)
        took, note = round(t.outside_ms), "start included; killed, detaching not waited for"
        t.p.kill()
    except BenchError:
        took, note = None, f"given up after {BPFTRACE_PATIENCE_S} s"
    finally:
        target.kill()
    b.detail["thousand_functions"]["bpftrace_start_and_arm_ms"] = took
    b.detail["thousand_functions"]["bpftrace_note"] = note


# --- start ---------------------------------------------------------------------------------------


def big_binary(folder):
    """100 MB of functions, with symbols and unwinding tables as a compiler leaves them."""
    asm = os.path.join(folder, "big.s")
    src = os.path.join(folder, "big.c")
    with open(asm, "w") as f:
        f.write('.section .note.GNU-stack,"",@progbits\n.text\n')
        for i in range(BIG_FUNCTIONS):
            n = f"module_{i // 100}_function_{i}"
            f.write(
                f".globl {n}\n.type {n},@function\n{n}:\n.cfi_startproc\npush %rbx\n"
                f".cfi_def_cfa_offset 16\n.skip {BIG_SIZE - 3},0x90\npop %rbx\n"
                f".cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size {n},.-{n}\n"
            )
    with open(src, "w") as f:
        f.write(MAIN % (f"void one_function(void) {BODY}", "one_function();"))
    return compile_to(os.path.join(folder, "big"), src, asm)


def one_start(b, name, runs, path, mode, qargs, script, bar):
    target = Target(path, *mode)
    say(f"start to first armed probe: {name}")
    ready, outside, cpu, other, log = [], [], [], [], []
    try:
        for _ in range(runs):
            q = Qbpf(b.qbpf, target.pid, *qargs)
            ready.append(q.ready_ms)
            outside.append(round(q.outside_ms, 1))
            cpu.append(round(q.cpu_ms, 1))
            log = [x for x in q.log if " ms" in x]
            q.stop()
            if b.bpftrace:
                t = Bpftrace(target.pid, script, 1)
                other.append(round(t.outside_ms, 1))
                t.counted()
    finally:
        target.kill()
    # CPU time is what does not depend on how busy the machine is.
    b.detail[name] = {
        "ready_ms": ready,
        "spawn_to_ready_ms": outside,
        "cpu_ms": cpu,
        "bpftrace_spawn_to_ready_ms": other,
        "last_run": log,
    }
    b.below(
        name,
        statistics.median(outside),
        bar,
        "ms",
        statistics.median(other) if other else None,
    )
    b.state("  of which CPU time of its own", statistics.median(cpu), "ms")


def start(b, folder):
    probe = b.work("w_bench")
    one_start(
        b, "start to first armed probe", 5, probe, ["func"], ["-f", "bench_call"],
        func_script(probe), 100,
    )  # fmt: skip
    say("making a binary of 100 MB")
    big = big_binary(folder)
    one_start(
        b, "the same, 100 MB binary", 3, big, [], ["-f", "one_function"],
        func_script(big, "one_function"), 500,
    )  # fmt: skip


# --- nothing lost --------------------------------------------------------------------------------


def flat_out(b, seconds=10):
    say(f"2 threads flat out for {seconds} s")
    target = Target(b.work("w_bench"), "threads")
    try:
        q = Qbpf(b.qbpf, target.pid)
        did = int(target.go(seconds))
        q.stop()
    finally:
        target.kill()
    span = q.doc["spans"][0]
    tree = sum(n["count"] for n in q.doc["tree"])
    wrong = {k: span[k] for k in ("open", "abandoned", "orphan_ends") if span[k]}
    lost = q.doc["lost"]["events"]
    b.detail["flat_out"] = {
        "program": did,
        "qbpf": span["count"],
        "call_tree": tree,
        "lost": lost,
        "unpaired": wrong,
        "relocated": q.doc["probes"]["relocated"],
    }
    exact = did == span["count"] == tree and not lost and not wrong
    b.row(f"2 threads, {seconds} s: spans of {did} missing", did - span["count"], 0, "", exact)


# --- the document --------------------------------------------------------------------------------


class Bench:
    def __init__(self, args):
        self.build = os.path.abspath(args.build)
        self.rounds = args.rounds
        self.qbpf = os.path.join(self.build, "qbpf")
        self.bpftrace = shutil.which("bpftrace")
        self.rows, self.detail = [], {}

    def work(self, name):
        return os.path.join(self.build, "tests", name)

    def not_guarded(self, pid):
        """Why --returns guard would not be what is measured; None where it would."""
        cmd = [self.qbpf, "list", "--json", "-p", str(pid), "-f", "bench_call", "--returns=guard"]
        out = subprocess.run(cmd, capture_output=True, check=True)
        span = json.loads(out.stdout)["spans"][0]
        if span["returns"] == "guard":
            return None
        return f"not possible here, {span['returns']} instead: {span['returns_reason']}"

    def row(self, what, value, bar, unit, met, other=None):
        self.rows.append(
            {"what": what, "qbpf": value, "bpftrace": other, "unit": unit, "bar": bar, "met": met}
        )

    def ratio(self, what, mine, other, bar):
        r = round(mine / other, 3) if other else None
        self.row(what, mine, bar, "ns", r <= bar if other else None, other)
        self.rows[-1]["ratio"] = r

    def below(self, what, value, bar, unit, other=None):
        self.row(what, value, bar, unit, value < bar, other)

    def state(self, what, value, unit, other=None):
        self.row(what, value, None, unit, None, other)

    def price(self, what, mine, other=None):
        self.state(what, mine, "ns", other)
        if mine and other:
            self.rows[-1]["ratio"] = round(mine / other, 3)

    def host(self):
        version = None
        if self.bpftrace:
            out = subprocess.run(["bpftrace", "--version"], capture_output=True, text=True)
            version = out.stdout.strip()
        with open("/proc/cpuinfo") as f:
            cpu = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
        return {
            "kernel": platform.release(),
            "cpu": cpu[1] if cpu else platform.machine(),
            "cpus": os.cpu_count(),
            "bpftrace": version,
        }

    def table(self):
        print(f"{'':46}{'qbpf':>10}{'bpftrace':>10}{'ratio':>8}{'bar':>7}", file=sys.stderr)
        for r in self.rows:
            cells = [
                "-" if v is None else f"{v:,}" if isinstance(v, int) else f"{v:,.1f}"
                for v in (r["qbpf"], r["bpftrace"])
            ]
            ratio = f"{r['ratio']:.2f}" if r.get("ratio") else ""
            bar = "" if r["bar"] is None else f"{r['bar']:g}"
            met = {True: "met", False: "MISSED", None: ""}[r["met"]]
            print(
                f"{r['what'][:45]:46}{cells[0]:>10}{cells[1]:>10}{ratio:>8}{bar:>7}"
                f" {r['unit']:4}{met}",
                file=sys.stderr,
            )


def steps(b, folder):
    return [
        ("span", lambda: span_costs(b)),
        ("start", lambda: start(b, folder)),
        ("flat", lambda: flat_out(b)),
        ("thousand", lambda: thousand(b, folder)),
        ("thousand", lambda: thousand_bpftrace(b, folder)),
        *bench_trace.steps(b, folder, say),
    ]


def main():
    ap = argparse.ArgumentParser(description="qbpf's speed, next to bpftrace's, as JSON.")
    ap.add_argument("--build", default=os.environ.get("BUILD", os.path.join(ROOT, "build")))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--only", default="", help="span, start, flat, thousand, trace or record")
    args = ap.parse_args()
    if os.geteuid():
        sys.exit("bench: needs root")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    b = Bench(args)
    load, began = os.getloadavg()[0], time.monotonic()
    try:
        with tempfile.TemporaryDirectory(dir=b.build) as folder:
            for name, step in steps(b, folder):
                if args.only in name:
                    step()
    except (BenchError, OSError, subprocess.SubprocessError) as e:
        sys.exit(f"bench: {e}")
    doc = {
        "schema": "qbpf.bench/1",
        "host": b.host(),
        "load_average_before": round(load, 2),
        "rounds": b.rounds,
        "seconds": round(time.monotonic() - began, 1),
        "rows": b.rows,
        "detail": b.detail,
    }
    b.table()
    print(json.dumps(doc, indent=2))


if __name__ == "__main__":
    main()
