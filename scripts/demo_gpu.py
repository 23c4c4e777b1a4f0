#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What demo-gpu.sh says of two reports, from their JSON.

demo_gpu.py flaw REPORT.json              the synchronous copies that it advises against, and their cost
demo_gpu.py compare BEFORE.json AFTER.json
"""

import json
import sys

FLAW = "sync_copy"


def load(path):
    with open(path) as f:
        return json.load(f)


def flaws(doc):
    return [a for a in doc["gpu"]["advice"] if a["kind"] == FLAW]


def ms(ns):
    return f"{ns / 1e6:.1f} ms"


def say_flaw(doc):
    found = flaws(doc)
    if not found:
        sys.exit("demo-gpu: the report names no synchronous copies")
    ticks = next(s for s in doc["spans"] if s["name"] == "strategy:tick")
    for a in found:
        print(f"The flaw: {a['count']} synchronous copies, for which the host stood still {ms(a['cost_ns'])}: "
              f"{a['cost_ns'] / ticks['count'] / 1e3:.1f} us of a tick's {ticks['sum_ns'] / ticks['count'] / 1e3:.1f} us.")  # fmt: skip


def figures(doc):
    gpu, device = doc["gpu"], doc["gpu"]["devices"][0]
    tick = next(s for s in doc["spans"] if s["name"] == "strategy:tick")
    length = device["to_ns"] - device["from_ns"]
    waits = sum(i["sum_ns"] for i in device["idle"] if i["cause"] == "sync")
    copying = device["copy_ns"]
    return [
        ("a tick, median", f"{tick['p50_ns'] / 1e3:.1f} us"),
        ("a tick, mean", f"{tick['sum_ns'] / tick['count'] / 1e3:.1f} us"),
        ("first to last work of the GPU", ms(length)),
        ("GPU busy", f"{100 * device['busy_ns'] / length:.1f} %"),
        ("GPU idle while the host waited", ms(waits)),
        ("copies", ms(copying)),
        ("of these beside a kernel", f"{100 * device['overlap_ns'] / copying:.1f} %"),
        ("host in synchronous copies", ms(sum(a["cost_ns"] for a in flaws(doc)))),
        ("synchronous copies", str(sum(c["count"] for c in gpu["copies"] if c["synchronous"]))),
    ]


def compare(before, after):
    print(f"{'':30} {'before':>12} {'after':>12}")
    for (name, old), (_, new) in zip(figures(before), figures(after)):
        print(f"{name:30} {old:>12} {new:>12}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "flaw":
        say_flaw(load(sys.argv[2]))
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        compare(load(sys.argv[2]), load(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
