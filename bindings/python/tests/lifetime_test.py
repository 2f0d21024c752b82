"""The lifetime of loops: objects that remain, forks, subinterpreters, and the ways to run them."""

import asyncio
import contextvars
import gc
import os
import socket
import sys
import unittest
import warnings
import weakref

import spate
from spate import _core


class Life(unittest.TestCase):
    def test_closed_loop_releases_what_was_queued(self):
        class Held:
            def call(self):
                pass
        loop, held = spate.new_event_loop(), Held()
        held.timer = loop.call_later(3600, held.call)
        held.soon = loop.call_soon(held.call)
        died = weakref.ref(held)
        del held
        loop.close()
        self.assertIsNone(died())

    def test_finished_handles_in_their_own_context_are_collected(self):
        class Request:
            pass
        current = contextvars.ContextVar("current")

        async def serve():
            request = Request()
            current.set(request)
            loop = asyncio.get_running_loop()
            request.timer = loop.call_later(0, lambda: None)
            request.soon = loop.call_soon(lambda: None)
            await asyncio.sleep(0.01)
            return weakref.ref(request)
        died = spate.run(serve())
        gc.collect()
        self.assertIsNone(died())

    def test_garbage_with_a_kept_timer_is_collected(self):
        class Held:
            def call(self):
                pass
        loop, held = spate.new_event_loop(), Held()
        held.timer, held.loop = loop.call_later(3600, held.call), loop
        died = weakref.ref(held)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # The loop is not closed.
            del loop, held
            gc.collect()
        self.assertIsNone(died())

    def test_loop_that_is_garbage_is_collected(self):
        loop = spate.new_event_loop()
        loop.call_soon(lambda loop=loop: None)
        loop.call_later(3600, lambda loop=loop: None)
        died = weakref.ref(loop)
        del loop
        with self.assertWarns(ResourceWarning):
            gc.collect()
        self.assertIsNone(died())

    def test_loops_leave_no_descriptors(self):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            spate.run(asyncio.sleep(0))
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_loops_leave_no_memory(self):
        async def main():
            for _ in range(20):
                await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            loop.call_later(60, str, object())
            loop.call_soon(max, 1, 2, 3, 4, 5)

        def blocks():
            for _ in range(20):
                spate.run(main())
            gc.collect()
            return sys.getallocatedblocks()
        blocks()
        first = blocks()
        self.assertLess(blocks() - first, 50)

    def test_child_of_a_fork_may_use_its_parents_loop(self):
        loop = spate.new_event_loop()
        a, b = socket.socketpair()
        try:
            loop.add_reader(a, loop.stop)
            loop.call_soon(loop.stop)
            loop.run_forever()
            child = os.fork()
            if child == 0:
                b.send(b"1")
                loop.run_forever()
                loop.close()
                os._exit(7)
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 7)
            loop.run_forever()  # The child's byte is still there.
        finally:
            loop.close()
            a.close()
            b.close()

    def test_subinterpreter_has_a_loop_of_its_own(self):
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            try:
                import _interpreters as interpreters
            except ImportError:
                self.skipTest("this Python shows no subinterpreters")
        interpreter = interpreters.create()
        code = (f"import sys; sys.path[:0] = {sys.path!r}\n"
                "import asyncio, spate\n"
                "spate.run(asyncio.sleep(0.001))\n")
        for _ in range(2):
            failed = interpreters.run_string(interpreter, code)
            self.assertIsNone(failed)
        interpreters.destroy(interpreter)
        spate.run(asyncio.sleep(0))

    def test_run_returns_the_result(self):
        async def main():
            return type(asyncio.get_running_loop()), asyncio.get_running_loop().get_debug()
        self.assertEqual(spate.run(main(), debug=True), (spate.Loop, True))

    @unittest.skipIf(sys.version_info >= (3, 14), "policies are deprecated")
    def test_install_makes_it_the_loop_of_asyncio(self):
        async def main():
            return type(asyncio.get_running_loop())
        spate.install()
        try:
            self.assertIs(asyncio.run(main()), spate.Loop)
        finally:
            asyncio.set_event_loop_policy(None)

    @unittest.skipIf(sys.version_info >= (3, 14), "policies are deprecated")
    def test_policy_makes_it_the_loop_of_asyncio(self):
        async def main():
            return type(asyncio.get_running_loop())
        self.assertIs(spate.EventLoopPolicy, spate.EventLoopPolicy)
        asyncio.set_event_loop_policy(spate.EventLoopPolicy())
        try:
            self.assertIs(asyncio.run(main()), spate.Loop)
        finally:
            asyncio.set_event_loop_policy(None)

    def test_single_turns_may_be_run_from_outside(self):
        loop, calls = spate.new_event_loop(), []
        loop.call_soon(lambda: (calls.append(1), loop.call_soon(calls.append, 2)))
        loop._run_once()
        self.assertEqual(calls, [1])
        loop._run_once()
        self.assertEqual(calls, [1, 2])
        turns = []
        once = loop._run_once
        loop._run_once = lambda: (turns.append(1), once())
        loop.call_soon(loop.stop)
        loop.run_forever()
        self.assertTrue(turns)
        loop.close()

    def test_names_that_asyncio_must_have_are_there(self):
        base = asyncio.SelectorEventLoop
        for name in ("_add_reader", "_remove_reader", "_add_writer", "_remove_writer", "_run_once",
                     "_add_callback", "_add_callback_signalsafe", "_make_socket_transport",
                     "_make_ssl_transport", "_ensure_fd_no_transport",
                     "_accept_connection", "_sendfile_native", "_make_datagram_transport",
                     "_make_read_pipe_transport", "_make_write_pipe_transport", "start_tls"):
            self.assertTrue(hasattr(base, name), name)
        self.assertTrue(issubclass(_core.SocketTransport, asyncio.Transport))
        self.assertIn("_thread_id", asyncio.BaseEventLoop.__init__.__code__.co_names)


if __name__ == "__main__":
    unittest.main()
