"""The loop: threads, signals, tasks, and debug mode."""

import asyncio
import logging
import os
import signal
import threading
import unittest

from loop_case import TurnCase


class Threads(TurnCase):
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


class Signals(TurnCase):
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


class Tasks(TurnCase):
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


class Debug(TurnCase):
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


if __name__ == "__main__":
    unittest.main()
