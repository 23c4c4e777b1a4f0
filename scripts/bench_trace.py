# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rows of bench.py on recording and on what reads a recording.

Reading, reporting and exporting are timed on a synthetic trace of a typical strategy, the best of
three runs each, in CPU time, so that a second thread gains nothing.
Recording is timed on the same program as the price of a span.
"""

import json
import os
import statistics
import subprocess
import time

from bench_tools import BenchError, Qbpf, Target

SPANS = 10_000_000
ONE_CORE = [0]


def timed(argv, out=subprocess.DEVNULL):
    """(CPU seconds, peak KiB) of a command on one core."""
    p = subprocess.Popen(
        argv, stdout=out, stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, ONE_CORE)
    )
    err = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        raise BenchError(f"{' '.join(argv)}: {err.decode().strip()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def best(argv, runs=3):
    took = [timed(argv) for _ in range(runs)]
    return min(t[0] for t in took), max(t[1] for t in took)


def files(b, folder, say):
    """Sizes and speeds on a trace of SPANS spans."""
    path = os.path.join(folder, "strategy.qbpf")
    say(f"a trace of {SPANS} spans: size, reading, report, exports")
    subprocess.run([b.work("mktrace"), "--spans", str(SPANS), path], check=True)
    dump = subprocess.run(
        [b.work("trace_dump"), "--count", path], check=True, capture_output=True, text=True
    )
    events = int(dump.stdout.split()[0])
    b.below("bytes a span in the file, synthetic strategy", os.path.getsize(path) / events, 12, "B")
    for what, argv, bar in (
        ("read", [b.work("trace_dump"), "--count", path], 5),
        ("report", [b.qbpf, "report", path], None),
        ("report --html", [b.qbpf, "report", "--html=" + os.path.join(folder, "h"), path], None),
        ("export -f perfetto", [b.qbpf, "export", "-f", "perfetto", path], 2),
        ("export -f chrome", [b.qbpf, "export", "-f", "chrome", path], 1),
        ("export -f speedscope", [b.qbpf, "export", "-f", "speedscope", path], 1),
        ("export -f csv", [b.qbpf, "export", "-f", "csv", path], None),
        ("export -f folded", [b.qbpf, "export", "-f", "folded", path], None),
        ("check", [b.qbpf, "check", path, "* lost == 0"], None),
    ):
        seconds, kib = best(argv)
        speed = events / seconds / 1e6
        b.row(f"{what}: million spans a second", speed, bar, "M/s", None if bar is None else speed >= bar)
        b.detail.setdefault("trace", {})[what] = {"seconds": seconds, "peak_mib": kib / 1024}
    peak = max(v["peak_mib"] for v in b.detail["trace"].values())
    b.below("  the most memory any of these took", peak, 256, "MiB")


def recording(b, folder, say, runs=5):
    """What a recorded span costs beside one that is only counted, in turn."""
    say("recording beside counting")
    path = os.path.join(folder, "bench.qbpf")
    target = Target(b.work("w_bench"), "span")
    only, both, sizes, lost, n = [], [], [], 0, 200000
    try:
        for _ in range(runs):
            for args, took in (([], only), (["-o", path], both)):
                q = Qbpf(b.qbpf, target.pid, *args)
                try:
                    target.go(2000)
                    took.append(target.go(n))
                    doc = q.stop()
                finally:
                    q.kill()
                if args:
                    trace = doc["trace"]
                    lost += trace["lost"]
                    sizes.append(os.path.getsize(path) / max(trace["held"], 1))
    finally:
        target.kill()
    b.price("marker span, counted and recorded (-o)", statistics.median(both))
    b.price("  the same, only counted", statistics.median(only))
    b.state("  bytes a span in that file", statistics.median(sizes), "B")
    b.row("  spans that found the ring full", lost, 0, "", lost == 0)


def strategy(b, folder, say, seconds=5):
    """The demo strategy, recorded: bytes a span of what really jitters."""
    path = os.path.join(folder, "real.qbpf")
    say(f"the demo strategy recorded for {seconds} s")
    target = subprocess.Popen(
        [b.work("w_strategy"), "--rate", "20000", "--threads", "2"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )
    try:
        began = time.monotonic()
        q = Qbpf(b.qbpf, target.pid, "-o", path)
        time.sleep(seconds)
        doc = q.stop()
        took = time.monotonic() - began
    finally:
        target.kill()
        target.wait()
    held = doc["trace"]["held"]
    b.detail["recorded_strategy"] = {"seconds": took, **doc["trace"]}
    b.below("bytes a span in the file, w_strategy recorded", os.path.getsize(path) / held, 12, "B")


def steps(b, folder, say):
    return [
        ("trace", lambda: files(b, folder, say)),
        ("record", lambda: recording(b, folder, say)),
        ("record", lambda: strategy(b, folder, say)),
    ]
