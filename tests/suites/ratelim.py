"""libevent's test-ratelim: members of a rate-limit group get equal shares of the whole."""

import os
import tempfile

import suite

NAME = "ratelim"
TITLE = "libevent's test of rate limits: the whole, and the fairness of a group"
SOURCES = ["libevent"]
PROGRAMS = ["gcc"]
CONFIGURATIONS = {
    "group": "-g 30000 -n 30 -t 20 --check-grouplimit 1000 --check-stddev 100",
    "connection limit": "-c 1000 -n 30 -t 20 --check-connlimit 50 --check-stddev 50",
    "both": "-c 1000 -g 30000 -n 30 -t 20 --check-grouplimit 1000 --check-connlimit 50"
            " --check-stddev 50",
}


def build(world):
    program = world.path("ratelim", "test-ratelim")
    source = world.source("libevent")
    if os.path.exists(program):
        return program
    with tempfile.TemporaryDirectory() as place:
        suite.must([os.path.join(source, "configure"), "-q", "--disable-static"], cwd=place)
        helper = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libevent_internals.c")
        suite.must(["gcc", "-w", "-O1", "-fvisibility=hidden", "-DHAVE_CONFIG_H", f"-I{place}",
                    f"-I{place}/include", f"-I{source}/include", f"-I{source}",
                    os.path.join(source, "test", "test-ratelim.c"), helper, "-o", program,
                    "-levent_core", "-levent_extra", "-lm", "-lpthread"])
    return program


def run(world):
    suite.need(*PROGRAMS)
    program = build(world)

    def run_one(name, drop_in):
        status, _ = suite.call([program, *CONFIGURATIONS[name].split()], 60,
                               env=world.environment(drop_in))
        return suite.PASSED if status == 0 else suite.FAILED

    return suite.compare(list(CONFIGURATIONS), run_one)
