"""tlsfuzzer's conversations in TLS 1.3 with a server over bufferevent_openssl.

tlsfuzzer is no package: SPATE_TLSFUZZER_SOURCES names its directory. A script picks some of its
conversations at random, so each runs with the same seed. Each script gets a new server.
"""

import glob
import os
import re
import subprocess

import suite

NAME = "tlsfuzzer"
TITLE = "tlsfuzzer's conversations in TLS 1.3, with a server over bufferevent_openssl"
SOURCES = []
PIP = ["tlslite-ng==0.9.0b2"]
PROGRAMS = ["gcc", "openssl", "python3"]
SECONDS = 300
SAMPLE = "20"  # Conversations of each script, besides those that it always has.
# They measure time, or need certificates and extensions that the server does not have.
LEFT_OUT = re.compile("minerva|certificate-request|certificate-verify|post-handshake|client-cert"
                      "|compression|psk_ke|brainpool|ecdsa|eddsa|mldsa|mlkem")
SEEDED = ("import random, runpy, sys; random.seed(1); sys.argv = sys.argv[1:];"
          "runpy.run_path(sys.argv[0], run_name='__main__')")
# One conversation: its name, what the script printed, and its outcome.
OUTCOME = re.compile(r"^(\S.*) \.\.\.\n(?:.*\n)*?(OK|FAIL|XFAIL|XPASS)$", re.MULTILINE)


def source():
    place = os.environ.get("SPATE_TLSFUZZER_SOURCES", "")
    if not os.path.isdir(os.path.join(place, "tlsfuzzer")):
        raise suite.Missing("SPATE_TLSFUZZER_SOURCES, the directory of tlsfuzzer")
    return place


def build(world):
    """Returns the command of the server."""
    program = world.path("tlsfuzzer", "answerer")
    names = [world.path("tlsfuzzer", name) for name in ("certificate.pem", "key.pem")]
    text = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tls_answerer.c")
    suite.must(["gcc", "-O1", text, "-o", program, "-levent_openssl", "-levent_core", "-lssl",
                "-lcrypto"])
    if not os.path.exists(names[0]):
        suite.must(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                    "-subj", "/CN=localhost", "-out", names[0], "-keyout", names[1]])
    return [program, *names]


def outcomes_of(world, command, script, drop_in):
    """Runs one script. Returns {"script: conversation": outcome}."""
    server = subprocess.Popen(command, env=world.environment(drop_in), stdout=subprocess.PIPE,
                              text=True)
    try:
        port = server.stdout.readline().strip()
        environment = world.environment()
        environment["PYTHONPATH"] += os.pathsep + source()
        words = ["python3", "-c", SEEDED, os.path.join(source(), "scripts", script),
                 "-h", "localhost", "-p", port]
        with_sample = [*words, "-n", SAMPLE]
        status, output = suite.call(with_sample, SECONDS, env=environment)
        if status not in (0, 1):  # It has no such option.
            status, output = suite.call(words, SECONDS, env=environment)
    finally:
        server.kill()
        server.wait()
    found = {f"{script}: {name}": suite.PASSED if word in ("OK", "XFAIL") else suite.FAILED
             for name, word in OUTCOME.findall(output)}
    found[f"{script}: all"] = suite.PASSED if status == 0 else suite.FAILED
    return found


def run(world):
    suite.need(*PROGRAMS)
    command = build(world)
    scripts = sorted(os.path.basename(path)
                     for path in glob.glob(os.path.join(source(), "scripts", "test-tls13-*.py")))
    scripts = [name for name in scripts if not LEFT_OUT.search(name)]

    def run_all(drop_in, names):
        wanted = sorted({name.split(": ")[0] for name in names})
        found = {}
        for outcomes in suite.each(wanted,
                                   lambda name: outcomes_of(world, command, name, drop_in)):
            found |= outcomes
        return found

    first = run_all(False, scripts)

    def run_all_but_first(drop_in, names):
        if not drop_in and len(names) == len(first):
            return first
        return run_all(drop_in, names)

    return suite.compare_runs(list(first), run_all_but_first)
