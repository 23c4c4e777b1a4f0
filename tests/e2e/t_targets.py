#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Targets as they occur: deleted and replaced binaries, other mount and pid namespaces, linked in
every way, stripped, with semaphores; qbpf list on them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

from harness import (
    QBPF,
    ROOT,
    Skip,
    Workload,
    attach_json,
    case,
    check,
    equal,
    main,
    spans,
    summary,
    work,
)

SOURCE = os.path.join(ROOT, "tests/workloads/w_process.c")


class Tmp:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="qbpf-targets-")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def build(self, name, *flags, source=SOURCE, cc="gcc"):
        out = self.path(name)
        r = subprocess.run(
            [cc, "-O2", "-I", f"{ROOT}/include", *flags, source, "-o", out, "-ldl", "-lpthread"],
            capture_output=True,
            text=True,
        )
        if r.returncode:
            why = " ".join(r.stderr.split())[:300]
            raise Skip(f"{cc} {' '.join(flags)}: {why}")
        return out


def ticks(w, n, *args):
    """Attaches, lets the workload do n ticks, checks the count."""
    with attach_json(w.pid, *args) as q:
        q.wait_ready()
        w.go()
        w.finish()
        doc = summary(q.finish())
    equal(spans(doc)["proc:tick"]["count"], n, "ticks")
    return doc


@case
def linked_in_every_way():
    """-no-pie, static, static-pie, lld, gold, -Ttext-segment, -z noseparate-code, stripped, clang"""
    variants = [
        ("no-pie", ["-no-pie"]),
        ("static", ["-static"]),
        ("static-pie", ["-static-pie"]),
        ("lld", ["-fuse-ld=lld"]),
        ("gold", ["-fuse-ld=gold"]),
        ("text-segment", ["-no-pie", "-Wl,-Ttext-segment=0x10000000"]),
        ("noseparate", ["-Wl,-z,noseparate-code"]),
        ("stripped", ["-s"]),
        ("O0", ["-O0"]),
        ("cet", ["-fcf-protection=full"]),
    ]
    done = 0
    with Tmp() as t:
        for cc in ("gcc", "clang"):
            for name, flags in variants:
                try:
                    exe = t.build(f"{cc}-{name}", *flags, cc=cc)
                except Skip as e:
                    print(f"# {cc} {name}: {e}")
                    continue
                with Workload([exe, "ticks", 250]) as w:
                    ticks(w, 250)
                done += 1
    check(done >= 10, f"{done} variants were built")


@case
def deleted_and_replaced():
    """the binary is deleted, or replaced by rename, while mapped: the mapped inode is traced"""
    with Tmp() as t:
        exe = t.build("victim")
        with Workload([exe, "ticks", 300]) as w:
            os.unlink(exe)
            ticks(w, 300)
        exe = t.build("victim")
        with Workload([exe, "ticks", 300]) as w:
            shutil.copy("/bin/true", t.path("new"))
            os.rename(t.path("new"), exe)
            doc = ticks(w, 300)
            check("tick" in json.dumps(doc["spans"]), "names of the old file")


@case
def mount_namespace():
    """a target whose binary is invisible outside its mount namespace"""
    with Tmp() as t:
        exe = t.build("inner")
        hidden = t.path("hidden")
        os.mkdir(hidden)
        script = f"mount -t tmpfs none {hidden} && cp {exe} {hidden}/bin && exec {hidden}/bin ticks 300"
        try:
            w = Workload(["unshare", "-m", "sh", "-c", script])
        except Exception as e:
            raise Skip(f"unshare -m: {e}") from None
        with w:
            check(not os.path.exists(hidden + "/bin"), "invisible from outside")
            ticks(w, 300)


@case
def pid_namespace():
    """a target in a pid namespace of its own"""
    with Tmp() as t:
        exe = t.build("inner")
        with Workload(["unshare", "-p", "-f", "--kill-child", exe, "ticks", 300]) as w:
            kids = open(f"/proc/{w.pid}/task/{w.pid}/children").read().split()
            with attach_json(kids[0]) as q:
                q.wait_ready()
                w.go()
                w.finish()
                equal(spans(summary(q.finish()))["proc:tick"]["count"], 300, "ticks")


SEMAPHORES = """
#include <stdio.h>
%s
static int argument;
__attribute__((noinline)) void tick(void) {
%s
}
int main(void) {
	char b[9];
	puts("ready"); fflush(stdout);
	while (fgets(b, 9, stdin)) {
		for (int i = 0; i < 100; i++) tick();
		printf("arguments %%d\\n", argument); fflush(stdout);
	}
	return 0;
}
"""
OURS = (
    '#include "qbpf/probe.h"',
    "\tif (QBPF_ENABLED(sem, tick__begin)) { argument++; DTRACE_PROBE1(sem, tick__begin, argument); }\n"
    "\tif (QBPF_ENABLED(sem, tick__end)) DTRACE_PROBE(sem, tick__end);",
)


@case
def semaphores():
    """semaphores: up while attached, 0 again afterwards, also after SIGKILL of qbpf"""
    with Tmp() as t:
        src = t.path("sem.c")
        with open(src, "w") as f:
            f.write(SEMAPHORES % OURS)
        for flags in ([], ["-no-pie"]):
            exe = t.build("sem", *flags, source=src)
            with Workload([exe]) as w:

                def round_trip(n):
                    w.out = b""
                    w.go()
                    w.wait_for(f"arguments {n}\n")

                round_trip(0)
                with attach_json(w.pid) as q:
                    q.wait_ready()
                    round_trip(100)
                    equal(spans(summary(q.stop()))["sem:tick"]["count"], 100, "ticks")
                round_trip(100)
                with attach_json(w.pid) as q:
                    q.wait_ready()
                    round_trip(200)
                    os.kill(q.p.pid, signal.SIGKILL)
                    q.p.wait()
                round_trip(200)
                with attach_json(w.pid) as q:  # and it still works
                    q.wait_ready()
                    round_trip(300)
                    equal(spans(summary(q.stop()))["sem:tick"]["count"], 100, "ticks")


@case
def list_names_everything():
    """qbpf list: markers with verdicts in file and process, text and JSON"""
    exe = work("w_process")
    r = subprocess.run([QBPF, "list", exe], capture_output=True, text=True)
    equal(r.returncode, 0, r.stderr)
    for word in ("proc:tick", "proc:outer", "relocated", "main", "tick"):
        check(word in r.stdout, f"{word} in {r.stdout}")
    r = subprocess.run([QBPF, "list", "--json", exe], capture_output=True, text=True)
    equal(r.returncode, 0, r.stderr)
    equal(json.loads(r.stdout)["schema"], "qbpf.list/1", "schema")
    with Workload([exe, "sleep"]) as w:
        r = subprocess.run([QBPF, "list", "-p", str(w.pid)], capture_output=True, text=True)
        equal(r.returncode, 0, r.stderr)
        check("proc:tick" in r.stdout, r.stdout)
        text = open(f"/proc/{w.pid}/maps").read()
        check("[uprobes]" not in text, "nothing was armed")


@case
def text_is_restored():
    """after detaching, the target's text is that of its file"""
    with Workload([work("w_process"), "busy"]) as w:
        w.go()
        with attach_json(w.pid, "-d", "0.5") as q:
            q.finish()
        with open(f"/proc/{w.pid}/maps") as f:
            line = next(x for x in f if "r-xp" in x and "w_process" in x)
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        off = int(line.split()[2], 16)
        with open(f"/proc/{w.pid}/mem", "rb") as f:
            f.seek(start)
            now = f.read(end - start)
        with open(work("w_process"), "rb") as f:
            f.seek(off)
            want = f.read(end - start)
        n = min(len(now), len(want))
        equal([i for i in range(n) if now[i] != want[i]], [], "bytes that differ")


@case
def keyed_spans():
    """-s with a key pairs across threads; overlaps and lost ends are counted"""
    src = """
#include <pthread.h>
#include <stdio.h>
#include "qbpf/probe.h"
static void *end_all(void *a) {
	for (long i = 0; i < 1000; i++) if (i %% 10) DTRACE_PROBE1(oms, ack, i);
	return a;
}
int main(void) {
	char b[9]; pthread_t t;
	puts("ready"); fflush(stdout); if (!fgets(b, 9, stdin)) return 1;
	for (long i = 0; i < 1000; i++) DTRACE_PROBE1(oms, submit, i);
	pthread_create(&t, NULL, end_all, NULL); pthread_join(t, NULL);
	for (long i = 5000; i < 5010; i++) DTRACE_PROBE1(oms, ack, i);
	puts("done"); fflush(stdout); if (!fgets(b, 9, stdin)) return 1;
	return 0;
}
""".replace("%%", "%")
    with Tmp() as t:
        path = t.path("keyed.c")
        with open(path, "w") as f:
            f.write(src)
        exe = t.build("keyed", source=path)
        with Workload([exe]) as w, attach_json(
            w.pid, "-s", "order=oms:submit..oms:ack,key=arg0"
        ) as q:
            q.wait_ready()
            w.go()
            w.wait_for("done")
            s = spans(summary(q.stop()))["order"]
            equal(s["count"], 900, "paired")
            equal(s["open"], 100, "open")
            equal(s["orphan_ends"], 10, "orphans")


main()
