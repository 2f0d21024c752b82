"""Shared by the packaged HTTP servers: a directory with the files to serve, and the client's
arguments."""
import contextlib
import pathlib
import tempfile

from harness import server

HELLO, PAGE, FILE = b"Hello, World!", b"p" * 20 * 1024, b"f" * 1024 * 1024


def main(configuration, words, version):
    """`configuration` returns the configuration for a directory and a port. `words` is the
    command line, given the configuration's path, with PORT for the port."""
    options = server.arguments()
    with contextlib.ExitStack() as stack:
        servers = []
        for _ in range(options.processes):
            root = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for file, content in (("hello", HELLO), ("page", PAGE), ("file", FILE)):
                (root / file).write_bytes(content)
            port = server.free_port()
            (root / "configuration").write_text(configuration(root, port))
            servers.append(stack.enter_context(
                server.running(options, *words(root / "configuration"), port=port)))
        server.tell(version=version(options.program), library="")
        print(server.load_all(options, servers), end="")
