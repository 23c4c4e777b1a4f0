#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""What `qbpf report` says of a GPU against what the simulator did: the agent's records, recorded."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import gpu_truth
from gpu_truth import check_all, check_copies, check_kernels, equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
AGENT = os.path.join(BUILD, "libqbpf_cupti.so")
DUMP = os.path.join(BUILD, "tests", "ring_dump")
QBPF = os.path.join(BUILD, "qbpf")
TARGET = os.path.join(BUILD, "tests", "cudasim", "agent_target")
QUANT = os.path.join(BUILD, "tests", "w_quant_gpu")

tmp = tempfile.mkdtemp(prefix="qbpf-gpu.")
cases = []


def case(f):
    cases.append(f)
    return f


def run(command, sim="", options=()):
    """(the document's gpu, the simulator's truth by kind)"""
    trace, truth, log = (os.path.join(tmp, n) for n in ("t.qbpf", "truth.csv", "log"))
    for path in (trace, truth, log):
        if os.path.exists(path):
            os.unlink(path)
    env = dict(os.environ, CUDASIM_TRUTH=truth)
    if sim:
        env["CUDASIM"] = sim
    argv = [DUMP, "--record", trace, *options, AGENT, log, "--", *command]
    r = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, text=True)
    equal(r.returncode, 0, f"the status of {argv}: {r.stdout}")
    doc = json.loads(subprocess.run([QBPF, "report", "--json", trace], check=True, stdout=subprocess.PIPE).stdout)
    text = subprocess.run([QBPF, "report", trace], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = gpu_truth.read(truth)
    return doc["gpu"], rows, text


def advice(gpu, kind):
    return [a for a in gpu["advice"] if a["kind"] == kind]


@case
def t_quant_repaired():
    """the workload as it should be: every figure is the simulator's, copies run beside kernels"""
    gpu, truth, _ = run([QUANT, "--ticks", "300"])
    check_all(gpu, truth)
    assert gpu["devices"][0]["overlap_ns"] > 0
    equal(advice(gpu, "sync_copy"), [], "advice on synchronous copies")


@case
def t_quant_flaw():
    """with synchronous copies: the advice names them, what they cost and what could be saved"""
    gpu, truth, text = run([QUANT, "--ticks", "300", "--flaw", "sync-copy"])
    check_all(gpu, truth)
    a = advice(gpu, "sync_copy")[0]
    equal(a["count"], 600, "copies")
    calls = [c for c in truth["runtime"] if c["name"].startswith("cudaMemcpy") and "Async" not in c["name"]]
    equal(a["cost_ns"], sum(c["end"] - c["start"] for c in calls), "what the host waited")
    d = gpu["devices"][0]
    equal(a["save_at_most_ns"], min(d["copy_ns"], d["compute_ns"]), "the bound")
    assert "* 600 synchronous copies (75.0 MiB) held the host up for " in text, text
    assert any(i["cause"] == "sync" and i["name"] == "cudaMemcpy" for i in d["idle"])


@case
def t_orders():
    """records in any order, and ids that wrap: the same"""
    for sim in ("order=api-first", "order=api-last", "order=shuffle,seed=5", "correlation=4294967200",
                "correlation=4294967200,order=shuffle", "jitter=50,slots=2"):  # fmt: skip
        gpu, truth, _ = run([QUANT, "--ticks", "150", "--streams", "3"], sim)
        check_all(gpu, truth)


@case
def t_graphs():
    """a graph as a whole, and node by node"""
    gpu, truth, _ = run([QUANT, "--ticks", "100", "--graph"])
    graphs = [k for k in gpu["kernels"] if k["name"].startswith("graph ")]
    equal(sum(k["count"] for k in graphs), len(truth["graph"]), "launches of graphs")
    equal(sum(k["sum_ns"] for k in graphs), sum(g["end"] - g["start"] for g in truth["graph"]), "their time")
    equal(gpu["missing"]["no_call"], 0, "graphs without a call")
    gpu, truth, _ = run([QUANT, "--ticks", "100", "--graph"], options=["--nodes"])
    check_kernels(gpu, truth)
    check_copies(gpu, truth)
    equal(gpu["missing"]["no_call"], 0, "nodes without a call")


@case
def t_wrong_times():
    """times that cannot be are counted, and are in no figure"""
    for times in ("zero", "reversed", "future"):
        gpu, truth, _ = run([QUANT, "--ticks", "120", "--flaw", "sync-copy"], f"times={times},times_every=5")
        activities = len(truth["kernel"]) + len(truth["memcpy"])
        equal(gpu["untimed"], activities // 5, f"untimed ({times})")
        equal(sum(k["count"] for k in gpu["kernels"] + gpu["copies"]), activities - activities // 5, "the others")
        equal(gpu["missing"]["no_activity"], 0, "their calls have something")
        assert gpu["devices"][0]["to_ns"] < 1 << 61


@case
def t_dropped():
    """records that CUPTI dropped: who lacks a partner is counted"""
    gpu, truth, _ = run([QUANT, "--ticks", "200", "--flaw", "sync-copy"], "drop=10")
    there = sum(k["count"] for k in gpu["kernels"] + gpu["copies"])
    lost = len(truth["kernel"]) + len(truth["memcpy"]) - there
    assert lost > 50 and gpu["dropped"] > lost, (lost, gpu["dropped"])
    equal(gpu["missing"]["no_activity"], lost, "calls whose activity was lost")
    # A runtime call that was lost still has its driver call: the kernel is not without one.
    equal(sum(k["delay"]["count"] for k in gpu["kernels"]), sum(k["count"] for k in gpu["kernels"]), "delays")


@case
def t_late():
    """attached late: CUPTI's own clock is converted, drift and offset and all"""
    words = "late on launch:5 sync " + "sleep:700 launch:20 sync " * 3
    for sim in ("", "offset_ns=5000000000", "drift_ppb=200000"):
        gpu, truth, text = run([TARGET, *words.split()], sim, ["--late"])
        d, last = gpu["devices"][0], max(k["end"] for k in truth["kernel"])
        if not sim:
            equal(gpu["untimed"], 0, "untimed")
            assert abs(d["to_ns"] - last) <= gpu["convert_error_ns"], (d, last)
        elif "drift" in sim:  # of the device alone: causality shows that there is one
            drift = (last - min(k["start"] for k in truth["kernel"])) / 5000
            assert gpu["clock_error_ns"] is None, gpu
            assert drift / 4 < gpu["clock_change_ns"] < 1.4 * drift, (gpu["clock_change_ns"], drift)
            assert "GPU times drift against the host's" in text
        else:  # seconds away from what the host does
            equal(gpu["untimed"], gpu["activities"], "untimed")
        assert 0 < gpu["convert_error_ns"] < 2000000, gpu["convert_error_ns"]
        assert "converted from CUPTI's clock to within" in text


@case
def t_error_bound():
    """an offset of the device's clock within the bound that causality gives"""
    for offset in (0, 1500, 4000):
        gpu, truth, _ = run([QUANT, "--ticks", "100", "--flaw", "sync-copy"], f"offset_ns={offset}")
        d = gpu["devices"][0]
        assert d["clock_error_low_ns"] <= offset <= d["clock_error_high_ns"], (offset, d)
        assert gpu["clock_error_ns"] >= offset


def main():
    wanted = sys.argv[1:]
    if not os.path.exists(QUANT) or not os.path.exists(AGENT):
        print("1..0 # SKIP without the CUDA headers there is no agent and no simulator")
        return 77
    run_cases = [c for c in cases if not wanted or any(w in c.__name__ for w in wanted)]
    failed = 0
    print(f"1..{len(run_cases)}", flush=True)
    for n, c in enumerate(run_cases, 1):
        try:
            c()
            print(f"ok {n} - {c.__doc__}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {n} - {c.__doc__}", flush=True)
            for line in traceback.format_exc().splitlines()[-6:]:
                print("# " + line)
    shutil.rmtree(tmp)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
