#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/trace-format.md tells the truth: a reader that was written from it (tests/tools/qtrace.py) finds
in files of the real writer exactly what was put in, as qbpf's own reader does, and mktrace puts in
what it says."""
# timeout: 1800

import os
import subprocess
import sys
import tempfile
import traceback

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "tools"))

import qtrace  # noqa: E402

BUILD = os.environ.get("BUILD") or os.path.join(os.path.dirname(TESTS), "build")
MKTRACE = os.path.join(BUILD, "tests", "mktrace")
TRACE_DUMP = os.path.join(BUILD, "tests", "trace_dump")

SHAPES = (
    "strategy hostile deep many overlap equal backwards keyed values instants open tidreuse "
    "uptime lost empty mixed"
).split()


def equal(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r:.300}, expected {want!r:.300}")


def make(folder, *options):
    path, truth = os.path.join(folder, "t.qbpf"), os.path.join(folder, "truth")
    subprocess.run([MKTRACE, "--truth", truth, *options, path], check=True)
    with open(truth, encoding="ascii") as f:
        rows = [list(map(int, line.split(","))) for line in f]
    check_own_reader(path, rows)
    return qtrace.Trace(path), rows


def check_own_reader(path, truth):
    """qbpf's reader: each thread's events in order, and as many as it counts."""
    dump = subprocess.run([TRACE_DUMP, path], check=True, capture_output=True, text=True).stdout
    rows = [list(map(int, line.split(","))) for line in dump.splitlines()]
    equal(sorted(rows, key=lambda r: r[0]), sorted(truth, key=lambda r: r[0]), "own reader")
    count = subprocess.run([TRACE_DUMP, "--count", path], check=True, capture_output=True).stdout
    equal(int(count), len(truth), "own reader's count")


def by_thread(rows):
    """thread -> its events in order."""
    out = {}
    for thread, event in rows:
        out.setdefault(thread, []).append(event)
    return out


def check_events(trace, truth):
    want = by_thread((row[0], row[1:]) for row in truth)
    got = by_thread(trace.events())
    equal(sorted(got), sorted(want), "threads with events")
    for thread, events in want.items():
        if got[thread] != events:
            i = next(i for i, pair in enumerate(zip(got[thread], events)) if pair[0] != pair[1])
            equal(got[thread][i], events[i], f"event {i} of thread {thread}")


def check_counts(trace, truth):
    """Held and lost are all that was counted, span by span."""
    held = [0] * len(trace.tables["spans"])
    lost = [0] * len(held)
    for row in truth:
        if row[1] != qtrace.OPEN:
            held[row[6] - 1] += 1
    for span, _source, start, end, count, skipped in trace.tables["losses"]:
        lost[span - 1] += count
        equal((start < end, skipped), (True, 0), "a stretch of losses")
    for i, row in enumerate(trace.tables["counts"]):
        equal(row, (held[i] + lost[i], held[i], lost[i], 0), f"counts of span {i + 1}")
    return sum(lost)


def check_tables(trace):
    spans, nodes = trace.tables["spans"], trace.tables["nodes"]
    for node, parent, span in nodes:
        equal((parent < node, 0 < span <= len(spans)), (True, True), f"node {node}")
    equal(len(trace.tables["meta"]), 1, "meta entries")
    equal(trace.tables["meta"][0][3], b"A made-up CPU", "the CPU")
    equal(len(trace.tables["processes"]), 1, "processes")
    equal(len(trace.tables["probes"]), 2 * len(spans), "probes")
    equal({p[0] for p in trace.tables["probes"]}, set(range(1, len(spans) + 1)), "spans probed")


def shape_case(shape):
    def run(folder):
        trace, truth = make(folder, "--shape", shape, "--threads", "3", "--spans", "9000")
        equal(trace.clean, True, "closed")
        check_events(trace, truth)
        lost = check_counts(trace, truth)
        equal(lost > 0, shape == "lost", "whether events were lost")
        equal(len(truth) > 8000, shape != "empty", "whether there are events")
        check_tables(trace)

    run.__name__ = f"shape {shape}"
    return run


def gpu_records(folder):
    """records of a GPU, as qbpf's reader finds them and as the shape has them"""
    trace, truth = make(folder, "--shape", "gpu", "--threads", "2", "--spans", "3000")
    check_events(trace, truth)
    path = os.path.join(folder, "t.qbpf")
    dump = subprocess.run([TRACE_DUMP, "--gpu", path], check=True, capture_output=True, text=True).stdout
    records = list(trace.gpu_records())
    equal([f"{ring} {rec.hex()}" for ring, rec in records], dump.splitlines(), "own reader")
    kinds = [int.from_bytes(rec[:2], "little") for _, rec in records]
    equal(trace.tables["gpu_names"][9][0], b"_ZN4book6updateEPdi", "a name")
    # 1,000 ticks of two copies and a kernel; rare things besides
    equal(kinds.count(2), 2000, "copies")
    kernels = [rec for _, rec in records if rec[0] == 1]
    equal(sum(int.from_bytes(k[4:8], "little") == 9 for k in kernels), 1000, "kernels of a name")
    equal([row[:3] + row[5:] for row in trace.tables["gpu_losses"]], [(0, 1, 0, 3)], "losses")


def not_closed(folder):
    """without a clean end the same events, and no counts"""
    trace, truth = make(folder, "--shape", "mixed", "--threads", "2", "--no-close")
    equal((trace.clean, trace.tables["counts"]), (False, []), "closed, counts")
    equal(trace.cut_at, len(trace.data), "where it was cut")
    check_events(trace, truth)


def several_seconds(folder):
    """losses by the second, a pair of clock readings a second"""
    trace, truth = make(
        folder, "--spans", "100000", "--lose", "7", "--slow-span", "strategy:alpha=200"
    )
    check_events(trace, truth)
    lost = check_counts(trace, truth)
    equal(lost + len(truth), 100000, "held and lost")
    equal(len({loss[2] for loss in trace.tables["losses"]}) > 2, True, "stretches of losses")
    clocks = trace.tables["clocks"]
    equal(len(clocks) > 2, True, "clock readings")
    equal({c[1] - c[0] for c in clocks}, {1700000000000000000}, "realtime less monotonic")


def same_again(folder):
    """the same options make the same bytes, another seed makes others"""
    first, _ = make(folder, "--spans", "5000", "--seed", "3")
    again, _ = make(folder, "--spans", "5000", "--seed", "3")
    other, _ = make(folder, "--spans", "5000", "--seed", "4")
    equal(again.data == first.data, True, "the same seed, the same bytes")
    equal(other.data == first.data, False, "another seed, the same bytes")


def slow_span(folder):
    """--slow-span slows that span, --shift-ms moves everything"""

    def total(*options):
        trace, truth = make(folder, "--spans", "20000", *options)
        names = [s[0] for s in trace.tables["spans"]]
        alpha = names.index(b"strategy:alpha") + 1
        return sum(r[3] - r[2] for r in truth if r[6] == alpha), truth[0][2]

    (usual, start), (slow, later) = total(), total("--slow-span", "strategy:alpha=2",
                                                   "--shift-ms", "5000")
    equal(abs(slow / usual - 2) < 0.01, True, f"twice as slow: {usual} and {slow}")
    equal(later - start, 5000000000, "shift")


CASES = [shape_case(s) for s in SHAPES] + [gpu_records, not_closed, several_seconds, same_again, slow_span]


def main():
    for tool in (MKTRACE, TRACE_DUMP):
        if not os.path.exists(tool):
            print(f"{tool} is not built")
            return 77
    print(f"1..{len(CASES)}", flush=True)
    failed = 0
    for n, case in enumerate(CASES, 1):
        name = (case.__doc__ or case.__name__).strip()
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(folder)
                print(f"ok {n} - {name}", flush=True)
            except Exception:  # whatever the reader stumbles on is the failure
                traceback.print_exc()
                print(f"not ok {n} - {name}", flush=True)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
