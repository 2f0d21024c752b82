"""nghttp2's integration tests of nghttpx, the installed one, which is linked to libev.

Tests of HTTP/3 are left out, and tests that ask a name server outside. The backend of HTTP/2 is
that of golang.org/x/net, as the one that the tests name cannot be had.
"""

import os
import re

import suite

NAME = "nghttpx"
TITLE = "nghttp2's integration tests of nghttpx"
SOURCES = ["nghttp2"]
PROGRAMS = ["go", "nghttpx"]
FILES = ("nghttpx_http1_test.go", "nghttpx_http2_test.go", "server_tester.go")
EDITS = {"server_tester.go": [
    (r'\t"github.com/lucas-clemente/quic-go/http3"\n', ""),
    (r'\t"github.com/tatsuhiro-t/go-nghttp2"\n', ""),
    (r"nghttp2\.ConfigureServer\(ts\.Config, &nghttp2\.Server\{\}\)",
     "http2.ConfigureServer(ts.Config, &http2.Server{})"),
    (r"(?s)rt := &http3\.RoundTripper\{.*?\n\t\}\n\n\tdefer rt\.Close\(\)\n",
     "rt := http.DefaultTransport\n"),
]}
MODULE = "module nghttp2\n\ngo 1.18\n\nrequire golang.org/x/net v0.17.0\n"
LEFT_OUT = re.compile(r"ExternalDNS")
OUTCOME = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
OUTCOMES = {"PASS": suite.PASSED, "FAIL": suite.FAILED, "SKIP": suite.SKIPPED}


def build(world):
    program = world.path("nghttpx", "tests")
    if os.path.exists(program):
        return program
    place = os.path.dirname(program)
    source = world.source("nghttp2")
    for name in ("src", "integration-tests"):
        os.makedirs(os.path.join(place, name), exist_ok=True)
    os.symlink(suite.path_of("nghttpx"), os.path.join(place, "src", "nghttpx"))
    for name in FILES:
        suite.edited(os.path.join(source, "integration-tests", name), os.path.join(place, name),
                     EDITS.get(name, []))
    with open(os.path.join(place, "config.go"), "w", encoding="utf-8") as file:
        file.write(f'package nghttp2\n\nconst (\n\tbuildDir = "{place}"\n'
                   f'\tsourceDir = "{source}"\n)\n')
    with open(os.path.join(place, "go.mod"), "w", encoding="utf-8") as file:
        file.write(MODULE)
    environment = world.go_environment()
    suite.must(["go", "mod", "tidy"], 600, cwd=place, env=environment)
    suite.must(["go", "test", "-c", "-o", program], 1800, cwd=place, env=environment)
    return program


def run(world):
    suite.need(*PROGRAMS)
    program = build(world)
    listed = suite.must([program, "-test.list", "."])
    names = [name for name in re.findall(r"^Test\w+$", listed, re.MULTILINE)
             if not LEFT_OUT.search(name)]

    def run_all(drop_in, wanted):
        pattern = "^(" + "|".join(wanted) + ")$"
        _, output = suite.call([program, "-test.v", "-test.run", pattern], 1200,
                               cwd=os.path.dirname(program), env=world.environment(drop_in))
        return {name: OUTCOMES[word] for word, name in OUTCOME.findall(output)}

    return suite.compare_runs(names, run_all)
