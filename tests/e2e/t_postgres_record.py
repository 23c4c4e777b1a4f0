#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL under pgbench, recorded: every span that the kernel counted is in the file or lost by
name, the report agrees with pgbench, every format holds every span as its own readers see it, and
check gates it. QBPF_PG_SECONDS: how long pgbench runs (default 5). Of a minute, with its 15 M
events, no export is held whole: each is read through a pipe, and only durations are kept."""

import array
import collections
import contextlib
import csv
import functools
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree

import browser
import export_readers as readers
import perfetto_reader
from harness import BUILD, QBPF, ROOT, Skip, attach_json, case, check, equal, main, spans, summary
from pg import CONNECTIONS, Server
from speedscope import Served, load, speedscope_app

SECONDS = int(os.environ.get("QBPF_PG_SECONDS", "5"))
MARKERS = ("transaction*", "query*", "statement__status")
PAGE_EVENTS = 150_000  # of what a page in a browser is given
PART = 16 << 20  # of what protoc is given at once: it keeps all of it, many times as large

folder = tempfile.mkdtemp(prefix="qbpf-pg-record-")


def qbpf(*args, code=0):
    p = subprocess.run([QBPF, *args], capture_output=True, timeout=300)
    equal(p.returncode, code, f"exit code of qbpf {args} ({p.stderr.decode()})")
    return p.stdout


@functools.lru_cache(maxsize=None)
def recording():
    """(file, pgbench's transactions, the summary that attach printed)."""
    path = os.path.join(folder, "pg.qbpf")
    select = [x for m in MARKERS for x in ("-u", f"postgresql:{m}")]
    with Server() as pg:
        with attach_json(pg.server.pid, "--follow", "-o", path, *select) as q:
            q.wait_ready()
            done = pg.pgbench("-T", SECONDS)
            doc = summary(q.stop())
    return path, done, doc


@contextlib.contextmanager
def exported(fmt):
    """The pipe of an export, which must be read to its end."""
    with subprocess.Popen([QBPF, "export", "-f", fmt, recording()[0]], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        try:
            yield p.stdout
            equal(p.stdout.read(1), b"", "what follows the end")
        except BaseException:
            p.kill()
            raise
        err = p.stderr.read().decode()
        equal(p.wait(), 0, f"exit code of qbpf export -f {fmt} ({err})")


class Durations(collections.defaultdict):
    """name -> ns of what ended, in 8 bytes each."""

    def __init__(self):
        super().__init__(lambda: array.array("q"))

    def sorted(self):
        return {name: array.array("q", sorted(ns)) for name, ns in self.items()}


@functools.lru_cache(maxsize=None)
def rows():
    """(events, kind -> name -> sorted ns of what ended) as csv has them."""
    events, kinds = collections.Counter(), collections.defaultdict(Durations)
    with exported("csv") as pipe:
        reader = csv.reader(io.TextIOWrapper(pipe, encoding="utf-8", newline=""))
        head = next(reader)
        kind, name, dur = (head.index(x) for x in ("kind", "name", "dur_ns"))
        for row in reader:
            equal(len(row), len(head), "columns")
            events[row[kind]] += 1
            kinds[row[kind]][row[name]].append(int(row[dur]))
    return events, {k: by_name.sorted() for k, by_name in kinds.items()}


@functools.lru_cache(maxsize=None)
def durations(kinds):
    """name -> sorted ns of what ended, of csv."""
    out = Durations()
    for kind in kinds:
        for name, ns in rows()[1].get(kind, {}).items():
            out[name].extend(ns)
    return out.sorted()


@case
def all_accounted_for():
    """held + lost + skipped = counted, of each span; transactions as many as pgbench did"""
    path, done, live = recording()
    doc = json.loads(qbpf("report", "--json", path))
    t = doc["trace"]
    check(t["clean"], "closed cleanly")
    equal(t["held"] + t["lost"] + t["skipped"], t["counted"], "held + lost + skipped")
    events = rows()[0]
    equal(t["held"], events.total() - events["open"], "held, by csv")
    equal(t["counted"], live["trace"]["counted"], "counted, live and later")
    was, now = spans(live), spans(doc)
    for name, s in was.items():
        lost = live["lost"]["by_probe"].get(name, 0)
        equal(now.get(name, {}).get("count", 0) + lost, s["count"], f"{name}: in the file and lost")
    beat = "postgresql:statement__status"
    if not live["lost"]["by_probe"].get(beat):
        for key in ("count", "sum_ns", "min_ns", "max_ns"):
            equal(now[beat]["interval"][key], was[beat]["interval"][key], f"{beat}: interval.{key}")
    lost = live["lost"]["by_probe"].get("postgresql:transaction", 0)
    equal(now["postgresql:transaction"]["count"] + lost, done + CONNECTIONS, "transactions")
    print(f"# {SECONDS} s, {done} transactions: {t['counted']} counted, {t['held']} held, {t['lost']} lost, "
          f"{os.path.getsize(path)} bytes", flush=True)


@case
def report_is_exact():
    """report's percentiles are order statistics of what csv holds"""
    held = durations(("span", "aside", "keyed"))
    doc = json.loads(qbpf("report", "--json", recording()[0]))
    compared = 0
    for name, s in spans(doc).items():
        if s["kind"] != "marker" or name not in held:
            continue
        ns = held[name]
        equal((s["count"], s["sum_ns"], s["min_ns"], s["max_ns"]), (len(ns), sum(ns), ns[0], ns[-1]), name)
        for key, q in (("p50_ns", 50), ("p99_ns", 99)):
            if s[key] is not None:
                equal(s[key], ns[-(-len(ns) * q // 100) - 1], f"{name} {key}")
                compared += 1
    check(compared >= 6, f"only {compared} percentiles compared")
    text = qbpf("report", recording()[0]).decode()
    check("postgresql:transaction" in text and "critical path" in text, "the text report")


def decoded(part):
    """How often protoc, with the .proto, shows each line that is asked for in a part of a file."""
    proto = os.path.join(ROOT, "user", "out", "perfetto.proto")
    wanted = (b"packet {", b"    type: TYPE_SLICE_BEGIN", b"    type: TYPE_SLICE_END",
              b"    type: TYPE_INSTANT", b"  compressed_packets: ")
    counts, left = collections.Counter(), b"\n"
    with tempfile.TemporaryFile() as f:
        f.write(part)
        f.seek(0)
        with subprocess.Popen(
            ["protoc", "-I", os.path.dirname(proto), "--decode", "perfetto.Trace", os.path.basename(proto)],
            stdin=f, stdout=subprocess.PIPE,
        ) as p:
            for block in iter(lambda: p.stdout.read(1 << 20), b""):
                whole, newline, rest = (left + block).rpartition(b"\n")
                check(not re.search(rb"\n *[0-9]", whole), "fields that the .proto does not have")
                counts.update({line: whole.count(b"\n" + line) for line in wanted})
                left = newline + rest
    equal((p.returncode, left), (0, b"\n"), "protoc")
    return counts


def by_protoc(packets):
    """What protoc shows of packets, a part of them at a time; (counts, packets)."""
    counts, part, n = collections.Counter(), bytearray(), 0
    for packet in packets:
        part += packet
        n += 1
        if len(part) > PART:
            counts += decoded(part)
            part.clear()
    return counts + decoded(part), n


@functools.lru_cache(maxsize=None)
def perfetto():
    """(the reader, how many spans and instants, durations of the spans, instants by name)."""
    reader = perfetto_reader.PerfettoReader()
    whats, got, instants = collections.Counter(), Durations(), collections.Counter()
    with exported("perfetto") as pipe:
        for what, s in reader.steps(pipe):
            whats[what] += 1
            if what == "instant":
                instants[s.name] += 1
            elif "unfinished" not in s.args and "lost" not in s.args:
                got[s.name].append(s.end - s.start)
    return reader, whats, got, instants


@case
def perfetto_holds_all():
    """perfetto: each span with its duration, each instant"""
    _, _, got, instants = perfetto()
    equal_durations(got, durations(("span", "aside", "keyed")))
    equal_instants(instants - collections.Counter(["trace end"]))


@case
def protoc_reads_perfetto():
    """perfetto: protoc reads every packet, as it is and out of its group, and knows every field"""
    if not shutil.which("protoc"):
        raise Skip("no protoc")
    reader, whats, _, _ = perfetto()
    with exported("perfetto") as pipe:
        groups, n = by_protoc(perfetto_reader.framed(p) for p in perfetto_reader.packets_of(pipe))
    equal(groups[b"packet {"], n, "packets of the file")
    check(n - 2 <= groups[b"  compressed_packets: "] <= n, "packets that are groups")
    with exported("perfetto") as pipe:
        inner, _ = by_protoc(perfetto_reader.raw_packets(pipe))
    equal(inner[b"packet {"], reader.packets, "packets")
    equal(inner[b"    type: TYPE_SLICE_BEGIN"], whats["span"], "begins")
    equal(inner[b"    type: TYPE_SLICE_END"], whats["span"], "ends")
    equal(inner[b"    type: TYPE_INSTANT"], whats["instant"], "instants")


def equal_durations(got, held):
    got = got.sorted()
    for name in {**got, **held}:
        check(got.get(name) == held.get(name), f"durations of {name}")


def equal_instants(got):
    equal(dict(got), {name: len(ns) for name, ns in rows()[1].get("instant", {}).items()}, "instants")


@case
def chrome_holds_all():
    """chrome: Python's json reads it; each span with its duration, each instant"""
    nested, apart, begun, instants = Durations(), Durations(), {}, collections.Counter()
    reader = readers.ChromeReader()
    with exported("chrome") as pipe:
        for what, thing in reader.steps(pipe):
            if what == "instant":
                instants[thing[0]] += 1
            elif what == "span":
                if "unfinished" not in thing[6] and thing[1] != "lost":
                    nested[thing[0]].append(thing[5])
            elif thing[0] == "b":
                check(thing[2]["id"] not in begun, "an id that is used again")
                begun[thing[2]["id"]] = thing[1]
            else:
                equal((what, thing[0]), ("async", "e"), "what is left")
                apart[thing[2]["name"]].append(thing[1] - begun.pop(thing[2]["id"]))
    equal_durations(nested, durations(("span",)))
    equal_durations(apart, durations(("aside", "keyed")))
    equal_instants(instants)
    if SECONDS <= 5:
        # The whole document at once too; of an event only that it is one, or memory would not do.
        doc = json.loads(qbpf("export", "-f", "chrome", recording()[0]),
                         object_hook=lambda o: o if "traceEvents" in o or "zero_ns" in o else None)
        equal((len(doc["traceEvents"]), doc["metadata"]["zero_ns"]), (reader.events, str(reader.zero)), "whole")


@case
def speedscope_holds_all():
    """speedscope: Python's json reads it; each span with its duration"""
    reader, by_frame = readers.SpeedscopeReader(), Durations()
    with exported("speedscope") as pipe:
        for frame, _, dur in reader.spans(pipe):
            by_frame[frame].append(dur)
    got = Durations()
    for frame, ns in by_frame.items():
        if not reader.frames[frame].endswith(" (unfinished)"):
            got[reader.frames[frame]].extend(ns)
    equal_durations(got, durations(("span", "aside", "keyed")))


@case
def speedscope_shows_it():
    """speedscope's own page, in chromium, shows the frames of its format and of chrome's"""
    page = speedscope_app()
    names = set(durations(("span", "aside", "keyed")))
    # A recording of a minute is more than a page takes; its first spans have what matters.
    seconds = min(2, SECONDS * PAGE_EVENTS / rows()[0].total())
    part = ("export", "--to", f"{seconds:.3f}", recording()[0], "-f")
    files = {f"pg.{suffix}": qbpf(*part, fmt)
             for fmt, suffix in (("speedscope", "speedscope.json"), ("chrome", "json"))}
    with Served(page, files) as served, browser.Browser() as b:
        b.size(1400, 1200)
        for name in files:
            # Its table is that of one thread.
            shown = {r[2] for r in load(b, served.url, name)}
            check(shown and shown <= names, f"{name} shows {sorted(shown)}, not of {sorted(names)}")


@case
def the_rest_holds_all():
    """folded and hgrm: self times and counts sum up to those of the report"""
    doc = json.loads(qbpf("report", "--json", recording()[0]))

    def own(nodes):
        return sum(n.get("self_ns", 0) + own(n.get("children", [])) for n in nodes)

    folded, hgrm = (qbpf("export", "-f", fmt, recording()[0]) for fmt in ("folded", "hgrm"))
    equal(sum(readers.folded(folded).values()), own(doc["tree"]), "folded: all self times")
    held = durations(("span", "aside", "keyed"))
    for name, parts in readers.hgrm(hgrm).items():
        if name in held:
            equal(int(parts[0][0][-1][2]), len(held[name]), f"hgrm: count of {name}")


@case
def check_gates_it():
    """check passes what holds, exits 3 for a broken budget, and writes junit"""
    path = recording()[0]
    junit = os.path.join(folder, "junit.xml")
    n = spans(json.loads(qbpf("report", "--json", path)))["postgresql:query"]["count"]
    qbpf("check", path, "postgresql:query p99 < 100s", f"postgresql:query count == {n}", "--junit", junit)
    suite = xml.etree.ElementTree.parse(junit).getroot()
    equal(len(list(suite.iter("testcase"))), 2, "cases in junit")
    qbpf("check", path, "postgresql:query p50 < 1ns", code=3)
    same = json.loads(qbpf("diff", "--json", path, path))
    equal([s["name"] for s in same["spans"] + same["tree"] if s["changed"]], [], "changed beside itself")
    check(len(same["spans"]) > 4, "spans compared")


@case
def html_opens():
    """the HTML report opens in a browser without a complaint"""
    if not browser.find():
        raise Skip("no chromium")
    page = os.path.join(folder, "pg.html")
    qbpf("report", "--html=" + page, recording()[0])
    check(os.path.getsize(page) < 16 << 20, "a page of a few MB")
    with browser.Browser() as b:
        b.open(page)
        b.wait("document.body.innerText.includes('postgresql:transaction')")
        equal(b.complaints(), [], "complaints of the browser")


try:
    main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
