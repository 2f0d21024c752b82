#!/usr/bin/env python3
"""The tests of fresh.

    tools/fresh_test.py            its parts, without a root
    tools/fresh_test.py --root     all of it; exits with 77 without root or mmdebstrap
"""

import contextlib
import http.server
import importlib.machinery
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from unittest import mock

import fresh_audit
import fresh_network

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load_fresh():
    loader = importlib.machinery.SourceFileLoader("fresh", TREE + "/tools/fresh")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fresh", loader))
    loader.exec_module(module)
    return module


fresh = load_fresh()


class Archive(http.server.BaseHTTPRequestHandler):
    """A package source with one unchanging file."""

    def do_GET(self):
        found = self.path == "/debian/a.deb"
        status = 404 if not found else 304 if "If-Modified-Since" in self.headers else 200
        self.send_response(status)
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if status == 200:
            self.wfile.write(b"package")

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Network(unittest.TestCase):
    def fetch(self, path, **headers):
        """Asks the proxy as apt does, and returns (status, body)."""
        with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)) as port:
            source = f"http://127.0.0.1:{port}"
            proxy = fresh_network.Proxy([f"{source}/debian"], ("127.0.0.1", 0))
            with proxy.serving():
                request = urllib.request.Request(path.replace("SOURCE", source), headers=headers)
                request.set_proxy(f"127.0.0.1:{proxy.server_address[1]}", "http")
                return self.answer(request)

    def answer(self, request):
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def test_files_below_a_source_are_fetched(self):
        self.assertEqual(self.fetch("SOURCE/debian/a.deb"), (200, b"package"))

    def test_responses_without_a_file_are_passed_on(self):
        self.assertEqual(self.fetch("SOURCE/debian/b.deb")[0], 404)
        since = {"If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"}
        self.assertEqual(self.fetch("SOURCE/debian/a.deb", **since), (304, b""))

    def test_other_urls_are_refused(self):
        for url in ("SOURCE/secret", "SOURCE/debianized/a.deb", "http://127.0.0.2/debian/a.deb"):
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                self.assertEqual(self.fetch(url)[0], 403, url)
            self.assertIn("fresh: refused http://", printed.getvalue())

    def test_sources_are_written_for_the_proxy(self):
        for uri in ("https://mirror.example/debian", "http://mirror.example/debian/"):
            self.assertEqual(fresh_network.plain(uri), "http://mirror.example/debian/")


class Sources(unittest.TestCase):
    def of(self, *targets, suite="bookworm"):
        result = subprocess.CompletedProcess([], 0, "\n".join(targets) + "\n")
        with mock.patch.object(fresh.subprocess, "run", return_value=result):
            return fresh.host_sources(suite)

    def test_a_mirror_is_known_by_its_updates(self):
        self.assertEqual(
            self.of("http://other.example/ trixie main", "http://a.example/debian/ trixie main",
                    "http://a.example/debian/ trixie-updates main",
                    "http://b.example/security/ trixie-security main"),
            ["deb http://a.example/debian/ bookworm main",
             "deb http://a.example/debian/ bookworm-updates main",
             "deb http://b.example/security/ bookworm-security main"])

    def test_another_release_has_the_same_mirrors(self):
        mirrors = ("http://a.example/debian/ bookworm main",
                   "http://a.example/debian/ bookworm-updates main",
                   "http://b.example/security/ bookworm-security main")
        self.assertEqual(self.of(*mirrors, suite="trixie"),
                         ["deb http://a.example/debian/ trixie main",
                          "deb http://a.example/debian/ trixie-updates main",
                          "deb http://b.example/security/ trixie-security main"])
        self.assertEqual(self.of(*mirrors, suite="sid"),
                         ["deb [check-valid-until=no] http://a.example/debian/ sid main"])

    def test_without_a_mirror_mmdebstrap_decides(self):
        self.assertEqual(self.of("http://other.example/ stable main"), [])
        self.assertEqual(self.of(""), [])


class Audit(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.write("/var/log/fresh/processes")
        self.write("/var/log/fresh/services")
        self.write("/etc/passwd", "root\n")
        self.write(fresh_audit.TREE + "/Makefile")
        self.write("/var/lib/dpkg/status", self.package("base"))
        self.before = fresh_audit.Snapshot(self.root)

    def write(self, path, text=""):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with open(self.root + path, "a", encoding="utf-8") as file:
            file.write(text)

    def package(self, name, priority="optional"):
        return (f"Package: {name}\nStatus: install ok installed\nPriority: {priority}\n"
                f"Version: 1\nDescription: x\n\n")

    def install(self, name, *paths, automatic=False, priority="optional"):
        """Installs files; a package's list also has their directories."""
        self.write("/var/lib/dpkg/status", self.package(name, priority))
        for path in paths:
            self.write(path)
            while path != "/":
                self.write(f"/var/lib/dpkg/info/{name}.list", path + "\n")
                path = os.path.dirname(path)
        if automatic:
            self.write("/var/lib/apt/extended_states", f"Package: {name}\nAuto-Installed: 1\n\n")

    def found(self, *allowed):
        return list(fresh_audit.violations(self.before, fresh_audit.Snapshot(self.root),
                                           set(allowed)))

    def test_an_allowed_package_and_its_dependencies_may_be_installed(self):
        self.install("cmake", "/usr/bin/cmake")
        self.install("libuv1", "/usr/lib/libuv.so", automatic=True)
        self.write("/etc/ld.so.cache", "x")
        self.write(fresh_audit.TREE + "/build/log")
        self.assertEqual(self.found("cmake"), [])
        self.assertEqual(self.found(), ["installed the package cmake"])

    def test_a_service_is_found_even_in_a_dependency(self):
        os.makedirs(self.root + "/usr/lib")
        os.symlink("usr/lib", self.root + "/lib")
        self.install("redis", "/lib/systemd/system/redis.service", automatic=True)
        self.assertIn("installed the service redis", self.found())

    def test_services_of_every_debian_are_allowed(self):
        self.install("procps", "/etc/init.d/procps", "/etc/rcS.d/README", automatic=True,
                     priority="important")
        os.symlink("../init.d/procps", self.root + "/etc/rcS.d/S01procps")
        self.assertEqual(self.found(), [])

    def test_files_users_processes_and_services_are_found(self):
        self.write("/etc/passwd", "memcache\n")
        npm = fresh_audit.HOME + "/.npm"
        self.write(npm + "/log")
        self.write("/var/log/fresh/processes", "sleep 9\n")
        self.write("/var/log/fresh/services", "memcached start\n")
        self.assertEqual(self.found(), [
            "changed /etc/passwd", f"created {npm}", "left a process: sleep 9",
            "would start a service: memcached start"])

    def test_removed_packages_are_found(self):
        os.remove(self.root + "/var/lib/dpkg/status")
        self.write("/var/lib/dpkg/status", self.package("other"))
        self.assertEqual(self.found("other"), ["removed the package base"])

    def test_packages_of_a_set_are_read_from_the_list(self):
        self.write("/tools/packages.txt",
                   "# A list\n\ntest,dev  cmake required x\npeers redis optional x\n")
        self.assertEqual(fresh_audit.allowed_packages(self.root, "test,bench"), {"cmake"})
        self.assertEqual(fresh_audit.allowed_packages(self.root, "peers,dev"), {"cmake", "redis"})


def start(*arguments, tree=TREE):
    return subprocess.Popen([tree + "/tools/fresh", *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(*arguments, tree=TREE):
    """Returns (exit status, output)."""
    with start(*arguments, tree=tree) as process:
        output = process.communicate()[0]
        return process.returncode, output


def roots():
    return {name for name in os.listdir(fresh.ROOTS) if name.startswith("spate-fresh-")}


class Root(unittest.TestCase):
    """Commands in real roots. Other runs may exist at the same time."""

    def test_a_command_runs_in_a_clone_and_its_status_is_returned(self):
        status, output = run("sh", "-c", "pwd; ls -A ~; hostname; exit 7")
        self.assertEqual((status, output.split()),
                         (7, [fresh_audit.TREE, ".bashrc", ".profile", "spate", "fresh"]))

    def test_the_root_is_a_mount_point_and_has_terminals(self):
        status, output = run("sh", "-c", "mountpoint / && script -qec tty /dev/null && df /dev/shm")
        self.assertEqual(status, 0)
        self.assertIn("/ is a mountpoint\n/dev/pts/0", output)

    def test_the_clone_has_uncommitted_changes_but_no_ignored_files(self):
        with tempfile.TemporaryDirectory() as directory:
            tree = directory + "/tree"
            subprocess.run(["git", "clone", "--quiet", TREE, tree], check=True)
            shutil.copytree(TREE + "/tools", tree + "/tools", dirs_exist_ok=True)
            os.mkdir(tree + "/build")
            for name in ("build/ignored", "new file", "LICENSE"):
                with open(f"{tree}/{name}", "w", encoding="utf-8") as file:
                    file.write(name)
            os.remove(tree + "/README.md")
            status, output = run("sh", "-c", "git status --short; ls build; cat LICENSE", tree=tree)
        self.assertIn(" M LICENSE\n D README.md\n", output)
        self.assertIn('?? "new file"\n', output)
        self.assertNotIn("ignored", output)
        self.assertTrue(output.endswith("LICENSE"), output)
        self.assertEqual(status, 0)

    def test_the_network_is_loopback_and_the_package_sources(self):
        proxy = "http://{}:{}".format(*fresh_network.PROXY)
        status, output = run("--with", "iproute2,curl", "env", f"proxy={proxy}", "sh", "-c", """
            ip -o link | wc -l
            ip netns add one && ip link add end0 type veth peer name end1 netns one && echo veth
            curl -s -o /dev/null -w '%{http_code}\\n' -x $proxy http://192.0.2.1/
            curl -s http://192.0.2.1/ || echo $?
            """)
        self.assertEqual(status, 0)
        self.assertIn("1\nveth\n", output)
        self.assertTrue(output.endswith("403\n7\n"), output)

    def test_an_audit_fails_for_a_package_that_is_a_service(self):
        self.assertEqual(run("--audit", "test", "true")[0], 0)
        status, output = run("--audit", "test", "sh", "-c",
                             "apt-get -qq update; apt-get -qq install memcached; sleep 1000 &")
        self.assertEqual(status, 1)
        for change in ("installed the package memcached", "installed the service memcached",
                       "changed /etc/passwd", "left a process: sleep 1000",
                       "would start a service: memcached (start)"):
            self.assertIn(f"audit: the command {change}", output)
        self.assertNotIn("/usr/bin/memcached", output)

    def test_a_kept_root_is_entered_again_and_replaced_by_the_next(self):
        with tempfile.TemporaryDirectory(dir=fresh.ROOTS) as parent:
            directory = parent + "/new"
            self.assertNotEqual(run("--again", directory, "true")[0], 0)
            self.assertEqual(run("--keep", directory, "touch", "x"), (0, ""))
            self.assertEqual(run("--again", directory, "ls", "x"), (0, "x\n"))
            self.assertNotEqual(run("--keep", directory, "ls", "x")[0], 0)
            os.mkdir(parent + "/other")
            self.assertIn("exists, and is not a root", run("--keep", parent + "/other", "true")[1])

    def test_output_is_kept_in_a_directory_of_the_host(self):
        with tempfile.TemporaryDirectory() as directory:
            run("--out", directory + "/new", "sh", "-c", "echo result >/out/log")
            with open(directory + "/new/log", encoding="utf-8") as file:
                self.assertEqual(file.read(), "result\n")

    def test_several_run_at_once_and_a_signal_leaves_nothing(self):
        before = roots()
        processes = [start("sh", "-c", "echo started; exec sleep 1000") for _ in range(2)]
        for process in processes:
            self.assertEqual(process.stdout.readline(), "started\n")
        self.assertEqual(len(roots() - before), 2)
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            with process:  # The command holds the output open until it ends.
                process.communicate()
            self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertEqual(roots() - before, set())

    def test_a_run_that_was_killed_ends_and_the_next_removes_its_root(self):
        before = roots()
        with start("sh", "-c", "echo started; exec sleep 1000") as process:
            self.assertEqual(process.stdout.readline(), "started\n")
            process.kill()
            process.communicate()
        self.assertEqual(run("true")[0], 0)
        self.assertEqual(roots() - before, set())


def main():
    if sys.argv[1:] != ["--root"]:
        del globals()["Root"]
        return unittest.main()
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("fresh_test: --root needs root and mmdebstrap", file=sys.stderr)
        return 77
    return unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    sys.exit(main())
