#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf export of what a GPU did, read back by a reader of each format and compared with a reader of the
records, for made-up recordings; and with what the simulator did, for recordings by the agent."""

import collections
import csv
import functools
import io
import json
import math
import os
import struct
import subprocess

from export_readers import Chrome
from export_truth import MKTRACE, export, main, plain, qtrace, run, same, tmp, valid
from harness import BUILD, Skip, case, check, equal
from perfetto_reader import Perfetto

KERNEL, COPY, SET, SYNC, CALL, GRAPH, OVERHEAD, DEVICE, CONTEXT = range(1, 10)
START = 13
COPIES = {1: "host to device", 2: "device to host", 8: "on the device", 10: "device to device"}
DEMANGLED = {
    "_Z6signalPKfPfi": "signal(float const*, float*, int)",
    "_ZN4book6updateEPdi": "book::update(double*, int)",
}
QUANT = os.path.join(BUILD, "tests", "w_quant_gpu")
DUMP = os.path.join(BUILD, "tests", "ring_dump")
AGENT = os.path.join(BUILD, "libqbpf_cupti.so")
MADE_UP = 4194304

Call = collections.namedtuple("Call", "tgid tid name start end correlation error domain")


class Activity:
    def __init__(self, kind, name, start, end, place, correlation, size=None, grid=None, block=None):
        self.kind, self.name, self.start, self.end = kind, name, start, end
        self.device, self.context, self.stream = place
        self.correlation, self.size, self.grid, self.block = correlation, size, grid, block
        self.untimed = not start or not end or end < start
        self.call = None

    def key(self, name):
        return (name(self.name), self.start, self.end - self.start, self.device, self.context, self.stream,
                self.correlation)


class Truth:
    """activities with their calls, calls, the time from which files count; `name` makes text of bytes."""

    def __init__(self, path, calls, activities, pid):
        self.path, self.calls, self.activities, self.pid = path, calls, activities, pid
        t = qtrace.Trace(path)
        self.start = t.tables["meta"][0][7]
        self.zero = min([self.start] + [min(e[1], e[2]) for _, e in t.events()])
        self.tids = {(th[0], th[1]): th[2] for th in t.tables["threads"]}
        self.gpu_losses = t.tables["gpu_losses"]
        by_id = {}
        for c in calls:  # the outermost
            if c.correlation not in by_id or c.domain > by_id[c.correlation].domain:
                by_id[c.correlation] = c
        for a in activities:
            a.call = by_id.get(a.correlation)
        self.timed = [a for a in activities if not a.untimed]
        self.untimed = [a for a in activities if a.untimed]


def of_records(path):
    """By the layout of qbpf/ring.h."""
    t = qtrace.Trace(path)
    names = [None] + [n[0] for n in t.tables["gpu_names"]]
    calls, activities, pid = [], [], None

    def demangled(i):
        return DEMANGLED.get(names[i].decode("latin-1"), names[i]) if i else b"(a kernel without a name)"

    for _, rec in t.gpu_records():
        kind, size, first = struct.unpack_from("<HHI", rec)
        if kind == KERNEL:
            start, end, *rest = struct.unpack_from("<QQIIIIIIIIII", rec, 8)
            activities.append(Activity("kernel", demangled(first), start, end, rest[:3], rest[3], None,
                                       tuple(rest[4:7]), tuple(rest[7:10])))
        elif kind == COPY:
            n, start, end, *rest = struct.unpack_from("<QQQIIII", rec, 8)
            activities.append(Activity("copy", "copy " + COPIES[rec[4]], start, end, rest[:3], rest[3], n))
        elif kind == SET:
            n, start, end, *rest = struct.unpack_from("<QQQIIII", rec, 8)
            activities.append(Activity("memset", "memset", start, end, rest[:3], rest[3], n))
        elif kind == GRAPH:
            start, end, device, graph, context, stream = struct.unpack_from("<QQIIII", rec, 8)
            activities.append(Activity("graph", f"graph {graph}", start, end, (device, context, stream), first))
        elif kind == CALL:
            start, end, tgid, tid, correlation, error, name, domain = struct.unpack_from("<QQIIIIII", rec, 8)
            calls.append(Call(tgid, tid, names[name], start, end, correlation, error, domain))
        elif kind == START:
            pid = struct.unpack_from("<I", rec, 8)[0]
    return Truth(path, calls, activities, pid)


def as_text(name):
    return name if isinstance(name, str) else valid(name)


def as_plain(name):
    return name if isinstance(name, str) else plain(name)


@functools.lru_cache(maxsize=None)
def made_up(*options):
    path = os.path.join(tmp, "gpu" + "".join(options).replace("/", "_") + ".qbpf")
    subprocess.run([MKTRACE, "--shape", "gpu", *(options or ["--spans", "9000", "--threads", "4"]), path],
                   check=True)
    truth = of_records(path)
    check(len(truth.activities) > 1000 and truth.untimed, "activities, some untimed")
    return truth


@functools.lru_cache(maxsize=None)
def simulated(sim, *options):
    """A run of the workload on the simulator, recorded by the agent: the truth is the simulator's."""
    if not os.path.exists(QUANT) or not os.path.exists(AGENT):
        raise Skip("without the CUDA headers there is no agent and no simulator")
    stem = os.path.join(tmp, "sim" + str(abs(hash((sim, options)))))
    path, log, truth = stem + ".qbpf", stem + ".log", stem + ".csv"
    dump = [o[1:] for o in options if o.startswith("@")]
    argv = [DUMP, "--record", path, *dump, AGENT, log, "--", QUANT, "--kernel-ns", "40000",
            *[o for o in options if not o.startswith("@")]]
    p = subprocess.run(argv, env=dict(os.environ, CUDASIM_TRUTH=truth, CUDASIM=sim), capture_output=True, timeout=600)
    equal(p.returncode, 0, f"status of {argv}: {p.stderr}")
    rows = list(csv.DictReader(open(truth)))
    n = lambda r, k: int(r[k] or 0)  # noqa: E731
    of = of_records(path)
    activities = []
    for r in rows:
        place = n(r, "device"), n(r, "context"), n(r, "stream")
        times = n(r, "start"), n(r, "end")
        if r["what"] == "kernel" and (not n(r, "node") or "--nodes" in dump):
            activities.append(Activity("kernel", r["name"], *times, place, n(r, "correlation")))
        elif r["what"] == "memcpy" and (not n(r, "node") or "--nodes" in dump):
            activities.append(Activity("copy", "copy " + COPIES[n(r, "copy")], *times, place, n(r, "correlation"),
                                       n(r, "bytes")))
        elif r["what"] == "graph" and "--nodes" not in dump:
            activities.append(Activity("graph", f"graph {r['graph']}", *times, place, n(r, "correlation")))
    # Which calls the agent is to record is not the simulator's to say, but their times are.
    exact = collections.Counter((r["name"].split("_ptsz")[0], n(r, "start"), n(r, "end"))
                                for r in rows if r["what"] in ("runtime", "driver"))
    seen = collections.Counter((as_text(c.name), c.start, c.end) for c in of.calls)
    check(seen and not seen - exact, f"calls are the simulator's: {list((seen - exact).items())[:3]}")
    check(len(activities) >= 100, "the simulator did something")
    return Truth(path, of.calls, activities, of.pid)


def per_recording(fn):
    """One case for each recording: made up, and simulated."""
    recordings = {
        "made up": made_up,
        "synchronous copies": lambda: simulated("", "--ticks", "150", "--flaw", "sync-copy"),
        "three streams": lambda: simulated("", "--ticks", "150", "--streams", "3"),
        "graphs": lambda: simulated("", "--ticks", "100", "--graph"),
        "graphs, node by node": lambda: simulated("", "--ticks", "100", "--graph", "@--nodes"),
        "shuffled, ids that wrap": lambda: simulated("correlation=4294967200,order=shuffle,seed=3",
                                                     "--ticks", "150", "--streams", "3"),
    }
    for what, make in recordings.items():

        def one(make=make):
            fn(make())

        one.__name__ = f"{fn.__name__}_{what}".replace(" ", "_").replace(",", "")
        one.__doc__ = f"{fn.__doc__}: {what}"
        case(one)
    return fn


# --- levels --------------------------------------------------------------------------------------


def queue(activities):
    """stream -> [(time, how many were asked for and not done)], each time that it changes."""
    changes = collections.defaultdict(collections.Counter)
    for a in activities:
        asked = min(a.call.start, a.start) if a.call else a.start
        changes[a.device, a.context, a.stream][asked] += 1
        changes[a.device, a.context, a.stream][a.end] -= 1
    out = {}
    for stream, at in changes.items():
        now, out[stream] = 0, []
        for ns in sorted(at):
            now += at[ns]
            if at[ns]:
                out[stream].append((ns, now))
    return out


def busy_ns(activities, device, start, end):
    """Of the time from start to end: how much of it something runs on the device."""
    total, at = 0, start
    for a in sorted((a for a in activities if a.device == device), key=lambda a: a.start):
        if a.end > at and a.start < end:
            total += min(a.end, end) - max(a.start, at)
            at = min(a.end, end)
    return total


def check_levels(truth, queues, shares):
    """queues: (device, stream) -> [(time, n)]; shares: device -> [(time, percent)]."""
    want = {}
    for (device, _, stream), steps in queue(truth.timed).items():
        check((device, stream) not in want, "one context a device here")
        want[device, stream] = steps
    equal(sorted(queues), sorted(want), "streams with a level")
    for key, steps in want.items():
        equal(sorted(queues[key]), steps, f"level of {key}")
    equal(sorted(shares), sorted({a.device for a in truth.timed}), "devices with a share")
    for device, steps in shares.items():
        steps.sort()
        times = [at for at, _ in steps]
        width = functools.reduce(math.gcd, [t - truth.zero for t in times])
        check(width >= 100000, f"windows begin at multiples of their width: {width}")
        equal(steps[-1][1], 0, "the end is idle")
        whole = sum((b[0] - a[0]) * a[1] / 100 for a, b in zip(steps, steps[1:]))
        mine = [a for a in truth.timed if a.device == device]
        first, last = min(a.start for a in mine), max(a.end for a in mine)
        check(abs(whole - busy_ns(mine, device, first, last)) < 1000, "the sum of all shares is the busy time")
        for (at, share), (to, _) in list(zip(steps, steps[1:]))[:: max(len(steps) // 50, 1)]:
            got = busy_ns(mine, device, at, to) * 100 / (to - at)
            check(0 <= share <= 100 and abs(got - share) < 1e-6, f"share at {at}: {share}, and not {got}")


# --- perfetto ------------------------------------------------------------------------------------


def counters_of(p, truth):
    queues, shares = collections.defaultdict(list), collections.defaultdict(list)
    for track, at, value in p.counters:
        device = p.tracks[track.parent].name
        equal(p.tracks[p.tracks[track.parent].parent].name, "GPU", "what is around a device")
        equal(p.owner(track)[1].process[1][0], truth.pid, "whose GPU it is")
        number = int(device.split()[1])
        of, what = track.name.split(": ")
        if what == "busy":
            equal(of, device, "whose share it is")
            shares[number].append((at, value))
        else:
            equal(what, "asked for and not done", "what is counted")
            queues[number, int(of.split()[1])].append((at, value))
    return queues, shares


def check_calls(p, truth):
    got = []
    for s in p.slices:
        if s.track.name == "CUDA API":
            thread, process = p.owner(s.track)
            equal(thread.process, None, "the track is a thread's")
            got.append((process.process[1][0], thread.thread[2][0], s.name, s.start, s.end - s.start,
                        s.args["correlation"], s.args.get("error", 0)))
    same(got, [(c.tgid, c.tid, as_plain(c.name), c.start, c.end - c.start, c.correlation, c.error)
               for c in truth.calls], "calls")
    # A driver's call lies in the runtime's that has its id.
    runtime = {c.correlation for c in truth.calls if c.domain == 2}
    for s in p.slices:
        if s.track.name == "CUDA API" and s.name.startswith("cu") and not s.name.startswith("cuda"):
            if s.args["correlation"] in runtime:
                check(s.parent and s.parent.args["correlation"] == s.args["correlation"], "the call around it")


def want_arrows(truth, of=as_plain):
    return [(of(a.call.name), a.call.start, a.key(of)) for a in truth.timed if a.call]


@per_recording
def perfetto_stages(truth):
    """perfetto: every activity is a render stage with its exact times, calls and arrows; levels"""
    p = Perfetto(export(truth, "perfetto"))
    timed = [s for s in p.stages if s.dur is not None]
    key = lambda s: (s.name, s.start, s.dur, s.args["device"], s.args["context"], s.args["stream"],  # noqa: E731
                     s.args["correlation"])
    same([key(s) for s in timed], [a.key(as_plain) for a in truth.timed], "activities")
    same([(s.stage, s.args.get("bytes")) for s in timed], [(a.kind, a.size) for a in truth.timed], "kinds, bytes")
    if truth.timed[0].grid or any(a.grid for a in truth.timed):
        same([(s.start, s.grid, s.block) for s in timed if s.grid],
             [(a.start, a.grid, a.block) for a in truth.timed if a.grid], "grids")
    equal(len({s.id for s in p.stages}), len(p.stages), "ids of their own")
    queues = collections.defaultdict(set)
    for s in p.stages:
        queues[s.gpu, s.args["context"], s.args["stream"]].add(s.queue_iid)
        equal(s.queue.split()[:2], ["stream", str(s.args["stream"])], "name of a queue")
        check(p.gpus[s.gpu].startswith(f"GPU {s.args['device']}"), "name of a GPU")
        equal(s.pid, truth.pid, "process")
        equal(s.category, 2 if s.stage in ("kernel", "graph") else 0, "category")
        check(s.symbol if s.stage == "kernel" else s.symbol is None, "a kernel, and only one, has a symbol")
    equal(sorted(len(v) for v in queues.values()), [1] * len(queues), "queues of a stream")
    equal(len(set.union(*queues.values())), len(queues), "streams of two devices are two")
    same([(s.name, s.start, bool(s.extra["untimed"])) for s in p.stages if s.dur is None],
         [(as_plain(a.name), a.call.start, True) for a in truth.untimed], "untimed ones, where they were asked for")
    check_calls(p, truth)
    by_id = {s.id: s for s in timed}
    got = [(s.name, s.start, key(by_id[i])) for s in p.slices for i in s.submits if i in by_id]
    same(got, want_arrows(truth), "arrows")
    check_levels(truth, *counters_of(p, truth))
    check(not [s for s in p.slices if (s.track.name or "").startswith("stream")], "not on plain tracks as well")


@per_recording
def perfetto_tracks(truth):
    """perfetto: the same on plain tracks, where nothing crosses on one track"""
    p = Perfetto(export(truth, "perfetto", "--gpu-tracks"))
    equal(p.stages, [], "render stages as well")

    def key(s):
        device = p.tracks[s.track.parent]
        check(s.parent is None, "an activity is in no other")
        return s.name, s.start, s.end - s.start, int(device.name.split()[1]), int(s.track.name.split()[1]), s.args[
            "correlation"]

    without_context = lambda k: k[:4] + k[5:]  # noqa: E731
    mine = [s for s in p.slices if (s.track.name or "").startswith("stream")]
    same([key(s) for s in mine], [without_context(a.key(as_plain)) for a in truth.timed], "activities")
    same([(s.args["kind"], s.args.get("bytes")) for s in mine], [(a.kind, a.size) for a in truth.timed], "kinds")
    same([(i.name, i.start) for i in p.instants if "untimed" in i.args],
         [(as_plain(a.name), a.call.start) for a in truth.untimed], "untimed ones")
    check_calls(p, truth)
    calls, ends = {}, {}
    for s in p.slices:
        for what, flow in s.flows:
            side = calls if what == "start" else ends
            check(flow not in side, "an arrow has one begin and one end")
            side[flow] = s
    got = [(calls[f].name, calls[f].start, key(s)) for f, s in ends.items()]
    same(got, [(n, at, without_context(k)) for n, at, k in want_arrows(truth)], "arrows")
    check_levels(truth, *counters_of(p, truth))


# --- chrome --------------------------------------------------------------------------------------


@per_recording
def chrome(truth):
    """chrome: an own process per device, a row per stream, calls, arrows, levels"""
    c = Chrome(export(truth, "chrome"))
    acts = [s for s in c.spans if s[1].startswith("gpu-")]
    place = {}
    for name, cat, pid, tid, *_ in acts:
        check(pid > MADE_UP and tid > MADE_UP, "made-up ids are above those that Linux gives out")
        equal(c.labels["process_name", pid, pid].split(" of ")[1], f"process {truth.pid}", "whose device")
        place[pid, tid] = (int(c.labels["process_name", pid, pid].split()[1]),
                           int(c.labels["thread_name", pid, tid].split()[1]))
    key = lambda s: (s[0], s[4], s[5], place[s[2], s[3]][0], s[6]["context"], s[6]["stream"],  # noqa: E731
                     s[6]["correlation"])
    same([key(s) for s in acts], [a.key(as_text) for a in truth.timed], "activities")
    for s in acts:
        equal(s[6]["stream"], place[s[2], s[3]][1], "name of a row")
        equal(s[7], None, "what is around an activity")
    same([s[1] for s in acts], ["gpu-" + a.kind for a in truth.timed], "kinds")
    same([(n, at) for n, tid, at, args in c.instants if args.get("untimed")],
         [(as_text(a.name), a.call.start) for a in truth.untimed], "untimed ones")
    calls = [s for s in c.spans if s[1] == "cuda"]
    same([(s[2], s[0], s[4], s[5], s[6]["correlation"], s[6].get("error", 0)) for s in calls],
         [(k.tgid, as_text(k.name), k.start, k.end - k.start, k.correlation, k.error) for k in truth.calls], "calls")
    rows = collections.defaultdict(set)
    for s in calls:
        rows[c.labels["thread_name", s[2], s[3]]].add(s[2:4])
    for n in rows:  # a thread without a span is in no table
        check(n.startswith("CUDA API of "), "name of a row")
    equal({int(n.strip(")").split("(")[-1].split()[-1]) for n in rows}, {k.tid for k in truth.calls}, "rows of calls")
    at = collections.defaultdict(list)
    for s in acts + calls:
        at[s[3], s[4]].append(s)
    got = []
    for steps in c.flows.values():
        if [s[0] for s in sorted(steps, key=lambda s: s[0] == "f")] == ["s", "f"]:
            (_, begin, row), (_, end, to) = sorted(steps, key=lambda s: s[0] == "f")
            got.append((begin, end, row != to and bool(at[row, begin]) and bool(at[to, end])))
    same(got, [(a.call.start, a.start, True) for a in truth.timed if a.call], "arrows")
    raw = export(truth, "chrome")
    check_levels(truth, *chrome_levels(c, raw))


def chrome_levels(c, raw):
    queues, shares = collections.defaultdict(list), collections.defaultdict(list)
    values = iter(c.counters)
    events = sorted((e for e in json.loads(raw)["traceEvents"] if e["ph"] == "C"), key=lambda e: e["ts"])
    for e, (name, at, value) in zip(events, values):
        equal(e["name"], name, "the same order")
        device = int(c.labels["process_name", e["pid"], e["pid"]].split()[1])
        of, what = name.split(": ")
        if what == "busy %":
            shares[device].append((at, float(value)))
        else:
            queues[device, int(of.split()[1])].append((at, int(value)))
    return queues, shares


# --- csv and the others --------------------------------------------------------------------------


@per_recording
def csv_rows(truth):
    """csv: a line for each activity and call; all lines have the same fields"""
    text = export(truth, "csv").decode()
    lines = list(csv.reader(io.StringIO(text, newline="")))
    check(all(len(f) == 19 for f in lines), "19 fields")
    rows = [dict(zip(lines[0], f)) for f in lines[1:]]
    n = lambda v: int(v) if v else None  # noqa: E731
    acts = [r for r in rows if r["kind"] in ("gpu-kernel", "gpu-copy", "gpu-memset", "gpu-graph")]
    same([(r["kind"], r["name"], n(r["start_ns"]), n(r["dur_ns"]), int(r["device"]), int(r["context"]),
           int(r["stream"]), int(r["correlation"]), n(r["bytes"]), n(r["tid"])) for r in acts],
         [("gpu-" + a.kind, as_text(a.name), None if a.untimed else a.start,
           None if a.untimed else a.end - a.start, a.device, a.context, a.stream, a.correlation, a.size,
           a.call.tid if a.call else None) for a in truth.activities], "activities")
    same([(r["name"], int(r["pid"]), int(r["tid"]), int(r["start_ns"]), int(r["dur_ns"]), int(r["value"]),
           int(r["correlation"])) for r in rows if r["kind"] == "gpu-call"],
         [(as_text(k.name), k.tgid, k.tid, k.start, k.end - k.start, k.error, k.correlation) for k in truth.calls],
         "calls")


@case
def left_out():
    """formats of spans alone say how much of the GPU they leave out"""
    truth = made_up()
    n = len(list(qtrace.Trace(truth.path).gpu_records()))
    for fmt in ("speedscope", "folded", "hgrm"):
        p = run("-f", fmt, truth.path)
        check(f"{n} records of the GPU left out, for which {fmt} has no place" in p.stderr.decode(), p.stderr)
    for fmt in ("perfetto", "chrome", "csv"):
        p = run("-f", fmt, truth.path)
        check("left out" not in p.stderr.decode(), p.stderr)
        check(f"{len(truth.untimed)} GPU activities have no possible times" in p.stderr.decode(), p.stderr)


@case
def losses():
    """losses of the GPU's records are shown where they happened"""
    truth = made_up()
    want = [(n[3], n[4] - n[3], n[5]) for n in truth.gpu_losses]
    check(want, "there are some")
    p = Perfetto(export(truth, "perfetto"))
    same([(s.start, s.end - s.start, s.args["lost"]) for s in p.slices if "GPU records" in s.name], want, "perfetto")
    c = Chrome(export(truth, "chrome"))
    same([(s[4], s[5], s[6]["lost"]) for s in c.spans if "GPU records" in s[0]], want, "chrome")


@case
def selections():
    """--from, --to, --thread and --span select of the GPU as well"""
    truth = made_up()
    first, last = min(a.start for a in truth.timed), max(a.end for a in truth.timed)
    a, b = first + (last - first) // 3, first + (last - first) // 2
    cut = ["--from", f"{a - truth.start}ns", "--to", f"{b - truth.start}ns"]
    p = Perfetto(export(truth, "perfetto", *cut))
    same([(s.name, s.start) for s in p.stages if s.dur is not None],
         [(as_plain(t.name), t.start) for t in truth.timed if t.end >= a and t.start <= b], "activities in a range")
    same([(s.name, s.start) for s in p.slices if s.track.name == "CUDA API"],
         [(as_plain(k.name), k.start) for k in truth.calls if k.end >= a and k.start <= b], "calls in a range")
    tid = truth.calls[0].tid
    p = Perfetto(export(truth, "perfetto", "--thread", tid))
    same([(s.name, s.start) for s in p.stages if s.dur is not None],
         [(as_plain(t.name), t.start) for t in truth.timed if t.call and t.call.tid == tid], "what a thread asked for")
    equal(p.counters, [], "levels are those of all threads")
    p = Perfetto(export(truth, "perfetto", "--span", "on_tick"))
    equal((p.stages, [s for s in p.slices if s.track.name == "CUDA API"]), ([], []), "the GPU's part beside a span")


@case
def odd_streams():
    """stream 0, equal streams of two devices, kernels of no length and overlapping ones are there"""
    truth = made_up()
    check({0, 7} <= {a.stream for a in truth.timed}, "stream 0")
    check({(0, 7), (1, 7)} <= {(a.device, a.stream) for a in truth.timed}, "equal streams")
    check([a for a in truth.timed if a.start == a.end], "of no length")
    by_id = collections.Counter(a.correlation for a in truth.timed)
    check(max(by_id.values()) >= 3, "a graph's kernels of one id")
    p = Perfetto(export(truth, "perfetto", "--gpu-tracks"))
    streams = collections.Counter((t.parent, t.name) for t in p.tracks.values() if t.name and
                                  t.name.startswith("stream") and not t.counter)
    check(max(streams.values()) >= 2, "what overlaps has a track of its own")


@case
def much():
    """more than is joined at once: the same, in bounded memory"""
    truth = made_up("--spans", "200000", "--threads", "2")
    text = export(truth, "csv").decode("utf-8")
    got = collections.Counter(line.split(",", 1)[0] for line in text.split("\r\n"))
    want = collections.Counter("gpu-" + a.kind for a in truth.activities)
    want["gpu-call"] = len(truth.calls)
    equal({k: v for k, v in got.items() if k.startswith("gpu-")}, dict(want), "lines by kind")
    p = Perfetto(export(truth, "perfetto"))
    same([(s.name, s.start, s.dur) for s in p.stages if s.dur is not None],
         [a.key(as_plain)[:3] for a in truth.timed], "activities")
    by_id = {s.id: s for s in p.stages if s.dur is not None}
    got = [(s.name, s.start, by_id[i].start) for s in p.slices for i in s.submits if i in by_id]
    same(got, [(as_plain(a.call.name), a.call.start, a.start) for a in truth.timed if a.call], "arrows")
    check_levels(truth, *counters_of(p, truth))


if __name__ == "__main__":
    main()
