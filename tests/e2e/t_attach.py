#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf attach on live programs: exact counts, pairing, threads, ways out, the target unharmed."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

from harness import (
    BUILD,
    PATIENCE_S,
    Qbpf,
    Skip,
    Workload,
    attach_json,
    between,
    case,
    check,
    equal,
    main,
    runs,
    spans,
    summary,
    trace,
    tree_paths,
    work,
)


@case
def nested_functions():
    """outer (3 ms) calls inner (1 ms): exact counts, times, call tree"""
    doc, counts = trace([work("w_funcs"), "nest", 10], "-f", "outer", "-f", "inner")
    s = spans(doc)
    equal(s["outer"]["count"], counts["outer"], "outer")
    equal(s["inner"]["count"], counts["inner"], "inner")
    between(s["inner"]["min_ns"], 900_000, 50_000_000, "inner min")
    between(s["outer"]["min_ns"], 2_900_000, 80_000_000, "outer min")
    check(s["outer"]["sum_ns"] >= s["inner"]["sum_ns"], "outer >= inner")
    t = tree_paths(doc)
    equal(t["outer/inner"]["count"], counts["inner"], "inner under outer")
    check("inner" not in t, "inner is not a root")
    equal(
        t["outer"]["self_ns"],
        t["outer"]["sum_ns"] - t["outer/inner"]["sum_ns"],
        "self = total - children",
    )
    for sp in s.values():
        check(sp["min_ns"] <= sp["p50_ns"] <= sp["p90_ns"] <= sp["max_ns"], "percentiles in order")


@case
def fib_recursion():
    """fib(10): 177 calls, every one paired"""
    doc, _ = trace([work("w_funcs"), "fib", 10], "-f", "fib")
    s = spans(doc)["fib"]
    equal(s["count"], 177, "fib(10)")
    equal(s.get("open", 0), 0, "open")
    equal(s.get("orphan_ends", 0), 0, "orphans")


@case
def deep_recursion():
    """recursion deeper than the stack of frames: counted, never wrong"""
    doc, counts = trace([work("w_funcs"), "deep", 100], "-f", "deep", "-f", "small")
    s = spans(doc)["deep"]
    lost = doc["lost"]["by_probe"]["deep"]
    equal(s["count"] + lost, counts["deep"], "paired + counted as lost")
    equal(doc["lost"]["events"], lost, "lost in all")
    between(s["count"], 63, 64, "the frames that fit are all paired")


@case
def tail_calls():
    """tail calls: caller and callee both counted"""
    doc, counts = trace(
        [work("w_tail"), "tail", 1000], "-f", "tail_caller", "-f", "tail_target"
    )
    s = spans(doc)
    equal(s["tail_caller"]["count"], counts["tail_caller"], "tail_caller")
    equal(s["tail_target"]["count"], counts["tail_target"], "tail_target")


@case
def longjmp_loop():
    """longjmp out of six frames, 500 times: depth never creeps"""
    doc, counts = trace(
        [work("w_funcs"), "longjmp", 500], "-f", "catcher", "-f", "jumper", "-f", "small"
    )
    s = spans(doc)
    equal(s["catcher"]["count"], counts["catcher"], "catcher")
    equal(s["jumper"]["count"], 0, "no jumper ever returned")
    equal(s["jumper"]["abandoned"], counts["jumper"], "each is abandoned")
    equal(s["small"]["count"], 1, "small after it")
    check("small" in tree_paths(doc), "small is a root: nothing is left open above it")


@case
def longjmp_where_stacks_switch():
    """the same in a program that could switch stacks"""
    doc, counts = trace(
        [work("w_switch"), "longjmp", 500], "-f", "catcher", "-f", "jumper", "-f", "small"
    )
    s = spans(doc)
    equal(s["catcher"]["count"], counts["catcher"], "catcher")
    equal(s["jumper"]["count"], 0, "no jumper ever returned")
    equal(s["jumper"]["abandoned"] + s["jumper"]["open"], counts["jumper"], "each is accounted for")
    equal(s["small"]["count"], 1, "small after it")
    equal(doc["lost"]["events"], 0, "nothing is lost")


@case
def threads_exact():
    """8 threads, 20,000 calls each: every count exact"""
    doc, counts = trace([work("w_funcs"), "threads", 20000, 8], "-f", "small", "--returns", "ret")
    s = spans(doc)["small"]
    equal(s["count"], counts["small"], "small")
    equal(doc.get("lost", {}).get("events", 0), 0, "lost")


@case
def threads_200():
    """200 threads come and go"""
    doc, counts = trace([work("w_funcs"), "threads", 200, 200], "-f", "small")
    equal(spans(doc)["small"]["count"], counts["small"], "small")


@case
def markers_and_tree():
    """markers pair; perf-event links give the same"""
    for env in ({}, {"QBPF_FORCE_PERF_EVENT": "1"}):
        doc, counts = trace([work("w_process"), "ticks", 5000], qenv=env)
        s = spans(doc)["proc:tick"]
        equal(s["count"], counts["tick"], f"ticks {env}")
        equal(s.get("orphan_ends", 0), 0, "orphans")


@case
def exceptions_are_safe():
    """4,000 exceptions on 4 threads through traced functions: all caught, destructors run"""
    doc, counts = trace(
        [work("w_throw"), 1000, 4],
        "-f", "thrower", "-f", "crossed", "-f", "catching", "-f", "plain_leaf",
    )
    equal(counts["caught"], 4000, "caught")
    equal(counts["destroyed"], 4000, "destructors")
    s = spans(doc)
    equal(s["plain_leaf(int)"]["count"], counts["plain_leaf"], "plain_leaf")
    if "catching(int)" in s:
        equal(s["catching(int)"]["count"], 4000, "catching")
    for sp in s.values():
        check(sp["count"] <= 4000, f"{sp['name']} is not overcounted")


@case
def late_library():
    """a library opened after attach is armed when it appears"""
    lib = os.path.join(BUILD, "tests", "libplugin.so")
    with Workload([work("w_process"), "late", 300, lib]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.go()
        w.wait_for("opened")
        q.wait_err("newly mapped")
        w.go()
        counts = w.finish()
        doc = summary(q.finish())
        s = spans(doc)
        equal(s["plugin:work"]["count"], counts["plugin"], "plugin spans")
        equal(s["proc:tick"]["count"], 1, "the first tick")
        late = [n for n in doc["probes"]["notes"] if "after their code had been mapped" in n]
        equal(len(late), 1, f"that it may have run before: {late}")
        check(late[0].startswith("2 probes were armed up to "), late[0])
        check(" ms: what they did before is not counted" in q.err_text(), q.err_text())


@case
def opened_while_attaching():
    """a library opened between qbpf's look at the target and its hook in the linker is armed"""
    lib = os.path.join(BUILD, "tests", "libplugin.so")
    with Workload([work("w_process"), "late", 300, lib]) as w, attach_json(w.pid, "-v") as q:
        q.wait_err("discovered and checked")
        w.go()
        w.wait_for("opened")
        q.wait_err("newly mapped")
        q.wait_ready()
        w.go()
        counts = w.finish()
        equal(spans(summary(q.finish()))["plugin:work"]["count"], counts["plugin"], "plugin spans")


@case
def fork_in_span():
    """fork inside a span: parent exact, children untouched and not counted"""
    doc, counts = trace([work("w_process"), "fork", 50])
    s = spans(doc)
    equal(counts["children_ok"], 50, "children ended well")
    equal(s["proc:tick"]["count"], counts["tick_parent"], "parent's ticks")
    equal(s["proc:outer"]["count"], 1, "parent's outer")


@case
def follow_children():
    """--follow: the children's spans too; a child starts with an empty stack"""
    doc, counts = trace([work("w_process"), "fork", 50], "--follow")
    s = spans(doc)
    equal(s["proc:tick"]["count"], 100, "parent and children")
    equal(s["proc:outer"]["count"], 1, "outer")
    equal(s["proc:outer"]["orphan_ends"], 50, "the children's ends are orphans")


@case
def late_fork():
    """a library that forks is opened late: probes leave the nops that would kill its children"""
    lib = os.path.join(BUILD, "tests", "libplugin.so")
    with Workload([work("w_late_fork"), lib]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.go()
        w.wait_for("opened")
        q.wait_err("newly mapped")
        w.go()
        counts = w.finish()
        s = spans(summary(q.finish()))
        equal(counts["children_ok"], 10, "children that ended well")
        equal(s["late:tick"]["count"], 110, "ticks of the parent")


@case
def late_throw():
    """a library that throws is opened late: functions seen by uretprobes are seen another way"""
    lib = os.path.join(BUILD, "tests", "libthrower.so")
    with Workload([work("w_late_throw"), lib]) as w, attach_json(w.pid, "-f", "through") as q:
        q.wait_ready()
        w.go()
        w.wait_for("opened")
        q.wait_err("another way from here on")
        # until the probes are there again: the ends of new calls would be missed
        q.wait_err("planned anew")
        w.go()
        counts = w.finish()
        s = spans(summary(q.finish()))["through"]
        equal(counts["caught"], 100, "caught")
        equal(counts["cleaned"], 1, "clean-up handlers of the thread that was inside")
        equal(s["count"], 100, "calls that returned")
        equal(s["abandoned"], 101, "calls that were thrown out of")


@case
def exec_goes_on():
    """exec: the new image of the same process is traced"""
    doc, _ = trace_exec()
    between(spans(doc)["proc:tick"]["count"], 1, 201, "ticks over exec")


def trace_exec():
    with Workload([work("w_process"), "exec", 200]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.out = b""
        w.go()
        w.wait_for("ready")
        w.go()
        counts = w.finish()
        return summary(q.finish()), counts


@case
def thread_exit_in_span():
    """threads that end inside a span: abandoned, counted"""
    doc, counts = trace([work("w_process"), "inside", 200])
    # inside__begin has no partner marker: it is an instant
    s = spans(doc)
    equal(s["proc:inside__begin"]["count"], counts["inside"], "begins")


@case
def open_span_at_stop():
    """a span still open at the stop is reported as open, not in the histogram"""
    with Workload([work("w_process"), "sleep"]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.go()
        q.await_count("proc:outer", 1, "open")
        s = spans(summary(q.stop()))["proc:outer"]
        equal(s["count"], 0, "closed")
        equal(s["open"], 1, "open")
        check(w.p.poll() is None, "target goes on")


@case
def target_killed():
    """the target is killed: final report and exit code 0"""
    with Workload([work("w_process"), "busy"]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.go()
        q.await_count("proc:tick", 11)
        os.kill(w.pid, signal.SIGKILL)
        s = spans(summary(q.finish()))["proc:tick"]
        check(s["count"] > 10, "counted before")


@case
def attach_100_times():
    """attach to a busy loop 40 times: no negative, no creeping depth, target goes on"""
    with Workload([work("w_process"), "busy"]) as w:
        w.go()
        counted = 0
        for _ in range(40):
            with attach_json(w.pid, "-d", "0.05") as q:
                s = spans(summary(q.finish()))["proc:tick"]
                counted += s["count"]
                if not s["count"]:
                    continue  # a busy machine did not run the target in that time
                check(s.get("orphan_ends", 0) <= 1, "at most the first end is an orphan")
                check(s.get("open", 0) <= 1, "at most one open")
                between(s["max_ns"], s["min_ns"], 10**10, "max")
        check(counted > 0, "counted")
        check(w.p.poll() is None, "target goes on")


@contextlib.contextmanager
def own_copy(name):
    """A workload under a name that no other test's probes are at."""
    exe = f"{work(name)}.{os.getpid()}"
    shutil.copy(work(name), exe)
    try:
        yield exe
    finally:
        os.unlink(exe)


def links_at(exe):
    """The links of uprobes in one file, whoever holds them."""
    links = json.loads(subprocess.run(["bpftool", "link", "-j"], capture_output=True, check=True).stdout)
    return [x for x in links if exe in (x.get("path"), x.get("file"))]


@case
def sigkill_leaves_nothing():
    """SIGKILL of qbpf while armed: no link is left, the target goes on"""
    with own_copy("w_process") as exe, Workload([exe, "busy"]) as w:
        w.go()
        for delay in (0.0, 0.02, 0.05, 0.1, 0.3):
            with Qbpf("attach", "-p", w.pid) as q:
                if delay == 0.3:
                    q.wait_ready()
                    if not links_at(exe):
                        raise Skip("the kernel or bpftool does not say which file a link is at")
                time.sleep(delay)
                os.kill(q.p.pid, signal.SIGKILL)
                q.p.wait()
            check(w.p.poll() is None, "target goes on")
        end = time.monotonic() + PATIENCE_S
        left = links_at(exe)
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = links_at(exe)
        equal(left, [], "links left")
        check(runs(w.pid), "target runs")


def ticks_of(line):
    return spans(summary(line))["proc:tick"]["count"]


@case
def interval_and_usr1():
    """-i prints a line an interval; SIGUSR1 prints one now; the last is the final one"""
    with Workload([work("w_process"), "busy"]) as w:
        w.go()
        with attach_json(w.pid, "-i", "0.2") as q:
            q.wait_ready()
            lines = [q.line() for _ in range(4)]
            while not ticks_of(lines[-1]):
                lines.append(q.line())
            lines += q.stop().splitlines()
        with attach_json(w.pid, "-i", "1000") as q:
            q.wait_ready()
            asked = [json.dumps(q.snapshot()) for _ in range(2)]
            asked += q.stop().splitlines()
    equal(len(asked), 3, "two that were asked for, and the last")
    for told in (lines, asked):
        counts = [ticks_of(x) for x in told]
        equal(counts, sorted(counts), "counts grow")


@case
def json_file_and_plain():
    """--json=FILE writes the document there and the plain report on stdout"""
    path = os.path.join(BUILD, "tests", "summary.json")
    with Workload([work("w_process"), "ticks", 1000]) as w, Qbpf(
        "attach", "-p", w.pid, f"--json={path}"
    ) as q:
        q.wait_ready()
        w.go()
        w.finish()
        out = q.finish()
        check("proc:tick" in out, "plain report")
        check("\x1b" not in out, "no escape bytes")
        doc = summary(open(path).read())
        equal(spans(doc)["proc:tick"]["count"], 1000, "count in the file")
        os.unlink(path)


@case
def max_overhead():
    """--max-overhead detaches the dearest span and says so"""
    with Workload([work("w_process"), "busy"]) as w, attach_json(
        w.pid, "--max-overhead", "1"
    ) as q:
        q.wait_ready()
        w.go()
        q.wait_err("detached proc:tick")
        out = q.stop()
        first = spans(summary(out))["proc:tick"]["count"]
        check(first > 0, "counted until then")
        check(w.p.poll() is None, "target goes on")


@case
def max_overhead_keeps_the_tree():
    """spans detached by --max-overhead leave no frame in which others would nest"""
    with Workload(
        [work("w_strategy"), "--seconds", "600", "--rate", "500", "--threads", "2"]
    ) as w, attach_json(w.pid, "--max-overhead", "0.1") as q:
        q.wait_ready()
        q.wait_err("detached")
        time.sleep(2)  # for what would nest wrongly from then on
        doc = summary(q.stop())
        for path in tree_paths(doc):
            for outer, inner in (
                ("signal:alpha", "order:send"), ("risk:check", "signal:alpha"),
                ("risk:check", "order:send"), ("feed:parse", "book:update"),
                ("book:update", "risk:check"), ("feed:parse", "signal:alpha"),
            ):
                check(f"{outer}/{inner}" not in path, f"{path} never happens")


@case
def two_targets():
    """-p A,B: both processes in one session"""
    with Workload([work("w_process"), "ticks", 300]) as a, Workload(
        [work("w_process"), "ticks", 500]
    ) as b, attach_json(f"{a.pid},{b.pid}") as q:
        q.wait_ready()
        a.go()
        a.finish()
        b.go()
        b.finish()
        equal(spans(summary(q.finish()))["proc:tick"]["count"], 800, "both")


@case
def others_pay_nothing():
    """another process of the same program is not counted"""
    with Workload([work("w_process"), "ticks", 300]) as a, Workload(
        [work("w_process"), "ticks", 500]
    ) as b, attach_json(a.pid) as q:
        q.wait_ready()
        b.go()
        b.finish()
        a.go()
        a.finish()
        equal(spans(summary(q.finish()))["proc:tick"]["count"], 300, "only A")


main()
