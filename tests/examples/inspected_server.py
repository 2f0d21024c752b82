#!/usr/bin/env python3
"""Drives examples/inspected_server.cc.   inspected_server.py PROGRAM"""

import json
import sys
import time
import unittest

import driver


class InspectedServer(unittest.TestCase):
    program = None

    def test_shows_what_it_does(self):
        with driver.Server(self.program, "0", "0") as server:
            inspector = f"http://127.0.0.1:{server.port}"
            site = f"http://{server.read_line()}"

            def state():
                return json.loads(driver.curl(inspector + "/state.json"))

            self.assertEqual([loop["name"] for loop in state()["loops"]],
                             ["workers/0", "workers/1", "main"])
            self.assertEqual(driver.curl(site + "/"), "hello\n")
            readings = {source["source"]: source["readings"] for source in state()["sources"]}
            self.assertEqual(readings["site"][0]["value"], 1)
            requests = [reading["value"] for reading in readings["server"]
                        if reading["name"] == "requests"]
            self.assertEqual(sum(requests), 1)
            self.assertIn('spate_program_greeted_total{source="site"} 1\n',
                          driver.curl(inspector + "/metrics"))
            with driver.Program("curl", "--silent", "--no-buffer", inspector + "/events") as viewer:
                self.assertTrue(viewer.read_line().startswith("data: {"))
                with driver.Program("curl", "--silent", site + "/slow") as slow:
                    until = time.monotonic() + driver.PATIENCE
                    blocked = []
                    while not blocked and time.monotonic() < until:
                        blocked = [loop for loop in state()["loops"] if "running" in loop]
                    self.assertEqual(blocked[0]["running"]["kind"], "Io")
                    self.assertEqual(slow.read_line(), "at last")
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, InspectedServer))
