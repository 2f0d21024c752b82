"""The event loops of asyncio that are compared, for the programs of this directory.

It imports little before arguments(), which replaces this process by the right Python.
"""
import importlib.util
import json
import os
import sys

AIOFASTNET = "_aiofastnet"
# Packages by the name of their loop, and the oldest Python that each is made for.
PEERS = {"uvloop": (3, 8), "rloop": (3, 9), "zuvloop": (3, 14), "aiofastnet": (3, 9)}


def arguments(words):
    """Returns the pairs of the command line, and continues in the Python that they name.

    That is the Python which the packages were built and fetched for.
    """
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2])}
    python = options["python"]
    if os.environ.get("BENCH_IN_PYTHON") != str(os.getpid()):
        os.environ["BENCH_IN_PYTHON"] = str(os.getpid())
        os.execv(python, [python, *sys.argv])
    return options


def report(**row):
    print(json.dumps(row, allow_nan=False), flush=True)


def leave_out(reason):
    report(left_out=reason)
    sys.exit(0)


def packages(loop):
    """Returns the names of the packages of the loop, the outermost last."""
    inner = loop.removesuffix(AIOFASTNET)
    return [inner] if inner == loop else [inner, "aiofastnet"]


def check(options):
    """Leaves the contestant out if a package is missing."""
    sys.path[:0] = [options["package"], options["peers"]]
    for name in packages(options["loop"]):
        oldest = PEERS.get(name, (0, 0))
        if sys.version_info < oldest:
            leave_out(f"{name} needs Python {'.'.join(map(str, oldest))}")
        if importlib.util.find_spec(name) is None:
            leave_out(f"{name} is not there: {sys.executable} -m pip install --target "
                      f"{options['peers']} {name}")


def factory_of(options):
    """Returns the factory of the loop that `options` name, and prints the version."""
    check(options)
    factory = None
    for name in packages(options["loop"]):
        module = importlib.import_module(name)
        if name == "aiofastnet":
            factory = module.loop_factory(factory)
        else:
            factory = module.SelectorEventLoop if name == "asyncio" else module.new_event_loop
    version = sys.version.split()[0] if name == "asyncio" else module.__version__
    report(version=version, library=module.__file__)
    return factory
