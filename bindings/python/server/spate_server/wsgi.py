"""WSGI applications (PEP 3333): each request is called in a thread."""

import asyncio
import collections
import concurrent.futures
import io
import queue
import sys
import threading

from ._native import done


class Threads:
    """Starts up to `most` threads, which call run() of requests.

    One thread is woken at a time, and wakes another one if requests are left when it has taken its
    first. While it holds the interpreter's lock, it serves the others without further wake-ups.
    They end after close(). They are daemons, so one that never returns ends with the process.
    """

    def __init__(self, most):
        self.most = most
        self.started = 0
        self.sleeping = 0
        self.is_waking = False  # A thread was woken, and has not looked at the requests yet.
        self.is_closed = False
        self.lock = threading.Lock()
        self.requests = collections.deque()
        self.wakes = queue.SimpleQueue()

    def add(self, request):
        self.requests.append(request)
        if not self.is_waking:
            self.wake()

    def wake(self):
        with self.lock:
            if self.is_waking or not self.requests:
                return
            if self.sleeping:
                self.sleeping -= 1
                self.is_waking = True
                self.wakes.put(None)
                return
            if self.started == self.most:
                return
            self.is_waking = True
            self.started += 1
        self.start_thread()

    def close(self):
        """Lets each thread end when no request is left. Later requests start new ones."""
        with self.lock:
            self.is_closed = True
            sleeping, self.sleeping = self.sleeping, 0
        for _ in range(sleeping):
            self.wakes.put(None)

    def start_thread(self):
        try:
            threading.Thread(target=self.work, name=f"spate-wsgi-{self.started}",
                             daemon=True).start()
        except RuntimeError:  # The system permits no further thread.
            with self.lock:
                self.is_waking = False
                self.started -= 1
            if not self.started:
                raise

    def work(self):
        is_woken = True  # It is the thread that is_waking stands for.
        while True:
            try:
                request = self.requests.popleft()
            except IndexError:
                is_woken = self.sleep(is_woken)
                if is_woken is None:
                    return
                continue
            if is_woken:
                is_woken = self.is_waking = False
            if self.requests and not self.is_waking:
                self.wake()
            request.run()
            request = None

    def sleep(self, is_woken):
        """Returns whether it has slept; None if the thread is to end."""
        with self.lock:
            if is_woken:
                self.is_waking = False
            if self.requests:
                return False
            if self.is_closed:
                self.started -= 1
                return None
            self.sleeping += 1
        self.wakes.get()
        return True


class Body(io.RawIOBase):
    """The request's body, as a file that blocks."""

    def __init__(self, request):
        self.request = request
        self.rest = memoryview(b"")
        self.is_whole = False

    def readable(self):
        return True

    def readinto(self, room):
        while not self.rest and not self.is_whole:
            message = self.request.call(self.request.cycle.receive)
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client disconnected inside the body")
            self.rest = memoryview(message.get("body", b""))
            self.is_whole = not message.get("more_body", False)
        count = min(len(room), len(self.rest))
        room[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


class Request:
    """One call of the application, in a thread. The loop calls settle() and cancel()."""

    def __init__(self, application, environ, cycle):
        self.application = application
        self.environ = environ
        self.cycle = cycle
        self.start = None
        self.length = None  # The Content-Length that the application declared.
        self.is_begun = False
        self.is_complete = False
        self.reply = None  # Messages that the loop has to send.
        self.error = None
        self.is_over = False  # The thread has finished.
        self.is_sending = False
        self.is_cancelled = False
        self.waiting = None
        self.future = None

    def start_response(self, status, headers, exc_info=None):
        if exc_info is not None:
            try:
                if self.is_begun:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None  # Its traceback has this frame.
        elif self.start is not None:
            raise RuntimeError("start_response() was already called")
        self.length = None
        encoded = []
        for name, value in headers:
            encoded.append((name.encode("latin1"), value.encode("latin1")))
            if name.lower() == "content-length":
                self.length = value
        self.start = {"type": "http.response.start", "status": int(status.split(" ", 1)[0]),
                      "headers": encoded}
        return self.write

    def write(self, data):
        if not data:
            return
        if self.start is None:
            raise RuntimeError("start_response() was not called before the body")
        if self.is_complete:
            raise RuntimeError("the response is longer than its Content-Length")
        if not self.is_begun:
            # Nothing can follow, so nothing has to wait for the client.
            if self.length == str(len(data)):
                self.complete(data)
                return
            self.is_begun = True
            self.call(self.cycle.send, self.start)
        self.call(self.cycle.send, {"type": "http.response.body", "body": data,
                                    "more_body": True})

    def complete(self, body):
        """Leaves the rest of the response to the loop."""
        if self.start is None:
            raise RuntimeError("the application returned without start_response()")
        end = {"type": "http.response.body", "body": body}
        self.reply = [end] if self.is_begun else [self.start, end]
        self.is_begun = self.is_complete = True
        self.application.post(self)

    def run(self):
        try:
            environ = self.environ
            environ["wsgi.input"] = (io.BufferedReader(Body(self)) if self.cycle.has_body
                                     else io.BytesIO())
            result = self.application.app(environ, self.start_response)
            try:
                self.send_all(result)
            finally:
                if hasattr(result, "close"):
                    result.close()
        except BaseException as error:
            self.error = error
        self.is_over = True
        self.application.post(self)

    def send_all(self, result):
        if isinstance(result, (list, tuple)) and len(result) == 1 and not self.is_begun:
            self.complete(result[0])
            return
        for piece in result:
            self.write(piece)
        if not self.is_complete:
            self.complete(b"")

    def call(self, function, *arguments):
        """Calls a coroutine function in the loop. Returns its result."""
        with self.application.lock:
            if self.is_cancelled:
                raise ConnectionAbortedError("the server stopped")
            self.waiting = asyncio.run_coroutine_threadsafe(
                self.await_call(function, arguments), self.application.server.loop)
        try:
            return self.waiting.result()
        except concurrent.futures.CancelledError:
            raise ConnectionAbortedError("the server stopped") from None

    @staticmethod
    async def await_call(function, arguments):
        return await function(*arguments)

    def settle(self):
        """Sends what the thread has left. Ends the request after the thread has finished."""
        reply, self.reply = self.reply, None
        if reply is not None and not self.is_cancelled:
            try:
                for message in reply:
                    sent = self.cycle.send(message)
                if sent is not done:
                    self.is_sending = True
                    self.application.server.loop.create_task(self.finish_sending(sent))
            except Exception as error:
                self.error = self.error or error
        if self.is_over and not self.is_sending:
            self.end()

    async def finish_sending(self, sent):
        try:
            await sent
        except Exception as error:
            self.error = self.error or error
        self.is_sending = False
        if self.is_over:
            self.end()

    def end(self):
        server = self.application.server
        if server.tasks.pop(self.cycle, None) is None:
            return
        if self.error is None:
            server.finish_request(self.cycle, None)
        else:
            server.fail_request(self.cycle, self.error)
            self.error = None  # Its traceback has the frame of run().
        if self.future is not None:
            self.future.done() or self.future.set_result(None)

    def as_future(self):
        """Returns a future of the end. If it is cancelled, the request is."""
        if self.future is None:
            self.future = self.application.server.loop.create_future()
            self.future.add_done_callback(lambda future: future.cancelled() and self.cancel())
        return self.future

    def cancel(self):
        with self.application.lock:
            self.is_cancelled = True
            if self.waiting is not None:
                self.waiting.cancel()
        self.application.server.tasks.pop(self.cycle, None)
        self.cycle.fail()


class WsgiApplication:
    """Calls a WSGI application for the requests of a server."""

    def __init__(self, app, server, threads, is_multiprocess=False):
        self.app = app
        self.server = server
        self.threads = Threads(threads)
        self.lock = threading.Lock()
        self.posted = collections.deque()  # Requests to be settled, some of them twice.
        self.is_notified = False
        # The part that all environs share. The native half copies it and adds the rest.
        self.environ = {
            "SERVER_NAME": "localhost", "SERVER_PORT": "80", "REMOTE_ADDR": "", "REMOTE_PORT": "0",
            "SCRIPT_NAME": server.config.root_path.encode().decode("latin1"),
            "wsgi.version": (1, 0), "wsgi.errors": sys.stderr, "wsgi.multithread": True,
            "wsgi.multiprocess": is_multiprocess, "wsgi.run_once": False,
            "wsgi.input_terminated": True}

    def set_address(self, address):
        if address:
            self.environ["SERVER_NAME"] = address[0] or "localhost"
            self.environ["SERVER_PORT"] = str(address[1] or 80)

    def start(self, environ, cycle):
        """Starts a request. Returns a coroutine only for a WebSocket."""
        if "type" in environ:
            return self.server.run_app(environ, cycle)
        self.server.tasks[cycle] = request = Request(self, environ, cycle)
        try:
            self.threads.add(request)
        except RuntimeError as error:  # There is no thread.
            self.threads.requests.remove(request)
            request.error, request.is_over = error, True
            request.settle()

    def post(self, request):
        """Has settle() of a request called in the loop."""
        self.posted.append(request)
        if self.is_notified:
            return
        self.is_notified = True
        try:
            self.server.loop.call_soon_threadsafe(self.settle)
        except RuntimeError:  # The loop is closed: nothing waits.
            pass

    def settle(self):
        self.is_notified = False
        for _ in range(len(self.posted)):
            self.posted.popleft().settle()


async def refuse_websocket(scope, receive, send):
    """The ASGI application of the WebSockets of a WSGI server."""
    await receive()
    await send({"type": "websocket.close"})
