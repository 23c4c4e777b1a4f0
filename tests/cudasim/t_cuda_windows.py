#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The time in which the agent records and the time in which spans are seen are not the same. What lies in one of
them only is in no figure that puts both together, and is counted: held + outside is all, in the
summary and in the report of the recording."""

import json
import signal
import subprocess

import agent_session as a
import gpu_truth
from harness import QBPF, Failure, Qbpf, Workload, case, check, equal, spans, summary

TICK = "strategy:tick"


def report(trace, *options):
    r = subprocess.run([QBPF, "report", *options, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(r.returncode, 0, f"qbpf report: {r.stderr}")
    return r.stdout


def attached(pid, trace):
    """A qbpf that is at work. On a crowded machine it may find no thread of a busy target that can be stopped, and
    says so: tried again."""
    for _ in range(20):
        q = Qbpf("attach", "-p", pid, "--cuda", "agent", "--json", "-o", trace)
        try:
            q.wait_err("CUDA agent: on")
        except Failure:
            if "no thread of process" not in q.err_text():
                raise
            q.p.wait()
        else:
            q.wait_ready()
            return q
    raise Failure("no thread can be stopped, 20 times")


def launches_of(truth):
    return [c for c in truth["runtime"] if c["name"] == "cudaLaunchKernel"]


def row(gpu, name=TICK):
    return {s["name"]: s for s in gpu["spans"]}[name]


def check_ticks(doc):
    """Each tick that was counted is in the GPU's figures with both of its launches, or told to be outside."""
    tick = row(doc["gpu"])
    outside = tick.get("outside", {})
    equal(tick["count"] + sum(outside.values()), spans(doc)[TICK]["count"], f"ticks: {tick}")
    equal(tick["launches"], 2 * tick["count"], "launches in the ticks that were seen")
    check("cut" not in tick, f"cut: {tick}")
    return tick, outside


def check_launches(doc):
    """Launches by where they were are those that are held."""
    gpu = doc["gpu"]
    held = sum(c["count"] for c in gpu["calls"] if c["class"] == "launch")
    equal(sum(gpu["launches"].values()), held, f"launches: {gpu['launches']}")
    return gpu["launches"]


def said(text, words, n):
    equal(f"  {words}: {n}\n" in text, n > 0, f"'{words}: {n}' in the report")


def same(live, later):
    for key in ("agents", "probes", "launches", "outside", "spans"):
        equal(live["gpu"].get(key), later["gpu"].get(key), f"gpu.{key} of the summary, and of the report")


@case
def in_the_middle_of_a_life():
    "attached to a strategy that runs, and let go of it while it runs"
    trace, log = a.fresh(".qbpf"), a.fresh(".csv")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "500", "--wait"], env=a.env(log)) as w:
        w.go()
        seen = a.Grower(log)
        seen.await_more("kernel", 100)
        with attached(w.pid, trace) as q:
            seen.await_more("kernel", 1000)
            live = summary(q.stop())
        seen.await_more("kernel", 50)
        w.p.send_signal(signal.SIGTERM)
        w.finish()
    later, text, truth = json.loads(report(trace, "--json")), report(trace), launches_of(gpu_truth.read(log))
    same(live, later)
    for doc in (live, later):
        gpu, (tick, outside) = doc["gpu"], check_ticks(doc)
        check(tick["count"] > 100, f"ticks: {tick}")
        launches = check_launches(doc)
        agent, probes = gpu["agents"][0], gpu["probes"]
        equal((agent["pid"], agent["from_start"], agent["end"]), (w.pid, False, "asked"), "the agent")
        check(agent["to_ns"] >= probes["to_ns"], "the agent leaves last")
        # All that the strategy launched while both were there is held, and was seen in a tick: but
        # for ticks that were open as one of them came or went.
        begin = max(agent["from_ns"], probes["from_ns"])
        both = sum(begin <= c["start"] <= probes["to_ns"] for c in truth)
        seen = launches["in_spans"] + launches["in_no_span"]
        if begin == probes["from_ns"]:
            equal(seen, both, f"launches while both were there: {launches}")
            equal(outside, {}, "ticks outside")
            # A tick may be open at either end when the span in it, where all launches are, is not.
            equal(launches["in_spans"], row(gpu, "gpu:submit")["launches"], "launches in spans")
            check(tick["launches"] <= launches["in_spans"] <= tick["launches"] + 4, f"in ticks: {tick}, {launches}")
        check(launches["in_no_span"] <= 4, f"in no span: {launches}")
        check(both > 200 and len(truth) > both + 100, f"launches: {both} of {len(truth)}")
        for k in gpu["kernels"]:
            check("first_launches" not in k and k["first_seen"] == 1, f"not the first launch: {k}")
            equal(k["launch"]["count"] + 1, k["delay"]["count"], "the others are in `launch`")
        check("first_launch" not in {x["kind"] for x in gpu["advice"]}, f"advice: {gpu['advice']}")
    said(text, "launches before the probes were armed", launches["before_probes"])
    said(text, "launches after the probes were let go", launches["after_probes"])


@case
def from_the_start():
    "run: the agent is there before the first call, so nothing is outside, and first launches are first ones"
    trace, log, doc = a.fresh(".qbpf"), a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", "agent", "-o", trace, f"--json={doc}", "--", a.QUANT, "--ticks", "200", env=a.env(log))
    q.finish()
    live, later = summary(open(doc).read()), json.loads(report(trace, "--json"))
    same(live, later)
    for d in (live, later):
        equal(check_ticks(d)[0]["count"], 200, "ticks")
        equal(check_launches(d), {"in_spans": 400, "in_no_span": 0, "before_probes": 0, "after_probes": 0}, "launches")
        check("outside" not in d["gpu"], f"outside: {d['gpu'].get('outside')}")
        agent = d["gpu"]["agents"][0]
        equal((len(d["gpu"]["agents"]), agent["from_start"], agent["end"]), (1, True, "exit"), "the agent")
        equal([k["first_launches"] for k in d["gpu"]["kernels"]], [1, 1], "first launches")


@case
def cupti_gives_up():
    "a fatal error of CUPTI: one line, and since when nothing is known; the ticks after that are counted apart"
    trace, log, doc = a.fresh(".qbpf"), a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", "agent", "-o", trace, f"--json={doc}", "--", a.QUANT, "--ticks", "1200", "--rate", "300",
             env=a.env(log, "fatal=6000"))  # fmt: skip
    q.finish()
    live, later, text = summary(open(doc).read()), json.loads(report(trace, "--json")), report(trace)
    equal(q.err_text().count("CUPTI reported a fatal error"), 1, q.err_text())
    same(live, later)
    for d in (live, later):
        tick, outside = check_ticks(d)
        equal(tick["count"] + sum(outside.values()), 1200, "ticks")
        check(tick["count"] > 0 and outside["after_agent"] > 0, f"ticks: {tick}")
        check(outside["partly"] <= 1 and not outside["before_agent"], f"ticks: {tick}")
        agent, probes = d["gpu"]["agents"][0], d["gpu"]["probes"]
        equal(agent["end"], "fatal", "the agent")
        check(agent["from_ns"] < agent["to_ns"] < probes["to_ns"], f"its time: {agent}, {probes}")
        check_launches(d)
    words = f"nothing of the GPU is known of process {agent['pid']} after "
    equal(text.count(words), 1, f"'{words}' in the report:\n{text}")
    check(": CUPTI reported a fatal error\n" in text, "why")
    said(text, "spans after the agent was at work", live["gpu"]["outside"]["after_agent"])


@case
def cupti_gives_up_at_the_end():
    "a fatal error just before the program's end: it did not merely end"
    trace, log, doc = a.fresh(".qbpf"), a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", "agent", "-o", trace, f"--json={doc}", "--", a.QUANT, "--ticks", "100",
             env=a.env(log, "fatal=100"))  # fmt: skip
    q.finish()
    live, later = summary(open(doc).read()), json.loads(report(trace, "--json"))
    equal(q.err_text().count("CUPTI reported a fatal error"), 1, q.err_text())
    same(live, later)
    for d in (live, later):
        equal([x["end"] for x in d["gpu"]["agents"]], ["fatal"], "the agent")
    for kept in (trace, doc):
        r = subprocess.run([QBPF, "check", kept, "* lost == 0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(r.returncode, 3, f"check of {kept}: {r.stdout}{r.stderr}")


@case
def killed():
    "SIGKILL of the target: what the agent had not handed over is not taken for nothing"
    trace, log = a.fresh(".qbpf"), a.fresh(".csv")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "500", "--wait"], env=a.env(log)) as w:
        with attached(w.pid, trace) as q:
            w.go()
            a.Grower(log).await_more("kernel", 2000)
            w.p.send_signal(signal.SIGKILL)
            w.p.wait()
            live = summary(q.finish())
    later = json.loads(report(trace, "--json"))
    same(live, later)
    for d in (live, later):
        tick, outside = check_ticks(d)
        check(tick["count"] > 0, f"ticks: {tick}")
        agent, probes = d["gpu"]["agents"][0], d["gpu"]["probes"]
        equal((len(d["gpu"]["agents"]), agent["end"]), (1, "sudden"), "the agent")
        check(agent["from_ns"] < agent["to_ns"] < probes["to_ns"], f"its time: {agent}, {probes}")


if __name__ == "__main__":
    a.main()
