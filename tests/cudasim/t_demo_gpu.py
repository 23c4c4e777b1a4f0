#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The demo of the GPU: the flaw is named with its cost, the repaired program has none and overlaps."""

import json
import os
import re
import subprocess
import sys

import agent_session as a
from harness import BUILD, ROOT, case, check, equal

SCRIPT = os.path.join(ROOT, "scripts", "demo-gpu.sh")
WORDS = os.path.join(ROOT, "scripts", "demo_gpu.py")
TICKS = 400
ran = None


def run(*argv, **env):
    e = {**os.environ, "BUILD": BUILD, "DEMO_TICKS": str(TICKS), **env}
    return subprocess.run(argv, env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)


def demo():
    """(what it printed, the two reports); it runs once."""
    global ran
    if not ran:
        out = a.fresh(".demo")
        # The demo's own simulator, whatever else this environment says.
        r = run(SCRIPT, DEMO_OUT=out, CUDASIM="subscribe=39", CUDASIM_KERNELS="alpha=1")
        equal(r.returncode, 0, f"exit status: {r.stdout[-500:]} {r.stderr}")
        reports = {name: os.path.join(out, f"{name}.json") for name in ("before", "after")}
        ran = r.stdout, {name: json.load(open(path)) for name, path in reports.items()}, reports
    return ran


def advice(doc, *kinds):
    return [x for x in doc["gpu"]["advice"] if x["kind"] in kinds]


@case
def the_flaw():
    "the report of the flawed program names its synchronous copies, how many, and what they cost"
    text, docs, _ = demo()
    found = advice(docs["before"], "sync_copy")
    equal([x["count"] for x in found], [2 * TICKS], "copies")
    # A tick's copies last 45.7 us on the device, and the host stands still for them.
    cost = found[0]["cost_ns"]
    check(cost >= TICKS * 45000, f"cost: {cost}")
    check(f"  * {2 * TICKS} synchronous copies (" in text, text)
    m = re.search(r"^The flaw: (\d+) synchronous copies, for which the host stood still ([\d.]+) ms: ([\d.]+) us", text, re.M)
    check(m, text)
    equal((int(m[1]), m[2]), (2 * TICKS, f"{cost / 1e6:.1f}"), "the line about the flaw")
    equal(docs["before"]["gpu"]["devices"][0]["overlap_ns"], 0, "overlap")


@case
def the_repair():
    "the report of the repaired program names none, and its copies run beside kernels"
    _, docs, _ = demo()
    equal(advice(docs["after"], "sync_copy", "pageable"), [], "advice")
    equal([c for c in docs["after"]["gpu"]["copies"] if c["synchronous"] or c["pageable"]], [], "such copies")
    check(docs["after"]["gpu"]["devices"][0]["overlap_ns"] > 0, "no overlap")
    for doc in docs.values():
        ticks = {s["name"]: s["count"] for s in doc["spans"]}["strategy:tick"]
        kernels = sum(k["count"] for k in doc["gpu"]["kernels"])
        copies = sum(c["count"] for c in doc["gpu"]["copies"])
        equal((ticks, kernels, copies, doc["gpu"]["dropped"]), (TICKS, 2 * TICKS, 2 * TICKS, 0), "the same work")


@case
def the_comparison():
    "before and after, side by side, from the reports; both decided the same"
    text, docs, _ = demo()
    table = text.partition("before        after\n")[2].partition("\n\n")[0]
    got = {name: values for name, *values in (re.split(" {2,}", line) for line in table.splitlines())}
    equal(got.get("synchronous copies"), [str(2 * TICKS), "0"], f"the row of copies: {got}")
    beside = got["of these beside a kernel"]
    equal(beside[0], "0.0 %", "beside a kernel, before")
    device = docs["after"]["gpu"]["devices"][0]
    equal(beside[1], f"{100 * device['overlap_ns'] / device['copy_ns']:.1f} %", "beside a kernel, after")
    check(re.search(r"^Both decided the same: decisions \d+ checksum [0-9a-f]{16}$", text, re.M), text[-300:])


@case
def what_fails():
    "nothing built, or no flaw to tell of: one line, and not 0"
    r = run(SCRIPT, BUILD="/nowhere")
    equal((r.returncode, len(r.stderr.splitlines())), (1, 1), r.stderr)
    check("/nowhere/qbpf is not built" in r.stderr, r.stderr)
    r = run(sys.executable, WORDS, "flaw", demo()[2]["after"])
    equal((r.returncode, r.stdout), (1, ""), "a report without the flaw")
    check("names no synchronous copies" in r.stderr, r.stderr)


if __name__ == "__main__":
    a.main()
