#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that probes broke: each must print, traced by default options, exactly what it prints
alone, and end the same way."""

import os
import shutil
import subprocess
import tempfile

from harness import PATIENCE_S, QBPF, ROOT, Skip, Workload, attach_json, case, check, equal, main

MAIN = "int main(int argc, char **argv)"


def build(d, name, source, *flags, cc="gcc", ext="c"):
    src = os.path.join(d, f"{name}.{ext}")
    exe = os.path.join(d, name)
    with open(src, "w") as f:
        f.write(source)
    r = subprocess.run(
        [cc, "-O2", "-w", "-I", f"{ROOT}/include", *flags, src, "-o", exe, "-ldl", "-lpthread"],
        capture_output=True,
        text=True,
    )
    if r.returncode:
        raise Skip(f"{cc}: {' '.join(r.stderr.split())[:200]}")
    return exe


def same(source, *select, flags=(), cc="gcc", ext="c", args=(), returns=("auto", "ret", "none")):
    """Output and status, alone and traced with each of `returns`."""
    d = tempfile.mkdtemp(prefix="qbpf-harm-")
    try:
        exe = build(d, "prog", source, *flags, cc=cc, ext=ext)
        alone = subprocess.run([exe, *args], capture_output=True, text=True, timeout=PATIENCE_S)
        for way in returns:
            out = os.path.join(d, "summary")
            r = subprocess.run(
                [QBPF, "run", "-q", f"--json={out}", "--returns", way, *select, "--", exe, *args],
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
            equal(r.returncode, alone.returncode, f"status, --returns {way}: {r.stderr[-300:]}")
            check(
                r.stdout.startswith(alone.stdout),
                f"output, --returns {way}: {r.stdout[:300]!r}, alone {alone.stdout!r}",
            )
    finally:
        shutil.rmtree(d, ignore_errors=True)


@case
def vex_opcodes():
    """VEX instructions whose opcode byte is that of a jump or call"""
    body = "".join(
        f"""
asm(".globl v{i}\\n.type v{i},@function\\nv{i}: {insn}\\nvmovd %xmm0,%eax\\nret\\n.size v{i},.-v{i}");
int v{i}(int);"""
        for i, insn in enumerate(
            [
                "vpor %xmm1,%xmm1,%xmm0", "vpsubsb %xmm1,%xmm1,%xmm0", "vpcmpeqb %xmm1,%xmm1,%xmm0",
                "vpshufd $1,%xmm1,%xmm0", "vzeroupper", "vpsrlw $2,%xmm1,%xmm0",
                "vmovd %xmm1,%ecx", "vpsubsw %xmm1,%xmm1,%xmm0", "vpaddd %xmm1,%xmm1,%xmm0",
            ]
        )
    )
    if "avx" not in open("/proc/cpuinfo").read():
        raise Skip("no AVX here")
    calls = "".join(
        f"""asm volatile("movl $%c0,%%eax; vmovd %%eax,%%xmm1; vpxor %%xmm0,%%xmm0,%%xmm0; call v{i};"
        "movl %%eax,%1" : : "i"(1234 + {i}), "m"(r) : "rax", "rcx", "memory"); printf("%d\\n", r);\n"""
        for i in range(9)
    )
    same(
        f"#include <stdio.h>\n{body}\n{MAIN} {{ static int r; {calls} return 0; }}\n",
        "-f", "v?", flags=["-mno-red-zone"],
    )


@case
def the_entry_point():
    """_start and every other function of a C program: argc stays"""
    same(
        f"#include <stdio.h>\n{MAIN} {{ printf(\"%d %s\\n\", argc, argv[1]); return argc; }}\n",
        "-f", "_start", "-f", "prog!*", args=["x", "y"],
    )


@case
def lazy_binding():
    """every function of the program and the linker, bound lazily, while attached"""
    d = tempfile.mkdtemp(prefix="qbpf-harm-")
    try:
        exe = build(
            d, "prog",
            "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
            f"{MAIN} {{ char c; write(1, \"ready\\n\", 6); read(0, &c, 1);\n"
            "printf(\"%d\\n\", atoi(\"42\")); return 7; }\n",
            "-Wl,-z,lazy",
        )
        with Workload([exe]) as w, attach_json(
            w.pid, "-f", "ld-linux*!*", "-f", "prog!*", "--max-spans", "100000"
        ) as q:
            q.wait_ready()
            w.go()
            equal((w.p.wait(PATIENCE_S), w.p.stdout.read()), (7, b"42\n"), "the program")
            q.finish()
    finally:
        shutil.rmtree(d, ignore_errors=True)


@case
def return_address_readers():
    """setjmp, dlsym(RTLD_NEXT) and backtrace under probes"""
    same(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <execinfo.h>\n#include <setjmp.h>\n"
        "#include <stdio.h>\nstatic jmp_buf j;\n"
        "__attribute__((noinline)) void far(int n) { if (n) far(n - 1); else longjmp(j, 3); }\n"
        f"{MAIN} {{ void *a[9]; int n = _setjmp(j); if (!n) far(4);\n"
        "  printf(\"%d %d %d\\n\", n, dlsym(RTLD_NEXT, \"puts\") != 0, backtrace(a, 9) > 2);\n"
        "  return 0; }\n",
        "-f", "_setjmp", "-f", "__sigsetjmp", "-f", "dlsym", "-f", "backtrace", "-f", "far",
    )


@case
def stack_switch_by_hand():
    """coroutines switched by assembly, known by no symbol"""
    same(
        r"""
#include <stdio.h>
#include <stdlib.h>
void sw(void **from, void *to);
asm(".globl sw\n.type sw,@function\nsw: push %rbp; push %rbx; mov %rsp,(%rdi); mov %rsi,%rsp;"
    "pop %rbx; pop %rbp; ret\n.size sw,.-sw");
static void *mine, *other; static long sum;
__attribute__((noinline)) void hop(void) { sw(&other, mine); }
__attribute__((noinline)) long work(long i) { hop(); return i * 3; }
static void co(void) { for (long i = 0;; i++) { sum += work(i); } }
__attribute__((noinline)) void step(void) { sw(&mine, other); }
int main(void) {
	char *st = malloc(65536); void **top = (void **)(st + 65536 - 64);
	top[2] = (void *)co; other = top;
	for (int i = 0; i < 1000; i++) step();
	printf("%ld\n", sum);
	return 0;
}
""",
        "-f", "hop", "-f", "work", "-f", "step", flags=["-fno-pie", "-no-pie"],
    )


@case
def signal_stack_above():
    """handlers that run probed functions on a signal stack above the thread's"""
    same(
        r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
static volatile int n;
__attribute__((noinline)) int leaf(int x) { n++; return x + 1; }
static void on(int s) { leaf(s); }
__attribute__((noinline)) int spin(int x) { raise(SIGUSR1); return leaf(x); }
static void *run(void *alt) {
	stack_t s = {.ss_sp = alt, .ss_size = 65536};
	sigaltstack(&s, NULL);
	for (int i = 0; i < 500; i++) spin(i);
	return NULL;
}
int main(void) {
	char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction a = {.sa_handler = on, .sa_flags = SA_ONSTACK};
	pthread_attr_t at; pthread_t t;
	sigaction(SIGUSR1, &a, NULL);
	pthread_attr_init(&at); pthread_attr_setstack(&at, m, 512 << 10);
	pthread_create(&t, &at, run, m + (768 << 10)); pthread_join(t, NULL);
	printf("%d\n", n);
	return 0;
}
""",
        "-f", "leaf", "-f", "spin",
    )


@case
def throw_out_of_a_leaf():
    """a signal handler throws out of functions that call nothing"""
    same(
        r"""
#include <csignal>
#include <cstdio>
static volatile int *nowhere;
static int destroyed;
struct D { ~D() { destroyed++; } };
__attribute__((noinline)) int deref(volatile int *p) { return *p; }
__attribute__((noinline)) int holder(volatile int *p) { D d; return deref(p) + 1; }
static void on(int) { sigset_t s; sigemptyset(&s); sigprocmask(SIG_SETMASK, &s, nullptr); throw 1; }
int main() {
	int caught = 0;
	struct sigaction a = {}; a.sa_handler = on; a.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &a, nullptr);
	for (int i = 0; i < 100; i++) try { holder(nowhere); } catch (int) { caught++; }
	printf("%d %d\n", caught, destroyed);
}
""",
        "-f", "deref", "-f", "holder", flags=["-fnon-call-exceptions"], cc="g++", ext="cc",
    )


@case
def forks_out_of_sight():
    """children forked by dlsym("fork") and by a raw system call run armed markers"""
    for fork in (
        '((pid_t (*)(void))dlsym(RTLD_DEFAULT, "fork"))()',
        "(pid_t)syscall(SYS_fork)",
    ):
        same(
            r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "qbpf/probe.h"
__attribute__((noinline)) void tick(void) { QBPF_SPAN(h, tick); }
int main(void) {
	int ok = 0, st;
	for (int i = 0; i < 20; i++) {
		tick();
		pid_t p = FORK;
		if (!p) { tick(); _exit(0); }
		ok += waitpid(p, &st, 0) == p && st == 0;
	}
	printf("%d\n", ok);
	return 0;
}
""".replace("FORK", fork),
            "-u", "h:*",
        )


main()
