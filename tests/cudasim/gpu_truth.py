# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every figure of a document's `gpu` against what the simulator says that happened."""

import collections
import csv


def equal(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, and not {want!r}")


def read(path):
    """The simulator's log, by kind."""
    rows = collections.defaultdict(list)
    for row in csv.DictReader(open(path)):
        row = {k: int(v) if v and v.isdigit() else v for k, v in row.items()}
        rows[row["what"]].append(row)
    return rows


def union(rows):
    """Sorted, disjoint intervals."""
    got = []
    for start, end in sorted((r["start"], r["end"]) for r in rows):
        if got and start <= got[-1][1]:
            got[-1][1] = max(got[-1][1], end)
        else:
            got.append([start, end])
    return got


def length(intervals):
    return sum(end - start for start, end in intervals)


def both(a, b):
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b if x[0] < y[1] and y[0] < x[1])


def near(got, want, ns, what):
    """ns: what rounding may do to each, where times are converted from a clock of CUPTI's own."""
    equal(sorted(got), sorted(want), f"{what}: which")
    for name, (count, total, *some) in want.items():
        n, t, *own = got[name]
        if n != count or abs(t - total) > ns * count or any(abs(x - y) > ns for x, y in zip(own, some)):
            raise AssertionError(f"{what}: {got!r}, and not {want!r} by {ns} ns")


def check_kernels(gpu, truth, rounding_ns=0):
    want = collections.defaultdict(list)
    for k in truth["kernel"]:
        want[k["name"]].append(k["end"] - k["start"])
    got = {k["symbol"]: (k["count"], k["sum_ns"], k["min_ns"], k["max_ns"]) for k in gpu["kernels"] if "symbol" in k}
    near(got, {n: (len(v), sum(v), min(v), max(v)) for n, v in want.items()}, rounding_ns, "kernels")


def check_copies(gpu, truth, rounding_ns=0):
    want, size = collections.defaultdict(lambda: (0, 0)), collections.Counter()
    words = {1: "to_device", 2: "to_host", 8: "on_device", 10: "between_devices"}
    for c in truth["memcpy"]:
        key = words[c["copy"]], bool(c["async"]), 1 in (c["source"], c["target"])
        want[key] = want[key][0] + 1, want[key][1] + c["end"] - c["start"]
        size[key] += c["bytes"]
    got = {(c["direction"], not c["synchronous"], c["pageable"]): c for c in gpu["copies"]
           if c["direction"] != "memset"}
    near({k: (c["count"], c["sum_ns"]) for k, c in got.items()}, want, rounding_ns, "copies")
    equal({k: c["bytes"] for k, c in got.items()}, dict(size), "bytes of copies")
    sets = [c for c in gpu["copies"] if c["direction"] == "memset"]
    equal(sum(c["count"] for c in sets), len(truth["memset"]), "memsets")


def check_devices(gpu, truth):
    for d in gpu["devices"]:
        mine = lambda *kinds: [r for k in kinds for r in truth[k] if r["device"] == d["device"]]
        compute, copy = union(mine("kernel", "memset", "graph")), union(mine("memcpy"))
        busy = union(mine("kernel", "memset", "graph", "memcpy"))
        equal(d["compute_ns"], length(compute), "time of kernels")
        equal(d["copy_ns"], length(copy), "time of copies")
        equal(d["overlap_ns"], both(compute, copy), "time of both")
        equal(d["busy_ns"], length(busy), "busy time")
        equal((d["from_ns"], d["to_ns"]), (busy[0][0], busy[-1][1]), "first and last")
        equal(d["idle_ns"], sum(b[0] - a[1] for a, b in zip(busy, busy[1:])), "idle time")
        equal(sum(i["sum_ns"] for i in d["idle"]), d["idle_ns"], "sum of causes")


def check_delays(gpu, truth):
    """From the begin of the outermost call with that id to the start of the first activity."""
    begin = {}
    for c in truth["runtime"] + truth["driver"]:
        begin[c["correlation"]] = min(begin.get(c["correlation"], c["start"]), c["start"])
    want = collections.Counter()
    for k in truth["kernel"]:
        want[k["name"]] += k["start"] - begin[k["correlation"]]
    got = {k["symbol"]: k["delay"]["sum_ns"] for k in gpu["kernels"] if "symbol" in k}
    equal(got, dict(want), "delays")


def check_all(gpu, truth):
    check_kernels(gpu, truth)
    check_copies(gpu, truth)
    check_devices(gpu, truth)
    check_delays(gpu, truth)
    equal(gpu["untimed"], 0, "untimed")
    equal(gpu["missing"], {"no_call": 0, "no_activity": 0, "no_sync_call": 0}, "missing partners")
