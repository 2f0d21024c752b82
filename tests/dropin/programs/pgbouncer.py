#!/usr/bin/env python3
"""pgbouncer in front of a PostgreSQL: pgbench with each pool mode, the administrator's console,
pausing and reloading under load, shutdown."""

import signal

import harness
from peers.idle_time import check_idle
from peers.postgresql import NAME, USER, Server, processed, program

SECONDS = 60  # Longer than any load: it is stopped before.
POOL = 4  # Connections to the server.
CLIENTS = {"transaction": 2 * POOL,  # More clients than connections.
           "session": POOL}  # All connect at the start, so more would block.

# pgbouncer closes a connection if it cannot send a message that it generates (the greeting, an
# error, a reply of the console) in one call, with the original library as well. Forwarding
# tolerates short writes. It also refuses a client whose first packet comes in two reads.
WEATHER = harness.Weather(least=1000, least_read=1000)

CONFIGURATION = """
[databases]
{name} = host={host} port={server} dbname={name} user={name}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {directory}
auth_type = any
admin_users = {name}
pool_mode = {mode}
default_pool_size = {pool}
max_client_conn = 100
server_lifetime = {lifetime}
ignore_startup_parameters = extra_float_digits
logfile =
pidfile =
"""


class Pool:
    """One pgbouncer."""

    def __init__(self, run, server, mode, through_unix=False):
        self.run = run
        self.server = server
        self.mode = mode
        self.through_unix_ = through_unix
        self.port = harness.free_port()
        self.host = server.directory if through_unix else "127.0.0.1"
        self.configure()
        self.start()

    def configure(self, size=POOL, lifetime=3600):
        self.file_ = self.run.file("pgbouncer.ini", CONFIGURATION.format(
            name=NAME, host=self.host, server=self.server.port, port=self.port,
            directory=self.server.directory, mode=self.mode, pool=size, lifetime=lifetime))

    def start(self):
        self.program = self.run.start("pgbouncer", self.file_, user=USER, weather=WEATHER)
        self.program.wait_tcp(self.port)
        self.program.assert_uses()

    def load(self, *options):
        """pgbench, on its way."""
        return self.server.start_load(self.port, "-n", "-c", CLIENTS[self.mode], "-j", 2, *options,
                                      host=self.host)

    def ask(self, *commands, database=NAME):
        return self.server.ask(*commands, port=self.port, host=self.host, database=database)

    def console(self, *commands):
        return self.ask(*commands, database="pgbouncer")

    def waiting(self):
        """Returns how many clients wait for a connection to the server."""
        rows = [row.split("|") for row in self.console("SHOW POOLS")]
        return sum(int(row[3]) for row in rows if row[0] == NAME)

    def server_connections(self):
        """Returns the connections to the server: our end's port, and the start time."""
        rows = [row.split("|") for row in self.console("SHOW SERVERS")]
        return {(row[7], row[8]) for row in rows if row[0] == "S"}

    def end(self, number):
        """SIGINT lets running queries end, SIGTERM does not."""
        self.program.kill(number)
        self.program.wait(0 if number == signal.SIGINT else 1)


def check_load(pool, count, *options):
    """Runs `count` transactions per client: all must succeed, and be found in the tables."""
    wanted = CLIENTS[pool.mode] * count
    before = pool.server.transactions()
    done = processed(pool.load("-t", count, *options).wait(0))
    harness.check(done == wanted, f"{done} of {wanted} were processed")
    after = pool.server.transactions()
    harness.check(after - before == done, f"{after - before} in the tables of {done}")
    pool.server.check_totals()


def connect_often(pool, *options):
    """A new connection for each transaction.

    Not in weather: when pgbouncer's reads fail with EAGAIN, a client that connects while another
    one leaves sometimes gets a wrong answer, on the original library as well.
    """
    if not pool.run.weather_library:
        check_load(pool, 20, "-C", *options)


def great_rows(pool):
    """Results and queries larger than any buffer, in both directions."""
    query = "select string_agg(md5(n::text), '') from generate_series(1, 100000) n"
    row = pool.ask(query)
    direct = pool.server.ask(query)
    harness.check(len(row[0]) == 3_200_000 and row == direct, "a great row differs")
    rows = pool.ask("select n from generate_series(1, 200000) n")
    harness.check(rows == [str(number) for number in range(1, 200_001)], "many rows differ")
    text = "x'y" * 30_000
    quoted = text.replace("'", "''")
    harness.check(pool.ask(f"select '{quoted}'") == [text], "a great query's result differs")


def transaction_pool(run, server):
    pool = Pool(run, server, "transaction")
    server.initialize(pool.port)
    check_load(pool, 150)
    check_load(pool, 50, "-M", "extended")
    connect_often(pool)
    connections = len(pool.server_connections())
    harness.check(1 <= connections <= POOL, f"{connections} connections")
    great_rows(pool)
    console(pool)
    pause_under_load(pool)
    reload_under_load(pool)
    check_idle(pool.program)
    pool.end(signal.SIGINT)


def session_pool(run, server):
    """Unix sockets on both sides; prepared statements need a session."""
    pool = Pool(run, server, "session", through_unix=True)
    check_load(pool, 200, "-M", "prepared")
    connect_often(pool, "-M", "prepared")
    pool.end(signal.SIGTERM)


def console(pool):
    harness.check("PgBouncer" in pool.console("SHOW VERSION")[0], "SHOW VERSION")
    rows = [row.split("|") for row in pool.console("SHOW POOLS")]
    harness.check([NAME, NAME] in [row[:2] for row in rows], f"SHOW POOLS: {rows}")
    harness.check(len(pool.console("SHOW STATS")) >= 2, "SHOW STATS")
    harness.check(any(row.startswith("pool_mode|transaction") for row in
                      pool.console("SHOW CONFIG")), "SHOW CONFIG")


def wait_progress(pool, count=50):
    before = pool.server.transactions()
    harness.wait_until(lambda: pool.server.transactions() >= before + count, "some transactions")


def end_load(pool, load):
    load.stop()
    pool.server.check_totals()


def pause_under_load(pool):
    """While paused nothing reaches the server, and all clients wait; then all continue."""
    load = pool.load("-T", SECONDS)
    for _ in range(3):
        wait_progress(pool)
        pool.console(f"PAUSE {NAME}")
        before = pool.server.transactions()
        harness.wait_until(lambda: pool.waiting() == CLIENTS[pool.mode], "all clients to wait")
        harness.check(pool.server.transactions() == before, "a transaction during the pause")
        pool.console(f"RESUME {NAME}")
    wait_progress(pool)
    end_load(pool, load)


def wait_setting(pool, name, value):
    harness.wait_until(
        lambda: any(row.startswith(f"{name}|{value}|") for row in pool.console("SHOW CONFIG")),
        f"{name} = {value}")


def reload_under_load(pool):
    """Reloads by the console and by SIGHUP: a larger pool, other connections, a smaller pool."""
    load = pool.load("-T", SECONDS)
    wait_progress(pool)
    pool.configure(size=POOL + 2)
    pool.console("RELOAD")
    harness.wait_until(lambda: len(pool.server_connections()) > POOL, "a greater pool")
    pool.configure(size=POOL + 2, lifetime=1)
    pool.program.kill(signal.SIGHUP)
    wait_setting(pool, "server_lifetime", 1)
    before = pool.server_connections()
    harness.wait_until(lambda: not before & pool.server_connections(), "other connections")
    pool.configure(size=2)
    pool.program.kill(signal.SIGHUP)
    wait_setting(pool, "default_pool_size", 2)
    wait_progress(pool)
    end_load(pool, load)
    # Not under load: for a moment after it, pgbouncer may reject clients, on the original as well.
    pool.console("RECONNECT")
    check_load(pool, 5)


def shutdown_under_load(run, server, number):
    """All of pgbench's completed transactions are in the tables, and none in part."""
    pool = Pool(run, server, "transaction")
    load = pool.load("-T", SECONDS)
    wait_progress(pool)
    pool.end(number)
    load.wait(None)
    server.check_totals()


def test(run):
    harness.need("pgbouncer")
    program("pgbench")
    server = Server(run)
    transaction_pool(run, server)
    session_pool(run, server)
    shutdown_under_load(run, server, signal.SIGTERM)
    shutdown_under_load(run, server, signal.SIGINT)
    server.stop()


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
