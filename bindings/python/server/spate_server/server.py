"""One server: a process, or a worker of several."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat

from . import _native
from .config import ConfigError
from .lifespan import Lifespan, StartupFailed
from .proxy import ProxyHeaders
from .tls import extension_of
from .wsgi import WsgiApplication, refuse_websocket

logger = logging.getLogger("spate_server")
access_logger = logging.getLogger("spate_server.access")
FOREVER = 365 * 86400


class Server:
    """Serves an application on the running loop.

    start() listens, after the application has started. stop() drains, and stops the application.
    `addresses` are those that it listens on.
    """

    def __init__(self, config, app=None):
        config.check()
        self.config = config
        self.app = config.load() if app is None else app
        self.lifespan_mode = config.lifespan
        self.wsgi = None
        if config.interface == "wsgi":
            self.wsgi = WsgiApplication(self.app, self, config.threads, config.workers > 1)
            self.app = refuse_websocket
            self.lifespan_mode = "off"
        self.addresses = []
        self.tasks = {}
        self.native = None
        self.at_last_request = None  # Called when limit_max_requests is reached.

    async def start(self, reuse_port=False):
        """Raises StartupFailed, or OSError if it cannot listen; it may then be started again."""
        if self.native is not None:
            raise RuntimeError("The server has been started; call stop() first")
        self.loop = asyncio.get_running_loop()
        self.lifespan = Lifespan(self.app, self.lifespan_mode, logger)
        try:
            self.native = self.make_native()  # Reads the TLS files, before the application starts.
            await self.lifespan.startup()
            self.listen(reuse_port)
        except BaseException:
            self.close()
            await self.lifespan.shutdown()
            raise

    def make_native(self):
        config = self.config
        try:
            return _native.Server(
                self.loop, self.wsgi.start if self.wsgi else self.run_app, self.tasks,
                ProxyHeaders(config.forwarded_allow_ips) if config.proxy_headers else None,
                extension_of(config.ssl_certfile) if config.ssl_certfile else None,
                log_access if config.access_log else None, self.lifespan.state,
                self.wsgi.environ if self.wsgi else None, config.root_path,
                config.timeout_keep_alive,
                config.limit_concurrency or 0, config.ws_max_size, config.ssl_certfile,
                config.ssl_keyfile, config.ssl_ca_certs, config.ssl_cert_reqs,
                "spate" if config.server_header else "", config.headers(),
                config.limit_max_requests or 0, self.at_last_request)
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def listen(self, reuse_port):
        config = self.config
        self.loop.add_reader(self.native.fileno(), self.native.turn)
        if config.fd is not None:
            with naming(f"--fd {config.fd}"):
                self.adopt(socket.socket(fileno=os.dup(config.fd)))
        elif config.uds:
            self.adopt(listen_on_path(config))
        else:
            for host in hosts_of(config.host, config.port):
                port = self.addresses[0][1] if self.addresses else config.port
                with naming(f"{host} port {port}"):
                    self.addresses.append(
                        self.native.listen(host, port, config.backlog, reuse_port))
        if self.wsgi and isinstance(self.addresses[-1], tuple):
            self.wsgi.set_address(self.addresses[-1])

    def adopt(self, listener):
        with listener:
            name = listener.getsockname()
            self.native.adopt(listener.fileno(), self.config.backlog)
            listener.detach()
        self.addresses.append(name)

    async def run_app(self, scope, cycle):
        try:
            result = await self.app(scope, cycle.receive, cycle.send)
            if result is not None or cycle.finish() is not None:
                self.finish_request(cycle, result)
        except Exception as error:
            self.fail_request(cycle, error)
        except BaseException:
            cycle.fail()
            raise
        finally:
            self.tasks.pop(cycle, None)  # An eager task may end before it is entered.

    def finish_request(self, cycle, result):
        missing = cycle.finish()
        if missing is not None:
            logger.error("The application returned without %s", missing)
            cycle.fail()
        elif result is not None:
            logger.warning("The application returned %r, not None", result)

    def fail_request(self, cycle, error):
        if cycle.fail() or not is_disconnect(error):
            logger.error("The application raised an exception", exc_info=error)

    async def stop(self):
        """Stops listening, and waits for requests and for the application.

        Requests that are not done after timeout_graceful_shutdown are reset, and their tasks are
        cancelled.
        """
        if self.native is None:
            return True
        grace = self.config.timeout_graceful_shutdown
        end = None if grace is None else self.loop.time() + grace
        drained = self.loop.create_future()
        self.native.drain(FOREVER if grace is None else grace,
                          lambda: drained.done() or drained.set_result(None))
        await drained
        await self.end_tasks(end)
        result = await self.lifespan.shutdown()
        self.close()
        return result

    async def end_tasks(self, end):
        tasks = [task.as_future() if self.wsgi and not isinstance(task, asyncio.Future) else task
                 for task in self.tasks.values()]
        if not tasks:
            return
        timeout = None if end is None else max(0, end - self.loop.time())
        _, late = await asyncio.wait(tasks, timeout=timeout)
        if late:
            logger.error("Cancelling %d requests: the time for the shutdown is over", len(late))
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def close(self):
        """Ends at once: connections are closed."""
        if self.native is not None:
            self.loop.remove_reader(self.native.fileno())
            self.native.close()
            self.native = None
        self.addresses = []
        if self.wsgi:
            self.wsgi.threads.close()


def is_disconnect(error):
    """Returns whether the exception is an OSError, or was raised while one was handled.

    Frameworks raise their own exception when send() has raised ClientDisconnected.
    """
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error is not None


@contextlib.contextmanager
def naming(place):
    """Adds the place to the text of an OSError."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = place
        raise


def hosts_of(host, port):
    """Returns the addresses of a host name."""
    if not host:
        return ["0.0.0.0", "::"] if socket.has_dualstack_ipv6() is False else ["::"]
    with naming(host):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(entry[4][0] for entry in found))


def listen_on_path(config):
    """Returns a listening socket. One that a process has left at this path is removed."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with naming(config.uds):
            if is_socket(config.uds):
                os.unlink(config.uds)
            listener.bind(config.uds)
            os.chmod(config.uds, 0o666)
            listener.listen(config.backlog)
    except BaseException:
        listener.close()
        raise
    return listener


def is_socket(path):
    return os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode)


def log_access(client, method, target, version, status):
    place = f"{client[0]}:{client[1]}" if client else "-"
    access_logger.info('%s - "%s %s HTTP/%s" %d', place, method, target, version, status)


async def serve_until_signal(config, reuse_port, signals):
    """Serves until one of the signals. Returns the status of the process."""
    server = Server(config)
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def stop(number):
        if asked.is_set():  # A second signal ends the process at once.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.set()

    for number in signals:
        loop.add_signal_handler(number, stop, number)
    server.at_last_request = asked.set
    try:
        await server.start(reuse_port)
    except StartupFailed as error:
        logger.error("The application did not start: %s", error)
        return 3
    except OSError as error:
        logger.error("Cannot listen: %s", error)
        return 1
    logger.info("Process %d listens on %s", os.getpid(), describe(config, server.addresses))
    await asked.wait()
    logger.info("Process %d shuts down", os.getpid())
    if server.tasks:
        logger.info("It waits for %d requests. A second signal ends it at once", len(server.tasks))
    return 0 if await server.stop() else 3


def describe(config, addresses):
    if config.uds or config.fd is not None:
        return ", ".join(str(address) for address in addresses)
    scheme = "https" if config.ssl_certfile else "http"
    hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in addresses]
    return ", ".join(f"{scheme}://{host}:{port}" for host, port in hosts)


def run(config, reuse_port=False, signals=(signal.SIGINT, signal.SIGTERM)):
    """Serves in this process until a signal. Returns its exit status."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve_until_signal(config, reuse_port, signals))


def loop_factory():
    """Returns that of the package spate; without it, asyncio's."""
    try:
        from spate import new_event_loop
    except ImportError:
        return None
    return new_event_loop
