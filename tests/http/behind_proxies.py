#!/usr/bin/env python3
"""Tests the client's address with nginx and haproxy before the servers, and after a gateway.

    behind_proxies.py SERVER

SERVER is behind_server. The client has the address 127.0.0.5, and the proxies 127.0.0.1. A proxy
that is not installed is left out; without any, the test is skipped.
"""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, folder)
                for folder in ("examples", "support")]
import driver
import missing
import ports

CLIENT = "127.0.0.5"
FORGED = "X-Forwarded-For: 192.0.2.66"

NGINX = """
daemon off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen 127.0.0.1:{front};
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    location / {{ proxy_pass http://127.0.0.1:{listed}; }}
    location /unix {{ proxy_pass http://unix:{path}; }}
    location /forwarded {{
      proxy_set_header Forwarded 'for="$remote_addr:$remote_port";host="a, \\\\"b;";proto=http';
      proxy_pass http://127.0.0.1:{forwarded};
    }}
  }}
  server {{
    listen 127.0.0.1:{accepting} proxy_protocol;
    location / {{ return 200 "$proxy_protocol_addr $proxy_protocol_port"; }}
  }}
}}
"""

HAPROXY = """
defaults
  timeout client 20s
  timeout connect 20s
  timeout server 20s
frontend http
  mode http
  bind 127.0.0.1:{front}
  default_backend http
backend http
  mode http
  option forwardfor
  server a 127.0.0.1:{listed}
frontend accepting
  mode http
  bind 127.0.0.1:{accepting} accept-proxy
  http-request return status 200 content-type text/plain lf-string "%[src] %[src_port]"
"""

TCP = """
listen {name}
  mode tcp
  bind 127.0.0.1:{front}
  server a 127.0.0.1:{back} {send}
"""


class Proxies(unittest.TestCase):
    program = None

    def setUp(self):
        # pylint: disable-next=consider-using-with
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.chmod(self.directory, 0o755)
        self.path = os.path.join(self.directory, "s.sock")
        # pylint: disable-next=consider-using-with
        server = driver.Server(self.program, self.path)
        self.addCleanup(server.__exit__)
        self.listed = server.port
        rest = [server.read_line() for _ in range(8)]
        port = [int(line.rsplit(":", 1)[1]) for line in rest if not line.startswith(("unix:", "/"))]
        self.forwarded, *self.proxied = port[:5]
        self.gateways = port[5:]
        os.chmod(self.path, 0o666)  # For nginx, whose workers are another user's.

    def start(self, name, text, *arguments):
        """Starts a proxy with a configuration."""
        program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
        if program is None:
            self.skipTest(missing.not_installed(name))
        path = os.path.join(self.directory, "conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen([program, *arguments, path], cwd=self.directory)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    @staticmethod
    def connect(port):
        """Connects as the client, when the port is open."""
        end = time.monotonic() + driver.PATIENCE
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), driver.PATIENCE, (CLIENT, 0))
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def ask(self, port, path="/", *arguments):
        self.connect(port).close()
        return driver.curl("--interface", CLIENT, *arguments, f"http://127.0.0.1:{port}{path}")

    def start_nginx(self):
        front, accepting = ports.free_port(), ports.free_port()
        text = NGINX.format(front=front, accepting=accepting, listed=self.listed, path=self.path,
                            forwarded=self.forwarded)
        self.start("nginx", text, "-p", self.directory, "-c")
        return front, accepting

    def start_haproxy(self):
        """Returns the ports of the HTTP ones, and those of TCP: (to, sent, port)."""
        front, accepting = ports.free_port(), ports.free_port()
        text = HAPROXY.format(front=front, accepting=accepting, listed=self.listed)
        tcp = []
        for number, back in enumerate(self.proxied):
            for send in ("send-proxy", "send-proxy-v2"):
                tcp.append((number, send, ports.free_port()))
                text += TCP.format(name=f"{send}-{number}", front=tcp[-1][2], back=back, send=send)
        self.start("haproxy", text, "-db", "-f")
        return front, accepting, tcp

    def test_nginx_sends_fields(self):
        front, _ = self.start_nginx()
        for forged in ((), ("--header", FORGED), ("--header", 'Forwarded: for="')):
            text = self.ask(front, "/", *forged)
            self.assertRegex(text, rf"^{CLIENT}:0 127\.0\.0\.1:\d+$")
            self.assertEqual(self.ask(front, "/unix", *forged), f"{CLIENT}:0 none")
            text = self.ask(front, "/forwarded", *forged)
            self.assertRegex(text, rf"^{CLIENT}:[1-9]\d* 127\.0\.0\.1:\d+$")

    def test_haproxy_sends_fields(self):
        front, _, _ = self.start_haproxy()
        for forged in ((), ("--header", FORGED)):
            text = self.ask(front, "/", *forged)
            self.assertRegex(text, rf"^{CLIENT}:0 127\.0\.0\.1:\d+$")

    def test_haproxy_sends_proxy_headers(self):
        _, _, tcp = self.start_haproxy()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for number, send, port in tcp:
            with self.subTest(number=number, send=send):
                peer = self.connect(port)
                own = f"{CLIENT}:{peer.getsockname()[1]}"
                if number % 2 == 1:
                    peer = context.wrap_socket(peer)
                with peer:
                    if number < 2:
                        peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    with peer.makefile("rb") as file:
                        line = file.read().decode() if number < 2 else file.readline().decode()
                expected = f"\r\n\r\n{own} {own}" if number < 2 else own + "\n"
                self.assertTrue(line.endswith(expected), line)

    def test_gateways_send_proxy_headers_to_haproxy(self):
        _, accepting, _ = self.start_haproxy()
        self.connect(accepting).close()
        self.check_gateways(accepting)

    def test_gateways_send_proxy_headers_to_nginx(self):
        _, accepting = self.start_nginx()
        self.connect(accepting).close()
        self.check_gateways(accepting)

    def check_gateways(self, port):
        for gateway in self.gateways:
            text = self.ask(gateway, f"/{port}", "--write-out", " %{local_port}")
            address, seen, own = text.split()
            self.assertEqual((address, seen), (CLIENT, own))


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Proxies))
