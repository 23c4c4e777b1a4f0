# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The processes of bench.py: the traced program, qbpf and bpftrace, each waited for by what it
says, never by sleeping."""

import json
import os
import re
import select
import signal
import subprocess
import time

TICK = 'interval:ms:%d { printf("tick\\n"); }'


class BenchError(Exception):
    pass


class Process:
    """A child of which one stream is read line by line with a time-out."""

    def __init__(self, argv, stream, **kw):
        self.argv = [str(a) for a in argv]
        self.spawned = time.monotonic()
        self.p = subprocess.Popen(self.argv, **kw)
        self.stream = getattr(self.p, stream)
        self.pending = b""

    def line(self, timeout):
        end = time.monotonic() + timeout
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            r = select.select([self.stream], [], [], max(left, 0))[0]
            data = os.read(self.stream.fileno(), 65536) if r else b""
            if not data:
                why = "ended" if r else f"said nothing for {timeout} s"
                raise BenchError(f"{' '.join(self.argv)}: {why}: {self.pending.decode()}")
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode(errors="replace")

    def kill(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()


class Target(Process):
    """A program that does N iterations for each line "go N"."""

    def __init__(self, *argv):
        super().__init__(argv, "stdout", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.p.pid
        if self.line(20) != "ready":
            raise BenchError(f"{argv[0]} is not ready")

    def go(self, n, timeout=60):
        self.p.stdin.write(f"go {n}\n".encode())
        self.p.stdin.flush()
        return float(self.line(timeout).split()[-1])


class Qbpf(Process):
    """qbpf attach --json, armed when the constructor returns."""

    def __init__(self, qbpf, pid, *args):
        argv = [qbpf, "attach", "-v", "-p", pid, "--json", "-i", "3600", *args]
        super().__init__(argv, "stderr", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.log = []
        while True:
            try:
                self.log.append(self.line(60))
            except BenchError as e:
                self.kill()
                raise BenchError("\n".join(self.log[-3:]) or str(e)) from None
            m = re.search(r", ready in ([\d.]+) ms", self.log[-1])
            if m:
                break
        self.outside_ms = (time.monotonic() - self.spawned) * 1e3
        self.ready_ms = float(m[1])
        with open(f"/proc/{self.p.pid}/schedstat") as f:
            self.cpu_ms = int(f.read().split()[0]) / 1e6  # of its main thread until now

    def said_ms(self, what):
        for line in self.log:
            m = re.search(what + r" in ([\d.]+) ms", line)
            if m:
                return float(m[1])
        raise BenchError(f"qbpf -v did not say {what!r}")

    def snapshot(self):
        """Makes it print the document now; the last one is the final one."""
        self.p.send_signal(signal.SIGUSR1)
        self.stream, self.pending = self.p.stdout, b""
        return json.loads(self.line(30))

    def memory_kib(self):
        with open(f"/proc/{self.p.pid}/status") as f:
            text = f.read()
        return {k: int(re.search(rf"{k}:\s*(\d+) kB", text)[1]) for k in ("VmRSS", "VmHWM")}

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        out, err = self.p.communicate(timeout=120)
        self.log += err.decode(errors="replace").splitlines()
        if self.p.returncode:
            raise BenchError(f"qbpf ended with {self.p.returncode}: {self.log[-1:]}")
        self.doc = json.loads(out.decode().splitlines()[-1])
        return self.doc

    def counted(self):
        """How many spans there were in all, after stop(); refuses what is not clean."""
        doc = self.stop()
        if doc["lost"]["events"]:
            raise BenchError(f"qbpf lost {doc['lost']}")
        if doc["probes"]["relocated"] or doc["probes"]["refused"] or doc["probes"]["failed"]:
            raise BenchError(f"not armed as found: {doc['probes']}")
        return sum(s["count"] for s in doc["spans"])


class Bpftrace(Process):
    """bpftrace on a script, armed when the constructor returns: output starts when all is."""

    def __init__(self, pid, script, tick_ms=100, timeout=60):
        env = dict(os.environ, BPFTRACE_MAX_PROBES="10000", BPFTRACE_MAP_KEYS_MAX="65536")
        argv = ["bpftrace", "-B", "line", "-p", pid, "-e", f"{script} {TICK % tick_ms}"]
        super().__init__(
            argv, "stdout", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        try:
            while self.line(timeout) != "tick":
                pass
        except BenchError:
            self.p.kill()  # and not waited for: taking its probes away may last a minute
            raise
        self.outside_ms = (time.monotonic() - self.spawned) * 1e3

    def counted(self):
        self.p.send_signal(signal.SIGINT)
        out = self.pending + self.p.communicate(timeout=120)[0]
        rows = re.findall(r"^[\[(].*?[\])]\s+(\d+) \|", out.decode(errors="replace"), re.M)
        return sum(int(n) for n in rows)
