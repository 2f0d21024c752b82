"""For contestants that are a server of the distribution: starts it, has it loaded, ends it.

The server runs in the environment of this process, and so on the library that LD_LIBRARY_PATH there
gives it; the client that loads it always runs on the original. Each is pinned to its own core.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import shlex
import signal
import socket
import subprocess
import sys

# A server under callgrind takes its time. The harness kills the whole session if it waits longer.
READY_S, LOAD_S, END_S = 60, 170, 60

# memcached sets its limit of descriptors to the number of connections allowed, 1,024. Valgrind
# reserves 12 and rejects any other limit.
DESCRIPTORS = 1024 + 12
MOST_DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def arguments():
    """Returns the arguments that the harness passes; a parameter of the case that no server
    needs is ignored."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="the server")
    parser.add_argument("--client", required=True, help="what loads it")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--processes", type=int, default=1, help="how many servers")
    parser.add_argument("--under", default="", help="a tool that is to run the server")
    return parser.parse_known_args()[0]


def free_port():
    """Returns a free port below the ephemeral range, so that no other socket takes it meanwhile."""
    while True:
        port = random.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def pin(choose):
    os.sched_setaffinity(0, {choose(os.sched_getaffinity(0))})


@contextlib.contextmanager
def running(options, *words, port=None):
    """The server, from when it accepts connections on: on `port`, or on one put in for PORT."""
    most = DESCRIPTORS if port is None else MOST_DESCRIPTORS

    def prepare():
        if not options.under:
            pin(max)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    port = port or free_port()
    command = [*shlex.split(options.under), options.program,
               *(str(port) if word == "PORT" else word for word in words)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=prepare,
                              process_group=0)
    try:
        wait_until_ready(server, port)
        yield server, port
        if server.poll() is not None:
            raise SystemExit(f"{options.program}: ended while it was loaded")
    finally:
        end(server, counted=bool(options.under))


def wait_until_ready(server, port):
    for _ in range(READY_S * 100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.01)
            raise SystemExit(f"{server.args[0]}: ended with {server.returncode} at its start")
    raise SystemExit(f"{server.args[0]}: accepts no connection after {READY_S} s")


def end(server, counted):
    """Ends the server and the tool around it, which is in the same group and prints its count.

    memcached takes up to a second to react to a polite request; timed runs need not wait for it.
    """
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM if counted else signal.SIGKILL)
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        raise SystemExit(f"{server.args[0]}: does not end") from None


def processor_ns(server):
    """Returns the processor time of all its threads."""
    tasks = pathlib.Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def load(options, server, *words):
    """Runs the client, and returns its output and the server's processor time until then."""
    before = processor_ns(server)
    environment = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    try:
        done = subprocess.run([options.client, *words], text=True, capture_output=True,
                              check=False, env=environment, timeout=LOAD_S,
                              preexec_fn=None if options.under else lambda: pin(min))
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{options.client}: no end after {LOAD_S} s") from None
    spent = processor_ns(server) - before
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(done.args)}: status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout, spent


def load_there(options, server, port):
    """As a client of ours, with all our arguments, loads a server that it has not started."""
    return load_all(options, [(server, port)])


def load_all(options, servers):
    """Loads several servers, (process, port) each, with one client."""
    ports, pids = ([str(each) for each in column]
                   for column in zip(*((port, server.pid) for server, port in servers)))
    text, _ = load(options, servers[0][0], *sys.argv[1:], "--external", ",".join(ports), "--pid",
                   ",".join(pids))
    return text


def mapped(options, server, prefix):
    """Returns the mapped shared object whose name begins with `prefix`; not under a tool."""
    if options.under:
        return ""
    for line in pathlib.Path(f"/proc/{server.pid}/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if pathlib.Path(path).name.startswith(prefix):
            return path
    raise SystemExit(f"{server.args[0]}: {prefix} is not mapped into it")


def version(options):
    done = subprocess.run([options.program, "--version"], text=True, capture_output=True,
                          check=False)
    return done.stdout.strip()


def nginx_version(program):
    said = subprocess.run([program, "-v"], text=True, capture_output=True, check=False).stderr
    return said.strip().rpartition("/")[2]


def tell(**row):
    print(json.dumps(row, allow_nan=False))


def report(options, library, answered, per_second, spent_ns):
    """One run in the protocol of all contestants."""
    tell(version=version(options), library=library)
    tell(metric="requests_per_s", unit="/s", value=per_second)
    tell(metric="processor_us", unit="us", value=spent_ns / 1e3 / answered)
    tell(work="answered", value=answered)
    tell(ops="request", value=answered)
