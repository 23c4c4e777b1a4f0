#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bad input: a row for each, with its exit code, one clear line on stderr, nothing on stdout,
and nothing left behind."""

import json
import os
import pty
import signal
import subprocess
import tempfile
import time

from harness import (
    BUILD, PATIENCE_S, QBPF, ROOT, Skip, Workload, attach_json, await_state, case, check, equal, main, work,
)

NOBODY = 65534


def qbpf(*args, **kw):
    kw.setdefault("timeout", PATIENCE_S)
    return subprocess.run(
        [QBPF, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw
    )


def one_line(r, code, *words):
    """Exit code, silence on stdout, exactly one line (beside warnings) that holds the words."""
    equal(r.returncode, code, f"exit code ({r.stderr})")
    equal(r.stdout, "", "stdout")
    lines = [x for x in r.stderr.splitlines() if not x.startswith("qbpf: warning: ")]
    equal(len(lines), 1, f"lines: {r.stderr}")
    check(lines[0].startswith("qbpf: "), lines[0])
    for w in words:
        check(w in r.stderr, f"{w!r} in: {r.stderr}")


USAGE = [
    (["attach"], "-p"),
    (["attach", "-p", "33aaa"], "33aaa"),
    (["attach", "-p", "0"], "0"),
    (["attach", "-p", "-5"], "-5"),
    (["attach", "-p", "1,,2"], "1,,2"),
    (["attach", "-p", "99999999999999999999"], "999"),
    (["attach", "-p"], "-p"),
    (["attach", "-p", "1", "--nosuch"], "--nosuch"),
    (["attach", "-p", "1", "-d", "soon"], "soon"),
    (["attach", "-p", "1", "-d", "-1"], "-1"),
    (["attach", "-p", "1", "-i", "nan"], "nan"),
    (["attach", "-p", "1", "--returns", "magic"], "magic"),
    (["attach", "-p", "1", "extra"], "extra"),
    (["run"], "program"),
    (["list"], "PID or FILE"),
    (["list", "-p", "1", "/bin/true"], "PID or FILE"),
    (["nosuch"], "nosuch"),
]


@case
def usage_errors():
    """usage errors: exit 2, the offending word is named"""
    for args, word in USAGE:
        one_line(qbpf(*args), 2, word)
    equal(qbpf().returncode, 2, "no command")
    for args in (["--help"], ["attach", "--help"], ["run", "-h"], ["list", "--help"]):
        r = qbpf(*args)
        equal(r.returncode, 0, f"{args}")
        check("usage: qbpf" in r.stdout and not r.stderr, "help on stdout")


def is_kthread(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            status = f.read()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "VmSize" not in status and "State:\tZ" not in status


@case
def bad_pids():
    """no such process, kernel thread, zombie, a thread's id, qbpf's own parent's zombie"""
    one_line(qbpf("attach", "-p", 4194303), 1, "4194303")
    one_line(qbpf("list", "-p", 4194303), 1, "4194303")
    kthread = next((int(p) for p in os.listdir("/proc") if p.isdigit() and is_kthread(p)), None)
    if kthread:
        one_line(qbpf("attach", "-p", kthread), 1, "kernel thread")
    z = os.fork()
    if not z:
        os._exit(0)
    equal(await_state(z, "Z"), "Z", "its state")
    one_line(qbpf("attach", "-p", z), 1, "ended")
    os.waitpid(z, 0)


@case
def first_thread_ended():
    """a process whose first thread has ended: one line, and --follow counts"""
    src = os.path.join(BUILD, "tests", "headless.c")
    exe = os.path.join(BUILD, "tests", "headless")
    with open(src, "w") as f:
        f.write(
            '#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n'
            '#include "qbpf/probe.h"\n'
            "static void *run(void *a) { puts(\"ready\"); fflush(stdout);\n"
            "for (;;) { QBPF_SPAN(headless, tick); usleep(1000); } return a; }\n"
            "int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_exit(0); }\n"
        )
    subprocess.run(["gcc", "-O1", "-I", f"{ROOT}/include", src, "-o", exe, "-lpthread"], check=True)
    with Workload([exe]) as w:
        equal(await_state(w.pid, "Z"), "Z", "the first thread's state")
        one_line(qbpf("attach", "-p", w.pid, "-d", "0.3"), 1, "first thread", "--follow")
        with attach_json(w.pid, "--follow") as q:
            q.wait_ready()
            q.await_count("headless:tick", 50)
            q.stop()


@case
def no_such_probe():
    """no such probe, a near miss, a glob that matches nothing: exit 1, the glob is named"""
    with Workload([work("w_process"), "sleep"]) as w:
        one_line(qbpf("attach", "-p", w.pid, "-u", "proc:tock"), 1, "proc:tock", "proc:tick")
        one_line(qbpf("attach", "-p", w.pid, "-u", "nosuch:*"), 1, "nosuch:*")
        one_line(qbpf("attach", "-p", w.pid, "-f", "no_such_function"), 1, "no_such_function")
        one_line(qbpf("attach", "-p", w.pid, "-s", "x=a:b..c:d"), 1, "a:b")
        one_line(qbpf("attach", "-p", w.pid, "-s", "nonsense"), 2, "nonsense")
        one_line(qbpf("attach", "-p", w.pid, "-u", ""), 2, "empty")
        check(w.p.poll() is None, "target unharmed")


@case
def no_markers():
    """a target without markers: says what to do"""
    p = subprocess.Popen(["sleep", "60"])
    one_line(qbpf("attach", "-p", p.pid), 1, "no markers")
    p.kill()
    p.wait()


@case
def too_many():
    """more matches than the limit: the number and the limit are named"""
    with Workload([work("w_process"), "sleep"]) as w:
        one_line(qbpf("attach", "-p", w.pid, "-f", "*", "--max-spans", "100"), 1, "100")


@case
def many_functions():
    """1,500 functions under `ulimit -n 1024`"""
    src = os.path.join(BUILD, "tests", "many.c")
    exe = os.path.join(BUILD, "tests", "many")
    with open(src, "w") as f:
        for i in range(1500):
            f.write(f"__attribute__((noinline)) int many_{i}(int x) {{ return x * {i + 3}; }}\n")
        f.write("#include <stdio.h>\nint main(void) { char b[9]; int s = 0; puts(\"ready\");")
        f.write("fflush(stdout); if (!fgets(b, 9, stdin)) return 1;\n")
        for i in range(1500):
            f.write(f"s += many_{i}(s);\n")
        f.write('printf("count sum %d\\n", s & 1); return 0; }\n')
    subprocess.run(["gcc", "-O1", src, "-o", exe], check=True)
    for env in ("0", "1"):
        with Workload([exe]) as w:
            q = subprocess.Popen(
                ["bash", "-c", f"ulimit -n 1024; exec {QBPF} attach -p {w.pid} -f 'many_*' --json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "QBPF_FORCE_PERF_EVENT": env},
                text=True,
            )
            line = q.stderr.readline()
            if "1500 spans" not in line:
                check("ulimit -n" in line and env == "1", line)
                q.communicate()
                equal(q.returncode, 1, "exit code")
                continue
            w.go()
            w.finish()
            out, _ = q.communicate(timeout=PATIENCE_S)
            check(out.count('"count": 1,') >= 1500 or out.count('"count":1,') >= 1500, "counted")


def as_user(uid, *args, caps=None):
    argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    if caps:
        argv += [f"--inh-caps={caps}", f"--ambient-caps={caps}"]
    return subprocess.run(
        argv + [QBPF, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@case
def nobody():
    """as nobody: one line that names what is missing"""
    with Workload([work("w_process"), "sleep"]) as w:
        r = as_user(NOBODY, "attach", "-p", w.pid)
        equal(r.returncode, 1, r.stderr)
        lines = r.stderr.strip().splitlines()
        equal(len(lines), 1, r.stderr)
        check("CAP_" in r.stderr or "root" in r.stderr or "ermi" in r.stderr, r.stderr)


@case
def two_capabilities():
    """with CAP_BPF and CAP_PERFMON alone: works on one's own process, or names what is missing"""
    with Workload(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
         work("w_process"), "busy"]
    ) as w:
        w.go()
        r = as_user(NOBODY, "attach", "-p", w.pid, "-d", "0.3", "--json", caps="+bpf,+perfmon")
        if r.returncode:
            equal(r.returncode, 1, r.stderr)
            check("CAP_" in r.stderr, r.stderr)
        else:
            check('"proc:tick"' in r.stdout, r.stdout[:300])
        check(w.p.poll() is None, "target unharmed")


@case
def no_btf():
    """a kernel without BTF: one line that says so"""
    with Workload([work("w_process"), "sleep"]) as w:
        r = subprocess.run(
            ["unshare", "-m", "sh", "-c",
             f"mount -t tmpfs none /sys/kernel/btf && exec {QBPF} attach -p {w.pid} -d 0.1"],
            capture_output=True,
            text=True,
        )
        if "unshare" in r.stderr or "mount:" in r.stderr:
            raise Skip(r.stderr.strip())
        one_line(r, 1, "BTF")
        check(w.p.poll() is None, "target unharmed")


@case
def hostile_files():
    """truncated and hostile ELF files: one line, exit 1, no crash"""
    real = open(work("w_process"), "rb").read()
    rows = {
        "empty": b"",
        "text": b"#!/bin/sh\n",
        "magic only": b"\x7fELF",
        "half a header": real[:40],
        "header only": real[:64],
        "cut in the middle": real[: len(real) // 2],
        "e_shoff beyond": real[:40] + b"\xff" * 8 + real[48:],
        "e_shnum huge": real[:60] + b"\xff\xff" + real[62:],
        "e_phoff beyond": real[:32] + b"\xff" * 7 + b"\x7f" + real[40:],
        "32-bit": real[:4] + b"\x01" + real[5:],
        "big-endian": real[:5] + b"\x02" + real[6:],
    }
    with tempfile.TemporaryDirectory() as d:
        for name, data in rows.items():
            path = os.path.join(d, "f")
            with open(path, "wb") as f:
                f.write(data)
            r = qbpf("list", path)
            check(r.returncode in (0, 1), f"{name}: exit {r.returncode} {r.stderr}")
            if r.returncode:
                equal(len(r.stderr.strip().splitlines()), 1, f"{name}: {r.stderr}")
                check(path in r.stderr, f"{name}: {r.stderr}")
        one_line(qbpf("list", os.path.join(d, "none")), 1, "No such file")
        one_line(qbpf("list", d), 1, "not a regular file")
        os.mkfifo(os.path.join(d, "fifo"))
        one_line(qbpf("list", os.path.join(d, "fifo")), 1, "not a regular file")


@case
def closed_stdout():
    """closed stdout, a full device, a reader that goes away"""
    with Workload([work("w_process"), "busy"]) as w:
        w.go()
        cmd = f"{QBPF} attach -p {w.pid} -d 0.3"
        r = subprocess.run(["bash", "-c", f"{cmd} >&-"], capture_output=True, text=True)
        equal(r.returncode, 1, r.stderr)
        check("stdout is closed" in r.stderr, r.stderr)
        r = subprocess.run(["bash", "-c", f"{cmd} >/dev/full"], capture_output=True, text=True)
        equal(r.returncode, 1, r.stderr)
        check("No space left" in r.stderr, r.stderr)
        r = subprocess.run(
            ["bash", "-c", f"{QBPF} attach -p {w.pid} -q --json -i 0.05 -d 1000 | head -1"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        equal(r.stderr, "", "quiet")
        check(r.stdout.startswith("{"), r.stdout[:80])
        check(w.p.poll() is None, "target unharmed")


@case
def json_file_fails():
    """--json=FILE that cannot be written"""
    with Workload([work("w_process"), "sleep"]) as w:
        r = qbpf("attach", "-p", w.pid, "-d", "0.1", "--json=/no/such/dir/x")
        equal(r.returncode, 1, r.stderr)
        check("/no/such/dir/x" in r.stderr, r.stderr)


@case
def json_pipe_without_reader():
    """--json= a named pipe that nobody reads: waits for a reader, untraced, and Ctrl-C ends it"""
    folder = tempfile.mkdtemp(prefix="qbpf-pipe-")
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    try:
        with Workload([work("w_process"), "busy"]) as w:
            w.go()
            argv = [QBPF, "attach", "-p", str(w.pid), "-d", "0.2", "--json=" + pipe]
            p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(0.5)
            p.send_signal(signal.SIGINT)
            equal(p.wait(PATIENCE_S), -signal.SIGINT, "ended by the signal")
            equal(p.stderr.read(), b"", "nothing was armed")
            p.stderr.close()
            p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(pipe) as f:
                doc = json.load(f)
            equal((p.wait(PATIENCE_S), doc["schema"]), (0, "qbpf.summary/1"), "with a reader")
    finally:
        os.unlink(pipe)
        os.rmdir(folder)


@case
def terminal_too_small():
    """a terminal of 5x2, and TERM=dumb: no crash, no garbage"""
    with Workload([work("w_process"), "busy"]) as w:
        w.go()
        for term, rows, cols in (("xterm", 2, 5), ("dumb", 24, 80), ("nosuchterm", 24, 80)):
            pid, fd = pty.fork()
            if not pid:
                os.environ["TERM"] = term
                os.environ["LINES"] = str(rows)
                os.environ["COLUMNS"] = str(cols)
                os.execv(QBPF, [QBPF, "attach", "-p", str(w.pid), "-d", "1"])
            out = b""
            while True:
                try:
                    data = os.read(fd, 65536)
                except OSError:
                    break
                if not data:
                    break
                out += data
            _, st = os.waitpid(pid, 0)
            os.close(fd)
            equal(st, 0, f"{term} {rows}x{cols}: {out[-300:]!r}")
            if term != "xterm":
                check(b"\x1b" not in out, f"{term}: no escape bytes")
        check(w.p.poll() is None, "target unharmed")


main()
