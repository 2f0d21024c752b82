#!/usr/bin/env python3
"""The package that tools/compat_package.py makes: its contents, its dependencies, and a program
that runs on the unpacked files.

    compat_package_test.py --build DIRECTORY --tool FILE [unittest's arguments]
"""

import argparse
import glob
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARIES = {"libev.so.4", "libevent-2.1.so.7", "libevent_core-2.1.so.7", "libevent_extra-2.1.so.7",
             "libevent_openssl-2.1.so.7", "libevent_pthreads-2.1.so.7"}
# Fields that would make it replace another package, or run code when it is installed.
TAKES_A_PLACE = ("Provides", "Conflicts", "Replaces", "Breaks", "Pre-Depends")
OPTIONS = argparse.Namespace()
PATIENCE = 30


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=PATIENCE * 2, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout.decode()


def bash(script):
    return run("bash", "--norc", "-c", script).splitlines()


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        run(sys.executable, OPTIONS.tool, "--build", OPTIONS.build, cls.directory)
        found = os.listdir(cls.directory)
        assert len(found) == 1, found
        cls.package = os.path.join(cls.directory, found[0])
        cls.root = os.path.join(cls.directory, "a root")
        run("dpkg-deb", "-x", cls.package, cls.root)

    def path(self, *names):
        return os.path.join(self.root, *names)

    def field(self, name):
        return run("dpkg-deb", "-f", self.package, name).strip()

    def installed(self):
        return {os.path.relpath(os.path.join(directory, name), self.root)
                for directory, _, names in os.walk(self.root) for name in names}

    def test_has_the_libraries_in_a_directory_of_their_own(self):
        below = {os.path.dirname(name) for name in self.installed() if ".so" in name}
        self.assertEqual(len(below), 1)
        private = below.pop()
        self.assertRegex(private, r"^usr/lib/([\w-]+/)?spate/compat$")
        self.assertEqual(set(os.listdir(self.path(private))), LIBRARIES)
        self.assertTrue(os.path.samefile(self.path(private, "libevent_core-2.1.so.7"),
                                         self.path(private, "libevent-2.1.so.7")))

    def test_has_nothing_else_but_the_command_and_its_documents(self):
        others = {name for name in self.installed() if ".so" not in name}
        self.assertEqual(others, {"usr/bin/spate-run",
                                  "usr/share/bash-completion/completions/spate-run",
                                  "usr/share/doc/spate-compat/changelog.Debian.gz",
                                  "usr/share/doc/spate-compat/copyright",
                                  "usr/share/man/man1/spate-run.1.gz"})

    def test_takes_nobodys_place(self):
        self.assertEqual(self.field("Package"), "spate-compat")
        for name in TAKES_A_PLACE:
            self.assertEqual(self.field(name), "", name)
        for library in ("libevent", "libev4"):
            self.assertNotIn(library, self.field("Depends"))
        self.assertIn("libc6", self.field("Depends"))
        control = os.path.join(self.directory, "control")
        run("dpkg-deb", "-e", self.package, control)
        self.assertEqual(set(os.listdir(control)), {"control", "md5sums"})
        with open(os.path.join(control, "md5sums"), encoding="utf-8") as file:
            for line in file:
                digest, name = line.rstrip("\n").split("  ", 1)
                with open(self.path(name), "rb") as installed:
                    self.assertEqual(hashlib.md5(installed.read()).hexdigest(), digest, name)

    def test_is_roots_and_writable_by_nobody_else(self):
        for line in run("dpkg-deb", "-c", self.package).splitlines():
            mode, owner = line.split()[:2]
            self.assertEqual(owner, "root/root", line)
            self.assertTrue(mode[0] == "l" or mode[5] == mode[8] == "-", line)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed (package lintian)")
    def test_lintian_has_nothing_to_say(self):
        # spate has no real mail address, and Debian no bug that requests it.
        run("lintian", "--fail-on", "error,warning", "--suppress-tags",
            "bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs",
            self.package)

    @unittest.skipUnless(shutil.which("memcached"),
                         "memcached is not installed (package memcached)")
    def test_runs_memcached_where_it_was_unpacked(self):
        place = os.path.join(self.directory, "socket")
        with open(os.path.join(self.directory, "stderr"), "w+b") as stderr:
            server = subprocess.Popen([self.path("usr/bin/spate-run"), "memcached", "-s", place,
                                       *(["-u", "root"] if os.geteuid() == 0 else [])],
                                      stderr=stderr)
            try:
                self.assertEqual(self.ask(place), b"STORED\r\nVALUE a 0 3\r\nxyz\r\nEND\r\n")
            finally:
                server.terminate()
                server.wait(PATIENCE)
            stderr.seek(0)
            said = stderr.read().decode()
        self.assertIn(f"spate-run: libevent-2.1.so.7 is {os.path.realpath(self.root)}/", said)

    def ask(self, place):
        until = time.monotonic() + PATIENCE
        while True:
            client = socket.socket(socket.AF_UNIX)
            try:
                client.connect(place)
                break
            except OSError:
                client.close()
                self.assertLess(time.monotonic(), until, "memcached does not listen")
                time.sleep(0.05)
        with client:
            client.settimeout(PATIENCE)
            client.sendall(b"set a 0 0 3\r\nxyz\r\nget a\r\n")
            answer = b""
            while not answer.endswith(b"END\r\n"):
                more = client.recv(1000)
                self.assertTrue(more, answer)
                answer += more
        return answer


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        source = os.path.join(os.path.dirname(OPTIONS.tool), "..", "compat")
        cls.page = os.path.join(source, "spate-run.1")
        cls.completion = os.path.join(source, "spate-run.bash")
        cls.help = run(os.path.join(OPTIONS.build, "compat", "spate-run"), "--help")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed (package groff)")
    def test_the_manual_page_is_well_formed(self):
        done = subprocess.run(["groff", "-mdoc", "-Tutf8", "-ww", "-b", self.page],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")
        self.assertIn("SPATE-RUN(1)", done.stdout.decode())

    def test_the_manual_page_has_every_option_and_status(self):
        with open(self.page, encoding="utf-8") as file:
            page = file.read()
        options = re.findall(r"^  -(\w), --(\w+)", self.help, re.MULTILINE)
        self.assertEqual(len(options), 3)
        for short, long in options:
            self.assertIn(f".It Fl {short} , Fl -{long}\n", page)
        for status in ("2", "126", "127"):
            self.assertIn(status, self.help)
            self.assertIn(f".It {status}\n", page)

    def complete(self, *words, before=""):
        """Returns the completions of the last word."""
        quoted = " ".join(f"'{word}'" for word in words)
        return bash("\n".join([before, f"source '{self.completion}'", f"COMP_WORDS=({quoted})",
                               f"COMP_CWORD={len(words) - 1}", "_spate_run",
                               "printf '%s\\n' \"${COMPREPLY[@]}\""]))

    def test_completes_its_options_first(self):
        self.assertEqual(self.complete("spate-run", "--q"), ["--quiet"])
        offered = set(self.complete("spate-run", "-q", "-"))
        for short, long in re.findall(r"^  -(\w), --(\w+)", self.help, re.MULTILINE):
            self.assertLessEqual({f"-{short}", f"--{long}"}, offered)
        self.assertNotIn("--quiet", self.complete("spate-run", "--", "-"))

    def test_completes_programs_then(self):
        for before in ([], ["-q"], ["-q", "--force"], ["--"], ["-f", "--"]):
            self.assertIn("readlink", self.complete("spate-run", *before, "readli"))
        self.assertIn("/usr/", self.complete("spate-run", "/us"))

    def test_completes_the_programs_arguments_as_the_programs(self):
        asked = self.complete("spate-run", "-q", "memcached", "-", before=(
            "_command_offset() { COMPREPLY=(\"at $1\"); }"))
        self.assertEqual(asked, ["at 2"])
        asked = self.complete("spate-run", "--", "memcached", "-", before=(
            "_command_offset() { COMPREPLY=(old); }\n"
            "_comp_command_offset() { COMPREPLY=(\"newer at $1\"); }"))
        self.assertEqual(asked, ["newer at 2"])

    def test_completes_files_if_nothing_tells_how(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("one", "other"):
                with open(os.path.join(directory, name), "w", encoding="utf-8"):
                    pass
            self.assertEqual(sorted(self.complete("spate-run", "cat", f"{directory}/o")),
                             sorted(glob.glob(f"{directory}/o*")))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for option in ("--build", "--tool"):
        parser.add_argument(option, required=True)
    _, others = parser.parse_known_args(namespace=OPTIONS)
    unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
