#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""qbpf -o with the CUDA agent in: what the file holds of the GPU is what the simulator did, and the
summary of the session says the same."""

import csv
import json
import os
import signal
import subprocess
import tempfile

import agent_session as a
import gpu_truth
from harness import QBPF, Qbpf, Workload, case, check, equal, spans, summary


def report(trace, *options):
    r = subprocess.run([QBPF, "report", *options, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(r.returncode, 0, f"qbpf report: {r.stderr}")
    return r.stdout


def reported(trace):
    return json.loads(report(trace, "--json"))


def record(argv, *options, sim="", code=0, **env):
    """(the session's summary, the report's document, the simulator's truth, the trace)"""
    trace, log, doc = a.fresh(".qbpf"), a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", "agent", "-o", trace, f"--json={doc}", *options, "--", *argv, env=a.env(log, sim, **env))
    q.finish(code=code)
    return summary(open(doc).read()), reported(trace), gpu_truth.read(log), trace


def advice(gpu, kind):
    return [x for x in gpu["advice"] if x["kind"] == kind]


def check_spans(gpu, ticks, launches):
    """Each tick is there, with all that it asked for."""
    got = {s["name"]: s for s in gpu["spans"]}
    equal(got["strategy:tick"]["count"], ticks, f"ticks with calls: {got}")
    equal(got["strategy:tick"]["launches"], launches, "launches in them")
    return got


def same_gpu(live, later):
    for gpu in (live, later):
        gpu.pop("losses", None)
    for key in later:
        equal(live.get(key), later[key], f"gpu.{key} of the summary, and of the report")


@case
def the_flaw_and_its_cost():
    "the flawed strategy: all figures are the simulator's, the advice names the synchronous copies and their cost"
    live, later, truth, trace = record([a.QUANT, "--ticks", "300", "--flaw", "sync-copy"])
    gpu = later["gpu"]
    gpu_truth.check_all(gpu, truth)
    same_gpu(live["gpu"], gpu)
    tick = check_spans(gpu, 300, 600)["strategy:tick"]
    equal(tick["sum_ns"], spans(later)["strategy:tick"]["sum_ns"], "their time")
    equal(tick["copies"], 600, "copies in them")
    found = advice(gpu, "sync_copy")[0]
    calls = [c for c in truth["runtime"] if c["name"].startswith("cudaMemcpy") and "Async" not in c["name"]]
    equal((found["count"], found["cost_ns"]), (600, sum(c["end"] - c["start"] for c in calls)), "the advice")
    check("* 600 synchronous copies (75.0 MiB) held the host up for " in report(trace), report(trace))
    equal(gpu["devices"][0]["overlap_ns"], 0, "copies beside kernels")
    equal(later["lost"]["by_source"], {**live["lost"]["by_source"], "gpu": 0}, "lost")


@case
def the_repaired_variant():
    "as it should be: no such advice, and copies run beside kernels"
    live, later, truth, _ = record([a.QUANT, "--ticks", "300", "--kernel-ns", "500000"])
    gpu_truth.check_all(later["gpu"], truth)
    same_gpu(live["gpu"], later["gpu"])
    check_spans(later["gpu"], 300, 600)
    equal(advice(later["gpu"], "sync_copy"), [], "advice")
    check(later["gpu"]["devices"][0]["overlap_ns"] > 0, "overlap")


@case
def spans_left_out():
    "--sample: the report says how many spans its figures of the GPU lack"
    _, later, truth, trace = record([a.QUANT, "--ticks", "300"], "--sample", "10")
    gpu_truth.check_kernels(later["gpu"], truth)
    left_out = later["trace"]["skipped"]
    check(left_out > 200, f"left out: {left_out}")
    check(f"  spans that the file does not hold: {left_out} " in report(trace), "said so")


@case
def other_tools_get_it():
    "the exports hold each kernel and each copy, with its name"
    _, _, truth, trace = record([a.QUANT, "--ticks", "50"])
    kernels, copies = len(truth["kernel"]), len(truth["memcpy"])

    def export(name):
        out = a.fresh(".out")
        r = subprocess.run([QBPF, "export", trace, "-f", name, "-o", out], stderr=subprocess.PIPE, text=True)
        equal(r.returncode, 0, r.stderr)
        return out

    rows = list(csv.DictReader(open(export("csv"), newline="")))
    equal(sum(r["kind"] == "gpu-kernel" for r in rows), kernels, f"kernels in CSV: {rows[-1]}")
    equal(sum(r["kind"] == "gpu-copy" for r in rows), copies, "copies in CSV")
    events = json.load(open(export("chrome")))["traceEvents"]
    names = [e["name"] for e in events if e.get("ph") == "X"]
    equal(names.count("alpha") + names.count("score"), kernels, "kernels in Chrome's format")
    check(os.path.getsize(export("perfetto")) > 50 * kernels, "Perfetto's")


@case
def attached():
    "attach -o: CUPTI's own clock is converted, ticks and GPU are joined"
    trace, log = a.fresh(".qbpf"), a.fresh(".csv")
    with Workload([a.QUANT, "--ticks", "600", "--rate", "300", "--wait"], env=a.env(log)) as w:
        with Qbpf("attach", "-p", w.pid, "--cuda", "agent", "--json", "-o", trace) as q:
            q.wait_err("CUDA agent: on")
            q.wait_ready()
            w.go()
            w.finish()
            live = summary(q.finish())
    later, truth = reported(trace), gpu_truth.read(log)
    gpu_truth.check_copies(later["gpu"], truth, rounding_ns=1)
    gpu_truth.check_kernels(later["gpu"], truth, rounding_ns=1)
    same_gpu(live["gpu"], later["gpu"])
    check_spans(later["gpu"], 600, 1200)
    check(later["gpu"]["convert_error_ns"] < 2000000, "converted")


@case
def the_reader_is_stopped():
    "qbpf is stopped while 300,000 kernels are launched: held + lost of each type is all of them, in file and summary"
    trace, log, doc = a.fresh(".qbpf"), a.fresh(".csv"), a.fresh(".json")
    with Qbpf("run", "--cuda", "agent", "-o", trace, f"--json={doc}", "--", a.TARGET, "launch:10", f"await:{log}.go",
              "launch:300000", "sync", env=a.env(log)) as q:  # fmt: skip
        q.wait_err("CUDA agent: on")
        a.while_stopped(q, f"{log}.go")
        q.finish()
    live, later = summary(open(doc).read()), reported(trace)
    same = {"launch": "call"}
    truth = a.truth(log)
    equal(truth["kernels"], 300010, "kernels, in truth")
    for what, d in (("summary", live), ("report", later)):
        lost = {}
        for x in d["gpu"]["losses"]:
            equal(x["reason"], "ring_full", f"reasons in the {what}")
            lost[same.get(x["type"], x["type"])] = lost.get(x["type"], 0) + x["lost"]
        held = sum(k["count"] for k in d["gpu"]["kernels"]) + d["gpu"]["untimed"]
        equal(held + lost["kernel"], 300010, f"kernels, in the {what}")
        # A driver call within a runtime call is no row of its own: the records are what counts here.
        check(lost["kernel"] > 1000, f"lost, in the {what}: {lost}")
        equal(d["lost"]["by_source"]["gpu"], sum(lost.values()), f"lost by the GPU's rings, in the {what}")
    got, lost = a.counts(live)
    equal(sum(got.values()) + lost, sum(truth.values()), f"all that a person asks for: {a.gpu_note(live)}")
    check("found no room in the ring to qbpf" in report(trace), report(trace))


@case
def what_cupti_drops():
    "records that CUPTI dropped: said once, in the file and in the summary"
    live, later, truth, _ = record([a.TARGET, "launch:1000", "sync"], sim="drop=10")
    for what, d in (("summary", live), ("report", later)):
        lost = d["lost"]["by_source"]["gpu"]
        equal(lost, d["gpu"]["dropped"], f"lost, in the {what}")
        held = sum(k["count"] for k in d["gpu"]["kernels"])
        check(0 < len(truth["kernel"]) - held <= lost, f"kernels, in the {what}: {held}, lost {lost}")


@case
def the_disk_is_full():
    "no room for the file: tracing goes on, the summary has all of the GPU, and says what the file lacks"
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", d], check=True)
        try:
            log, doc = a.fresh(".csv"), a.fresh(".json")
            q = Qbpf("run", "--cuda", "agent", "-o", f"{d}/t.qbpf", f"--json={doc}", "--", a.QUANT, "--ticks", "4000",
                     "--cpu-ns", "0", "--kernel-ns", "1000", env=a.env(log))  # fmt: skip
            q.finish(code=1)
            live, later, truth = summary(open(doc).read()), reported(f"{d}/t.qbpf"), gpu_truth.read(log)
        finally:
            subprocess.run(["umount", d], check=True)
    check("No space left" in q.err_text(), q.err_text())
    gpu_truth.check_kernels(live["gpu"], truth)
    equal({x["reason"] for x in live["gpu"]["losses"]}, {"disk"}, "reasons")
    held = sum(k["count"] for k in later.get("gpu", {}).get("kernels", []))
    check(held < len(truth["kernel"]), f"kernels in the file: {held}")
    lost = {x["type"]: x["lost"] for x in live["gpu"]["losses"]}
    equal(held + lost["kernel"], len(truth["kernel"]), "kernels: in the file + lost by the disk")


@case
def qbpf_is_killed():
    "SIGKILL while it records: the file holds the GPU up to the last second"
    trace, log = a.fresh(".qbpf"), a.fresh(".csv")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "300", "--wait"], env=a.env(log)) as w:
        with Qbpf("attach", "-p", w.pid, "--cuda", "agent", "--json", "-o", trace) as q:
            q.wait_err("CUDA agent: on")
            q.wait_ready()
            w.go()
            size = lambda: os.path.getsize(trace) if os.path.exists(trace) else 0
            a.until("the file grows", lambda: size() > 20000)
            first = size()
            a.until("it grows again", lambda: size() > first + 20000)
            q.p.send_signal(signal.SIGKILL)
            q.p.wait()
        w.p.send_signal(signal.SIGTERM)
        w.finish()
    doc = reported(trace)
    kernels = sum(k["count"] for k in doc["gpu"]["kernels"])
    check(kernels > 50, f"kernels: {kernels}")
    equal({k["name"] for k in doc["gpu"]["kernels"]}, {"alpha", "score"}, "their names")
    check("strategy:tick" in {s["name"] for s in doc["gpu"]["spans"]}, "joined to spans")


if __name__ == "__main__":
    a.main()
