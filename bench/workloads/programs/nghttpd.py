#!/usr/bin/env python3
"""nghttpd, a file of 1 KiB over HTTP/2 in cleartext, loaded by h2load with 10 streams at a time."""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402


def main():
    options = server.arguments()
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "file").write_bytes(bytes(range(256)) * 4)
        with server.running(options, "--no-tls", "-a", "127.0.0.1", "-d", directory, "PORT") as (
                process, port):
            text, spent = server.load(options, process, "-n", str(options.requests),
                                      "-c", str(options.connections), "-m", "10",
                                      f"http://127.0.0.1:{port}/file")
            library = server.mapped(options, process, "libev.so")
    rate = re.search(r"([\d.]+) req/s", text)
    answered = re.search(r"(\d+) 2xx", text)
    if rate is None or answered is None or int(answered[1]) != options.requests:
        sys.exit(f"h2load: {text[-700:]}")
    server.report(options, library, int(answered[1]), float(rate[1]), spent)


if __name__ == "__main__":
    main()
