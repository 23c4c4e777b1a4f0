# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of `qbpf --cuda` share: the simulated CUDA's log of what happened, and qbpf's note."""

import collections
import csv
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402

SIM = os.path.join(harness.BUILD, "tests", "cudasim")
AGENT = os.path.join(harness.BUILD, "libqbpf_cupti.so")
TARGET = os.path.join(SIM, "agent_target")
QUANT = harness.work("w_quant_gpu")
REAL = os.path.join(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "lib64")

tmp = tempfile.mkdtemp(prefix="qbpf-cuda.")
_files = 0


def fresh(suffix):
    """A path that no other case has."""
    global _files
    _files += 1
    return os.path.join(tmp, f"{_files}{suffix}")


# The calls that the agent asks CUPTI for.
RUNTIME = ("cudaLaunch", "cudaGraphLaunch", "cudaGraphInstantiate", "cudaMemcpy", "cudaMemset",
           "cudaMalloc", "cudaFree", "cudaEventRecord", "cudaStreamWaitEvent")  # fmt: skip
DRIVER = ("cuLaunch", "cuGraphLaunch", "cuGraphInstantiate", "cuMemcpy", "cuMemset", "cuMemAlloc",
          "cuMemFree", "cuEventRecord", "cuStreamWaitEvent", "cuLibraryLoad")  # fmt: skip


def chosen(row):
    names = RUNTIME if row["what"] == "runtime" else DRIVER
    return row["name"].startswith(names) or "Synchronize" in row["name"]


def truth(path, since_ns=0):
    """How many of each kind of record there were, as qbpf's note calls them."""
    n = collections.Counter()
    kinds = {"memcpy": "copies", "memset": "memsets", "sync": "syncs", "graph": "graphs"}
    with open(path) as f:
        for row in csv.DictReader(f):
            if row["what"] in kinds:
                n[kinds[row["what"]]] += 1
            elif row["what"] == "kernel" and row["graph"] == "0":
                n["kernels"] += 1
            elif row["what"] in ("runtime", "driver") and chosen(row) and int(row["start"]) >= since_ns:
                n["calls"] += 1
    return {k: v for k, v in n.items() if v}


PLURAL = {"kernel": "kernels", "copy": "copies", "memset": "memsets", "sync": "syncs", "call": "calls",
          "graph": "graphs"}  # fmt: skip


def gpu_note(doc):
    for note in doc["probes"].get("notes", []):
        if note.startswith("GPU:"):
            return note
    return None


def counts(doc):
    """The figures of the note, and how many were lost."""
    note = gpu_note(doc)
    harness.check(note is not None, f"a note of the GPU: {doc['probes']}")
    got = {}
    for n, word in re.findall(r"(\d+) (\w+)", note.partition(";")[0]):
        got[PLURAL.get(word, word)] = int(n)
    lost = re.search(r"; lost (\d+)", note)
    return got, int(lost[1]) if lost else 0


def env(truth_file=None, sim="", **more):
    e = dict(os.environ, **more)
    if truth_file:
        e["CUDASIM_TRUTH"] = truth_file
    if sim:
        e["CUDASIM"] = sim
    return e


def until(what, fn, seconds=60):
    end = time.monotonic() + seconds
    while not fn():
        harness.check(time.monotonic() < end, what)
        time.sleep(0.02)


class Grower:
    """A log of the simulator's, read as it grows."""

    def __init__(self, path):
        self.f = open(path)
        self.rest = ""
        self.n = collections.Counter()

    def count(self, what):
        *lines, self.rest = (self.rest + self.f.read()).split("\n")
        self.n.update(line.partition(",")[0] for line in lines)
        return self.n[what]

    def await_more(self, what, n):
        """So many more of them than there are now."""
        want = self.count(what) + n
        until(f"{n} more of {what}", lambda: self.count(what) >= want)


def threads(pid):
    """Their names, sorted."""
    names = []
    for t in os.listdir(f"/proc/{pid}/task"):
        try:
            names.append(open(f"/proc/{pid}/task/{t}/comm").read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended in between
    return sorted(names)


def is_dead(pid):
    return "State:\tZ" in open(f"/proc/{pid}/status").read()


def child_of(q):
    """The program of `qbpf run`."""
    return int(open(f"/proc/{q.p.pid}/task/{q.p.pid}/children").read().split()[0])


def while_stopped(q, go):
    """Stops `qbpf run` until its program, which waits for that file, has ended."""
    child = child_of(q)
    q.p.send_signal(signal.SIGSTOP)
    until("qbpf stops", lambda: "State:\tT" in open(f"/proc/{q.p.pid}/status").read())
    open(go, "w").close()
    until("the program does not end", lambda: is_dead(child), 120)
    q.p.send_signal(signal.SIGCONT)


def built():
    """Without CUDA's headers neither the agent nor the simulator is built."""
    return os.path.exists(AGENT) and os.path.exists(TARGET)


def main():
    if not built():
        print("1..0 # SKIP no CUDA headers: neither the agent nor the simulator is built")
        sys.exit(77)
    if os.geteuid():
        print("1..0 # SKIP needs root")
        sys.exit(77)
    harness.main()
