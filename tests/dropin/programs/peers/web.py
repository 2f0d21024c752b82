"""A web server of the test's own, on blocking sockets and in threads: the target of the proxies."""

import hashlib
import http.server
import os
import ssl
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """GET: the content of that name. POST: the checksum of the body. Both say which Host."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self):
        content = self.server.contents.get(self.path.lstrip("/"))
        self.answer(404 if content is None else 200, content or b"")

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, checksum(data).encode())

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Last-Modified", self.date_time_string(0))
        self.send_header("X-Host", self.headers.get("Host", ""))
        self.send_header("X-Server", self.server.name)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class WebServer(http.server.ThreadingHTTPServer):
    """with WebServer({"name": b"content"}) as web: ... web.port"""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, contents, name="web", tls=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.contents = contents
        self.name = name
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # Probes and killed clients close early.


def checksum(data):
    return hashlib.sha256(data).hexdigest()


def tls_context(run):
    """A server's context, with a new certificate."""
    run.call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test",
             "-days", 2, "-keyout", run.path("key"), "-out", run.path("certificate"), dropin=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(run.path("certificate"), run.path("key"))
    return context


def random_contents(sizes):
    """Returns {name: random bytes} for {name: size}."""
    return {name: os.urandom(size) for name, size in sizes.items()}
