# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Readers of what `qbpf export` writes, each made from the format's own description: they do what the
viewers do with a file, and are as strict as it allows. Times come back as CLOCK_MONOTONIC ns.

Perfetto, Chrome and Speedscope keep all that a file holds, to be asked. A recording of a minute is
more than memory holds: each is made from a reader that takes a file of any length from a pipe, and
keeps nothing but the spans that are open."""

import codecs
import functools
import io
import json
import re
import struct
import zlib
from decimal import Decimal

from harness import check, equal

# --- Perfetto ------------------------------------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        check(shift < 70, "a varint of more than ten bytes")


def to_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(data):
    """(number, value) of a protobuf message: int or bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        elif wire == 2:
            n, at = varint(data, at)
            value, at = data[at : at + n], at + n
            check(len(value) == n, "a field that is cut")
        elif wire == 5:
            value, at = data[at : at + 4], at + 4
        else:
            check(False, f"wire type {wire}")
        yield tag >> 3, value
    equal(at, end, "length of a message")


def message(data):
    """number -> list of values."""
    out = {}
    for number, value in fields(data):
        out.setdefault(number, []).append(value)
    return out


# Of what repeats from packet to packet; not to be changed.
known_message = functools.lru_cache(maxsize=4096)(message)


def packets_of(source):
    """The frames of a Trace as they come: a packet's bytes each."""
    for head in iter(lambda: source.read(1), b""):
        equal(head, b"\x0a", "tag of a packet")
        size = source.read(1)
        while size[-1:] >= b"\x80":
            size += source.read(1)
        n, _ = varint(size, 0)
        value = source.read(n)
        equal(len(value), n, "length of a packet")
        yield value


def group_of(packet):
    """The packets that a packet holds compressed, as bytes of a Trace; None: it is plain."""
    if packet[:2] != b"\x92\x03":  # field 50, of bytes
        return None
    m = message(packet)
    equal(list(m), [50], "fields beside compressed_packets")
    check(len(m[50][0]) < 512 << 10, "a group of more than 512 KiB")
    return zlib.decompress(m[50][0])


def framed(packet):
    return b"\x0a" + to_varint(len(packet)) + packet


def raw_packets(source):
    """The same file without groups, in parts: all packets plain."""
    for p in packets_of(source):
        group = group_of(p)
        yield framed(p) if group is None else group


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def text(m, number):
    return m[number][0].decode("utf-8") if number in m else None


class Track:
    def __init__(self, d):
        self.uuid = d[1][0]
        self.name = text(d, 2)
        self.parent = d.get(5, [0])[0]
        self.process = message(d[3][0]) if 3 in d else None
        self.thread = message(d[4][0]) if 4 in d else None
        self.counter = 8 in d
        self.stack = []


class Slice:
    def __init__(self, track, name, start, args, flows, parent):
        self.track, self.name, self.start, self.args = track, name, start, args
        self.flows, self.parent, self.end = flows, parent, None


class Stage:
    """A GpuRenderStageEvent with what its ids lead to. `dur` is None when it has none."""

    def __init__(self, time, m, interned):
        specs, kernels = interned[24], interned[1000]
        self.id, self.start, self.dur = m[1][0], time, m.get(2, [None])[0]
        self.gpu = m[11][0]
        check(m[13][0] in specs and m[14][0] in specs, "a queue or stage that was not sent")
        self.queue, self.stage = text(specs[m[13][0]], 2), text(specs[m[14][0]], 2)
        self.queue_iid, self.category = m[13][0], specs[m[14][0]][4][0]
        context = interned[23][m[5][0]]
        equal(context[3][0], 4, "the API of a context")
        self.pid = context[2][0]
        self.name = text(interned[2][m[20][0]], 2)
        self.symbol = None
        if 19 in m:
            self.symbol = text(kernels[m[19][0]], 2)
            equal(text(kernels[m[19][0]], 3), self.name, "demangled name")
        launch = message(m[21][0])
        dim = lambda n: tuple(message(launch[n][0])[i][0] for i in (1, 2, 3)) if n in launch else None  # noqa: E731
        self.grid, self.block = dim(1), dim(2)
        args = [message(a) for a in launch.get(3, [])]
        self.args = {text(a, 2): a[4][0] for a in args}
        self.extra = {text(message(x), 1): text(message(x), 2) for x in m.get(6, [])}


class PerfettoReader:
    """tracks (by uuid), flows: as trace_processor would have them; stages of the GPU, and `gpus`: their
    names; `packets`: how many, without groups."""

    def __init__(self):
        self.packets = 0
        self.tracks, self.flows, self.stages, self.gpus = {}, {}, [], []

    def steps(self, source):
        """("span", Slice) at its end, ("instant", Slice), ("value", (track, time, value)), as the file
        has them: the events of each track must stand in order of time."""
        last = {}
        for event in self._tokenize(source):
            time, uuid = event[:2]
            check(last.get(uuid, 0) <= time, f"{time} on a track after {last.get(uuid)}")
            last[uuid] = time
            yield from self._event(*event)
        self._end()

    def _end(self):
        for track in self.tracks.values():
            equal(len(track.stack), 0, f"spans without an end on {track.name}")

    def _packets(self, source):
        for packet in packets_of(source):
            group = group_of(packet)
            if group is None:
                yield message(packet)
                continue
            for number, value in fields(group):
                equal(number, 1, "field of Trace")
                m = message(value)
                check(50 not in m, "a group within a group")
                yield m

    def _tokenize(self, source):
        """Sequence by sequence what comes before the sort; (time, track, event, name)."""
        state = {}
        for m in self._packets(source):
            self.packets += 1
            if self.packets == 1:
                self._clocks(message(m[6][0]))
                continue
            sequence, flags = m[10][0], m[13][0] if 13 in m else 0
            check(sequence > 0, "a packet without a sequence")
            if flags & 1:
                defaults = message(m[59][0])
                equal(defaults[58][0], 3, "default clock")
                track = message(defaults[11][0])[11][0] if 11 in defaults else None
                state[sequence] = {"names": {}, "track": track, "gpu": {n: {} for n in (2, 23, 24, 1000)}}
            else:
                check(sequence in state, f"sequence {sequence} has no beginning")
                equal(flags, 2, "sequence flags")
            s = state[sequence]
            for number, entry in fields(m[12][0]) if 12 in m else []:
                thing = message(entry)
                if number == 2:
                    s["names"][thing[1][0]] = text(thing, 2)
                s["gpu"][number][thing[1][0]] = thing
            if 128 in m:
                self.gpus = [text(message(g), 1) for g in message(m[128][0])[1]]
            if 53 in m:
                self.stages.append(Stage(m[8][0], message(m[53][0]), s["gpu"]))
            if 60 in m:
                self._track(m)
            if 11 in m:
                e = known_message(m[11][0])
                name = text(e, 23)
                if 10 in e:
                    check(e[10][0] in s["names"], "a name that was not sent")
                    name = s["names"][e[10][0]]
                check(m[8][0] < 1 << 63, "a negative time")
                yield m[8][0], e[11][0] if 11 in e else s["track"], e, name

    def _clocks(self, first):
        clocks = {message(c)[1][0]: message(c)[2][0] for c in first[1]}
        equal(first[2][0], 3, "primary clock")
        equal(sorted(clocks), [1, 3, 6], "clocks of the first packet")
        self.clocks = clocks

    def _track(self, m):
        track = Track(message(m[60][0]))
        known = self.tracks.setdefault(track.uuid, track)
        equal(known.name, track.name, "name of a track that is described again")
        track.start = m.get(8, [None])[0]
        if known is track and track.thread:
            check(track.thread[2][0] > 0 and track.thread[1][0] > 0, "tid or pid 0")
        if known is track and track.process:
            check(track.process[1][0] > 0, "pid 0")

    def _args(self, e):
        args = {}
        for raw in e.get(4, []):
            a = message(raw)
            value = a.get(3, a.get(2, [None]))[0]
            args[text(a, 10)] = text(a, 6) if 6 in a else value
        return args

    def _event(self, time, uuid, e, name):
        check(uuid in self.tracks, "an event on a track that is not described")
        track, kind = self.tracks[uuid], e[9][0]
        ids = [("start", struct.unpack("<Q", v)[0]) for v in e.get(47, [])]
        ids += [("end", struct.unpack("<Q", v)[0]) for v in e.get(48, [])]
        check(kind == 4 or not track.counter, "a span on a counter")
        parent = track.stack[-1] if track.stack else None
        if kind == 1:
            check(name is not None, "a span without a name")
            track.stack.append(Slice(track, name, time, self._args(e), ids, parent))
            track.stack[-1].submits = message(e[3000][0])[1] if 3000 in e else []
            check(len(track.stack) <= 512, "a track of more than 512 levels")
        elif kind == 2:
            check(name is None, "an end with a name")
            check(track.stack, "an end of nothing")
            s = track.stack.pop()
            s.end = time
            yield "span", s
        elif kind == 3:
            check(name is not None, "an instant without a name")
            s = Slice(track, name, time, self._args(e), ids, parent)
            s.end = time
            yield "instant", s
        else:
            equal(kind, 4, "type of an event")
            check(track.counter, "a number on a track that is no counter")
            value = struct.unpack("<d", e[44][0])[0] if 44 in e else signed(e[30][0])
            yield "value", (track, time, value)
        for what, flow in ids:
            self.flows.setdefault(flow, []).append((what, time, track, name))

    def owner(self, track):
        """(thread's track or None, process' track or None)."""
        thread = None
        while track:
            if track.thread:
                thread = track
            if track.process:
                return thread, track
            track = self.tracks.get(track.parent)
        return thread, None


class Perfetto(PerfettoReader):
    """slices, instants, counters, in order of time: spans by their ends."""

    def __init__(self, data):
        super().__init__()
        self.slices, self.instants, self.counters = [], [], []
        kept = {"span": self.slices, "instant": self.instants, "value": self.counters}
        for event in sorted(self._tokenize(io.BytesIO(data)), key=lambda e: e[0]):  # stable
            for what, thing in self._event(*event):
                kept[what].append(thing)
        self._end()


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
