#!/usr/bin/env python3
"""Mail."""

import random
import smtplib
import socket
import threading

import harness
from peers.table import Table

MESSAGES = 5
CLIENTS = 4

SMTPD = """
listen on 127.0.0.1 port {port} hostname test.example
action "on" relay host smtp://127.0.0.1:{next}
match from any for any action "on"
"""

# With the original library too, its processes end when a write to one another would block.
WEATHER = harness.Weather(kinds="short")

table = Table()


class Mailbox:
    """An SMTP server that keeps the mail it receives."""

    def __init__(self):
        self.messages = []
        self.listener_ = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener_.getsockname()[1]
        threading.Thread(target=self.serve_, daemon=True).start()

    def serve_(self):
        while True:
            try:
                stream, _ = self.listener_.accept()
            except OSError:
                return
            threading.Thread(target=self.talk_, args=(stream,), daemon=True).start()

    def talk_(self, stream):
        with stream, stream.makefile("rwb", buffering=0) as talk:
            talk.write(b"220 mailbox\r\n")
            while command := talk.readline():
                if command.upper().startswith(b"DATA"):
                    talk.write(b"354 go on\r\n")
                    lines = iter(talk.readline, b".\r\n")
                    self.messages.append(b"".join(lines).partition(b"\r\n\r\n")[2])
                talk.write(b"250 mailbox\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener_.close()


@table.row("smtpd", "unshare")
def smtpd(run):
    """Its seven processes take mail and pass it on. Its files are always in the same places, so
    the test mounts other directories there."""
    if not harness.is_root():
        raise harness.Skip("root is missing: smtpd gives its rights up")
    port = harness.free_port()
    with Mailbox() as mailbox:
        conf = run.file("smtpd.conf", SMTPD.format(port=port, next=mailbox.port))
        server = run.start(
            "unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /var/spool && "
            "mount -t tmpfs tmpfs /run && mkdir -m 711 /var/spool/smtpd && exec smtpd -d -f $0",
            conf, weather=WEATHER)
        server.wait_tcp(port)
        server.assert_uses()
        source = random.Random(run.seed)
        sent = []
        clients = [smtplib.SMTP("127.0.0.1", port, timeout=30) for _ in range(CLIENTS)]
        for _ in range(MESSAGES):
            for client in clients:
                lines = [f"{source.random()}" * 3 for _ in range(source.choice((1, 100, 3000)))]
                body = "\r\n".join(lines) + "\r\n"
                client.sendmail("a@from.example", ["b@to.example"], f"Subject: test\r\n\r\n{body}")
                sent.append(body.encode())
        for client in clients:
            client.quit()
        server.wait_for(lambda: len(mailbox.messages) >= len(sent), "all messages")
        harness.check(sorted(mailbox.messages) == sorted(sent), "other messages arrived")


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
