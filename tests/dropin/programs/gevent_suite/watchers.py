"""gevent's watchers on a separate loop: libev's guarantees for each, seen through gevent.

Semantics: ev(3), the section of each watcher.
"""

import os
import random
import signal
import socket
import tempfile
import threading
import time
import unittest

from gevent.libev.corecext import loop as Loop

READ, WRITE = 1, 2


class OwnLoop(unittest.TestCase):
    """Runs each test with a new loop, which must have no watchers at the end."""

    def setUp(self):
        self.loop = Loop(default=False)
        self.addCleanup(self.loop.destroy)
        self.seen = []

    def note(self, *what):
        self.seen.append(what[0] if len(what) == 1 else what)

    def run_for(self, seconds):
        """Runs the loop, which must end by itself before the limit."""
        limit = self.loop.timer(seconds, ref=False)
        limit.start(self.loop.break_)
        self.loop.run()
        left = limit.active
        limit.stop()
        limit.close()
        self.assertTrue(left, f"the loop did not end; seen: {self.seen[:50]}")

    def pair(self):
        first, second = socket.socketpair()
        for one in (first, second):
            one.setblocking(False)
            self.addCleanup(one.close)
        return first, second


class Io(OwnLoop):
    def test_readable_and_writable(self):
        first, second = self.pair()
        io = self.loop.io(first.fileno(), READ | WRITE)

        def ready(events):
            self.note(events)
            if events == WRITE:
                second.send(b"x")
            else:
                io.stop()
        io.start(ready, pass_events=True)
        self.run_for(5)
        self.assertEqual(self.seen, [WRITE, READ | WRITE])
        io.close()

    def test_both_watchers_of_a_descriptor_are_called(self):
        first, second = self.pair()
        watchers = [self.loop.io(first.fileno(), READ) for _ in range(3)]

        def ready(number):
            self.note(number)
            watchers[number].stop()
        for number, io in enumerate(watchers):
            io.start(ready, number)
        second.send(b"x")
        self.run_for(5)
        self.assertEqual(sorted(self.seen), [0, 1, 2])
        for io in watchers:
            io.close()

    def test_what_a_callback_stops_is_not_called_any_more(self):
        pairs = [self.pair() for _ in range(10)]
        watchers = [self.loop.io(first.fileno(), READ) for first, _ in pairs]

        def ready(number):
            self.note(number)
            for io in watchers:
                io.stop()
        for number, io in enumerate(watchers):
            io.start(ready, number)
        for _, second in pairs:
            second.send(b"x")
        self.run_for(5)
        self.assertEqual(len(self.seen), 1)
        for io in watchers:
            io.close()

    def test_higher_priorities_come_first(self):
        pairs = [self.pair() for _ in range(5)]
        watchers = []
        for number, (first, second) in enumerate(pairs):
            io = self.loop.io(first.fileno(), READ, priority=number - 2)
            watchers.append(io)
            io.start(lambda io=io, number=number: (self.note(number), io.stop()))
            second.send(b"x")
        self.run_for(5)
        self.assertEqual(self.seen, [4, 3, 2, 1, 0])
        for io in watchers:
            io.close()

    def test_the_events_of_a_watcher_can_be_changed(self):
        first, second = self.pair()
        io = self.loop.io(first.fileno(), READ)
        io.start(self.note, "read")
        io.stop()
        io.events = WRITE
        io.start(lambda: (self.note("write"), io.stop()))
        second.send(b"x")
        self.run_for(5)
        self.assertEqual(self.seen, ["write"])
        io.close()

    def test_end_of_the_other_side_is_readable(self):
        first, second = self.pair()
        io = self.loop.io(first.fileno(), READ)
        io.start(lambda: (self.note(first.recv(10)), io.stop()))
        second.close()
        self.run_for(5)
        self.assertEqual(self.seen, [b""])
        io.close()

    def test_a_number_that_stands_for_another_file(self):
        for _ in range(20):
            first, second = socket.socketpair()
            io = self.loop.io(first.fileno(), READ)
            io.start(lambda io=io: (self.note("read"), io.stop()))
            second.send(b"x")
            self.run_for(5)
            io.close()
            first.close()
            second.close()
        self.assertEqual(self.seen, ["read"] * 20)


class Timers(OwnLoop):
    def test_order_is_that_of_the_deadlines(self):
        delays = [random.uniform(0, 0.1) for _ in range(500)]
        timers = []
        for delay in delays:
            timer = self.loop.timer(delay)
            timer.start(self.note, delay)
            timers.append(timer)
        self.run_for(5)
        self.assertEqual(self.seen, sorted(delays))
        for timer in timers:
            self.assertFalse(timer.active)
            timer.close()

    def test_never_early(self):
        begin = time.monotonic()
        self.loop.update_now()
        timer = self.loop.timer(0.05)
        timer.start(lambda: self.note(time.monotonic() - begin))
        self.run_for(5)
        self.assertGreaterEqual(self.seen[0], 0.049)
        timer.close()

    def test_repeats_until_it_is_stopped(self):
        timer = self.loop.timer(0.001, 0.002)

        def expired():
            self.note(timer.active)
            if len(self.seen) == 10:
                timer.stop()
        timer.start(expired)
        self.run_for(5)
        self.assertEqual(self.seen, [True] * 10)
        timer.close()

    def test_again_puts_it_off(self):
        timer = self.loop.timer(0.4, 0.4)
        pusher = self.loop.timer(0.005, 0.005)

        def push():
            self.note("push")
            timer.again(expired)
            if len(self.seen) == 100:
                pusher.stop()

        def expired():
            self.note("expired")
            timer.stop()
        timer.start(expired)
        pusher.start(push)
        self.run_for(5)
        self.assertEqual(self.seen, ["push"] * 100 + ["expired"])
        timer.close()
        pusher.close()

    def test_stopped_ones_do_not_expire(self):
        timers = [self.loop.timer(random.uniform(0, 0.05)) for _ in range(300)]
        for number, timer in enumerate(timers):
            timer.start(self.note, number)
        for timer in timers[::2]:
            timer.stop()
        self.run_for(5)
        self.assertEqual(sorted(self.seen), list(range(1, 300, 2)))
        for timer in timers:
            timer.close()


class Hooks(OwnLoop):
    def test_prepare_before_and_check_after_every_wait(self):
        watchers = {name: getattr(self.loop, name)() for name in ("prepare", "check")}
        for name, watcher in watchers.items():
            watcher.start(self.note, name)
        for _ in range(5):
            self.loop.run(nowait=True)
        self.assertEqual(self.seen, ["prepare", "check"] * 5)
        for watcher in watchers.values():
            watcher.close()

    def test_idle_runs_when_nothing_of_its_priority_is_pending(self):
        first, second = self.pair()
        second.send(b"x")
        io = self.loop.io(first.fileno(), READ)
        idle = self.loop.idle()
        io.start(lambda: (self.note("io"), first.recv(1)))
        idle.start(self.note, "idle")
        while "io" not in self.seen:  # An interrupted wait returned no event.
            self.seen.clear()
            self.loop.run(nowait=True)
        self.assertEqual(self.seen, ["io"])
        self.loop.run(nowait=True)
        self.assertEqual(self.seen, ["io", "idle"])
        io.close()
        idle.close()

    def test_iterations_and_depth_are_counted(self):
        timer = self.loop.timer(0)
        timer.start(lambda: self.note(self.loop.depth, self.loop.iteration))
        before = self.loop.iteration
        self.run_for(5)
        self.assertEqual(self.seen[0][0], 1)
        self.assertGreater(self.seen[0][1], before)
        self.assertEqual(self.loop.depth, 0)
        timer.close()

    def test_what_is_not_counted_does_not_keep_the_loop(self):
        timer = self.loop.timer(100, ref=False)
        timer.start(self.note, "never")
        self.run_for(5)
        self.assertTrue(timer.active)
        timer.close()

    def test_verify_finds_nothing_wrong(self):
        timers = [self.loop.timer(random.random()) for _ in range(100)]
        for timer in timers:
            timer.start(self.note)
        for timer in timers[::3]:
            timer.stop()
        self.loop.verify()
        for timer in timers:
            timer.close()


class Async(OwnLoop):
    def test_threads_wake_the_loop(self):
        """A thread sends until enough calls came: the last send must not be lost."""
        heard = [0] * 4
        enough = 50

        def send(number):
            while heard[number] < enough:
                watchers[number].send()
                time.sleep(random.uniform(0, 0.0005))

        def told(number):
            heard[number] += 1
            if heard[number] == enough:
                watchers[number].stop()
        watchers = [self.loop.async_() for _ in heard]
        for number, watcher in enumerate(watchers):
            watcher.start(told, number)
        workers = [threading.Thread(target=send, args=(n,)) for n in range(len(heard))]
        for worker in workers:
            worker.start()
        self.run_for(30)
        for worker, watcher in zip(workers, watchers):
            worker.join()
            watcher.close()
        self.assertEqual(heard, [enough] * 4)

    def test_sent_before_the_run(self):
        watcher = self.loop.async_()
        watcher.start(lambda: (self.note("told"), watcher.stop()))
        watcher.send()
        watcher.send()
        self.run_for(5)
        self.assertEqual(self.seen, ["told"])
        watcher.close()


class Signals(OwnLoop):
    def test_each_signal_reaches_its_watchers(self):
        watchers = []
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            for copy in range(2):
                watcher = self.loop.signal(number)
                watcher.start(lambda w=watcher, n=number: (self.note(n), w.stop()))
                watchers.append(watcher)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            os.kill(os.getpid(), number)
        self.run_for(5)
        self.assertEqual(sorted(self.seen), sorted([signal.SIGUSR1, signal.SIGUSR2,
                                                    signal.SIGHUP] * 2))
        for watcher in watchers:
            watcher.close()

    def test_a_signal_ends_the_wait(self):
        watcher = self.loop.signal(signal.SIGUSR1)
        watcher.start(lambda: (self.note("told"), watcher.stop()))
        killer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        killer.start()
        self.run_for(5)
        killer.join()
        self.assertEqual(self.seen, ["told"])
        watcher.close()


class Stat(OwnLoop):
    def test_a_file_that_changes_appears_and_goes(self):
        path = os.path.join(tempfile.mkdtemp(), "watched")
        watcher = self.loop.stat(path, 0.02)

        def changed():
            self.note(watcher.attr.st_size if watcher.attr else None)
            steps.pop(0)() if steps else watcher.stop()

        def write(name, text):
            with open(name, "a", encoding="ascii") as file:
                file.write(text)
        write(path + ".new", "text")
        steps = [lambda: write(path, "more"), lambda: os.unlink(path)]
        watcher.start(changed)
        first = self.loop.timer(0.03)
        first.start(os.rename, path + ".new", path)
        self.run_for(10)
        self.assertEqual(self.seen, [4, 8, None])
        watcher.close()
        first.close()


class Callbacks(OwnLoop):
    def test_run_in_the_order_in_which_they_came(self):
        for number in range(50):
            self.loop.run_callback(self.note, number)
        self.run_for(5)
        self.assertEqual(self.seen, list(range(50)))

    def test_of_other_threads_wake_the_loop(self):
        keep = self.loop.timer(100)
        keep.start(self.note, "never")

        def work():
            time.sleep(0.05)
            self.loop.run_callback_threadsafe(lambda: (self.note("told"), keep.stop()))
        worker = threading.Thread(target=work)
        worker.start()
        self.run_for(5)
        worker.join()
        self.assertEqual(self.seen, ["told"])
        keep.close()

    def test_the_loop_can_be_run_in_a_callback(self):
        inner = self.loop.timer(0)
        outer = self.loop.timer(0)
        inner.start(lambda: self.note("inner", self.loop.depth))

        def run_again():
            self.note("outer", self.loop.depth)
            self.loop.run(once=True)
            self.note("back", self.loop.depth)
        outer.start(run_again)
        self.run_for(5)
        self.assertIn(("outer", 1), self.seen)
        self.assertIn(("back", 1), self.seen)
        inner.close()
        outer.close()


class ManyLoops(unittest.TestCase):
    def test_a_loop_in_each_of_several_threads(self):
        results = []

        def work(number):
            loop = Loop(default=False)
            timers = [loop.timer(random.uniform(0, 0.05)) for _ in range(100)]
            count = []
            for timer in timers:
                timer.start(count.append, number)
            loop.run()
            for timer in timers:
                timer.close()
            loop.destroy()
            results.append(len(count))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [100] * 8)

    def test_loops_come_and_go(self):
        for _ in range(200):
            loop = Loop(default=False)
            timer = loop.timer(0)
            timer.start(lambda: None)
            loop.run()
            timer.close()
            loop.destroy()
        self.assertLess(len(os.listdir("/proc/self/fd")), 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
