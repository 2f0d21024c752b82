#!/usr/bin/env python3
"""The test of setup, with dpkg-query, apt-get, sudo and id played by scripts."""

import contextlib
import os
import pty
import subprocess
import tempfile
import unittest

SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "setup")
LIST = """# A comment.
test        cmake    required   configures
test,bench  libtwo   optional   is nice
bench       libthree optional   is a contestant
extras      libmore  optional   enables tests
peers       served   optional   is a server"""

# Packages are files in $STATE/installed; the sources have those in $STATE/available.
DPKG = """#!/bin/bash
for name in "$@"; do [ -e "$STATE/installed/$name" ] && echo "ii $name"; done
exit 1
"""
APT = """#!/bin/bash
echo "$*" >>"$STATE/log"
wanted=() ; seen= ; print=
for word in "$@"; do
  [ -n "$seen" ] && case $word in -*) ;; *) wanted+=("$word") ;; esac
  [ "$word" = install ] && seen=1
  [ "$word" = --print-uris ] && print=1
done
if [ -n "$print" ]; then
  for name in "${wanted[@]}" dependency; do echo "'http://x/$name.deb' $name.deb 2400000 MD5"; done
  exit
fi
for name in "${wanted[@]}"; do
  [ -e "$STATE/available/$name" ] || { echo "E: Unable to locate package $name" >&2; exit 100; }
done
for name in "${wanted[@]}"; do touch "$STATE/installed/$name"; done
"""


def read_all(terminal):
    """Returns the output of a terminal whose other end is closed."""
    output = b""
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):  # EIO: the end
        while chunk := file.read(4096):
            output += chunk
    return output.decode()


class Setup(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.state = directory.name
        for name in ("installed", "available", "bin"):
            os.mkdir(os.path.join(self.state, name))
        for tool in ("bash", "sed", "grep", "dirname", "mktemp", "rm", "tail", "env", "touch"):
            self.link(tool)
        self.script("id", "#!/bin/bash\necho 0\n")
        self.list = LIST

    def link(self, tool):
        for directory in ("/usr/bin", "/bin"):
            if os.path.exists(os.path.join(directory, tool)):
                os.symlink(os.path.join(directory, tool), os.path.join(self.state, "bin", tool))
                return

    def script(self, name, text):
        path = os.path.join(self.state, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def debian(self, installed=(), available=(), apt=True):
        self.script("dpkg-query", DPKG)
        if apt:
            self.script("apt-get", APT)
        for kind, names in (("installed", installed), ("available", available)):
            for name in names:
                with open(os.path.join(self.state, kind, name), "w", encoding="utf-8"):
                    pass

    def run_setup(self, *arguments, terminal=None):
        """Returns (exit code, output)."""
        path = os.path.join(self.state, "packages.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.list)
        environment = {"PATH": os.path.join(self.state, "bin"), "STATE": self.state,
                       "SPATE_PACKAGES": path,
                       "SPATE_FRESH_ROOT": os.path.join(self.state, "fresh")}
        run = subprocess.run(["bash", SETUP, *arguments], env=environment, text=True, check=False,
                             stdin=terminal or subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=terminal or subprocess.STDOUT)
        return run.returncode, run.stdout

    def apt_log(self):
        path = os.path.join(self.state, "log")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if "--print-uris" not in line]

    def installed(self):
        return sorted(os.listdir(os.path.join(self.state, "installed")))

    def test_with_all_installed_it_is_silent(self):
        self.debian(installed=("cmake", "libtwo", "libmore"))
        self.assertEqual(self.run_setup("test"), (0, ""))
        self.assertEqual(self.run_setup(), (0, ""))
        self.assertEqual(self.apt_log(), [])

    def test_it_updates_and_installs_what_is_missing(self):
        self.debian(installed=("cmake", "libmore"), available=("libtwo", "libthree"))
        code, said = self.run_setup("bench", "test")
        self.assertEqual((code, said), (0, "setup: installing 2 packages (3 with dependencies, "
                                           "7 MB): libtwo libthree\n"))
        update, install = self.apt_log()
        self.assertTrue(update.endswith("update"))
        self.assertTrue(install.endswith("install -y --no-install-recommends libtwo libthree"))

    def test_the_question_on_a_terminal_names_the_packages_and_no_is_an_answer(self):
        self.debian(available=("cmake", "libtwo"))
        for answer, status, installed in (("n", 1, []), ("y", 0, ["cmake", "libtwo"])):
            terminal, other_end = pty.openpty()
            os.write(terminal, answer.encode() + b"\n")
            self.assertEqual(self.run_setup("test", terminal=other_end)[0], status)
            os.close(other_end)
            said = read_all(terminal)
            self.assertIn("setup: missing: cmake libtwo\r\nsetup: install 2 packages (3 with "
                          "dependencies, 7 MB) with apt-get? [Y/n]", said)
            self.assertEqual(self.installed(), installed)

    def test_an_optional_package_that_cannot_be_had_is_told_and_the_rest_installed(self):
        self.debian(available=("cmake", "libthree"))
        code, said = self.run_setup("test", "bench")
        self.assertEqual(code, 0)
        self.assertIn("could not install libtwo: E: Unable to locate package libtwo\n", said)
        self.assertIn("setup: missing: libtwo (optional): is nice\n", said)
        self.assertEqual(self.installed(), ["cmake", "libthree"])

    def test_extras_are_suggested_with_the_tests_and_installed_only_when_asked_for(self):
        self.debian(installed=("cmake", "libtwo"), available=("libmore",))
        code, said = self.run_setup("test")
        self.assertEqual((code, said), (0, "setup: optional packages enable more tests "
                                           "(1 missing): tools/setup extras\n"))
        self.assertEqual(self.apt_log(), [])
        self.assertEqual(self.run_setup("bench")[0], 0)
        self.assertNotIn("libmore", self.installed())
        self.assertEqual(self.run_setup("test", "extras")[0], 0)
        self.assertEqual(self.run_setup("test"), (0, ""))

    def test_servers_are_installed_only_in_a_fresh_root_or_when_insisted(self):
        everything = ("cmake", "libtwo", "libthree", "libmore")
        self.debian(installed=everything, available=("served",))
        code, said = self.run_setup("test", "peers")
        self.assertEqual(code, 2)
        self.assertIn("tools/fresh sh -c 'tools/setup peers && COMMAND'", said)
        self.assertEqual(self.run_setup("all"), (0, ""))
        self.assertEqual((self.apt_log(), self.installed()), ([], sorted(everything)))
        for arguments, is_fresh in ((("--here", "peers"), False), (("all",), True)):
            if is_fresh:
                os.mkdir(os.path.join(self.state, "fresh"))
            self.assertEqual(self.run_setup(*arguments)[0], 0)
            self.assertIn("served", self.installed())
            os.remove(os.path.join(self.state, "installed", "served"))

    def test_servers_that_are_installed_need_no_permission(self):
        self.debian(installed=("served",))
        self.assertEqual(self.run_setup("peers"), (0, ""))

    def test_a_required_package_that_cannot_be_had_is_a_failure(self):
        self.debian(available=("libtwo",))
        code, said = self.run_setup("test")
        self.assertEqual(code, 1)
        self.assertIn("setup: missing: cmake (required): configures\n", said)
        self.assertNotIn("libmore", said)

    def test_without_root_and_sudo_it_tells_what_is_missing(self):
        self.debian(available=("cmake", "libtwo"))
        self.script("id", "#!/bin/bash\necho 1000\n")
        code, said = self.run_setup("test")
        self.assertEqual(code, 1)
        self.assertIn("not root, and there is no sudo", said)
        self.assertIn("missing: cmake (required): configures\n", said)
        self.assertIn("missing: libtwo (optional): is nice\n", said)

    def test_sudo_is_used_but_not_asked_for_a_password_without_a_terminal(self):
        self.debian(available=("cmake", "libtwo"))
        self.script("id", "#!/bin/bash\necho 1000\n")
        self.script("sudo", "#!/bin/bash\nexit 1\n")
        code, said = self.run_setup("test")
        self.assertEqual(code, 1)
        self.assertIn("no terminal to ask on", said)
        self.script("sudo", '#!/bin/bash\n[ "$1" = -n ] && exit 0\nexec "$@"\n')
        self.assertEqual(self.run_setup("test")[0], 0)

    def test_without_apt_get_it_tells_what_is_missing(self):
        self.debian(installed=("cmake",), apt=False)
        code, said = self.run_setup("test")
        self.assertEqual(code, 0)
        self.assertIn("there is no apt-get here", said)
        self.assertIn("missing: libtwo (optional): is nice\n", said)

    def test_on_another_system_it_tells_what_is_needed(self):
        code, said = self.run_setup("test")
        self.assertEqual(code, 0)
        self.assertIn("this is no Debian", said)
        self.assertIn("cmake (required): configures\n", said)

    def test_bad_input_is_named(self):
        self.debian(installed=("cmake",))
        code, said = self.run_setup("everything")
        self.assertEqual((code, said), (2, "setup: there is no set 'everything'; use one or more "
                                           "of: test extras bench dev docs peers programs all\n"))
        self.list = "test cmake\n"
        code, said = self.run_setup("test")
        self.assertEqual(code, 2)
        self.assertIn("packages.txt, line 1: expected", said)
        self.list = "tset cmake required builds\n"
        self.assertIn("there is no set 'tset'", self.run_setup("test")[1])


if __name__ == "__main__":
    unittest.main()
