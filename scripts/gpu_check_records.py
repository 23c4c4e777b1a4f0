# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What gpu_check said that it did, what the CUDA agent recorded, and the one against the other.

A comparison returns (ok, text): the text has the figures either way.
"""

import collections
import re
import statistics

# How far times may be apart. CUDA's events are good to half a microsecond and are records of their own
# on the device; a kernel reads the device's timer, which some GPUs move once a microsecond.
TICK_NS = 2000
EVENT_NS = 20000  # what two events may add to what is between them, and
EVENT_SHARE = 0.05  # of it
CLOCK_NS = 50000  # what the published bound of the GPU's clock may be

COPIES = {1: "h2d", 2: "d2h", 8: "d2d"}
RUNTIME = "2"  # the domain of calls of the runtime, as CUPTI has it

# Calls that the agent asks for.
CHOSEN = ("cudaLaunch", "cudaGraphLaunch", "cudaGraphInstantiate", "cudaMemcpy", "cudaMemset", "cudaMalloc",
          "cudaFree", "cudaEventRecord", "cudaStreamWaitEvent")  # fmt: skip


def chosen(name):
    return name.startswith(CHOSEN) or "Synchronize" in name


# Of these, what probes on functions are not placed on.
UNPROBED = ("cudaGraphInstantiate",)


def fields(words):
    return {k: int(v) if v.isdigit() else v for k, _, v in (w.partition("=") for w in words)}


class Said:
    """The lines of gpu_check."""

    def __init__(self, text):
        self.phases, self.calls, self.failed = {}, {}, {}
        self.timed, self.host, self.bench = [], collections.defaultdict(list), {}
        self.agent_threads = self.agent_ns = None
        for line in text.splitlines():
            kind, *words = line.split()
            if kind == "phase":
                self.phases[words[0]] = fields(words[1:])
                self.calls[words[0]], self.failed[words[0]] = {}, {}
            elif kind == "call":
                self.calls[words[0]][words[1]] = int(words[2])
                self.failed[words[0]][words[1]] = int(words[3])
            elif kind == "timed":
                self.timed.append((words[0], words[1], int(words[2]), int(words[3]), int(words[4])))
            elif kind == "host":
                self.host[words[0]].append(int(words[1]))
            elif kind == "bench":
                self.bench[words[0]] = int(words[1]), int(words[2])
            elif kind == "agent-threads":
                self.agent_threads, self.agent_ns = int(words[0]), int(words[2])

    def total(self, field, without=()):
        return sum(p[field] for name, p in self.phases.items() if name not in without)

    def total_calls(self, without=()):
        n = collections.Counter()
        for phase, calls in self.calls.items():
            if phase not in without:
                n.update(calls)
        return n


class Records:
    """A log of ring_dump, each activity in the phase in which it was asked for."""

    def __init__(self, path, said):
        self.of, self.status = collections.defaultdict(list), {}
        with open(path) as f:
            for line in f:
                kind, rest = line.rstrip("\n").split(" ", 1)
                if kind == "status":
                    name, _, value = rest.partition(" ")
                    self.status[name] = int(value) if value.isdigit() else value
                else:
                    before, _, name = rest.partition(" name=")
                    self.of[kind].append({**fields(before.split()), "name": name})
        self.calls = {}  # by correlation: the runtime's, else the driver's
        for c in self.of["call"]:
            c["name"] = re.sub(r"_v\d+$", "", c["name"])
            if str(c["domain"]) == RUNTIME or c["correlation"] not in self.calls:
                self.calls[c["correlation"]] = c
        self.phases = {name: collections.defaultdict(list) for name in said.phases}
        for kind in ("kernel", "copy", "set", "graph", "sync", "call"):
            for r in self.of[kind]:
                self.place(kind, r, said)

    def place(self, kind, r, said):
        call = r if kind == "call" else self.calls.get(r["correlation"])
        if not call or (kind == "call" and str(r["domain"]) != RUNTIME):
            return
        for name, p in said.phases.items():
            if p["begin"] <= call["start"] <= p["end"]:
                self.phases[name][COPIES.get(r["kind"], "copy") if kind == "copy" else kind].append(r)

    def lost(self):
        """What is counted as lost, however it was."""
        names = ("dropped", "discarded", "unknown", "broken")
        return sum(self.status[n] for n in names) + sum(v for k, v in self.status.items() if k.startswith("lost_"))

    def on_device(self):
        return [r for kind in ("kernel", "copy", "set", "graph") for r in self.of[kind]]


def wanted(p, nodes):
    """What a phase did, by the ring's words; graphs as a whole, or by their nodes."""
    want = {"kernel": p["kernels"], "h2d": p["h2d"], "d2h": p["d2h"], "d2d": p["d2d"], "set": p["memsets"]}
    if nodes:
        want["kernel"] += p["node_kernels"]
        want["h2d"] += p["node_copies"] // 2
        want["d2h"] += p["node_copies"] // 2
        want["set"] += p["node_memsets"]
    else:
        want["graph"] = p["graphs"]
    return want


def compare(rows, lost):
    """rows: (what, got, wanted). Equal, or short by no more than is counted as lost."""
    wrong = [f"{what} {got} of {want}" for what, got, want in rows if got != want]
    short, over = sum(max(w - g, 0) for _, g, w in rows), [r for r in rows if r[1] > r[2]]
    n = sum(w for _, _, w in rows)
    if not wrong:
        return True, f"{n} of {n}"
    if not over and short <= lost:
        return True, f"{n - short} of {n}, the other {short} among the {lost} counted as lost"
    return False, ", ".join(wrong[:6])


def counts(said, rec, nodes, kinds):
    rows = []
    for name, p in said.phases.items():
        want = wanted(p, nodes)
        rows += [(f"{name}: {k}", len(rec.phases[name][k]), want[k]) for k in kinds if k in want]
    return compare(rows, rec.lost())


def copy_bytes(said, rec):
    rows = []
    for name, p in said.phases.items():
        got = sum(c["bytes"] for k in COPIES.values() for c in rec.phases[name][k] if not c["graph"])
        rows.append((f"{name}: bytes", got, p["bytes"]))
    if rec.lost():
        return all(g <= w for _, g, w in rows), f"{sum(g for _, g, _ in rows)} bytes, with records lost"
    return compare(rows, 0)


def calls(said, rec):
    rows = []
    for phase, want in said.calls.items():
        got = collections.Counter(c["name"] for c in rec.phases[phase]["call"])
        rows += [(f"{phase}: {name}", got[name], n) for name, n in want.items() if chosen(name)]
    return compare(rows, rec.lost())


def failures(said, rec):
    rows = []
    for phase, p in said.phases.items():
        rows.append((f"{phase}: failed", sum(c["error"] != 0 for c in rec.phases[phase]["call"]), p["failed"]))
    return compare(rows, rec.lost())


def syncs(said, rec):
    """One record for each call that waits; those of other calls (an event that a stream waits for) are besides."""
    rows, besides = [], 0
    for phase, p in said.phases.items():
        mine = [s for s in rec.phases[phase]["sync"] if "Synchronize" in rec.calls[s["correlation"]]["name"]]
        besides += len(rec.phases[phase]["sync"]) - len(mine)
        rows.append((f"{phase}: sync", len(mine), p["syncs"]))
    ok, text = compare(rows, rec.lost())
    return ok, f"{text}, {besides} of other calls"


def possible(rec):
    last = max((c["end"] for c in rec.of["call"]), default=0) + 10**9
    all_of = rec.on_device()
    bad = sum(not 0 < r["start"] <= r["end"] < last for r in all_of)
    return bad == 0, f"{bad} of {len(all_of)} have times that cannot be"


def linked(rec):
    """Each activity has the call that asked for it, or its call was lost."""
    all_of = rec.on_device()
    lone = sum(r["correlation"] not in rec.calls for r in all_of)
    return lone <= rec.lost(), f"{lone} of {len(all_of)} without their call"


def kernels_last(said, rec):
    """Against what each kernel was told to last: never less, and not much more."""
    got = sorted(rec.phases["kernels"]["kernel"], key=lambda r: r["correlation"])
    want = [t for t in said.timed if t[0] == "kernels"]
    if rec.lost():
        return None, f"{rec.lost()} records are lost: which is which is not known"
    over = [got[i]["end"] - got[i]["start"] - w for _, _, i, _, w in want if i < len(got)]
    if len(over) != len(want):
        return False, f"{len(over)} of {len(want)} kernels"
    ok = min(over) >= -TICK_NS and statistics.median(over) <= EVENT_NS
    return ok, f"{len(over)} kernels, {min(over):+d} .. {max(over):+d} ns against what they were told"


def against_events(said, rec, kinds):
    """Each no longer than the events around it say; the lower quartile of what events add is small:
    one that the host was late to queue has time of the host between its events."""
    if rec.lost():
        return None, f"{rec.lost()} records are lost: which is which is not known"
    added, excess = [], []
    for phase, kind, index, event_ns, _ in said.timed:
        name = {"memset": "set"}.get(kind, kind)
        if kind not in kinds:
            continue
        of = sorted(rec.phases[phase][name], key=lambda r: r["correlation"])
        if index >= len(of):
            return False, f"{phase}: {kind} {index} has no record"
        d = of[index]["end"] - of[index]["start"]
        added.append(event_ns - d)
        excess.append(event_ns - d * (1 + EVENT_SHARE))
    quarter = sorted(excess)[len(excess) // 4]
    ok = min(added) >= -TICK_NS and quarter <= EVENT_NS
    typical = sorted(added)[len(added) // 4]
    return ok, f"{len(added)} timed; events say {min(added):+d} ns at least, {typical:+d} ns at the quartile"


def in_order(said, rec):
    """What a stream does it does one after the other, as asked for."""
    streams = collections.defaultdict(list)
    for r in rec.on_device():
        if not r.get("node"):
            streams[r["device"], r["context"], r["stream"]].append(r)
    bad = pairs = 0
    for rows in streams.values():
        rows.sort(key=lambda r: r["correlation"])
        for a, b in zip(rows, rows[1:]):
            pairs += 1
            bad += b["start"] + TICK_NS < a["end"]
    first = sorted(rec.phases["events"]["kernel"], key=lambda r: r["correlation"])
    waits = 0
    if not rec.lost():
        waits = len(first) // 2
        bad += sum(b["start"] + TICK_NS < a["end"] for a, b in zip(first[::2], first[1::2]))
    ok = bad == 0 and pairs > 0
    return ok, f"{bad} of {pairs} neighbours on {len(streams)} streams and {waits} waits for an event out of order"


def side_by_side(said, rec):
    """Kernels of several streams overlap in the records when they did for the program."""
    p, rows = said.phases["overlap"], rec.phases["overlap"]["kernel"]
    work, took = sum(r["end"] - r["start"] for r in rows), p["end"] - p["begin"]
    if not rows:
        return False, "no kernels"
    span = max(r["end"] for r in rows) - min(r["start"] for r in rows)
    if work < took * 1.2:
        return None, "this GPU ran them one after the other"
    return span <= took and work > span, f"{work / 1e6:.1f} ms of kernels within {span / 1e6:.1f} ms"


def after_the_call(rec, bound_ns):
    """A kernel starts after the call that launched it was begun; sooner only by the clock's error."""
    early = [rec.calls[r["correlation"]]["start"] - r["start"] for r in rec.on_device() if r["correlation"] in rec.calls]
    bad = sum(e > bound_ns for e in early)
    least = -max(early, default=0)
    return bad == 0 and bool(early), (
        f"{bad} of {len(early)} sooner than the clock's bound of {bound_ns} ns allows; the least delay is {least} ns"
    )


def bench_words(modes):
    """{mode: [(launch, graph), ...]} of interleaved runs: lines with medians and ratios to the first mode."""
    out, base = [], None
    for mode, rounds in modes.items():
        if not rounds:
            continue
        now = [statistics.median(r[i] for r in rounds) for i in (0, 1)]
        base = base or now
        ratio = [n / b if b else 0 for n, b in zip(now, base)]
        out.append(
            f"{mode:26} {now[0]:8.0f} ns a launch {ratio[0]:6.3f}x   {now[1]:8.0f} ns a graph launch {ratio[1]:6.3f}x"
        )
    return out
