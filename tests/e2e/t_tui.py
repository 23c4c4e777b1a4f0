#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The full-screen view under a pseudo terminal: what it shows, its keys, sizes, and every way out.

No BPF and no root: tui_driver feeds it snapshots made by hand, one for each "step". It says on the
terminal itself, behind what it has drawn, that it is done with a command or with keys; the screen is
looked at only when that has come, so nothing here waits for a time.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vt import Screen  # noqa: E402

DRIVER = os.path.join(os.environ.get("BUILD", "build"), "tests", "tui_driver")
DEADLINE_S = 120  # only ends what hangs
TOKEN = re.compile(rb"\x1b\]([a-z0-9 ]+)\x07")  # the emulator passes over it

cases = []
views = []  # that are still open


def case(f):
    cases.append(f)
    return f


class Failed(Exception):
    pass


def check(condition, what, view=None):
    if not condition:
        if view:
            what += "\n" + "\n".join("|" + line for line in view.screen.lines())
        raise Failed(what)


def be_a_shell():
    """The driver as a foreground job of a process group of its own: only such can be stopped."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.write(1, f"\x1b]job {os.getpid()}\x07".encode())
        return
    for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(sig, signal.SIG_IGN)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)


class View:
    """The driver on a terminal of its own."""

    def __init__(self, rows=30, cols=120, term="xterm-256color", lang="C.UTF-8", env=(), args=(), job=False):
        self.screen = Screen(rows, cols)
        self.raw = b""
        self.told = 0  # how much of it lies before and in the last token
        self.status = None
        commands, self.commands = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                # What is ignored by whoever runs the tests (nohup, a shell's background) stays so.
                for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
                    signal.signal(sig, signal.SIG_DFL)
                # The commands come on 3; the pipe may sit on this number itself.
                os.dup2(fcntl.fcntl(commands, fcntl.F_DUPFD, 50), 3)
                os.closerange(4, 60)
                if job:
                    be_a_shell()
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                new = {"PATH": os.environ.get("PATH", ""), "TERM": term, "LC_ALL": lang}
                new.update(env)
                os.execve(DRIVER, [DRIVER, *args], new)
            finally:
                os._exit(127)
        os.close(commands)
        self.target = self.pid
        views.append(self)
        if job:
            self.target = int(self.token("job ").split()[1])

    def read(self, end):
        """Reads something of what the view wrote; False: it and all else have closed the terminal."""
        left = max(end - time.monotonic(), 0)
        check(select.select([self.fd], [], [], left)[0], "the view writes nothing more", self)
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self.screen.feed(data)
        return bool(data)

    def token(self, wanted):
        """Reads to the next token, which begins so, and returns it."""
        end = time.monotonic() + DEADLINE_S
        while not (m := TOKEN.search(self.raw, self.told)):
            check(self.read(end), f"the driver ended before it said {wanted!r}", self)
        self.told = m.end()
        said = m.group(1).decode()
        check(said.startswith(wanted), f"the driver said {said!r}, not {wanted!r}", self)
        return said

    def tell(self, line):
        os.write(self.commands, (line + "\n").encode())

    def command(self, line):
        """The driver has done it, and what it has drawn is on the screen."""
        self.tell(line)
        self.token("done")

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def key(self, keys):
        """The view has taken all these keys, and what it has drawn is on the screen."""
        self.tell(f"keys {len(keys.encode())}")
        self.token("ready")
        self.type(keys)
        self.token("done")

    def settle(self):
        """Reads what a driver has written that does no more: a token of our own goes behind it."""
        tty = os.open(f"/proc/{self.target}/fd/1", os.O_WRONLY | os.O_NOCTTY)
        os.write(tty, b"\x1b]settled\x07")
        self.token("settled")
        os.close(tty)

    def shows(self, pattern):
        check(re.search(pattern, self.screen.text(), re.M), f"shows {pattern}", self)

    def hides(self, pattern):
        check(not re.search(pattern, self.screen.text(), re.M), f"hides {pattern}", self)

    def resize(self, rows, cols):
        self.screen.resize(rows, cols)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        self.command("step")

    def mode(self):
        return termios.tcgetattr(self.fd)[3]

    def wait(self):
        """Reads all, then the exit status as subprocess has it."""
        if self.status is None:
            end = time.monotonic() + DEADLINE_S
            while self.read(end):
                pass
            # Its last process closes the terminal in its exit.
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def close(self):
        views.remove(self)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended before its shell
                os.kill(self.target, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for fd in (self.fd, self.commands):
            os.close(fd)


def started(**kw):
    v = View(**kw)
    v.token("start")
    return v


def restored(v):
    check(not v.screen.alternate, "the alternate screen is left", v)
    check(v.screen.cursor_visible, "the cursor is visible", v)
    check(v.mode() & termios.ECHO and v.mode() & termios.ICANON, "echo and lines are back", v)


def row(v, name):
    """The figures of a span's or node's line."""
    for line in v.screen.lines():
        if name in line:
            return line[line.index(name) + len(name) :].split()
    check(False, f"no line of {name}", v)


@case
def spans_page_shows_the_figures():
    v = started()
    check(v.screen.alternate and not v.screen.cursor_visible, "the screen is taken over", v)
    tick = row(v, "strategy:tick")
    check(tick[:8] == ["20040", "2.00k", "12.9us", "13.7us", "14.0us", "250us", "7.00ms", "277ms"],
          f"figures of the tick: {tick}", v)
    check(row(v, "strategy:decode")[2] == "~1.30us", "the floor is marked", v)
    check(row(v, "strategy:position (value)")[:4] == ["100", "10", "-100", "250"], "values", v)
    top = v.screen.lines()[0]
    for word in ("strategy 4711", "00:00:10", "armed 9", "refused 3", "failed 1", "LOST 4",
                 "overhead 1.03%"):
        check(word in top, f"{word!r} in the title", v)
    check("strategy:tick: 20040 spans" in v.screen.text(), "the large histogram", v)
    check("12.0us .. 12.3us" in v.screen.text(), "its bounds", v)
    check(v.screen.unknown == [] and v.screen.wrapped == 0, f"plain sequences {v.screen.unknown}", v)
    check("\x1b[31m" not in v.screen.text() and r"\x1b[31m" in v.screen.text(), "names are tamed", v)
    return v


@case
def rates_are_of_the_interval():
    v = started()
    v.command("step")
    v.shows(r"^strategy:tick +21040 +1\.00k")
    check(row(v, "strategy:decode")[1] == "0", "a span that stood still", v)
    v.command("step")
    v.shows(r"^strategy:tick +22040 +1\.00k")
    return v


@case
def columns_line_up():
    v = started()
    lines = v.screen.lines()
    head = next(i for i, line in enumerate(lines) if line.startswith("span "))
    for word in ("count", "p50", "p99.9", "max", "share"):
        end = lines[head].index(word) + len(word)
        for line in lines[head + 1 : head + 5]:
            check(line[end - 1] != " " and line[end : end + 1] in (" ", ""),
                  f"column {word} of {line!r}", v)
    return v


@case
def sorting():
    def names(v):
        lines = v.screen.lines()
        head = next(i for i, line in enumerate(lines) if line.startswith("span"))
        return [line.split()[0] for line in lines[head + 1 : head + 9]]

    v = started()
    check(names(v)[0] == "strategy:tick", "by total at first", v)
    v.key("n")
    check(names(v)[0].startswith("operator") and names(v)[2] == "strategy:decode", "by name", v)
    v.key("o")
    check(names(v)[0] == "strategy:tick" and names(v)[-1].startswith("operator"), "by name, reversed", v)
    # Through each column to the right and round; the mark is always at one.
    v.key("n")
    check(names(v)[0].startswith("operator"), "by name", v)
    order = ["count", "rate/s", "p50", "p90", "p99", "p99.9", "max", "total", "share", "span"]
    for column in order:
        v.key("\x1bOC" if column in ("p50", "span") else ">")
        v.shows(re.escape(column) + "▾")
    v.key("<")
    v.shows("share▾")
    v.key("c")
    check(names(v)[:2] == ["strategy:tick", "strategy:decode"], "by count", v)
    v.key("x")
    check(names(v)[0] == "strategy:tick", "by max", v)
    return v


@case
def selecting():
    v = started(args=("--spans", "100"))
    v.key("n")
    v.shows("span▾")
    v.key("G")
    v.shows(r"^strategy:tick: 20040 spans")
    v.key("k")
    v.hides(r"^strategy:tick: ")
    v.key("\x1bOH")
    v.shows(r"^module0::Worker::function_0\(int\): 20 spans")
    v.key("j\x1bOB")
    v.shows(r"^module0::Worker::function_10\(int\): 20 spans")
    v.key("\x1b[6~")
    v.hides(r"^module0::Worker::function_10\(int\): ")
    v.key("\x1b[5~")
    v.shows(r"^module0::Worker::function_10\(int\): ")
    # The selection stays with its span when the order changes.
    v.key("c")
    v.shows("count▾")
    v.shows(r"^module0::Worker::function_10\(int\): ")
    return v


@case
def tree_page():
    v = started()
    v.key("2")
    v.shows(r"^- strategy:tick +20040 +277ms +242ms")
    check(row(v, "├─ strategy:decode")[:4] == ["20040", "26.1ms", "26.1ms", "~1.30us"], "node", v)
    check(row(v, "└─ strategy:order")[:3] == ["500", "-", "-"], "an instant has a count only", v)
    v.key("\x1bOD")
    v.shows(r"^\+ strategy:tick")
    check("strategy:decode" not in v.screen.text(), "folded", v)
    v.key("\r")
    v.shows(r"strategy:decode")
    v.key("-")
    v.hides(r"strategy:decode")
    v.key("+")
    v.shows(r"strategy:decode")
    # From a leaf to its parent.
    v.key("jj\x1bOD\x1bOD")
    v.shows(r"^\+ strategy:tick")
    return v


@case
def deep_trees_stay_on_the_screen():
    v = started(args=("--spans", "60"), rows=80)
    v.key("2")
    v.shows(r"^call tree")
    v.shows(r"\d+: +- module|\d+: module|─ module")
    check(v.screen.wrapped == 0, "nothing wraps", v)
    return v


@case
def histogram_page_and_pages():
    v = started()
    v.key("3")
    v.shows(r"^kind marker +count 20040")
    v.shows(r"abandoned 2")
    v.shows(r"6\.95ms \.\. 7\.08ms +1 ")
    v.key("\t")
    v.shows(r"^refused: main\.go at 0x99 in /opt/strategy: not an instruction boundary")
    v.shows(r"^4 lost of risk::Engine")
    v.key("\t")
    v.shows(r"^span .*total▾")
    v.key("\x1b[Z")
    v.shows(r"^refused: ")
    v.key("1\r")
    v.shows(r"^kind marker")
    v.key("\r")
    v.shows(r"^span .*total▾")
    v.key("?")
    v.shows(r"quit, with a final report")
    v.key("q")  # leaves the help, not the view
    v.shows(r"^span .*total▾")
    return v


@case
def gpu_page():
    v = started(args=("--gpu",), cols=140)
    v.shows(r"4 notes +5 GPU")
    v.key("g")
    v.shows(r"^GPU 0: busy 10\.4% of 49[0-9]us")
    v.shows(r"^kernel +count +total +min")
    v.shows(r"^xk49\(int\) +1 +1\.05us")
    check(v.screen.wrapped == 0, "nothing wraps", v)
    v.key("G")
    v.shows(r"^how right GPU times are")
    v.key("\t")
    v.shows(r"^span .*total▾")
    v.key("\x1b[Z")
    v.shows(r"^how right GPU times are")
    v.command("step")
    v.key("r")
    v.key("\x1bOH")
    v.shows(r"^since the reset \(- where only the time before it tells")
    v.shows(r"^GPU 0: nothing ran on it")
    v.command("step")
    v.command("step")
    v.shows(r"^bk01\(int\) +2 +2\.1\dus +- +1\.05us +- +- +1\.05us ")
    check("xk49" not in v.screen.text(), "nothing of before the reset", v)
    v.key("G")
    v.shows(r"^how right GPU times are")
    v.close()
    w = started()
    check("5 GPU" not in w.screen.text(), "no page without a GPU", w)
    w.key("g")
    w.shows("nothing of a GPU has come")
    return w


@case
def pause_and_reset():
    v = started()
    v.key("p")
    v.shows("PAUSED")
    v.command("step")
    v.command("step")
    check(row(v, "strategy:tick")[0] == "20040", "figures stand still", v)
    v.key("p")
    v.hides("PAUSED")
    v.shows(r"^strategy:tick +22040")
    v.key("r")
    v.shows(r"^strategy:tick +0 ")
    v.shows("00:00:00")
    v.command("step")
    v.shows(r"^strategy:tick +1000 +1\.00k +40\.\dus .*40\.\dus +40\.0ms")
    v.key("2")
    v.shows(r"strategy:tick +1000 +40\.0ms +40\.0ms")
    return v


@case
def filtering():
    v = started()
    v.key("/CODE")
    v.shows(r"^/CODE")
    check("strategy:tick" not in v.screen.text(), "only what matches, while typing", v)
    v.key("\x7f\x7f\x7f\x7fdec\r")
    v.shows(r"/dec +\(Esc: all\)")
    v.shows(r"^strategy:decode +20040")
    v.key("2")
    v.shows(r"─ strategy:decode")
    check(row(v, "- strategy:tick")[0] == "20040", "a match keeps its ancestors", v)
    check("strategy:order" not in v.screen.text(), "and nothing else", v)
    v.key("\x1b")
    v.shows("strategy:order")
    v.key("1/nothing like it\r")
    v.shows("no span has this in its name")
    v.key("/\x1b")
    v.shows(r"^strategy:tick")
    return v


@case
def messages():
    v = started()
    v.command("say a library was opened: \x1b[2Jlibfoo.so")
    v.shows(r"^a library was opened: \\x1b\[2Jlibfoo\.so$")
    v.key("4")
    v.shows(r"^a library was opened")
    return v


@case
def sizes():
    v = started()
    for rows, cols in ((5, 20), (20, 5), (1, 1), (2, 200), (200, 2), (5, 19), (24, 80), (10, 40),
                       (60, 300), (4, 20), (6, 21), (30, 120)):
        v.resize(rows, cols)
        lines = v.screen.lines()
        check(v.screen.wrapped == 0, f"nothing wraps at {cols}x{rows}", v)
        if cols < 20 or rows < 5:
            check("terminal too small"[:cols].rstrip() in v.screen.text(), f"says so at {cols}x{rows}", v)
        else:
            check(lines[0].startswith(" strategy"), f"a title at {cols}x{rows}", v)
            ticks = [line for line in lines if re.match(r"strat\S+ .*\d", line)]
            check(ticks, f"a span and a figure of it at {cols}x{rows}", v)
        for page in "2341":
            v.key(page)
            check(v.screen.wrapped == 0, f"nothing wraps on page {page} at {cols}x{rows}", v)
    v.shows(r"^strategy:tick +\d+ +1\.00k")
    check(v.screen.unknown == [], f"plain sequences {v.screen.unknown}", v)
    return v


@case
def narrow_and_wide():
    v = started(rows=5, cols=20)
    check(re.search(r"^strat\S+ +12\.9us$", v.screen.text(), re.M), "a name and its p50 at 20x5", v)
    v.close()
    # The figures stand beside the names however wide the screen is, on both pages.
    v = started(rows=30, cols=200)
    longest = "risk::Engine::check(risk::Order const&, std::vector<double> const&)"
    for page, pattern in (("1", rf"^{re.escape(longest)} {{1,9}}320 "), ("2", rf"─ {re.escape(longest)} {{1,9}}320 ")):
        v.key(page)
        v.shows(pattern)
    v.close()
    # Where there is no room, the parameter list goes and the qualified name stays.
    v = started(rows=30, cols=100)
    v.shows(r"^risk::Engine::check\(…\) +320 ")
    return v


@case
def the_help_tells_of_maxima_after_a_reset():
    v = started()
    v.key("r")
    v.command("step")
    v.key("2")
    v.shows(r"strategy:tick +1000 +40\.0ms")
    check(row(v, "strategy:tick")[3:6:2] == ["-", "-"], "min and max are not known", v)
    v.key("?")
    v.shows(r"After a reset a node's or GPU kernel's min and max are -")
    return v


@case
def a_thousand_spans():
    v = started(args=("--spans", "1000"), rows=50, cols=160)
    v.key("n")
    v.shows("span▾")
    v.key("G")
    v.shows(r"^strategy:tick: ")
    for page in "234":
        v.key(page)
        v.command("step")
    v.key("1/function_999\r")
    v.shows(r"^module19::Worker::function_999\(int\) +20")
    with open(f"/proc/{v.pid}/status") as f:
        rss_kb = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
    check(rss_kb < 40 * 1024, f"resident memory {rss_kb} kB", v)
    return v


@case
def colour_and_none():
    v = started()
    v.command("step")
    check(38 in v.screen.attributes, "colours where there are some", v)
    check(48 not in v.screen.attributes, "the ground is left alone", v)
    v.close()
    v = started(env={"NO_COLOR": "1"})
    v.command("step")
    colours = [a for a in v.screen.attributes if 30 <= a <= 38 or 40 <= a <= 48 or a >= 90]
    check(colours == [], f"none with NO_COLOR: {colours}", v)
    v.close()
    v = started(term="vt100")
    check("strategy:tick" in v.raw.decode(errors="replace"), "a terminal without colour", v)
    return v


@case
def ascii_where_the_locale_is():
    v = started(lang="C")
    v.key("2")
    v.shows(r"^\|- strategy:decode")
    check(all(b < 0x80 for b in v.raw), "no byte beyond ASCII", v)
    return v


@case
def dumb_terminals_are_refused():
    for term in ("dumb", "", "no-such-terminal"):
        v = View(term=term)
        check(v.wait() == 2, f"TERM={term!r} ends with {v.status}", v)
        check(b"\x1b" not in v.raw, f"no escape byte with TERM={term!r}", v)
        check(b"cannot show a full screen" in v.raw, "and says why", v)
        v.close()
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1)
        os.dup2(w, 2)
        os.closerange(3, 60)
        os.execve(DRIVER, [DRIVER], {"TERM": "xterm"})
    os.close(w)
    out = b""
    while data := os.read(r, 4096):
        out += data
    os.close(r)
    check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2, f"stdout is a pipe: {out}")
    check(b"\x1b" not in out and b"no terminal" in out, f"one plain line: {out}")


@case
def quitting():
    v = started()
    v.type("q")
    check(v.wait() == 0, f"ends with {v.status}", v)
    restored(v)
    v.close()
    v = started()
    v.tell("end")
    check(v.wait() == 0, f"ends with {v.status}", v)
    restored(v)
    v.close()
    v = started()
    v.tell("exit")
    check(v.wait() == 3, f"exit() ends with {v.status}", v)
    restored(v)
    return v


@case
def fatal_signals():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT,
                signal.SIGBUS):
        v = started()
        os.kill(v.pid, sig)
        check(v.wait() == -sig, f"{sig.name} ends with {v.status}", v)
        restored(v)
        v.close()
    v = started()
    v.tell("segv")
    check(v.wait() == -signal.SIGSEGV, f"a wild write ends with {v.status}", v)
    restored(v)
    v.close()
    # Ctrl-C is the terminal's own.
    v = started()
    v.type("\x03")
    check(v.wait() == -signal.SIGINT, f"Ctrl-C ends with {v.status}", v)
    restored(v)
    return v


@case
def stopping_and_going_on():
    for sig in (signal.SIGTSTP, signal.SIGSTOP):
        v = started(job=True)
        os.kill(v.target, sig)
        end = time.monotonic() + DEADLINE_S
        while open(f"/proc/{v.target}/stat").read().rpartition(")")[2].split()[0] != "T":
            check(time.monotonic() < end, "stops", v)
            time.sleep(0.01)
        v.settle()
        if sig == signal.SIGTSTP:
            restored(v)
        v.screen.feed(b"$ a shell's line\r\n")
        os.kill(v.target, signal.SIGCONT)
        v.command("step")
        check(v.screen.alternate, "takes the screen again", v)
        v.shows(r"^strategy:tick +21040")
        check("a shell's line" not in v.screen.text(), "draws all anew", v)
        check(not v.mode() & termios.ECHO, "no echo", v)
        v.type("q")
        check(v.wait() == 0, f"ends with {v.status}", v)
        restored(v)
        if sig == signal.SIGTSTP:
            v.close()
    return v


@case
def the_terminal_goes_away():
    v = started()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        views.remove(v)
        os.close(v.fd)
        end = time.monotonic() + DEADLINE_S
        while True:
            pid, status = os.waitpid(v.pid, os.WNOHANG)
            if pid:
                break
            check(time.monotonic() < end, "ends when its terminal has gone")
            time.sleep(0.02)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    v.status = os.waitstatus_to_exitcode(status)
    check(v.status in (0, -signal.SIGHUP), f"ends with {v.status}")
    os.close(v.commands)


def main():
    if not os.path.exists(DRIVER):
        print(f"not ok 1 - {DRIVER} is not built")
        return 1
    wanted = sys.argv[1:]
    failed = 0
    run = [c for c in cases if not wanted or any(w in c.__name__ for w in wanted)]
    print(f"1..{len(run)}", flush=True)
    for n, c in enumerate(run, 1):
        name = c.__name__.replace("_", " ")
        try:
            v = c()
            if v:
                v.close()
            print(f"ok {n} - {name}", flush=True)
        except (Failed, OSError) as e:
            failed += 1
            print(f"not ok {n} - {name}", flush=True)
            for line in str(e).splitlines():
                print("# " + line)
            for v in list(views):
                v.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
