#!/usr/bin/env python3
"""Drives examples/tls_echo.cc, with each installed program that speaks TLS.   tls_echo.py
PROGRAM"""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
import missing  # noqa: E402  pylint: disable=wrong-import-position

OPENSSL = shutil.which("openssl")


def has(program):
    return unittest.skipUnless(shutil.which(program), missing.not_installed(program))


@unittest.skipUnless(OPENSSL, missing.not_installed("openssl"))
class TlsEcho(unittest.TestCase):
    program = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.chain = os.path.join(self.folder.name, "chain.pem")
        self.key = os.path.join(self.folder.name, "key.pem")
        self.make_certificate("first")

    def make_certificate(self, name):
        subprocess.run(
            [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-keyout", self.key, "-out", self.chain,
             "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, stderr=subprocess.DEVNULL)

    def start(self):
        return driver.Server(self.program, "127.0.0.1:0", self.chain, self.key)

    def connect(self, port, **versions):
        context = ssl.create_default_context(cafile=self.chain)
        for name, version in versions.items():
            setattr(context, name, version)
        plain = socket.create_connection(("127.0.0.1", port), driver.PATIENCE)
        return context.wrap_socket(plain, server_hostname="localhost")

    def subject_at(self, port):
        with self.connect(port) as peer:
            return peer.getpeercert()["subject"][0][0][1]

    def test_echoes_to_python(self):
        with self.start() as echo:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                with self.connect(echo.port, maximum_version=version) as peer:
                    message = os.urandom(300_000)
                    peer.sendall(message)
                    heard = b""
                    while len(heard) < len(message):
                        heard += peer.recv(65536)
                    self.assertEqual(heard, message)
            self.assertEqual(echo.stop(), 0)

    def test_says_goodbye(self):
        with self.start() as echo:
            with self.connect(echo.port) as peer:
                peer.sendall(b"x")
                self.assertEqual(peer.recv(10), b"x")
                peer.unwrap().close()

    def test_reads_its_certificate_again(self):
        with self.start() as echo:
            self.assertEqual(self.subject_at(echo.port), "first")
            self.make_certificate("second")
            echo.process.send_signal(signal.SIGHUP)
            self.assertEqual(echo.read_line(), "reloaded")
            self.assertEqual(self.subject_at(echo.port), "second")

    def test_keeps_its_certificate_if_the_new_one_is_none(self):
        with self.start() as echo:
            good = self.chain + ".good"
            shutil.copy(self.chain, good)
            with open(self.chain, "w") as file:
                file.write("no certificate")
            echo.process.send_signal(signal.SIGHUP)
            self.assertIn("certificate", echo.read_line())
            shutil.copy(good, self.chain)
            self.assertEqual(self.subject_at(echo.port), "first")

    def test_echoes_to_openssl(self):
        for version in ("-tls1_2", "-tls1_3"):
            with self.start() as echo:
                peer = subprocess.run(
                    [OPENSSL, "s_client", "-connect", f"127.0.0.1:{echo.port}", version,
                     "-CAfile", self.chain, "-verify_return_error", "-verify_hostname",
                     "localhost", "-quiet", "-no_ign_eof"],
                    input="hello\n", capture_output=True, text=True, timeout=driver.PATIENCE)
                self.assertEqual(peer.returncode, 0, peer.stderr)

    @has("gnutls-cli")
    def test_echoes_to_gnutls(self):
        with self.start() as echo:
            peer = subprocess.Popen(
                ["gnutls-cli", "--x509cafile", self.chain, "-p", str(echo.port), "localhost"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            peer.stdin.write("hello\n")
            peer.stdin.flush()
            while peer.stdout.readline() != "hello\n":
                self.assertIsNone(peer.poll())
            peer.stdin.close()
            self.assertEqual(peer.wait(driver.PATIENCE), 0)
            peer.stdout.close()

    @has("curl")
    def test_is_trusted_by_curl(self):
        with self.start() as echo:
            peer = subprocess.Popen(
                ["curl", "-sN", "--http0.9", "--cacert", self.chain, "--resolve",
                 f"localhost:{echo.port}:127.0.0.1", f"https://localhost:{echo.port}/"],
                stdout=subprocess.PIPE)
            self.assertEqual(peer.stdout.read(14), b"GET / HTTP/1.1")
            self.assertEqual(echo.stop(), 0)
            peer.stdout.read()
            peer.stdout.close()
            self.assertEqual(peer.wait(driver.PATIENCE), 0)

    def test_is_trusted_by_nobody_who_does_not_know_it(self):
        with self.start() as echo:
            plain = socket.create_connection(("127.0.0.1", echo.port), driver.PATIENCE)
            with self.assertRaises(ssl.SSLCertVerificationError):
                ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: tls_echo [HOST:]PORT CHAIN KEY\n")

    def test_says_what_is_wrong_with_the_certificate(self):
        failed = driver.run(self.program, "0", self.key, self.key)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("certificate", failed.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, TlsEcho))
