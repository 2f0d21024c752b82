#!/usr/bin/env python3
"""redis-server's PUBLISH, as a reference: its messages have a header, and it does more than pass
them on. Loaded by the client of all the others, which speaks its protocol."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402


def main():
    options = server.arguments()
    with server.running(options, "--bind", "127.0.0.1", "--port", "PORT", "--save", "",
                        "--client-output-buffer-limit", "pubsub 0 0 0") as (process, port):
        server.tell(version=server.version(options), library="")
        text, _ = server.load(options, process, *sys.argv[1:], "--redis", str(port))
    print(text, end="")


if __name__ == "__main__":
    main()
