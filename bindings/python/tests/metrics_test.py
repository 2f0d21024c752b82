"""The figures of a loop, and its slow callbacks."""

import asyncio
import time
import unittest
import weakref

import spate
from loop_case import TurnCase


class Figures(TurnCase):
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


if __name__ == "__main__":
    unittest.main()
