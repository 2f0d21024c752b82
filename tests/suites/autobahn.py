"""Runs Autobahn's cases against the WebSockets of both sides."""

import scripts

NAME = "autobahn"
TITLE = "Autobahn's cases of WebSockets, asked of server and client"
SOURCES = []
PIP = ["kosoku"]
PROGRAMS = []


def run(world):
    peer = scripts.built(world, "http_websocket_peer")
    done = scripts.run_script(world, "http/websocket_cases.py", ["--long", peer], 3600)
    return scripts.report([("both sides", *done)])
