#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The CUDA agent, unmodified, on the simulated CUDA: what arrives in the ring against the truth."""

import collections
import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
AGENT = os.path.join(BUILD, "libqbpf_cupti.so")
DUMP = os.path.join(BUILD, "tests", "ring_dump")
SIM = os.path.join(BUILD, "tests", "cudasim")
TARGET = os.path.join(SIM, "agent_target")
CUDA = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
NEVER = 18446744073709551615

STATE_ON, STATE_REFUSED, STATE_STOPPING, STATE_OFF = "2", "3", "4", "5"
ASKED, READER_GONE, EXIT = "1", "2", "3"
WARN_KINDS, WARN_LATE, WARN_SECOND, WARN_13_0, WARN_STUBS = 4, 8, 128, 1, 2

RUNTIME_CALLS = ("cudaLaunch", "cudaGraphLaunch", "cudaGraphInstantiate", "cudaMemcpy", "cudaMemset",
                 "cudaMalloc", "cudaFree")  # fmt: skip
DRIVER_CALLS = ("cuLaunch", "cuGraphLaunch", "cuGraphInstantiate", "cuMemcpy", "cuMemset", "cuMemAlloc",
                "cuMemFree")  # fmt: skip

tmp = tempfile.mkdtemp(prefix="qbpf-agent.")
NOW = os.path.join(tmp, "now")  # a file by which the target tells whoever waits for it


class Run:
    """What a run left: the target's output, the records, the status, the simulator's truth."""

    def __init__(self, code, out, err, seconds, log, truth):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.records = collections.defaultdict(list)
        self.status = {}
        for line in open(log, errors="replace") if os.path.exists(log) else ():
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "status":
                key, _, value = rest.partition(" ")
                self.status[key] = value
            else:
                self.records[word].append(fields(rest))
        self.truth = collections.defaultdict(list)
        for row in csv.DictReader(open(truth)) if os.path.exists(truth) else ():
            self.truth[row["what"]].append(row)

    def number(self, key):
        return int(self.status[key])


def fields(text):
    """`a=1 b=2 name=may hold = and blanks` as a dictionary."""
    text, named, name = text.partition(" name=")[0::2] + (None,) if " name=" not in text else (
        text.partition(" name=")[0], True, text.partition(" name=")[2])  # fmt: skip
    got = dict(pair.split("=", 1) for pair in text.split())
    if named and name is not None:
        got["name"] = name
    return {k: int(v) if v.isdigit() else v for k, v in got.items()}


def run(words, options=(), sim="", env=None, command=None, timeout=120):
    log, truth = os.path.join(tmp, "log"), os.path.join(tmp, "truth.csv")
    for path in (log, truth, NOW):
        if os.path.exists(path):
            os.unlink(path)
    e = dict(os.environ, CUDASIM_TRUTH=truth, **(env or {}))
    if sim:
        e["CUDASIM"] = sim
    argv = [DUMP, *options, AGENT, log, "--", *(command or [TARGET]), *words.split()]
    start = time.monotonic()
    p = subprocess.run(argv, env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    return Run(p.returncode, p.stdout.decode(), p.stderr.decode(), time.monotonic() - start, log, truth)


def plain(words, sim="", env=None):
    e = dict(os.environ, **(env or {}))
    if sim:
        e["CUDASIM"] = sim
    p = subprocess.run([TARGET, *words.split()], env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def same(got, want, what):
    """Two lists as multisets."""
    got, want = collections.Counter(got), collections.Counter(want)
    if got != want:
        raise AssertionError(
            f"{what}: too many {list((got - want).items())[:5]}, missing {list((want - got).items())[:5]}"
        )


def chosen(row):
    names = RUNTIME_CALLS if row["what"] == "runtime" else DRIVER_CALLS
    return row["name"].startswith(names) or "Synchronize" in row["name"]


def true_calls(r):
    return [c for c in r.truth["runtime"] + r.truth["driver"] if chosen(c)]


def place(row):
    return tuple(int(row[k]) for k in ("correlation", "start", "end", "device", "context", "stream"))


def compare(r, nodes=False):
    """Every record against the truth, field by field."""
    t = r.truth
    kernels = [k for k in t["kernel"] if nodes or k["graph"] == "0"]
    same(
        [place(k) + (k["name"], k["graph"], k["node"]) for k in r.records["kernel"]],
        [place(k) + (k["name"], int(k["graph"]), int(k["node"])) for k in kernels],
        "kernels",
    )
    same(
        [place(c) + (c["bytes"], c["kind"], c["src"], c["dst"], c["async"]) for c in r.records["copy"]],
        [place(c) + tuple(int(c[k]) for k in ("bytes", "copy", "source", "target", "async")) for c in t["memcpy"]],
        "copies",
    )
    same(
        [place(s) + (s["bytes"], s["async"]) for s in r.records["set"]],
        [place(s) + (int(s["bytes"]), int(s["async"])) for s in t["memset"]],
        "sets",
    )
    keys = ("correlation", "start", "end", "context", "stream")
    same(
        [tuple(s[k] for k in keys) + (s["kind"],) for s in r.records["sync"]],
        [tuple(int(s[k]) for k in keys) + (int(s["type"]),) for s in t["sync"]],
        "syncs",
    )
    same(
        [place(g) + (g["graph"],) for g in r.records["graph"]],
        [] if nodes else [place(g) + (int(g["graph"]),) for g in t["graph"]],
        "graphs",
    )
    same([o["kind"] for o in r.records["overhead"]], [int(o["type"]) for o in t["overhead"]], "overheads")
    same(
        [(c["domain"], c["cbid"], c["correlation"], c["tid"], c["error"]) for c in r.records["call"]],
        [(2 if c["what"] == "runtime" else 1, int(c["type"]), int(c["correlation"]), int(c["tid"]), int(c["result"])) for c in true_calls(r)],
        "calls",
    )


def nothing_wrong(r):
    for key in ("dropped", "discarded", "unknown", "broken", "late", "bad_lanes", "lost_strings", "warnings"):
        equal(r.number(key), 0, key)
    for key in r.status:
        if key.startswith("lost_"):
            equal(r.number(key), 0, key)


# --- what arrives --------------------------------------------------------------------------------

ALL = "launch:50 h2d:5 d2h:5 memset:3 sync query:20 fail:2 graph:4 launch:7 sync"


def t_every_record_equals_the_truth():
    """injected by the driver: all records, all fields"""
    r = run(ALL)
    equal((r.code, r.out), (0, "errors 2\n"))
    equal((r.status["state"], r.status["reason"], r.status["clock"]), (STATE_OFF, EXIT, "1"))
    compare(r)
    nothing_wrong(r)
    k = r.records["kernel"][0]
    equal((k["grid"], k["block"], k["shared"]), ("4x3x2", "64x2x1", "0+256"))
    names = {c["name"] for c in r.records["call"]}
    check({"cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cuMemcpyDtoH_v2"} <= names, names)
    check(not names & {"cudaGetDevice"}, "queries are not recorded")
    equal(sum(c["error"] != 0 and c["domain"] == 2 for c in r.records["call"]), 2, "failing calls")


def t_preloaded():
    """preloaded: the same"""
    r = run(ALL, ["--preload"])
    equal((r.code, r.out), (0, "errors 2\n"))
    compare(r)
    nothing_wrong(r)


def t_both_ways_in():
    """preloaded and injected: starts once"""
    r = run("launch:5 sync", ["--preload"], env={"CUDA_INJECTION64_PATH": AGENT})
    equal(r.status["generation"], "1")
    compare(r)


def t_nodes():
    """kernels inside graphs one by one, on request"""
    r = run("graph:5 launch:2 sync", ["--nodes"])
    compare(r, nodes=True)
    equal(sum(k["graph"] != 0 for k in r.records["kernel"]), 15)
    equal(len({k["node"] for k in r.records["kernel"]} - {0}), 3, "nodes")


def t_no_calls():
    """no records of calls, on request"""
    r = run("launch:5 sync", ["--no-calls"])
    equal((len(r.records["kernel"]), len(r.records["call"])), (5, 0))


def t_devices():
    """several devices, peer copies, equal stream ids"""
    r = run("devices:4", sim="devices=4")
    compare(r)
    equal({k["device"] for k in r.records["kernel"]}, {0, 1, 2, 3})
    peers = [c for c in r.records["copy"] if c["kind"] == 10]
    equal([(c["src_device"], c["dst_device"]) for c in peers], [(0, 1), (0, 2), (0, 3)])


def t_orders():
    """any order of records, several completion threads, threads that launch"""
    for order in ("api-first", "api-last", "shuffle"):
        for way in ([], ["--preload"]):
            r = run("launch:200 threads:6:100 d2h:5 sync", way, f"order={order},threads=5,seed=3")
            compare(r)
            nothing_wrong(r)


def t_names():
    """thousands of kernel names, each kept once; a full table is counted"""
    r = run("names:5000 names:3 sync")
    compare(r)
    nothing_wrong(r)
    r = run("names:500 sync", ["--strings", "64", "--strings-bytes", "4096"])
    unknown = sum(k["name"] == "-" for k in r.records["kernel"])
    equal(len(r.records["kernel"]), 500)
    check(unknown > 300, unknown)
    unnamed = len({c["cbid"] for c in r.records["call"] if c["name"] == "-"})
    equal(r.number("lost_strings"), unknown + unnamed, "lost_strings")


def t_longer_records():
    """records of a later CUPTI, longer than those we know"""
    r = run(ALL, sim="record_pad=64")
    compare(r)
    nothing_wrong(r)


def t_wrong_times():
    """zero, reversed and future times pass through as they are"""
    r = run("launch:40 sync", sim="times=zero,times_every=4")
    equal(sum(k["start"] == 0 for k in r.records["kernel"]), 10)
    r = run("launch:40 sync", sim="times=reversed,times_every=4")
    equal(sum(k["start"] > k["end"] for k in r.records["kernel"]), 10)
    equal(len(r.records["kernel"]), 40)


# --- loss ----------------------------------------------------------------------------------------


def accounted(r):
    for name, want in (
        ("kernel", len(r.truth["kernel"])),
        ("copy", len(r.truth["memcpy"])),
        ("sync", len(r.truth["sync"])),
        ("call", len(true_calls(r))),
    ):
        equal(r.number("read_" + name) + r.number("lost_" + name), want, name)
        equal(len(r.records[name]), r.number("read_" + name), name)


def t_reader_stopped():
    """the reader never reads: loss is counted exactly, the target unaffected"""
    for options in (["--lanes", "1"], ["--lanes", "2"], ["--lanes", "5"]):
        r = run("launch:3000 d2h:10 threads:4:500 sync", ["--never-read", "--lane-bytes", "4096", *options])
        equal((r.code, r.out), (0, "errors 0\n"))
        accounted(r)
        check(r.number("lost_kernel") > 1000 and r.number("lost_call") > 1000, r.status)


def t_lanes_contended():
    """more completing threads than lanes: counted exactly"""
    r = run("threads:8:1000 sync", ["--lanes", "1", "--lane-bytes", "16384"], "threads=8")
    equal(r.out, "errors 0\n")
    accounted(r)


def t_dropped_by_cupti():
    """records that CUPTI drops are reported"""
    r = run("launch:700 sync sleep:250", sim="drop=7")
    check(len(r.truth["lost"]) > 200, len(r.truth["lost"]))
    equal(r.number("dropped"), len(r.truth["lost"]))
    equal(sum(d["count"] for d in r.records["dropped"]), r.number("dropped"))
    read = sum(r.number("read_" + n) for n in ("kernel", "call", "sync", "overhead"))
    true = sum(len(r.truth[n]) for n in ("kernel", "sync", "overhead")) + len(true_calls(r))
    equal(read + r.number("dropped"), true)


def t_more_threads_than_buffers():
    """a buffer for each of 200 threads; of 400, the discard buffer counts what it swallows"""
    r = run("threads:200:20 sync", sim="race=64")
    equal((r.number("discarded"), r.number("read_kernel") + r.number("lost_kernel")), (0, 4000))
    # Behind the first flush, and none between, which would take their buffers back before all have one.
    r = run("launch:1 handed threads:400:5 sync", ["--flush-ms", "10000"], sim="race=64")
    equal(r.out, "errors 0\n")
    check(r.number("discarded") > 0, "discarded")
    # Which kinds it swallowed is not known: kernels complete beside the calls.
    true = {"kernel": len(r.truth["kernel"]), "sync": len(r.truth["sync"]), "call": len(true_calls(r))}
    equal(true["kernel"], 2001)
    got = {kind: r.number("read_" + kind) + r.number("lost_" + kind) for kind in true}
    equal(sum(got.values()) + r.number("discarded"), sum(true.values()))
    for kind, n in got.items():
        check(n <= true[kind], f"{kind}: {n} of {true[kind]}")


# --- errors --------------------------------------------------------------------------------------


def refused(words, sim, part, code, env=None):
    r = run(words, sim=sim, env=env)
    equal((r.code, r.out, r.err), plain(words, sim, env), "the target")
    equal(r.status["state"], STATE_REFUSED)
    equal(r.status["fault_code"], code)
    check(part in r.status["explain"], r.status["explain"])
    equal([r.number("read_" + n) for n in ("kernel", "call")], [0, 0])
    return r


def t_errors_of_subscribe():
    """39, 35, 15, 999: one line with the remedy, nothing left running"""
    words = "launch:20 sync tasks:60000 exit:5"
    refused(words, "subscribe=39", "another profiler holds CUPTI (CUPTI for cudasim's rival)", "39")
    refused(words, "subscribe=35", "NVreg_RestrictProfilingToAdminUsers=0", "35")
    refused(words, "subscribe=15", "not initialised", "15")
    refused(words, "subscribe=999", "no usable CUDA driver", "999")


def t_errors_of_enable():
    """a kind that cannot be enabled: all is taken back, or it goes without"""
    words = "launch:20 sync tasks:60000 launch:5 exit:5"
    r = refused(words, "enable_kind=10,enable_error=35", "NVreg_RestrictProfilingToAdminUsers=0", "35")
    calls = [c["name"] for c in r.truth["cupti"]]
    check("cuptiUnsubscribe" in calls, calls)
    equal(calls[-1], "cuptiFinalize")
    r = run("launch:20 graph:2 sync", sim="enable_kind=51,enable_error=27")
    equal(r.number("warnings"), WARN_KINDS)
    equal(r.number("kinds_refused"), 1 << 51)
    compare(r, nodes=True)


def t_stubs():
    """the toolkit's stub of libcuda is named as the cause"""
    stubs = os.path.join(tmp, "stubs")
    os.makedirs(stubs, exist_ok=True)
    env = {"LD_LIBRARY_PATH": f"/nowhere:{stubs}/"}
    r = refused("launch:3", "subscribe=999", "stubs folder is on LD_LIBRARY_PATH", "999", env)
    equal(r.number("warnings") & WARN_STUBS, WARN_STUBS)
    shutil.copy(os.path.join(SIM, "libcuda.so.1"), stubs)
    r = refused("launch:3", "", "uses the toolkit's libcuda stub", "0", env)
    equal(r.status["fault"], "4")
    shutil.rmtree(stubs)


def t_version_13_0():
    """CUDA 13.0 before update 1: warned"""
    r = run("launch:5 sync", sim="version=130000")
    equal(r.number("warnings"), WARN_13_0)
    r = run(f"launch:5 sync touch:{NOW} tasks:60000", ["--gone-at", NOW], sim="version=130000")
    check("can deadlock" in r.status["explain"], r.status["explain"])


def toolkit_of(cupti):
    """A folder that looks like CUDA 12's toolkit with that library as its libcupti."""
    home = os.path.join(tmp, "cuda-12")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(os.path.join(home, "lib64"))
    os.symlink(cupti, os.path.join(home, "lib64", "libcupti.so.12"))
    return {"CUDA_HOME": home}


def t_older_cupti():
    """CUDA 12's shorter records, found in CUDA_HOME: fields it does not have are 0"""
    r = run(ALL, sim="version=120900", env=toolkit_of(os.path.join(SIM, "libcupti.so.13")))
    equal((r.status["driver_version"], r.status["cupti_version"]), ("12090", "120900"))
    check(r.status["cupti_path"].startswith(tmp), r.status["cupti_path"])
    compare(r)
    nothing_wrong(r)


def t_other_major():
    """no libcupti of the driver's major version: refused, both named, the target unaffected"""
    sim, words = "version=120900", "launch:5 sync tasks:60000 exit:2"
    r = refused(words, sim, "of CUDA 12", "0", {"CUDA_HOME": "/nowhere"})
    check(r.status["fault"] in "13", r.status["fault"])
    real = os.path.join(CUDA, "lib64", "libcupti.so.13")
    if not os.path.exists(real):
        return "no real libcupti to be of another version"
    r = refused(words, sim, "is of CUDA 13, the driver of CUDA 12", "0", toolkit_of(real))
    equal(r.status["fault"], "3")
    return None


def t_no_ring():
    """no ring, no such file, a file that can shrink, a ring without reader: the target goes alone"""
    words = "launch:5 sync tasks exit:4"
    want = plain(words)
    path = os.path.join(tmp, "file")
    with open(path, "wb") as f:
        f.write(b"qpf-ring" * 4096)
    for ring in ("", "/nowhere/ring", path, "/dev/null", "/proc/self/fd/0"):
        for way in ("LD_PRELOAD", "CUDA_INJECTION64_PATH"):
            equal(plain(words, env={"QBPF_RING": ring, way: AGENT}), want, ring)


# --- life ----------------------------------------------------------------------------------------


def cupti_calls(r):
    return [c for c in r.truth["cupti"]]


def silent_after(r, name):
    """No call of the agent's after the last one called `name`."""
    calls = [c["name"] for c in cupti_calls(r)]
    check(name in calls, f"no {name} in {calls[-5:]}")
    equal(calls[-1], name, "the last call")


def t_no_traps():
    """no callback for a launch"""
    r = run("launch:5000 sync")
    equal((r.number("callbacks"), r.number("read_kernel")), (0, 5000))
    equal([c["name"] for c in cupti_calls(r) if "EnableCallback" in c["name"] or "Domain" in c["name"]], [])


def t_detach():
    """detach: nothing left running, no call afterwards, no callback on a launch"""
    r = run(f"launch:1000 sync touch:{NOW} tasks:60000 launch:2000 sync", ["--stop-at", NOW])
    equal(r.out, "Threads: 1\nerrors 0\n")
    equal((r.status["state"], r.status["reason"]), (STATE_OFF, ASKED))
    equal((r.number("read_kernel"), len(r.truth["kernel"])), (1000, 3000))
    equal((r.number("callbacks"), r.number("warnings"), r.number("buffers_out")), (2, 0, 0))
    silent_after(r, "cuptiFinalize")
    order = [c["name"] for c in cupti_calls(r)]
    at = order.index("cuptiActivityDisable")
    check(at < order.index("cuptiUnsubscribe") < order.index("cuptiFinalize"), order[at:])
    check("cuptiActivityFlushAll" in order[at : order.index("cuptiUnsubscribe")], order[at:])


def t_detach_under_load():
    """detach while launches go on: counted, target unaffected"""
    r = run(f"launch:100 touch:{NOW} threads:4:40000 sync tasks:60000", ["--stop-at", NOW], sim="call_ns=0")
    check("errors 0" in r.out, r.out)
    silent_after(r, "cuptiFinalize")
    equal(r.status["state"], STATE_OFF)
    check(100 <= r.number("read_kernel"), "kernels")


def t_attach_late_and_again():
    """started by dlopen in a running program, stopped, started anew; clock tied by points"""
    r = run("launch:100 sync late on launch:50 sync handed stop tasks:60000 launch:10 sync tasks", ["--late"])
    equal(r.out, "late 0\nstop 0\nThreads: 1\nThreads: 1\nerrors 0\n")
    equal((r.status["state"], r.status["reason"], r.status["clock"]), (STATE_OFF, ASKED, "2"))
    equal((r.number("warnings"), r.number("read_kernel")), (WARN_LATE, 50))
    equal([c["name"] for c in cupti_calls(r) if "Timestamp" in c["name"]], [])
    r = run("late on launch:5 sync late stop tasks:60000 late on launch:7 sync", ["--late"])
    equal(r.out, "late 0\nlate -16\nstop 0\nThreads: 1\nlate 0\nerrors 0\n")
    equal((r.number("generation"), r.number("read_kernel")), (2, 12))
    equal([s["generation"] for s in r.records["start"]], [1, 2])


def t_clock():
    """late, with an offset and a drift: times convert to the truth within the points' error"""
    words = "late on launch:5 sync " + "sleep:700 launch:20 sync " * 4
    for sim in ("", "offset_ns=5000000000", "drift_ppb=200000"):
        r = run(words, ["--late"], sim)
        points = sorted((p["cupti"], p["monotonic"], p["error"]) for p in r.records["clock"])
        check(len(points) >= 3, points)
        check(all(p[2] < 1000000 for p in points), points)
        true = {int(c["correlation"]): c for c in r.truth["runtime"]}
        for c in [c for c in r.records["call"] if c["domain"] == 2]:
            i = max(1, min(len(points) - 1, sum(p[0] <= c["start"] for p in points)))
            a, b = points[i - 1], points[i]
            start = a[1] + (c["start"] - a[0]) * (b[1] - a[1]) // (b[0] - a[0])
            off = abs(start - int(true[c["correlation"]]["start"]))
            check(off <= max(a[2], b[2]) + 1, f"{sim}: off by {off} ns between {a} and {b}")


def t_fork():
    """forked children are silent and end at once; a storm of them"""
    r = run("launch:5 fork:150 forkcuda launch:5 sync", sim="")
    equal((r.code, r.out), (0, "errors 0\n"))
    check(r.seconds < 70, f"{r.seconds} s: 150 children waited for the agent, 500 ms each")
    tgids = {c["tgid"] for c in r.records["call"]}
    equal(tgids, {r.number("tgid")})
    equal((r.number("read_kernel"), r.number("generation")), (10, 1))
    r = run("late on forklate launch:3 sync", ["--late"])
    equal(r.out, "late 0\nring 0\nlate -10\nerrors 0\n")  # ECHILD: the agent that was is the parent's
    equal(r.number("generation"), 1)
    r = run("launch:5 fork:150 _exit:0", sim="hang=flush")
    check(r.seconds < 70, f"{r.seconds} s: 150 children waited for the agent, 500 ms each")


def t_signals():
    """the agent's thread takes none of the target's signals"""
    for way in ([], ["--preload"], ["--late"]):
        words = "late on masks" if way == ["--late"] else "launch:1 masks"
        lines = [x for x in run(words, way).out.splitlines() if x.startswith("blocked")]
        equal(len(lines), 1, "threads")
        # all but SIGKILL, SIGSTOP and the two that are the C library's own
        equal(int(lines[0].split()[1], 16) | 3 << 31 | 1 << 8 | 1 << 18, (1 << 64) - 1, lines[0])


def t_exec():
    """exec: the new program takes over"""
    r = run("launch:5 sync handed exec launch:7 sync handed exec launch:2 sync")
    equal((r.code, r.out), (0, "errors 0\n"))
    equal([s["generation"] for s in r.records["start"]], [1, 2, 3])
    equal((r.number("read_kernel"), r.number("warnings")), (14, 0))


def t_second_process():
    """two programs, one ring: the first has it, the second goes alone; then it is free again"""
    over = os.path.join(tmp, "over")
    first, second = f"{TARGET} launch:3 sync touch:{NOW} await:{over}", f"{TARGET} await:{NOW} launch:5 sync"
    r = run("", command=["sh", "-c", f"{first} & {second}; >{over}; wait"])
    equal(r.out, "errors 0\nerrors 0\n")
    equal((r.number("read_kernel"), r.number("warnings"), r.number("generation")), (3, WARN_SECOND, 1))
    r = run("", command=["sh", "-c", f"{TARGET} launch:3 sync; {TARGET} launch:5 sync"])
    equal((r.number("read_kernel"), r.number("warnings"), r.number("generation")), (8, 0, 2))


def t_script():
    """preloaded into a shell: only the CUDA program takes the ring"""
    r = run("", ["--preload"], command=["sh", "-c", f"{TARGET} launch:3 sync; echo done"])
    equal(r.out, "errors 0\ndone\n")
    equal((r.number("read_kernel"), r.number("generation")), (3, 1))


def t_reader_killed():
    """kill -9 of the reader: the agent detaches by itself"""
    truth, out = os.path.join(tmp, "truth.csv"), os.path.join(tmp, "out")
    env = dict(os.environ, CUDASIM_TRUTH=truth)
    words = "launch:100 sync on print:ready tasks:60000 launch:3000 sync print:end"
    with open(out, "wb") as f:
        p = subprocess.Popen([DUMP, AGENT, os.path.join(tmp, "log"), "--", TARGET, *words.split()], env=env, stdout=f)
    until = time.monotonic() + 120
    while b"ready" not in open(out, "rb").read():
        check(time.monotonic() < until, "never ready")
        time.sleep(0.01)
    p.send_signal(signal.SIGKILL)
    p.wait()
    while b"errors" not in open(out, "rb").read():
        check(time.monotonic() < until, "never ended")
        time.sleep(0.02)
    equal(open(out).read(), "ready\nThreads: 1\nend\nerrors 0\n")
    r = Run(0, "", "", 0, "/nowhere", truth)
    silent_after(r, "cuptiFinalize")
    equal(len(r.truth["kernel"]), 3100)


def t_persistent_kernel():
    """a kernel that never ends: neither detach nor exit waits for it"""
    env = {"CUDASIM_KERNELS": "persistent_feed=inf"}
    r = run("launch:3 sync persist sleep:100", env=env)  # one that waited would never end
    equal(r.out, "errors 0\n")
    equal(sum(k["end"] == 0 for k in r.records["kernel"]) + 3, len(r.records["kernel"]))
    equal(int(r.truth["kernel"][3]["end"]), NEVER)
    r = run(f"launch:3 sync persist touch:{NOW} tasks:60000 launch:5", ["--stop-at", NOW], env=env)
    equal(r.out, "Threads: 1\nerrors 0\n")
    silent_after(r, "cuptiFinalize")
    equal((r.status["state"], r.status["reason"]), (STATE_OFF, ASKED))


def t_hanging_cupti():
    """calls of CUPTI that hang hold up nothing of the target, and are named"""
    r = run("launch:100 sync incall:cuptiActivityFlushAll print:hello", sim="hang=flush")
    equal((r.code, r.out), (0, "hello\nerrors 0\n"))
    equal(r.status["in_call"], "cuptiActivityFlushAll")
    words = f"launch:100 sync touch:{NOW} incall:cuptiFinalize launch:100 sync"
    r = run(words, ["--stop-at", NOW], "hang=finalize")
    equal((r.code, r.out), (0, "errors 0\n"))
    equal((r.status["state"], r.status["in_call"]), (STATE_STOPPING, "cuptiFinalize"))
    check("in cuptiFinalize" in r.status["explain"], r.status["explain"])


def t_exits():
    """exit status, output and handlers of the target are its own"""
    for words in ("launch:3 exit:7", "atexit:bye launch:3 sync exit:9", "launch:3 _exit:11", "print:x exit:0"):
        for way in ([], ["--preload"]):
            r = run(words, way)
            equal((r.code, r.out, r.err), plain(words), words)
    r = run("launch:300 sync exit:3")
    equal((r.code, r.number("read_kernel")), (3, 300))


def t_slow_buffers():
    """the exit waits as long as buffers come: none of 40 is lost that take a second and a half"""
    r = run("launch:1 handed threads:40:5 sync", ["--flush-ms", "10000"], "threads=1,complete_ns=40000000")
    equal((r.code, r.out), (0, "errors 0\n"))
    equal((r.status["state"], r.status["reason"]), (STATE_OFF, EXIT))
    compare(r)
    check(r.seconds > 1.2, f"{r.seconds} s for 40 buffers")


def rss(text):
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")]


def t_memory():
    """the target's memory stays bounded, also when nobody reads"""
    words = "launch:100 sync rss threads:8:30000 sync rss threads:8:30000 sync rss"
    alone = rss(plain(words, "call_ns=0")[1])
    for options in ([], ["--never-read", "--lane-bytes", "65536"]):
        got = rss(run(words, options, "call_ns=0").out)
        check(got[0] - alone[0] < 16 << 10, f"{got} against {alone} kB")
        check(got[2] - alone[2] < 160 << 10, f"{got} against {alone} kB")


def t_real_cupti():
    """the real libcupti without a driver: calm, one line, the target unaffected"""
    lib = os.path.join(CUDA, "lib64")
    if not os.path.exists(os.path.join(lib, "libcupti.so")):
        return "no libcupti in " + lib
    if os.path.exists("/dev/nvidiactl"):
        return "there is a driver"
    env = {"LD_LIBRARY_PATH": lib}
    words = "launch:1000 h2d:5 d2h:5 sync tasks:60000 exit:3"
    for way in (["--preload"], []):
        r = run(words, way, env=env)
        equal((r.code, r.out, r.err), plain(words, env=env))
    r = run(words.replace("tasks:60000", "rss"), ["--preload"], env=env)
    check(rss(r.out)[0] - rss(plain("launch:1 rss", env=env)[1])[0] < 16 << 10, r.out)
    equal((r.status["state"], r.status["fault_code"]), (STATE_REFUSED, "999"))
    check(r.status["explain"].startswith("CUDA agent: no usable CUDA driver"), r.status["explain"])
    check("libcupti.so" in r.status["cupti_path"], r.status["cupti_path"])
    return None


def parts(name, env):
    p = subprocess.run([os.path.join(SIM, name)], env=dict(os.environ, **env), capture_output=True, timeout=240)
    check(p.returncode == 0 and b"ThreadSanitizer" not in p.stderr, (p.stdout + p.stderr).decode()[-2000:])


def t_parts():
    """records and buffers by themselves, under ASan and UBSan"""
    parts("agent_parts", {})


def t_parts_race():
    """threads that complete buffers while the ring is read, under TSan"""
    parts("agent_parts_tsan", {"AGENT_PARTS_RACE": "1", "TSAN_OPTIONS": "exitcode=66"})


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("t_") and callable(f)]
    if len(sys.argv) > 1:
        tests = [(n, f) for n, f in tests if any(w in n for w in sys.argv[1:])]
    if not os.path.exists(AGENT) or not os.path.exists(TARGET):
        print("1..0 # SKIP no CUDA headers")
        return 77
    print(f"1..{len(tests)}")
    failed = 0
    for i, (name, test) in enumerate(tests, 1):
        try:
            skip = test()
            print(f"ok {i} - {test.__doc__}" + (f" # SKIP {skip}" if skip else ""), flush=True)
        except Exception:  # a test that breaks is a test that failed
            failed += 1
            print(f"not ok {i} - {test.__doc__} ({name})")
            print("".join("# " + line for line in traceback.format_exc().splitlines(True)[-4:]), flush=True)
    shutil.rmtree(tmp, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
