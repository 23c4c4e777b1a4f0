#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The checks of gpu-check.sh, which builds what they need: gpu_check runs plainly, with the agent, with
qbpf run, with qbpf attach and with uprobes, and what is seen of it is held against what it did.

A line for each check: "ok", "FAILED" or "skipped", and why. The last line counts them. Exits 1 when
one failed, 77 when none could be made.
"""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

import gpu_check_records as records

PARTS = ("plain", "agent", "run", "attach", "uprobe", "static", "overhead")
TIMEOUT_S = 90
ROUNDS = 5
SETUP = ("set_up",)


class Failed(Exception):
    """A part cannot go on."""


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def said(self, word, name, text):
        print(f"{word:8} {name}" + (f": {text}" if text else ""), flush=True)

    def check(self, name, result):
        """result: (ok, text); ok None: it could not be made."""
        ok, text = result
        if ok is None:
            self.skip(name, text)
        elif ok:
            self.passed += 1
            self.said("ok", name, text)
        else:
            self.failed += 1
            self.said("FAILED", name, text)

    def skip(self, name, why):
        self.skipped += 1
        self.said("skipped", name, why)


class Check:
    def __init__(self, args, tmp):
        self.args, self.tmp, self.tally = args, tmp, Tally()
        self.qbpf = os.path.join(args.build, "qbpf")
        self.agent = os.path.join(args.build, "libqbpf_cupti.so")
        self.dump = os.path.join(args.build, "tests", "ring_dump")
        self.files = 0

    def fresh(self, suffix):
        self.files += 1
        return os.path.join(self.tmp, f"{self.files}{suffix}")

    def command(self, argv):
        """(its stdout, stderr); it must end with 0."""
        try:
            r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, timeout=TIMEOUT_S)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(argv)}: not done after {TIMEOUT_S} s") from None
        if r.returncode:
            last = (r.stderr.strip() or r.stdout.strip()).splitlines()[-3:]
            raise Failed(f"{' '.join(argv)}: exit status {r.returncode}: {' / '.join(last)}")
        return r.stdout, r.stderr

    def said(self, before, *words, program=None):
        """What the program says when it is run by the command `before`."""
        out = self.fresh(".said")
        self.command([*before, program or self.args.program, "--out", out, *words])
        with open(out) as f:
            return records.Said(f.read())

    def report(self, trace):
        return json.loads(self.command([self.qbpf, "report", "--json", trace])[0])

    # --- the parts ---

    def plain(self):
        said = self.said([])
        self.tally.check("the program, alone", (True, f"{len(said.phases)} phases, its data is right"))

    def agent_alone(self):
        """The agent and a reader of its ring: no BPF, no root."""
        for nodes in (False, True):
            self.through_ring(nodes)
        if not self.args.static_program:
            self.leaves()

    def through_ring(self, nodes, program=None, name="agent"):
        log, trace = self.fresh(".log"), self.fresh(".qbpf")
        argv = [self.dump, *(["--nodes"] if nodes else []), "--record", trace, self.agent, log, "--"]
        name += ", each node of a graph" if nodes else ""
        said = self.said(argv, program=program)
        rec = records.Records(log, said)
        check = self.tally.check
        if not rec.on_device():
            raise Failed(f"no record of a device: {rec.status.get('explain')}")
        bound = self.bound(trace)
        check(f"{name}: kernels and graphs", records.counts(said, rec, nodes, ("kernel", "graph")))
        check(f"{name}: copies and memsets", records.counts(said, rec, nodes, ("h2d", "d2h", "d2d", "set")))
        check(f"{name}: every record arrived", (rec.lost() == 0, f"{rec.lost()} lost and counted"))
        if nodes:
            return
        check(f"{name}: bytes of copies", records.copy_bytes(said, rec))
        check(f"{name}: calls of the runtime", records.calls(said, rec))
        check(f"{name}: calls that failed", records.failures(said, rec))
        check(f"{name}: syncs", records.syncs(said, rec))
        check(f"{name}: each activity has its call", records.linked(rec))
        check(f"{name}: times", records.possible(rec))
        check(f"{name}: lengths of kernels", records.kernels_last(said, rec))
        check(f"{name}: kernels against CUDA events", records.against_events(said, rec, ("kernel",)))
        check(f"{name}: copies against CUDA events", records.against_events(said, rec, ("h2d", "d2h", "d2d", "memset")))
        check(f"{name}: order within a stream", records.in_order(said, rec))
        check(f"{name}: streams side by side", records.side_by_side(said, rec))
        check(f"{name}: clock", self.clock(bound))
        check(f"{name}: a kernel starts after its call began", records.after_the_call(rec, bound or records.CLOCK_NS))

    def bound(self, trace):
        """The bound that `qbpf report` publishes; None: it was not built, 0: there is none."""
        if not os.path.exists(self.qbpf):
            return None
        gpu = self.report(trace).get("gpu") or {}
        return gpu.get("clock_error_ns") or 0

    def clock(self, bound):
        if bound is None:
            return None, "no qbpf to publish a bound: it could not be built here"
        return 0 < bound <= records.CLOCK_NS, f"wrong by {bound or '?'} ns at most, by causality"

    def leaves(self):
        log = self.fresh(".log")
        said = self.said([self.dump, "--stop", "150", self.agent, log, "--"], "--until-alone")
        self.tally.check("agent: leaves when it is told to", self.gone(said))

    def gone(self, said):
        n = said.agent_threads
        if n is None:
            return False, "the program did not say"
        return n == 0, f"{n} threads of it are left, {said.agent_ns / 1e6:.0f} ms after the program's work"

    def run_agent(self):
        trace, doc = self.fresh(".qbpf"), self.fresh(".json")
        said = self.said([self.qbpf, "run", "--cuda", "agent", "-o", trace, f"--json={doc}", "--"])
        self.against_report("run --cuda agent", said, doc, trace)

    def against_report(self, name, said, summary, trace, without=()):
        """The figures of the live summary and of the recording."""
        with open(summary) as f:
            live = json.load(f)
        held = self.report(trace)
        for where, doc in (("", live), (", recorded", held)):
            gpu = doc.get("gpu")
            if not gpu:
                raise Failed(f"{name}{where}: nothing of a GPU: {doc['probes'].get('notes')}")
            self.figures(name + where, said, gpu, without)
        check = self.tally.check
        probed = [s["name"] for s in live["spans"] if s["name"].startswith(("cuda:cudaLaunch", "cuda:cuLaunch"))]
        check(f"{name}: no probe on launches", (not probed, " ".join(probed)))
        names = {s["name"]: s["count"] for s in held["spans"]}
        rows = [(p, names.get(f"gpu_check:{p}", 0), 1) for p in said.phases if p not in without]
        check(f"{name}: the program's own spans", records.compare(rows, 0))
        check(f"{name}: clock", self.clock(held["gpu"]["clock_error_ns"] or 0))
        cold = next((k for k in held["gpu"]["kernels"] if k.get("symbol") == "k_cold"), None)
        check(f"{name}: the first launch apart from the others", self.first_launch(said, cold, attached=bool(without)))

    def figures(self, name, said, gpu, without):
        lost = gpu.get("dropped", 0) + sum(loss["lost"] for loss in gpu.get("losses", []))
        total = lambda field: said.total(field, without)  # noqa: E731
        rows = [
            ("kernels", sum(k["count"] for k in gpu["kernels"] if "symbol" in k), total("kernels")),
            ("graphs", sum(k["count"] for k in gpu["kernels"] if "symbol" not in k), total("graphs")),
        ]
        copied = {"to_device": "h2d", "to_host": "d2h", "on_device": "d2d", "memset": "memsets"}
        for direction, field in copied.items():
            n = sum(c["count"] for c in gpu["copies"] if c["direction"] == direction)
            rows.append((direction, n, total(field)))
        self.tally.check(f"{name}: kernels, graphs, copies, memsets", records.compare(rows, lost))
        got = {c["name"]: c["count"] for c in gpu["calls"]}
        want = said.total_calls(without)
        rows = [(call, got.get(call, 0), n) for call, n in want.items() if records.chosen(call)]
        self.tally.check(f"{name}: calls", records.compare(rows, lost))
        failed = sum(c.get("failed", 0) for c in gpu["calls"])
        self.tally.check(f"{name}: calls that failed", records.compare([("failed", failed, total("failed"))], lost))
        alone = gpu["missing"]["no_call"]
        self.tally.check(f"{name}: losses", (lost == 0 and alone == 0, f"{lost} records lost, {alone} without a call"))
        self.tally.check(f"{name}: times", (gpu["untimed"] == 0, f"{gpu['untimed']} that cannot be"))

    def first_launch(self, said, cold, attached):
        """Of a process that had used CUDA before, it is the first one that was seen."""
        if not cold:
            return False, "the kernel is not in the report"
        count, ns = ("first_seen", "first_seen_ns") if attached else ("first_launches", "first_launch_ns")
        first, seen = cold.get(ns, 0), said.host["cold_launch"][0]
        ok = cold.get(count) == 1 and cold["launch"]["count"] == len(said.host["warm_launch"])
        ok = ok and 0 < first <= seen + records.TICK_NS
        return ok, f"{first} ns of {seen} seen by the program; the other {cold['launch']['count']}: {cold['launch']['p50_ns']} ns"

    def attach(self):
        trace, doc = self.fresh(".qbpf"), self.fresh(".json")
        with subprocess.Popen([self.args.program, "--stages"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            try:
                out = wait_for(p.stdout, "ready ", "the program")
                argv = [self.qbpf, "attach", "--cuda", "agent", "-p", str(p.pid), "-o", trace, f"--json={doc}"]
                self.while_attached(argv, p, out)
                p.stdin.close()
                out.append(p.stdout.read().decode())
            finally:
                p.kill()
        said = records.Said("".join(out))
        self.against_report("attach --cuda agent", said, doc, trace, without=SETUP)
        self.tally.check("attach --cuda agent: nothing is left after the detach", self.gone(said))
        before, after = said.bench["before"], said.bench["after"]
        print(f"         a launch takes {before[0]} ns before the attach, {after[0]} ns after the detach; "
              f"of a graph {before[1]} and {after[1]} ns")  # fmt: skip

    def while_attached(self, argv, p, out):
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as q:
            try:
                err = wait_for(q.stderr, "CUDA agent: on", "qbpf attach")
                p.stdin.write(b"go\n")
                p.stdin.flush()
                out += wait_for(p.stdout, "\ndone\n", "the program")
                q.send_signal(signal.SIGINT)
                rest = q.communicate(timeout=TIMEOUT_S)[1].decode()
                if q.returncode:
                    raise Failed(f"qbpf attach: exit status {q.returncode}: {(''.join(err) + rest).strip()}")
                p.stdin.write(b"go\n")
                p.stdin.flush()
            finally:
                q.kill()

    def uprobe(self, program=None, name="run --cuda uprobe"):
        doc = self.fresh(".json")
        said = self.said([self.qbpf, "run", "--cuda", "uprobe", f"--json={doc}", "--"], program=program)
        with open(doc) as f:
            d = json.load(f)
        check = self.tally.check
        got, cuda = {s["name"]: s["count"] for s in d["spans"]}, d.get("cuda") or {}
        want = {c: n for c, n in said.total_calls().items() if records.chosen(c) and not c.startswith(records.UNPROBED)}
        check(f"{name}: calls", records.compare([(c, got.get(f"cuda:{c}", 0), n) for c, n in want.items()], 0))
        launches = sum(k["count"] for k in cuda.get("kernels", []) if k["named"])
        check(f"{name}: launches by kernel", records.compare([("named", launches, said.total("launches"))], 0))
        copied = sum(c["bytes"] for c in cuda.get("copies", []))
        asked = said.total("bytes") + said.total("captured")
        check(f"{name}: bytes asked for", records.compare([("bytes", copied, asked)], 0))
        failed = sum(e["count"] for e in cuda.get("errors", []))
        check(f"{name}: calls that failed", records.compare([("failed", failed, said.total("failed"))], 0))
        lost = d["lost"]["events"] + cuda.get("lost", 0)
        check(f"{name}: losses", (lost == 0, f"{lost} lost"))

    def static(self):
        """nvcc's default: the runtime is a part of the program."""
        self.through_ring(True, self.args.static_program, "agent, static runtime")
        why = self.no_bpf()
        if why:
            self.tally.skip("run --cuda uprobe, static runtime", why)
        else:
            self.uprobe(self.args.static_program, "run --cuda uprobe, static runtime")

    def overhead(self):
        """Interleaved, so that what else the machine does meets all of them."""
        modes = {"plain": [], "agent": [self.dump, self.agent, "/dev/null", "--"]}
        why = self.no_bpf()
        if why:
            self.tally.skip("overhead of qbpf run", why)
        else:
            modes["run --cuda agent"] = [self.qbpf, "run", "--cuda", "agent", "--plain", "--"]
            modes["run --cuda agent -o"] = [self.qbpf, "run", "--cuda", "agent", "--plain", "-o", "FILE", "--"]
            modes["run --cuda uprobe"] = [self.qbpf, "run", "--cuda", "uprobe", "--plain", "--"]
        took = {m: [] for m in modes}
        for _ in range(self.args.rounds):
            for mode in list(took):
                argv = [self.fresh(".qbpf") if a == "FILE" else a for a in modes[mode]]
                try:
                    took[mode].append(self.said(argv, "--bench", str(self.args.launches)).bench["measured"])
                except Failed as e:
                    self.tally.check(f"overhead of {mode}", (False, str(e)))
                    del took[mode]
        lines = records.bench_words(took)
        self.tally.check("overhead", (len(lines) > 1, f"medians of {self.args.rounds} interleaved runs, "
                                      f"{self.args.launches} launches and graph launches each"))  # fmt: skip
        for line in lines:
            print("         " + line)

    # --- what can be run ---

    def no_bpf(self):
        if not os.path.exists(self.qbpf):
            return self.args.no_qbpf or "qbpf could not be built"
        if self.args.no_bpf:
            return self.args.no_bpf
        if os.geteuid():
            return "not root"
        try:
            self.command([self.qbpf, "doctor"])
        except Failed:
            self.args.no_bpf = "no BPF here: see `qbpf doctor`"
        return self.args.no_bpf

    def no_agent(self):
        return None if os.path.exists(self.agent) else "no CUPTI headers: the agent was not built"

    def part(self, name):
        """(what to run, why it cannot be)"""
        bpf, agent = self.no_bpf, self.no_agent
        return {
            "plain": (self.plain, None),
            "agent": (self.agent_alone, agent()),
            "run": (self.run_agent, agent() or bpf()),
            "attach": (self.attach, agent() or bpf()),
            "uprobe": (self.uprobe, bpf()),
            "static": (self.static, agent() or (None if self.args.static_program else "the simulator has no static runtime")),
            "overhead": (self.overhead, agent()),
        }[name]

    def all(self):
        print(f"on {self.command([self.args.program, '--devices'])[0].strip()}")
        for name in self.args.only or PARTS:
            run, why = self.part(name)
            if why:
                self.tally.skip(name, why)
                continue
            begin = time.monotonic()
            try:
                run()
            except Failed as e:
                self.tally.check(name, (False, str(e)))
            print(f"         ({name}: {time.monotonic() - begin:.1f} s)", flush=True)


def wait_for(stream, text, who):
    """What came until `text` did, in a list."""
    got, end = b"", time.monotonic() + TIMEOUT_S
    while text.encode() not in got:
        ready = select.select([stream], [], [], max(end - time.monotonic(), 0))[0]
        data = os.read(stream.fileno(), 65536) if ready else b""
        if not data:
            raise Failed(f"{who} did not say {text.strip()!r}: {got.decode(errors='replace')[-300:].strip()}")
        got += data
    return [got.decode(errors="replace")]


def main():
    p = argparse.ArgumentParser(description="the checks of gpu-check.sh")
    p.add_argument("--build", required=True)
    p.add_argument("--program", required=True, help="gpu_check, built with the shared runtime")
    p.add_argument("--static-program", help="and with the static one")
    p.add_argument("--no-qbpf", help="why qbpf was not built")
    p.add_argument("--no-bpf", help="why BPF shall not be used")
    p.add_argument("--launches", type=int, default=20000)
    p.add_argument("--rounds", type=int, default=ROUNDS)
    p.add_argument("--only", type=lambda s: s.split(","), help=",".join(PARTS))
    args = p.parse_args()
    if args.only and set(args.only) - set(PARTS):
        p.error(f"--only: {args.only} of {PARTS}")
    args.build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory(prefix="qbpf-gpu-check.") as tmp:
        c = Check(args, tmp)
        c.all()
    t = c.tally
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0 if t.passed else 77


if __name__ == "__main__":
    sys.exit(main())
