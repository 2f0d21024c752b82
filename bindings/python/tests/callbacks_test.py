"""The callbacks of a loop: its queue, its timers and its descriptors."""

import asyncio
import contextvars
import random
import sys
import time
import unittest
import weakref

import spate
from loop_case import TurnCase


class Queue(TurnCase):
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

    def test_finished_and_cancelled_handles_call_nothing(self):
        calls = []
        finished, cancelled = (self.loop.call_soon(calls.append, 1) for _ in range(2))
        cancelled.cancel()
        self.turn()
        finished._run()
        cancelled._run()
        self.assertEqual((calls, self.reported), ([1], []))

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


class Timers(TurnCase):
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


class Descriptors(TurnCase):
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


if __name__ == "__main__":
    unittest.main()
