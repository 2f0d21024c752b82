#!/usr/bin/env python3
"""remctld, which runs commands for users with a ticket: users at once, long outputs, refusals."""

import signal

import harness
from peers.kerberos import REALM, SERVICE, USERS, Kerberos

LINES = 150_000
INPUT_BYTES = 90_000  # More than one message.
REFUSALS = {"secret": "Access denied", "unknown": "Unknown command"}

CONFIGURATION = """
test echo {directory}/echo anyuser:auth
test count {directory}/count anyuser:auth
test fail {directory}/fail anyuser:auth
test size {directory}/size stdin=last anyuser:auth
test secret {directory}/echo princ:user0@{realm}
"""

# With the original library too, it closes the connection if a send fails with EAGAIN.
WEATHER = harness.Weather(kinds="interrupt,short")

COMMANDS = {
    "echo": 'shift; echo "$REMOTE_USER: $@"',
    "count": 'seq 1 "$2"',
    "fail": "echo to stdout; echo to stderr >&2; exit 7",
    "size": "wc -c",
}


class Server:
    def __init__(self, run):
        self.run_ = run
        self.kerberos_ = Kerberos(run)
        self.kerberos_.start(dropin=False)
        self.keytab_ = run.path("keytab")
        self.kerberos_.call("kadmin.local", "ktadd", "-k", self.keytab_, SERVICE)
        for name, text in COMMANDS.items():
            run.file(name, f"#!/bin/sh\n{text}\n", 0o755)
        for program in [self.kerberos_.ask(user, self.kerberos_.by_tcp) for user in range(USERS)]:
            program.wait()
        self.port = harness.free_port()
        self.program = self.start_()

    def start_(self):
        configuration = self.run_.file("remctl.conf", CONFIGURATION.format(
            directory=self.run_.directory, realm=REALM))
        server = self.run_.start("remctld", "-m", "-F", "-S", "-b", "127.0.0.1", "-p", self.port,
                                 "-f", configuration, "-k", self.keytab_,
                                 env=self.kerberos_.by_udp, weather=WEATHER)
        server.wait_tcp(self.port)
        server.assert_uses()
        return server

    def ask(self, user, *command):
        """Returns a running client."""
        environment = self.kerberos_.by_tcp | self.kerberos_.cache(user)
        return self.run_.start("remctl", "-p", self.port, "-s", SERVICE, "127.0.0.1", *command,
                               dropin=False, env=environment)


def check_all_at_once(server):
    greetings = [server.ask(user, "test", "echo", f"hello from {user}") for user in range(USERS)]
    counts = [server.ask(user, "test", "count", LINES + user) for user in range(USERS)]
    sizes = [server.ask(user, "test", "size", "x" * INPUT_BYTES) for user in range(USERS)]
    for user, (greeting, count, size) in enumerate(zip(greetings, counts, sizes)):
        harness.check(greeting.wait() == f"user{user}@{REALM}: hello from {user}\n",
                      greeting.output())
        wanted = "".join(f"{line}\n" for line in range(1, LINES + user + 1))
        harness.check(count.wait() == wanted, f"{len(count.output())} bytes of {len(wanted)}")
        harness.check(size.wait() == f"{INPUT_BYTES}\n", size.output())


def check_failures(server):
    output = server.ask(1, "test", "fail").wait(status=7)
    harness.check(sorted(output.splitlines()) == ["to stderr", "to stdout"], output)
    harness.check("user0" in server.ask(0, "test", "secret", "x").wait(), "user0 is refused")
    for subcommand, refusal in REFUSALS.items():
        output = server.ask(1, "test", subcommand).wait(status=255)
        harness.check(output == f"{refusal}\n", output)


def test(run):
    harness.need("remctld", "remctl", "krb5kdc", "kdb5_util", "kadmin.local", "kinit", "seq")
    server = Server(run)
    check_all_at_once(server)
    check_failures(server)
    server.program.kill(signal.SIGHUP)
    check_failures(server)
    server.program.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
