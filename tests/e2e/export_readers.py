# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Readers of what `qbpf export` writes, each made from the format's own description: they do what the
viewers do with a file, and are as strict as it allows. Times come back as CLOCK_MONOTONIC ns."""

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
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
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
    equal(at, len(data), "length of a message")


def message(data):
    """number -> list of values."""
    out = {}
    for number, value in fields(data):
        out.setdefault(number, []).append(value)
    return out


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


class Perfetto:
    """packets, tracks (by uuid), slices, instants, counters: as trace_processor would have them; stages
    of the GPU, and `gpus`: their names."""

    def __init__(self, data):
        self.packets = list(self._packets(data, 0))
        self.tracks, self.slices, self.instants, self.counters, self.flows = {}, [], [], [], {}
        self.stages, self.gpus = [], []
        events = self._tokenize()
        events.sort(key=lambda e: e[0])  # stable
        for event in events:
            self._event(*event)
        for track in self.tracks.values():
            equal(len(track.stack), 0, f"spans without an end on {track.name}")

    def _packets(self, data, depth):
        for number, value in fields(data):
            equal(number, 1, "field of Trace")
            m = message(value)
            if 50 in m:
                equal(sorted(m), [50], "fields beside compressed_packets")
                check(len(m[50][0]) < 512 << 10, "a group of more than 512 KiB")
                equal(depth, 0, "depth of groups")
                yield from self._packets(zlib.decompress(m[50][0]), 1)
            else:
                yield m

    @staticmethod
    def raw_packets(data):
        """The same file without groups: all packets plain."""
        out = bytearray()
        for _, value in fields(data):
            group = message(value).get(50)
            out += zlib.decompress(group[0]) if group else b"\x0a" + to_varint(len(value)) + value
        return bytes(out)

    def _tokenize(self):
        """Sequence by sequence what comes before the sort; (time, track, event)."""
        state, events = {}, []
        first = message(self.packets[0][6][0])
        clocks = {message(c)[1][0]: message(c)[2][0] for c in first[1]}
        equal(first[2][0], 3, "primary clock")
        equal(sorted(clocks), [1, 3, 6], "clocks of the first packet")
        self.clocks = clocks
        for m in self.packets[1:]:
            sequence, flags = m[10][0], m.get(13, [0])[0]
            check(sequence > 0, "a packet without a sequence")
            if flags & 1:
                state[sequence] = {"names": {}, "defaults": message(m[59][0]),
                                   "gpu": {n: {} for n in (2, 23, 24, 1000)}}
            else:
                check(sequence in state, f"sequence {sequence} has no beginning")
                equal(flags, 2, "sequence flags")
            s = state[sequence]
            equal(s["defaults"][58][0], 3, "default clock")
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
                track = Track(message(m[60][0]))
                known = self.tracks.setdefault(track.uuid, track)
                equal(known.name, track.name, "name of a track that is described again")
                track.start = m.get(8, [None])[0]
                if known is track and track.thread:
                    check(track.thread[2][0] > 0 and track.thread[1][0] > 0, "tid or pid 0")
                if known is track and track.process:
                    check(track.process[1][0] > 0, "pid 0")
            if 11 in m:
                e = message(m[11][0])
                default = message(s["defaults"][11][0])[11][0] if 11 in s["defaults"] else None
                uuid = e.get(11, [default])[0]
                name = text(e, 23)
                if 10 in e:
                    check(e[10][0] in s["names"], "a name that was not sent")
                    name = s["names"][e[10][0]]
                check(m[8][0] < 1 << 63, "a negative time")
                events.append((m[8][0], uuid, e, name))
        return events

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
            self.slices.append(track.stack[-1])
        elif kind == 2:
            check(name is None, "an end with a name")
            check(track.stack, "an end of nothing")
            track.stack.pop().end = time
        elif kind == 3:
            check(name is not None, "an instant without a name")
            self.instants.append(Slice(track, name, time, self._args(e), ids, parent))
            self.instants[-1].end = time
        else:
            equal(kind, 4, "type of an event")
            check(track.counter, "a number on a track that is no counter")
            value = struct.unpack("<d", e[44][0])[0] if 44 in e else signed(e[30][0])
            self.counters.append((track, time, value))
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


# --- Chrome's JSON -------------------------------------------------------------------------------


class Chrome:
    """spans (name, cat, pid, tid, start, dur, args, parent), instants, counters, async, flows."""

    def __init__(self, raw):
        doc = json.loads(raw.decode("utf-8"), parse_float=Decimal)
        equal(doc["displayTimeUnit"], "ns", "displayTimeUnit")
        self.zero = int(doc["metadata"]["zero_ns"])
        self.labels, self.spans, self.instants, self.counters = {}, [], [], []
        self.asyncs, self.flows = {}, {}
        events = doc["traceEvents"]
        rows = {}
        for e in events:
            check(e["pid"] > 0 and e.get("tid", 1) > 0, "pid or tid 0")
            if e["ph"] == "M":
                self.labels[e["name"], e["pid"], e["tid"]] = e["args"]["name"]
        timed = [e for e in events if e["ph"] != "M"]
        timed.sort(key=lambda e: e["ts"])
        for e in timed:
            at = self._ns(e["ts"]) + self.zero
            if e["ph"] == "X":
                self._span(rows, e, at)
            elif e["ph"] == "i":
                equal(e["s"], "t", "scope of an instant")
                self.instants.append((e["name"], e["tid"], at, e.get("args", {})))
            elif e["ph"] == "C":
                self.counters.append((e["name"], at, e["args"]["value"]))
            elif e["ph"] in "be":
                self.asyncs.setdefault(e["id"], []).append((e["ph"], at, e))
            else:
                check(e["ph"] in "sf", "phase " + e["ph"])
                equal(e.get("bp"), "e" if e["ph"] == "f" else None, "bp")
                self.flows.setdefault(e["id"], []).append((e["ph"], at, e["tid"]))

    @staticmethod
    def _ns(us):
        ns = us * 1000
        equal(ns, int(ns), "a time of whole ns")
        check(isinstance(us, Decimal) and us.as_tuple().exponent == -3, f"three decimals: {us}")
        return int(ns)

    def _span(self, rows, e, at):
        dur = self._ns(e["dur"])
        check(dur >= 0, "a negative duration")
        stack = rows.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1][4] + stack[-1][5] <= at:
            stack.pop()
        parent = stack[-1] if stack else None
        if parent:
            check(at + dur <= parent[4] + parent[5], "spans that overlap on one row")
        span = (e["name"], e["cat"], e["pid"], e["tid"], at, dur, e.get("args", {}), parent)
        stack.append(span)
        self.spans.append(span)


# --- speedscope ----------------------------------------------------------------------------------


class Speedscope:
    """profiles: (name, [(frame, start, dur, parent's place or None)]), in the file's own time."""

    def __init__(self, raw):
        doc = json.loads(raw.decode("utf-8"))
        equal(doc["$schema"], "https://www.speedscope.app/file-format-schema.json", "$schema")
        frames = [f["name"] for f in doc["shared"]["frames"]]
        self.profiles = []
        for p in doc["profiles"]:
            equal((p["type"], p["unit"]), ("evented", "nanoseconds"), "type and unit")
            last, stack, spans = p["startValue"], [], []
            for e in p["events"]:
                check(last <= e["at"] <= p["endValue"], "events in order, within the profile")
                last = e["at"]
                if e["type"] == "O":
                    stack.append(len(spans))
                    spans.append([frames[e["frame"]], e["at"], None, stack[-2] if stack[1:] else None])
                else:
                    equal(e["type"], "C", "type of an event")
                    equal(spans[stack[-1]][0], frames[e["frame"]], "what ends")
                    span = spans[stack.pop()]
                    span[2] = e["at"] - span[1]
            equal(stack, [], "spans without an end")
            self.profiles.append((p["name"], spans))


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
