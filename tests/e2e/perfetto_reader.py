# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader of Perfetto's format, beside those of export_readers.py."""

import functools
import io
import struct
import zlib

from harness import check, equal

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
