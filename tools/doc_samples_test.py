#!/usr/bin/env python3
"""The test of doc_samples.py."""

import contextlib
import io
import os
import tempfile
import unittest

import doc_samples

PAGE = """# Timers

```cpp run
int main() {}
```

```cpp
not a sample
```

1. In a list:
   ````cpp run
   // ```
   int main() { return 0; }
   ````
"""

SERVER = """```cpp serve hello
int main() { return serve(7000); }
```
"""

TALK = """```cpp talk
int main() { return serve(7000) + serve(7001); }
```

    not fenced

```console
$ curl localhost:7001
hello
```
"""


class Samples(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.out = os.path.join(self.root, "out")

    def run_on(self, **pages):
        paths = []
        for name, text in pages.items():
            paths.append(os.path.join(self.root, "docs", "guide", name + ".md"))
            os.makedirs(os.path.dirname(paths[-1]), exist_ok=True)
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        said, complaints = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
            code = doc_samples.main(["--root", self.root, "--out", self.out, *paths])
        return code, said.getvalue().split(), complaints.getvalue()

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return file.read()

    def test_only_marked_blocks_become_files(self):
        code, names, _ = self.run_on(timers=PAGE)
        self.assertEqual(code, 0)
        self.assertEqual([os.path.basename(name) for name in names],
                         ["guide_timers_1.cc", "guide_timers_2.cc"])
        self.assertEqual(self.read("guide_timers_1.cc"),
                         '#line 4 "docs/guide/timers.md"\nint main() {}\n')
        self.assertEqual(self.read("guide_timers_2.cc"),
                         '#line 13 "docs/guide/timers.md"\n// ```\nint main() { return 0; }\n')

    def test_unchanged_files_are_left_alone_and_old_ones_removed(self):
        self.run_on(timers=PAGE)
        path = os.path.join(self.out, "guide_timers_1.cc")
        os.utime(path, (1, 1))
        self.run_on(timers=PAGE.split("```cpp\n", maxsplit=1)[0])
        self.assertEqual(os.listdir(self.out), ["guide_timers_1.cc"])
        self.assertEqual(os.stat(path).st_mtime, 1)

    def test_bad_pages_are_named(self):
        code, _, said = self.run_on(timers="\n```cpp run\nint main() {}\n")
        self.assertEqual((code, said), (1, "doc_samples: docs/guide/timers.md:2: "
                                           "this block does not end\n"))
        self.assertIn("needs a main()", self.run_on(timers="```cpp run\nint a;\n```\n")[2])
        self.assertIn("another page", self.run_on(**{"a-b": PAGE, "a_b": PAGE})[2])

    def test_servers_take_their_port_from_the_environment(self):
        code, said, _ = self.run_on(server=SERVER)
        self.assertEqual(code, 0)
        self.assertTrue(said[0].endswith("guide_server_1.cc=hello"))
        self.assertIn("serve(sample_port())", self.read("guide_server_1.cc"))
        self.assertEqual(self.run_on(server=SERVER.replace("7000", "1"))[0], 1)

    def test_other_programs_keep_their_ports(self):
        self.run_on(server=SERVER.replace("serve hello", "run"))
        self.assertIn("serve(7000)", self.read("guide_server_1.cc"))

    def test_programs_that_talk_get_their_console(self):
        code, said, _ = self.run_on(server=TALK)
        self.assertEqual(code, 0)
        self.assertTrue(said[0].endswith("guide_server_1.cc=@guide_server_1.console"))
        self.assertIn("serve(sample_port()) + serve(sample_port(1))",
                      self.read("guide_server_1.cc"))
        self.assertEqual(self.read("guide_server_1.console"), "$ curl localhost:7001\nhello\n")
        self.run_on(server=SERVER)
        self.assertEqual(os.listdir(self.out), ["guide_server_1.cc"])
        self.assertIn("no block fenced as console",
                      self.run_on(server=TALK.split("\n```console", maxsplit=1)[0])[2])
        self.assertIn("server.md:7: a block fenced as console has to be here",
                      self.run_on(server=TALK.replace("console", "sh"))[2])


if __name__ == "__main__":
    unittest.main()
