#!/usr/bin/env python3
"""Starts a server of Python with application.py, and has it loaded by the client of http.

--name is the contestant. Each server has one process that serves, and no access log.
"""
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "asyncio"), str(HERE.parents[1])]
import loops  # noqa: E402

OPTIONS = loops.arguments(sys.argv[1:])

from harness import server  # noqa: E402

UVICORN = ("-m", "uvicorn", "application:app", "--port", "PORT", "--http", "httptools",
           "--lifespan", "off", "--no-access-log", "--log-level", "error", "--loop")
# Of each contestant: the packages, the first of which is the server, and its arguments.
SERVERS = {
    "spate": (("spate_server", "spate"), ("-m", "spate_server", "application:app", "--port", "PORT",
                                          "--lifespan", "off", "--log-level", "error")),
    "spate_uvicorn": (("uvicorn", "httptools", "spate"), (*UVICORN, "spate:new_event_loop")),
    "uvicorn_asyncio": (("uvicorn", "httptools"), (*UVICORN, "asyncio")),
    "uvicorn_uvloop": (("uvicorn", "httptools", "uvloop"), (*UVICORN, "uvloop")),
    "granian": (("granian",), ("-m", "granian", "--interface", "asginl", "--port", "PORT",
                               "--workers", "1", "--no-log", "application:app")),
    "hypercorn": (("hypercorn", "uvloop"), ("-m", "hypercorn", "--worker-class", "uvloop",
                                            "--config", "CONFIGURATION", "--bind",
                                            "127.0.0.1:PORT", "application:app")),
}
# Its default closes a connection after 1,000 requests.
HYPERCORN = "keep_alive_max_requests = 1000000000\nworkers = 0\n"


def check(names):
    """Leaves the contestant out if a package is missing."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            loops.leave_out(f"{name} is not there: {sys.executable} -m pip install --target "
                            f"{OPTIONS['peers']} {name}")


def version_of(name):
    if name == "spate_server":
        return importlib.import_module(name).__version__
    return importlib.metadata.version(name)


def serving_process(process):
    """Returns the pid that serves. granian serves in a child, which has more than one thread."""
    if OPTIONS["name"] != "granian":
        return process.pid
    end = time.monotonic() + server.READY_S
    while time.monotonic() < end:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        for child in children.split():
            command = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
            if b"resource_tracker" not in command:
                return int(child)
        time.sleep(0.01)
    raise SystemExit("granian has no process that serves")


def main():
    paths = [str(HERE), OPTIONS["package"], OPTIONS["server"], OPTIONS["peers"]]
    sys.path[:0] = paths
    names, words = SERVERS[OPTIONS["name"]]
    check(names)
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    options = server.arguments()
    port = server.free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as configuration:
        configuration.write(HYPERCORN)
        configuration.flush()
        words = [word.replace("PORT", str(port)).replace("CONFIGURATION", configuration.name)
                 for word in words]
        with server.running(options, *words, port=port) as (process, _):
            loops.report(version=version_of(names[0]), library="")
            text, _ = server.load(options, process, *sys.argv[1:], "--external", str(port),
                                  "--pid", str(serving_process(process)))
            print(text, end="")


if __name__ == "__main__":
    main()
