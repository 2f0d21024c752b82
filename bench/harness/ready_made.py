"""Shared by the packaged HTTP servers: a directory with the files to serve, and the client's
arguments."""
import pathlib
import tempfile

from harness import server

HELLO, PAGE, FILE = b"Hello, World!", b"p" * 20 * 1024, b"f" * 1024 * 1024


def main(configuration, words, version):
    """`configuration` returns the configuration for a directory and a port. `words` is the
    command line, given the configuration's path, with PORT for the port."""
    options = server.arguments()
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for file, content in (("hello", HELLO), ("page", PAGE), ("file", FILE)):
            (root / file).write_bytes(content)
        port = server.free_port()
        (root / "configuration").write_text(configuration(root, port))
        with server.running(options, *words(root / "configuration"), port=port) as (process, _):
            server.tell(version=version(options.program), library="")
            print(server.load_there(options, process, port), end="")
