# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A second reader of trace files, written from docs/trace-format.md and nothing else, for tests.

qtrace.py FILE prints what is in it as JSON; --seeds DIR leaves the payloads of its blocks, and the
file with uncompressed blocks, as seeds for the fuzz harnesses."""

import ctypes
import json
import os
import struct
import sys
import zlib

MASK = (1 << 64) - 1
BLOCK = struct.Struct("<IHBBIIIIQQQQII")
TABLES = {
    1: ("meta", False, "ssssssIQQIsQI8Q"),
    2: ("spans", False, "sBBBQQ"),
    3: ("mappings", False, "ssIQQQ"),
    4: ("probes", False, "IIBBQs"),
    5: ("processes", True, "IssQQ"),
    6: ("threads", True, "IIsQQ"),
    7: ("nodes", False, "III"),
    8: ("losses", False, "IIQQQQ"),
    9: ("clocks", False, "QQQQ"),
    12: ("counts", False, "QQQQ"),
    33: ("gpu_names", False, "s"),
    34: ("gpu_losses", False, "IIIQQQ"),
}
EVENTS, AGGREGATES, INDEX, END, GPU = 10, 11, 13, 14, 32
SPAN, ASIDE, KEYED, INSTANT, VALUE, OPEN = range(1, 7)


class Damaged(Exception):
    pass


def unzstd(data, raw_len, _lib=[]):
    if not _lib:
        _lib.append(ctypes.CDLL("libzstd.so.1"))
        _lib[0].ZSTD_decompress.restype = ctypes.c_size_t
        _lib[0].ZSTD_decompress.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
    out = ctypes.create_string_buffer(raw_len or 1)
    if _lib[0].ZSTD_decompress(out, raw_len, data, len(data)) != raw_len:
        raise Damaged("zstd")
    return out.raw[:raw_len]


class Block:
    def __init__(self, off, head, stored):
        (_, self.type, self.codec, _, self.thread, self.count, self.raw_len, self.stored_len,
         self.seq, self.start_ns, self.end_ns, self.ref, self.payload_crc, _) = head
        self.off, self.stored = off, stored

    def payload(self):
        if zlib.crc32(self.stored) != self.payload_crc:
            raise Damaged(f"payload CRC at {self.off}")
        return unzstd(self.stored, self.raw_len) if self.codec else self.stored


def fields(layout, data):
    """One entry's fields: a letter of struct, or s for a string."""
    out, at, i = [], 0, 0
    while i < len(layout):
        n = 1
        if layout[i].isdigit():
            n = int(layout[i])
            i += 1
        for _ in range(n):
            kind = layout[i]
            if kind == "s":
                (size,) = struct.unpack_from("<I", data, at)
                out.append(data[at + 4 : at + 4 + size])
                if len(out[-1]) != size:
                    raise Damaged("string")
                at += 4 + size
            else:
                out += struct.unpack_from("<" + kind, data, at)
                at += struct.calcsize("<" + kind)
        i += 1
    return tuple(out)


class Column:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.varint()
        return -(value + 1) // 2 if value & 1 else value // 2

    def done(self):
        return self.at == len(self.data)


def decode_events(block, raw):
    """Lists of kind, start, end, child, arg, span, node, depth, begin_tid."""
    nsymbols, *lens = struct.unpack_from("<7I", raw)
    (before,) = struct.unpack_from("<Q", raw, 32)
    at = 40
    width = 1 if nsymbols <= 256 else 2
    lens.insert(1, block.count * width)
    parts = []
    for n in lens:
        parts.append(raw[at : at + n])
        at += n
    if at != len(raw):
        raise Damaged(f"columns at {block.off}")
    words = Column(parts[0])
    symbols = []
    for _ in range(nsymbols):
        kind, flags = words.byte(), words.byte()
        symbols.append((kind, flags, words.varint(), words.varint(), words.varint()))
    order = struct.unpack("<%d%s" % (block.count, "BH"[width - 1]), parts[1])
    a, b, child, arg, tid = (Column(p) for p in parts[2:])
    events, levels, last_arg, last_tid = [], {}, {}, 0
    for symbol in order:
        kind, flags, span, node, depth = symbols[symbol]
        diff, child_ns = a.signed(), 0
        if flags & 4:
            start = end = before + diff
        elif kind in (SPAN, OPEN) and depth + 1 in levels:
            first, child_ns = levels.pop(depth + 1)
            start, end = first - b.varint(), before + diff
        elif kind in (SPAN, OPEN):
            start = before + diff
            end = start + b.varint()
        else:
            end = before + diff
            start = end - b.varint()
        start, end = start & MASK, end & MASK
        if flags & 4 or kind in (SPAN, OPEN):
            first, total = levels.get(depth, (start, 0))
            levels[depth] = first, (total + end - start) & MASK
        before = end
        event = [kind, start, end, child_ns, 0, span, node, depth, 0]
        if flags & 1:
            event[4] = last_arg[symbol] = (last_arg.get(symbol, 0) + arg.signed()) & MASK
        if flags & 2:
            last_tid += tid.signed()
            event[8] = last_tid
        events.append(event)
    i = 0
    while not child.done():
        i += child.varint()
        events[i][3] = (events[i][3] + child.signed()) & MASK
    if not all(c.done() for c in (words, a, b, arg, tid)):
        raise Damaged(f"columns at {block.off}")
    times = [t for e in events for t in e[1:3]]
    if (min(times), max(times)) != (block.start_ns, block.end_ns):
        raise Damaged(f"times at {block.off}")
    return events


class Trace:
    """tables: name to list of tuples; blocks; clean; events() gives (thread, event)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        data = self.data
        if data[:8] != b"\x89qbpf\r\n\x1a" or zlib.crc32(data[:60]) != self.u32(60):
            raise Damaged("file header")
        major, _, size = struct.unpack_from("<HHI", data, 8)  # any minor version is read
        if (major, size) != (1, 64):
            raise Damaged("version")
        self.tables = {name: [] for name, _, _ in TABLES.values()}
        self.blocks, self.clean, self.cut_at, self.aggregates = [], False, 0, b""
        self._scan()
        parts = []
        for block in self.blocks:
            if block.type in TABLES:
                self._table(block)
            elif block.type == AGGREGATES:
                parts = (parts if block.thread else []) + [block]
                if len(parts) == block.count:
                    self.aggregates = b"".join(p.payload() for p in parts)
        if self.clean:
            self._check_index()

    def u32(self, off):
        return struct.unpack_from("<I", self.data, off)[0]

    def _scan(self):
        data, off = self.data, 64
        while True:
            self.cut_at = off
            if len(data) - off < 64:
                break
            head = BLOCK.unpack_from(data, off)
            block = Block(off, head, data[off + 64 : off + 64 + head[7]])
            good = head[0] == 0x4B4C4251 and zlib.crc32(data[off : off + 60]) == head[13]
            if good and len(block.stored) < block.stored_len:
                break
            end = off + 64 + block.stored_len
            if not good or zlib.crc32(block.stored) != block.payload_crc:
                if not any(data[(end if good else off + 64) - 1 :]):
                    break
                raise Damaged(f"block at {off}")
            if block.seq != len(self.blocks):
                raise Damaged(f"seq at {off}")
            self.blocks.append(block)
            off = end
            if block.type == END:
                if off != len(data):
                    raise Damaged(f"after the end at {off}")
                self.clean = True
                break

    def _table(self, block):
        name, indexed, layout = TABLES[block.type]
        table, raw, at = self.tables[name], block.payload(), 0
        for _ in range(block.count):
            (size,) = struct.unpack_from("<I", raw, at)
            entry = raw[at + 4 : at + 4 + size]
            at += 4 + size
            if indexed:
                (index,) = struct.unpack_from("<I", entry)
                row = fields(layout, entry[4:])
                if index > len(table):
                    raise Damaged(f"index in {name}")
                table[index : index + 1] = [row]
            else:
                table.append(fields(layout, entry))
        if at != len(raw):
            raise Damaged(f"{name} at {block.off}")

    def _check_index(self):
        """The index lists what is there, and leads back to the first block."""
        listed, ref, by_off = [], self.blocks[-1].ref, {b.off: b for b in self.blocks}
        while ref:
            block = by_off[ref]
            raw = block.payload()
            listed = list(struct.iter_unpack("<QQQIIIHH", raw)) + listed
            ref = block.ref
        real = [
            (b.off, b.start_ns, b.end_ns, b.thread, b.count, b.stored_len, b.type, 0)
            for b in self.blocks
            if b.type not in (INDEX, END)
        ]
        if listed != real:
            raise Damaged("index")
        if self.blocks[-1].start_ns != sum(b.count for b in self.blocks if b.type == EVENTS):
            raise Damaged("number of events")

    def events(self):
        for block in self.blocks:
            if block.type == EVENTS:
                for event in decode_events(block, block.payload()):
                    yield block.thread, event


    def gpu_records(self):
        """(ring, the record's bytes)"""
        for block in self.blocks:
            if block.type != GPU:
                continue
            raw, at = block.payload(), 0
            for _ in range(block.count):
                (size,) = struct.unpack_from("<H", raw, at + 2)
                if size < 8 or size % 8 or size > 1024 or at + size > len(raw):
                    raise Damaged(f"GPU record at {block.off}")
                yield block.thread, raw[at : at + size]
                at += size
            if at != len(raw):
                raise Damaged(f"GPU records at {block.off}")


def seeds(path, folder):
    trace = Trace(path)
    stem = os.path.join(folder, os.path.basename(path))
    out, blocks = bytearray(trace.data[:64]), bytearray(b"\x40")
    for i, b in enumerate(b for b in trace.blocks if b.type not in (INDEX, END)):
        raw = b.payload()
        head = BLOCK.pack(0x4B4C4251, b.type, 0, 0, b.thread, b.count, len(raw), len(raw), i,
                          b.start_ns, b.end_ns, b.ref, zlib.crc32(raw), 0)
        out += head[:60] + struct.pack("<I", zlib.crc32(head[:60])) + raw
        if len(raw) < 65536:
            # as fuzz_trace.c numbers them
            kind = b.type - 16 if b.type >= 32 else b.type
            blocks += struct.pack("<BBHH", kind, b.thread & 255, b.count, len(raw)) + raw
        if b.type == EVENTS:
            with open(f"{stem}-{i}-events", "wb") as f:
                f.write(struct.pack("<H", b.count) + raw)
    for what, data in (("plain", out), ("blocks", blocks), ("whole", trace.data)):
        with open(f"{stem}-{what}-trace", "wb") as f:
            f.write(data)


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--seeds":
        for path in sys.argv[3:]:
            seeds(path, sys.argv[2])
        return
    trace = Trace(sys.argv[1])
    spans = {}
    for _, event in trace.events():
        row = spans.setdefault(trace.tables["spans"][event[5] - 1][0].decode("latin-1"), [0, 0])
        row[0] += 1
        row[1] += (event[2] - event[1]) & MASK
    print(json.dumps({"clean": trace.clean, "spans": spans}))


if __name__ == "__main__":
    main()
