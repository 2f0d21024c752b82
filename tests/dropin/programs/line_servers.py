#!/usr/bin/env python3
"""Small servers with protocols of lines: a few clients at once, each of which checks every line."""

import http.client
import json
import os
import re
import threading

import harness
from peers.lines import Lines
from peers.table import Table

CLIENTS = 8
ROUNDS = 20
CALLS = 200

table = Table()


def all_at_once(client, count=CLIENTS):
    """Runs client(number) in threads, and raises the first exception of any."""
    failures = []

    def guarded(number):
        try:
            client(number)
        except BaseException as failure:  # Raised again by the test's own thread.
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# With the original library too, it fails under any faults.
@table.row("poolcounterd", has_traffic=False)
def poolcounterd(run):
    """A lock that one client at a time may have. The port is fixed, so the address varies."""
    host = f"127.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.1"
    server = run.start("poolcounterd", "-l", host, weather=False)
    server.wait_tcp(7531, host)
    server.assert_uses()
    holders = []

    def client(number):
        with Lines(7531, host) as talk:
            for _ in range(ROUNDS):
                talk.ask("ACQ4ME key 1 100 60", "LOCKED")
                holders.append(number)
                harness.check(holders == [number], f"{holders} have the lock")
                holders.remove(number)
                talk.ask("RELEASE", "RELEASED")
            talk.ask("RELEASE", "NOT_LOCKED")

    all_at_once(client)
    with Lines(7531, host) as first, Lines(7531, host) as second:
        first.ask("ACQ4ME key 1 1 60", "LOCKED")
        second.ask("ACQ4ME key 1 1 60", "QUEUE_FULL")
        second.ask("ACQ4ME key 1 2 1", "TIMEOUT")


@table.row("bitlbee")
def bitlbee(run):
    """One process serves all clients; its user interface is a channel."""
    port = harness.free_port()
    server = run.start("bitlbee", "-D", "-n", "-i", "127.0.0.1", "-p", port, "-d", run.directory,
                       "-c", "/dev/null", "-P", run.path("bitlbee.pid"), user="nobody")
    server.wait_tcp(port)
    server.assert_uses()

    def client(number):
        with Lines(port, end="\r\n") as talk:
            talk.say(f"NICK user{number}", f"USER user{number} * * :name")
            talk.hear_until(" 001 ")
            talk.hear_until("JOIN")
            for message in range(ROUNDS):
                talk.say(f"PING :{message}")
                talk.hear_until(f"PONG localhost :{message}")
            talk.say("PRIVMSG &bitlbee :help commands")
            talk.hear_until("account")
            talk.say("QUIT")
            talk.hear_until("ERROR")

    all_at_once(client)


@table.row("inetd", has_traffic=False)  # Its sockets block.
def inetd(run):
    """A child for each connection: programs that answer, and one with the option `wait`."""
    ports = [harness.free_port() for _ in range(3)]
    user = "nobody" if harness.is_root() else os.environ["USER"]
    lines = [f"127.0.0.1:{ports[0]} stream tcp nowait.1000 {user} /bin/cat cat",
             f"127.0.0.1:{ports[1]} stream tcp nowait.1000 {user} /usr/bin/rev rev",
             f"127.0.0.1:{ports[2]} stream tcp nowait.1000 {user} /bin/echo echo hello"]
    server = run.start("inetd", "-d", run.file("inetd.conf", "\n".join(lines) + "\n"))
    server.wait_tcp(ports[2])
    server.assert_uses()

    def client(number):
        for _ in range(3):
            with Lines(ports[0]) as talk:
                talk.ask(f"text {number}", f"text {number}")
            with Lines(ports[1]) as talk:
                talk.say(f"abc{number}")
                talk.close_sending()
                heard = talk.hear()
                harness.check(heard == f"{number}cba", f"rev says {heard!r}")
            with Lines(ports[2]) as talk:
                harness.check(talk.hear_all() == b"hello\n", "no hello")

    all_at_once(client)


def start_redis(run):
    port = harness.free_port()
    run.start("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
              "--notify-keyspace-events", "KA", dropin=False).wait_tcp(port)
    return port


@table.row("rtpengine", "redis-server")
def rtpengine(run):
    """It subscribes to redis for calls of other rtpengines; these messages are none, and it logs
    each."""
    port, redis_port = harness.free_port(), start_redis(run)
    server = run.start("rtpengine", "--config-file=none", "--foreground", "--log-stderr",
                       "--log-level=7", "--interface=127.0.0.1", f"--listen-ng=127.0.0.1:{port}",
                       f"--redis=127.0.0.1:{redis_port}/0", "--subscribe-keyspace=0", "--table=-1",
                       "--num-threads=1", weather=harness.Weather(share=0.7, kinds="short"))
    server.assert_uses()
    server.wait_for(lambda: has_listener(redis_port), "it to listen")
    with Lines(redis_port, end="\r\n") as talk:
        for number in range(CALLS):
            talk.ask(f"SET call{number} nothing", "+OK")
    server.wait_output(f"'call{CALLS - 1}'")
    # Calls that existed when it started are reported twice.
    got = set(re.findall(r"restore call ID 'call(\d+)'", server.output()))
    harness.check(len(got) == CALLS, f"it heard of {len(got)} calls")


def has_listener(port):
    with Lines(port, end="\r\n") as talk:
        talk.say("PUBSUB NUMPAT")
        return talk.hear() == ":1"


@table.row("webdis", "redis-server")
def webdis(run):
    """HTTP in front of redis, with two threads."""
    port, redis_port = harness.free_port(), start_redis(run)
    settings = {"redis_host": "127.0.0.1", "redis_port": redis_port, "http_host": "127.0.0.1",
                "http_port": port, "threads": 2, "daemonize": False, "database": 0,
                "logfile": run.path("webdis.log")}
    # With the original library too, it closes a connection when a read finds no bytes.
    server = run.start("webdis", run.file("webdis.json", json.dumps(settings)),
                       weather=harness.Weather(kinds="short"))
    server.wait_tcp(port)
    server.assert_uses()

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for value in range(ROUNDS):
            text = f"v{value}" * 100
            for request, answer in ((f"SET/key{number}/{text}", {"SET": [True, "OK"]}),
                                    (f"GET/key{number}", {"GET": text})):
                connection.request("GET", f"/{request}")
                got = json.loads(connection.getresponse().read())
                harness.check(got == answer, f"{request} was answered {got}")

    all_at_once(client)


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
