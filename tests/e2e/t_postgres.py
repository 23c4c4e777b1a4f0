#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""PostgreSQL under pgbench: a program no one here wrote, with markers, semaphores and forked
backends. The number of transaction spans must be what pgbench says it did."""

import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile

from harness import Skip, attach_json, case, check, equal, main, spans, summary, tree_paths

BIN = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [None])[-1]
CLIENTS = 4
TRANSACTIONS = 500
# A backend's start is a transaction too, outside any query: one for each client, and one for the
# connection by which pgbench looks at the server first.
CONNECTIONS = CLIENTS + 1

SCRIPT = """\\set a random(1, 1000)
BEGIN;
UPDATE t SET v = v + 1 WHERE id = :a;
SELECT v FROM t WHERE id = :a;
COMMIT;
"""


class Server:
    """A throw-away server on a socket of its own; no TCP."""

    def __enter__(self):
        if not BIN:
            raise Skip("PostgreSQL is not installed")
        self.user = pwd.getpwnam("postgres")
        self.dir = tempfile.mkdtemp(prefix="qbpf-pg-")
        os.chmod(self.dir, 0o755)
        os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)
        self.data = os.path.join(self.dir, "data")
        self.run(f"{BIN}/initdb", "-D", self.data, "-A", "trust", "-N")
        self.server = subprocess.Popen(
            [
                f"{BIN}/postgres", "-D", self.data, "-k", self.dir,
                "-c", "listen_addresses=", "-c", "autovacuum=off", "-c", "fsync=off",
                "-c", "max_logical_replication_workers=0",
            ],
            user=self.user.pw_uid,
            group=self.user.pw_gid,
            extra_groups=[],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(200):
            if self.sql("SELECT 1", check_it=False).returncode == 0:
                break
        self.sql("CREATE TABLE t(id int PRIMARY KEY, v int)")
        self.sql("INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i")
        self.script = os.path.join(self.dir, "script.sql")
        with open(self.script, "w") as f:
            f.write(SCRIPT)
        return self

    def __exit__(self, *exc):
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, *argv, check_it=True):
        r = subprocess.run(
            argv,
            user=self.user.pw_uid,
            group=self.user.pw_gid,
            extra_groups=[],
            cwd=self.dir,
            capture_output=True,
            text=True,
        )
        if check_it and r.returncode:
            raise RuntimeError(f"{argv}: {r.stderr}")
        return r

    def sql(self, text, check_it=True):
        return self.run(
            f"{BIN}/psql", "-h", self.dir, "-d", "postgres", "-qAtc", text, check_it=check_it
        )

    def pgbench(self):
        out = self.run(
            f"{BIN}/pgbench", "-h", self.dir, "-n", "-c", str(CLIENTS), "-j", "2",
            "-t", str(TRANSACTIONS), "-f", self.script, "postgres",
        ).stdout
        return int(re.search(r"actually processed: (\d+)/", out)[1])


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
            done = pg.pgbench()
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
            done = pg.pgbench()
            doc = summary(q.stop())
        t = spans(doc)["postgresql:transaction"]
        equal(t["count"], done + CONNECTIONS, "transactions")
        check(len(doc["spans"]) > 20, "many spans")
        check(any(p.count("/") for p in tree_paths(doc)), "a call tree")
        equal(pg.sql("SELECT sum(v) FROM t").stdout.strip(), str(done), "the data is right")


main()
