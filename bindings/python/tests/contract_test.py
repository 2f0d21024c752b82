"""CPython's own tests of event loops, on this loop and, where one fails, on asyncio's.

No test may fail here that passes with asyncio's loop. Only some interpreters include these tests;
Debian has them in libpython3.11-testsuite. Each test runs in a child process, so a crash or a hang
fails only one.
"""

import asyncio
import importlib
import json
import os
import select
import signal
import time
import unittest
import warnings

import spate

try:
    from test.test_asyncio import utils
    importlib.import_module("test.test_asyncio.test_events")
except ImportError as error:
    raise unittest.SkipTest(f"this interpreter has no tests of asyncio: {error}")

SECONDS = 30  # After this time a test counts as hung.
# Module, mixins, their base, and the name of the method that creates a loop.
CONTRACT = [
    ("test_events", ("EventLoopTestsMixin", "SubprocessTestsMixin"), utils.TestCase,
     "create_event_loop"),
    ("test_sendfile", ("SendfileTestsBase",), utils.TestCase, "create_event_loop"),
    ("test_sock_lowlevel", ("BaseSockTestsMixin",), utils.TestCase, "create_event_loop"),
    ("test_server", ("BaseStartServer",), unittest.TestCase, "new_loop"),
    ("test_sslproto", ("BaseStartTLS",), unittest.TestCase, "new_loop"),
    ("test_buffered_proto", ("BaseTestBufferedProtocol",), unittest.TestCase, "new_loop"),
]


def classes(factory):
    """Yields a test class per entry, with loops from the factory."""
    for module_name, mixins, base, method in CONTRACT:
        module = importlib.import_module(f"test.test_asyncio.{module_name}")
        yield type(mixins[0], (*(getattr(module, mixin) for mixin in mixins), base),
                   {method: lambda self, factory=factory: factory(),
                    "__module__": module.__name__})


def run_one(test):
    """Runs the test in this process; returns "passed", "skipped", or the reason of its failure."""
    result = unittest.TestResult()
    try:
        module = importlib.import_module(type(test).__module__)
        getattr(module, "setUpModule", lambda: None)()
        type(test).setUpClass()
    except unittest.SkipTest:
        return "skipped"
    test.run(result)
    for _, text in result.errors + result.failures:
        return text[-2000:]
    return "skipped" if result.skipped else "passed"


def run_in_child(test):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            os.close(reader)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nowhere, descriptor)
            warnings.simplefilter("ignore")
            os.write(writer, json.dumps(run_one(test)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    return await_child(child, reader)


def await_child(child, reader):
    # Watches both, since the pipe stays open in processes that the child has started.
    deadline, data, status = time.monotonic() + SECONDS, b"", None
    watched = os.pidfd_open(child)
    while status is None and time.monotonic() < deadline:
        if select.select([watched], [], [], max(0, deadline - time.monotonic()))[0]:
            _, status = os.waitpid(child, 0)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.set_blocking(reader, False)
    try:
        data = os.read(reader, 65536)
    except BlockingIOError:
        pass
    os.close(reader)
    os.close(watched)
    try:
        os.killpg(child, signal.SIGKILL)  # Processes that it left running.
    except (ProcessLookupError, PermissionError):
        pass
    if status is None:
        return "hangs"
    return json.loads(data) if data else f"crashes, status {status}"


class Contract(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # Shells ignore it for background jobs.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)


def make_test(stock, ours):
    def test(self):
        passed, failed = 0, {}
        for mine, theirs in zip(unittest.defaultTestLoader.loadTestsFromTestCase(ours),
                                unittest.defaultTestLoader.loadTestsFromTestCase(stock)):
            result = run_in_child(mine)
            passed += result == "passed"
            if result not in ("passed", "skipped") and run_in_child(theirs) == "passed":
                failed[mine.id()] = result
        self.assertEqual(failed, {})
        self.assertGreater(passed, 0)
    return test


def stock_loop():
    return asyncio.SelectorEventLoop()


def fill():
    for stock, ours in zip(classes(stock_loop), classes(spate.new_event_loop)):
        setattr(Contract, f"test_{ours.__name__}_passes_what_it_passes_on_asyncio",
                make_test(stock, ours))


fill()


if __name__ == "__main__":
    unittest.main()
