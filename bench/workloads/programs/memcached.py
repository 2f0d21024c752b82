#!/usr/bin/env python3
"""memcached, one worker thread, loaded by libmemcached's memaslap: 9 gets to a set, 100 bytes."""
import os
import pathlib
import pwd
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402


def main():
    options = server.arguments()
    user = pwd.getpwuid(os.getuid()).pw_name  # it refuses to be root without being told so
    with server.running(options, "-l", "127.0.0.1", "-p", "PORT", "-t", "1", "-u", user) as (
            process, port):
        text, spent = server.load(options, process, "-s", f"127.0.0.1:{port}", "-T", "1",
                                  "-c", str(options.connections), "-x", str(options.requests),
                                  "-w", "1k", "-X", "100")
        library = server.mapped(options, process, "libevent")
    got = {name: int(n) for name, n in re.findall(r"^(cmd_\w+|get_misses): (\d+)$", text, re.M)}
    rate = re.search(r"TPS: (\d+)", text)
    if rate is None or got.get("get_misses") != 0:
        sys.exit(f"memaslap: {text[-500:]}")
    server.report(options, library, got["cmd_get"] + got["cmd_set"], int(rate[1]), spent)


if __name__ == "__main__":
    main()
