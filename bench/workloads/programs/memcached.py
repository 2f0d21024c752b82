#!/usr/bin/env python3
"""memcached, one worker thread, loaded by libmemcached's memaslap: 9 gets to a set, 100 bytes."""
import os
import pathlib
import pwd
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402

# Keys and values of one size, and nine gets to a set. Without a file memaslap creates one in the
# user's home directory, which it finds with getpwuid().
LOAD = """key
64 64 1
value
100 100 1
cmd
0 0.1
1 0.9
"""


def main():
    options = server.arguments()
    user = pwd.getpwuid(os.getuid()).pw_name  # Without -u it refuses to run as root.
    with server.running(options, "-l", "127.0.0.1", "-p", "PORT", "-t", "1", "-u", user) as (
            process, port), tempfile.NamedTemporaryFile("w", suffix=".cnf") as file:
        file.write(LOAD)
        file.flush()
        text, spent = server.load(options, process, "-s", f"127.0.0.1:{port}", "-T", "1",
                                  "-c", str(options.connections), "-x", str(options.requests),
                                  "-w", "1k", "-F", file.name)
        library = server.mapped(options, process, "libevent")
    got = {name: int(n) for name, n in re.findall(r"^(cmd_\w+|get_misses): (\d+)$", text, re.M)}
    rate = re.search(r"TPS: (\d+)", text)
    if rate is None or got.get("get_misses") != 0:
        sys.exit(f"memaslap: {text[-500:]}")
    server.report(options, library, got["cmd_get"] + got["cmd_set"], int(rate[1]), spent)


if __name__ == "__main__":
    main()
