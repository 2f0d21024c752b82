#!/usr/bin/env python3
"""Servers of one machine: on Unix sockets, or on a descriptor that they inherit."""

import json
import os
import re
import socket
import struct

import harness
from peers.fastcgi import ask
from peers.streams import receive
from peers.table import Table

CLIENTS = 6

table = Table()

SHOW = """#!/bin/sh
echo '{"arguments": "'"$*"'"}'
"""


@table.row("bgplgd")
def bgplgd(run):
    """FastCGI: a child prints the answer to each request."""
    path = run.path("bgplgd.socket")
    if not harness.is_root():
        raise harness.Skip("root is missing: bgplgd gives its rights up")
    server = run.start("bgplgd", "-d", "-U", "nobody", "-s", path,
                       "-p", run.file("show", SHOW, 0o755),
                       weather=harness.Weather(share=0.2, kinds="short"))
    server.wait_unix(path)
    server.assert_uses()
    # One at a time: with several at once it sometimes ends, with the original library too.
    heard = 0
    for number in range(CLIENTS):
        neighbor = f"10.0.0.{number}"
        data = ask(path, "/rib", f"neighbor={neighbor}")
        harness.check(data is None or neighbor.encode() in data, f"not of {neighbor}: {data}")
        heard += data is not None
    harness.check(heard > CLIENTS / 2, f"{heard} answers")


@table.row("kickpass", has_traffic=False)  # Its sockets block.
def kickpass(run):
    """An agent that keeps a safe open. ssh-askpass replaces the user who types the password."""
    askpass = run.file("ssh-askpass", "#!/bin/sh\necho secret\n", 0o755)
    env = {"PATH": f"{run.directory}:{harness.search_path()}", "EDITOR": "true"}
    run.call("kickpass", "init", env=env, dropin=False)
    agent = run.start("kickpass", "agent", "-d", env=env)
    agent.wait_output("KP_AGENT_SOCK=")
    agent.assert_uses()
    env["KP_AGENT_SOCK"] = re.search("KP_AGENT_SOCK=(.*)", agent.output())[1]
    run.call("kickpass", "create", "-g", "-o", "-l", 20, "safe", env=env, dropin=False)
    os.remove(askpass)
    passwords = {run.call("kickpass", "cat", "-p", "safe", env=env, dropin=False)
                 for _ in range(10)}
    harness.check(len(passwords) == 1 and len(passwords.pop().strip()) == 20, f"{passwords}")


def ask_seafile(stream, *call):
    """Calls a function by searpc's named pipes. Returns its result; None if the connection ends
    instead."""
    question = json.dumps({"service": "seafile-rpcserver", "request": json.dumps(call)}).encode()
    stream.sendall(struct.pack("=L", len(question)) + question)
    head = receive(stream, 4)
    return json.loads(receive(stream, *struct.unpack("=L", head)))["ret"] if head else None


@table.row("seaf-daemon", has_traffic=False)  # Its sockets block.
def seaf_daemon(run):
    """Settings survive a restart; its loop has the timers."""
    for directory in ("conf", "data", "work", "conf/logs"):
        os.mkdir(run.path(directory))
    path = run.path("data/seafile.sock")
    settings = {f"key{number}": f"value{number}" for number in range(100)}
    for told in (settings, {}):
        server = run.start("seaf-daemon", "-c", run.path("conf"), "-d", run.path("data"),
                           "-w", run.path("work"))
        server.wait_unix(path)
        server.assert_uses()
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(harness.ANSWER_SECONDS)
            stream.connect(path)
            for key, value in told.items():
                ask_seafile(stream, "seafile_set_config", key, value)
            for key, value in settings.items():
                got = ask_seafile(stream, "seafile_get_config", key)
                harness.check(got == value, f"{key}: {got}")
            ask_seafile(stream, "seafile_shutdown")
        server.wait()


IP = struct.Struct(">BBHHHBBH4s4s")
HERE, THERE = (socket.inet_aton(f"10.9.7.{number}") for number in (1, 2))
ICMP, TCP = 1, 6


def checksum(data):
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


def packet(protocol, payload):
    """Carries bytes from the network to the program."""
    head = IP.pack(0x45, 0, IP.size + len(payload), 1, 0, 64, protocol, 0, THERE, HERE)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def echo_request(number):
    body = struct.pack(">BBHHH", 8, 0, 0, 7, number) + b"payload" * 100
    return body[:2] + struct.pack(">H", checksum(body)) + body[4:]


# With the original library too, it takes a failed read for the end of its network.
@table.row("ocproxy", has_traffic=False)
def ocproxy(run):
    """A network below it, which sends pings."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.settimeout(20)
    port = harness.free_port()
    os.set_inheritable(far.fileno(), True)
    program = run.start("ocproxy", "-L", f"{port}:10.9.7.2:80", pass_fds=[far.fileno()],
                        env={"VPNFD": str(far.fileno()), "INTERNAL_IP4_ADDRESS": "10.9.7.1",
                             "INTERNAL_IP4_MTU": "1400"},
                        weather=False)
    program.wait_tcp(port)
    program.assert_uses()
    for number in range(100):
        near.send(packet(ICMP, echo_request(number)))
        while (got := near.recv(2000))[9] != ICMP:
            pass
        harness.check(got[20:21] == b"\0" and got[28:] == b"payload" * 100, f"{got}")


ZABBIX = """
Server=127.0.0.1:{nobody}
Hostname=test
ListenPort={port}
ListenIP=127.0.0.1
DBName={database}
LogType=console
PidFile={directory}/zabbix.pid
SocketDir={directory}
AllowRoot=1
StartPollers=1
StartPingers=0
StartDiscoverers=0
StartHTTPPollers=0
StartPreprocessors=2
"""


@table.row("zabbix_proxy")
def zabbix_proxy(run):
    """Its sixteen processes communicate by libevent; each request here goes to a different one."""
    database = f"/dev/shm/spate_zabbix_{os.getpid()}"  # On a disk, creating it takes ten seconds.
    try:
        conf = run.file("zabbix.conf", ZABBIX.format(
            nobody=harness.free_port(), port=harness.free_port(), directory=run.directory,
            database=database))
        server = run.start("zabbix_proxy", "-f", "-c", conf, user="nobody",
                           weather=harness.Weather(kinds="short"))
        server.wait_output("availability manager #1")
        server.assert_uses()
        for _ in range(10):
            answer = run.call("zabbix_proxy", "-c", conf, "-R", "diaginfo=preprocessing",
                              dropin=False)
            harness.check("Values:0 done:0" in answer, answer)
        server.stop()
    finally:
        for suffix in ("", "-journal"):
            if os.path.exists(database + suffix):
                os.remove(database + suffix)


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
