"""What the ready-made servers share: a directory with what is asked for, and the client's words."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402

HELLO, PAGE, FILE = b"Hello, World!", b"p" * 20 * 1024, b"f" * 1024 * 1024


def main(configuration, words, version):
    """`configuration` is what is written for a directory and a port, `words` how it is started."""
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
