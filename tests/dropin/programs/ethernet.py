#!/usr/bin/env python3
"""Programs that need more than sockets: they run on an Ethernet that the test creates, as root."""

import re
import signal

import harness
from peers.table import Table
from peers.wire import connect

PORTS = 20
CLAIMED = "10.9.8.100"

# Greets every client that connects to one of the ports.
GREETER = """
import socket, sys, threading
def serve(port):
    with socket.create_server(("", port)) as listener:
        while True:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(f"SSH-2.0-Greeter_{port}\\r\\n".encode())
                stream.recv(1000)
for port in range(2200, 2200 + int(sys.argv[1])):
    threading.Thread(target=serve, args=(port,)).start()
print("ready", flush=True)
"""

# On the original library too, kernel messages are lost with a failing call.
WEATHER = harness.Weather(share=0.2, kinds="interrupt")

# ladvd's child may write no files at all, so its words go through a pipe. It needs a /run that no
# other user can write to.
LADVD = """
mount -t tmpfs -o mode=755 none /run && mkdir /run/ladvd && hostname "$1" || exit
exec ladvd -f -r -L -C -t wire > >(cat) 2>&1
"""

# Prints the bodies of POST requests.
POST_SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        print(self.path, self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 80), Handler)
print("ready", flush=True)
server.serve_forever()
"""

ASK = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('%s', 9))"

table = Table()


@table.row("lldpd", "lldpcli")
def lldpd(run):
    """Both discover each other, and later changes."""
    sides = connect(run)
    sockets = [run.path(f"{name}.socket") for name in ("left", "right")]
    for side, socket_path in zip(sides, sockets):
        daemon = side.start("lldpd", "-dd", "-u", socket_path, "-p", socket_path + ".pid",
                            weather=WEATHER)
        daemon.wait_unix(socket_path)
        daemon.assert_uses()

    def ask(number, *command):
        return run.call("lldpcli", "-u", sockets[number], *command, dropin=False)

    for number in range(2):  # Repeats each second what faults lose.
        ask(number, "configure", "lldp", "tx-interval", 1)
    for name in ("one", "two"):
        for number in range(2):
            ask(number, "configure", "system", "hostname", f"{name}{number}")
            ask(number, "update")
        for number in range(2):
            harness.wait_until(lambda n=number: f"{name}{1 - n}" in ask(n, "show", "neighbors"),
                               f"news of {name}{1 - number}")


class Ladvd:
    """One end of the wire, and the output of its client."""

    def __init__(self, side, name):
        self.side_ = side
        self.name = name
        self.daemon = side.start("unshare", "--mount", "--uts", "bash", "-c", LADVD, "-", name,
                                 weather=WEATHER)
        self.daemon.wait_output("running")
        self.daemon.assert_uses()

    def ask(self, *arguments, **how):
        return self.side_.run_.start("nsenter", "--mount", "--net", "-t", self.daemon.pid,
                                     "ladvdc", *arguments, **how).wait()

    def wait_for_news_of(self, other):
        for protocol in ("LLDP", "CDP"):
            harness.wait_until(lambda p=protocol: [other.name, p] in self.neighbours_(),
                               f"{protocol} of {other.name}")

    def neighbours_(self):
        """Returns [[name, protocol]]."""
        values = dict(re.findall("(.*)='(.*)'", self.ask("-b", dropin=False)))
        return [[value, values[key.replace("HOSTNAME", "PROTOCOL")]]
                for key, value in values.items() if key.startswith("HOSTNAME")]


@table.row("ladvd", "ladvdc", "lldpd", "lldpcli")
def ladvd(run):
    """Both discover each other, and each an lldpd; the client posts the findings."""
    left, right = connect(run)
    socket_path = run.path("watcher.socket")
    watcher = right.start("lldpd", "-dd", "-u", socket_path, "-p", socket_path + ".pid",
                          dropin=False)
    watcher.wait_unix(socket_path)
    one = Ladvd(left, "one")
    two = Ladvd(right, "two")
    one.wait_for_news_of(two)
    one.daemon.stop(0)
    three = Ladvd(left, "three")  # It sends a packet at once, and then every 30 s.
    two.wait_for_news_of(three)
    harness.check("SysName:      three" in
                  run.call("lldpcli", "-u", socket_path, "show", "neighbors", dropin=False),
                  "lldpd has not heard of it")
    check_post(right, two)
    for each in (two, three):
        each.daemon.stop(0)


def check_post(side, ladvd):
    """The server ends a client's list at an interrupted write, so the client repeats its posts."""
    server = side.start("python3", "-c", POST_SERVER, dropin=False)
    server.wait_output("ready")

    def is_posted(protocol):
        ladvd.ask("-p", "http://127.0.0.1/heard")
        return f"peer_hostname=three&peer_portname=wire&protocol={protocol}&" in server.output()

    for protocol in ("LLDP", "CDP"):
        harness.wait_until(lambda p=protocol: is_posted(p), f"the post of {protocol}")


@table.row("farpd", has_traffic=False)
def farpd(run):
    """Claims an unused address, but not one in use."""
    left, right = connect(run)
    daemon = left.start("farpd", "-d", "-i", "wire", "10.9.8.100-10.9.8.110")
    daemon.wait_output("listening on wire")
    daemon.assert_uses()
    hardware = daemon.output().split("ether src ")[1].strip()

    def is_claimed():
        right.call("python3", "-c", ASK % CLAIMED)
        return hardware in right.call("ip", "neighbour", "show", CLAIMED)

    harness.wait_until(is_claimed, "the address to be claimed")
    daemon.kill(signal.SIGKILL)  # It handles signals only after a packet.


@table.row("scanssh")
def scanssh(run):
    left, right = connect(run)
    right.start("python3", "-c", GREETER, PORTS, dropin=False).wait_output("ready")
    ports = ",".join(str(port) for port in range(2200, 2200 + PORTS))
    scanner = left.start("scanssh", "-i", "wire", "-s", "ssh", "-n", ports,
                         f"{right.address}/32")
    scanner.assert_uses()
    output = scanner.wait(status=1)  # Its own idea of success.
    for port in range(2200, 2200 + PORTS):
        harness.check(f"SSH-2.0-Greeter_{port}" in output, output)


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
