"""Runs h2spec's cases against the HTTP/2 server."""

import scripts
import suite

NAME = "h2spec"
TITLE = "h2spec's cases of HTTP/2, over TCP and TLS"
SOURCES = []
GO = ["github.com/summerwind/h2spec/cmd/h2spec@latest"]
PROGRAMS = ["go"]


def run(world):
    suite.need(*PROGRAMS)
    server = scripts.built(world, "http2_peers_server")
    done = scripts.run_script(world, "http/http2_spec.py", [server], 600)
    return scripts.report([("server", *done)])
