#!/usr/bin/env python3
"""The test of console.py."""

import contextlib
import io
import os
import tempfile
import unittest

import console

SERVER = """#!/usr/bin/env python3
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(os.environ["SPATE_SAMPLE_PORT"])))
while True:
    server.accept()[0].close()
"""
FAILING = SERVER.replace("server =", """import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
server =""")


class Consoles(unittest.TestCase):
    def run_on(self, text, program=SERVER):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("program", "console")]
            for path, content in zip(paths, (program, text)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            os.chmod(paths[0], 0o755)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = console.main(*paths)
            return code, said.getvalue()

    def test_compares_the_output_of_each_command(self):
        self.assertEqual(self.run_on("$ echo a; echo b\na\nb\n$ true\n")[0], 0)
        code, said = self.run_on("$ true\n$ echo a\nb\n")
        self.assertEqual(code, 1)
        self.assertIn("$ echo a\nexpected:\nb\nbut it printed:\na", said)
        self.assertEqual(self.run_on("$ echo a\n")[0], 1)
        self.assertEqual(self.run_on("$ true\na\n")[0], 1)

    def test_keeps_the_state_of_the_shell(self):
        self.assertEqual(self.run_on("$ a() { echo $1; }; b=2\n$ a $b\n2\n")[0], 0)
        self.assertEqual(self.run_on("$ echo a \\\n> b\na b\n")[0], 0)

    def test_replaces_ports_in_commands_and_output(self):
        code, said = self.run_on("$ echo 7001 $SPATE_SAMPLE_PORT 17000\n7001 7000 17000\n")
        self.assertEqual((code, said), (0, "2 commands printed the expected output\n"))

    def test_starts_the_server_where_the_page_says(self):
        text = ('$ test -z "$(jobs -p)" && echo none\nnone\n'
                "$ ./server &\n$ kill -0 %1; echo $?\n0\n")
        self.assertEqual(self.run_on(text)[0], 0)
        self.assertEqual(self.run_on("$ ./greet\nhello\n", "#!/bin/sh\necho hello\n")[0], 0)

    def test_a_server_that_fails_is_a_failure(self):
        code, said = self.run_on("$ true\n", FAILING)
        self.assertEqual((code, said), (1, "the server failed\n"))

    def test_dots_stand_for_anything(self):
        for expected, output in (("a ... c", "a b c"), ("a\n...\nd", "a\nb\nc\nd"),
                                 ("a\n...\nd", "a\nd"), ("a\n...", "a\nb\nc"), ("...", "x")):
            self.assertTrue(console.matches(expected, output), (expected, output))
        for expected, output in (("a ... c", "a b d"), ("a\n...\nd", "a\nb\ndd"), ("a.b", "axb"),
                                 ("a ... c", "a\nc")):
            self.assertFalse(console.matches(expected, output), (expected, output))


if __name__ == "__main__":
    unittest.main()
