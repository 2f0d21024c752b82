#!/usr/bin/env python3
"""Runs Autobahn's cases against the WebSockets of both sides.   websocket_cases.py [--long] PROGRAM

PROGRAM is http_websocket_peer. The cases are run by `kosoku`, from Python's package index; without
it the test is skipped. --long adds those of long messages and of compression, which take minutes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import missing

PATIENCE = 60  # Seconds; for all of them:
LONG_PATIENCE = 1800
SHORT = [f"{number}.*" for number in (1, 2, 3, 4, 5, 6, 7, 10)]
FINE = {"OK", "INFORMATIONAL", "NON-STRICT"}
# Optional parameters of compression that we do not offer (RFC 7692, 7.1.2): our server has no
# smaller windows, and our client does not let the server choose one. The cases are UNIMPLEMENTED
# then.
DECLINED = {"ask_server": re.compile(r"13\.[35]\."), "ask_client": re.compile(r"13\.[3456]\.")}
# A case whose own messages cannot be made (a bug of the suite).
BROKEN = "Strings must be encoded before hashing"


def started(*command):
    # pylint: disable-next=consider-using-with
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stop(process):
    process.terminate()
    process.wait(PATIENCE)
    process.stdout.close()


def read_line(process):
    return process.stdout.readline().strip().split("//")[-1].rstrip("/")


class Cases:
    def __init__(self, suite, program, is_long):
        self.suite, self.program, self.is_long = suite, program, is_long
        self.patience = LONG_PATIENCE if is_long else PATIENCE

    def command(self, mode, directory, address):
        chosen = [] if self.is_long else [word for each in SHORT for word in ("-i", each)]
        return (self.suite, "-m", mode, "-o", directory, *chosen, address)

    def ask_server(self, directory):
        subprocess.run([self.program, "certify", directory], check=True)
        server = started(self.program, "serve", directory)
        try:
            subprocess.run(self.command("fuzzingclient", directory, read_line(server)),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                           timeout=self.patience)
        finally:
            stop(server)

    def ask_client(self, directory):
        suite = started(*self.command("fuzzingserver", directory, "127.0.0.1:0"))
        try:
            subprocess.run([self.program, "run-cases", "ws://" + read_line(suite)], check=True,
                           timeout=self.patience)
            for line in suite.stdout:
                if line.startswith("wrote"):
                    break
        finally:
            stop(suite)


def failures(directory, declined):
    """Returns (the number run, those declined, those failed)."""
    with open(os.path.join(directory, "index.json"), encoding="utf-8") as file:
        (cases,) = json.load(file).values()
    failed, fewer = [], 0
    for name, case in sorted(cases.items()):
        if {case["behavior"], case["behaviorClose"]} <= FINE:
            continue
        if case["behavior"] == "UNIMPLEMENTED" and declined.match(name):
            fewer += 1
            continue
        with open(os.path.join(directory, case["reportfile"]), encoding="utf-8") as file:
            result = json.load(file)["result"]
        if result != BROKEN:
            failed.append(f"{name}: {case['behavior']}, {case['behaviorClose']}: {result}")
    return len(cases), fewer, failed


def main(arguments):
    suite = shutil.which("kosoku")
    if suite is None:
        print(missing.not_installed("kosoku"))
        return missing.SKIPPED
    cases = Cases(suite, arguments[-1], "--long" in arguments)
    all_failed = []
    for ask in (cases.ask_server, cases.ask_client):
        with tempfile.TemporaryDirectory() as directory:
            ask(directory)
            count, fewer, failed = failures(directory, DECLINED[ask.__name__])
        print(f"{ask.__name__}: {count} cases, {fewer} declined, {len(failed)} failed", *failed,
              sep="\n")
        all_failed += failed if count > 200 else ["too few"]
    return 1 if all_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
