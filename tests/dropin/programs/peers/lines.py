"""A client of servers with protocols of lines."""

import socket

import harness


class Lines:
    """with Lines(port) as talk: talk.ask("GET key", "VALUE")"""

    def __init__(self, port, host="127.0.0.1", end="\n"):
        self.end_ = end
        self.socket_ = socket.create_connection((host, int(port)), harness.ANSWER_SECONDS)
        self.reader_ = self.socket_.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader_.close()
        self.socket_.close()

    def say(self, *lines):
        self.socket_.sendall("".join(line + self.end_ for line in lines).encode())

    def close_sending(self):
        self.socket_.shutdown(socket.SHUT_WR)

    def hear(self):
        """Returns the next line, without its end."""
        return self.reader_.readline().decode().rstrip("\r\n")

    def hear_all(self):
        return self.reader_.read()

    def ask(self, line, answer):
        """Sends a line; the reply must be `answer`."""
        self.say(line)
        heard = self.hear()
        harness.check(heard == answer, f"{line!r} was answered {heard!r}, not {answer!r}")

    def hear_until(self, text):
        """Returns all lines up to the first that contains the text."""
        lines = []
        while not lines or text not in lines[-1]:
            line = self.reader_.readline().decode()
            harness.check(line, f"no {text!r} in {lines}")
            lines.append(line.rstrip("\r\n"))
        return lines
