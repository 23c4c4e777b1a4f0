#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf report: every figure against those computed here from the events, which a second reader of the
format took from the file."""

import collections
import functools
import json
import os
import re
import resource
import subprocess
import sys
from fractions import Fraction

from export_truth import (ASIDE, INSTANT, KEYED, MKTRACE, OPEN, SPAN, VALUE, main, per_shape, tmp, trace, valid)
from harness import QBPF, ROOT, case, check, equal

sys.setrecursionlimit(20000)  # the shape `deep` is a tree of 600 levels
QUANTILES = {"p50": 2, "p90": 10, "p99": 100, "p999": 1000, "p9999": 10000}
HIST_F64 = 2


def run(*args, code=0, **kw):
    p = subprocess.run([QBPF, "report", *map(str, args)], capture_output=True, timeout=300, **kw)
    equal(p.returncode, code, f"exit code of report {args} ({p.stderr[-300:]})")
    if code:
        equal(p.stdout, b"", "stdout")
        equal(p.stderr.count(b"\n"), 1, f"lines of {p.stderr!r}")
        check(p.stderr.startswith(b"qbpf: "), p.stderr)
    return p


def document(truth, *args):
    doc = json.loads(run(truth.path, "--json", *args).stdout)
    equal(doc["schema"], "qbpf.summary/1", "schema")
    return doc


def whole(truth):
    """What is in the figures."""
    return [e for e in truth.events if e.kind != OPEN and e.end >= e.start]


def durations(events):
    return sorted(e.end - e.start for e in events if e.kind in (SPAN, ASIDE, KEYED))


def check_quantiles(got, ordered, suffix, what):
    """Nearest rank; none where the sample is too small."""
    n = len(ordered)
    for name, least in QUANTILES.items():
        rank = -(-n * (least - 1) // least)  # the least k with k / n >= (least - 1) / least
        want = ordered[rank - 1] if n >= least else None
        equal(got[name + suffix], want, f"{what}: {name}")
    if n:
        equal(got["min" + suffix], ordered[0], f"{what}: min")
        equal(got["max" + suffix], ordered[-1], f"{what}: max")


def check_ns(got, ordered, what):
    check_quantiles(got, ordered, "_ns", what)
    if ordered:
        equal(got["sum_ns"], sum(ordered), f"{what}: sum")
        equal(got["mean_ns"], int(Fraction(sum(ordered), len(ordered)) + Fraction(1, 2)), f"{what}: mean")


def check_span(got, truth, span, events):
    what = got["name"]
    equal(got["count"], len(events), f"{what}: count")
    equal(got["held"], len(events), f"{what}: held")
    if got["kind"] == "instant":
        hits = sorted(e.start for e in events)
        intervals = sorted(b - a for a, b in zip(hits, hits[1:]))
        equal(got["interval"]["count"], len(intervals), f"{what}: intervals")
        check_ns(got["interval"], intervals, what)
    elif got["kind"] == "value":
        numbers = [truth.value(e) for e in events]
        if truth.hist[span] == HIST_F64:
            equal(got.get("nan", 0), sum(x != x for x in numbers), f"{what}: nan")
            numbers = [{float("inf"): "inf", float("-inf"): "-inf"}.get(x, x)
                       for x in sorted(x for x in numbers if x == x)]
        else:
            numbers.sort()
        check_quantiles(got, numbers, "", what)
    else:
        check_ns(got, durations(events), what)
        equal(got["self_ns"], sum(max(e.end - e.start - e.child, 0) for e in events), f"{what}: self")


def paths(nodes, prefix=()):
    """{names from the root down: node}"""
    out = {}
    for n in nodes:
        out[prefix + (n["name"],)] = n
        out.update(paths(n["children"], prefix + (n["name"],)))
    return out


@functools.lru_cache(maxsize=None)
def node_events(truth):
    """{names from the root down: events}, by the file's own table of places."""
    names = {0: ()}
    for node, parent, span in sorted(truth.tables["nodes"]):  # a parent's number is the lower one
        names[node] = names[parent] + (valid(truth.names[span]),)
    by_node = collections.defaultdict(list)
    for e in whole(truth):
        if e.kind not in (KEYED, VALUE):
            by_node[e.node].append(e)
    out = collections.defaultdict(list)
    for node, events in by_node.items():
        out[names[node]] += events
    return out


def check_tree(doc, truth):
    got = paths(doc["tree"])
    want = node_events(truth)
    for names, events in want.items():
        n = got[names]
        equal(n["count"], len(events), f"{names}: count")
        ns = durations(events)
        if not ns:
            check("sum_ns" not in n, f"{names}: an instant with a time")
            continue
        equal(n["sum_ns"], sum(ns), f"{names}: sum")
        equal(n["self_ns"], sum(max(e.end - e.start - e.child, 0) for e in events), f"{names}: self")
        equal((n["min_ns"], n["max_ns"]), (ns[0], ns[-1]), f"{names}: min, max")
        p99 = ns[-(-len(ns) * 99 // 100) - 1] if len(ns) >= 100 else None
        equal(n["p99_ns"], p99, f"{names}: p99")
    for names in set(got) - set(want):
        equal(got[names]["count"], 0, f"{names}: count of a place without events")


def check_edges(doc, truth):
    want = collections.Counter()
    times = collections.Counter()
    for names, events in node_events(truth).items():
        edge = (names[-2] if len(names) > 1 else None, names[-1])
        want[edge] += len(events)
        times[edge] += sum(durations(events))
    got, got_times = collections.Counter(), collections.Counter()
    for e in doc["edges"]:
        got[e["caller"], e["callee"]] += e["count"]
        got_times[e["caller"], e["callee"]] += e.get("sum_ns", 0)
    equal(got, want, "calls by edge")
    equal(+got_times, +times, "time by edge")


def check_paths(doc, truth):
    """The slowest is the slowest; the median is one of median duration; steps lead down."""
    if "critical_path" not in doc:
        return
    root = doc["critical_path"]["root"]
    every = [e for e in whole(truth) if e.kind == SPAN and valid(truth.names[e.span]) == root]
    slowest = doc["critical_path"]["slowest"]
    least_deep = min(e.depth for e in every)
    check(slowest["duration_ns"] == max(e.dur for e in every if e.depth == least_deep), "the slowest")
    for path in (slowest, doc["critical_path"]["median"]):
        equal(path["steps"][0]["name"], root, "first step")
        equal(path["steps"][0]["share"], 1.0, "its share")
        check(any(e.start == path["start_ns"] and e.dur == path["duration_ns"] for e in every),
              f"an instance that never was: {path['start_ns']}")
        for up, down in zip(path["steps"], path["steps"][1:]):
            check(down["duration_ns"] <= up["duration_ns"], f"a step up: {up} {down}")


@per_shape
def figures(shape):
    """counts, exact percentiles, call tree, edges and critical paths"""
    truth = trace(shape)
    doc = document(truth)
    by_span = collections.defaultdict(list)
    for e in whole(truth):
        by_span[e.span].append(e)
    equal(len(doc["spans"]), len(truth.names) - 1, "spans")
    for span, got in enumerate(doc["spans"], 1):
        equal(got["name"], valid(truth.names[span]), "name")
        check_span(got, truth, span, by_span[span])
        counted, _, lost, skipped = truth.tables["counts"][span - 1]
        equal((got["counted"], got["lost"], got["skipped"]), (counted, lost, skipped), "what the kernel counted")
    t = doc["trace"]
    equal(t["held"], len(whole(truth)), "held")
    equal(t["counted"], sum(c[0] for c in truth.tables["counts"]), "counted")
    equal(t["held"] + t["lost"] + t["skipped"] + t.get("backwards", 0), t["counted"], "all accounted for")
    equal(t.get("backwards", 0), sum(e.end < e.start for e in truth.events), "damaged")
    equal(len(doc["open"]), sum(e.kind == OPEN for e in truth.events), "open")
    check(t["clean"] and t["exact"], "clean and exact")
    check_tree(doc, truth)
    check_edges(doc, truth)
    if shape not in ("backwards", "mixed"):
        check_paths(doc, truth)


@per_shape
def text(shape):
    """the text: no control byte, and how much the file holds"""
    truth = trace(shape)
    out = run(truth.path).stdout
    check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", out), "a control byte")
    held, counted = len(whole(truth)), sum(c[0] for c in truth.tables["counts"])
    if held == counted:
        check(f"it holds every span that was counted: {held}\n".encode() in out, out[:500])
    else:
        check(f" of the spans: {held} of {counted}; ".encode() in out, out[:500])


@case
def golden():
    """the text of one trace, byte for byte"""
    path = os.path.join(tmp, "golden.qbpf")
    subprocess.run([MKTRACE, "--spans", "20000", "--threads", "2", "--lose", "50", path], check=True)
    out = run("golden.qbpf", cwd=tmp, env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}).stdout.decode()
    out = re.sub(r"^(golden.qbpf  )[0-9.]+ KiB", r"\1SIZE", out, flags=re.M)
    out = re.sub(r" by qbpf [0-9.]+:", " by qbpf VERSION:", out, count=1)
    name = os.path.join(ROOT, "tests", "golden", "report.strategy.txt")
    if os.environ.get("UPDATE") == "1":
        with open(name, "w") as f:
            f.write(out)
    with open(name) as f:
        want = f.read()
    for n, (a, b) in enumerate(zip(out.splitlines(), want.splitlines()), 1):
        equal(a, b, f"line {n}")
    equal(out, want, "the whole text")
    # All but the lines that say what was run fit into 100 columns.
    check(max(len(x) for x in out.splitlines()[2:]) <= 100, "a line of more than 100 columns")


@case
def threads():
    """--threads: the trees of all threads together are the call tree"""
    for shape in ("strategy", "mixed"):
        truth = trace(shape)
        doc = document(truth, "--threads")
        every = collections.Counter()
        for t in doc["threads"]:
            for names, n in paths(t["tree"]).items():
                every[names] += n["count"]
                tid = t["tid"]
                mine = [e for e in node_events(truth).get(names, [])
                        if truth.threads[e.thread][1] == tid]
                check(n["count"] <= len(mine), f"{names} of thread {tid}")
        equal(+every, +collections.Counter({k: n["count"] for k, n in paths(doc["tree"]).items()}), "counts")


@case
def one_span():
    """--span: callers, callees and itself account for all of its time"""
    truth = trace("strategy")
    out = run(truth.path, "--span", "order:build", env={**os.environ, "LC_ALL": "C"}).stdout.decode()
    check(re.search(r"^called from +count", out, re.M), "callers")
    check(re.search(r"^strategy:on_tick +600 ", out, re.M), "its caller")
    for callee in ("risk:check", "order:encode", "order:send", r"\(itself\)"):
        check(re.search(rf"^{callee} +600 ", out, re.M), callee)
    check("strategy:alpha" not in out, "another span")
    shares = [float(x) for x in re.findall(r"^(?:risk|order|\(itself)\S* +600 .* ([0-9.]+)%$", out, re.M)]
    check(abs(sum(shares) - 100) < 0.2, f"shares {shares}")
    doc = document(truth, "--span", "order:build")
    equal(doc["over_time"]["span"], "order:build", "over time")
    equal(sum(s["count"] for s in doc["over_time"]["stretches"]), 600, "its stretches together")


@case
def other_root():
    """--root: critical paths of a span that is not outermost"""
    truth = trace("strategy")
    doc = document(truth, "--root", "strategy:signal")
    equal(doc["critical_path"]["root"], "strategy:signal", "root")
    dur = sorted(e.dur for e in truth.events if truth.names[e.span] == b"strategy:signal")
    equal(doc["critical_path"]["slowest"]["duration_ns"], dur[-1], "the slowest")
    equal(doc["critical_path"]["median"]["duration_ns"], dur[(len(dur) + 1) // 2 - 1], "the median")


@case
def short_names():
    """--span and --root take what check and export take: a name without its provider, a glob of one"""
    truth = trace("strategy")
    for whole, *short in (("strategy:signal", "signal", "*:sig*", "sig*"), ("risk:check", "check", "risk:*")):
        for option in ("--span", "--root"):
            want = document(truth, option, whole)
            for name in short:
                equal(document(truth, option, name), want, f"{option} {name}")


@case
def usage():
    """usage errors: exit 2 and one line that names the word"""
    path = trace("strategy").path
    for args, word in (
        ([], "which trace"), ([path, path], "one trace"), ([path, "--nosuch"], "--nosuch"), ([path, "-x"], "-x"),
        ([path, "--span"], "--span"), ([path, "--hot", "much"], "much"), ([path, "--hot", "101"], "101"),
        ([path, "--limit", "-1"], "-1"), ([path, "--limit", "x"], "x"), ([path, "--json", "--html"], "stdout"),
    ):
        check(word.encode() in run(*args, code=2).stderr, f"{args}: {word}")
    check(b"usage: qbpf report" in run("--help").stdout, "help")


@case
def cannot_be_read():
    """exit 1 and one line: no file, no trace, no such span, damage with its offset"""
    path = trace("strategy").path
    with open(path, "rb") as f:
        data = f.read()
    other = os.path.join(tmp, "other")

    def says(word, content, *args):
        with open(other, "wb") as f:
            f.write(content)
        check(word in run(other, *args, code=1).stderr.decode(), f"{word}: {args}")

    check(b"No such file" in run(os.path.join(tmp, "none"), code=1).stderr, "no file")
    check(b"a folder, not a regular file" in run(tmp, code=1).stderr, "a folder")
    pipe = os.path.join(tmp, "pipe")
    os.mkfifo(pipe)
    for name in ("-", pipe, "/dev/stdin"):
        err = run(name, code=1, input=data).stderr
        check(err.startswith(f"qbpf: {name}: a pipe, not a regular file; ".encode()), f"{name}: {err}")
        check(b"save it to a file" in err, f"{name}: {err}")
    says("not a qbpf trace", b"")
    says("not a qbpf trace", b"\x7fELF" * 100)
    says("there is no span nobody", data, "--span", "nobody")
    says("there is no span nobody", data, "--root", "nobody")
    says("did you mean on_tick", data, "--span", "on_tik")
    says("it means order:build and order:encode", data, "--root", "order:*")
    bad = bytearray(data)
    bad[len(bad) // 2] ^= 0x40
    says("damaged at offset ", bad)


@case
def cut_short():
    """a recording that ended in a crash: read as far as it goes, and said so"""
    path = os.path.join(tmp, "crash.qbpf")
    subprocess.run([MKTRACE, "--spans", "50000", "--no-close", path], check=True)
    with open(path, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write(data[: len(data) * 2 // 3])
    out = run(path).stdout
    check(b"note: the recording did not end cleanly" in out, out[:500])
    check(b"how many there were is not known" in out, out[:500])
    doc = json.loads(run(path, "--json").stdout)
    check(not doc["trace"]["clean"] and doc["trace"]["cut_at"] <= len(data) * 2 // 3, "cut_at")
    check("counted" not in doc["trace"] and 0 < doc["trace"]["held"] < 50000, "held")


@case
def outputs():
    """--json and --html into files, a reader that goes away, a disk that is full"""
    path = trace("strategy").path
    to_json, to_html = os.path.join(tmp, "out.json"), os.path.join(tmp, "out.html")
    equal(run(path, "--json=" + to_json, "--html=" + to_html).stdout, b"", "stdout")
    with open(to_json) as f:
        equal(json.load(f)["trace"]["file"], path, "file")
    with open(to_html, "rb") as f:
        check(f.read(15).lower() == b"<!doctype html>", "a page")
    check(run(path, "--html").stdout.lower().startswith(b"<!doctype html>"), "a page on stdout")
    for args in ([], ["--json"], ["--html"]):
        p = subprocess.Popen([QBPF, "report", path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.close()
        equal((p.wait(60), p.stderr.read()), (0, b""), f"a reader that has gone: {args}")
        p.stderr.close()
        with open("/dev/full", "wb") as full:
            p = subprocess.run([QBPF, "report", path, *args], stdout=full, stderr=subprocess.PIPE, timeout=60)
        equal((p.returncode, p.stderr.count(b"\n")), (1, 1), f"a full disk: {args} {p.stderr}")
    check(b"No such file" in run(path, "--json=/nonexistent/x", code=1).stderr, "no such folder")


@case
def memory():
    """3 M spans of 2,047 functions and 200 threads in bounded memory, each thread apart too"""
    path = os.path.join(tmp, "many.qbpf")
    subprocess.run([MKTRACE, "--spans", "3000000", "--threads", "200", "--shape", "many", path], check=True)
    for args in ([], ["--threads"]):
        run(path, *args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20)))
    os.unlink(path)


main()
