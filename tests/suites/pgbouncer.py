"""pgbouncer's own tests, with the installed pgbouncer before PostgreSQL.

PostgreSQL refuses root, so that they run as another user then. Tests that would change the firewall
fail on both.
"""

import glob
import os
import re
import shutil
import tempfile

import suite

NAME = "pgbouncer"
TITLE = "pgbouncer's own tests, before PostgreSQL"
SOURCES = ["pgbouncer"]
PROGRAMS = ["pgbouncer", "psql", "setpriv"]
SERVERS = "/usr/lib/postgresql/*/bin"
USER = 65534
SECONDS = 1200
OUTCOME = re.compile(r"running (test_\w+) \.\.\. (ok|skipped|FAILED)")
OUTCOMES = {"ok": suite.PASSED, "skipped": suite.SKIPPED, "FAILED": suite.FAILED}


def prepare(world, place):
    """Copies the tests and the libraries for the user that runs them. Returns how to be it."""
    for name in ("test", "etc", "include"):
        shutil.copytree(os.path.join(world.source("pgbouncer"), name), os.path.join(place, name))
    shutil.copytree(world.libraries, os.path.join(place, "lib"), symlinks=True)
    os.symlink(suite.path_of("pgbouncer"), os.path.join(place, "pgbouncer"))
    if os.getuid() != 0:
        return []
    for directory, _, names in os.walk(place):
        for name in [".", *names]:
            os.chown(os.path.join(directory, name), USER, USER, follow_symlinks=False)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]


def run_all(world, drop_in, names):
    with tempfile.TemporaryDirectory() as place:
        prefix = prepare(world, place)
        environment = world.environment(drop_in, HOME=place, USER="nobody")
        if drop_in:
            environment["LD_LIBRARY_PATH"] = os.path.join(place, "lib")
        servers = sorted(glob.glob(SERVERS))[-1]
        environment["PATH"] = servers + os.pathsep + environment["PATH"]
        _, output = suite.call([*prefix, "bash", "./test.sh", *names], SECONDS, env=environment,
                               cwd=os.path.join(place, "test"))
    return {name: OUTCOMES[word] for name, word in OUTCOME.findall(output)}


def run(world):
    suite.need(*PROGRAMS)
    if not glob.glob(SERVERS):
        raise suite.Missing("the package postgresql")
    with open(os.path.join(world.source("pgbouncer"), "test", "test.sh"),
              encoding="utf-8") as file:
        listed = re.search(r'(?s)\ntestlist="(.*?)"', file.read())
    names = re.findall(r"^test_\w+$", listed.group(1), re.MULTILINE)
    return suite.compare_runs(names, lambda drop_in, wanted: run_all(world, drop_in, wanted))
