#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf doctor: its rows, its JSON, its exit status with and without capabilities."""

import ctypes
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

QBPF = os.environ.get("QBPF", "build/qbpf")
# Kernel, capabilities and features that every host has a row for.
ROWS = [
    "kernel", "BTF", "BPF programs", "tracing programs", "user namespace", "CAP_BPF",
    "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE", "lockdown", "exception guard",
    "perf-event uprobes", "uprobe_multi", "optimised uprobes", "uretprobe syscall",
    "clock source", "open files", "CUDA agent", "CUDA driver", "CUPTI", "attach --cuda agent",
]
BUILD = os.path.dirname(os.path.abspath(QBPF))
SIM = os.path.join(BUILD, "tests", "cudasim")

n = 0
failed = 0


def check(good, name, detail=""):
    global n, failed
    n += 1
    print(f"{'' if good else 'not '}ok {n} - {name}")
    if not good:
        failed += 1
        for line in str(detail).splitlines():
            print(f"# {line}")


def doctor(*args, prefix=(), **kw):
    return subprocess.run([*prefix, QBPF, "doctor", *args], text=True, capture_output=True,
                          timeout=60, **kw)


def as_nobody(*caps):
    """A command prefix: nobody, with these capabilities alone."""
    caps = ",".join(["-all", *(f"+{c}" for c in caps)])
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
            f"--inh-caps={caps}", f"--ambient-caps={caps}"]


def rows_of(p):
    return {r["name"]: r for r in json.loads(p.stdout)["checks"]}


def no_ptrace():
    """ptrace(2) is refused from here on, as in many containers: a seccomp filter."""
    refuse, allow, load, equal, ret = 0x00050001, 0x7FFF0000, 0x20, 0x15, 0x06
    insns = [(load, 0, 0, 0), (equal, 0, 1, 101), (ret, 0, 0, refuse), (ret, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in insns))
    filter_ = struct.pack("@HP", len(insns), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def cuda_rows(**env):
    keep = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH", "QBPF_AGENT")}
    return rows_of(doctor("--json", env={**keep, **env}))


def library(path, source, *flags):
    """Compiles a shared library of this C text."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-x", "none", *flags],
                   input=source, text=True, check=True)


def broken_libraries():
    """Libraries of these names that are there and are of no use."""
    with tempfile.TemporaryDirectory() as tmp:
        driver, cupti = (os.path.join(tmp, f) for f in ("libcuda.so.1", "libcupti.so.99"))
        for f in (driver, cupti):
            with open(f, "w") as out:
                out.write("no library\n" * 100)
        found = [("CUDA driver", driver, cuda_rows(LD_LIBRARY_PATH=tmp))]
        # No other CUPTI is of this CUDA.
        library(driver, "int cuDriverGetVersion(int *v) { *v = 99000; return 0; }")
        found.append(("CUPTI", cupti, cuda_rows(LD_LIBRARY_PATH=tmp)))
        for name, f, rows in found:
            r = rows[name]
            check(r["state"] == "warn" and "remedy" in r
                  and r["found"].startswith(f"found, cannot be loaded: {f}: "),
                  f"{name}: no ELF file", r)
        os.unlink(cupti)
        rows = cuda_rows(LD_LIBRARY_PATH=tmp)
        check((rows["CUDA driver"]["state"], rows["CUDA driver"]["found"])
              == ("ok", f"of CUDA 99.0, {driver}") and rows["CUPTI"]["state"] == "warn"
              and rows["CUPTI"]["found"].startswith(("none of CUDA 99, ", "not found")),
              "a driver without its CUPTI", rows)
        other = os.path.join(tmp, "libother.so")
        library(other, "int other(void) { return 1; }", "-Wl,-soname,libother.so")
        library(driver, "int other(void); int get(void) { return other(); }", "-Wl,--no-as-needed",
                other)
        os.unlink(other)
        r = cuda_rows(LD_LIBRARY_PATH=tmp)["CUDA driver"]
        check(r["state"] == "warn" and "cannot be loaded: libother.so: " in r["found"]
              and r["found"].endswith("No such file or directory"),
              "CUDA driver: what it needs is missing", r)
        for source, name in (("int x;", "without a version"),
                             ("int cuDriverGetVersion(int *v) { *v = 12000; return 999; }",
                              "its version fails")):
            library(driver, source)
            r = cuda_rows(LD_LIBRARY_PATH=tmp)["CUDA driver"]
            check((r["state"], r["found"]) == ("warn", f"it does not tell its version, {driver}")
                  and "remedy" in r, f"CUDA driver: {name}", r)
        # It prints, and leaves a process that would keep the pipes open for longer than doctor() waits.
        pid_file = os.path.join(tmp, "pid")
        library(driver, """
            #include <stdio.h>
            #include <unistd.h>
            int cuDriverGetVersion(int *v) { *v = 12000; return 0; }
            static void __attribute__((constructor)) begin(void)
            {
                FILE *f = fopen(PID_FILE, "w");
                int pid = fork();

                if (!pid) {
                    sleep(300);
                    _exit(0);
                }
                fprintf(f, "%d", pid);
                fclose(f);
                puts("noise");
                fflush(stdout);
                fputs("noise\\n", stderr);
            }
            """, f'-DPID_FILE="{pid_file}"')
        p = None
        try:
            p = doctor("--json", env={**os.environ, "LD_LIBRARY_PATH": tmp})
        except subprocess.TimeoutExpired:
            pass
        with open(pid_file) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        check(p and p.stderr == "" and p.stdout.startswith("{")
              and rows_of(p)["CUDA driver"]["found"] == f"of CUDA 12.0, {driver}",
              "CUDA driver: what it prints and starts is kept apart", p)


def control_bytes(agent):
    """No byte of QBPF_AGENT steers the terminal, or breaks the JSON."""
    shown = r"a\x1b]0;x\x07\xff.so"
    with tempfile.TemporaryDirectory() as tmp:
        bad = os.path.join(os.fsencode(tmp), b"a\x1b]0;x\x07\xff.so")
        env = {**os.environ, "QBPF_AGENT": bad}
        p = doctor(env=env)
        check(f"QBPF_AGENT={tmp}/{shown}: No such file" in p.stdout and "\x1b" not in p.stdout,
              "control bytes in QBPF_AGENT: as \\xNN", p)
        p = subprocess.run([QBPF, "run", "--cuda", "agent", "--", "true"], env=env, text=True,
                           capture_output=True, timeout=60)
        check(p.returncode == 1 and f"QBPF_AGENT={tmp}/{shown}: No such file" in p.stderr
              and "\x1b" not in p.stderr, "run: the same", p)
        if not os.path.exists(agent):
            return
        shutil.copy(agent, bad)
        p = doctor(env=env)
        check(re.search(rf"^ok    CUDA agent +{re.escape(f'{tmp}/{shown}')}$", p.stdout, re.M),
              "control bytes in the agent's path: as \\xNN", p)
        r = rows_of(doctor("--json", env=env))["CUDA agent"]
        check((r["state"], r["found"]) == ("ok", f"{tmp}/a\x1b]0;x\x07\ufffd.so"),
              "control bytes in the agent's path: valid JSON", r)


def cuda():
    agent = os.path.join(BUILD, "libqbpf_cupti.so")
    r = cuda_rows()["CUDA agent"]
    check((r["state"], r["found"]) == ("ok", agent) if os.path.exists(agent)
          else (r["state"] == "warn" and "not installed" in r["found"] and "remedy" in r),
          "the agent beside the command, or that there is none", r)
    for named, why in (("/nowhere.so", "No such file"), ("/bin/true", "not qbpf's CUDA agent")):
        r = cuda_rows(QBPF_AGENT=named)["CUDA agent"]
        check(r["state"] == "warn" and f"QBPF_AGENT={named}: " in r["found"] and why in r["found"]
              and "unset" in r["remedy"], f"QBPF_AGENT={named}", r)
    with tempfile.TemporaryDirectory() as tmp:
        fifo = os.path.join(tmp, "ff")
        os.mkfifo(fifo)
        for named in (fifo, tmp, "/dev/zero"):
            r = cuda_rows(QBPF_AGENT=named)["CUDA agent"]
            check(r["state"] == "warn" and r["found"] == f"QBPF_AGENT={named}: not a regular file",
                  f"QBPF_AGENT={'a FIFO' if named == fifo else 'a folder' if named == tmp else named}",
                  r)
    control_bytes(agent)
    r = rows_of(doctor("--json", preexec_fn=no_ptrace))["attach --cuda agent"]
    check(r["state"] == "warn" and "Operation not permitted" in r["found"] and "remedy" in r,
          "ptrace is refused", r)
    broken_libraries()
    if not os.path.exists(os.path.join(SIM, "libcuda.so.1")):
        return
    r = cuda_rows(LD_LIBRARY_PATH=SIM)
    check(r["CUDA driver"]["found"] == f"of CUDA 13.0, {SIM}/libcuda.so.1"
          and r["CUDA driver"]["state"] == "ok", "a driver and its version", r["CUDA driver"])
    check(r["CUPTI"]["found"] == f"version 130001, {SIM}/libcupti.so.13" and r["CUPTI"]["state"] == "ok",
          "the CUPTI of the same CUDA", r["CUPTI"])
    with tempfile.TemporaryDirectory() as tmp:
        stubs = os.path.join(tmp, "stubs")
        os.makedirs(stubs)
        shutil.copy(os.path.join(SIM, "libcuda.so.1"), stubs)
        r = cuda_rows(LD_LIBRARY_PATH=stubs)["CUDA driver"]
        check(r["state"] == "warn" and "stub" in r["meaning"] and "LD_LIBRARY_PATH" in r["remedy"],
              "the toolkit's stub", r)


def main():
    p = doctor()
    check(p.returncode == 0 and p.stderr == "", "root: exit 0, nothing on stderr", p)
    check(p.stdout.rstrip().endswith("Tracing is possible."), "the last line says so", p.stdout)
    missing = [r for r in ROWS if f"  {r} " not in p.stdout]
    check(not missing, "every row is there", missing)

    j = doctor("--json")
    doc = json.loads(j.stdout)
    check(doc["schema"] == "qbpf.doctor/1" and doc["can_trace"] is True, "--json", doc)
    check(doc["host"]["kernel"] == os.uname().release, "--json names the kernel", doc["host"])
    rows = rows_of(j)
    check(all(r in rows for r in ROWS), "--json has the same rows", sorted(rows))
    check(all(r["state"] in ("ok", "warn", "fail") and r["found"] for r in rows.values()),
          "every row has a state and a finding", rows)
    check(all("remedy" in r for r in rows.values() if r["state"] == "fail"),
          "whatever fails has a remedy", rows)
    works = [r for r in ("perf-event uprobes", "uprobe_multi") if rows[r]["found"] == "works"]
    check(bool(works), "a probe fired in at least one way", rows)
    price = doc["price"]
    check(all(20 <= price["ns_per_hit"][c] <= 10**7 for c in ("nop5", "emulated", "stepped")),
          "the price of a hit is in a sane range", price)
    check(all(20 <= price["floor_ns"][c] <= 10**7 for c in price["ns_per_hit"]),
          "and so is what an empty span reads", price)
    optimised = rows["optimised uprobes"]
    check((optimised["state"] == "ok") == optimised["found"].endswith("0xe8"),
          "optimised uprobes: what was read at the site agrees", optimised)

    p = doctor(prefix=as_nobody())
    last = p.stdout.rstrip().splitlines()[-1]
    check(p.returncode == 1 and "missing CAP_BPF and CAP_PERFMON" in last,
          "nobody: exit 1 and one line naming what is missing", p)
    unknown = "not known without CAP_BPF and CAP_PERFMON"
    for name in ("BPF programs", "tracing programs", "perf-event uprobes", "uprobe_multi"):
        check(re.search(rf"^warn  {name} +{unknown}$", p.stdout, re.M),
              f"nobody: {name} is not known, rather than absent", p.stdout)
    p = doctor("--json", prefix=as_nobody())
    doc = json.loads(p.stdout)
    check(p.returncode == 1 and doc["can_trace"] is False and "CAP_BPF" in doc["refusal"]
          and "price" not in doc,
          "nobody: the same as JSON", p)
    r = rows_of(p)
    check(all(r[n]["state"] == "warn" and r[n]["found"] == unknown and "6.6" not in r[n]["remedy"]
              for n in ("BPF programs", "tracing programs", "perf-event uprobes", "uprobe_multi")),
          "nobody: and what is not known", r)
    check((r["lockdown"]["state"] == "warn" and "remedy" in r["lockdown"])
          if r["lockdown"]["found"] == "unknown" else r["lockdown"]["state"] == "ok",
          "nobody: an unknown lockdown is not ok", r["lockdown"])
    p = doctor("--json", prefix=as_nobody("bpf"))
    check(p.returncode == 1 and "missing CAP_PERFMON" in json.loads(p.stdout)["refusal"],
          "CAP_BPF alone: names CAP_PERFMON", p)

    p = doctor("--json", prefix=as_nobody("bpf", "perfmon"))
    if rows["uprobe_multi"]["found"] == "works":
        r = rows_of(p)
        check(p.returncode == 0 and r["uprobe_multi"]["found"] == "works",
              "CAP_BPF and CAP_PERFMON, not root: tracing works", p)
        check(r["CAP_SYS_PTRACE"]["state"] == "warn" and "remedy" in r["CAP_SYS_PTRACE"],
              "CAP_BPF and CAP_PERFMON: what is lost is said", r["CAP_SYS_PTRACE"])
    else:
        check((p.returncode == 0) == json.loads(p.stdout)["can_trace"],
              "CAP_BPF and CAP_PERFMON, not root: the exit status agrees", p)

    p = doctor(prefix=["unshare", "-Ur"])
    check(p.returncode == 1 and "user namespace" in p.stdout.rstrip().splitlines()[-1],
          "root of a user namespace: exit 1, says why", p)

    cuda()

    p = doctor("--nonsense")
    check(p.returncode == 2 and p.stdout == ""
          and p.stderr == "qbpf: unknown option --nonsense (see qbpf doctor --help)\n",
          "unknown option: exit 2, one line", p)
    p = doctor("-x")
    check(p.returncode == 2 and p.stderr == "qbpf: unknown option -x (see qbpf doctor --help)\n",
          "unknown short option: the same", p)
    p = doctor("--json=out.json")
    check(p.returncode == 2 and p.stdout == ""
          and p.stderr == "qbpf: --json takes no value (see qbpf doctor --help)\n",
          "--json=FILE: exit 2, one line", p)
    p = doctor("extra")
    check(p.returncode == 2 and "extra" in p.stderr and p.stderr.count("\n") == 1,
          "stray argument: exit 2, one line", p)
    with open("/dev/full", "w") as full:
        p = subprocess.run([QBPF, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(p.returncode == 1 and p.stderr.count("\n") == 1, "stdout full: exit 1, one line", p)
    print(f"1..{n}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
