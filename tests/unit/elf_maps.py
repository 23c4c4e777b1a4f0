#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The maps of live processes whose files were deleted, replaced or hidden, with and without the
capability that map_files needs; and processes that have no maps.
"""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
WORK = tempfile.mkdtemp(prefix="qbpf-maps-")
DUMP = os.path.join(WORK, "elf_dump")
IS_ROOT = os.geteuid() == 0

# No map_files without these two; uid 0 alone does not give them back.
WITHOUT_CAPS = ["setpriv", "--bounding-set", "-sys_admin,-checkpoint_restore"]

WAITER = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *sleeper(void *p) { puts("ready"); fflush(stdout); for (;;) pause(); return p; }
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1 && !strcmp(argv[1], "leader-exits")) {
		pthread_create(&t, NULL, sleeper, NULL);
		pthread_exit(NULL);
	}
	if (argc > 1 && !strcmp(argv[1], "zombie")) {
		pid_t pid = fork();
		if (!pid)
			_exit(0);
		siginfo_t si;
		waitid(P_PID, pid, &si, WEXITED | WNOWAIT);
		printf("%d\n", pid);
		fflush(stdout);
		for (;;) pause();
	}
	sleeper(NULL);
}
"""

number = 0
failed = 0
children = []


def report(ok, name, why=""):
    global number, failed
    number += 1
    failed += not ok
    print(("ok" if ok else "not ok"), number, "-", name)
    for line in str(why).splitlines()[:30] if not ok else []:
        print("#  ", line)
    sys.stdout.flush()


def skip(name, why):
    global number
    number += 1
    print("ok", number, "-", name, "# SKIP", why)


def case(name, fn, need_root=False):
    if need_root and not IS_ROOT:
        skip(name, "needs root")
        return
    try:
        fn()
        report(True, name)
    except (AssertionError, subprocess.CalledProcessError, OSError, ValueError) as e:
        report(False, name, f"{type(e).__name__}: {e} {getattr(e, 'stderr', '') or ''}")
    finally:
        while children:
            child = children.pop()
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def start(*cmd):
    """Starts a target; returns its first line of output once it is ready."""
    child = subprocess.Popen(
        cmd, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True
    )
    children.append(child)
    return child, child.stdout.readline().strip()


def dump(pid, prefix=()):
    p = subprocess.run(
        [*prefix, DUMP, "-p", str(pid)],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return p.returncode, p.stdout, p.stderr


def objects(pid, prefix=()):
    rc, out, err = dump(pid, prefix)
    assert rc == 0, err
    found = []
    for m in re.finditer(r"^object (.*?) path=(.*?)(?=^object |\Z)", out, re.M | re.S):
        o = {k: int(v) for k, v in (x.split("=") for x in m.group(1).split())}
        o["path"] = m.group(2)[:-1]
        found.append(o)
    assert found, out
    return found


def exe_of(objs):
    exes = [o for o in objs if o["exe"]]
    assert len(exes) == 1, objs
    return exes[0]


def fresh(name, source="waiter"):
    """A copy of the target (another inode) under this name."""
    out = os.path.join(WORK, name)
    shutil.copy(os.path.join(WORK, source), out)
    return out, os.stat(out).st_ino


def check_open(o, ino):
    assert o["ino"] == o["fdino"] == ino and o["errno"] == 0, o


def plain():
    prog, ino = fresh("plain prog")
    child, _ = start(prog)
    objs = objects(child.pid)
    check_open(exe_of(objs), ino)
    assert exe_of(objs)["path"] == prog and not exe_of(objs)["deleted"]
    ldso = [o for o in objs if o["ldso"]]
    assert len(ldso) == 1 and "/ld-linux" in ldso[0]["path"], objs
    assert sum("libc.so" in o["path"] for o in objs) == 1, objs
    assert not any(o["path"].startswith("[") for o in objs)
    assert all(o["fdino"] == o["ino"] for o in objs), objs


def deleted(prefix=()):
    prog, ino = fresh("to-delete")
    child, _ = start(prog)
    os.unlink(prog)
    o = exe_of(objects(child.pid, prefix))
    check_open(o, ino)
    assert o["deleted"] and o["path"] == prog, o


def replaced(prefix=()):
    prog, ino = fresh("to-replace")
    child, _ = start(prog)
    os.rename(fresh("newer")[0], prog)
    o = exe_of(objects(child.pid, prefix))
    check_open(o, ino)
    assert os.stat(prog).st_ino != ino


def library(prefix, readable):
    lib, ino = fresh("libx.so", "libx.so.orig")
    child, _ = start("env", "LD_PRELOAD=" + lib, os.path.join(WORK, "waiter"))
    os.rename(fresh("libx.so.new", "libx.so.orig")[0], lib)
    found = [o for o in objects(child.pid, prefix) if o["path"] == lib]
    assert len(found) == 1 and found[0]["deleted"], found
    if readable:
        check_open(found[0], ino)
    else:
        # The file of that name is another one: never taken for the mapped one.
        assert found[0]["fdino"] == 0 and found[0]["errno"] == errno.ESTALE, found


def odd_names():
    for name in ("new\nline", "really (deleted)", "back\\012slash", "caf\u00e9 \x01"):
        prog, ino = fresh(name)
        child, _ = start(prog)
        o = exe_of(objects(child.pid))
        check_open(o, ino)
        # "\012" in a name cannot be told from an escaped newline in maps.
        want = prog.replace("\\012", "\n")
        assert o["path"] == want and not o["deleted"], o


def hidden_mount(prefix=()):
    """The binary exists in the target's mount namespace only."""
    folder = os.path.join(WORK, "hidden")
    os.makedirs(folder, exist_ok=True)
    script = (
        f"mount -t tmpfs none '{folder}' && cp '{WORK}/waiter' '{folder}/prog' && "
        f"exec '{folder}/prog'"
    )
    child, line = start("unshare", "-m", "sh", "-c", script)
    assert line == "ready", line
    assert not os.path.exists(folder + "/prog")
    objs = objects(child.pid, prefix)
    o = exe_of(objs)
    assert o["path"] == folder + "/prog" and o["fdino"] == o["ino"] != 0, o
    assert sum(o["ldso"] for o in objs) == 1


def chroot(prefix=()):
    """Paths are those of the target's root, and links are resolved inside it."""
    top = os.path.join(WORK, "newroot")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top + "/bin")
    run = subprocess.run(["ldd", os.path.join(WORK, "waiter")], capture_output=True, text=True)
    for path in re.findall(r"(/\S+)", run.stdout):
        os.makedirs(top + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, top + path)
    shutil.copy(os.path.join(WORK, "waiter"), top + "/bin/prog")
    ino = os.stat(top + "/bin/prog").st_ino
    child, line = start("chroot", top, "/bin/prog")
    assert line == "ready", line
    objs = objects(child.pid, prefix)
    check_open(exe_of(objs), ino)
    assert exe_of(objs)["path"] == "/bin/prog", objs
    assert all(o["fdino"] == o["ino"] for o in objs), objs


def overlay(prefix=()):
    script = (
        f"mount -t tmpfs none '{WORK}/ov' && cd '{WORK}/ov' && mkdir lo up work merged && "
        f"cp '{WORK}/waiter' lo/prog && "
        "mount -t overlay -o lowerdir=lo,upperdir=up,workdir=work none merged && "
        "exec merged/prog"
    )
    os.makedirs(WORK + "/ov", exist_ok=True)
    child, line = start("unshare", "-m", "sh", "-c", script)
    assert line == "ready", line
    o = exe_of(objects(child.pid, prefix))
    assert o["fdino"] != 0 and o["errno"] in (0, errno.EXDEV), o


def pid_namespace():
    prog, ino = fresh("in-pid-ns")
    child, _ = start("unshare", "-p", "-f", prog)
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as f:
        inner = int(f.read().split()[0])
    check_open(exe_of(objects(inner)), ino)


def leader_exits():
    prog, ino = fresh("leader")
    child, _ = start(prog, "leader-exits")
    state = ""
    while state != "Z":
        with open(f"/proc/{child.pid}/stat") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
    check_open(exe_of(objects(child.pid)), ino)


def memfd():
    code = (
        "import os,sys\nfd=os.memfd_create('jit code',0)\n"
        f"os.write(fd,open({os.path.join(WORK, 'waiter')!r},'rb').read())\n"
        "os.execv('/proc/self/fd/%d'%fd,['x'])\n"
    )
    child, _ = start(sys.executable, "-c", code)
    o = exe_of(objects(child.pid))
    assert o["path"] == "/memfd:jit code" and o["deleted"] and o["fdino"] == o["ino"], o


def static():
    prog, ino = fresh("static-prog", "waiter-static")
    child, _ = start(prog)
    objs = objects(child.pid)
    assert len(objs) == 1, objs
    check_open(objs[0], ino)
    assert objs[0]["exe"] and not objs[0]["ldso"]


def through_ldso():
    with open("/proc/self/maps") as f:
        ldso = re.search(r"(/\S*/ld-linux\S*)", f.read()).group(1)
    prog, ino = fresh("by-ldso")
    child, _ = start(ldso, prog)
    objs = objects(child.pid)
    assert exe_of(objs)["path"] == os.path.realpath(ldso), objs
    check_open(next(o for o in objs if o["path"] == prog), ino)


def zombie():
    _, line = start(os.path.join(WORK, "waiter"), "zombie")
    rc, _, err = dump(int(line))
    want = f"process {line} is a zombie: it has ended and waits for its parent"
    assert rc == 1 and err == f"{-errno.ENOENT} {want}\n", err


def kernel_thread():
    with open("/proc/2/stat") as f:
        if "(kthreadd)" not in f.read():
            raise AssertionError("process 2 is not kthreadd here")
    rc, _, err = dump(2)
    assert rc == 1, rc
    assert err == f"{-errno.ENOENT} process 2 is a kernel thread: it has no user code\n", err


def nobody():
    prog, _ = fresh("of-root")
    child, _ = start(prog)
    rc, _, err = dump(child.pid, ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    assert rc == 1 and err.startswith(f"{-errno.EACCES} process {child.pid}: "), err
    assert err.count("\n") == 1, err


def nobody_own():
    """Without any privilege, one's own process can still be read through its paths."""
    me = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    prog, ino = fresh("of-nobody")
    os.chmod(prog, 0o755)
    child, _ = start(*me, prog)
    objs = objects(child.pid, me)
    check_open(exe_of(objs), ino)
    assert all(o["fdino"] == o["ino"] for o in objs), objs
    assert sum(o["ldso"] for o in objs) == 1, objs


def set_up():
    os.chmod(WORK, 0o755)
    cc = os.environ.get("CC", "cc")
    inc = ["-I" + os.path.join(ROOT, "include"), "-I" + os.path.join(ROOT, "user")]
    dump_c = os.path.join(ROOT, "tests", "unit", "elf_dump.c")
    libs = ["-lelf", "-ldw", "-llzma", "-lcapstone", "-liberty"]
    src = os.path.join(WORK, "waiter.c")
    with open(src, "w") as f:
        f.write(WAITER)
    with open(os.path.join(WORK, "x.c"), "w") as f:
        f.write("int x(int a); int x(int a) { return a; }\n")
    for cmd in (
        # LeakSanitizer cannot work in a process that must not be ptraced.
        [cc, "-g", "-fsanitize=address,undefined", "-D_GNU_SOURCE", *inc, dump_c]
        + [os.path.join(BUILD, "san", "libelf.a"), *libs, "-o", DUMP],
        [cc, src, "-pthread", "-o", os.path.join(WORK, "waiter")],
        [cc, src, "-pthread", "-static", "-o", os.path.join(WORK, "waiter-static")],
        [cc, "-shared", "-fPIC", os.path.join(WORK, "x.c")]
        + ["-o", os.path.join(WORK, "libx.so.orig")],
    ):
        subprocess.run(cmd, check=True, capture_output=True, text=True)
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0"


def main():
    try:
        set_up()
        case("a plain process", plain)
        case("executable deleted", deleted)
        case("executable replaced", replaced)
        case("executable deleted, without capabilities", lambda: deleted(WITHOUT_CAPS), True)
        case("executable replaced, without capabilities", lambda: replaced(WITHOUT_CAPS), True)
        case("library replaced", lambda: library((), True), True)
        case("library replaced, without capabilities", lambda: library(WITHOUT_CAPS, False), True)
        case("odd file names", odd_names)
        case("own mount namespace", hidden_mount, True)
        case("own mount namespace, without capabilities", lambda: hidden_mount(WITHOUT_CAPS), True)
        case("chroot", chroot, True)
        case("chroot, without capabilities", lambda: chroot(WITHOUT_CAPS), True)
        case("overlayfs", overlay, True)
        case("overlayfs, without capabilities", lambda: overlay(WITHOUT_CAPS), True)
        case("own pid namespace", pid_namespace, True)
        case("first thread has ended", leader_exits)
        case("executable in a memfd", memfd)
        case("static executable", static)
        case("started through the dynamic linker", through_ldso)
        case("zombie", zombie)
        case("kernel thread", kernel_thread)
        case("another user's process", nobody, True)
        case("one's own process, without privilege", nobody_own, True)
    except subprocess.CalledProcessError as e:
        report(False, "setting up", f"{e}\n{e.stderr}")
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
