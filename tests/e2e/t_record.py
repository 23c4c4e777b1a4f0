#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recording with -o, read back by the tests' own reader: everything that the kernel has counted is
in the file, or lost or left out by name, whatever the target, the ring, the disk and qbpf go
through."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import (PATIENCE_S, QBPF, ROOT, Failure, Qbpf, Skip, Workload, attach_json, case, check,
                     equal, main, spans, summary, work)

sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import qtrace  # noqa: E402: the path comes first

SPAN, ASIDE, KEYED, INSTANT, VALUE, OPEN = range(1, 7)
KIND, START, END, CHILD, ARG, SPAN_ID, NODE, DEPTH, BEGIN_TID = range(9)
KEY_SPAN = "order=rec:ask..rec:answer,key=arg0"


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="qbpf-record-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Read:
    """A trace by name: .events of each span, .counts, .threads ..."""

    def __init__(self, path):
        t = qtrace.Trace(path)
        self.path = path
        text = lambda b: b.decode(errors="replace")  # noqa: E731
        self.clean = t.clean
        self.meta = t.tables["meta"][0]
        self.names = [text(s[0]) for s in t.tables["spans"]]
        self.threads = t.tables["threads"]
        self.processes = t.tables["processes"]
        self.mappings = t.tables["mappings"]
        self.probes = t.tables["probes"]
        self.clocks = t.tables["clocks"]
        self.losses = t.tables["losses"]
        self.nodes = {n[0]: n for n in t.tables["nodes"]}
        self.aggregates = t.aggregates
        self.counts = dict(zip(self.names, t.tables["counts"]))
        self.events, self.by_thread, self.last_ns = {}, {}, 0
        for thread, e in t.events():
            self.events.setdefault(self.names[e[SPAN_ID] - 1], []).append((thread, e))
            self.by_thread.setdefault(thread, []).append(e)
            self.last_ns = max(self.last_ns, e[END])
        for thread, events in self.by_thread.items():
            nested = [e[END] for e in events if e[KIND] in (SPAN, INSTANT)]
            check(nested == sorted(nested), f"thread {thread}: not in the order of ends")
        for name, events in self.events.items():
            for _, e in events:
                check(e[START] <= e[END], f"{name} ends before it begins")
                check(e[CHILD] <= e[END] - e[START], f"{name}: children longer than itself")
                if e[NODE] not in (0, 0xFFFFFFFF):
                    equal(self.names[self.nodes[e[NODE]][2] - 1], name, "its node's span")

    def held(self, name):
        return sum(1 for _, e in self.events.get(name, []) if e[KIND] != OPEN)

    def open(self, name):
        return [(t, e) for t, e in self.events.get(name, []) if e[KIND] == OPEN]


def check_counts(trace, doc):
    """held + lost + skipped = counted, of each span, in the file and in the document."""
    check(trace.clean, "not closed")
    by_name = spans(doc)
    equal(doc["trace"]["held"], sum(map(trace.held, trace.names)), "trace.held")
    for name, (counted, streamed, lost, skipped) in trace.counts.items():
        equal(counted, streamed + lost + skipped, f"{name}: counted")
        equal(trace.held(name), streamed, f"{name}: held")
        if name not in by_name:
            equal(counted, 0, f"{name}: counted, though not in the document")
            continue
        s = by_name[name]
        equal(counted, s["count"], f"{name}: counted in file and document")
        equal((s["held"], s["lost"], s["skipped"]), (streamed, lost, skipped), f"{name}: document")
        told = [row for row in trace.losses if trace.names[row[0] - 1] == name]
        equal(sum(row[4] for row in told), lost, f"{name}: losses over time")
        equal(sum(row[5] for row in told), skipped, f"{name}: left out over time")
        for row in told:
            check(row[2] < row[3], f"{name}: a loss takes time")
    report = subprocess.run([QBPF, "report", "--json", trace.path], capture_output=True, check=True)
    for s in json.loads(report.stdout)["spans"]:
        live = by_name.get(s["name"], {})
        for key in ("held", "lost", "skipped", "open", "abandoned", "orphan_ends"):
            equal(live.get(key), s.get(key) if live else None, f"{s['name']}.{key}: live and report")


def record(argv, *args, go=True, env=None):
    """Runs the workload to its end under qbpf -o; (trace, document, counts, what qbpf said)."""
    with folder() as d:
        path = os.path.join(d, "t.qbpf")
        with Workload(argv) as w:
            with attach_json(w.pid, "-o", path, *args, env=env) as q:
                q.wait_ready()
                if go:
                    w.go()
                counts = w.finish()
                doc = summary(q.finish())
                trace = Read(path)
                check_counts(trace, doc)
                return trace, doc, counts, q.err_text(), w.pid


def both_ways(test):
    for env in ({}, {"QBPF_FORCE_PERF_EVENT": "1"}):
        test(env)


@case
def all_kinds():
    """every kind of marker is recorded, by both kinds of links, with what the trace says of itself"""

    def run(env):
        n = 500
        before = time.monotonic_ns()
        # fmt: off
        t, doc, counts, _, pid = record(
            [work("w_record"), "mixed", n], "-u", "rec:outer*", "-u", "rec:inner*", "-u",
            "rec:depth*", "-u", "rec:beat", "-s", KEY_SPAN, env=env)
        # fmt: on
        for name in ("rec:outer", "rec:inner", "rec:depth", "rec:beat"):
            equal(t.held(name), counts[name], name)
        equal(t.held("order"), n, "order")
        equal(doc["trace"]["lost"], 0, "lost")
        kinds = {name: {e[KIND] for _, e in ev} for name, ev in t.events.items()}
        equal(
            kinds,
            {
                "rec:outer": {SPAN},
                "rec:inner": {SPAN},
                "rec:depth": {VALUE},
                "rec:beat": {INSTANT},
                "order": {KEYED},
            },
            "kinds",
        )
        signed = lambda v: v - (1 << 64) if v >> 63 else v  # noqa: E731
        equal([signed(e[ARG]) for _, e in t.events["rec:depth"]], list(range(-5, n - 5)), "values")
        equal([e[ARG] for _, e in t.events["order"]], list(range(n)), "keys")
        equal({e[BEGIN_TID] for _, e in t.events["order"]}, {pid}, "who began them")
        equal({e[DEPTH] for _, e in t.events["rec:outer"]}, {0}, "depth of outer")
        equal({e[DEPTH] for _, e in t.events["rec:inner"]}, {1}, "depth of inner")
        by_name = spans(doc)
        for name in ("rec:outer", "rec:inner", "order"):
            total = sum(e[END] - e[START] for _, e in t.events[name])
            equal(total, by_name[name]["sum_ns"], f"{name}: sum of durations")
        children = sum(e[CHILD] for _, e in t.events["rec:outer"])
        equal(children, by_name["rec:inner"]["sum_ns"], "time in outer's children")
        equal(len(t.threads), 1, "threads")
        equal(t.threads[0][:3], (pid, pid, b"w_record"), "the thread")
        check(t.threads[0][3] <= t.events["rec:outer"][0][1][START], "its start")
        check(t.threads[0][4] >= t.last_ns, "its end")
        equal(len(t.processes), 1, "processes")
        equal(t.processes[0][:2], (pid, b"w_record"), "the process")
        check(t.processes[0][2].endswith(b"/w_record"), "its program")
        check(t.processes[0][4] >= t.threads[0][4], "the process ends last")
        exe = [m for m in t.mappings if m[0] == t.processes[0][2]]
        equal(len(exe), 1, "the program's mapping")
        ids = subprocess.run(["readelf", "-n", exe[0][0]], capture_output=True, text=True)
        check(f"Build ID: {exe[0][1].decode()}" in ids.stdout and exe[0][1], "its build ID")
        check(exe[0][3] < exe[0][4], "where it is mapped")
        equal({t.mappings[p[1]][0] for p in t.probes}, {exe[0][0]}, "where the probes are")
        check(all(p[3] == 1 for p in t.probes) and len(t.probes) >= 8, "armed probes")
        check(b"attach -p" in t.meta[1] and b"-u 'rec:outer*'" in t.meta[1], "command line")
        equal(t.meta[5].decode(), os.uname().nodename, "host name")
        check(before < t.meta[7] < time.monotonic_ns(), "begin of the recording")
        check(abs(t.meta[8] - t.meta[7] - (time.time_ns() - time.monotonic_ns())) < 10**9, "date")
        check(any(t.meta[13:]), "prices")
        check(len(t.clocks) >= 2, "clocks")
        for mono, real, boot, error in t.clocks:
            check(t.meta[7] <= mono and real > boot >= mono and error < 10**9, "a clock")
        check(len(t.aggregates) > 100, "aggregates")

    both_ways(run)


@case
def tiny_ring():
    """a million spans into a ring of 4 KiB: what is lost is counted exactly, the histogram is whole"""
    n = 1_000_000
    t, doc, _, err, _ = record([work("w_record"), "burst", n], "--ring", "4K", "--plain")
    s = spans(doc)["rec:span"]
    equal(s["count"], n, "counted")
    equal(sum(b[2] for b in s["histogram"]), n, "in the histogram")
    check(s["lost"] > 0, "nothing was lost")
    equal(s["lost"], n - t.held("rec:span"), "lost")
    equal(doc["lost"]["by_source"]["stream"], s["lost"], "lost by the stream")
    equal(doc["lost"]["events"], 0, "lost to the figures")
    notes = [x for x in doc["probes"]["notes"] if x.startswith("recorded ")]
    equal(len(notes), 1, f"notes {doc['probes']['notes']}")
    check(f"lost {s['lost']}: the ring was full" in notes[0], notes[0])
    check(f"recorded {t.held('rec:span')} spans" in notes[0], notes[0])
    del err


@case
def whole():
    """300,000 spans in a burst with the ring's default size: none is lost"""
    n = 300_000
    t, doc, _, _, _ = record([work("w_record"), "burst", n])
    equal(t.held("rec:span"), n, "held")
    equal(doc["trace"]["lost"], 0, "lost")


@case
def names_of_threads():
    """200 threads, one after the other: each has its own name and life time"""
    t, _, _, _, pid = record([work("w_record"), "threads", 200, 5])
    equal(len(t.threads), 200, "threads")
    for i, (tgid, _, name, start, end) in enumerate(t.threads):
        equal((tgid, name), (pid, f"worker-{i}".encode()), "thread")
        events = t.by_thread[i]
        equal(len(events), 5, f"spans of thread {i}")
        check(start <= events[0][START] and events[-1][END] <= end, f"life of thread {i}")


@case
def reused_tid():
    """a tid that is used again is another thread"""
    t, _, counts, _, _ = record([work("w_record"), "reuse", 40])
    if not counts["reused"]:
        raise Skip("this kernel gives no tid on request")
    equal(len(t.threads), 40, "threads")
    check(len({row[1] for row in t.threads}) < 40, "no tid was used twice")
    for i in range(40):
        equal(t.threads[i][2], f"worker-{i}".encode(), "name")
        equal(len(t.by_thread[i]), 3, "spans")
        check(t.threads[i][4] >= t.by_thread[i][-1][END], "end")


@case
def forked_children():
    """--follow: children are processes of their own, with their spans and without the parent's"""
    n = 20
    t, _, counts, _, pid = record([work("w_process"), "fork", n], "--follow")
    equal(counts["children_ok"], n, "children that ended well")
    equal(t.held("proc:tick"), 2 * n, "ticks")
    tgids = [row[0] for row in t.processes]
    equal(len(set(tgids)), n + 1, "processes")
    equal(tgids[0], pid, "the first process")
    check(all(row[4] for row in t.processes), "ends of processes")
    per = {}
    for thread, e in t.events["proc:tick"]:
        per.setdefault(t.threads[thread][0], []).append(e[DEPTH])
    equal(per.pop(pid), [1] * n, "the parent's ticks")
    equal(set(map(tuple, per.values())), {(0,)}, "the children's ticks")


@case
def opened_library():
    """a library that is opened later adds its spans and its mapping"""
    lib = work("libplugin.so")
    with folder() as d, Workload([work("w_process"), "late", 300, lib]) as w:
        path = os.path.join(d, "t.qbpf")
        with attach_json(w.pid, "-o", path) as q:
            q.wait_ready()
            w.go()
            w.wait_for("opened")
            q.wait_err("newly mapped")
            w.go()
            counts = w.finish()
            doc = summary(q.finish())
        t = Read(path)
        check_counts(t, doc)
    equal(t.held("plugin:work"), counts["plugin"], "the library's spans")
    at = [m for m in t.mappings if m[0].decode().endswith("libplugin.so")]
    equal(len(at), 1, "its mapping")
    check(at[0][1], "its build ID")
    late = [p for p in t.probes if t.names[p[0] - 1] == "plugin:work"]
    equal({t.mappings[p[1]][0] for p in late}, {at[0][0]}, "its probes")


def open_spans(end):
    """Three threads hold two spans each; `end` ends it: (trace, document)."""
    with folder() as d, Workload([work("w_record"), "open", 3]) as w:
        path = os.path.join(d, "t.qbpf")
        with attach_json(w.pid, "-o", path) as q:
            q.wait_ready()
            w.go()
            w.wait_for("open\n")
            doc = end(w, q)
        t = Read(path)
        check_counts(t, doc)
    equal(t.held("rec:beat"), 3, "instants")
    equal(t.held("rec:outer") + t.held("rec:inner"), 0, "closed spans")
    for name, depth in (("rec:outer", 0), ("rec:inner", 1)):
        rows = t.open(name)
        equal(len({thread for thread, _ in rows}), 3, f"threads that hold {name}")
        equal(len(rows), 3, f"open {name}")
        for thread, e in rows:
            equal(e[DEPTH], depth, f"depth of {name}")
            ended = t.threads[thread][4]
            check(e[END] == ended if ended else e[END] >= t.last_ns, f"end of {name}")
    return t, doc


@case
def open_at_stop():
    """spans that are open when the recording stops are marked, and end with it"""
    t, doc = open_spans(lambda w, q: summary(q.stop()))
    equal([spans(doc)[n]["open"] for n in ("rec:outer", "rec:inner")], [3, 3], "open")
    check(not any(row[4] for row in t.threads), "threads that go on have no end")


@case
def open_when_killed():
    """spans of a target that is killed are marked, and end with their threads"""

    def kill(w, q):
        w.p.kill()
        w.p.wait()
        return summary(q.finish())

    t, doc = open_spans(kill)
    equal([spans(doc)[n]["abandoned"] for n in ("rec:outer", "rec:inner")], [3, 3], "abandoned")
    check(all(row[4] for row in t.threads), "ends of threads")
    check(t.processes[0][4] >= max(row[4] for row in t.threads), "end of the process")


@case
def sampled():
    """--sample 10: one tree in ten, whole, and the rest left out by number"""
    n = 2000
    args = ("-u", "rec:outer*", "-u", "rec:inner*", "-u", "rec:beat", "--sample", "10")
    t, doc, _, _, _ = record([work("w_record"), "mixed", n], *args)
    for name in ("rec:outer", "rec:inner", "rec:beat"):
        equal(t.held(name), n // 10, name)
        equal(spans(doc)[name]["skipped"], n - n // 10, f"{name} left out")
        equal(spans(doc)[name]["count"], n, f"{name} counted")
    equal(t.meta[9], 10, "what the trace says")


@case
def slow_trees():
    """--slow: the trees of slow spans and nothing else, as many as the kernel has seen"""

    def run(env):
        argv = [work("w_record"), "slow", 300, 50]
        t, doc, counts, _, _ = record(argv, "--slow", "rec:outer>10ms", env=env)
        outer = spans(doc)["rec:outer"]
        check(outer["over"] >= counts["naps"] == 6, f"over the limit: {outer['over']}")
        equal(t.held("rec:outer") + outer["lost"], outer["over"], "slow spans")
        for name in ("rec:outer", "rec:inner", "rec:beat"):
            equal(t.held(name), outer["over"], f"{name} in slow trees")
        check(all(e[END] - e[START] > 10**7 for _, e in t.events["rec:outer"]), "a fast one")
        equal(outer["count"], 300, "counted")
        equal(t.meta[10], b"rec:outer>10ms", "what the trace says")
        t, doc, _, said, _ = record(argv, "--slow", "outer>10ms", "--slow", "iner>1us", env=env)
        check(t.held("rec:outer") >= 6, "a name without its provider")
        equal(t.held("rec:outer"), spans(doc)["rec:outer"]["over"], "slow spans, by the short name")
        check("--slow iner>1us" in said and "did you mean inner" in said, f"matches nothing: {said}")
        check("--slow outer" not in said, said)

    both_ways(run)


@case
def slow_keyed():
    """--slow of a keyed span takes the span itself, and nothing that ran meanwhile"""
    n = 300
    args = ("-u", "rec:outer*", "-u", "rec:beat", "-s", KEY_SPAN, "--slow", "order>=1ns")
    t, doc, _, _, _ = record([work("w_record"), "mixed", n], *args)
    equal(t.held("order"), n, "order")
    equal(spans(doc)["order"]["over"], n, "over the limit")
    equal((t.held("rec:outer"), t.held("rec:beat")), (0, 0), "what is not watched")
    # Fast ones are left out, not lost, whether or not their thread has watched spans of its own.
    for more in ((), ("--slow", "rec:outer>100s")):
        args = ("-u", "rec:outer*", "-u", "rec:beat", "-s", KEY_SPAN, "--slow", "order>100s", *more)
        _, doc, _, _, _ = record([work("w_record"), "mixed", n], *args)
        order = spans(doc)["order"]
        equal((order["lost"], order["skipped"]), (0, n), "fast orders: lost, left out")


@case
def exec_program():
    """exec: what comes after is another thread of the trace, in the same process"""
    n = 50
    t, _, _, _, pid = record([work("w_process"), "exec", n])
    equal(t.held("proc:tick"), n + 1, "ticks")
    equal([row[:2] for row in t.threads], [(pid, pid)] * 2, "threads")
    equal([len(t.by_thread[i]) for i in (0, 1)], [1, n], "ticks of each")
    check(t.threads[0][4] <= t.threads[1][3], "one after the other")
    equal([row[0] for row in t.processes], [pid], "processes")
    equal(t.processes[0][1], b"exe", "the process' name after exec")


@case
def killed_qbpf():
    """SIGKILL in the middle: the target goes on, and the file is good up to a second before"""
    with folder() as d, Workload([work("w_strategy"), "--seconds", "600"]) as w:
        path = os.path.join(d, "t.qbpf")
        with Qbpf("attach", "-p", w.pid, "-o", path, stdout=subprocess.DEVNULL) as q:
            q.wait_ready()
            time.sleep(7)
            killed = time.monotonic_ns()
            q.p.kill()
            q.p.wait()
        check(w.p.poll() is None, "the target has ended")
        t = Read(path)
        check(not t.clean, "closed?")
        check(t.held("strategy:tick") > 0, "no spans")
        # Written each second, if qbpf gets to run; far less than all that there was.
        check(killed - t.last_ns < 5_000_000_000, f"{(killed - t.last_ns) / 1e9} s are missing")
        equal(t.counts, {}, "counts")


@contextlib.contextmanager
def small_disk(size):
    with folder() as d:
        argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "qbpf-test", d]
        if subprocess.run(argv, capture_output=True).returncode:
            raise Skip("tmpfs cannot be mounted")
        try:
            yield d
        finally:
            subprocess.run(["umount", d], check=True)


@case
def full_disk():
    """a full disk ends the recording, says so and nothing else: figures whole, exit code 1"""
    n = 600_000
    with small_disk("256k") as d, Workload([work("w_record"), "burst", n]) as w:
        path = os.path.join(d, "t.qbpf")
        with attach_json(w.pid, "-o", path) as q:
            q.wait_ready()
            w.go()
            counts = w.finish()
            doc = summary(q.finish(code=1))
        t = Read(path)
    check(not t.clean, "closed?")
    s = spans(doc)["rec:span"]
    equal(s["count"], counts["rec:span"], "counted")
    check(0 < t.held("rec:span") < n, f"held {t.held('rec:span')}")
    equal(s["held"], t.held("rec:span"), "held")
    equal(s["held"] + s["lost"] + s["skipped"], n, "accounted for")
    check("No space left" in doc["trace"]["fault"], doc["trace"]["fault"])
    equal(q.err_text().count("is incomplete"), 1, "said once")
    check("No space left" in q.err_text(), q.err_text())


@case
def deleted_meanwhile():
    """a file that is deleted while it is written: exit code 1, and said so"""
    with folder() as d, Workload([work("w_record"), "burst", 1000]) as w:
        path = os.path.join(d, "t.json")
        with attach_json(w.pid, "-o", path) as q:
            q.wait_ready()
            os.unlink(path + ".partial.qbpf")
            w.go()
            w.finish()
            doc = summary(q.finish(code=1))
        equal(doc["trace"]["file"], path + ".partial.qbpf", "the file that there was")
        check("is incomplete: it was deleted meanwhile" in q.err_text(), q.err_text())
        equal(os.listdir(d), [], "files")


@case
def full_disk_run():
    """run keeps to its child when the disk is full: the child ends by itself, qbpf with 1"""
    with small_disk("64k") as d:
        argv = ["run", "--json", "-o", os.path.join(d, "t.qbpf"), "--"]
        q = subprocess.run([os.path.join(os.path.dirname(work("x")), "..", "qbpf"), *argv,
                            work("w_record"), "burst", "600000"],
                           input=b"go\n", capture_output=True, timeout=600)  # fmt: skip
    equal(q.returncode, 1, f"exit code ({q.stderr.decode()})")
    check(b"count rec:span 600000" in q.stdout, "the child's end")


@case
def stops():
    """-d and SIGINT close the file, with a target that never stops"""
    for args, end in ((("-d", "1"), None), ((), signal.SIGINT)):
        with folder() as d, Workload([work("w_process"), "busy"]) as w:
            w.go()
            path = os.path.join(d, "t.qbpf")
            with attach_json(w.pid, "-o", path, "--sample", "500", *args) as q:
                q.wait_ready()
                if end:
                    q.await_count("proc:tick", 1)
                    q.p.send_signal(end)
                doc = summary(q.finish())
            check(w.p.poll() is None, "the target has ended")
            t = Read(path)
            check_counts(t, doc)
            check(t.held("proc:tick") > 0, "ticks")


@case
def stopped_in_flight():
    """two threads flat out when it stops: not one span between counted and recorded"""
    rows = ((), ("--ring", "4K"), ("--slow", "bench:span>1us"), ("--sample", "3"))
    for i, args in enumerate(rows):
        env = {"QBPF_FORCE_PERF_EVENT": "1"} if i % 2 else {}
        with folder() as d, Workload([work("w_bench"), "threads"]) as w:
            path = os.path.join(d, "t.qbpf")
            with attach_json(w.pid, "-u", "bench:*", "-o", path, *args, env=env) as q:
                q.wait_ready()
                w.go("go 600")
                q.await_count("bench:span", 1001)
                doc = summary(q.stop())
        t, s = doc["trace"], doc["spans"][0]
        check(s["count"] > 1000, f"{s['count']} spans")
        equal(t["held"] + t["lost"] + t["skipped"], s["count"], f"{args}: accounted for")


@case
def run_recorded():
    """run -o records from the first instruction, and passes the child's status on"""
    with folder() as d:
        path, doc = os.path.join(d, "t.qbpf"), os.path.join(d, "t.json")
        with Qbpf("run", "--json=" + doc, "-o", path, "--", work("w_record"), "mixed", 200) as q:
            q.finish()
        with open(doc, encoding="utf-8") as f:
            doc = summary(f.read())
        t = Read(path)
        check_counts(t, doc)
        equal(t.held("rec:outer"), 200, "rec:outer")
        with Qbpf("run", "-o", path, "--", work("w_process"), "exit", 7) as q:
            q.finish(code=7)
        equal(Read(path).clean, True, "closed")


@case
def converted():
    """-o FILE.json, .pftrace: made of the recording, which is then taken away"""
    with folder() as d:
        for ext in ("json", "pftrace"):
            path = os.path.join(d, "t." + ext)
            with Workload([work("w_record"), "mixed", 100]) as w:
                with Qbpf("attach", "-p", w.pid, "-o", path) as q:
                    q.wait_ready()
                    w.go()
                    w.finish()
                    q.finish()
            check(os.path.getsize(path) > 1000, path)
            check(f"wrote {path}" in q.err_text(), q.err_text())
        equal(sorted(os.listdir(d)), ["t.json", "t.pftrace"], "files")


@case
def existing_file():
    """an existing file is replaced; one line before anything is armed when it cannot be"""
    with folder() as d, Workload([work("w_record"), "mixed", 10]) as w:
        os.mkdir(os.path.join(d, "dir"))
        os.mkfifo(os.path.join(d, "fifo"))
        rows = (
            ("dir", "is a directory"),
            ("fifo", "is no regular file"),
            ("none/t.qbpf", "No such file or directory"),
            ("/dev/null", "is no regular file"),
            ("dir/../fifo/t.qbpf", "Not a directory"),
        )
        for name, why in rows:
            with Qbpf("attach", "-p", w.pid, "-o", os.path.join(d, name)) as q:
                q.finish(code=1)
            check(why in q.err_text() and "ready" not in q.err_text(), q.err_text())
            equal(len(q.err_text().splitlines()), 1, q.err_text())
        path = os.path.join(d, "t.qbpf")
        with open(path, "wb") as f:
            f.write(b"x" * 1_000_000)
        with attach_json(w.pid, "-o", path) as q:
            q.wait_ready()
            w.go()
            w.finish()
            doc = summary(q.finish())
        check_counts(Read(path), doc)


@case
def same_file_twice():
    """two recordings into one file: the second ends with one line, the first is whole"""
    n = 20000
    with folder() as d:
        for name in ("t.qbpf", "t.json"):
            path = os.path.join(d, name)
            with Workload([work("w_record"), "burst", n]) as w, attach_json(w.pid, "-o", path) as q:
                q.wait_ready()
                with Qbpf("attach", "-p", w.pid, "-o", path) as second:
                    second.finish(code=1)
                check("another recording is being written" in second.err_text(), second.err_text())
                equal(len(second.err_text().splitlines()), 1, second.err_text())
                w.go()
                w.finish()
                doc = summary(q.finish())
            equal(spans(doc)["rec:span"]["held"], n, "held")
            if name == "t.qbpf":
                check_counts(Read(path), doc)
        equal(sorted(os.listdir(d)), ["t.json", "t.qbpf"], "files")


@case
def intervals_of_instants():
    """four threads that hit one instant: the live intervals and those of the report are the same"""
    with folder() as d:
        path = os.path.join(d, "t.qbpf")
        with Workload([work("w_record"), "beats", 4, 5000]) as w:
            with attach_json(w.pid, "-u", "rec:beat", "-o", path) as q:
                q.wait_ready()
                w.go()
                counts = w.finish()
                live = spans(summary(q.finish()))["rec:beat"]
        report = subprocess.run([QBPF, "report", "--json", path], capture_output=True, check=True)
        later = spans(json.loads(report.stdout))["rec:beat"]
        equal((live["count"], live["lost"]), (counts["rec:beat"], 0), "hits")
        for key in ("count", "sum_ns", "min_ns", "max_ns", "histogram"):
            check(key in live["interval"], key)
            equal(later["interval"].get(key), live["interval"][key], f"interval.{key}")


# What is not recorded to, and a word of what to do instead.
NOT_RECORDINGS = {".txt": "qbpf report", ".html": "--html=", ".HTM": "--html=", ".xml": "--junit",
                  ".perfetto-trace": ".pftrace", ".pb": ".pftrace", ".qbpf.gz": ".qbpf", ".zst": ".qbpf"}


@case
def names_of_other_formats():
    """-o NAME with the suffix of what attach does not write is refused with what to do; others are names"""
    with folder() as d:
        for suffix, hint in NOT_RECORDINGS.items():
            with Qbpf("attach", "-p", os.getpid(), "-o", os.path.join(d, "out" + suffix)) as q:
                q.finish(code=2)
            check("out" + suffix in q.err_text() and hint in q.err_text(), f"{suffix}: {q.err_text()}")
        equal(os.listdir(d), [], "files")
        for name in ("plain", "out.1", "out.txt.qbpf"):
            path = os.path.join(d, name)
            with Qbpf("run", "--plain", "-o", path, "--", work("w_record"), "mixed", 10) as q:
                q.finish()
            with open(path, "rb") as f:
                equal(f.read(5), b"\x89qbpf", f"{name} is a recording")


@case
def ring_sizes():
    """--ring takes a size in any of the usual spellings; the file says how large it was"""
    for size in ("65536", "64K", "64k", "64KB", "64kb", "64KiB", "65536B", "40K"):
        t, *_ = record([work("w_record"), "mixed", 10], "-u", "rec:beat", "--ring", size)
        equal(t.meta[11], 65536, size)
    for size, n in (("1MB", 1 << 20), ("1MiB", 1 << 20), ("1GB", 1 << 30), ("1GiB", 1 << 30)):
        t, *_ = record([work("w_record"), "mixed", 10], "-u", "rec:beat", "--ring", size)
        equal(t.meta[11], n, size)


@case
def usage():
    """what -o and its companions do not take is one line and exit code 2"""
    with folder() as d:
        out = os.path.join(d, "t.qbpf")
        rows = (
            ("--ring", "1M"),
            ("--sample", "2"),
            ("--slow", "a>1us"),
            ("--cpu", "0"),
            ("-o", out, "--ring", "2K"),
            ("-o", out, "--ring", "2G"),
            ("-o", out, "--ring", "8Q"),
            ("-o", out, "--ring", "8iB"),
            ("-o", out, "--ring", "8MBB"),
            ("-o", out, "--ring", "8 MB"),
            ("-o", out, "--ring", "18014398509481985K"),
            ("-o", out, "--ring", "-8M"),
            ("-o", out, "--ring", ""),
            ("-o", out, "--sample", "0"),
            ("-o", out, "--sample", "x"),
            ("-o", out, "--cpu", "-1"),
            ("-o", out, "--slow", "tick"),
            ("-o", out, "--slow", "tick>50"),
            ("-o", out, "-o", out),
            ("-o", ""),
            ("-o", "-"),
            ("-o", out + ".txt"),
            ("-o", out, "--json=" + out),
            ("-o", out + ".json", "--json=" + d + "/./t.qbpf.json"),
            ("-o", out, "--json="),
        )
        for args in rows:
            with Qbpf("attach", "-p", os.getpid(), *args) as q:
                q.finish(code=2)
            equal(len(q.err_text().splitlines()), 1, f"{args}: {q.err_text()}")
        with Workload([work("w_record"), "mixed", 1]) as w:
            with Qbpf("attach", "-p", w.pid, "-o", out, "--cpu", "1023") as q:
                q.finish(code=1)
            check("--cpu 1023" in q.err_text(), q.err_text())
        equal(os.listdir(d), [], "files")


@case
def pinned():
    """--cpu N: qbpf's threads run there and nowhere else, and the target is left alone"""
    cpu = max(os.sched_getaffinity(0))
    with folder() as d, Workload([work("w_process"), "busy"]) as w:
        before = os.sched_getaffinity(w.pid)
        w.go()
        args = ("-o", os.path.join(d, "t.qbpf"), "--sample", "1000", "--cpu", cpu)
        with attach_json(w.pid, *args) as q:
            q.wait_ready()
            tids = os.listdir(f"/proc/{q.p.pid}/task")
            check(len(tids) >= 3, f"threads {tids}")
            for tid in tids:
                with contextlib.suppress(ProcessLookupError):  # one that was busy at the start only
                    equal(os.sched_getaffinity(int(tid)), {cpu}, "affinity")
            equal(os.sched_getaffinity(w.pid), before, "the target's affinity")
            q.stop()


@case
def away_from_target():
    """by itself qbpf keeps off the CPU that the target is busy on"""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU")
    with folder() as d, Workload([work("w_process"), "busy"]) as w:
        os.sched_setaffinity(w.pid, {cpus[0]})
        w.go()
        args = ("-o", os.path.join(d, "t.qbpf"), "--sample", "1000")
        with attach_json(w.pid, *args) as q:
            q.wait_ready()
            end = time.monotonic() + PATIENCE_S
            while os.sched_getaffinity(q.p.pid) != set(cpus[1:]):
                if time.monotonic() > end:
                    raise Failure(f"still on {os.sched_getaffinity(q.p.pid)}")
                time.sleep(0.1)
            q.stop()


if __name__ == "__main__":
    main()
