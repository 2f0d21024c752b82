"""HTTP/1.1 between raw connections and applications."""

import asyncio
import os
import socket
import tempfile
import unittest

from server_case import Client, ServerCase, hello, read_all, respond, spate_server


class Exits(unittest.TestCase):
    def serve_one_request(self, app):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        server = spate_server.Server(spate_server.Config(app=None, port=0, lifespan="off"), app)
        try:
            loop.run_until_complete(server.start())
            with socket.create_connection(server.addresses[0]) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                loop.run_until_complete(asyncio.sleep(10))
        finally:
            loop.run_until_complete(server.stop())
            loop.close()

    def test_exit_of_an_application_is_raised_by_the_loop(self):
        async def app(scope, receive, send):
            raise kind("enough")

        for kind in SystemExit, KeyboardInterrupt:
            with self.subTest(kind), self.assertRaises(kind):
                self.serve_one_request(app)


class Starts(ServerCase):
    async def test_a_stopped_server_starts_again(self):
        server = await self.serve(hello)
        await server.stop()
        self.assertEqual(server.addresses, [])
        await server.start()
        [self.address] = server.addresses
        self.assertEqual((await self.get()).body, b"hello")

    async def test_a_server_whose_port_was_taken_starts_later(self):
        with socket.create_server(("127.0.0.1", 0)) as owner:
            config = spate_server.Config(app=None, port=owner.getsockname()[1], lifespan="off")
            server = spate_server.Server(config, hello)
            self.addAsyncCleanup(server.stop)
            with self.assertRaises(OSError):
                await server.start()
            self.assertEqual(server.addresses, [])
        await server.start()
        [self.address] = server.addresses
        self.assertEqual((await self.get()).body, b"hello")

    async def test_tls_files_are_read_before_the_application_starts(self):
        scopes = []

        async def app(scope, receive, send):
            scopes.append(scope)

        server = spate_server.Server(
            spate_server.Config(app=None, port=0, ssl_certfile="/no/such/file"), app)
        with self.assertRaisesRegex(OSError, "/no/such/file"):
            await server.start()
        self.assertEqual(scopes, [])

    async def test_a_running_server_is_not_started(self):
        server = await self.serve(hello)
        with self.assertRaisesRegex(RuntimeError, "call stop"):
            await server.start()
        self.assertEqual((await self.get()).body, b"hello")


class Requests(ServerCase):
    async def scope_of(self, *arguments, settings={}, **more):
        scopes = []

        async def app(scope, receive, send):
            scopes.append(scope)
            await respond(send)

        await self.serve(app, **settings)
        await self.get(*arguments, **more)
        return scopes[0]

    async def test_scope_has_the_request(self):
        scope = await self.scope_of("/a%20b/%C3%A9?x=1&y", headers="X-One: 1\r\n")
        self.assertEqual(scope["type"], "http")
        self.assertEqual(scope["asgi"]["version"], "3.0")
        self.assertEqual(scope["http_version"], "1.1")
        self.assertEqual(scope["method"], "GET")
        self.assertEqual(scope["scheme"], "http")
        self.assertEqual(scope["path"], "/a b/\u00e9")
        self.assertEqual(scope["raw_path"], b"/a%20b/%C3%A9")
        self.assertEqual(scope["query_string"], b"x=1&y")
        self.assertEqual(scope["headers"], [(b"host", b"test"), (b"x-one", b"1")])
        self.assertEqual(scope["server"], self.address)
        self.assertEqual(scope["client"][0], "127.0.0.1")
        self.assertEqual(scope["root_path"], "")

    async def test_scope_is_not_shared_with_the_next_request(self):
        scopes = []

        async def app(scope, receive, send):
            scopes.append(dict(scope))
            scope.clear()
            scope["type"] = "changed"
            await respond(send)

        await self.serve(app)
        for target, method in (("/a?x", "PUT"), ("/", "GET"), ("/", "POST")):
            self.assertEqual((await self.get(target, method)).status, 200)
        self.assertEqual([(scope["method"], scope["path"], scope["query_string"], scope["type"])
                          for scope in scopes],
                         [("PUT", "/a", b"x", "http"), ("GET", "/", b"", "http"),
                          ("POST", "/", b"", "http")])

    async def test_task_of_a_request_is_named(self):
        names = []

        async def app(scope, receive, send):
            names.append(asyncio.current_task().get_name())
            await respond(send)

        await self.serve(app)
        await self.get()
        self.assertEqual(names, ["spate-request"])

    @unittest.skipUnless(hasattr(asyncio, "eager_task_factory"), "eager tasks need Python 3.12")
    async def test_task_starts_at_once_unless_a_factory_makes_it(self):
        entered = []

        async def app(scope, receive, send):
            entered.append(len(server.tasks))
            await respond(send)

        server = await self.serve(app)
        loop = asyncio.get_running_loop()
        await self.get()
        loop.set_task_factory(lambda loop, coroutine, **more: asyncio.Task(coroutine, loop=loop,
                                                                           **more))
        await self.get()
        loop.set_task_factory(None)
        await self.get()
        self.assertEqual(entered, [0, 1, 0])

    async def test_many_pipelined_requests_are_answered_without_recursion(self):
        count = 3_000  # More than the most nested calls of Python.
        await self.serve(hello)
        client = await self.connect()
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * count)
        for _ in range(count):
            self.assertEqual((await client.response()).body, b"hello")

    @unittest.skipUnless(hasattr(asyncio, "eager_task_factory"), "eager tasks need Python 3.12")
    async def test_eager_tasks_are_served(self):
        async def app(scope, receive, send):
            if scope["path"] == "/error":
                raise ValueError("mine")
            if scope["path"] == "/wait":
                await asyncio.sleep(0)
            await respond(send, await read_all(receive))

        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        server = await self.serve(app)
        client = await self.connect()
        body = b"x" * 1_000_000
        for target in ("/", "/wait"):
            self.assertEqual((await client.get(target)).status, 200)
            length = f"Content-Length: {len(body)}\r\n"
            self.assertEqual((await client.get(target, "POST", length, body)).body, body)
        self.assertEqual((await client.get("/error")).status, 500)
        self.assertEqual(len(self.errors), 1)
        await self.until(lambda: not server.tasks)

    async def test_old_version_is_in_the_scope(self):
        scopes = []

        async def app(scope, receive, send):
            scopes.append(scope)
            await respond(send)

        await self.serve(app)
        client = await self.connect()
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        await client.response()
        self.assertEqual(scopes[0]["http_version"], "1.0")

    async def test_root_path_is_a_prefix_of_the_path(self):
        scope = await self.scope_of("/one", settings={"root_path": "/app"})
        self.assertEqual((scope["root_path"], scope["path"], scope["raw_path"]),
                         ("/app", "/app/one", b"/one"))

    async def test_broken_escape_gets_400(self):
        await self.serve(hello)
        for target in "/%zz", "/%4":
            self.assertEqual((await self.get(target)).status, 400)

    async def test_forwarded_headers_replace_the_client(self):
        scope = await self.scope_of(
            headers="X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\nX-Forwarded-Proto: https\r\n",
            settings={"proxy_headers": True})
        self.assertEqual((scope["client"], scope["scheme"]), (("1.2.3.4", 0), "https"))

    async def test_forwarded_headers_of_strangers_are_ignored(self):
        scope = await self.scope_of(
            headers="X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n",
            settings={"proxy_headers": True, "forwarded_allow_ips": "10.0.0.0/8"})
        self.assertEqual((scope["client"][0], scope["scheme"]), ("127.0.0.1", "http"))

    async def test_body_arrives_whole(self):
        async def app(scope, receive, send):
            await respond(send, await read_all(receive))

        await self.serve(app)
        client = await self.connect()
        self.assertEqual((await client.get("/", "POST", "Content-Length: 3\r\n", b"abc")).body,
                         b"abc")
        chunked = b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        self.assertEqual(
            (await client.get("/", "POST", "Transfer-Encoding: chunked\r\n", chunked)).body, b"abc")

    async def test_request_without_body_has_an_empty_message(self):
        messages = []

        async def app(scope, receive, send):
            messages.append(await receive())
            await respond(send)
            messages.append(await receive())

        await self.serve(app)
        await self.get()
        await self.until(lambda: len(messages) == 2)
        self.assertEqual(messages[0], {"type": "http.request", "body": b"", "more_body": False})
        self.assertEqual(messages[1], {"type": "http.disconnect"})

    async def test_unread_body_does_not_fill_memory(self):
        proceed = asyncio.Event()
        sizes = []

        async def app(scope, receive, send):
            message = await receive()
            total = len(message["body"])
            await proceed.wait()
            message = await receive()
            sizes.append(len(message["body"]))
            total += sizes[0]
            while message["more_body"]:
                message = await receive()
                total += len(message["body"])
            await respond(send, str(total).encode())

        await self.serve(app)
        client = await self.connect()
        size = 64 * 1024 * 1024
        client.request("/", "POST", f"Content-Length: {size}\r\n")
        sent = asyncio.ensure_future(self.send_large(client, size))
        done, _ = await asyncio.wait([sent], timeout=0.3)
        self.assertFalse(done, "the server has read what the application did not want")
        proceed.set()
        self.assertEqual((await client.response()).body, str(size).encode())
        await sent
        self.assertLess(sizes[0], 1024 * 1024)

    async def send_large(self, client, size):
        piece = bytes(1024 * 1024)
        for _ in range(size // len(piece)):
            client.send(piece)
            await client.writer.drain()

    async def test_continue_is_sent_when_the_body_is_received(self):
        proceed = asyncio.Event()

        async def app(scope, receive, send):
            await proceed.wait()
            await respond(send, await read_all(receive))

        await self.serve(app)
        client = await self.connect()
        client.request("/", "POST", "Content-Length: 2\r\nExpect: 100-continue\r\n")
        early = asyncio.ensure_future(client.reader.read(1))
        done, _ = await asyncio.wait([early], timeout=0.1)
        self.assertFalse(done, "100 was sent before receive()")
        proceed.set()
        self.assertEqual(await early + await client.reader.readuntil(b"\r\n\r\n"),
                         b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(b"ab")
        self.assertEqual((await client.response()).body, b"ab")

    async def test_early_response_sends_no_continue(self):
        await self.serve(hello)
        response = await self.get("/", "POST", "Content-Length: 9\r\nExpect: 100-continue\r\n")
        self.assertEqual((response.status, response.body), (200, b"hello"))


class Connections(ServerCase):
    async def test_connection_is_kept(self):
        await self.serve(hello)
        client = await self.connect()
        for _ in range(3):
            self.assertEqual((await client.get()).body, b"hello")

    async def test_connection_close_ends_it(self):
        await self.serve(hello)
        client = await self.connect()
        response = await client.get(headers="Connection: close\r\n")
        self.assertEqual(response.headers["connection"], "close")
        self.assertEqual(await client.reader.read(), b"")

    async def test_old_client_gets_an_end_of_connection(self):
        await self.serve(hello)
        client = await self.connect()
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        self.assertEqual((await client.response()).body, b"hello")
        self.assertEqual(await client.reader.read(), b"")

    async def test_pipelined_requests_are_answered_in_order(self):
        async def app(scope, receive, send):
            await asyncio.sleep(0.02 if scope["path"] == "/0" else 0)
            await respond(send, scope["path"].encode())

        await self.serve(app)
        client = await self.connect()
        for number in range(5):
            client.request(f"/{number}")
        bodies = [(await client.response()).body for _ in range(5)]
        self.assertEqual(bodies, [b"/0", b"/1", b"/2", b"/3", b"/4"])

    async def test_pipelined_request_after_an_unread_body_is_answered(self):
        await self.serve(hello)
        client = await self.connect()
        client.request("/", "POST", "Content-Length: 5\r\n", b"12345")
        client.request("/")
        self.assertEqual([(await client.response()).body for _ in range(2)], [b"hello"] * 2)

    async def test_malformed_request_gets_400(self):
        await self.serve(hello)
        client = await self.connect()
        client.send(b"GET / HTTP/1.1\r\nHost : x\r\n\r\n")
        self.assertEqual((await client.response()).status, 400)

    async def test_limit_of_concurrency_gives_503(self):
        proceed = asyncio.Event()

        async def app(scope, receive, send):
            await proceed.wait()
            await respond(send, b"first")

        server = await self.serve(app, limit_concurrency=1)
        first = await self.connect()
        first.request()
        await self.until(lambda: server.tasks)
        self.assertEqual((await self.get()).status, 503)
        proceed.set()
        self.assertEqual((await first.response()).body, b"first")
        await self.until(lambda: not server.tasks)
        self.assertEqual((await self.get()).status, 200)

    async def test_idle_connection_is_closed(self):
        await self.serve(hello, timeout_keep_alive=0.1)
        client = await self.connect()
        await client.get()
        self.assertEqual(await client.reader.read(), b"")

    async def test_unix_socket_is_served(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            server = await self.serve(hello, uds=path)
            client = Client(*await asyncio.open_unix_connection(path))
            self.addCleanup(client.close)
            self.assertEqual((await client.get()).body, b"hello")
            self.assertEqual(server.addresses, [path])


class Responses(ServerCase):
    async def response_of(self, messages, method="GET", **settings):
        async def app(scope, receive, send):
            for message in messages:
                await send(message)

        await self.serve(app, **settings)
        return await self.get("/", method)

    @staticmethod
    def start(headers=(), status=200, **more):
        return {"type": "http.response.start", "status": status, "headers": list(headers), **more}

    @staticmethod
    def body(data=b"", more_body=False):
        return {"type": "http.response.body", "body": data, "more_body": more_body}

    async def test_whole_response_has_a_length(self):
        response = await self.response_of([self.start([(b"x-one", b"1")], 201), self.body(b"ab")])
        self.assertEqual((response.status, response.body), (201, b"ab"))
        self.assertEqual(response.headers["x-one"], "1")
        self.assertEqual(response.headers["content-length"], "2")
        self.assertEqual(response.headers["server"], "spate")
        self.assertIn("date", response.headers)

    async def test_streamed_response_is_chunked(self):
        response = await self.response_of(
            [self.start(), self.body(b"ab", True), self.body(b"", True), self.body(b"c")])
        self.assertEqual(response.headers["transfer-encoding"], "chunked")
        self.assertEqual(response.body, b"abc")

    async def test_streamed_response_of_known_length_is_not_chunked(self):
        response = await self.response_of([self.start([(b"content-length", b"3")]),
                                           self.body(b"ab", True), self.body(b"c")])
        self.assertEqual((response.headers["content-length"], response.body), ("3", b"abc"))

    async def test_own_fields_of_the_server_are_left_out(self):
        response = await self.response_of([
            self.start([(b"date", b"never"), (b"connection", b"x"), (b"Transfer-Encoding", b"y")]),
            self.body(b"ab")])
        self.assertNotEqual(response.headers["date"], "never")
        self.assertEqual(response.body, b"ab")

    async def test_head_has_the_length_and_no_body(self):
        response = await self.response_of([self.start(), self.body(b"abc")], "HEAD")
        self.assertEqual(response.headers["content-length"], "3")

    async def test_head_keeps_a_declared_length(self):
        response = await self.response_of(
            [self.start([(b"content-length", b"9")]), self.body()], "HEAD")
        self.assertEqual(response.headers["content-length"], "9")
        self.assertEqual(self.errors, [])

    async def test_head_of_a_stream_is_complete(self):
        async def app(scope, receive, send):
            await send(self.start())
            for _ in range(3):
                await send(self.body(b"abc", True))
            await send(self.body())

        await self.serve(app)
        client = await self.connect()
        await client.get("/", "HEAD")
        self.assertEqual((await client.get()).body, b"abcabcabc")

    async def test_status_without_body_has_none(self):
        for status in (204, 304):
            response = await self.response_of([self.start(status=status), self.body()])
            self.assertEqual((response.status, response.body), (status, b""))

    async def test_large_response_arrives_whole(self):
        data = os.urandom(9 * 1024 * 1024)
        response = await self.response_of([self.start(), self.body(data)])
        self.assertEqual(response.headers["content-length"], str(len(data)))
        self.assertTrue(response.body == data)

    async def test_send_waits_for_a_slow_client(self):
        counts = []

        async def app(scope, receive, send):
            await send(self.start())
            for count in range(64):
                counts.append(count)
                await send(self.body(bytes(1024 * 1024), True))
            await send(self.body())

        await self.serve(app)
        client = await self.connect()
        client.writer.transport.pause_reading()
        client.request()
        await asyncio.sleep(0.3)
        self.assertLess(len(counts), 32)
        client.writer.transport.resume_reading()
        self.assertEqual(len((await client.response()).body), 64 * 1024 * 1024)

    async def test_trailers_follow_the_body(self):
        response = await self.response_of([
            self.start(trailers=True), self.body(b"ab"),
            {"type": "http.response.trailers", "headers": [(b"x-sum", b"7")]}])
        self.assertEqual((response.body, response.headers["trailer x-sum"]), (b"ab", "7"))

    async def test_path_is_sent_as_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            data = os.urandom(500_000)
            file.write(data)
            file.flush()
            response = await self.response_of(
                [self.start(), {"type": "http.response.pathsend", "path": file.name}])
        self.assertEqual(response.headers["content-length"], "500000")
        self.assertTrue(response.body == data)

    async def test_missing_path_gives_500(self):
        response = await self.response_of(
            [self.start(), {"type": "http.response.pathsend", "path": "/no/such/file"}])
        self.assertEqual(response.status, 500)


class Failures(ServerCase):
    async def test_exception_before_the_response_gives_500(self):
        async def app(scope, receive, send):
            if scope["path"] == "/started":
                await send({"type": "http.response.start", "status": 200, "headers": []})
            raise KeyError("broken")

        await self.serve(app)
        client = await self.connect()
        self.assertEqual((await client.get()).status, 500)
        self.assertEqual((await client.get("/started")).status, 500)
        self.assertIn("broken", self.error_text()[0])

    async def test_exception_in_the_body_resets_the_connection(self):
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ab", "more_body": True})
            raise KeyError("broken")

        await self.serve(app)
        with self.assertRaises((asyncio.IncompleteReadError, ConnectionError, ValueError)):
            await self.get()
        self.assertIn("broken", self.error_text()[0])

    async def test_return_without_response_gives_500(self):
        async def app(scope, receive, send):
            pass

        await self.serve(app)
        self.assertEqual((await self.get()).status, 500)
        self.assertIn("without starting a response", self.error_text()[0])

    async def test_return_in_the_body_resets_the_connection(self):
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ab", "more_body": True})

        await self.serve(app)
        with self.assertRaises((asyncio.IncompleteReadError, ConnectionError, ValueError)):
            await self.get()
        self.assertIn("without completing the response", self.error_text()[0])

    async def fails_with(self, *messages):
        async def app(scope, receive, send):
            for message in messages:
                await send(message)

        await self.serve(app)
        try:
            status = (await self.get()).status
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            status = None
        await self.until(lambda: self.errors)
        return status, self.error_text()[0]

    async def test_wrong_messages_are_errors_of_the_application(self):
        start = {"type": "http.response.start", "status": 200, "headers": []}
        body = {"type": "http.response.body", "body": b"a"}
        for messages, status, text in [
                ([body], 500, "expected the message 'http.response.start'"),
                ([start, start], 500, "expected the message 'http.response.body'"),
                ([start, body, body], 200, "the response is complete"),
                ([{"no": "type"}], 500, "a message must be a dict with a type"),
                ([["list"]], 500, "a message must be a dict with a type"),
                ([{**start, "status": 99}, body], 500, "the status of a response"),
                ([{**start, "status": "x"}, body], 500, "integer"),
                ([{**start, "headers": [("a", "b")]}, body], 500, "a pair of bytes"),
                ([{**start, "headers": [(b"a b", b"c")]}, body], 500, "cannot be sent"),
                ([{**start, "headers": [(b"a", b"b\r\nc: d")]}, body], 500, "cannot be sent"),
                ([start, {**body, "body": "text"}], 500, "bytes-like"),
                ([{**start, "headers": [(b"content-length", b"5")]}, body], 500, "shorter"),
                ([{**start, "headers": [(b"content-length", b"0")]}, body], 500, "longer"),
                ([{**start, "headers": [(b"content-length", b"x")]}, body], 500, "cannot be sent"),
                ([{**start, "headers": [(b"content-length", b"2")]}, {**body, "more_body": True},
                  {**body, "body": b"long"}], None, "longer")]:
            with self.subTest(text=text, messages=messages):
                self.errors.clear()
                self.assertEqual((await self.fails_with(*messages))[0], status)
                self.assertIn(text, self.error_text()[0])

    async def test_disconnect_is_received(self):
        messages = []

        async def app(scope, receive, send):
            await receive()
            messages.append(await receive())

        server = await self.serve(app)
        client = await self.connect()
        client.request()
        await self.until(lambda: server.tasks)
        client.close()
        await self.until(lambda: messages)
        self.assertEqual(messages, [{"type": "http.disconnect"}])

    async def test_disconnect_in_the_body_is_received(self):
        messages = []

        async def app(scope, receive, send):
            while not messages or messages[-1]["type"] == "http.request":
                messages.append(await receive())

        server = await self.serve(app)
        client = await self.connect()
        client.request("/", "POST", "Content-Length: 9\r\n", b"abc")
        await self.until(lambda: messages)
        client.close()
        await self.until(lambda: not server.tasks)
        self.assertEqual(messages[-1], {"type": "http.disconnect"})

    async def test_send_to_a_disconnected_client_raises_oserror(self):
        raised = await self.errors_after_reset(lambda error: error)
        self.assertIsInstance(raised[0], OSError)
        self.assertEqual(self.error_text(), [])

    async def errors_after_reset(self, made):
        """Resets the connection. The application sends, and raises made(the exception)."""
        raised = []

        async def app(scope, receive, send):
            while (await receive())["type"] != "http.disconnect":
                pass
            try:
                await respond(send, b"late")
            except OSError as error:
                raised.append(error)
                raise made(error)

        server = await self.serve(app)
        client = await self.connect()
        client.request()
        await self.until(lambda: server.tasks)
        client.reset()
        await self.until(lambda: raised and not server.tasks)
        return raised

    async def test_exception_that_follows_a_disconnect_is_not_logged(self):
        await self.errors_after_reset(lambda error: KeyError("client left"))
        self.assertEqual(self.error_text(), [])

    async def test_exception_of_its_own_after_a_disconnect_is_logged(self):
        async def app(scope, receive, send):
            while (await receive())["type"] != "http.disconnect":
                pass
            raise KeyError("broken")

        server = await self.serve(app)
        client = await self.connect()
        client.request()
        await self.until(lambda: server.tasks)
        client.reset()
        await self.until(lambda: self.errors)
        self.assertIn("broken", self.error_text()[0])

    async def test_half_closed_client_gets_its_response(self):
        async def app(scope, receive, send):
            while (await receive())["type"] != "http.disconnect":
                pass
            await respond(send, b"late")

        await self.serve(app)
        client = await self.connect()
        client.request()
        client.writer.write_eof()
        self.assertEqual((await client.response()).body, b"late")

    async def test_cancelled_receive_can_be_repeated(self):
        async def app(scope, receive, send):
            await receive()
            for _ in range(2):
                try:
                    await asyncio.wait_for(receive(), 0.01)
                except asyncio.TimeoutError:
                    pass
            await respond(send, b"after")

        await self.serve(app)
        self.assertEqual((await self.get()).body, b"after")

    async def test_two_tasks_may_receive(self):
        async def app(scope, receive, send):
            await receive()
            waits = [asyncio.ensure_future(receive()) for _ in range(2)]
            await asyncio.sleep(0.01)
            await respond(send)
            self.got = [(await wait)["type"] for wait in waits]

        server = await self.serve(app)
        await self.get()
        await self.until(lambda: not server.tasks)
        self.assertEqual(self.got, ["http.disconnect"] * 2)
