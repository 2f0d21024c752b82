#!/usr/bin/env python3
"""Drives examples/json_api.cc.   json_api.py PROGRAM"""

import json
import sys
import unittest

import driver


def as_json(value):
    """Returns the arguments with which curl sends a value."""
    return ("--header", "Content-Type: application/json", "--data-binary", json.dumps(value))


class JsonApi(unittest.TestCase):
    program = None

    def test_keeps_notes(self):
        with driver.Server(self.program, "0") as server:
            base = f"http://127.0.0.1:{server.port}"

            def status(*arguments):
                return driver.curl("--output", "/dev/null", "--write-out", "%{http_code}",
                                   *arguments)

            text = 'buy "milk"\nand bread'
            said = driver.curl("--include", *as_json({"text": text}), base + "/notes")
            self.assertIn("HTTP/1.1 201 Created", said)
            self.assertIn("Location: /notes/1", said)
            self.assertEqual(json.loads(driver.curl(base + "/notes/1")), {"text": text})
            self.assertEqual(status("--request", "DELETE", base + "/notes/1"), "204")
            self.assertEqual(status("--request", "DELETE", base + "/notes/1"), "404")
            self.assertEqual(status(base + "/notes/1"), "404")
            self.assertEqual(status(base + "/notes/x"), "404")
            self.assertEqual(status(*as_json({"text": "x" * 20_000}), base + "/notes"), "413")
            self.assertEqual(status("--data-binary", '{"text":"a"}', base + "/notes"), "415")
            for bad in ({}, [], {"text": 1}):
                said = json.loads(driver.curl(*as_json(bad), base + "/notes"))
                self.assertEqual((said["status"], said["title"]), (400, "Bad Request"))
            self.assertEqual(status("--request", "PUT", base + "/notes/1"), "405")
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, JsonApi))
