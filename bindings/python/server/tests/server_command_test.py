"""The command, the lifespan, shutdown and workers: each server is a process."""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from unittest import mock

import server_case  # Skips if the server was not built.

import spate_server
from spate_server.config import Config, ConfigError
from spate_server.proxy import ProxyHeaders
from spate_server.reload import Reloader
from spate_server.server import hosts_of

APPS = '''
import asyncio, os

async def lifespan(scope, receive, send, start="complete", stop="complete"):
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            scope["state"]["word"] = "shared"
            await send({"type": f"lifespan.startup.{start}", "message": "no database"})
        else:
            print("stopping", flush=True)
            await asyncio.sleep(0.05)
            print("stopped", flush=True)
            await send({"type": f"lifespan.shutdown.{stop}", "message": "stuck"})
            return

async def respond(send, body):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    if scope["path"] == "/slow":
        print("slow", flush=True)
        await asyncio.sleep(0.3)
    if scope["path"] == "/forever":
        print("slow", flush=True)
        await asyncio.Event().wait()
    if scope["path"] == "/exit":
        os._exit(9)
    await respond(send, f"{scope['state'].get('word')} {os.getpid()}".encode())

async def failing(scope, receive, send):
    await lifespan(scope, receive, send, start="failed")

async def raising(scope, receive, send):
    raise KeyError("broken start")

async def unstopping(scope, receive, send):
    await lifespan(scope, receive, send, stop="failed")

async def variable(scope, receive, send):
    assert scope["type"] == "http"
    await respond(send, " ".join(os.environ[name] for name in ("ONE", "TWO")).encode())

async def plain(scope, receive, send):
    assert scope["type"] == "http"
    await respond(send, b"plain")

def make():
    return plain

def wsgi(environ, start_response):
    return []
'''

LOGGING = {
    "version": 1, "formatters": {"own": {"format": "own format: %(message)s"}},
    "handlers": {"errors": {"class": "logging.StreamHandler", "formatter": "own"}},
    "root": {"level": "INFO", "handlers": ["errors"]}}

LOGGING_OF_FILE_CONFIG = """
[loggers]
keys = root
[handlers]
keys = errors
[formatters]
keys = own
[logger_root]
level = INFO
handlers = errors
[handler_errors]
class = StreamHandler
formatter = own
[formatter_own]
format = own format: %(message)s
"""

CHANGING = '''
async def changing(scope, receive, send):
    assert scope["type"] == "http"
    await respond(send, body)
'''


class Process:
    """A server that runs in a separate process."""

    def __init__(self, case, *arguments):
        self.case = case
        environment = {**os.environ, "PYTHONUNBUFFERED": "1",
                       "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spate_server", "--app-dir", case.directory, *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        case.addCleanup(self.end)
        self.log = ""
        self.url = None

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate()

    def started(self, count=1):
        """Waits until the processes listen."""
        while len(self.listening()) < count:
            line = self.process.stderr.readline()
            if not line:
                self.case.fail(self.log)
            self.log += line
        self.url = self.listening()[0][1]
        return self

    def listening(self):
        return re.findall(r"Process (\d+) listens on (\S+)", self.log)

    def get(self, path="/"):
        with urllib.request.urlopen(self.url + path) as response:
            return response.read().decode()

    def stop(self):
        """Returns the status, the output and the log."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        out, log = self.process.communicate()
        return self.process.returncode, out, self.log + log


class Command(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.directory = made.name
        with open(os.path.join(self.directory, "applications.py"), "w") as file:
            file.write(APPS)

    def start(self, name, *arguments, count=1):
        return Process(self, f"applications:{name}", "--port", "0", *arguments).started(count)

    def test_application_starts_serves_and_stops(self):
        server = self.start("app")
        self.assertTrue(server.get().startswith("shared "))
        status, out, _ = server.stop()
        self.assertEqual((status, out), (0, "stopping\nstopped\n"))

    def test_failed_startup_ends_the_process(self):
        status, _, log = Process(self, "applications:failing", "--port", "0").wait()
        self.assertEqual(status, 3)
        self.assertIn("did not start: no database", log)

    def test_exception_in_startup_ends_the_process_if_lifespan_is_on(self):
        status, _, log = Process(self, "applications:raising", "--port", "0", "--lifespan",
                                 "on").wait()
        self.assertEqual(status, 3)
        self.assertIn("broken start", log)

    def test_application_without_lifespan_is_served(self):
        self.assertEqual(self.start("plain").get(), "plain")

    def test_lifespan_off_is_not_called(self):
        self.assertTrue(self.start("app", "--lifespan", "off").get().startswith("None "))

    def test_failed_shutdown_is_in_the_status(self):
        status, _, log = self.start("unstopping").stop()
        self.assertEqual(status, 3)
        self.assertIn("stuck", log)

    def test_factory_makes_the_application(self):
        self.assertEqual(self.start("make", "--factory").get(), "plain")

    def test_access_log_has_requests(self):
        server = self.start("plain", "--access-log")
        server.get("/one?two")
        self.assertRegex(server.stop()[2], r'127\.0\.0\.1:\d+ - "GET /one\?two HTTP/1\.1" 200')

    def test_headers_are_in_each_response(self):
        server = self.start("plain", "--header", "X-One: 1", "--header", "x-two:a:b")
        with urllib.request.urlopen(server.url) as response:
            self.assertEqual((response.headers["x-one"], response.headers["x-two"]), ("1", "a:b"))

    def test_process_ends_after_its_last_request(self):
        server = self.start("plain", "--limit-max-requests", "2")
        for _ in range(2):
            self.assertEqual(server.get(), "plain")
        self.assertEqual(server.wait()[0], 0)

    def write_file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    @unittest.skipUnless(importlib.util.find_spec("dotenv"), "there is no python-dotenv")
    def test_file_of_variables_is_read_before_the_application(self):
        path = self.write_file("variables", "ONE=1\nexport TWO='a b'\n")
        with mock.patch.dict(os.environ, ONE="kept"):
            server = self.start("variable", "--env-file", path)
        self.assertEqual(server.get(), "kept a b")

    def test_logging_is_configured_by_a_file(self):
        files = {"log.json": json.dumps(LOGGING), "log.ini": LOGGING_OF_FILE_CONFIG}
        if importlib.util.find_spec("yaml"):
            files["log.yaml"] = files["log.json"]  # JSON is YAML.
        for name, text in files.items():
            with self.subTest(name):
                path = self.write_file(name, text)
                server = Process(self, "applications:plain", "--port", "0", "--log-config", path)
                self.assertRegex(server.started().log, r"own format: Process \d+ listens on http:")

    def test_listening_descriptor_is_served(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            os.set_inheritable(listener.fileno(), True)
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen(
                [sys.executable, "-m", "spate_server", "applications:plain", "--fd",
                 str(listener.fileno()), "--app-dir", self.directory], env=environment,
                pass_fds=[listener.fileno()], stderr=subprocess.PIPE)
            try:
                url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
                with urllib.request.urlopen(url) as response:
                    self.assertEqual(response.read(), b"plain")
            finally:
                process.terminate()
                process.communicate()
        self.assertEqual(process.returncode, 0)

    def slow_request(self, server, path):
        address = re.search(r"//(.*):(\d+)", server.url).groups()
        client = socket.create_connection(address)
        self.addCleanup(client.close)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        self.assertEqual(server.process.stdout.readline(), "slow\n")
        return client

    def test_signal_waits_for_requests(self):
        server = self.start("app")
        client = self.slow_request(server, "/slow")
        status, out, _ = server.stop()
        self.assertEqual((status, out), (0, "stopping\nstopped\n"))
        self.assertIn(b"shared", client.recv(10_000))

    def test_time_for_shutdown_is_limited(self):
        server = self.start("app", "--timeout-graceful-shutdown", "0.1")
        self.slow_request(server, "/forever")
        status, out, log = server.stop()
        self.assertEqual((status, out), (0, "stopping\nstopped\n"))

    def test_second_signal_ends_at_once(self):
        server = self.start("app")
        self.slow_request(server, "/forever")
        server.process.send_signal(signal.SIGTERM)
        while "waits for 1 requests. A second signal" not in server.log:
            server.log += server.process.stderr.readline()
        status, out, _ = server.stop()
        self.assertEqual((status, out), (-signal.SIGTERM, ""))

    def free_port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def test_workers_share_a_port_and_are_restarted(self):
        port = str(self.free_port())
        server = Process(self, "applications:app", "--port", port, "--workers", "2").started(2)
        workers = {int(process) for process, _ in server.listening()}
        self.assertEqual(len(workers), 2)
        self.assertIn(int(server.get().split()[1]), workers)
        time.sleep(1.1)  # A worker that ends earlier has failed to start.
        with self.assertRaises(OSError):
            server.get("/exit")
        server.started(3)
        self.assertTrue(server.get().startswith("shared "))
        status, out, _ = server.stop()
        self.assertEqual((status, out.count("stopped")), (0, 2))

    def test_interrupt_of_a_terminal_waits_for_requests_of_workers(self):
        server = Process(self, "applications:app", "--port", str(self.free_port()), "--workers",
                         "2").started(2)
        client = self.slow_request(server, "/slow")
        os.killpg(server.process.pid, signal.SIGINT)
        status, out, _ = server.wait()
        self.assertEqual((status, out.count("stopped")), (0, 2))
        self.assertIn(b"shared", client.recv(10_000))

    def test_workers_that_do_not_start_end_the_command(self):
        status, _, log = Process(self, "applications:failing", "--port", str(self.free_port()),
                                 "--workers", "2").wait()
        self.assertEqual(status, 3)
        self.assertIn("failed to start", log)

    def write(self, text):
        path = os.path.join(self.directory, "changing.py")
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)  # At once: a half of the file is never imported.

    def read_log(self, server, text):
        """Reads the log until it has the text again."""
        before = len(server.log)
        while text not in server.log[before:]:
            line = server.process.stderr.readline()
            self.assertTrue(line, server.log)
            server.log += line

    def test_changed_file_starts_the_server_again(self):
        self.write(APPS + "body = b'one'\n" + CHANGING)
        server = Process(self, "changing:changing", "--reload", "--port",
                         str(self.free_port())).started()
        self.assertEqual(server.get(), "one")
        self.write(APPS + "body = b'second'\n" + CHANGING)
        server.started(2)
        self.assertEqual(server.get(), "second")
        self.write("1 +\n")
        self.read_log(server, "waits for a change")
        self.write(APPS + "body = b'third try'\n" + CHANGING)
        server.started(3)
        self.assertEqual(server.get(), "third try")
        status, _, log = server.stop()
        self.assertEqual(status, 0, log)
        self.assertIn("SyntaxError", log)

    def test_files_of_environments_are_not_watched(self):
        inside = os.path.join(self.directory, "environment")
        os.mkdir(inside)
        for name in ("pyvenv.cfg", "module.py"):
            with open(os.path.join(inside, name), "w"):
                pass
        watched = Reloader(Config(None, reload_dir=[self.directory])).look()
        self.assertEqual(list(watched), [os.path.join(self.directory, "applications.py")])

    def test_wrong_arguments_are_explained(self):
        for arguments, text in [
                (["applications"], "module:attribute"),
                (["no_such_module:app"], "there is no module no_such_module"),
                (["applications.py:app"], "of a module, not of a file"),
                (["applications:no_such_app"], "has no no_such_app"),
                (["applications:os"], "cannot be called"),
                (["applications:wsgi"], "takes 2 arguments: try --interface wsgi"),
                (["applications:app", "--interface", "wsgi"], "try --interface asgi"),
                (["applications:make"], "use --factory"),
                (["applications:app", "--forwarded-allow-ips", "x"], "--forwarded-allow-ips: 'x'"),
                (["applications:app", "--workers", "2", "--port", "0"], "a port that is not 0"),
                (["applications:app", "--ssl-keyfile", "x"], "needs --ssl-certfile"),
                (["applications:app", "--reload", "--workers", "2"], "for one worker"),
                (["applications:app", "--port", "99999"], "from 0 to 65535, not 99999"),
                (["applications:app", "--port", "-1"], "from 0 to 65535, not -1"),
                (["applications:app", "--header", "X"], "is NAME:VALUE, not X"),
                (["applications:app", "--header", "a b:1"], "the header a b cannot be sent"),
                (["applications:app", "--header", "x:\u20ac"], "characters that a header"),
                (["applications:app", "--header", "Content-Length:1"], "not a header of all"),
                (["applications:app", "--limit-max-requests", "0"], "at least 1"),
                (["applications:app", "--env-file", "/none"],
                 "no file /none" if importlib.util.find_spec("dotenv") else "needs the package"),
                (["applications:app", "--log-config", "/none"], "there is no file /none"),
                (["applications:app", "--log-config", self.write_file("x.json", "{")],
                 "does not configure logging"),
                (["applications:app", "--log-config", self.write_file("y.json", "{}")],
                 "does not configure logging"),
                (["applications:app", "--log-config", self.write_file("x.ini", "nothing")],
                 "does not configure logging"),
                (["applications:app", "--workers", "0"], "at least one worker")]:
            with self.subTest(arguments=arguments):
                status, _, log = Process(self, *arguments).wait()
                self.assertEqual(status, 2, log)
                self.assertIn(text, log)

    def test_used_port_is_explained(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            status, _, log = Process(self, "applications:plain", "--port",
                                     str(listener.getsockname()[1])).wait()
        self.assertEqual(status, 1)
        self.assertRegex(log, "Address already in use: '127.0.0.1 port [0-9]+'")

    def test_file_at_the_path_of_the_socket_is_kept(self):
        path = os.path.join(self.directory, "applications.py")
        status, _, log = Process(self, "applications:plain", "--uds", path).wait()
        self.assertEqual(status, 1)
        self.assertIn(f"Address already in use: '{path}'", log)
        self.assertTrue(os.path.isfile(path))

    def test_socket_that_was_left_at_the_path_is_replaced(self):
        path = os.path.join(self.directory, "socket")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        Process(self, "applications:plain", "--uds", path).started()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertIn(b" 200 ", client.recv(1000))

    def test_unknown_host_is_explained(self):
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with mock.patch("socket.getaddrinfo", side_effect=unknown):
            with self.assertRaisesRegex(OSError, "not known: 'nowhere'"):
                hosts_of("nowhere", 80)

    def test_version_is_printed(self):
        status, out, _ = Process(self, "--version").wait()
        self.assertEqual((status, out), (0, f"spate-server {spate_server.__version__}\n"))


class ProxyNetworks(unittest.TestCase):
    def test_networks_are_trusted(self):
        proxy = ProxyHeaders("10.0.0.0/8, ::1")
        self.assertTrue(proxy.is_trusted("10.2.3.4"))
        self.assertTrue(proxy.is_trusted("::ffff:10.2.3.4"))
        self.assertTrue(proxy.is_trusted("::1"))
        self.assertFalse(proxy.is_trusted("11.2.3.4"))
        self.assertFalse(proxy.is_trusted(""))

    def test_client_before_the_last_trusted_proxy_is_used(self):
        proxy = ProxyHeaders("10.0.0.0/8")
        self.assertEqual(proxy.client_of(["1.1.1.1", "2.2.2.2", "10.0.0.1"]), "2.2.2.2")
        self.assertEqual(proxy.client_of(["10.0.0.2", "10.0.0.1"]), "10.0.0.2")
        self.assertIsNone(proxy.client_of([]))

    def test_unknown_lifespan_is_refused(self):
        with self.assertRaises(ConfigError):
            Config(None, lifespan="maybe").check()
