#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL under pgbench: a program no one here wrote, with markers, semaphores and forked
backends. The number of transaction spans must be what pgbench says it did."""

import os
import re
import subprocess

from harness import attach_json, case, check, equal, main, spans, summary, tree_paths
from pg import CLIENTS, CONNECTIONS, Server

TRANSACTIONS = 500


def semaphore_of(pid, name):
    """Value of a marker's semaphore in a process, through its memory."""
    exe = os.readlink(f"/proc/{pid}/exe")
    notes = subprocess.run(["readelf", "-n", exe], capture_output=True, text=True).stdout
    m = re.search(rf"Name: {name}\n.*Semaphore: 0x([0-9a-f]+)", notes)
    addr = int(m[1], 16)
    with open(f"/proc/{pid}/maps") as f:
        base = next(int(x.split("-")[0], 16) for x in f if exe in x)
    with open(f"/proc/{pid}/mem", "rb") as f:
        f.seek(base + addr)
        return int.from_bytes(f.read(2), "little")


@case
def transactions_equal_pgbench():
    """transaction spans = pgbench's transactions; queries twice as many and more"""
    with Server() as pg:
        equal(semaphore_of(pg.server.pid, "transaction__start"), 0, "semaphore before")
        with attach_json(
            pg.server.pid, "--follow", "-u", "postgresql:transaction*", "-u", "postgresql:query*"
        ) as q:
            q.wait_ready()
            check(semaphore_of(pg.server.pid, "transaction__start") > 0, "semaphore is up")
            done = pg.pgbench("-t", TRANSACTIONS)
            doc = summary(q.stop())
        equal(done, CLIENTS * TRANSACTIONS, "pgbench did all")
        s = spans(doc)
        t = s["postgresql:transaction"]
        equal(t["count"], done + CONNECTIONS, "transactions")
        # They begin inside one query (BEGIN) and end inside another (COMMIT).
        inside = tree_paths(doc)["postgresql:query/postgresql:transaction"]
        equal(inside["count"], done, "transactions that clients began")
        equal(t.get("orphan_ends", 0), 0, "orphans")
        # BEGIN, UPDATE, SELECT, COMMIT: one simple query each
        equal(s["postgresql:query"]["count"], 4 * done, "queries")
        equal(doc.get("lost", {}).get("events", 0), 0, "lost")
        equal(semaphore_of(pg.server.pid, "transaction__start"), 0, "semaphore after")
        equal(pg.sql("SELECT sum(v) FROM t").stdout.strip(), str(done), "the data is right")


@case
def all_markers():
    """every marker at once (default selection): still exact, the server unharmed"""
    with Server() as pg:
        with attach_json(pg.server.pid, "--follow") as q:
            q.wait_ready()
            done = pg.pgbench("-t", TRANSACTIONS)
            doc = summary(q.stop())
        t = spans(doc)["postgresql:transaction"]
        equal(t["count"], done + CONNECTIONS, "transactions")
        check(len(doc["spans"]) > 20, "many spans")
        check(any(p.count("/") for p in tree_paths(doc)), "a call tree")
        equal(pg.sql("SELECT sum(v) FROM t").stdout.strip(), str(done), "the data is right")


main()
