"""Typical uses of gevent: greenlets that sleep, serve, start processes, fork, use threads."""

import hashlib
import os
import random
import signal
import threading
import time
import unittest

import gevent
import gevent.event
import gevent.os
import gevent.pywsgi
import gevent.queue
import gevent.select
import gevent.server
import gevent.socket
import gevent.subprocess
import gevent.threadpool


class Sleeping(unittest.TestCase):
    def test_greenlets_wake_in_the_order_of_their_deadlines(self):
        seen = []

        def sleep(number):
            gevent.sleep(0.01 * number)
            seen.append(number)
        numbers = random.sample(range(40), 40)
        gevent.joinall([gevent.spawn(sleep, number) for number in numbers], timeout=30)
        # Each sleep starts at its call of sleep(), which a busy machine delays.
        for before, after in zip(seen, seen[1:]):
            self.assertLess(before, after + 20)
        self.assertEqual(sorted(seen), sorted(numbers))
        self.assertEqual(len(seen), 40)

    def test_a_timeout_ends_a_wait_and_no_other(self):
        with gevent.Timeout(0.05, False):
            gevent.sleep(30)
            self.fail("not ended")
        with gevent.Timeout(30, False):
            gevent.sleep(0.01)
        gevent.sleep(0.06)

    def test_turns_without_waiting_are_shared(self):
        counts = [0] * 5

        def spin(number):
            for _ in range(100):
                counts[number] += 1
                gevent.sleep(0)
                self.assertLess(max(counts) - min(counts), 5)
        gevent.joinall([gevent.spawn(spin, n) for n in range(5)], raise_error=True)

    def test_queues_hand_over_in_order(self):
        queue, got = gevent.queue.Queue(3), []
        consumer = gevent.spawn(lambda: [got.append(queue.get()) for _ in range(500)])
        for number in range(500):
            queue.put(number)
        consumer.join(30)
        self.assertEqual(got, list(range(500)))


class Sockets(unittest.TestCase):
    def echo(self, connection, _):
        while True:
            data = connection.recv(65536)
            if not data:
                connection.close()
                return
            connection.sendall(data)

    def exchange(self, port, size):
        """Writes and reads at once; returns whether the echo was correct."""
        connection = gevent.socket.create_connection(("127.0.0.1", port))
        data = os.urandom(size)

        def write():
            connection.sendall(data)
            connection.shutdown(gevent.socket.SHUT_WR)
        writer = gevent.spawn(write)
        got = bytearray()
        while part := connection.recv(20_000):
            got += part
        writer.get()
        connection.close()
        return bytes(got) == data

    def test_an_echo_server(self):
        server = gevent.server.StreamServer(("127.0.0.1", 0), self.echo)
        server.start()
        sizes = [random.randrange(1, 200_000) for _ in range(50)] + [3_000_000]
        clients = [gevent.spawn(self.exchange, server.server_port, size) for size in sizes]
        gevent.joinall(clients, timeout=60, raise_error=True)
        server.stop()
        self.assertEqual([client.value for client in clients], [True] * len(sizes))

    def test_many_short_connections(self):
        server = gevent.server.StreamServer(("127.0.0.1", 0), self.echo, backlog=128)
        server.start()
        for _ in range(5):
            clients = [gevent.spawn(self.exchange, server.server_port, 10) for _ in range(60)]
            gevent.joinall(clients, timeout=60, raise_error=True)
            self.assertTrue(all(client.value for client in clients))
        server.stop()

    def test_datagrams(self):
        class Echo(gevent.server.DatagramServer):
            def handle(self, data, address):
                self.sendto(data[::-1], address)
        server = Echo("127.0.0.1:0")
        server.start()
        client = gevent.socket.socket(type=gevent.socket.SOCK_DGRAM)
        client.connect(("127.0.0.1", server.server_port))
        for size in range(1, 3000, 100):
            self.assertEqual(self.answer_to(client, size), True)
        client.close()
        server.stop()

    def answer_to(self, client, size):
        """Datagrams may be lost: gevent's server drops a reply whose sendto() fails."""
        data = os.urandom(size)
        for _ in range(40):
            client.send(data)
            with gevent.Timeout(0.5, False):
                return client.recv(65536) == data[::-1]
        return None

    def test_closing_ends_the_wait_of_another_greenlet(self):
        first, second = gevent.socket.socketpair()

        def read():
            try:
                first.recv(1)
            except OSError as error:
                return error.errno
        reader = gevent.spawn(read)
        gevent.sleep(0.01)
        first.close()
        reader.join(20)
        self.assertTrue(reader.ready())
        self.assertIsNotNone(reader.value)
        second.close()

    def test_select_and_poll(self):
        pairs = [gevent.socket.socketpair() for _ in range(10)]
        gevent.spawn_later(0.02, pairs[3][1].sendall, b"x")
        ready = gevent.select.select([first for first, _ in pairs], [], [], 20)
        self.assertEqual(ready, ([pairs[3][0]], [], []))
        poll = gevent.select.poll()
        for first, _ in pairs:
            poll.register(first, gevent.select.POLLIN)
        self.assertEqual(poll.poll(20_000), [(pairs[3][0].fileno(), gevent.select.POLLIN)])
        for first, second in pairs:
            first.close()
            second.close()

    def test_a_web_server(self):
        contents = {f"/{n}": os.urandom(1000 * n) for n in range(20)}

        def answer(environment, start):
            start("200 OK", [("Content-Type", "application/octet-stream")])
            return [contents[environment["PATH_INFO"]]]
        server = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), answer, log=None)
        server.start()

        def ask(path):
            connection = gevent.socket.create_connection(("127.0.0.1", server.server_port))
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            got = b"".join(iter(lambda: connection.recv(5000), b""))
            connection.close()
            return got.partition(b"\r\n\r\n")[2]
        clients = {path: gevent.spawn(ask, path) for path in contents}
        gevent.joinall(clients.values(), timeout=60, raise_error=True)
        server.stop()
        self.assertEqual({path: client.value for path, client in clients.items()}, contents)


class Processes(unittest.TestCase):
    def test_filters_in_parallel(self):
        def filter_through_cat(size):
            data = os.urandom(size)
            process = gevent.subprocess.Popen(["cat"], stdin=gevent.subprocess.PIPE,
                                              stdout=gevent.subprocess.PIPE)
            out, _ = process.communicate(data)
            return process.returncode == 0 and out == data
        sizes = [random.randrange(300_000) for _ in range(12)]
        jobs = [gevent.spawn(filter_through_cat, size) for size in sizes]
        gevent.joinall(jobs, timeout=60, raise_error=True)
        self.assertEqual([job.value for job in jobs], [True] * len(sizes))

    def test_every_status_is_reported(self):
        processes = [gevent.subprocess.Popen(["sh", "-c", f"exit {n}"]) for n in range(25)]
        waits = [gevent.spawn(process.wait) for process in processes]
        gevent.joinall(waits, timeout=60, raise_error=True)
        self.assertEqual([wait.value for wait in waits], list(range(25)))

    def test_one_that_is_killed(self):
        process = gevent.subprocess.Popen(["sleep", "60"])
        gevent.spawn_later(0.02, process.kill)
        self.assertEqual(process.wait(20), -signal.SIGKILL)

    def test_a_wait_with_a_limit(self):
        process = gevent.subprocess.Popen(["sleep", "60"])
        with self.assertRaises(gevent.subprocess.TimeoutExpired):
            process.wait(0.05)
        process.terminate()
        self.assertEqual(process.wait(20), -signal.SIGTERM)

    def test_the_loop_goes_on_in_a_forked_child(self):
        for _ in range(5):
            pid = gevent.os.fork()
            if pid == 0:
                gevent.get_hub().loop.reinit()
                os._exit(self.in_child())
            with gevent.Timeout(30):
                _, status = gevent.os.waitpid(pid, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 17)
            gevent.sleep(0.001)

    def in_child(self):
        try:
            first, second = gevent.socket.socketpair()
            reader = gevent.spawn(first.recv, 10)
            gevent.sleep(0.01)
            second.sendall(b"hello")
            code = gevent.subprocess.call(["sh", "-c", "exit 12"])
            length = len(reader.get(timeout=20))
            first.close()
            second.close()
            return code + length
        except BaseException:
            return 1


class Signals(unittest.TestCase):
    def test_handlers_are_greenlets(self):
        heard = gevent.event.Event()
        handler = gevent.signal_handler(signal.SIGUSR1, lambda: (gevent.sleep(0.01), heard.set()))
        gevent.spawn_later(0.02, os.kill, os.getpid(), signal.SIGUSR1)
        self.assertTrue(heard.wait(20))
        handler.cancel()

    def test_pythons_own_handlers_run_while_the_loop_waits(self):
        seen = []
        before = signal.signal(signal.SIGUSR2, lambda *_: seen.append(True))
        killer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR2))
        killer.start()
        with gevent.Timeout(20):
            while not seen:
                gevent.sleep(0.01)
        killer.join()
        signal.signal(signal.SIGUSR2, before)


class Threads(unittest.TestCase):
    def test_a_pool_works_while_the_loop_goes_on(self):
        pool = gevent.threadpool.ThreadPool(5)
        ticks = []
        ticker = gevent.spawn(lambda: [ticks.append(gevent.sleep(0.002)) for _ in range(10_000)])

        def work(number):
            time.sleep(random.uniform(0, 0.01))
            return hashlib.sha256(str(number).encode()).hexdigest()
        jobs = [pool.spawn(work, number) for number in range(100)]
        gevent.joinall(jobs, timeout=60)
        ticker.kill()
        self.assertEqual([job.get() for job in jobs],
                         [hashlib.sha256(str(n).encode()).hexdigest() for n in range(100)])
        self.assertGreater(len(ticks), 5)
        pool.kill()

    def test_a_hub_in_each_of_several_threads(self):
        results = []

        def work():
            first, second = gevent.socket.socketpair()

            def write():
                for number in range(200):
                    second.sendall(bytes([number]))
                    if number % 50 == 0:
                        gevent.sleep(0.001)
                second.close()
            writer = gevent.spawn(write)
            got = b"".join(iter(lambda: first.recv(100), b""))
            writer.join()
            first.close()
            results.append(got == bytes(range(200)))
            gevent.get_hub().destroy(destroy_loop=True)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            gevent.sleep(0.01)
        self.assertEqual(results, [True] * 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
