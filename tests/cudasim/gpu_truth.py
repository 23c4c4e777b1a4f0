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


def check_kernels(gpu, truth):
    want = collections.defaultdict(list)
    for k in truth["kernel"]:
        want[k["name"]].append(k["end"] - k["start"])
    got = {k["symbol"]: (k["count"], k["sum_ns"], k["min_ns"], k["max_ns"]) for k in gpu["kernels"] if "symbol" in k}
    equal(got, {n: (len(v), sum(v), min(v), max(v)) for n, v in want.items()}, "kernels")


def check_copies(gpu, truth):
    want, got = collections.Counter(), collections.Counter()
    words = {1: "to_device", 2: "to_host", 8: "on_device", 10: "between_devices"}
    for c in truth["memcpy"]:
        key = words[c["copy"]], bool(c["async"]), 1 in (c["source"], c["target"])
        want.update({(*key, "n"): 1, (*key, "bytes"): c["bytes"], (*key, "ns"): c["end"] - c["start"]})
    for c in gpu["copies"]:
        if c["direction"] == "memset":
            continue
        key = c["direction"], not c["synchronous"], c["pageable"]
        got.update({(*key, "n"): c["count"], (*key, "bytes"): c["bytes"], (*key, "ns"): c["sum_ns"]})
    equal(got, want, "copies")
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
