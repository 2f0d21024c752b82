"""Suites of Perl's modules: on EV with both libevs, and on the loop of the module Spate.

The original EV is Debian's, which has libev compiled in; the other is built on the drop-in in
source form. Coro is compiled for each. The tests of POE and IO::Async compare the module Spate
with the loop on select() that each of them brings.
"""

import glob
import os
import shutil
import sys

import suite

NAME = "perl"
TITLE = "AnyEvent, Coro and Mojolicious on EV; POE and IO::Async on the module Spate"
SOURCES = ["libev-perl", "libanyevent-perl", "libcoro-perl", "libmojolicious-perl"]
PROGRAMS = ["perl", "make", "g++", "poe-gen-tests"]
SECONDS = 180
# Of AnyEvent, those that any loop runs and those for EV; not what needs a name server.
ANYEVENT = ("0[1-79]_*.t", "1*.t", "69_ev_*.t", "handle/*.t")
PARTS = ("metrics", "io", "timer", "signal", "idle", "process", "control")
IO_ASYNC = "use IO::Async::LoopTests; run_tests('IO::Async::Loop::%s', '%s');"


def quiet():
    return dict(os.environ, PERL_MM_USE_DEFAULT="1", MAKEFLAGS="")


def build_ev(world):
    """EV on the drop-in."""
    place = world.path("perl", "EV")
    if os.path.isdir(os.path.join(place, "blib")):
        return place
    shutil.rmtree(place, ignore_errors=True)
    form = world.path("amalgamation")
    suite.must([f"{world.project}/tools/amalgamate.py", "--libev", form])
    script = f"{world.project}/tests/dropin/source_form/perl_ev.py"
    suite.must([sys.executable, script, "--source", form, "--compiler", "g++", "--keep", place],
               900, env=dict(os.environ, SPATE_EV_SOURCES=world.source("libev-perl")))
    return place


def libraries(place):
    return os.pathsep.join(os.path.join(place, "blib", part) for part in ("lib", "arch"))


def build_coro(world, name, paths, flags):
    place = world.path("perl", f"Coro-{name}")
    if os.path.isdir(os.path.join(place, "blib", "arch")):
        return place
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(world.source("libcoro-perl"), place)
    environment = quiet() | {"PERL5LIB": paths}
    suite.must(["perl", "Makefile.PL", f"OPTIMIZE=-O1 {flags}"], 300, cwd=place, env=environment)
    suite.must(["make"], 900, cwd=place, env=environment)
    return place


def build_spate(world):
    """The module Spate."""
    place = world.path("perl", "Spate")
    if os.path.isdir(os.path.join(place, "blib", "arch")):
        return place
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(os.path.join(world.project, "bindings", "perl"), place)
    suite.must([f"{world.project}/tools/amalgamate.py", place])
    suite.must(["perl", "Makefile.PL"], 300, cwd=place, env=quiet())
    suite.must(["make"], 1800, cwd=place, env=quiet())
    return place


class Places:
    """All that is built, and how each test is called."""

    def __init__(self, world):
        self.world = world
        ev = build_ev(world)
        stub = world.path("perl", "stub")  # Of Canary::Stability, without EV's headers.
        shutil.copytree(os.path.join(ev, "Canary"), os.path.join(stub, "Canary"),
                        dirs_exist_ok=True)
        paths = libraries(ev)
        self.ev = {False: "", True: paths}
        self.coro = {
            False: build_coro(world, "original", stub, ""),
            True: build_coro(world, "dropin", os.pathsep.join([paths, stub]),
                             f"-DEV_H='<spate_ev.h>' -I{ev} -I{ev}/libev")}
        self.spate = libraries(build_spate(world))
        self.tests = {}  # name: (group, directory, words)
        self.add_files("anyevent", world.source("libanyevent-perl"), "t", ANYEVENT)
        self.add_files("mojo", world.source("libmojolicious-perl"), "t", ("mojo/*.t",))
        self.add_files("coro", self.coro[False], "t", ("*.t",))
        self.add_files("coro-ev", self.coro[False], "EV/t", ("*.t",))
        for part in PARTS:
            self.tests[f"io-async/{part}"] = ("io-async", world.place, part)
        self.poe = {drop_in: self.generate_poe(drop_in) for drop_in in (False, True)}

    def add_files(self, group, directory, below, patterns):
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(directory, below, pattern))):
                name = os.path.relpath(path, directory)
                self.tests[f"{group}/{name}"] = (group, directory, name)

    def generate_poe(self, drop_in):
        loop = "Spate" if drop_in else "Select"
        place = self.world.path("perl", f"poe-{loop}")
        if not os.path.isdir(place):
            suite.must(["poe-gen-tests", f"--dirbase={place}", f"--loop=POE::Loop::{loop}"],
                       env=dict(os.environ, PERL5LIB=self.spate))
        for path in sorted(glob.glob(os.path.join(place, "**", "*.t"), recursive=True)):
            name = os.path.basename(path)
            self.tests[f"poe/{name}"] = ("poe", place, name)
        return place

    def call(self, name, drop_in):
        group, directory, what = self.tests[name]
        words = ["perl", what]
        more = {"PERL5LIB": self.ev[drop_in], "PERL_ANYEVENT_MODEL": "EV",
                "MOJO_REACTOR": "Mojo::Reactor::EV", "PERL_ANYEVENT_LOOP_TESTS": "1",
                "TEST_EV": "1", "TEST_SUBPROCESS": "1"}
        if group.startswith("coro"):
            directory = self.coro[drop_in]
            more["PERL5LIB"] = os.pathsep.join([libraries(directory), self.ev[drop_in]])
        elif group == "mojo":
            words = ["perl", f"-I{directory}/lib", what]
        elif group == "io-async":
            more = {"PERL5LIB": self.spate}
            words = ["perl", "-e", IO_ASYNC % ("Spate" if drop_in else "Select", what)]
        elif group == "poe":
            more = {"PERL5LIB": self.spate}
            directory = self.poe[drop_in]
            found = glob.glob(os.path.join(directory, "**", what), recursive=True)
            words = ["perl", *found[:1]]
        status, output = suite.call(words, SECONDS, cwd=directory,
                                    env=self.world.environment(False, **more))
        if status != 0:
            return suite.FAILED
        return suite.SKIPPED if output.startswith("1..0") else suite.PASSED


def run(world):
    suite.need(*PROGRAMS)
    places = Places(world)
    return suite.compare(list(places.tests), places.call)
