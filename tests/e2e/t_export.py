#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf export to what viewers read: a reader of each format finds what the trace holds. Perfetto's
protobuf, Chrome's JSON, speedscope's own."""

import collections
import io
import math
import os
import shutil
import struct
import subprocess

from export_readers import Chrome, Speedscope
from export_truth import (ASIDE, INSTANT, KEYED, NESTED, OPEN, SPAN, VALUE, expected_losses, export, main,
                          per_shape, plain, same, trace, valid)
from harness import ROOT, Skip, case, check, equal
from perfetto_reader import Perfetto, raw_packets

# --- perfetto ------------------------------------------------------------------------------------


def thread_of(truth, track):
    """Index of the thread that a track is of: its tid, and when it began."""
    tid = track.thread[2][0]
    found = [i for i, t in enumerate(truth.threads) if t[1] == tid and t[3] == track.start]
    equal(len(found), 1, f"threads of tid {tid} that begin at {track.start}")
    equal(track.thread[5][0].decode(), plain(truth.threads[found[0]][2]), "name of a thread")
    return found[0]


def perfetto_spans(truth, p):
    """(thread, name, start, dur) of threads, (name, start, dur, key) of keyed spans, the losses."""
    spans, keyed, lost = [], [], []
    for s in p.slices:
        thread, process = p.owner(s.track)
        if thread:
            unfinished = s.args.get("unfinished", 0) == 1
            spans.append((thread_of(truth, thread), s.name, s.start, s.end - s.start, unfinished))
        elif process:
            equal(s.track.name, s.name, "name of a keyed span's track")
            keyed.append((s.name, s.start, s.end - s.start, s.args["key"]))
        else:
            equal(s.track.name, "not in this trace", "a track of its own")
            lost.append((s.name, s.start, s.end - s.start, s.args["lost"], s.args["left_out_on_purpose"]))
    return spans, keyed, lost


def check_nesting(truth, p):
    """A span's parent on its track is the one that the recording says; each 512 levels are a track."""
    want = []
    for e in truth.nest():
        around = e.parent if e.depth % 512 or e.kind == INSTANT else None
        want.append((e.thread, plain(truth.names[e.span]), e.start, e.dur,
                     around and (plain(truth.names[around.span]), around.start, around.dur)))
    got = []
    for s in p.slices + p.instants:
        thread, _ = p.owner(s.track)
        if not thread or s.flows or s.track.name == "spans that overlap others" or "value" in s.args:
            continue
        got.append((thread_of(truth, thread), s.name, s.start, s.end - s.start,
                    s.parent and (s.parent.name, s.parent.start, s.parent.end - s.parent.start)))
    same(got, want, "spans and what is around them")


@per_shape
def perfetto(shape):
    """perfetto: spans, instants, counters, losses and nesting are the recording's"""
    truth = trace(shape)
    p = Perfetto(export(truth, "perfetto"))
    spans, keyed, lost = perfetto_spans(truth, p)
    same(spans, [(e.thread, plain(truth.names[e.span]), e.start, e.dur, e.kind == OPEN)
                 for e in truth.of(SPAN, ASIDE, OPEN)], "spans of threads")
    same(keyed, [(plain(truth.names[e.span]), e.start, e.dur, e.arg) for e in truth.of(KEYED)],
         "keyed spans")
    same(lost, expected_losses(truth), "losses")
    check_values(truth, p)
    same([(thread_of(truth, p.owner(i.track)[0]), i.name, i.start) for i in p.instants
          if not i.flows and "value" not in i.args and p.owner(i.track)[0]],
         [(e.thread, plain(truth.names[e.span]), e.start) for e in truth.of(INSTANT)], "instants")
    check_damage_notes(truth, p)
    check_flows(truth, p)
    if shape in NESTED:
        check_nesting(truth, p)
    end = p.instants[-1]
    equal((end.name, end.args["spans"]), ("trace end", len(spans) + len(keyed)), "the last event")
    check(end.start >= max([e.start for e in truth.events] or [0]), "the end comes last")
    p.names = {t.name for t in p.tracks.values() if t.name}
    if shape == "deep":
        check("depth 512 and more" in p.names, f"a track for what is deeper: {p.names}")
    if shape == "lost":
        check(lost, "losses are shown")


def check_values(truth, p):
    finite = [e for e in truth.of(VALUE) if math.isfinite(truth.value(e))]
    bits = lambda v: struct.pack("<d", v) if isinstance(v, float) else v  # noqa: E731: -0.0
    same([(t.name, at, bits(v)) for t, at, v in p.counters],
         [(plain(truth.names[e.span]), e.start, bits(truth.value(e))) for e in finite], "values")
    odd = {"NaN": "nan", "infinity": "inf", "-infinity": "-inf"}
    same([(i.name, i.start, odd[i.args["value"]]) for i in p.instants if "value" in i.args],
         [(plain(truth.names[e.span]), e.start, str(truth.value(e))) for e in truth.of(VALUE)
          if not math.isfinite(truth.value(e))], "values that no curve can show")


def check_damage_notes(truth, p):
    same([(s.start, s.args["ends_before_begin_ns"]) for s in p.slices
          if "ends_before_begin_ns" in s.args],
         [(e.start, e.start - e.end) for e in truth.of(SPAN, ASIDE, OPEN) if e.end < e.start],
         "spans that end before they begin")


def tid_at(truth, tid, at):
    """The thread that a tid was at a time."""
    found = [i for i, t in enumerate(truth.threads) if t[1] == tid]
    return [i for i in found if truth.threads[i][3] <= at][-1] if found else None


def check_flows(truth, p):
    want = []
    for e in truth.of(KEYED):
        begin = tid_at(truth, e.begin_tid, e.start)
        if begin is not None and begin != e.thread:
            want.append((plain(truth.names[e.span]), begin, e.start, e.thread, e.start + e.dur))
    got = []
    for steps in p.flows.values():
        equal([s[0] for s in steps], ["start", "start", "end"], "steps of a flow")
        (_, at, track, name), (_, at2, async_track, _), (_, end, to, _) = steps
        equal((at2, async_track.thread, async_track.name), (at, None, name), "the flow's middle")
        got.append((name, thread_of(truth, track), at, thread_of(truth, to), end))
    same(got, want, "flows")


@case
def protoc_decodes():
    """perfetto: protoc reads every packet with the .proto, and no unknown field is left"""
    if not shutil.which("protoc"):
        raise Skip("no protoc")
    data = export(trace("mixed"), "perfetto")
    mine = Perfetto(data)
    inner = b"".join(raw_packets(io.BytesIO(data)))
    for raw, n in ((data, None), (inner, mine.packets)):
        out = subprocess.run(
            ["protoc", "--decode", "perfetto.Trace", "-I", os.path.join(ROOT, "user", "out"), "perfetto.proto"],
            input=raw, capture_output=True, check=True).stdout.decode()
        equal(subprocess.run(["protoc", "--decode_raw"], input=raw, capture_output=True).returncode, 0, "raw")
        lines = out.split("\n")
        if n:
            equal(lines.count("packet {"), n, "packets")
            equal(lines.count("    type: TYPE_SLICE_BEGIN"), len(mine.slices), "begins")
            equal(lines.count("    type: TYPE_SLICE_END"), len(mine.slices), "ends")
            equal(lines.count("    type: TYPE_COUNTER"), len(mine.counters), "counters")
        unknown = [line for line in lines if line.strip()[:1].isdigit()]
        equal(unknown, [], "fields that the .proto does not have")


# --- chrome --------------------------------------------------------------------------------------


def chrome_tids(truth):
    """As the exporter must show them: a tid that was used before is another row."""
    seen, out = set(), []
    for i, t in enumerate(truth.threads):
        out.append(t[1] if (t[0], t[1]) not in seen else 4194305 + i)
        seen.add((t[0], t[1]))
    return out


@per_shape
def chrome(shape):
    """chrome: spans, instants, counters, losses and nesting are the recording's"""
    truth = trace(shape)
    c = Chrome(export(truth, "chrome"))
    tids = chrome_tids(truth)
    name = lambda e: valid(truth.names[e.span])  # noqa: E731
    equal(c.zero, truth.zero, "zero")
    spans = [(s[0], s[3], s[4], s[5], "unfinished" in s[6]) for s in c.spans if s[1] == "span"]
    keyed, beside = [], []
    for halves in c.asyncs.values():
        (b, at, e), (end, end_at, e2) = halves
        equal((b, end, e["name"], e["cat"]), ("b", "e", e2["name"], e2["cat"]), "an async pair")
        if e["cat"] == "keyed":
            keyed.append((e["name"], e["tid"], at, end_at - at, e["args"]["key"]))
        else:
            beside.append((e["name"], e["tid"], at, end_at - at, "unfinished" in e.get("args", {})))
    same(spans + beside, [(name(e), tids[e.thread], e.start, e.dur, e.kind == OPEN)
                          for e in truth.of(SPAN, ASIDE, OPEN)], "spans of threads")
    if shape in NESTED:
        same(beside, [(name(e), tids[e.thread], e.start, e.dur, False) for e in truth.of(ASIDE)],
             "spans beside their thread")
    same(keyed, [(name(e), tids[e.thread], e.start, e.dur, str(e.arg)) for e in truth.of(KEYED)],
         "keyed spans")
    same([i[:3] for i in c.instants if "value" not in i[3]],
         [(name(e), tids[e.thread], e.start) for e in truth.of(INSTANT)], "instants")
    finite = [e for e in truth.of(VALUE) if math.isfinite(truth.value(e))]
    same([(n, at, v if isinstance(v, int) else float(v)) for n, at, v in c.counters],
         [(name(e), e.start, truth.value(e)) for e in finite], "values")
    same([(s[0], s[4], s[5], s[6]["lost"]) for s in c.spans if s[1] == "lost"],
         [(n, start, dur, lost) for n, start, dur, lost, _ in expected_losses(truth)],
         "losses")
    if shape in NESTED:
        got = [(s[0], s[3], s[4], s[5], s[7] and s[7][:1] + s[7][4:6]) for s in c.spans
               if s[1] == "span" and s[5]]
        want = []
        for e in truth.nest():
            if e.kind != INSTANT and e.dur:
                p = e.parent
                want.append((name(e), tids[e.thread], e.start, e.dur, p and (name(p), p.start, p.dur)))
        same(got, want, "spans and what is around them")


@case
def chrome_labels():
    """chrome: processes and threads have their names, a reused tid says so"""
    truth = trace("tidreuse")
    c = Chrome(export(truth, "chrome"))
    tids = chrome_tids(truth)
    for i, t in enumerate(truth.threads):
        label = c.labels["thread_name", t[0], tids[i]]
        equal(label, valid(t[2]) + ("" if tids[i] == t[1] else f" (tid {t[1]} again)"), "thread_name")
        equal(c.labels["process_name", t[0], tids[i]], "strategy", "process_name")
    check(len(truth.threads) > 10, "tids were reused")


@case
def chrome_flows():
    """chrome: keyed spans that change threads have an arrow from the begin to the end"""
    truth = trace("keyed")
    c = Chrome(export(truth, "chrome"))
    want = [(e.begin_tid, e.start, truth.threads[e.thread][1], e.start + e.dur) for e in truth.of(KEYED)
            if e.begin_tid != truth.threads[e.thread][1]]
    got = []
    for steps in c.flows.values():
        (s, at, tid), (f, end, to) = steps
        equal((s, f), ("s", "f"), "steps of a flow")
        got.append((tid, at, to, end))
    check(want, "some change threads")
    same(got, want, "flows")


# --- speedscope ----------------------------------------------------------------------------------


@per_shape
def speedscope(shape):
    """speedscope: one profile a thread, in strict order, with the recording's spans and nesting"""
    truth = trace(shape)
    s = Speedscope(export(truth, "speedscope"))
    name = lambda e: valid(truth.names[e.span]) + (" (unfinished)" if e.kind == OPEN else "")  # noqa: E731
    mine = [p for p in s.profiles if "laid end to end" not in p[0] and p[0] != "no spans"]
    apart = [p for p in s.profiles if "laid end to end" in p[0]]
    per_thread = collections.defaultdict(list)
    nested = truth.nest() if shape in NESTED else []
    for e in nested or truth.of(SPAN, OPEN):
        if e.kind != INSTANT:
            per_thread[e.thread].append(e)
    got = [(f, at + truth.zero, dur) for _, spans in mine for f, at, dur, _ in spans]
    lengths = [(f, dur) for _, spans in apart for f, _, dur, _ in spans]
    if nested:
        equal(len(mine), len(per_thread), "profiles")
        for (_, spans), thread in zip(mine, sorted(per_thread)):
            rows = [(f, at + truth.zero, dur,
                     around is not None and (spans[around][0], spans[around][1] + truth.zero))
                    for f, at, dur, around in spans]
            same(rows, [(name(e), e.start, e.dur, e.parent is not None and (name(e.parent), e.parent.start))
                        for e in per_thread[thread]], "spans and what is around them")
        same(lengths, [(name(e), e.dur) for e in truth.of(ASIDE, KEYED)], "spans laid end to end")
    else:
        # Which of two that cross is apart is the exporter's choice.
        same([(f, dur) for f, _, dur in got] + lengths,
             [(name(e), e.dur) for e in truth.of(SPAN, OPEN, ASIDE, KEYED)], "spans")
        whole = collections.Counter((name(e), e.start, e.dur) for e in truth.of(SPAN, OPEN))
        check(not collections.Counter(got) - whole, "spans at their own times")
    if shape == "empty":
        equal([p[0] for p in s.profiles], ["no spans"], "profiles")


@case
def stretches():
    """threads of several hundred thousand spans nest right across the borders of stretches"""
    truth = trace("deep", "--spans", "200000", "--depth", "40", "--threads", "2")
    p = Perfetto(export(truth, "perfetto"))
    check_nesting(truth, p)
    truth = trace("open", "--spans", "100000", "--threads", "2")
    check_nesting(truth, Perfetto(export(truth, "perfetto")))


if __name__ == "__main__":
    main()
