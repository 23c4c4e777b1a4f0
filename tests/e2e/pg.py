# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A throw-away PostgreSQL server and pgbench against it, for the tests that trace them."""

import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time

from harness import PATIENCE_S, Skip

BIN = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [None])[-1]
CLIENTS = 4
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
        end = time.monotonic() + PATIENCE_S
        while self.sql("SELECT 1", check_it=False).returncode and time.monotonic() < end:
            time.sleep(0.02)
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

    def pgbench(self, *how):
        """Runs the script as `how` says (-t N or -T SEC); how many transactions it did."""
        out = self.run(
            f"{BIN}/pgbench", "-h", self.dir, "-n", "-c", str(CLIENTS), "-j", "2", *map(str, how),
            "-f", self.script, "postgres",
        ).stdout
        return int(re.search(r"actually processed: (\d+)", out)[1])
