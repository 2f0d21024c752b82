#!/usr/bin/env python3
"""BitTorrent by two daemons, controlled over their web interface, which uses evhttp: one has the
files, and the other downloads them."""

import gzip
import http.client
import json
import os
import random
import threading

import harness
from peers.torrent import introduce

SIZES = {"one": 1_500_000, "two": 40_001, "three": 7}
PAGES = {"index.html": 300, "long.js": 700_000, "style.css": 20_000}
CLIENTS = 4
REQUESTS = 40
CONFLICT = 409
SESSION = "X-Transmission-Session-Id"


class Remote:
    """A client of the web interface, on one connection."""

    def __init__(self, port):
        self.port_ = port
        self.connection_ = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.session_ = ""

    def ask(self, method, **arguments):
        """Returns the result of a method."""
        question = json.dumps({"method": method, "arguments": arguments})
        status, data = self.post_(question)
        if status == CONFLICT:  # The first response contains the session's number.
            status, data = self.post_(question)
        answer = json.loads(data)
        harness.check((status, answer["result"]) == (200, "success"), f"{method}: {answer}")
        return answer["arguments"]

    def post_(self, question):
        self.connection_.request("POST", "/transmission/rpc", question, {SESSION: self.session_})
        response = self.connection_.getresponse()
        self.session_ = response.getheader(SESSION, self.session_)
        return response.status, response.read()

    def get(self, path, **headers):
        """A file of its pages."""
        self.connection_.request("GET", path, headers=headers)
        response = self.connection_.getresponse()
        data = response.read()
        packed = response.getheader("Content-Encoding") == "gzip"
        return response.status, gzip.decompress(data) if packed else data


class Daemon:
    def __init__(self, run, name, pages):
        self.name = name
        self.directory = run.path(name)
        os.makedirs(f"{self.directory}/files")
        self.peer_port, self.port = harness.free_port(), harness.free_port()
        run.file(f"{name}/settings.json", json.dumps({
            "bind-address-ipv4": "127.0.0.1", "bind-address-ipv6": "::1", "dht-enabled": False,
            "download-dir": f"{self.directory}/files", "encryption": 0, "lpd-enabled": False,
            "peer-port": self.peer_port, "pex-enabled": False, "port-forwarding-enabled": False,
            "rpc-bind-address": "127.0.0.1", "rpc-port": self.port, "utp-enabled": False}))
        self.program = run.start("transmission-daemon", "--foreground", "--config-dir",
                                 self.directory, env={"TRANSMISSION_WEB_HOME": pages})
        self.program.wait_tcp(self.port)
        self.program.wait_tcp(self.peer_port)
        self.program.assert_uses()
        self.remote = Remote(self.port)

    def add(self, torrent):
        self.remote.ask("torrent-add", filename=torrent)

    def info_hash(self):
        torrents = self.remote.ask("torrent-get", fields=["hashString"])["torrents"]
        return bytes.fromhex(torrents[0]["hashString"])

    def has_all(self):
        torrents = self.remote.ask("torrent-get", fields=["percentDone", "error", "errorString"])
        harness.check(not any(each["error"] for each in torrents["torrents"]), f"{torrents}")
        return all(each["percentDone"] == 1 for each in torrents["torrents"])

    def wait_all(self):
        self.program.wait_for(self.has_all, f"{self.name} to have all")


def ask_many(port, pages, seed, problems):
    """Requests pages and calls, one after the other on a connection."""
    source = random.Random(seed)
    remote = Remote(port)
    try:
        for _ in range(REQUESTS):
            name, page = source.choice(sorted(pages.items()))
            coding = source.choice(("gzip", "identity"))
            answer = remote.get(f"/transmission/web/{name}", **{"Accept-Encoding": coding})
            harness.check(answer == (200, page), f"{name}: {answer[0]}, {len(answer[1])} bytes")
            harness.check("rpc-version" in remote.ask("session-get"), "session-get")
        harness.check(remote.get("/transmission/web/none")[0] == 404, "a page that does not exist")
        harness.check(remote.get("/none")[0] == 301, "a place that does not exist")
    except (harness.Failure, OSError, http.client.HTTPException) as problem:
        problems.append(repr(problem))


def check_pages(daemon, pages):
    problems = []
    clients = [threading.Thread(target=ask_many, args=(daemon.port, pages, seed, problems))
               for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    harness.check(not problems, f"{problems}")


def write_all(directory, contents):
    os.mkdir(directory)
    for name, content in contents.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content)


def read_all(directory):
    contents = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            contents[name] = file.read()
    return contents


def contents_of(sizes, source):
    """Text, because random bytes cannot be compressed."""
    return {name: source.randbytes(size // 2 + 1).hex()[:size].encode()
            for name, size in sizes.items()}


def test(run):
    harness.need("transmission-daemon", "transmission-create", "transmission-remote")
    source = random.Random(run.seed)
    pages, data = contents_of(PAGES, source), contents_of(SIZES, source)
    write_all(run.path("pages"), pages)
    seeder, leecher = (Daemon(run, name, run.path("pages")) for name in ("has", "gets"))
    write_all(f"{seeder.directory}/files/data", data)
    torrent = run.path("data.torrent")
    run.call("transmission-create", "-o", torrent, "-s", 32, f"{seeder.directory}/files/data")
    seeder.add(torrent)
    leecher.add(torrent)
    seeder.wait_all()
    harness.check(not leecher.has_all(), "it has the files before anybody was asked")
    introduce(seeder.peer_port, leecher.peer_port, seeder.info_hash())
    check_pages(seeder, pages)  # During the upload: peers take turns of 10 s.
    leecher.wait_all()
    harness.check(read_all(f"{leecher.directory}/files/data") == data, "other files")
    listed = run.call("transmission-remote", f"127.0.0.1:{leecher.port}", "--list")
    harness.check("100%" in listed and "data" in listed, listed)
    leecher.remote.ask("session-close")
    leecher.program.wait(0)
    seeder.program.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
