#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf export to text: folded stacks, CSV, HdrHistogram's percentiles, each against the trace."""

import collections
import csv
import io
import math

from export_readers import folded, hgrm
from export_truth import (ASIDE, HIST_F64, INSTANT, KEYED, OPEN, SPAN, VALUE, export, main, per_shape, plain,
                          run, same, trace, valid)
from harness import check, equal


def node_paths(truth):
    nodes = {n[0]: (n[1], n[2]) for n in truth.tables["nodes"]}
    frame = lambda span: plain(truth.names[span] or b"(no name)").replace(";", ":")  # noqa: E731
    paths = {}
    for node in nodes:
        path, at = [], node
        while at:
            at, span = nodes[at]
            path.append(frame(span))
        paths[node] = tuple(reversed(path))
    return paths, frame


@per_shape
def folds(shape):
    """folded: self time and hits of each place in the call tree"""
    truth = trace(shape)
    paths, frame = node_paths(truth)
    place = lambda e: paths.get(e.node, ("(caller unknown)", frame(e.span)))  # noqa: E731
    time, hits = collections.Counter(), collections.Counter()
    for e in truth.of(SPAN, ASIDE):
        time[place(e)] += e.dur - min(e.child, e.dur)
    for e in truth.of(SPAN, ASIDE, INSTANT):
        hits[place(e)] += 1
    equal(folded(export(truth, "folded")), dict(time), "self times")
    equal(folded(export(truth, "folded", "--by", "count")), dict(hits), "hits")


@per_shape
def csvs(shape):
    """csv: each event, each field, in the order of the file"""
    truth = trace(shape)
    raw = export(truth, "csv").decode("utf-8")
    check(raw.endswith("\r\n"), "lines end as RFC 4180 says")
    rows = list(csv.DictReader(io.StringIO(raw, newline=""), strict=True))
    equal(len(rows), len(truth.events), "lines")
    kinds = {SPAN: "span", ASIDE: "aside", KEYED: "keyed", INSTANT: "instant", VALUE: "value", OPEN: "open"}
    comm = {p[0]: valid(p[1]) for p in truth.tables["processes"]}
    for row, e in zip(rows, truth.events):
        t = truth.threads[e.thread]
        want = {
            "kind": kinds[e.kind], "name": valid(truth.names[e.span]), "process": comm[t[0]],
            "pid": str(t[0]), "tid": str(t[1]), "thread": valid(t[2]), "start_ns": str(e.start),
            "dur_ns": str(e.end - e.start), "depth": str(e.depth),
            "self_ns": str(max(e.dur - e.child, 0)) if e.kind in (SPAN, ASIDE) else "",
            "node": str(e.node) if e.node not in (0, 0xFFFFFFFF) else "",
            "key": str(e.arg) if e.kind == KEYED else "",
            "begin_tid": str(e.begin_tid) if e.kind == KEYED and e.begin_tid else "",
        }
        value = row.pop("value")
        equal(row, want, "a line")
        if e.kind == VALUE and truth.hist[e.span] == HIST_F64:
            equal(repr(float(value)), repr(truth.value(e)), "a real number")
        else:
            equal(value, str(truth.value(e)) if e.kind == VALUE else "", "a whole number")


@per_shape
def hgrms(shape):
    """hgrm: percentiles, mean and maximum of each span are exact"""
    truth = trace(shape)
    values = collections.defaultdict(list)
    for e in truth.events:
        if e.kind in (SPAN, ASIDE, KEYED) and e.end >= e.start:
            values[e.span].append(e.dur)
        elif e.kind == VALUE:
            values[e.span].append(truth.value(e))
    if not values:
        return run("-f", "hgrm", truth.path, code=1) and None
    parsed = hgrm(export(truth, "hgrm"))
    names = [plain(truth.names[s]) for s in sorted(values)]
    same([n for n, sections in parsed.items() for _ in sections], names, "sections")
    for span in sorted(values):
        rows, figures = parsed[plain(truth.names[span])].pop(0)
        real = sorted(v for v in values[span] if not math.isnan(v))
        equal(int(figures["Total count"]), len(real), "Total count")
        if all(abs(v) < 1 << 52 for v in real):
            check_distribution(rows, figures, real)
    return None


def check_distribution(rows, figures, real):
    n = len(real)
    rounded = lambda v: f"{v:.3f}"  # noqa: E731
    equal(str(rows[-1][0]), rounded(real[-1]), "the last value")
    equal(rows[-1][1:], (1.0, n, []), "the last line")
    equal(figures["Max"], rounded(real[-1]), "Max")
    check(abs(float(figures["Mean"]) - sum(real) / n) < 0.001 + abs(sum(real) / n) * 1e-12, "Mean")
    last = -1.0
    for value, share, count, inverse in rows[:-1]:
        # The least value that so many are not above.
        equal(str(value), rounded(real[max(math.ceil(share * n - 1e-7), 1) - 1]), f"value at {share}")
        equal(count, sum(1 for v in real if rounded(v) == str(value) or v <= float(value)), "TotalCount")
        check(share > last, "percentiles rise")
        check(abs(float(inverse[0]) - 1 / (1 - share)) <= 0.01 + 1e-6 / (1 - share), "1/(1-Percentile)")
        last = share
    below = sum(1 for v in real if v < real[-1])
    check(last * n >= below - 1e-6, "the last step is beyond all but the greatest")


if __name__ == "__main__":
    main()
