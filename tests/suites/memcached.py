"""memcached's own tests, with the installed memcached on both libraries."""

import scripts
import suite

NAME = "memcached"
TITLE = "memcached's own tests"
SOURCES = ["memcached"]
PROGRAMS = ["memcached", "prove"]


def run(world):
    suite.need(*PROGRAMS)
    done = [(mode, *scripts.run_script(world, "dropin/programs/memcached_suite.py",
                                       ["--mode", mode, "--lib-dir", world.libraries], 900,
                                       SPATE_MEMCACHED_SOURCES=world.source("memcached")))
            for mode in ("original", "dropin")]
    if done[0][1] != 0:
        raise suite.Missing(f"an original that passes: {done[0][2]}")
    return scripts.report(done)
