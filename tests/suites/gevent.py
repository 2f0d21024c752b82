"""gevent's own tests, on Debian's gevent, which loads libev.

Debian's package leaves the tests out. A copy of the package gets the tests of the wheel of the
same version.
"""

import glob
import os
import shutil

import suite

NAME = "gevent"
TITLE = "gevent's own tests, each module as a program"
SOURCES = []
WHEELS = ["gevent==22.10.2"]
PROGRAMS = []
PYTHON = "/usr/bin/python3"  # Debian's, whose gevent this is.
PACKAGE = "/usr/lib/python3/dist-packages/gevent"
ADDED = ("tests", "testing")
SECONDS = 180
# They need a network, or take minutes by their nature.
LEFT_OUT = {"test__all__", "test__examples"}


def build(world):
    """The directory that has the package with its tests."""
    place = world.path("gevent", "site")
    if os.path.isdir(place):
        return place
    if not os.path.isdir(PACKAGE):
        raise suite.Missing("the package python3-gevent")
    wheels = world.wheel("gevent")
    made = place + ".new"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(PACKAGE, os.path.join(made, "gevent"))
    for name in ADDED:
        shutil.copytree(os.path.join(wheels, "gevent", name), os.path.join(made, "gevent", name),
                        dirs_exist_ok=True)
    os.rename(made, place)
    return place


def names_in(place):
    files = glob.glob(os.path.join(place, "gevent", "tests", "test_*.py"))
    names = sorted(os.path.basename(path)[:-3] for path in files)
    return [name for name in names if name not in LEFT_OUT]


def run(world):
    place = build(world)

    def run_one(name, drop_in):
        environment = world.environment(drop_in, PYTHONPATH=place, GEVENT_LOOP="libev-cext",
                                        GEVENTTEST_USE_RESOURCES="-network",
                                        PYTHONWARNINGS="ignore")
        words = [PYTHON, "-m", f"gevent.tests.{name}"]
        status, _ = suite.call(words, SECONDS, env=environment, cwd=place)
        return suite.PASSED if status == 0 else suite.FAILED

    return suite.compare(names_in(place), run_one)
