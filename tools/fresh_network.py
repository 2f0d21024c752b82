"""The network of tools/fresh: a loopback interface, and a proxy that fetches Debian packages.

The root's apt asks the proxy for http://HOST/PATH. The proxy accepts only URLs below the package
sources, and fetches each with its original scheme and with the host's certificates and proxies.
"""

import contextlib
import ctypes
import fcntl
import http.server
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request

PROXY = ("127.77.0.1", 3142)  # Tests in the root use other addresses.
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 0x1
TUNSETIFF, TUNSETPERSIST, IFF_TUN = 0x400454CA, 0x400454CB, 0x1
INTERFACE, ADDRESS = "fresh0", "10.77.0.1"
REQUEST_HEADERS = ("If-Modified-Since", "Range", "If-Range", "Cache-Control")
RESPONSE_HEADERS = ("Content-Type", "Content-Length", "Content-Range", "Last-Modified", "Date")


def use_proxies_of_apt():
    """Sets http_proxy and https_proxy from the host's apt configuration."""
    shell = ["apt-config", "shell", "http_proxy", "Acquire::http::Proxy",
             "https_proxy", "Acquire::https::Proxy"]
    for line in subprocess.run(shell, stdout=subprocess.PIPE, text=True,
                               check=False).stdout.splitlines():
        name, value = line.split("=", 1)
        if value.strip("'") not in ("", "DIRECT"):
            os.environ.setdefault(name, value.strip("'"))


def plain(uri):
    """Returns `uri` as the root's apt writes it: over HTTP, which the proxy understands."""
    return "http://" + uri.split("://", 1)[1].rstrip("/") + "/"


def call(function, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        sys.exit(f"fresh: {function}: {os.strerror(ctypes.get_errno())}; see CONTRIBUTING.md")


def raise_interface(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", name.encode(), 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        request = struct.pack("16sh14x", name.encode(), flags | IFF_UP)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def set_address(name, address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("=16sHH4s8x", name.encode(),
                                                         socket.AF_INET, 0,
                                                         socket.inet_aton(address)))


def add_interface():
    """Adds an interface that leads nowhere, as a machine has one beside loopback.

    With AI_ADDRCONFIG, getaddrinfo() refuses IPv4 if 127.0.0.1 is the only address. A second
    address of loopback is no substitute: Open MPI then finds no interface.
    """
    try:
        with open("/dev/net/tun", "r+b", buffering=0) as tun:
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sh22x", INTERFACE.encode(), IFF_TUN))
            fcntl.ioctl(tun, TUNSETPERSIST, 1)
    except OSError as error:
        print(f"fresh: no interface but loopback: {error}", file=sys.stderr)
        return
    with contextlib.suppress(OSError):  # Without IPv6, or where /proc is not writable.
        with open(f"/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6", "w",
                  encoding="ascii") as setting:
            setting.write("1")
    set_address(INTERFACE, ADDRESS)
    raise_interface(INTERFACE)


@contextlib.contextmanager
def new_network():
    """Runs its body in a new network namespace, which child processes and sockets inherit."""
    with open("/proc/thread-self/ns/net", encoding="ascii") as host:
        call("unshare", CLONE_NEWNET)
        try:
            raise_interface("lo")
            add_interface()
            yield
        finally:
            call("setns", host.fileno(), CLONE_NEWNET)


class Forwarder(http.server.BaseHTTPRequestHandler):
    """Answers a GET request for a file of the package sources with the response of its server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        source = next((uri for uri in self.server.sources
                       if self.path.startswith(plain(uri))), None)
        if source is None:
            print(f"fresh: refused {self.path}: not below a package source", file=sys.stderr)
            self.send_error(403, "Not below a package source")
            return
        url = source.rstrip("/") + "/" + self.path[len(plain(source)):]
        headers = {name: self.headers[name] for name in REQUEST_HEADERS if name in self.headers}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers),
                                        timeout=60) as response:
                self.forward(response.status, response)
        except urllib.error.HTTPError as response:  # Also 304, which has no body.
            with response:
                self.forward(response.code, response)
        except OSError as error:
            self.send_error(502, str(error).replace("\n", " "))

    def forward(self, status, response):
        self.send_response_only(status)
        for name in RESPONSE_HEADERS:
            if name in response.headers:
                self.send_header(name, response.headers[name])
        if status != 304 and "Content-Length" not in response.headers:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        try:
            shutil.copyfileobj(response, self.wfile)
        except OSError:  # The length that was announced can no longer be kept.
            self.close_connection = True

    def log_message(self, *arguments):
        pass


class Proxy(http.server.ThreadingHTTPServer):
    """A proxy in the network namespace in which it is created, with connections from the host's."""

    daemon_threads = True

    def __init__(self, sources, address=PROXY):
        super().__init__(address, Forwarder)
        self.sources = sources

    def handle_error(self, *_):
        pass  # apt closed the connection.

    @contextlib.contextmanager
    def serving(self):
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            thread.join()
            self.server_close()
