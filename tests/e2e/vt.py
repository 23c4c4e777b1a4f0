# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small terminal: what ncurses writes for TERM=xterm-256color, kept as a grid of characters.

Anything that it does not know is remembered in `unknown`, so that a test can tell that the picture
is to be trusted.
"""

import codecs
import re
import unicodedata

CSI = re.compile(r"\x1b\[([?>]?)([0-9;]*)([@-~])")
OTHER = re.compile(r"\x1b(?:[()][AB0]|[=>78M]|\][^\x07]*\x07)")


class Screen:
    def __init__(self, rows, cols):
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = ""
        self.alternate = False
        self.cursor_visible = True
        self.wrapped = 0
        self.attributes = set()  # every SGR parameter that was ever set
        self.unknown = []
        self.resize(rows, cols)

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.cells = [[" "] * cols for _ in range(rows)]
        self.y = self.x = 0
        self.top, self.bottom = 0, rows - 1

    def text(self):
        return "\n".join(self.lines())

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data):
        s = self.pending + self.decoder.decode(data)
        self.pending = ""
        i = 0
        while i < len(s):
            c = s[i]
            if c == "\x1b":
                m = CSI.match(s, i) or OTHER.match(s, i)
                if not m:
                    if len(s) - i < 32:  # the rest has not come yet
                        self.pending = s[i:]
                        return
                    self.unknown.append(s[i : i + 8])
                    i += 1
                    continue
                if m.re is CSI:
                    self.csi(*m.groups())
                elif m.group()[1] == "M":
                    if self.y == self.top:
                        self.scroll(-1)
                    else:
                        self.y = max(self.y - 1, 0)
                i = m.end()
                continue
            self.char(c)
            i += 1

    def char(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            if self.y == self.bottom:
                self.scroll(1)
            else:
                self.y = min(self.y + 1, self.rows - 1)
        elif c == "\b":
            self.x = max(self.x - 1, 0)
        elif c == "\t":
            self.x = min((self.x // 8 + 1) * 8, self.cols - 1)
        elif c in "\x07\x0e\x0f":
            pass
        else:
            if self.x >= self.cols:
                self.wrapped += 1
                self.x = 0
                self.y = min(self.y + 1, self.rows - 1)
            self.cells[self.y][self.x] = c
            self.last = c
            self.x += 2 if unicodedata.east_asian_width(c) in "WF" else 1

    def scroll(self, n):
        for _ in range(n):
            del self.cells[self.top]
            self.cells.insert(self.bottom, [" "] * self.cols)
        for _ in range(-n):
            del self.cells[self.bottom]
            self.cells.insert(self.top, [" "] * self.cols)

    def csi(self, private, args, final):
        p = [int(a or 0) for a in args.split(";")] if args else []
        n = max(p[0], 1) if p else 1
        row = self.cells[self.y]
        if private == "?" and final in "hl":
            for mode in p:
                if mode == 1049:
                    self.alternate = final == "h"
                    self.cells = [[" "] * self.cols for _ in range(self.rows)]
                elif mode == 25:
                    self.cursor_visible = final == "h"
        elif private:
            self.unknown.append(private + args + final)
        elif final == "H":
            self.y = min(n - 1, self.rows - 1)
            self.x = min((max(p[1], 1) if len(p) > 1 else 1) - 1, self.cols - 1)
        elif final == "d":
            self.y = min(n - 1, self.rows - 1)
        elif final == "G":
            self.x = min(n - 1, self.cols - 1)
        elif final == "A":
            self.y = max(self.y - n, 0)
        elif final == "B":
            self.y = min(self.y + n, self.rows - 1)
        elif final == "C":
            self.x = min(self.x + n, self.cols - 1)
        elif final == "D":
            self.x = max(self.x - n, 0)
        elif final == "K":
            a, b = {0: (self.x, self.cols), 1: (0, self.x + 1)}.get(
                p[0] if p else 0, (0, self.cols)
            )
            row[a:b] = [" "] * (b - a)
        elif final == "J":
            if (p[0] if p else 0) == 0:
                row[self.x :] = [" "] * (self.cols - self.x)
                below = range(self.y + 1, self.rows)
            elif p[0] == 1:
                row[: self.x + 1] = [" "] * (self.x + 1)
                below = range(self.y)
            else:
                below = range(self.rows)
            for y in below:
                self.cells[y] = [" "] * self.cols
        elif final == "X":
            n = min(n, self.cols - self.x)
            row[self.x : self.x + n] = [" "] * n
        elif final == "P":
            del row[self.x : self.x + n]
            row += [" "] * (self.cols - len(row))
        elif final == "@":
            row[self.x : self.x] = [" "] * n
            del row[self.cols :]
        elif final == "b":
            for _ in range(n):
                self.char(self.last)
        elif final in "LM":
            top, self.top = self.top, self.y
            self.scroll(-n if final == "L" else n)
            self.top = top
        elif final in "ST":
            self.scroll(n if final == "S" else -n)
        elif final == "r":
            self.top = n - 1
            self.bottom = (p[1] if len(p) > 1 and p[1] else self.rows) - 1
            self.y = self.x = 0
        elif final == "m":
            self.attributes.update(p or [0])
        elif final in "lht":
            pass
        else:
            self.unknown.append(args + final)
