"""WSGI applications (PEP 3333): each request is called in a thread."""

import asyncio
import concurrent.futures
import io
import queue
import sys
import threading
import urllib.parse


class Threads:
    """Starts up to `most` threads. They are daemons, so one that never returns ends with the
    process."""

    def __init__(self, most):
        self.most = most
        self.started = 0
        self.idle = 0
        self.lock = threading.Lock()
        self.jobs = queue.SimpleQueue()

    def run(self, loop, function):
        """Returns a future of the loop."""
        future = loop.create_future()
        with self.lock:
            needs_thread = self.idle == 0 and self.started < self.most
            if needs_thread:
                self.started += 1
            else:
                self.idle -= 1
        if needs_thread:
            threading.Thread(target=self.work, name=f"spate-wsgi-{self.started}",
                             daemon=True).start()
        self.jobs.put((loop, function, future))
        return future

    def work(self):
        while True:
            loop, function, future = self.jobs.get()
            try:
                self.end(loop, future, future.set_result, function())
            except BaseException as error:
                self.end(loop, future, future.set_exception, error)
            with self.lock:
                self.idle += 1
            loop = function = future = None

    @staticmethod
    def end(loop, future, method, argument):
        try:
            loop.call_soon_threadsafe(lambda: future.done() or method(argument))
        except RuntimeError:  # The loop is closed: nothing waits.
            pass


class Bridge:
    """Lets a thread wait for coroutines of the loop, until the request is cancelled."""

    def __init__(self, loop):
        self.loop = loop
        self.lock = threading.Lock()
        self.is_cancelled = False
        self.waiting = None

    def call(self, function, *arguments):
        with self.lock:
            if self.is_cancelled:
                raise ConnectionAbortedError("the server stopped")
            self.waiting = asyncio.run_coroutine_threadsafe(
                self.await_call(function, arguments), self.loop)
        try:
            return self.waiting.result()
        except concurrent.futures.CancelledError:
            raise ConnectionAbortedError("the server stopped") from None

    @staticmethod
    async def await_call(function, arguments):
        return await function(*arguments)

    def cancel(self):
        with self.lock:
            self.is_cancelled = True
            if self.waiting is not None:
                self.waiting.cancel()


class Body(io.RawIOBase):
    """The request's body, as a file that blocks."""

    def __init__(self, bridge, receive):
        self.bridge = bridge
        self.receive = receive
        self.rest = memoryview(b"")
        self.is_whole = False

    def readable(self):
        return True

    def readinto(self, room):
        while not self.rest and not self.is_whole:
            message = self.bridge.call(self.receive)
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client disconnected inside the body")
            self.rest = memoryview(message.get("body", b""))
            self.is_whole = not message.get("more_body", False)
        count = min(len(room), len(self.rest))
        room[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


class Request:
    """One call of the application, in its thread."""

    def __init__(self, bridge, send):
        self.bridge = bridge
        self.send = send
        self.start = None
        self.is_begun = False

    def start_response(self, status, headers, exc_info=None):
        if exc_info is not None:
            try:
                if self.is_begun:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None  # Its traceback has this frame.
        elif self.start is not None:
            raise RuntimeError("start_response() was already called")
        self.start = {"type": "http.response.start", "status": int(status.split(" ", 1)[0]),
                      "headers": [(name.encode("latin1"), value.encode("latin1"))
                                  for name, value in headers]}
        return self.write

    def begin(self):
        if self.start is None:
            raise RuntimeError("start_response() was not called before the body")
        if not self.is_begun:
            self.is_begun = True
            self.bridge.call(self.send, self.start)

    def write(self, data):
        if data:
            self.begin()
            self.bridge.call(self.send, {"type": "http.response.body", "body": data,
                                         "more_body": True})

    def run(self, app, environ):
        """Returns the messages that remain to be sent."""
        result = app(environ, self.start_response)
        try:
            if isinstance(result, (list, tuple)) and len(result) == 1 and not self.is_begun:
                return self.rest(result[0])
            for piece in result:
                self.write(piece)
            return self.rest(b"")
        finally:
            if hasattr(result, "close"):
                result.close()

    def rest(self, body):
        if self.start is None:
            raise RuntimeError("the application returned without start_response()")
        end = {"type": "http.response.body", "body": body}
        return [end] if self.is_begun else [self.start, end]


def environ_of(scope, is_multiprocess):
    """Returns the environ of a request, without its body."""
    server, client = scope["server"] or ("", 0), scope["client"] or ("", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": scope["root_path"].encode().decode("latin1"),
        "PATH_INFO": urllib.parse.unquote_to_bytes(scope["raw_path"]).decode("latin1"),
        "QUERY_STRING": scope["query_string"].decode("latin1"),
        "SERVER_NAME": server[0] or "localhost", "SERVER_PORT": str(server[1] or 80),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0], "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0), "wsgi.url_scheme": scope["scheme"], "wsgi.errors": sys.stderr,
        "wsgi.multithread": True, "wsgi.multiprocess": is_multiprocess, "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        add_header(environ, name.decode("latin1"), value.decode("latin1"))
    return environ


def add_header(environ, name, value):
    if "_" in name:  # It would have the key of another header, which a proxy may have checked.
        return
    key = name.upper().replace("-", "_")
    if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        key = "HTTP_" + key
    if key in environ:
        value = environ[key] + ("; " if name == "cookie" else ",") + value
    environ[key] = value


class WsgiApplication:
    """An ASGI application that calls one of WSGI."""

    def __init__(self, app, threads, is_multiprocess=False):
        self.app = app
        self.threads = Threads(threads)
        self.is_multiprocess = is_multiprocess

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
            return
        loop = asyncio.get_running_loop()
        bridge = Bridge(loop)
        environ = environ_of(scope, self.is_multiprocess)
        environ["wsgi.input"] = io.BufferedReader(Body(bridge, receive))
        request = Request(bridge, send)
        try:
            messages = await self.threads.run(loop, lambda: request.run(self.app, environ))
        except asyncio.CancelledError:
            bridge.cancel()
            raise
        for message in messages:
            await send(message)
