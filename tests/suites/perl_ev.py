"""The tests of Perl's EV, on libev in source form."""

import scripts
import suite

NAME = "perl_ev"
TITLE = "the tests of Perl's EV, on the drop-in libev in source form"
SOURCES = ["libev-perl"]
PROGRAMS = ["perl", "make", "g++", "prove"]


def run(world):
    suite.need(*PROGRAMS)
    form = world.path("amalgamation")
    suite.must([f"{world.project}/tools/amalgamate.py", "--libev", form])
    done = scripts.run_script(world, "dropin/source_form/perl_ev.py",
                              ["--source", form, "--compiler", "g++"], 900,
                              SPATE_EV_SOURCES=world.source("libev-perl"))
    return scripts.report([("drop-in", *done)])
