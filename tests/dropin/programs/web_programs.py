#!/usr/bin/env python3
"""Programs that fetch from a web server, or are a proxy of one."""

import os

import harness
from peers.table import Table
from peers.web import WebServer, checksum, random_contents

SIZES = {"small": 700, "page": 60_000, "big": 3_000_000}
WORDS = 5_000

table = Table()


def fetch(run, address, *options, dropin=False):
    """Returns curl's output, as bytes."""
    client = run.start("curl", "--silent", "--show-error", "--fail", "--max-time", 60, *options,
                       address, dropin=dropin)
    return client


def check_fetched(client, content):
    client.wait()
    got = client.output_bytes()
    harness.check(checksum(got) == checksum(content), f"{len(got)} bytes, not {len(content)}")


@table.row("links2")
def links2(run):
    words = [f"word{number}" for number in range(WORDS)]
    page = f"<html><body><p>{' '.join(words)}</p></body></html>".encode()
    with WebServer({"page.html": page}) as web:
        address = f"http://127.0.0.1:{web.port}/page.html"
        dumps = [run.start("links2", "-dump", address, env={"TERM": "dumb"},
                           weather=harness.Weather(share=0.3)) for _ in range(4)]
        for program in dumps:
            got = program.wait().split()
            harness.check(got == words, f"{len(got)} words: {got[:5]}")


PHP = """
$client = new http\\Client("curl");
if (!$client->configure(["use_eventloop" => true])) exit(3);
foreach (array_slice($argv, 1) as $address) {
  $client->enqueue(new http\\Client\\Request("GET", $address), function($response) {
    echo hash("sha256", $response->getBody()->toString()), "\\n";
    return true;
  });
}
$client->send();
"""


# PHP binds its modules directly to the C library, not to preloaded functions.
@table.row("php", has_traffic=False)
def php(run):
    """pecl_http, whose requests run concurrently."""
    contents = random_contents(SIZES)
    with WebServer(contents) as web:
        wanted = [name for name in contents for _ in range(5)]
        program = run.start("php", run.file("fetch.php", "<?php" + PHP),
                            *(f"http://127.0.0.1:{web.port}/{name}" for name in wanted))
        program.assert_uses()
        got = program.wait().split()
        expected = [checksum(contents[name]) for name in wanted]
        harness.check(sorted(got) == sorted(expected), f"{len(got)} answers: {got[:3]}")


@table.row("apt-cacher-ng", "curl")
def apt_cacher_ng(run):
    """Fetches packages through the cache, and again after their server has stopped."""
    contents = {f"pool/{name}_1_all.deb": data for name, data in random_contents(SIZES).items()}
    port = harness.free_port()
    for name in ("cache", "log"):
        os.mkdir(run.path(name))
        os.chmod(run.path(name), 0o777)
    server = run.start("apt-cacher-ng", "ForeGround=1", f"Port={port}", "BindAddress=127.0.0.1",
                       f"CacheDir={run.path('cache')}", f"LogDir={run.path('log')}",
                       "AllowUserPorts=0", f"PidFile={run.path('pid')}")
    server.wait_tcp(port)
    server.assert_uses()
    # It takes ports from 32,768 on for negative numbers.
    web_port = harness.free_port()
    proxy = ("--proxy", f"http://127.0.0.1:{port}")
    address = f"http://127.0.0.1:{web_port}"
    with WebServer(contents, port=web_port):
        for _ in range(2):
            clients = [(fetch(run, f"{address}/{name}", *proxy), name) for name in contents]
            for client, name in clients:
                check_fetched(client, contents[name])
    for name, content in contents.items():
        check_fetched(fetch(run, f"{address}/{name}", *proxy), content)


# With trickle, curl loses bytes.
FETCH = """
import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())
"""


@table.row("trickled", "trickle", has_traffic=False)
def trickled(run):
    """It divides a rate among the programs that run under trickle."""
    socket_path = run.path("trickled.socket")
    daemon = run.start("trickled", "-f", "-d", "2000", "-u", "2000", "-n", socket_path)
    daemon.wait_for(lambda: os.path.exists(socket_path), "the socket")
    daemon.assert_uses()
    contents = {"page": os.urandom(600_000)}
    with WebServer(contents) as web:
        clients = [run.start("trickle", "-n", socket_path, "python3", "-c", FETCH,
                             f"http://127.0.0.1:{web.port}/page", dropin=False) for _ in range(3)]
        for client in clients:
            check_fetched(client, contents["page"])


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
