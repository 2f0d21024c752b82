"""tlsfuzzer's conversations in TLS 1.3 with a server over bufferevent_openssl.

tlsfuzzer is no package: SPATE_TLSFUZZER_SOURCES names its directory. A script picks some of its
conversations at random, so each runs with the same seed. Each script gets a new server.
"""

import glob
import os
import re
import subprocess
import threading

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
# CBC is used by many scripts for TLS 1.2, and is in no server of these suites.
SEEDED = """
import random, runpy, sys
from tlslite.constants import CipherSuite
CipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA = CipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
CipherSuite.TLS_DHE_RSA_WITH_AES_128_CBC_SHA = CipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
random.seed(1)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
HEADING = re.compile(r"^(\S.*)(?: \.\.\.| repeat \d+)$", re.MULTILINE)  # A conversation's name.
PASSES = re.compile(r"^OK\b", re.MULTILINE)  # After it.


def source():
    place = os.environ.get("SPATE_TLSFUZZER_SOURCES", "")
    if not os.path.isdir(os.path.join(place, "tlsfuzzer")):
        raise suite.Missing("SPATE_TLSFUZZER_SOURCES, the directory of tlsfuzzer")
    return place


def scripts_like(pattern, left_out):
    """The names of the scripts that match the glob `pattern`, without those of `left_out`."""
    names = sorted(os.path.basename(path)
                   for path in glob.glob(os.path.join(source(), "scripts", pattern)))
    return [name for name in names if not left_out.search(name)]


def identity(world):
    """Makes a certificate. Returns the paths of it and of its key."""
    names = [world.path("tlsfuzzer", name) for name in ("certificate.pem", "key.pem")]
    if not os.path.exists(names[0]):
        suite.must(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                    "-subj", "/CN=localhost", "-out", names[0], "-keyout", names[1]])
    return names


def build(world):
    """Returns the command of the server."""
    program = world.path("tlsfuzzer", "answerer")
    text = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tls_answerer.c")
    suite.must(["gcc", "-O1", text, "-o", program, "-levent_openssl", "-levent_core", "-lssl",
                "-lcrypto"])
    return [program, *identity(world)]


def port_of(server):
    """The number at the end of the first line that has one. Later output is dropped."""
    for line in server.stdout:
        found = re.search(r"(\d+)$", line.strip())
        if found:
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return found.group(1)
    raise suite.Missing(f"a server: {server.args[0]} ended")


def call_script(script, words, environment):
    """Runs a script with `words`, except options that it does not have."""
    while True:
        status, output = suite.call(["python3", "-c", SEEDED,
                                     os.path.join(source(), "scripts", script), *words],
                                    SECONDS, env=environment)
        unknown = re.search(r"option (-\w) not recognized", output)
        if not unknown:
            return status, output
        words = [word for word in words if not word.startswith(unknown.group(1))]


def outcomes_of(world, script, command, environment, *more):
    """Runs one script, with the words `more`, against a new server.

    Returns {"script: conversation": outcome}.
    """
    server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        environment = world.environment()
        environment["PYTHONPATH"] += os.pathsep + source()
        words = ["-hlocalhost", f"-p{port_of(server)}", f"-n{SAMPLE}", *more]
        if "tls13" not in script:
            words.append("-d")  # Key exchange by ECDHE.
        status, output = call_script(script, words, environment)
    finally:
        server.kill()
        server.wait()
    _, *pieces = HEADING.split(output)
    found = {}
    for name, text in zip(pieces[::2], pieces[1::2]):
        passes = PASSES.search(text) and found.get(f"{script}: {name}") != suite.FAILED
        found[f"{script}: {name}"] = suite.PASSED if passes else suite.FAILED
    found[f"{script}: all"] = suite.PASSED if status == 0 else suite.FAILED
    return found


def compare(world, scripts, serve, **options):
    """Compares two servers.

    serve(script, is_ours) returns the command of one, its environment, and the script's words.
    """
    def run_all(is_ours, names):
        wanted = sorted({name.split(": ")[0] for name in names})
        found = {}
        for outcomes in suite.each(wanted,
                                   lambda name: outcomes_of(world, name, *serve(name, is_ours))):
            found |= outcomes
        return found

    first = run_all(False, scripts)

    def run_all_but_first(is_ours, names):
        if not is_ours and len(names) == len(first):
            return first
        return run_all(is_ours, names)

    return suite.compare_runs(list(first), run_all_but_first, **options)


def run(world):
    suite.need(*PROGRAMS)
    command = build(world)
    return compare(world, scripts_like("test-tls13-*.py", LEFT_OUT),
                   lambda _, drop_in: (command, world.environment(drop_in)))
