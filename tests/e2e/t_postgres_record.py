#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""PostgreSQL under pgbench, recorded: every span that the kernel counted is in the file or lost by
name, the report agrees with pgbench, every format holds every span as its own readers see it, and
check gates it. QBPF_PG_SECONDS: how long pgbench runs (default 5)."""

import collections
import csv
import functools
import io
import json
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree

import browser
import export_readers as readers
from harness import BUILD, QBPF, ROOT, Skip, attach_json, case, check, equal, main, spans, summary
from pg import CONNECTIONS, Server
from speedscope import Served, load, speedscope_app

SECONDS = int(os.environ.get("QBPF_PG_SECONDS", "5"))
MARKERS = ("transaction*", "query*", "statement__status")

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


def export(fmt):
    return qbpf("export", "-f", fmt, recording()[0])


@functools.lru_cache(maxsize=None)
def rows():
    """The events as csv has them."""
    return list(csv.DictReader(io.StringIO(export("csv").decode())))


def durations(kinds):
    """name -> sorted ns of what ended, of csv."""
    out = collections.defaultdict(list)
    for r in rows():
        if r["kind"] in kinds:
            out[r["name"]].append(int(r["dur_ns"]))
    return {name: sorted(ns) for name, ns in out.items()}


@case
def all_accounted_for():
    """held + lost + skipped = counted, of each span; transactions as many as pgbench did"""
    path, done, live = recording()
    doc = json.loads(qbpf("report", "--json", path))
    t = doc["trace"]
    check(t["clean"], "closed cleanly")
    equal(t["held"] + t["lost"] + t["skipped"], t["counted"], "held + lost + skipped")
    equal(t["held"], sum(1 for r in rows() if r["kind"] != "open"), "held, by csv")
    equal(t["counted"], live["trace"]["counted"], "counted, live and later")
    was, now = spans(live), spans(doc)
    for name, s in was.items():
        lost = live["lost"]["by_probe"].get(name, 0)
        equal(now.get(name, {}).get("count", 0) + lost, s["count"], f"{name}: in the file and lost")
    lost = live["lost"]["by_probe"].get("postgresql:transaction", 0)
    equal(now["postgresql:transaction"]["count"] + lost, done + CONNECTIONS, "transactions")


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


@case
def perfetto_holds_all():
    """perfetto: protoc reads every packet; each span with its duration"""
    raw = export("perfetto")
    proto = os.path.join(ROOT, "user", "out", "perfetto.proto")
    p = subprocess.run(
        ["protoc", "-I", os.path.dirname(proto), "--decode_raw"],
        input=readers.Perfetto.raw_packets(raw), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    equal(p.returncode, 0, f"protoc: {p.stderr.decode()}")
    got = collections.defaultdict(list)
    for s in readers.Perfetto(raw).slices:
        if "unfinished" not in str(s.args):
            got[s.name].append(s.end - s.start)
    for name, ns in durations(("span", "aside")).items():
        equal(sorted(got[name]), ns, f"durations of {name}")


@case
def chrome_holds_all():
    """chrome: Python's json reads it; each nested span with its duration"""
    got = collections.defaultdict(list)
    for s in readers.Chrome(export("chrome")).spans:
        if "unfinished" not in str(s[6]):
            got[s[0]].append(s[5])
    for name, ns in durations(("span",)).items():
        check(not collections.Counter(ns) - collections.Counter(got[name]), f"durations of {name}")


@case
def speedscope_shows_it():
    """speedscope's own page, in chromium, shows the frames of its format and of chrome's"""
    page = speedscope_app()
    names = set(durations(("span", "aside", "keyed")))
    # A recording of a minute is more than a page takes; two seconds have what matters.
    part = ("export", "--to", "2", recording()[0], "-f")
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

    equal(sum(readers.folded(export("folded")).values()), own(doc["tree"]), "folded: all self times")
    held = durations(("span", "aside", "keyed"))
    for name, parts in readers.hgrm(export("hgrm")).items():
        if name in held:
            equal(int(parts[0][0][-1][2]), len(held[name]), f"hgrm: count of {name}")


@case
def check_gates_it():
    """check passes what holds, exits 3 for a broken budget, and writes junit"""
    path = recording()[0]
    junit = os.path.join(folder, "junit.xml")
    qbpf("check", path, "postgresql:query p99 < 10s", "postgresql:query count > 1000", "--junit", junit)
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
