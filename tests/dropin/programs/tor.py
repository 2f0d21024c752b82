#!/usr/bin/env python3
"""A private Tor network on loopback: three relays that vote on its members, and a client whose
pages and names go through them. The relays resolve names by evdns, and the client answers them
with an evdns server."""

import hashlib
import http.client
import os
import socket
import struct
import threading

import harness
from peers.dns import Client
from peers.dns_upstream import Upstream, address_of
from peers.lines import Lines
from peers.streams import receive
from peers.web import WebServer

# With the original too, a connection closes when its read is interrupted, and with EAGAIN a vote is
# often late, for which the network then waits 20 s.
WEATHER = harness.Weather(kinds="short")
RELAYS = 3
NAMES = 20
SIZES = (0, 1, 5_000, 400_000)
UPLOAD = 300_000
CONNECT, RESOLVE = 1, 0xf0  # 0xf0: Tor's socks-extensions.txt.
NO_SUCH_NAME = 3

NETWORK = """
TestingTorNetwork 1
DataDirectory {directory}
Nickname {name}
Address 127.0.0.1
PathsNeededToBuildCircuits 0.6
ServerDNSDetectHijacking 0
ServerDNSTestAddresses
Log notice stdout
"""

RELAY = """
ORPort 127.0.0.1:{relay_port}
DirPort 127.0.0.1:{port}
SocksPort 0
AuthoritativeDirectory 1
V3AuthoritativeDirectory 1
ContactInfo test@test.example
TestingV3AuthInitialVotingInterval 5
TestingV3AuthInitialVoteDelay 2
TestingV3AuthInitialDistDelay 2
V3AuthVotingInterval 10
V3AuthVoteDelay 2
V3AuthDistDelay 2
TestingDirAuthVoteExit *
TestingDirAuthVoteGuard *
TestingMinExitFlagThreshold 0
ExitRelay 1
ExitPolicy accept 127.0.0.0/8:*
ExitPolicy accept *:80
ServerDNSResolvConfFile {resolv_conf}
ServerDNSAllowBrokenConfig 0
"""

CLIENT = """
SocksPort 127.0.0.1:{port}
DNSPort 127.0.0.1:{dns_port}
ControlPort 127.0.0.1:{control_port}
"""


class Relay:
    """Its keys are made before it starts, because each relay needs those of all."""

    def __init__(self, run, number, resolv_conf):
        self.name = f"relay{number}"
        self.port, self.relay_port = harness.free_port(), harness.free_port()
        self.directory = run.path(self.name)
        self.settings = NETWORK + RELAY
        keys = f"{self.directory}/keys"
        os.makedirs(keys, 0o700)
        os.chmod(self.directory, 0o700)
        run.file("passphrase", "pass\n")
        with open(run.path("passphrase"), encoding="ascii") as passphrase:
            run.call("tor-gencert", "--create-identity-key", "--passphrase-fd", 0,
                     "-a", f"127.0.0.1:{self.port}", "-i", f"{keys}/authority_identity_key",
                     "-s", f"{keys}/authority_signing_key", "-c", f"{keys}/authority_certificate",
                     stdin=passphrase, dropin=False)
        self.settings = self.settings.format(**vars(self), resolv_conf=resolv_conf)
        self.identity = self.read_("keys/authority_certificate", "fingerprint ")
        nobody = f"DirAuthority no orport=1 v3ident={'0' * 40} 127.0.0.1:1 {'0' * 40}\n"
        run.call("tor", "-f", run.file(f"{self.name}.keys", self.settings + nobody),
                 "--list-fingerprint", dropin=False)
        self.fingerprint = self.read_("fingerprint", f"{self.name} ")

    def read_(self, name, before):
        with open(f"{self.directory}/{name}", encoding="ascii") as file:
            return file.read().partition(before)[2].split()[0]

    def has_all(self):
        """Returns whether its directory has all relays: for some, the first vote may come too
        early."""
        directory = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            directory.request("GET", "/tor/status-vote/current/consensus")
            return directory.getresponse().read().count(b"\nr relay") == RELAYS
        except (OSError, http.client.HTTPException):
            return False
        finally:
            directory.close()

    def authority(self):
        return (f"DirAuthority {self.name} orport={self.relay_port} v3ident={self.identity} "
                f"127.0.0.1:{self.port} {self.fingerprint}\n")


def start_network(run, upstream_port):
    """Returns the programs and the client's ports, once it has its first circuit."""
    resolv_conf = run.file("resolv.conf", f"nameserver 127.0.0.1:{upstream_port}\n")
    relays = [Relay(run, number, resolv_conf) for number in range(RELAYS)]
    authorities = "".join(relay.authority() for relay in relays)
    programs = [run.start("tor", "-f", run.file(relay.name + ".conf", relay.settings + authorities),
                          weather=WEATHER) for relay in relays]
    for relay, program in zip(relays, programs):
        program.wait_for(relay.has_all, "a directory of all relays")
    os.mkdir(run.path("client"), 0o700)
    ports = {name: harness.free_port() for name in ("port", "dns_port", "control_port")}
    settings = (NETWORK + CLIENT).format(directory=run.path("client"), name="client", **ports)
    client = run.start("tor", "-f", run.file("client.conf", settings + authorities),
                       weather=WEATHER)
    client.wait_output("Bootstrapped 100%")
    return [client, *programs], ports


def socks(port, command, name, name_port):
    """SOCKS 5 (RFC 1928): returns the connection, the reply code, and the address in the reply."""
    stream = socket.create_connection(("127.0.0.1", port), 40)
    stream.sendall(b"\x05\x01\x00")
    harness.check(receive(stream, 2) == b"\x05\x00", "no SOCKS")
    stream.sendall(struct.pack(">5B", 5, command, 0, 3, len(name)) + name.encode()
                   + struct.pack(">H", name_port))
    answer = receive(stream, 10)
    harness.check(len(answer) == 10, f"no answer for {name}: {answer}")
    return stream, answer[1], socket.inet_ntoa(answer[4:8])


def say(stream, lines, data=b""):
    """Reads a web server's response to its end."""
    with stream, stream.makefile("rb") as reader:
        stream.sendall("".join(line + "\r\n" for line in lines).encode() + b"\r\n" + data)
        return reader.read().partition(b"\r\n\r\n")


def fetch(port, web_port, name, content, problems):
    try:
        stream, code, _ = socks(port, CONNECT, "127.0.0.1", web_port)
        harness.check(code == 0, f"{name}: {code}")
        head, _, got = say(stream, [f"GET /{name} HTTP/1.1", "Host: a", "Connection: close"])
        harness.check(b" 200 " in head and got == content, f"{name}: {head}, {len(got)} bytes")
    except (harness.Failure, OSError) as problem:
        problems.append(repr(problem))


def check_pages(port):
    """Parallel downloads, and an upload."""
    contents = {f"page{number}": os.urandom(SIZES[number % len(SIZES)]) for number in range(16)}
    problems = []
    with WebServer(contents) as web:
        clients = [threading.Thread(target=fetch, args=(port, web.port, *page, problems))
                   for page in contents.items()]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        harness.check(not problems, f"{problems}")
        data = os.urandom(UPLOAD)
        stream, _, _ = socks(port, CONNECT, "127.0.0.1", web.port)
        _, _, got = say(stream, ["POST / HTTP/1.1", "Host: a", "Connection: close",
                                 f"Content-Length: {len(data)}"], data)
        harness.check(got.decode() == hashlib.sha256(data).hexdigest(), "another upload")
    stream, code, _ = socks(port, CONNECT, "127.0.0.1", harness.free_port())
    stream.close()
    harness.check(code != 0, "a connection to nobody")


def check_names(ports, upstream):
    """By DNS, and by SOCKS."""
    with Client(ports["dns_port"], may_lose=True) as client:
        names = [f"a{number}.example" for number in range(NAMES)] + ["lost.example"]
        answers = client.ask_all([(name, "A") for name in names])
        for name, answer in zip(names, answers):
            got = [data for _, _, data in answer.answers]
            harness.check(got == [address_of(name)], f"{name}: {got}")
        harness.check(upstream.lost, "no question was lost")
        harness.check(client.ask("none.example").code == NO_SUCH_NAME, "a name that does not exist")
    stream, code, address = socks(ports["port"], RESOLVE, "b.example", 0)
    stream.close()
    harness.check((code, address) == (0, address_of("b.example")), f"{code}, {address}")


def check_control(port):
    with Lines(port, end="\r\n") as talk:
        talk.ask("AUTHENTICATE", "250 OK")
        talk.ask("GETINFO status/circuit-established", "250-status/circuit-established=1")
        talk.ask("", "250 OK")
        talk.say("GETINFO ns/all")
        known = [line for line in talk.hear_until("250 OK") if line.startswith("r ")]
        harness.check(len(known) == RELAYS, f"{known}")
        talk.ask("SETEVENTS CIRC", "250 OK")
        talk.say("SIGNAL NEWNYM")
        talk.hear_until("250 OK")


def test(run):
    harness.need("tor", "tor-gencert")
    upstream_port = harness.free_port()
    with Upstream(upstream_port) as upstream:
        programs, ports = start_network(run, upstream_port)
        for program in programs:
            program.assert_uses()
        check_pages(ports["port"])
        check_names(ports, upstream)
        check_control(ports["control_port"])
        for program in programs:
            program.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
