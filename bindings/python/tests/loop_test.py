"""The loop: its queue, timers, descriptors, signals, threads and lifetime."""

import asyncio
import contextvars
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
import unittest
import weakref

import spate
from spate import _core


class LoopCase(unittest.TestCase):
    def setUp(self):
        self.loop = spate.new_event_loop()
        self.addCleanup(self.loop.close)
        self.reported = []
        self.loop.set_exception_handler(lambda loop, context: self.reported.append(context))

    def turn(self):
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def pair(self):
        ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
            self.addCleanup(end.close)
        return ends


class Figures(LoopCase):
    def test_metrics_count_turns_and_callbacks(self):
        before = self.loop.metrics()
        self.assertIsInstance(before, spate.Metrics)
        self.loop.call_later(1000, str)
        for _ in range(5):
            self.loop.call_soon(str)
        self.turn()
        after = self.loop.metrics()
        self.assertEqual(after.callbacks - before.callbacks, 6)
        self.assertEqual(after.turns - before.turns, 1)
        self.assertEqual((after.ready, after.timers), (0, 1))
        self.assertEqual(after.waits, before.waits)

    def test_metrics_tell_busy_time_from_idle_time(self):
        def work():
            begin = time.monotonic()
            while time.monotonic() - begin < 0.02:
                pass

        def stop_after_a_wait():  # On a busy machine a timer may be due before the loop can wait.
            if self.loop.metrics().idle > 0:
                self.loop.stop()
            else:
                self.loop.call_later(0.01, stop_after_a_wait)
        self.loop.call_soon(work)
        self.loop.call_soon(stop_after_a_wait)
        self.loop.run_forever()
        metrics = self.loop.metrics()
        self.assertGreaterEqual(metrics.busy, 0.02)
        self.assertGreaterEqual(metrics.longest_turn, 0.02)
        self.assertGreater(metrics.idle, 0)
        self.assertGreaterEqual(metrics.waits, 1)
        idle = metrics.idle
        time.sleep(0.01)
        self.assertEqual(self.loop.metrics().idle, idle)

    def test_slow_callback_is_passed_to_the_function(self):
        calls = []
        self.loop.set_slow_callback(0.005, lambda *given: calls.append(given))
        handle = self.loop.call_soon(time.sleep, 0.01)
        self.loop.call_soon(str)
        self.turn()
        self.assertIn(handle, [source for source, _ in calls])
        self.assertTrue(all(seconds >= 0.005 for _, seconds in calls))
        self.loop.set_slow_callback(0, None)
        calls.clear()
        self.loop.call_soon(time.sleep, 0.01)
        self.turn()
        self.assertEqual(calls, [])

    def test_slow_protocol_is_passed_as_its_transport(self):
        class Slow(asyncio.Protocol):
            def data_received(self, data):
                time.sleep(0.01)
                loop.stop()
        loop, calls = self.loop, []
        ours, theirs = self.pair()
        transport, _ = loop.run_until_complete(loop.create_connection(Slow, sock=ours))
        loop.set_slow_callback(0.005, lambda *given: calls.append(given))
        theirs.send(b"x")
        loop.run_forever()
        self.assertIn(transport, [source for source, _ in calls])
        transport.abort()
        self.turn()

    def test_exception_of_the_slow_function_is_reported(self):
        self.loop.set_slow_callback(0, lambda source, seconds: 1 / 0)
        self.loop.call_soon(str)
        self.turn()
        self.assertIsInstance(self.reported[0]["exception"], ZeroDivisionError)
        self.assertRaises(TypeError, self.loop.set_slow_callback, 1, "text")

    def test_slow_function_that_keeps_handles_keeps_no_objects(self):
        class Argument:
            pass
        kept, argument = [], Argument()
        self.loop.set_slow_callback(0, lambda handle, seconds: kept.append(handle))
        gone = weakref.ref(argument)
        self.loop.call_soon(str, argument)
        del argument
        self.turn()
        self.assertIsNone(gone())
        self.assertTrue(kept)


class Queue(LoopCase):
    def test_callbacks_run_in_order_with_their_arguments(self):
        calls = []
        for size in range(6):
            self.loop.call_soon(lambda *given: calls.append(given), *range(size))
        self.turn()
        self.assertEqual(calls, [tuple(range(size)) for size in range(6)])

    def test_callback_runs_in_the_given_context(self):
        variable = contextvars.ContextVar("variable")
        context = contextvars.copy_context()
        context.run(variable.set, 1)
        seen = []
        self.loop.call_soon(lambda: seen.append(variable.get()), context=context)
        self.loop.call_later(0, lambda: seen.append(variable.get()), context=context)
        self.loop.call_later(0.001, self.loop.stop)
        self.loop.run_forever()
        self.assertEqual(seen, [1, 1])

    def test_added_callback_runs_in_the_next_turn(self):
        calls = []
        self.loop.call_soon(lambda: self.loop.call_soon(calls.append, 1))
        self.turn()
        self.assertEqual(calls, [])
        self.turn()
        self.assertEqual(calls, [1])

    def test_cancelled_handle_is_not_called_and_holds_nothing(self):
        class Held:
            def __call__(self):
                raise AssertionError("called")
        held = Held()
        died = weakref.ref(held)
        handle = self.loop.call_soon(held)
        del held
        handle.cancel()
        self.assertIsNone(died())
        self.assertTrue(handle.cancelled())
        self.turn()
        self.assertEqual(self.reported, [])

    def test_handles_are_those_of_asyncio(self):
        soon, later = self.loop.call_soon(str), self.loop.call_later(0, str)
        self.assertIsInstance(soon, asyncio.Handle)
        self.assertNotIsInstance(soon, asyncio.TimerHandle)
        self.assertIsInstance(later, asyncio.TimerHandle)
        self.assertIn("Handle", repr(soon))
        self.assertIsInstance(later.when(), float)

    def test_handle_that_has_run_makes_no_cycle(self):
        class Owner:
            def call(self):
                pass
        owner = Owner()
        died = weakref.ref(owner)
        owner.handle = self.loop.call_soon(owner.call)
        del owner
        self.turn()
        self.assertIsNone(died())

    def test_exception_is_reported_and_the_loop_goes_on(self):
        calls = []
        handle = self.loop.call_soon(lambda: 1 / 0)
        self.loop.call_soon(calls.append, 1)
        self.turn()
        self.assertEqual(calls, [1])
        self.assertIsInstance(self.reported[0]["exception"], ZeroDivisionError)
        self.assertIs(self.reported[0]["handle"], handle)

    def test_exit_leaves_the_loop_and_loses_no_callback(self):
        calls = []

        def leave():
            raise SystemExit(3)
        self.loop.call_soon(leave)
        self.loop.call_soon(calls.append, 1)
        with self.assertRaises(SystemExit):
            self.loop.run_forever()
        self.assertFalse(self.loop.is_running())
        self.turn()
        self.assertEqual(calls, [1])

    def test_wrong_arguments_are_refused(self):
        for call in (self.loop.call_soon, self.loop.call_soon_threadsafe, self.loop.call_later,
                     lambda: self.loop.call_later(None, str), lambda: self.loop.call_at("x", str),
                     lambda: self.loop.call_soon(str, other=1), self.loop.call_at):
            self.assertRaises(TypeError, call)

    def test_closed_loop_refuses_calls(self):
        self.loop.close()
        for call in (lambda: self.loop.call_soon(str), lambda: self.loop.call_later(1, str),
                     lambda: self.loop.call_soon_threadsafe(str), self.loop.run_forever,
                     lambda: self.loop.create_task(None), lambda: self.loop._run_once()):
            self.assertRaises(RuntimeError, call)
        self.assertFalse(self.loop.remove_reader(0))


class Timers(LoopCase):
    def test_timers_run_in_order_and_never_early(self):
        calls = []
        delays = [0.004, 0.001, 0.003, 0.0021, 0.002, 0.0021]
        for delay in delays:
            when = self.loop.time() + delay
            self.loop.call_at(when, lambda when=when: calls.append((when, self.loop.time())))
        self.loop.call_later(0.005, self.loop.stop)
        self.loop.run_forever()
        self.assertEqual(len(calls), len(delays))
        self.assertEqual([when for when, _ in calls], sorted(when for when, _ in calls))
        for when, called in calls:
            self.assertGreaterEqual(called, when - 2e-9)

    def test_timers_of_one_time_run_in_the_order_of_their_making(self):
        when, calls = self.loop.time() + 0.001, []
        for number in range(50):
            self.loop.call_at(when, calls.append, number)
        self.loop.call_at(when, self.loop.stop)
        self.loop.run_forever()
        self.assertEqual(calls, list(range(50)))

    def test_random_timers_keep_the_order_of_a_heap(self):
        import random
        source, calls, expected = random.Random(7), [], []
        start = self.loop.time() - 10
        handles = []
        for number in range(2000):
            when = start + source.random()
            handles.append((when, number, self.loop.call_at(when, calls.append, number)))
        for when, number, handle in handles:
            if source.random() < 0.7:
                handle.cancel()
            else:
                expected.append((when, number))
        self.turn()
        self.assertEqual(calls, [number for _, number in sorted(expected)])

    def test_cancelled_timers_are_forgotten(self):
        marker = object()
        before = sys.getrefcount(marker)
        handles = [self.loop.call_later(3600, str, marker) for _ in range(1000)]
        for handle in handles:
            handle.cancel()
        self.assertEqual(sys.getrefcount(marker), before)
        self.assertFalse(any(handle._scheduled for handle in handles[:800]))

    def test_clock_that_a_test_puts_in_place_moves_timers(self):
        calls, now = [], 1000.0
        self.loop.time = lambda: now
        self.loop.call_later(60, calls.append, 1)
        self.turn()
        self.assertEqual(calls, [])
        now += 61
        self.turn()
        self.assertEqual(calls, [1])
        del self.loop.time
        self.assertAlmostEqual(self.loop.time(), time.monotonic(), delta=60)

    def test_clock_of_a_subclass_moves_timers(self):
        class Travelling(spate.Loop):
            now = 5.0

            def time(self):
                return self.now
        loop, calls = Travelling(), []
        self.addCleanup(loop.close)
        loop.call_at(100, calls.append, 1)
        loop.now = 100.5
        loop.call_soon(loop.stop)
        loop.run_forever()
        self.assertEqual(calls, [1])


class Descriptors(LoopCase):
    def test_reader_and_writer_are_called_while_ready(self):
        a, b = self.pair()
        calls = []
        self.loop.add_writer(a, calls.append, "write")
        self.loop.add_reader(a.fileno(), lambda: calls.append(a.recv(1)))
        b.send(b"12")
        self.turn()
        self.turn()
        self.assertEqual(calls, [b"1", "write", b"2", "write"])
        self.assertTrue(self.loop.remove_writer(a))
        self.assertFalse(self.loop.remove_writer(a))
        self.assertTrue(self.loop.remove_reader(a))

    def test_second_reader_takes_the_place_of_the_first(self):
        a, b = self.pair()
        calls = []
        self.loop.add_reader(a, calls.append, 1)
        self.loop.add_reader(a, calls.append, 2)
        b.send(b"1")
        self.turn()
        self.assertEqual(calls, [2])

    def test_reader_is_watched_though_its_number_was_another_file(self):
        a, b = self.pair()
        self.loop.add_reader(a.fileno(), str)
        self.turn()
        number = a.fileno()
        a.close()
        c, d = self.pair()
        if c.fileno() != number:
            c, d = d, c
        self.assertEqual(c.fileno(), number)
        calls = []
        self.loop.add_reader(number, calls.append, 1)
        d.send(b"1")
        self.turn()
        self.assertEqual(calls, [1])

    def test_closed_file_is_found_by_its_object(self):
        a, _ = self.pair()
        self.loop.add_reader(a, str)
        a.close()
        self.assertTrue(self.loop.remove_reader(a))

    def test_bad_descriptors_are_refused_at_once(self):
        self.assertRaises(ValueError, self.loop.add_reader, -1, str)
        self.assertRaises(ValueError, self.loop.add_reader, "no file", str)
        self.assertRaises(OSError, self.loop.add_reader, 9999, str)
        with open(__file__, "rb") as file:
            self.assertRaises(PermissionError, self.loop.add_reader, file, str)
        self.assertFalse(self.loop.remove_reader(9999))

    def test_removed_reader_is_not_called_in_the_same_turn(self):
        (a, b), (c, d) = self.pair(), self.pair()
        calls = []

        def first(other):
            calls.append(1)
            self.loop.remove_reader(other)
        self.loop.add_reader(a, first, c)
        self.loop.add_reader(c, first, a)
        b.send(b"1")
        d.send(b"1")
        self.turn()
        self.assertEqual(calls, [1])


class Threads(LoopCase):
    def test_call_from_a_thread_wakes_the_loop(self):
        thread = threading.Thread(target=self.loop.call_soon_threadsafe, args=(self.loop.stop,))
        self.loop.call_soon(thread.start)
        self.loop.run_forever()
        thread.join()

    def test_many_threads_lose_no_call(self):
        calls = []

        def work(number):
            for i in range(500):
                self.loop.call_soon_threadsafe(calls.append, (number, i))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]

        async def main():
            for thread in threads:
                thread.start()
            while len(calls) < 2000:
                await asyncio.sleep(0.001)
        self.loop.run_until_complete(main())
        for thread in threads:
            thread.join()
        for number in range(4):
            self.assertEqual([i for n, i in calls if n == number], list(range(500)))

    def test_loop_gives_up_the_lock_while_it_waits(self):
        ran = []
        thread = threading.Thread(target=lambda: (ran.append(1),
                                                  self.loop.call_soon_threadsafe(self.loop.stop)))
        self.loop.call_soon(thread.start)
        self.loop.run_forever()
        thread.join()
        self.assertEqual(ran, [1])

    def test_executor_returns_to_the_loop(self):
        async def main():
            return await asyncio.to_thread(threading.get_ident)
        self.assertNotEqual(self.loop.run_until_complete(main()), threading.get_ident())


class Signals(LoopCase):
    def test_signal_handler_is_called_on_the_loop(self):
        calls = []
        self.loop.add_signal_handler(signal.SIGUSR1, lambda: (calls.append(1), self.loop.stop()))
        self.loop.call_soon(os.kill, os.getpid(), signal.SIGUSR1)
        self.loop.run_forever()
        self.assertEqual(calls, [1])
        self.assertTrue(self.loop.remove_signal_handler(signal.SIGUSR1))

    def test_interrupt_leaves_a_loop_that_waits(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        for _ in range(3):
            timer = threading.Timer(0.02, signal.pthread_kill,
                                    (threading.main_thread().ident, signal.SIGINT))
            self.loop.call_soon(timer.start)
            with self.assertRaises(KeyboardInterrupt):
                self.loop.run_forever()
            timer.join()


class Tasks(LoopCase):
    def test_tasks_and_futures_are_those_of_asyncio(self):
        async def nothing():
            return 5
        task = self.loop.create_task(nothing(), name="a name")
        self.assertIsInstance(task, asyncio.Task)
        self.assertEqual(task.get_name(), "a name")
        self.assertEqual(self.loop.run_until_complete(task), 5)
        self.assertIs(self.loop.create_future().get_loop(), self.loop)

    def test_task_factory_is_used(self):
        made = []

        def factory(loop, coroutine, **options):
            made.append(options)
            return asyncio.Task(coroutine, loop=loop, **options)
        self.loop.set_task_factory(factory)
        self.assertIs(self.loop.get_task_factory(), factory)

        async def nothing():
            pass
        self.loop.run_until_complete(self.loop.create_task(nothing()))
        self.assertEqual(len(made), 1)
        self.loop.set_task_factory(None)
        self.assertIsNone(self.loop.get_task_factory())


class Debug(LoopCase):
    def test_slow_callback_is_logged(self):
        self.loop.set_debug(True)
        self.assertTrue(self.loop.get_debug())
        self.loop.slow_callback_duration = 0
        with self.assertLogs("asyncio", logging.WARNING) as logs:
            self.loop.call_soon(str)
            self.turn()
        self.assertIn("Executing <Handle", logs.output[0])

    def test_handle_knows_where_it_was_made(self):
        self.loop.set_debug(True)
        handle = self.loop.call_soon(str)
        self.assertIn("loop_test.py", repr(handle))

    def test_call_from_a_wrong_thread_is_refused(self):
        self.loop.set_debug(True)
        errors = []

        def call():
            try:
                self.loop.call_soon(str)
            except RuntimeError as error:
                errors.append(error)

        async def main():
            await asyncio.to_thread(call)
        self.loop.run_until_complete(main())
        self.assertEqual(len(errors), 1)


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
