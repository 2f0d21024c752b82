#!/usr/bin/env python3
"""Tests spate-run, in the build tree and after an installed tree was moved.

    spate_run_test.py --cmake CMAKE --build DIRECTORY --programs DIRECTORY [unittest's arguments]
"""

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

# The program is linked to libevent_extra too, which is the same file.
NAMED = ("libev.so.4", "libevent_core-2.1.so.7")
ALL_FILES = {"libev.so.4", "libevent-2.1.so.7", "libevent_core-2.1.so.7",
             "libevent_extra-2.1.so.7", "libevent_openssl-2.1.so.7", "libevent_pthreads-2.1.so.7"}
CALL_SECONDS = 30
NOBODY = 65534
OPTIONS = argparse.Namespace()


def write_script(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class SpateRun(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.script = os.path.join(OPTIONS.build, "compat", "spate-run")
        self.libraries = os.path.join(OPTIONS.build, "compat", "lib")

    def program(self, name):
        return os.path.join(OPTIONS.programs, name)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_it(self, *arguments, reads="", script=None, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
        environment.update(variables)
        return subprocess.run([script or self.script, *arguments], input=reads.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                              timeout=CALL_SECONDS, check=False, cwd=self.directory)

    def ran(self, done, status=0):
        """Checks that the program ran on our files. Returns its output."""
        printed = done.stdout.decode()
        self.assertEqual(done.returncode, status, done.stderr.decode())
        files = [os.path.dirname(line[len("library: "):]) for line in printed.splitlines()
                 if line.startswith("library: ")]
        self.assertEqual(files, [self.libraries] * 2, printed)
        return printed

    def refused(self, done, status, message):
        self.assertEqual(done.returncode, status, done.stderr.decode())
        self.assertEqual(done.stdout, b"")
        self.assertTrue(done.stderr.startswith(b"spate-run: "), done.stderr)
        self.assertIn(message, done.stderr.decode())

    def says_each_file(self, done):
        self.assertEqual(sorted(done.stderr.decode().splitlines()),
                         [f"spate-run: {name} is {self.libraries}/{name}" for name in NAMED])

    def test_says_which_file_each_library_is_and_runs_on_it(self):
        done = self.run_it(self.program("tell_both"))
        self.ran(done)
        self.says_each_file(done)

    def test_is_quiet_when_asked(self):
        for option in ("-q", "--quiet"):
            done = self.run_it(option, self.program("tell_both"))
            self.ran(done)
            self.assertEqual(done.stderr, b"")

    def test_hands_over_arguments_input_and_status(self):
        done = self.run_it(self.program("tell_both"), "7", "-q", "a  b", "", "*", "$HOME", "--",
                           reads="read\nthis")
        printed = self.ran(done, 7).splitlines()
        self.assertEqual([line for line in printed if line.startswith("argument")],
                         ["argument: " + word for word in ("7", "-q", "a  b", "", "*", "$HOME",
                                                           "--")])
        self.assertEqual(printed[-2:], ["read", "this"])

    def test_keeps_the_path_that_was_set(self):
        printed = self.ran(self.run_it(self.program("tell_both"), LD_LIBRARY_PATH="/some:/other"))
        self.assertIn(f"path: {self.libraries}:/some:/other\n", printed)
        printed = self.ran(self.run_it(self.program("tell_both")))
        self.assertIn(f"path: {self.libraries}\n", printed)

    def test_finds_the_program_by_its_name(self):
        path = f"{self.directory}:{OPTIONS.programs}:{os.environ['PATH']}"
        os.mkdir(self.path("tell_both"))
        self.ran(self.run_it("tell_both", PATH=path))
        self.ran(self.run_it("--", "tell_both", PATH=path))

    def test_may_be_called_by_a_link(self):
        link = self.path("another name")
        os.symlink(self.script, link)
        self.ran(self.run_it(self.program("tell_both"), script=link))

    def test_looks_at_the_interpreter_of_a_script(self):
        script = self.path("a script")
        write_script(script, f"#!{self.program('tell_both')} 3\n")
        done = self.run_it(script)
        self.ran(done, 3)
        self.says_each_file(done)
        write_script(self.path("by name"), "#!/usr/bin/env -S A=b tell_both 4\n")
        path = f"{OPTIONS.programs}:{os.environ['PATH']}"
        self.ran(self.run_it(self.path("by name"), PATH=path), 4)
        write_script(script, "#!/bin/sh\necho it ran\n")
        self.refused(self.run_it(script), 126, "uses neither")
        write_script(script, "#!/nowhere/interpreter\n")
        self.refused(self.run_it(script), 127, "/nowhere/interpreter: not found")
        write_script(script, "#!\n")
        self.refused(self.run_it(script), 126, "names no interpreter")

    def test_refuses_what_is_no_program(self):
        self.refused(self.run_it("no-such-program"), 127, "no-such-program: not found")
        self.refused(self.run_it("/no/such/program"), 127, "/no/such/program: not found")
        self.refused(self.run_it(self.directory), 127, "not found")
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("words\n")
        self.refused(self.run_it(self.path("text")), 126, "not executable")
        os.chmod(self.path("text"), 0o755)
        self.refused(self.run_it(self.path("text")), 126, "not dynamically linked")

    def test_refuses_a_static_program(self):
        self.refused(self.run_it(self.program("tell_static")), 126, "not dynamically linked")
        self.refused(self.run_it("-f", self.program("tell_static")), 126, "not dynamically linked")

    def test_runs_a_program_that_uses_neither_only_when_forced(self):
        program = self.program("tell_neither")
        self.refused(self.run_it(program), 126, "uses neither libev.so.4 nor libevent-2.1.so.7")
        for option in ("-f", "--force"):
            done = self.run_it(option, program, "5")
            self.assertEqual(done.returncode, 5)
            self.assertIn(f"path: {self.libraries}\n".encode(), done.stdout)
            self.assertIn(b"uses neither", done.stderr)
        self.assertEqual(self.run_it("-q", "-f", program).stderr, b"")

    def test_refuses_a_program_with_a_path_of_its_own(self):
        own = os.path.join(OPTIONS.programs, "own")
        os.makedirs(own, exist_ok=True)
        self.addCleanup(shutil.rmtree, own)
        shutil.copy(os.path.join(self.libraries, "libev.so.4"), own)
        program = self.program("tell_own_path")
        self.refused(self.run_it(program), 126,
                     f"libev.so.4 is {own}/libev.so.4, not spate's")
        done = self.run_it("-f", program)
        self.assertIn(f"library: {own}/libev.so.4\n", done.stdout.decode())

    @unittest.skipIf(os.geteuid() != 0, "root is missing: it gives a program to another user")
    def test_refuses_a_program_with_more_rights_than_the_caller(self):
        for kind, owner, group, bit in (("setuid", NOBODY, -1, stat.S_ISUID),
                                        ("setgid", -1, NOBODY, stat.S_ISGID)):
            program = self.path(kind)
            shutil.copy(self.program("tell_both"), program)
            os.chown(program, owner, group)
            os.chmod(program, 0o755 | bit)
            self.refused(self.run_it(program), 126, f"({kind})")

    def test_explains_itself(self):
        for option in ("-h", "--help"):
            done = self.run_it(option)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertTrue(done.stdout.startswith(b"usage: spate-run "))
        self.refused(self.run_it(), 2, "no program given")
        self.refused(self.run_it("-x", "ls"), 2, "-x: unknown option")


class Installed(SpateRun):
    """As above, from a prefix other than the installed one."""

    def setUp(self):
        super().setUp()
        first, prefix = self.path("first"), self.path("a moved prefix")
        subprocess.run([OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", first,
                        "--component", "compat"], check=True, stdout=subprocess.DEVNULL)
        os.rename(first, prefix)
        self.script = os.path.join(prefix, "bin", "spate-run")
        found = [root for root, _, files in os.walk(prefix) if "libev.so.4" in files]
        self.assertEqual(len(found), 1)
        self.libraries = found[0]

    def test_has_every_library_in_a_directory_of_its_own(self):
        self.assertTrue(self.libraries.endswith("/spate/compat"))
        self.assertEqual(set(os.listdir(self.libraries)), ALL_FILES)
        whole = os.path.join(self.libraries, "libevent-2.1.so.7")
        for name in ("core", "extra", "pthreads"):
            part = os.path.join(self.libraries, f"libevent_{name}-2.1.so.7")
            self.assertTrue(os.path.samefile(part, whole))

    def test_misses_libraries_that_were_removed(self):
        shutil.rmtree(self.libraries)
        self.refused(self.run_it(self.program("tell_both")), 126, "the libraries are not there")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for option in ("--cmake", "--build", "--programs"):
        parser.add_argument(option, required=True)
    _, others = parser.parse_known_args(namespace=OPTIONS)
    unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
