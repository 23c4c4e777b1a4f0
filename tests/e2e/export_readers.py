# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Readers of what `qbpf export` writes, each made from the format's own description: they do what the
viewers do with a file, and are as strict as it allows. Times come back as CLOCK_MONOTONIC ns.

Chrome and Speedscope, and Perfetto of perfetto_reader.py, keep all that a file holds, to be asked. A
recording of a minute is more than memory holds: each is made from a reader that takes a file of any
length from a pipe, and keeps nothing but the spans that are open."""

import codecs
import json
import re
from decimal import Decimal

from harness import check, equal

# --- JSON of any length --------------------------------------------------------------------------


class JsonStream:
    """A document as it comes through a pipe: objects and arrays are walked, and each value in them that
    is asked for is what Python's json makes of it."""

    BLOCK = 1 << 20

    def __init__(self, source, **how):
        self._decode = json.JSONDecoder(**how).raw_decode
        self._source, self._utf8 = source, codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._whole = "", 0, False

    def _more(self):
        check(not self._whole, "a document that is cut")
        block = self._source.read(self.BLOCK)
        self._whole = not block
        self._text = self._text[self._at:] + self._utf8.decode(block, final=self._whole)
        self._at = 0

    def _next(self):
        """The next character that is no space; it stays."""
        while True:
            while self._at < len(self._text):
                c = self._text[self._at]
                if c not in " \t\r\n":
                    return c
                self._at += 1
            self._more()

    def _take(self, wanted):
        c = self._next()
        check(c in wanted, f"{c!r} where one of {wanted!r} must be")
        self._at += 1
        return c

    def value(self):
        """The whole value that comes next."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
                if end < len(self._text) or self._whole:  # else a number may go on
                    self._at = end
                    return value
            except json.JSONDecodeError:
                if self._whole:
                    raise
            self._more()

    def walk(self):
        """Once for each element of the array that comes next; the caller takes its value."""
        self._take("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield
            if self._take(",]") == "]":
                return

    def elements(self):
        """The values of the array that comes next."""
        for _ in self.walk():
            yield self.value()

    def members(self):
        """The keys of the object that comes next; the caller takes the value of each before the next."""
        self._take("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            key = self.value()
            check(isinstance(key, str), f"a key that is no text: {key!r}")
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def end(self):
        """Nothing but space is left."""
        while not self._whole:
            equal(self._text[self._at:].strip(), "", "what follows the document")
            self._at = len(self._text)
            self._more()


# --- Chrome's JSON -------------------------------------------------------------------------------


class ChromeReader:
    """labels: (what, pid, tid) -> name; `zero`: what CLOCK_MONOTONIC was at 0; `events`: how many."""

    def __init__(self):
        self.labels, self.zero, self.events, self._rows = {}, None, 0, {}

    def steps(self, source):
        """("span", (name, cat, pid, tid, start, dur, args, parent)) and so on, as _event has them, with
        times from 0 on, as the file has them: the spans of each row must stand in order of time."""
        doc, last = JsonStream(source, parse_float=Decimal), {}
        rest = {}
        for key in doc.members():
            if key != "traceEvents":
                rest[key] = doc.value()
                continue
            for e in doc.elements():
                if e["ph"] == "X":
                    row = e["pid"], e["tid"]
                    check(last.get(row, 0) <= e["ts"], f"{e['ts']} on a row after {last.get(row)}")
                    last[row] = e["ts"]
                yield from self._event(e, 0)
        doc.end()
        self._about(rest)

    def _about(self, doc):
        equal(doc["displayTimeUnit"], "ns", "displayTimeUnit")
        self.zero = int(doc["metadata"]["zero_ns"])

    def _event(self, e, zero):
        self.events += 1
        check(e["pid"] > 0 and e.get("tid", 1) > 0, "pid or tid 0")
        if e["ph"] == "M":
            self.labels[e["name"], e["pid"], e["tid"]] = e["args"]["name"]
            return
        at = self._ns(e["ts"]) + zero
        if e["ph"] == "X":
            yield "span", self._span(e, at)
        elif e["ph"] == "i":
            equal(e["s"], "t", "scope of an instant")
            yield "instant", (e["name"], e["tid"], at, e.get("args", {}))
        elif e["ph"] == "C":
            yield "value", (e["name"], at, e["args"]["value"])
        elif e["ph"] in "be":
            yield "async", (e["ph"], at, e)
        else:
            check(e["ph"] in "sf", "phase " + e["ph"])
            equal(e.get("bp"), "e" if e["ph"] == "f" else None, "bp")
            yield "flow", (e["ph"], at, e["tid"], e["id"])

    @staticmethod
    def _ns(us):
        ns = us * 1000
        equal(ns, int(ns), "a time of whole ns")
        check(isinstance(us, Decimal) and us.as_tuple().exponent == -3, f"three decimals: {us}")
        return int(ns)

    def _span(self, e, at):
        dur = self._ns(e["dur"])
        check(dur >= 0, "a negative duration")
        stack = self._rows.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1][4] + stack[-1][5] <= at:
            stack.pop()
        parent = stack[-1] if stack else None
        if parent:
            check(at + dur <= parent[4] + parent[5], "spans that overlap on one row")
        span = (e["name"], e["cat"], e["pid"], e["tid"], at, dur, e.get("args", {}), parent)
        stack.append(span)
        return span


class Chrome(ChromeReader):
    """spans (name, cat, pid, tid, start, dur, args, parent), instants, counters, asyncs, flows."""

    def __init__(self, raw):
        super().__init__()
        doc = json.loads(raw.decode("utf-8"), parse_float=Decimal)
        self._about(doc)
        self.spans, self.instants, self.counters, self.asyncs, self.flows = [], [], [], {}, {}
        kept = {"span": self.spans, "instant": self.instants, "value": self.counters}
        for e in sorted(doc["traceEvents"], key=lambda e: e.get("ts", 0)):  # stable; labels have no time
            for what, thing in self._event(e, self.zero):
                if what == "async":
                    self.asyncs.setdefault(thing[2]["id"], []).append(thing)
                elif what == "flow":
                    self.flows.setdefault(thing[3], []).append(thing[:3])
                else:
                    kept[what].append(thing)


# --- speedscope ----------------------------------------------------------------------------------


class SpeedscopeProfile:
    """One profile, event by event."""

    def __init__(self):
        self.first, self.last, self.begun, self.stack = None, None, 0, []

    def event(self, e):
        """[frame's number, start, dur, parent's place or None, place among the begins] of what ends."""
        at, frame = e["at"], e["frame"]
        if self.first is None:
            self.first = self.last = at
        check(self.last <= at, "events in order")
        self.last = at
        if e["type"] == "O":
            self.stack.append([frame, at, None, self.stack[-1][4] if self.stack else None, self.begun])
            self.begun += 1
            return None
        equal(e["type"], "C", "type of an event")
        span = self.stack.pop()
        equal(span[0], frame, "what ends")
        span[2] = at - span[1]
        return span

    def end(self, about):
        equal((about["type"], about["unit"]), ("evented", "nanoseconds"), "type and unit")
        equal(self.stack, [], "spans without an end")
        if self.first is not None:
            check(about["startValue"] <= self.first and self.last <= about["endValue"], "within the profile")


class SpeedscopeReader:
    """The spans of a file of any length, from a pipe. At its end, `profiles` and `frames`: names."""

    def __init__(self):
        self.profiles, self.frames = [], None

    def spans(self, source):
        """[frame's number, start, dur] of each at its end, in the file's own time."""
        doc, rest = JsonStream(source), {}
        for key in doc.members():
            if key == "profiles":
                for _ in doc.walk():
                    yield from self._profile(doc)
            else:
                rest[key] = doc.value()
        doc.end()
        self.about(rest)

    def _profile(self, doc):
        profile, about = SpeedscopeProfile(), {}
        for key in doc.members():
            if key != "events":
                about[key] = doc.value()
                continue
            for e in doc.elements():
                span = profile.event(e)
                if span:
                    yield span[:3]
        profile.end(about)
        self.profiles.append(about["name"])

    def about(self, doc):
        equal(doc["$schema"], "https://www.speedscope.app/file-format-schema.json", "$schema")
        self.frames = [f["name"] for f in doc["shared"]["frames"]]


class Speedscope(SpeedscopeReader):
    """profiles: (name, [(frame, start, dur, parent's place or None)]), in the file's own time."""

    def __init__(self, raw):
        super().__init__()
        doc = json.loads(raw.decode("utf-8"))
        self.about(doc)
        for p in doc["profiles"]:
            profile = SpeedscopeProfile()
            spans = [s for s in map(profile.event, p["events"]) if s]
            profile.end(p)
            spans.sort(key=lambda s: s[4])
            self.profiles.append((p["name"], [(self.frames[s[0]], *s[1:4]) for s in spans]))


# --- folded, hgrm --------------------------------------------------------------------------------


def folded(raw):
    """path (a tuple) -> weight."""
    out = {}
    for line in raw.decode("utf-8").split("\n")[:-1]:
        m = re.fullmatch(r"(.*) (\d+)", line)
        check(m, f"a folded line: {line[:100]!r}")
        path = tuple(m.group(1).split(";"))
        check(all(path), "an empty frame")
        out[path] = out.get(path, 0) + int(m.group(2))
    return out


def hgrm(raw):
    """name -> (rows of value, percentile, count, inverse or None), {figure: number})."""
    out, rows, figures = {}, None, None
    for line in raw.decode("utf-8").split("\n"):
        head = re.fullmatch(r"#\[Span: (.*?)(, ns)?\]", line)
        if head:
            rows, figures = [], {}
            out.setdefault(head.group(1), []).append((rows, figures))
        elif line.startswith("#["):
            for key, value in re.findall(r"([A-Z]\w*(?: \w+)*) *[=:] *(-?[\w.]+)", line):
                figures[key] = value
        elif re.fullmatch(r"\s*Value\s+Percentile\s+TotalCount\s+1/\(1-Percentile\)", line):
            equal(rows, [], "a heading at the top")
        elif line.strip():
            parts = line.split()
            check(len(parts) in (3, 4), f"a line of a distribution: {line!r}")
            rows.append((Decimal(parts[0]), float(parts[1]), int(parts[2]), parts[3:]))
    return out
