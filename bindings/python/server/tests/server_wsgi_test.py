"""WSGI applications, which the server calls in threads."""

import asyncio
import os
import sys
import tempfile
import threading
import unittest.mock
import wsgiref.validate

from server_case import Client, ServerCase
from spate_server import wsgi


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


class Wsgi(ServerCase):
    async def serve_wsgi(self, app, **settings):
        return await self.serve(app, interface="wsgi", **settings)

    async def environ_of(self, *arguments, settings={}, **more):
        environs = []

        def app(environ, start_response):
            environs.append(environ)
            return hello(environ, start_response)

        await self.serve_wsgi(app, **settings)
        self.assertEqual((await self.get(*arguments, **more)).status, 200)
        return environs[0]

    async def post(self, body, framing=None):
        framing = f"Content-Length: {len(body)}\r\n" if framing is None else framing
        return await self.get("/", "POST", framing, body)

    async def test_response_of_one_piece_has_its_length(self):
        await self.serve_wsgi(hello)
        response = await self.get()
        self.assertEqual((response.body, response.headers["content-length"]), (b"hello", "5"))
        self.assertEqual(response.headers["content-type"], "text/plain")

    async def test_environ_has_the_request(self):
        environ = await self.environ_of(
            "/a%20b/%C3%A9/%ff?x=1", headers="X-One: 1\r\nX-One: 2\r\nCookie: a=1\r\n"
            "Cookie: b=2\r\nContent-Type: text/x\r\n", settings={"root_path": "/app"})
        for key, value in {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/app", "QUERY_STRING": "x=1",
                           "PATH_INFO": "/a b/\u00c3\u00a9/\u00ff", "SERVER_PROTOCOL": "HTTP/1.1",
                           "SERVER_NAME": "127.0.0.1", "SERVER_PORT": str(self.address[1]),
                           "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "test", "HTTP_X_ONE": "1,2",
                           "HTTP_COOKIE": "a=1; b=2", "CONTENT_TYPE": "text/x",
                           "wsgi.url_scheme": "http", "wsgi.multithread": True,
                           "wsgi.multiprocess": False, "wsgi.input_terminated": True}.items():
            self.assertEqual(environ[key], value, key)
        self.assertNotIn("CONTENT_LENGTH", environ)

    async def test_header_with_underscore_is_left_out(self):
        environ = await self.environ_of(headers="X-User: good\r\nX_User: forged\r\n")
        self.assertEqual(environ["HTTP_X_USER"], "good")

    async def test_validator_accepts_the_server(self):
        def app(environ, start_response):
            environ["wsgi.input"].read(3)
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"valid"]

        await self.serve_wsgi(wsgiref.validate.validator(app))
        for method in "GET", "POST":
            response = await self.get("/x?y", method, "Content-Length: 3\r\n", b"abc")
            self.assertEqual(response.body, b"valid", self.error_text())

    async def test_body_is_read_in_each_way(self):
        def app(environ, start_response):
            file = environ["wsgi.input"]
            parts = [file.read(3), file.readline(), file.readlines()[0], file.read(), file.read(1)]
            start_response("200 OK", [])
            return [repr(parts).encode()]

        await self.serve_wsgi(app)
        expected = b"[b'abc', b'def\\n', b'ghi\\n', b'', b'']"
        self.assertEqual((await self.post(b"abcdef\nghi\njkl")).body, expected)
        chunks = b"4\r\nabcd\r\n9\r\nef\nghi\njk\r\n1\r\nl\r\n0\r\n\r\n"
        response = await self.post(chunks, "Transfer-Encoding: chunked\r\n")
        self.assertEqual(response.body, expected)

    async def test_large_body_is_echoed_in_pieces(self):
        def app(environ, start_response):
            start_response("200 OK", [])
            while piece := environ["wsgi.input"].read(10_000):
                yield piece

        await self.serve_wsgi(app)
        body = os.urandom(1_000_000)
        self.assertTrue((await self.post(body)).body == body)

    async def test_write_comes_before_the_pieces(self):
        def app(environ, start_response):
            write = start_response("200 OK", [])
            write(b"one ")
            write(b"two ")
            return [b"three"]

        await self.serve_wsgi(app)
        self.assertEqual((await self.get()).body, b"one two three")

    async def test_result_is_closed_after_success_and_failure(self):
        closed = []

        class Result(list):
            def close(self):
                closed.append(len(self))

            def __iter__(self):
                if len(self) == 2:
                    raise KeyError("broken piece")
                return super().__iter__()

        def app(environ, start_response):
            start_response("200 OK", [])
            return Result([b"x"] * len(environ["QUERY_STRING"]))

        await self.serve_wsgi(app)
        for query, status in ("1", 200), ("22", 500), ("333", 200):
            self.assertEqual((await self.get("/?" + query)).status, status)
        self.assertEqual(closed, [1, 2, 3])

    async def test_headers_are_replaced_after_an_exception(self):
        def app(environ, start_response):
            start_response("200 OK", [("X-One", "1")])
            try:
                raise KeyError("broken")
            except KeyError:
                start_response("503 Busy", [("X-Two", "2")], sys.exc_info())
            return [b"busy"]

        await self.serve_wsgi(app)
        response = await self.get()
        self.assertEqual((response.status, response.body), (503, b"busy"))
        self.assertNotIn("x-one", response.headers)

    async def test_exception_gives_500_and_is_logged(self):
        def app(environ, start_response):
            raise KeyError("broken view")

        await self.serve_wsgi(app)
        self.assertEqual((await self.get()).status, 500)
        self.assertIn("broken view", self.error_text()[0])

    async def test_return_without_start_gives_500(self):
        await self.serve_wsgi(lambda environ, start_response: [b"x"])
        self.assertEqual((await self.get()).status, 500)

    async def test_forwarded_headers_replace_the_client(self):
        environ = await self.environ_of(
            headers="X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n")
        self.assertEqual((environ["REMOTE_ADDR"], environ["REMOTE_PORT"]), ("192.0.2.7", "0"))
        self.assertEqual(environ["wsgi.url_scheme"], "https")

    async def test_environ_of_unix_socket_has_no_client(self):
        environs = []

        def app(environ, start_response):
            environs.append(environ)
            return hello(environ, start_response)

        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            await self.serve_wsgi(app, uds=path)
            client = Client(*await asyncio.open_unix_connection(path))
            self.assertEqual((await client.get()).status, 200)
            client.close()
        self.assertEqual([environs[0][key] for key in (
            "REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT")],
            ["", "0", "localhost", "80"])

    async def test_environs_share_nothing(self):
        environs = []

        def app(environ, start_response):
            environs.append(dict(environ))
            environ["added"] = 1
            return hello(environ, start_response)

        await self.serve_wsgi(app)
        for _ in range(2):
            self.assertEqual((await self.get()).status, 200)
        self.assertNotIn("added", environs[1])

    async def test_large_response_of_one_piece_arrives_whole(self):
        def app(environ, start_response):
            start_response("200 OK", [])
            return [b"x" * 3_000_000]

        server = await self.serve_wsgi(app)
        self.assertEqual((await self.get()).body, b"x" * 3_000_000)
        await self.until(lambda: not server.tasks)

    async def test_response_is_sent_before_the_result_is_closed(self):
        is_received = threading.Event()

        class Result:
            def __iter__(self):
                return iter([b"whole"])

            def close(self):
                is_received.wait()

        def app(environ, start_response):
            start_response("200 OK", [("Content-Length", "5")])
            return Result()

        server = await self.serve_wsgi(app)
        self.assertEqual((await self.get()).body, b"whole")
        self.assertTrue(server.tasks)
        is_received.set()
        await self.until(lambda: not server.tasks)
        self.assertEqual(self.error_text(), [])

    async def test_bytes_after_the_declared_length_are_an_error(self):
        def app(environ, start_response):
            start_response("200 OK", [("Content-Length", "5")])
            yield b"whole"
            yield b"more"

        server = await self.serve_wsgi(app)
        self.assertEqual((await self.get()).body, b"whole")
        await self.until(lambda: not server.tasks)
        self.assertIn("longer than its Content-Length", self.error_text()[0])

    async def test_body_of_wrong_type_gives_500(self):
        def app(environ, start_response):
            start_response("200 OK", [])
            return ["text"]

        await self.serve_wsgi(app)
        self.assertEqual((await self.get()).status, 500)
        self.assertIn("a bytes-like object is required", self.error_text()[0])

    async def test_exit_of_the_application_gives_500(self):
        def app(environ, start_response):
            sys.exit(1)

        await self.serve_wsgi(app)
        self.assertEqual([(await self.get()).status for _ in range(2)], [500, 500])

    async def test_missing_thread_gives_500(self):
        await self.serve_wsgi(hello)
        with unittest.mock.patch("threading.Thread.start", side_effect=RuntimeError("no thread")):
            self.assertEqual((await self.get()).status, 500)
        self.assertIn("no thread", self.error_text()[0])
        self.assertEqual((await self.get()).status, 200)

    async def test_waiting_thread_does_not_delay_others(self):
        proceed = threading.Event()

        def app(environ, start_response):
            if environ["PATH_INFO"] == "/wait":
                proceed.wait()
            return hello(environ, start_response)

        await self.serve_wsgi(app, threads=2)
        waiting = asyncio.ensure_future(self.get("/wait"))
        for _ in range(3):
            responses = await asyncio.gather(*[self.get("/") for _ in range(20)])
            self.assertEqual([response.status for response in responses], [200] * 20)
        self.assertFalse(waiting.done())
        proceed.set()
        self.assertEqual((await waiting).status, 200)

    async def test_idle_threads_are_used_again(self):
        threads = set()

        def app(environ, start_response):
            threads.add(threading.get_ident())
            return hello(environ, start_response)

        await self.serve_wsgi(app)
        for _ in range(30):
            self.assertEqual((await self.get()).status, 200)
        self.assertLess(len(threads), 8)

    async def test_threads_end_with_the_server(self):
        began, proceed = threading.Event(), threading.Event()

        def app(environ, start_response):
            if environ["PATH_INFO"] == "/wait":
                began.set()
                proceed.wait()
            return hello(environ, start_response)

        server = await self.serve_wsgi(app, timeout_graceful_shutdown=0)
        before = set(threading.enumerate())
        (await self.connect()).request("/wait")
        await self.until(began.is_set)
        await asyncio.gather(*(self.get() for _ in range(5)))
        started = set(threading.enumerate()) - before
        self.assertGreater(len(started), 1)
        await server.stop()
        proceed.set()
        for thread in started:
            await asyncio.to_thread(thread.join, 10)
            self.assertFalse(thread.is_alive(), thread.name)

    async def test_closed_threads_run_later_requests(self):
        ran = []

        class Request:
            def run(self):
                ran.append(threading.current_thread())

        threads = wsgi.Threads(1)
        for count in range(1, 5):
            threads.add(Request())
            await self.until(lambda count=count: len(ran) == count)
            threads.close()
            await asyncio.to_thread(ran[-1].join, 10)
            self.assertFalse(ran[-1].is_alive())

    async def test_requests_run_in_parallel_up_to_the_threads(self):
        barrier = threading.Barrier(3)
        running = []

        def app(environ, start_response):
            running.append(threading.get_ident())
            if environ["PATH_INFO"] == "/together":
                barrier.wait()
            return hello(environ, start_response)

        await self.serve_wsgi(app, threads=3)
        responses = await asyncio.gather(*[self.get("/together") for _ in range(9)])
        self.assertEqual([response.status for response in responses], [200] * 9)
        self.assertEqual(len(set(running)), 3)

    async def test_lost_client_ends_the_read(self):
        began, errors = threading.Event(), []

        def app(environ, start_response):
            began.set()
            try:
                environ["wsgi.input"].read()
            except OSError as error:
                errors.append(error)
                raise

        server = await self.serve_wsgi(app)
        client = await self.connect()
        client.request("/", "POST", "Content-Length: 9\r\n", b"abc")
        await self.until(began.is_set)
        client.reset()
        await self.until(lambda: not server.tasks)
        self.assertEqual((len(errors), self.error_text()), (1, []))

    async def test_shutdown_does_not_wait_for_a_thread_for_ever(self):
        began, proceed, ended = threading.Event(), threading.Event(), []

        def app(environ, start_response):
            began.set()
            proceed.wait()
            write = start_response("200 OK", [])
            try:
                write(b"late")
            except OSError as error:
                ended.append(error)
            return []

        server = await self.serve_wsgi(app, timeout_graceful_shutdown=0.05)
        client = await self.connect()
        client.request()
        await self.until(began.is_set)
        await server.stop()
        proceed.set()
        await self.until(lambda: ended)
        self.assertIsInstance(ended[0], ConnectionAbortedError)

    async def test_websocket_is_refused(self):
        await self.serve_wsgi(hello)
        response = await self.get(headers="Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                  "Sec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
        self.assertEqual(response.status, 403)
