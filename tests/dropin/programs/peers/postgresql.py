"""A PostgreSQL server for a test, and its tools psql and pgbench."""

import glob
import os
import re
import signal

import harness

NAME = "bench"  # The name of the superuser and of the database.
USER = "nobody"  # PostgreSQL does not run as root.
BRANCHES = 4  # pgbench's scale: each has 100,000 accounts.


def program(name):
    """Debian keeps the server's programs out of the PATH. Skips the test if it is not installed."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not found:
        raise harness.Skip("postgres is not installed (package postgresql)")
    return found[-1]


class Server:
    """The database cluster, in a directory of the test."""

    def __init__(self, run):
        self.run_ = run
        self.port = harness.free_port()
        self.directory = run.path("postgresql")
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o777)
        data = os.path.join(self.directory, "data")
        run.call(program("initdb"), "-D", data, "-A", "trust", "-U", NAME, "--no-sync",
                 "--locale=C.UTF-8", dropin=False, user=USER)
        self.program_ = run.start(
            program("postgres"), "-D", data, "-p", self.port, "-k", self.directory, "-F",
            "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB",
            "-c", "max_connections=60", dropin=False, user=USER)
        self.program_.wait_output("ready to accept connections")
        self.ask("create database bench", database="postgres")

    def ask(self, *commands, port=None, host="127.0.0.1", database=NAME):
        """Runs the commands with psql, and returns the rows as strings."""
        options = [option for command in commands for option in ("-c", command)]
        output = self.run_.call(program("psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1",
                                "-h", host, "-p", port or self.port, "-U", NAME, *options, database,
                                dropin=False)
        return output.splitlines()

    def start_load(self, port, *options, host="127.0.0.1"):
        return self.run_.start(program("pgbench"), "-h", host, "-p", port, "-U", NAME, *options,
                               NAME, dropin=False)

    def initialize(self, port):
        """Creates pgbench's tables, with COPY."""
        self.start_load(port, "-i", "-q", "-s", BRANCHES).wait(0)

    def totals(self):
        """Returns (sum of accounts, of tellers, of branches, of the history), read directly from
        the server."""
        queries = [f"select coalesce(sum({column}), 0) from pgbench_{table}" for table, column in (
            ("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"),
            ("history", "delta"))]
        return [int(row) for row in self.ask(*queries)]

    def check_totals(self):
        """Each transaction adds a number to all four sums, or to none."""
        totals = self.totals()
        harness.check(len(set(totals)) == 1, f"the sums differ: {totals}")

    def transactions(self):
        return int(self.ask("select count(*) from pgbench_history")[0])

    def stop(self):
        self.program_.kill(signal.SIGINT)
        self.program_.wait(0)


def processed(output):
    """Returns how many transactions pgbench completed; none may have failed."""
    done = re.search(r"number of transactions actually processed: (\d+)", output)
    harness.check(done and "number of failed transactions: 0 " in output, output)
    return int(done[1])
