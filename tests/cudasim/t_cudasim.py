#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The simulated CUDA libraries: their symbols against the real ones, when what happens on a
simulated GPU, that the records say the same as the truth log, and every fault that can be had.
"""

import collections
import csv
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
SIM = os.path.join(BUILD, "tests", "cudasim")
PROBE = os.path.join(SIM, "sim_probe")
QUANT = os.path.join(BUILD, "tests", "w_quant_gpu")
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
WORK = tempfile.mkdtemp(prefix="qbpf-cudasim-")

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, OVERHEAD, MEMCPY2, SYNC, EXTERNAL, GRAPH = (
    1, 2, 4, 5, 10, 17, 22, 38, 39, 51)
ALL = (MEMCPY, MEMCPY2, MEMSET, DRIVER, RUNTIME, KERNEL, SYNC, OVERHEAD)
# Times that can be worked out by hand.
EXACT = "clock=virtual,load_ns=0,init_ns=0"
LENGTHS = "k_short=5000,k_long=50000"
VIRTUAL_START = 1000000000000
REALTIME = 1700000000000000000
NEVER = (1 << 64) - 1

number = 0
failed = 0

Rec = collections.namedtuple("Rec", "kind name start end corr device context stream rest")


class Run:
    """One run of a program on the simulator: what it printed, what its records and the truth say."""

    count = 0

    def __init__(self, words, sim="", kernels=LENGTHS, fail="", env=None, timeout=120):
        Run.count += 1
        truth = os.path.join(WORK, f"truth-{Run.count}.csv")
        full = dict(os.environ, CUDASIM=sim, CUDASIM_KERNELS=kernels, CUDASIM_FAIL=fail,
                    CUDASIM_TRUTH=truth, **(env or {}))
        begin = time.monotonic_ns()
        p = subprocess.run([str(w) for w in words], env=full, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=timeout)
        self.ns = time.monotonic_ns() - begin
        self.rc, self.out, self.err = p.returncode, p.stdout, p.stderr
        self.records, self.said = [], {}
        for line in p.stdout.splitlines():
            f = line.split(",")
            if f[0] != "record":
                self.said.setdefault(f[0], []).append(f[1:])
            elif f[1] == "external":
                self.records.append(Rec("external", "", 0, 0, int(f[5]), 0, 0, 0, f[6:]))
            else:
                self.records.append(Rec(f[1], f[2], *map(int, f[3:9]), f[9:]))
        self.truth = []
        if os.path.exists(truth):
            with open(truth, newline="") as f:
                self.truth = list(csv.DictReader(f))

    def of(self, kind):
        return [r for r in self.records if r.kind == kind]

    def real(self, what):
        return [t for t in self.truth if t["what"] == what]


def probe(scenario, *kinds, **more):
    r = Run([PROBE, scenario, *kinds], **more)
    check(r.rc == 0, f"{scenario}: status {r.rc}: {r.err}")
    return r


def check(ok, why):
    if not ok:
        raise AssertionError(why)


def equal(got, want, what=""):
    check(got == want, f"{what}: got {got!r}, expected {want!r}")


def case(fn):
    global number, failed
    number += 1
    name = " ".join(fn.__doc__.split())
    try:
        skipped = fn()
    except (AssertionError, subprocess.TimeoutExpired) as e:
        failed += 1
        print("not ok", number, "-", name)
        print("#  ", str(e)[:1500].replace("\n", "\n#   "))
    else:
        print("ok", number, "-", name, f"# SKIP {skipped}" if skipped else "")
    sys.stdout.flush()


# --- the libraries -------------------------------------------------------------------------------


def symbols(path):
    out = subprocess.run(["readelf", "-W", "--dyn-syms", path], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    found = set()
    for line in out.splitlines():
        f = line.split()
        if len(f) == 8 and f[3] in ("FUNC", "NOTYPE", "GNU_IFUNC") and f[6] != "UND":
            found.add(f[7])
    return found


def soname(path):
    out = subprocess.run(["readelf", "-d", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"SONAME.*\[(.*)\]", out).group(1)


def subset(name, least):
    real = os.path.join(CUDA, "lib64", name)
    if not os.path.exists(real):
        return f"no {real}"
    sim = os.path.join(SIM, name)
    equal(soname(sim), soname(real), "SONAME")
    ours, theirs = symbols(sim), symbols(real)
    equal(sorted(ours - theirs), [], "symbols or versions that the real library has not")
    check(len(ours) >= least, f"only {len(ours)} symbols")
    return None


def t_cudart_symbols():
    """libcudart: every symbol and its version is one of the real library's"""
    return subset("libcudart.so.13", 120)


def t_cupti_symbols():
    """libcupti: every symbol and its version is one of the real library's"""
    return subset("libcupti.so.13", 40)


def t_cuda_symbols():
    """libcuda: every entry point is one of the toolkit's stub library"""
    stubs = glob.glob(os.path.join(CUDA, "lib64", "stubs", "libcuda.so"))
    if not stubs:
        return "no stubs/libcuda.so"
    ours = {s for s in symbols(os.path.join(SIM, "libcuda.so.1")) if not s.startswith("sim_")}
    equal(sorted(ours - symbols(stubs[0])), [], "symbols that the stub has not")
    check(len(ours) > 100, f"only {len(ours)} symbols")
    equal(soname(os.path.join(SIM, "libcuda.so.1")), "libcuda.so.1", "SONAME")
    return None


def t_twins():
    """each function that has a twin for per-thread streams in the real library has it here"""
    real = os.path.join(CUDA, "lib64", "libcudart.so.13")
    if not os.path.exists(real):
        return "no real libcudart"
    ours, theirs = symbols(os.path.join(SIM, "libcudart.so.13")), symbols(real)
    missing = []
    for s in ours:
        base, at, version = s.partition("@@")
        for twin in ("_ptsz", "_ptds"):
            t = base + twin + at + version
            if t in theirs and t not in ours:
                missing.append(t)
    equal(sorted(missing), [], "twins")
    return None


def t_record_sizes():
    """records are as long as the real library steps over them"""
    real = os.path.join(CUDA, "lib64", "libcupti.so.13")
    if not os.path.exists(real):
        return "no real libcupti"
    steps = {}
    script = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
for kind in map(int, sys.argv[2:]):
    size = 1024
    buf = (ctypes.c_uint8 * size)()
    for at in range(0, size, 4):
        ctypes.c_uint32.from_buffer(buf, at).value = kind
    rec = ctypes.c_void_p(0)
    a = lib.cuptiActivityGetNextRecord(buf, ctypes.c_size_t(size), ctypes.byref(rec))
    first = rec.value
    b = lib.cuptiActivityGetNextRecord(buf, ctypes.c_size_t(size), ctypes.byref(rec))
    print(kind, a, b, rec.value - first if not a and not b else -1)
"""
    kinds = [str(k) for k in (MEMCPY, MEMCPY2, MEMSET, DRIVER, RUNTIME, KERNEL, SYNC, OVERHEAD,
                              EXTERNAL, GRAPH)]
    for path in (real, os.path.join(SIM, "libcupti.so.13")):
        p = subprocess.run([sys.executable, "-c", script, path, *kinds], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=60)
        steps[path] = p.stdout
        equal(p.returncode, 0, p.stdout)
    equal(steps[os.path.join(SIM, "libcupti.so.13")], steps[real], "kind, results, step")
    check(" -1\n" not in steps[real], steps[real])
    return None


# --- the model -----------------------------------------------------------------------------------


def t_deterministic():
    """the same run twice gives the same records and the same truth; another seed another one"""
    runs = [probe("overlap", *ALL, sim=f"clock=virtual,jitter=20,seed={s}") for s in (1, 1, 2)]

    def lengths(r):
        # Two workers return their buffers in any order.
        return sorted((k.corr, k.name, k.start, k.end) for k in r.of("kernel") + r.of("memcpy"))

    def truth(r):
        return [{k: v for k, v in t.items() if k != "tid"} for t in r.truth]

    check(len(lengths(runs[0])) == 7, runs[0].out)
    equal(lengths(runs[0]), lengths(runs[1]), "records")
    equal(truth(runs[0]), truth(runs[1]), "truth")
    check(lengths(runs[0]) != lengths(runs[2]), "the seed changes nothing")


def t_stream_order():
    """on a stream each operation starts when the one before has ended, with the exact length"""
    r = probe("basic", MEMCPY, MEMSET, KERNEL, sim=EXACT)
    ops = sorted((x for x in r.records if x.stream == 13), key=lambda x: x.start)
    equal([x.kind for x in ops], ["memcpy", "kernel", "kernel", "memset", "memcpy"], "order")
    # 1 us and 1 MiB at 25 GB/s; the table's lengths; 4 KiB at 1 TB/s
    equal([x.end - x.start for x in ops], [42943, 5000, 50000, 1004, 42943], "lengths")
    equal([b.start - a.end for a, b in zip(ops, ops[1:])], [0, 0, 0, 0], "gaps")
    # Three calls before the copy, its own 2 us, 3 us until the device sees it.
    equal(ops[0].start, REALTIME + VIRTUAL_START + 4 * 2000 + 3000, "start")
    equal(r.said["data"], [["3", "7"]], "what the copies and the memset left")


def t_sync_copy():
    """a synchronous copy from pageable memory holds up the host to its end; asynchronous ones do not"""
    r = probe("basic", MEMCPY, RUNTIME, sim=EXACT)
    sync = [c for c in r.of("runtime") if c.name.startswith("cudaMemcpy_")][0]
    copy = [c for c in r.of("memcpy") if c.corr == sync.corr][0]
    equal(copy.end, sync.end, "ends")
    equal(copy.end - copy.start, 1000 + 4096 * 1000 // 6000, "length")
    equal(copy.rest, ["4096", "1", "1", "3", "0"], "bytes, direction, from pageable, to device, flags")
    for c in r.of("runtime"):
        if c.name.startswith("cudaMemcpyAsync"):
            equal(c.end - c.start, 2000, "host time of an asynchronous copy")


def t_overlap():
    """copies of one direction take turns, of two streams' copies and kernels run side by side"""
    r = probe("overlap", MEMCPY, KERNEL, sim=EXACT)
    h2d = sorted((m for m in r.of("memcpy") if m.rest[1] == "1"), key=lambda m: m.start)
    d2h = sorted((m for m in r.of("memcpy") if m.rest[1] == "2"), key=lambda m: m.start)
    long = sorted((k for k in r.of("kernel") if k.name == "k_long"), key=lambda k: k.start)
    equal((len(h2d), len(d2h), len(long)), (2, 2, 2), "activities")
    equal(h2d[1].start, h2d[0].end, "the second copy to the device waits for the engine")
    check(d2h[1].start >= d2h[0].end, "two copies from the device at once")
    check(long[0].start < h2d[1].end and h2d[1].start < long[0].end, "no copy beside a kernel")
    check(long[1].start < long[0].end, "no kernel beside a kernel")
    last = [k for k in r.of("kernel") if k.name == "k_short"][0]
    waited = max(m.end for m in d2h)
    equal(last.start, waited, "the kernel after the wait for an event")
    equal(sorted({h2d[0].stream, h2d[1].stream}), [13, 14], "streams")


def t_slots():
    """slots=1: one kernel at a time"""
    r = probe("overlap", KERNEL, sim=EXACT + ",slots=1")
    long = sorted((k for k in r.of("kernel")), key=lambda k: k.start)
    for a, b in zip(long, long[1:]):
        check(b.start >= a.end, f"{a} and {b}")


def t_legacy():
    """the legacy stream waits for blocking streams and they for it; others do not; per-thread ids"""
    r = probe("legacy", KERNEL, sim=EXACT)
    k = {(x.name, x.stream): x for x in r.of("kernel")}
    equal(sorted(s for _, s in k), [7, 13, 13, 14, 15], "streams")
    first, legacy = k[("k_long", 13)], k[("k_long", 7)]
    after, free, own = k[("k_short", 13)], k[("k_short", 14)], k[("k_short", 15)]
    equal(legacy.start, first.end, "legacy after the blocking stream")
    equal(after.start, legacy.end, "the blocking stream after legacy")
    equal(own.start, legacy.end, "the thread's own stream after legacy")
    check(free.end < first.end, "a non-blocking stream waited")


def t_graph():
    """all that a graph launch does has the launch's correlation id; dependencies hold"""
    r = probe("graph", MEMCPY, MEMSET, KERNEL, RUNTIME, sim=EXACT)
    launches = [c for c in r.of("runtime") if c.name.startswith("cudaGraphLaunch")]
    equal(len(launches), 3, "launches")
    for c in launches:
        ops = [x for x in r.records if x.corr == c.corr and x.kind != "runtime"]
        equal(sorted(x.kind for x in ops), ["kernel"] * 3 + ["memcpy", "memset"], "nodes of a launch")
        copy = [x for x in ops if x.kind == "memcpy"][0]
        long = [x for x in ops if x.name == "k_long"]
        short = [x for x in ops if x.name == "k_short"][0]
        equal([x.start for x in long], [copy.end + 1000] * 2, "both branches start together")
        equal(short.start, long[0].end + 2000, "the join waits for both")
        check(all(x.rest[2] != "0" for x in long), "no graph id")
    nodes = [x.rest[3] for x in r.of("kernel")]
    equal(len(set(nodes)), 3, "node ids are those of the graph, not of the launch")
    equal(r.said["data"], [["5", "9"]], "what the graph left")


def t_graph_trace():
    """GRAPH_TRACE: one record for a launch, none for its nodes"""
    r = probe("graph", MEMCPY, MEMSET, KERNEL, GRAPH, sim=EXACT)
    equal([x.kind for x in r.records], ["graph"] * 3, "records")
    truth = r.real("graph")
    equal([(x.start - REALTIME, x.end - REALTIME) for x in r.of("graph")],
          [(int(t["start"]), int(t["end"])) for t in truth], "times")


def t_devices():
    """devices have contexts and engines of their own; a copy between two has both in its record"""
    r = probe("devices", KERNEL, MEMCPY2, sim=EXACT + ",devices=2")
    equal(r.said["devices"], [["2"]], "count")
    equal(r.said["error"], [["101"]], "a device that there is not")
    k = r.of("kernel")
    equal(sorted((x.device, x.context) for x in k), [(0, 1), (1, 2)], "device and context")
    a, b = sorted(k, key=lambda x: x.start)
    check(b.start < a.end, "the devices take turns")
    equal([x.rest for x in r.of("memcpy2")], [["1048576", "1", "0"]], "bytes, from, to")


def t_no_device():
    """devices=0: cudaErrorNoDevice"""
    r = Run([PROBE, "many"], sim="devices=0")
    equal((r.rc, r.err.split(":")[-1].strip()), (1, "100"), "status and error")


def t_driver_only():
    """a program with no runtime: PTX, a length that is a parameter, launches of both kinds"""
    r = probe("driver", KERNEL, DRIVER, RUNTIME, MEMSET, sim=EXACT)
    equal(r.of("runtime"), [], "runtime records")
    equal([(x.name, x.end - x.start, x.rest[1]) for x in r.of("kernel")],
          [("spin", 77000, "3"), ("spin", 77000, "2")], "kernels")
    names = [x.name for x in r.of("driver")]
    for n in ("cuInit", "cuLaunchKernel", "cuLaunchKernelEx", "cuMemsetD32Async", "cuStreamSynchronize"):
        equal(names.count(n), 1, n)
    equal(r.said["missing"], [["500"]], "a kernel that the PTX has not")


def t_nested():
    """a driver call inside a runtime call has its id and lies within its time"""
    r = probe("basic", *ALL, sim=EXACT)
    outer = {c.corr: c for c in r.of("runtime")}
    check(len(outer) > 10, r.out)
    for d in r.of("driver"):
        c = outer[d.corr]
        check(c.start <= d.start <= d.end <= c.end, f"{d} not in {c}")
    check(len(r.of("driver")) >= len(outer), "too few driver calls")


def t_first_launch():
    """the first launch of a kernel costs load_ns on the host, tells it, and no later one does"""
    r = probe("many", RUNTIME, OVERHEAD, sim="clock=virtual,load_ns=123000,init_ns=456000")
    calls = [c for c in r.of("runtime") if c.name.startswith("cudaLaunchKernel")]
    equal([c.end - c.start for c in calls[:3]], [2000 + 456000 + 123000, 2000, 2000], "host times")
    over = r.of("overhead")
    equal([(o.end - o.start, o.rest[1]) for o in over], [(123000, str(5 << 16))], "overhead")


def t_queue():
    """a full queue holds up the host until its oldest entry has ended"""
    r = probe("many", KERNEL, RUNTIME, sim=EXACT + ",queue=4")
    k, calls = r.of("kernel"), [c for c in r.of("runtime") if c.name.startswith("cudaLaunch")]
    for i in range(4, 100):
        equal(calls[i].end, max(k[i - 4].end, calls[i].start + 2000), f"launch {i}")


def t_events():
    """events tell the exact length; host functions have run when a wait returns"""
    r = probe("events", sim=EXACT)
    equal(r.said["query"], [["600"]], "cudaErrorNotReady")
    equal(r.said["ran"], [["1"]], "host function")
    equal(r.said["elapsed"], [["50000"]], "ns")


def t_real_clock():
    """the real clock: the host really waits, records and truth agree to the ns"""
    r = probe("basic", *ALL, kernels="k_short=5000,k_long=30000000")
    sync = [c for c in r.of("runtime") if c.name.startswith("cudaStreamSynchronize")][0]
    kernel = [k for k in r.of("kernel") if k.name == "k_long"][0]
    equal(kernel.end - kernel.start, 30000000, "its length")
    check(sync.end >= kernel.end, f"went on {kernel.end - sync.end} ns before the kernel's end")
    check(r.ns >= 30000000, f"the whole run took {r.ns} ns")
    compare(r, offset=None)


def compare(r, offset):
    """Every record is in the truth, with its times (moved by one same offset), and the other way."""
    kinds = {"kernel": ("name",), "memcpy": ("bytes",), "memset": ("bytes",), "sync": ()}
    for kind, fields in kinds.items():
        truth = [t for t in r.real(kind)]
        records = r.of(kind)
        equal(len(records), len(truth), f"{kind}s")
        left = collections.Counter()
        for t in truth:
            extra = tuple(t[f] for f in fields)
            left[(int(t["correlation"]), int(t["end"]) - int(t["start"]), int(t["stream"]), *extra)] += 1
        for x in records:
            extra = tuple({"name": x.name, "bytes": x.rest[0]}[f] for f in fields)
            key = (x.corr, x.end - x.start, x.stream, *extra)
            check(left[key] > 0, f"{kind} {key} is not in the truth")
            left[key] -= 1
            t = [t for t in truth if int(t["correlation"]) == x.corr and
                 int(t["end"]) - int(t["start"]) == x.end - x.start]
            if offset is None:
                offset = x.start - int(t[0]["start"])
            check(x.start - int(t[0]["start"]) == offset or len(t) > 1, f"{x} against {t[0]}")
    for kind in ("runtime", "driver"):
        truth = sorted((t["name"], int(t["correlation"]), int(t["start"]) + offset, int(t["end"]) + offset,
                        int(t["tid"])) for t in r.real(kind))
        records = sorted((re.sub(r"_v\d+$", "", x.name) if kind == "runtime" else x.name, x.corr, x.start,
                          x.end, x.context) for x in r.of(kind))
        equal(len(records), len(truth), f"{kind} calls")
        equal(records, truth, f"{kind} calls")


def t_truth():
    """records and truth agree: basic, overlap, legacy, graph, threads"""
    for scenario in ("basic", "overlap", "legacy", "graph"):
        compare(probe(scenario, *ALL, sim="clock=virtual"), offset=REALTIME)
    r = probe("threads", *ALL)
    compare(r, offset=None)
    equal(len(r.of("kernel")), 1600, "kernels")


# --- buffers -------------------------------------------------------------------------------------


def t_buffers():
    """small buffers, many threads: asked for by several at once, each returned once, nothing lost"""
    r = probe("threads", *ALL)
    asked, back, most = map(int, r.said["buffers"][0])
    equal(asked, back, "buffers asked for and returned")
    check(asked > 50, f"only {asked} buffers")
    check(most >= 8, f"at most {most} at once")
    equal(r.said["dropped"], [["0"]], "dropped")


def t_race():
    """race=N: N requests at the same time, and their buffers come back empty"""
    r = probe("many", RUNTIME, sim="race=8")
    asked, back, most = map(int, r.said["buffers"][0])
    equal(asked, back, "buffers asked for and returned")
    check(asked >= 9, f"only {asked} asked for")
    equal(len(r.of("runtime")), 101, "records")


def t_one_record():
    """a limit of one record in a buffer is kept"""
    r = probe("one_record_each", RUNTIME, KERNEL)
    asked, back, _ = map(int, r.said["buffers"][0])
    equal((asked, back, len(r.records)), (201, 201, 201), "buffers and records")


def t_no_room():
    """a tool that gives no buffer loses every record, and is told how many"""
    r = probe("no_room", RUNTIME, KERNEL)
    equal(r.said["dropped"], [["201"]], "dropped")
    equal(len(r.real("lost")), 201, "lost in the truth")
    equal(r.records, [], "records")


def t_chosen():
    """cuptiActivityEnableRuntimeApi: only the chosen calls"""
    r = probe("chosen")
    equal([x.name for x in r.records], ["cudaLaunchKernel_v7000"] * 100, "records")


def t_external():
    """external correlation ids come before the call that they belong to"""
    r = probe("external", RUNTIME, EXTERNAL, sim="threads=1")
    kinds = [(x.kind, x.corr) for x in r.records]
    equal(kinds, [("external", 1), ("runtime", 1), ("runtime", 2)], "records")
    equal(r.records[0].rest, ["3", "111"], "kind and id")
    equal(r.said["popped"], [["111", "18"]], "pop, and one too many")


def t_callbacks():
    """callbacks at entry and exit of each chosen call, with its arguments and result; none later"""
    r = probe("callbacks", RUNTIME)
    equal(r.said["callbacks"], [["100", "100"]] * 2, "entries and exits")
    equal(r.said["second"], [["39", "CUPTI for cudasim's rival"]], "a second subscriber")


def t_finalize():
    """cuptiFinalize in a callback at exit: nothing comes after it"""
    r = probe("finalize", RUNTIME, KERNEL)
    equal(r.said["callbacks"], [["5", "5"]] * 2, "callbacks")
    launches = [x for x in r.of("runtime") if x.name.startswith("cudaLaunch")]
    equal(len(launches), 5, "records of launches")


def t_leaving():
    """the tool leaves and comes back while four threads make calls: buffers are not lost"""
    r = probe("leaving", RUNTIME, KERNEL)
    asked, back, _ = map(int, r.said["buffers"][0])
    equal(asked, back, "buffers asked for and returned")
    check(len(r.of("runtime")) > 100, "few records")
    check("broken" not in r.said, "a broken buffer")


def t_fork():
    """a child of a process that used the GPU gets error 3; its parent goes on; no record from it"""
    r = probe("child", RUNTIME, KERNEL)
    equal(r.said["child"], [["42"]], "child")
    equal(len(r.of("kernel")), 2, "kernels")


# --- clocks --------------------------------------------------------------------------------------


def t_clock_first():
    """a timestamp callback that comes first: all times are CLOCK_MONOTONIC, as the truth's"""
    compare_some(probe("clocked", RUNTIME, KERNEL), 0, 0)


def t_clock_late():
    """a timestamp callback that comes late: calls in its clock, devices still in CLOCK_REALTIME"""
    r = probe("late_clock", RUNTIME, KERNEL)
    k = r.of("kernel")[-1]
    t = [t for t in r.real("kernel") if int(t["correlation"]) == k.corr][0]
    ahead = k.start - int(t["start"])
    check(ahead > 1 << 60, f"device times are {ahead} ns ahead")
    c = [c for c in r.of("runtime") if c.corr == k.corr][0]
    t = [t for t in r.real("runtime") if int(t["correlation"]) == k.corr][0]
    equal(c.start, int(t["start"]), "call")


def compare_some(r, api_offset, device_offset):
    for what, offset in (("runtime", api_offset), ("kernel", device_offset)):
        truth = {int(t["correlation"]): t for t in r.real(what)}
        check(r.of(what), f"no {what} records")
        for x in r.of(what):
            equal(x.start - int(truth[x.corr]["start"]), offset, f"{what} {x.corr}")


def t_offset():
    """offset_ns and drift_ppb move the times of devices, and no others"""
    r = probe("many", RUNTIME, KERNEL, sim="clock=virtual,offset_ns=-5000")
    compare_some(r, REALTIME, REALTIME - 5000)
    r = probe("many", RUNTIME, KERNEL, sim="clock=virtual,drift_ppb=100000000")
    truth = {int(t["correlation"]): t for t in r.real("kernel")}
    for k in r.of("kernel"):
        true = int(truth[k.corr]["start"])
        equal(k.start - REALTIME - true, (true - VIRTUAL_START) // 10, "drift of a tenth")


# --- faults --------------------------------------------------------------------------------------


def t_subscribe_errors():
    """cuptiSubscribe fails with 39 (and names the rival), 35, 15, 999"""
    for n, name in ((39, "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"), (35, "INSUFFICIENT_PRIVILEGES"),
                    (15, "NOT_INITIALIZED"), (999, "UNKNOWN")):
        r = probe("subscribe", sim=f"subscribe={n}")
        rival = "CUPTI for cudasim's rival" if n == 39 else ""
        equal(r.said["subscribe"], [[str(n), "CUPTI_ERROR_" + name, rival]], "result")
        equal([(t["name"], t["result"]) for t in r.real("cupti") if "Subscribe" in t["name"]],
              [("cuptiSubscribe_v2", str(n))], "truth")


def t_enable_errors():
    """one kind cannot be enabled, or none"""
    r = probe("enabling", sim=f"enable_error=35,enable_kind={MEMSET}")
    equal(r.said["enable"], [["1", "0"], ["2", "35"], ["10", "0"]], "one")
    r = probe("enabling", sim="enable_error=999")
    equal(r.said["enable"], [["1", "999"], ["2", "999"], ["10", "999"]], "all")


def t_drop():
    """drop=N: every N-th record is lost, counted, and named in the truth"""
    r = probe("many", RUNTIME, KERNEL, sim="drop=10")
    equal(r.said["dropped"], [["20"]], "dropped")
    equal(len(r.records), 181, "records")
    lost = [(t["name"], int(t["correlation"])) for t in r.real("lost")]
    equal(len(lost), 20, "lost")
    kinds = {"api": "runtime", "device": "kernel"}
    for name, corr in lost:
        check(not [x for x in r.records if x.corr == corr and x.kind == kinds[name]], f"{name} {corr}")


def t_order():
    """order=: calls first, calls last, and shuffled by the seed; nothing is lost by it"""
    natural = probe("many", RUNTIME, KERNEL, sim=EXACT)
    for order, first in (("api-first", "runtime"), ("api-last", "kernel")):
        r = probe("many", RUNTIME, KERNEL, sim=EXACT + ",order=" + order)
        kinds = [x.kind for x in r.records]
        turn = kinds.index("runtime" if first == "kernel" else "kernel")
        equal(set(kinds[:turn]), {first}, order)
        check(first not in kinds[turn:], order)
        equal(sorted((x.kind, x.corr, x.start, x.end) for x in r.records),
              sorted((x.kind, x.corr, x.start, x.end) for x in natural.records), "the same records")
    a, b, c = (probe("many", RUNTIME, KERNEL, sim=EXACT + f",order=shuffle,threads=1,seed={s}")
               for s in (1, 1, 2))
    same = [(x.kind, x.corr) for x in natural.records]
    check([(x.kind, x.corr) for x in a.records] != same, "not shuffled")
    equal([(x.kind, x.corr) for x in a.records], [(x.kind, x.corr) for x in b.records], "one seed")
    check([(x.kind, x.corr) for x in a.records] != [(x.kind, x.corr) for x in c.records], "two seeds")
    equal(sorted((x.kind, x.corr) for x in a.records), sorted(same), "the same records")


def t_times():
    """times=: zero, reversed, in the far future; every K-th with times_every"""
    true = probe("many", KERNEL, sim=EXACT).of("kernel")
    zero = probe("many", KERNEL, sim=EXACT + ",times=zero,times_every=3").of("kernel")
    equal([(a.start, a.end) for i, a in enumerate(zero) if (i + 1) % 3 == 0], [(0, 0)] * 33, "zero")
    equal([a for i, a in enumerate(zero) if (i + 1) % 3], [a for i, a in enumerate(true) if (i + 1) % 3],
          "the others")
    rev = probe("many", KERNEL, sim=EXACT + ",times=reversed").of("kernel")
    equal([(a.end, a.start) for a in rev], [(a.start, a.end) for a in true], "reversed")
    future = probe("many", KERNEL, sim=EXACT + ",times=future").of("kernel")
    check(all(a.start >> 62 == 1 and a.end > a.start for a in future), "future")
    equal([a.corr for a in future], [a.corr for a in true], "ids")


def t_wrap():
    """correlation ids wrap around 2^32"""
    r = probe("many", KERNEL, RUNTIME, sim=EXACT + ",correlation=4294967290")
    want = [(4294967290 + i) % (1 << 32) for i in range(100)]
    equal([k.corr for k in r.of("kernel")], want, "kernels")
    equal([c.corr for c in r.of("runtime")][:100], want, "calls")


def t_persistent():
    """a kernel that never ends: what follows on its stream never comes, another stream goes on"""
    r = probe("persistent", KERNEL, RUNTIME, kernels="k_short=5000,k_long=inf")
    equal([(k.name, k.stream) for k in r.of("kernel")], [("k_short", 14)], "kernels")
    equal(r.said["query"], [["600"]], "its stream is not ready")
    ends = {(t["name"], t["stream"]): int(t["end"]) for t in r.real("kernel")}
    equal((ends[("k_long", "13")], ends[("k_short", "13")]), (NEVER, NEVER), "truth")


def t_hang():
    """hang=flush and hang=finalize never return"""
    for scenario, sim in (("many", "hang=flush"), ("leaving", "hang=finalize")):
        try:
            Run([PROBE, scenario, RUNTIME], sim=sim, timeout=2)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"{sim}: it ended")


def t_call_errors():
    """CUDASIM_FAIL: a call fails every K-th time, with its last error; the others do not"""
    r = probe("failing", RUNTIME, MEMCPY, fail="cudaMemcpy=2/3")
    want = [["0"] * 4, ["0"] * 4, ["2", "2", "2", "0"]] * 3
    equal(r.said["error"], want + [["9"], ["98"], ["1"]], "results")
    equal([c.rest[0] if c.rest else str(c.stream) for c in r.of("runtime") if c.name == "cudaMemcpy_v3020"],
          ["0", "0", "2"] * 3, "results in the records")
    equal(len(r.of("memcpy")), 6, "a call that fails copies nothing")


def t_versions():
    """version= and record_pad=: the version that is told, and records of other lengths"""
    want = None
    for sim, version in (("", 130001), ("version=120800", 120800), ("version=130000", 130000),
                         ("record_pad=64", 130001)):
        r = probe("version", *ALL, sim=EXACT + "," + sim if sim else EXACT)
        equal(r.said["version"], [[str(version)]], "version")
        check("broken" not in r.said, f"{sim}: broken buffer")
        got = sorted((x.kind, x.name, x.start, x.end, x.corr) for x in r.records)
        want = want or got
        equal(got, want, f"records with {sim}")


def t_bad_words():
    """a word of the environment that is not understood ends the program with 120"""
    for name, value in (("CUDASIM", "sede=1"), ("CUDASIM", "clock=sundial"), ("CUDASIM", "devices=9"),
                        ("CUDASIM", "seed"), ("CUDASIM_FAIL", "cudaMalloc"), ("CUDASIM_FAIL", "x=1/0"),
                        ("CUDASIM_KERNELS", "k=soon"), ("CUDASIM_KERNELS", "k=arg99")):
        p = subprocess.run([PROBE, "many"], env=dict(os.environ, **{name: value}),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        equal((p.returncode, p.stderr), (120, f"cudasim: {name}: '{value}' is not understood\n"), value)


def t_injection():
    """CUDA_INJECTION64_PATH is loaded at the first use of CUDA, and its InitializeInjection called"""
    lib = os.path.join(SIM, "libsim_inject.so")
    r = Run([PROBE, "many"], env={"CUDA_INJECTION64_PATH": lib})
    equal((r.rc, r.err), (0, "injected\n"), "status and stderr")
    r = Run([PROBE, "subscribe"], env={"CUDA_INJECTION64_PATH": lib})
    equal((r.rc, r.err), (0, ""), "a program that does not use CUDA")


# --- the workload --------------------------------------------------------------------------------


def t_quant():
    """w_quant_gpu decides the same with synchronous copies, on 1, 2 and 5 streams, and as a graph"""
    answers = set()
    for words in ([], ["--flaw", "sync-copy"], ["--streams", "1"], ["--streams", "5"], ["--graph"]):
        r = Run([QUANT, "--ticks", 300, "--cpu-ns", 0, *words], sim="clock=virtual", kernels="")
        equal(r.rc, 0, r.err)
        lines = r.out.splitlines()
        answers.add(tuple(lines[1:]))
        for span in ("strategy:tick", "signal:alpha", "order:decide"):
            check(f"count {span} 300" in lines, f"{words}: {r.out}")
        names = collections.Counter(t["name"] for t in r.real("kernel"))
        equal(names, {"alpha": 300, "score": 300}, "kernels")
        sync = [t for t in r.real("memcpy") if t["async"] == "0"]
        equal(len(sync), 600 if "--flaw" in words else 0, f"{words}: synchronous copies")
    equal(len(answers), 1, f"answers: {answers}")


def t_quant_overlap():
    """w_quant_gpu: copies run beside kernels only where they are asynchronous"""
    shared = {}
    for name, words in (("flaw", ["--flaw", "sync-copy"]), ("repaired", ["--streams", "4"])):
        r = Run([QUANT, "--ticks", 200, "--cpu-ns", 0, *words], sim="clock=virtual", kernels="")
        kernels = [(int(t["start"]), int(t["end"])) for t in r.real("kernel")]
        shared[name] = sum(
            max(0, min(int(t["end"]), e) - max(int(t["start"]), s))
            for t in r.real("memcpy") for s, e in kernels)
    equal(shared["flaw"], 0, "ns shared with synchronous copies")
    check(shared["repaired"] > 200 * 5000, f"only {shared['repaired']} ns shared")


def main():
    if not os.path.exists(PROBE):
        print("1..0 # SKIP tests/cudasim is not built: no CUDA headers")
        return 77
    tests = [fn for name, fn in globals().items() if name.startswith("t_")]
    print(f"1..{len(tests)}")
    for fn in tests:
        case(fn)
    for path in glob.glob(os.path.join(WORK, "*")):
        os.unlink(path)
    os.rmdir(WORK)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
