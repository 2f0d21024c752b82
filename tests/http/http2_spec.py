#!/usr/bin/env python3
"""Runs h2spec's cases against the server, over TCP and over TLS.   http2_spec.py SERVER

SERVER is http2_peers_server. Without h2spec, which Debian does not package, the test is skipped.
"""

import os
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, folder)
                for folder in ("examples", "support")]
import driver
import missing

# By their text, since h2spec's numbers change between versions.
DIFFERENCES = {
    # RFC 7540's priorities, which RFC 9113 has deprecated. The server ignores them.
    "Sends PRIORITY frame that depend on itself",
    # RFC 9113 §5.1 leaves it to the server, which ignores them.
    "closed: Sends a DATA frame after sending RST_STREAM frame",
    "closed: Sends a DATA frame",
}
# The plain port speaks HTTP/1.1, too, and responds with 400. h2spec takes that for a frame.
DIFFERENCES_OVER_TCP = DIFFERENCES | {"Sends invalid connection preface"}
FEWEST = 140


class Spec(unittest.TestCase):
    program = None

    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.server = driver.Server(self.program)
        self.addCleanup(self.server.__exit__)
        self.secure = int(self.server.read_line().rsplit(":", 1)[1])

    def ask(self, port, *how):
        """The cases that failed."""
        with tempfile.TemporaryDirectory() as directory:
            report = os.path.join(directory, "report.xml")
            driver.run("h2spec", "--strict", "--path", "/late", "--port", str(port),
                       "--junit-report", report, *how)
            cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
        self.assertGreater(len(cases), FEWEST)
        return {case.get("classname") for case in cases
                if case.find("failure") is not None or case.find("error") is not None}

    def test_over_tcp(self):
        self.assertLessEqual(self.ask(self.server.port), DIFFERENCES_OVER_TCP)

    def test_over_tls(self):
        self.assertLessEqual(self.ask(self.secure, "--tls", "--insecure"), DIFFERENCES)


if __name__ == "__main__":
    if not shutil.which("h2spec"):
        print(missing.not_installed("h2spec"))
        sys.exit(missing.SKIPPED)
    sys.exit(driver.main(sys.argv, Spec))
