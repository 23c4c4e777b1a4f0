#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf check and qbpf diff: figures against the tests' own reading of the trace, every exit code,
JUnit by Python's XML parser, comparisons of what is alike and what is not, and bad input."""

import collections
import json
import math
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET

from export_truth import ASIDE, KEYED, MKTRACE, SHAPES, SPAN, tmp, trace, valid
from harness import QBPF, ROOT, Skip, Workload, attach_json, case, check, equal, main, work

GOLDEN = os.path.join(ROOT, "tests", "golden")
SUMMARY = "tests/golden/summary.json"


def qbpf(*args, code=0, stdin=None, env=None):
    p = subprocess.run(
        [QBPF, *map(str, args)],
        capture_output=True,
        timeout=120,
        cwd=ROOT,
        input=stdin,
        env={**os.environ, **(env or {})},
    )
    equal(p.returncode, code, f"exit code of {args} ({(p.stdout + p.stderr)[-400:]!r})")
    return p


def made(name, *options):
    path = os.path.join(tmp, "made-" + name + ".qbpf")
    if not os.path.exists(path):
        subprocess.run([MKTRACE, *map(str, options), path], check=True)
    return path


def checked(path, *rules, code=0, **kw):
    """The cases of a check, as JSON."""
    doc = json.loads(qbpf("check", "--json", path, *rules, code=code, **kw).stdout)
    equal(doc["schema"], "qbpf.check/1", "schema")
    return doc


def written(name, text):
    path = os.path.join(tmp, name)
    with open(path, "w" if isinstance(text, str) else "wb") as f:
        f.write(text)
    return path


def rank(values, q):
    return sorted(values)[max(math.ceil(len(values) * q - 1e-9), 1) - 1]


@case
def figures():
    """exact figures of spans and places, against a second reader"""
    truth = trace("strategy", "--spans", "30000", "--threads", "2")
    durations, selves, nodes = (collections.defaultdict(list) for _ in range(3))
    for e in truth.of(SPAN, ASIDE, KEYED):
        name = valid(truth.names[e.span])
        durations[name].append(e.dur)
        selves[name].append(e.dur - min(e.child, e.dur))
        nodes[e.node].append(e.dur)
    table = {n[0]: n for n in truth.tables["nodes"]}
    roots = sum(sum(d) for n, d in nodes.items() if not table[n][1])
    want = {}
    for name, d in durations.items():
        want[f"{name} count"] = len(d)
        want[f"{name} total"] = sum(d)
        want[f"{name} self"] = sum(selves[name])
        want[f"{name} mean"] = sum(d) / len(d)
        want[f"{name} min"], want[f"{name} max"] = min(d), max(d)
        want[f"{name} share"] = sum(d) / roots
        for p in ("50", "75", "90", "99", "99.9"):
            want[f"{name} p{p}"] = rank(d, float(p) / 100)
        want[f"{name} lost"] = want[f"{name} open"] = 0
    for node, d in nodes.items():
        path, at = [], node
        while at:
            path.append(valid(truth.names[table[at][2]]))
            at = table[at][1]
        if len(path) < 2:
            continue
        where = "/" + "/".join(reversed(path))
        want[f"{where} p99"] = rank(d, 0.99)
        want[f"{where} share"] = sum(d) / sum(nodes[table[node][1]])
    unit = lambda rule: "ns" if rule.split()[-1][0] == "p" or rule.split()[-1] in (  # noqa: E731
        "total", "self", "mean", "min", "max") else ""
    doc = checked(truth.path, *(f"{r} >= 0{unit(r)}" for r in want))
    equal(len(doc["cases"]), len(want), "cases")
    for c in doc["cases"]:
        rule = c["rule"].rsplit(" >= ", 1)[0]
        got = c["measured"]["value"]
        check(abs(got - want[rule]) <= 1e-9 * want[rule], f"{rule}: {got}, expected {want[rule]}")
        if "interval" in c["measured"]:
            lo, hi = c["measured"]["interval"]
            check((lo or 0) <= got <= (hi or math.inf), f"{rule}: {c['measured']}")


@case
def exit_codes():
    """0 kept, 3 broken, 4 too few; 3 goes before 4"""
    t = made("small", "--spans", "500")
    qbpf("check", t, "on_tick p50 < 1s", "* lost == 0")
    r = qbpf("check", t, "on_tick p50 < 1s", "on_tick p99 < 1s", code=4)
    check(b"too few  on_tick p99 < 1s: strategy:on_tick 50 of it, it takes 100\n" in r.stdout, r.stdout)
    qbpf("check", t, "on_tick p50 < 1ns", "on_tick p99 < 1s", code=3)
    qbpf("check", t, "nosuch p50 < 1s", code=3)
    qbpf("check", t, "on_tick p50 < 1s", "--strict")
    qbpf("check", t, "on_tick/beta p50 < 1s", code=3)
    qbpf("check", made("empty", "--shape", "empty"), "* p50 < 1s", code=4)
    qbpf("check", made("empty", "--shape", "empty"), "* count == 0")


@case
def uncertain():
    """a limit within the interval: the figure decides; with --strict nothing does"""
    t = made("a", "--spans", "100000", "--seed", "1")
    lo, hi = checked(t, "on_tick p50 > 0")["cases"][0]["measured"]["interval"]
    c = checked(t, f"on_tick p50 < {hi - 1}ns")["cases"][0]
    equal((c["verdict"], c["uncertain"]), ("ok", True), "below the upper bound")
    c = checked(t, f"on_tick p50 < {lo + 1}ns", code=3)["cases"][0]
    equal((c["verdict"], c["uncertain"]), ("broken", True), "above the lower bound")
    c = checked(t, f"on_tick p50 < {hi - 1}ns", "--strict", code=3)["cases"][0]
    equal(c["why"], "not certain, and --strict", "strict")
    c = checked(t, f"on_tick p50 < {hi + 1}ns", "--strict")["cases"][0]
    equal((c["verdict"], c["uncertain"]), ("ok", False), "beyond the upper bound")


@case
def baselines():
    """against a baseline: the same, a slower one, one that lacks the span"""
    a = made("a", "--spans", "100000", "--seed", "1")
    b = made("b", "--spans", "100000", "--seed", "2")
    slow = made("slow", "--spans", "100000", "--seed", "3", "--slow-span", "strategy:alpha=1.5")
    rule = "* p50 < baseline * 1.05"
    qbpf("check", b, rule, "--baseline", a)
    doc = checked(slow, rule, "--baseline", a, code=3)
    broken = sorted(c["span"] for c in doc["cases"] if c["verdict"] == "broken")
    equal(broken, ["strategy:alpha", "strategy:on_tick", "strategy:signal"], "broken")
    doc = checked(a, rule, "--baseline", made("keyed", "--shape", "keyed"), code=4)
    equal({c["verdict"] for c in doc["cases"]}, {"too_few"}, "no such span there")
    json_of_a = written("a.json", qbpf("report", "--json", a).stdout)
    qbpf("check", b, rule, "--baseline", json_of_a)
    qbpf("check", json_of_a, rule, "--baseline", b)


@case
def budget_file():
    """rules and comments from a file, with arguments, and JUnit of them"""
    t = made("a", "--spans", "100000", "--seed", "1")
    budget = written("budget", "# the tick\n\n/on_tick p99 < 1ms # generous\n* lost == 0\n")
    xml = os.path.join(tmp, "junit.xml")
    r = qbpf("check", t, "--budget", budget, "alpha p50 < 1ns", "alpha p99.99 < 1s", "--junit", xml, code=3)
    check(r.stdout.endswith(b"4 rules, 13 cases: 12 ok, 1 broken, 0 too few; 1 uncertain (intervals: 99 %)\n"), r.stdout)
    suite = ET.parse(xml).getroot().find("testsuite")
    equal(suite.attrib["tests"], "13", "tests")
    equal(suite.attrib["failures"], "1", "failures")
    cases = suite.findall("testcase")
    equal(len(cases), 13, "test cases")
    equal((cases[0].attrib["file"], cases[0].attrib["line"]), (budget, "3"), "place of a rule")
    failed = [c for c in cases if c.find("failure") is not None]
    equal([c.attrib["classname"] for c in failed], ["alpha p50 < 1ns"], "the failure")
    check(failed[0].find("failure").attrib["message"].startswith("1.822us ["), "its message")


@case
def junit_of_hostile_names():
    """names with markup, control bytes and broken UTF-8: XML that a parser takes"""
    xml = os.path.join(tmp, "hostile.xml")
    t = made("hostile", "--shape", "hostile", "--spans", "5000")
    qbpf("check", t, "* p50 < 1ns", "* p99.9 < 1s", "--junit", xml, code=3)
    suite = ET.parse(xml).getroot().find("testsuite")
    cases = suite.findall("testcase")
    equal(len(cases), 40, "test cases")
    equal(len(suite.findall("*/failure")), 20, "failures")
    equal(len(suite.findall("*/skipped")), 20, "too few")
    names = {c.attrib["name"] for c in cases}
    check("bytes \\x01\\x1b[31m\x7f\ufffd\ufffd" in names, "control bytes")
    check("line\nbreak\r\ttab" in names, "line ends")
    check("<script>alert('x')</script><!-- & -->" in names, "markup")
    out = qbpf("check", t, "* p50 < 1ns", code=3).stdout
    equal([b for b in out if b < 32 and b != 10 or b == 127], [], "control bytes on the terminal")


@case
def all_shapes():
    """every shape of trace: counts add up, a trace does not differ from itself"""
    for shape in SHAPES:
        path = trace(shape).path
        doc = checked(path, "* count >= 0")
        equal(doc["ok"], len(doc["cases"]), f"{shape}: spans")
        rules = ["* p99 < 1s", "* share < 50%", "* lost == 0", "* self/span < 1s", "* rate > 0", "*/* p50 > 1ns"]
        p = subprocess.run([QBPF, "check", "--json", path, *rules], capture_output=True, timeout=60)
        check(p.returncode in (0, 3, 4), f"{shape}: {p.returncode} {p.stderr}")
        doc = json.loads(p.stdout)
        equal(len(doc["cases"]), doc["ok"] + doc["broken"] + doc["too_few"], f"{shape}: cases")
        d = json.loads(qbpf("diff", "--json", path, path).stdout)
        for row in d["spans"] + d["tree"]:
            check(row.get("verdict") in (None, "same", "too_few") and not row["changed"], f"{shape}: {row}")


@case
def losses():
    """a recording with losses, one cut short: said in a line, and a rule can tell"""
    lost = made("lost", "--shape", "lost", "--spans", "20000")
    r = qbpf("check", lost, "* lost == 0", code=3)
    equal(r.stderr.count(b"\n"), 1, r.stderr)
    check(b" spans were lost: the figures are of the rest" in r.stderr, r.stderr)
    text = qbpf("report", "--json", lost).stdout
    doc = checked(written("lost.json", text), "on_tick lost > 0")
    truth = trace("lost", "--shape", "lost", "--spans", "20000")
    spans = [valid(n) for n in truth.names[1:]]
    at = spans.index("strategy:on_tick") + 1
    want = sum(loss[4] for loss in truth.tables["losses"] if loss[0] == at)
    equal(doc["cases"][0]["measured"]["value"], want, "lost")
    cut = made("cut", "--no-close", "--spans", "20000")
    r = qbpf("check", cut, "on_tick p50 < 1s")
    check(b"the recording was cut short" in r.stderr, r.stderr)
    r = qbpf("check", cut, "* lost == 0", code=3)
    check(b"not known: the recording was cut short" in r.stdout, r.stdout)


@case
def alike():
    """ten recordings of one program: none differs from the first"""
    first = made("like-0", "--spans", "50000", "--seed", "100")
    told = 0
    for seed in range(1, 11):
        other = made(f"like-{seed}", "--spans", "50000", "--seed", 100 + seed)
        d = json.loads(qbpf("diff", "--json", first, other).stdout)
        check(d["compared"] > 100, f"compared {d['compared']}")
        told += sum(r["verdict"] not in ("same", "too_few") for r in d["spans"] + d["tree"])
    check(told <= 1, f"{told} of 200 rows told apart")


@case
def slower():
    """a span 10 % slower in 10,000 samples: found, it and what is around it, and nothing else"""
    a = made("a", "--spans", "100000", "--seed", "1")
    b = made("c", "--spans", "100000", "--seed", "3", "--slow-span", "strategy:alpha=1.1")
    for old, new, verdict, sign in ((a, b, "slower", 1), (b, a, "faster", -1)):
        d = json.loads(qbpf("diff", "--json", old, new).stdout)
        by = {r["name"]: r for r in d["spans"]}
        found = {n for n, r in by.items() if r["verdict"] == verdict}
        equal(found, {"strategy:alpha", "strategy:signal", "strategy:on_tick"}, verdict)
        equal({r["verdict"] for n, r in by.items() if n not in found}, {"same"}, "the others")
        f = by["strategy:alpha"]["figures"]
        equal(f["p50"]["verdict"], verdict, "p50")
        check(0.08 < sign * math.log1p(f["p50"]["change"]) < 0.11, f["p50"])
        equal(by["strategy:signal"]["figures"]["self/span"]["verdict"], "same", "its own time")
        equal(d["spans"][0]["name"], "strategy:alpha", "what explains most")
        paths = {"/".join(r["path"]): r["verdict"] for r in d["tree"]}
        equal(paths["strategy:on_tick/strategy:signal/strategy:alpha"], verdict, "the place")
    text = qbpf("diff", a, b).stdout.decode()
    check("\nstrategy:alpha: slower, +" in text, text)
    check("\n5 other spans without change\n" in text, text)
    check(len(qbpf("diff", "--all", a, b).stdout) > 1.5 * len(text), "--all")
    d = json.loads(qbpf("diff", "--json", "--min-change", "20%", a, b).stdout)
    equal({r["verdict"] for r in d["spans"]}, {"same"}, "below --min-change")


@case
def new_and_gone():
    """spans of one side only"""
    d = json.loads(qbpf("diff", "--json", made("a", "--spans", "100000", "--seed", "1"),
                        made("keyed", "--shape", "keyed")).stdout)
    verdicts = collections.Counter(r["verdict"] for r in d["spans"] + d["tree"])
    equal(verdicts, {"gone": 20, "new": 4}, "verdicts")


def alike_json(got, want, where):
    """The same keys in the same order, the same texts, numbers to six digits."""
    if isinstance(want, dict):
        equal(list(got), list(want), f"{where}: keys")
        for k in want:
            alike_json(got[k], want[k], f"{where}.{k}")
    elif isinstance(want, list):
        equal(len(got), len(want), f"{where}: length")
        for n, (x, y) in enumerate(zip(got, want)):
            alike_json(x, y, f"{where}[{n}]")
    elif isinstance(want, float):
        check(math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-9), f"{where}: {got}, expected {want}")
    else:
        equal(got, want, where)


@case
def no_number():
    """a mean that is no number: said so, and no rule holds for it"""
    path = trace("values").path
    for rule in ("values:price mean < 5", "values:price mean >= 5", "values:price mean != 5"):
        out = qbpf("check", path, rule, code=3).stdout.decode()
        check(out.startswith(f"BROKEN   {rule}: no number: there are infinite values"), out)


@case
def goldens():
    """text, JSON and XML as they are written down"""
    doc = json.load(open(os.path.join(ROOT, SUMMARY)))
    tick = doc["spans"][0]
    tick["histogram"] = [[lo * 2, hi * 2, n] for lo, hi, n in tick["histogram"]]
    for key in [k for k in tick if k.endswith("_ns") and k != "floor_ns"]:
        tick[key] = tick[key] and tick[key] * 2
    # A name of this run's own, as long as the one that was written down.
    slow, as_written = f"/tmp/qbpf-golden-{os.getpid() % 10000:04}.json", b"/tmp/qbpf-golden-slow.json"
    shutil.copy(written("slow.json", json.dumps(doc)), slow)
    budget = [
        "strategy:tick p99 < 20us", "tick p50 < baseline * 1.05", "tick/decode share < 30%", "* lost == 0",
        "strategy:tick p99.99 <= 10ms", "nosuch p50 < 1us", "*:* p90 < 14us",
    ]
    runs = {
        "check.txt": ("check", SUMMARY, *budget, "--baseline", slow),
        "check.json": ("check", SUMMARY, *budget, "--baseline", slow, "--json"),
        "check.xml": ("check", SUMMARY, *budget, "--baseline", slow, "--junit", "/dev/stdout"),
        "diff.txt": ("diff", SUMMARY, slow),
        "diff.json": ("diff", SUMMARY, slow, "--json"),
    }
    for name, args in runs.items():
        p = subprocess.run([QBPF, *args], capture_output=True, cwd=ROOT, env={**os.environ, "LC_ALL": "C"})
        equal(p.returncode, 3 if args[0] == "check" else 0, f"{name}: {p.stderr}")
        path, out = os.path.join(GOLDEN, name), p.stdout.replace(slow.encode(), as_written)
        if os.environ.get("UPDATE") == "1":
            open(path, "wb").write(out)
        want = open(path, "rb").read()
        if name.endswith(".json"):
            alike_json(json.loads(out), json.loads(want), name)
            continue
        for n, (x, y) in enumerate(zip(out.splitlines(), want.splitlines()), 1):
            equal(x, y, f"{name}:{n}")
        equal(len(out), len(want), f"{name}: length")
    os.unlink(slow)


BAD = [
    (["check"], 2, "which recording"),
    (["check", SUMMARY], 2, "no rules"),
    (["check", SUMMARY, "tick p99"], 2, "rule 1, column 9: expected a comparison"),
    (["check", SUMMARY, "* lost == 0", "tick p99 < 5xs"], 2, "rule 2, column 13: no such unit"),
    (["check", SUMMARY, "strategy:tick p99 < 5"], 2, "the limit needs a unit"),
    (["check", SUMMARY, "tick p99 < baseline"], 2, "--baseline"),
    (["check", SUMMARY, "tick share < 30"], 2, "rule 1, column 13: no share is above 100 %"),
    (["check", SUMMARY, "tick share < 120%"], 2, "is a % missing?"),
    (["check", SUMMARY, "* lost == 0", "--nosuch"], 2, "--nosuch"),
    (["check", SUMMARY, "* lost == 0", "--confidence", "101"], 2, "101"),
    (["check", SUMMARY, "* lost == 0", "--confidence", "nan"], 2, "nan"),
    (["check", SUMMARY, "--budget"], 2, "--budget"),
    (["check", SUMMARY, "--budget", "/nonexistent"], 1, "/nonexistent: No such file"),
    (["check", SUMMARY, "--budget", "/dev/null"], 2, "/dev/null: no rules"),
    (["check", "/nonexistent", "* lost == 0"], 1, "/nonexistent: No such file"),
    (["check", "/", "* lost == 0"], 1, "/: Is a directory"),
    (["check", "/dev/null", "* lost == 0"], 1, "/dev/null: empty"),
    (["check", QBPF, "* lost == 0"], 1, QBPF),
    (["check", "tests/golden/list.json", "* lost == 0"], 1, "qbpf.list/1"),
    (["check", SUMMARY, "* lost == 0", "--junit", "/nonexistent/x"], 1, "/nonexistent/x: No such file"),
    (["check", SUMMARY, "* lost == 0", "--junit", "/dev/full"], 1, "/dev/full: No space"),
    (["check", SUMMARY, *(f"tick p{n} < 1s" for n in range(10, 22))], 2, "12 percentiles"),
    (["check", "-", "tick p50 < baseline", "--baseline", "-"], 2, "stdin"),
    (["diff", SUMMARY], 2, "OLD and NEW"),
    (["diff", SUMMARY, SUMMARY, SUMMARY], 2, "OLD and NEW"),
    (["diff", "-", "-"], 2, "stdin"),
    (["diff", SUMMARY, SUMMARY, "--min-change", "x"], 2, "x"),
    (["diff", SUMMARY, SUMMARY, "-c"], 2, "-c"),
    (["diff", SUMMARY, "/nonexistent"], 1, "/nonexistent: No such file"),
]


@case
def bad_input():
    """usage errors, unreadable and damaged files: the code, one line, nothing on stdout"""
    for args, code, words in BAD:
        r = qbpf(*args, code=code)
        equal(r.stdout, b"", f"stdout of {args}")
        lines = [x for x in r.stderr.splitlines() if not x.startswith(b"qbpf: warning: ")]
        equal(len(lines), 1, f"lines of {args}: {r.stderr!r}")
        check(words.encode() in r.stderr, f"{args}: {r.stderr!r}")


@case
def damaged():
    """a damaged trace and damaged summaries: exit 1, one line"""
    data = bytearray(open(made("a", "--spans", "100000", "--seed", "1"), "rb").read())
    data[len(data) // 2] ^= 0xFF
    text = open(os.path.join(ROOT, SUMMARY), "rb").read()
    for name, content in (
        ("flipped.qbpf", bytes(data)),
        ("cut.json", text[: len(text) // 2]),
        ("types.json", text.replace(b'"count": 20040', b'"count": "\x1b[31m"')),
        ("deep.json", b"[" * 100000),
        ("binary.json", b"{\x00\x01"),
    ):
        r = qbpf("check", written(name, content), "* lost == 0", code=1)
        equal(r.stdout, b"", name)
        equal(r.stderr.count(b"\n"), 1, f"{name}: {r.stderr!r}")
        check(name.encode() in r.stderr and b"\x1b" not in r.stderr, f"{name}: {r.stderr!r}")


@case
def standard_input():
    """a summary from stdin; of lines the last one counts; a closed pipe is no fault"""
    text = json.dumps(json.load(open(os.path.join(ROOT, SUMMARY)))).encode()
    old = text.replace(b'"count": 20040', b'"count": 1')
    qbpf("check", "-", "strategy:tick count == 20040", stdin=old + b"\n" + text + b"\n")
    qbpf("check", "-", "strategy:tick count == 20040", stdin=text + b"\n" + old + b"\n", code=3)
    qbpf("check", "-", "* lost == 0", stdin=b"\x89qbpf\r\n\x1a", code=1)
    p = subprocess.run(["bash", "-c", '"$0" check "$1" "* lost >= 0" "*:* count >= 0" | true; echo ${PIPESTATUS[0]}',
                        QBPF, os.path.join(ROOT, SUMMARY)], capture_output=True)
    check(p.stdout.strip() in (b"0", b"3") and p.stderr.count(b"\n") <= 1, p)


@case
def attached():
    """the JSON document of a live session, gated"""
    if os.geteuid():
        raise Skip("needs root")
    with Workload([work("w_funcs"), "nest", 20]) as w:
        with attach_json(w.pid, "-f", "outer", "-f", "inner") as q:
            q.wait_ready()
            w.go()
            counts = w.finish()
            path = written("live.json", q.finish())
    qbpf("check", path, f"outer count == {counts['outer']}", "outer p50 > 2.9ms", "outer/inner share < 90%",
         "inner p50 >= 0.9ms", "outer self >= 20ms", "* lost == 0")
    c = checked(path, "outer p50 > 0")["cases"][0]
    equal(c["measured"]["n"], counts["outer"], "n")
    equal(len(c["measured"]["interval"]), 2, "an interval from the histogram")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
