#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""QuantLib's example programs: C++ functions by demangled glob in a 34 MB library, exceptions
safe, the programs' own output unchanged."""

import shutil
import subprocess

from harness import QBPF, Skip, case, check, equal, main, spans, summary


def example(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} (quantlib-examples) is not installed")
    return path


def traced(path, *args):
    """(what the program printed, summary)"""
    r = subprocess.run(
        [QBPF, "run", "--json=/dev/fd/2", "-q", *args, "--", path],
        capture_output=True,
        text=True,
        timeout=200,
    )
    equal(r.returncode, 0, r.stderr[-400:])
    start = r.stderr.index("{")
    doc = summary(r.stderr[start : r.stderr.rindex("}") + 1])
    return r.stdout, doc


def same_output(path, out):
    plain = subprocess.run([path], capture_output=True, text=True).stdout
    body = [x for x in plain.splitlines() if x.strip() and "Run completed" not in x]
    check(len(body) > 5, "the program prints")
    missing = [x for x in body if x not in out]
    equal(missing, [], "lines that tracing changed")


@case
def by_demangled_glob():
    """FRA and Bonds: hundreds of C++ functions by glob, output unchanged"""
    for name, glob in (
        ("FRA", "QuantLib::ForwardRateAgreement::*"),
        ("Bonds", "QuantLib::Bond::*"),
    ):
        path = example(name)
        out, doc = traced(path, "-f", glob)
        same_output(path, out)
        seen = [s for s in spans(doc).values() if s["count"]]
        check(len(seen) >= 3, f"{name}: {len(seen)} functions seen")
        prefix = glob.split("*")[0]
        check(all(s["name"].startswith(prefix) for s in doc["spans"]), "only what was asked for")
        check(
            any(s["name"].split("(")[0].endswith(prefix + prefix.split("::")[1]) for s in seen),
            "constructors: the library was armed before main",
        )
        for s in seen:
            if s["kind"] == "instant":
                continue  # no way to see its end: entries are counted
            check(s["min_ns"] <= s["max_ns"] and s["sum_ns"] >= s["max_ns"], s["name"])


@case
def pricing_engine():
    """EquityOption: engines called as often as an independent count says"""
    path = example("EquityOption")
    glob = "QuantLib::AnalyticEuropeanEngine::calculate*"
    out, doc = traced(path, "-f", glob)
    same_output(path, out)
    s = [x for x in doc["spans"] if "calculate" in x["name"]]
    equal(len(s), 1, "one function")
    check(s[0]["count"] >= 1, "called")


main()
