"""A client of memcached's text protocol that predicts every reply.

A Session owns the keys that begin with its name, so that its model of them is exact whatever other
sessions do. Replies are compared byte by byte; if a connection ended early, the received bytes must
be a prefix of the expected ones.

The protocol was taken from protocol.txt of Debian's package memcached.
"""

import select
import socket

TOO_LARGE = 1100 * 1024  # Above the server's limit of 1 MB for an item.


class WrongReply(AssertionError):
    """The server's bytes differ from the model's."""


class Connection:
    """The connection: sends a batch, reads exactly the replies to it."""

    def __init__(self, address, timeout=30):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.timeout_ = timeout
        self.socket_ = socket.socket(family, socket.SOCK_STREAM)
        self.socket_.settimeout(timeout)
        self.socket_.connect(address)
        if family == socket.AF_INET:
            self.socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket_.close()

    def send(self, data):
        self.socket_.sendall(data)

    def receive(self, limit=65536):
        return self.socket_.recv(limit)

    def line(self):
        """Returns one line without its end. Reads no byte after the line."""
        line = bytearray()
        while not line.endswith(b"\r\n"):
            byte = self.receive(1)
            if not byte:
                raise ConnectionResetError(f"the connection ended after {bytes(line)!r}")
            line += byte
        return bytes(line[:-2])

    def expect(self, expected):
        """Reads len(expected) bytes; raises WrongReply at the first that differs."""
        self.ask(b"", expected)

    def ask(self, request, expected):
        """Writes and reads concurrently: a server whose replies are not read stops reading."""
        request, expected = memoryview(request), memoryview(expected)
        while request or expected:
            wanted = [self.socket_]
            readable, writable, _ = select.select(
                wanted if expected else [], wanted if request else [], [], self.timeout_)
            if not readable and not writable:
                raise TimeoutError(f"{len(request)} bytes to send, {len(expected)} to come")
            if readable:
                expected = expected[self.compare(expected):]
            if writable:
                request = request[self.socket_.send(request):]

    def compare(self, expected):
        """Reads the available bytes, at most len(expected). Returns how many."""
        data = self.receive(min(len(expected), 1 << 20))
        if not data:
            raise ConnectionResetError(f"the connection ended, {len(expected)} bytes too early")
        if data != expected[:len(data)]:
            raise WrongReply(difference(data, bytes(expected[:len(data)])))
        return len(data)

    def closed_by_peer(self):
        """Returns whether the peer closes the connection, without another byte, before the
        timeout."""
        try:
            data = self.receive()
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        if data:
            raise WrongReply(f"unasked: {data[:80]!r}")
        return True


def difference(got, expected):
    at = next(i for i in range(len(got)) if got[i] != expected[i])
    return (f"byte {at}: got {got[max(at - 20, 0):at + 60]!r}, "
            f"expected {expected[max(at - 20, 0):at + 60]!r}")


def get(key, value, flags):
    """Returns the part of a get reply for one key."""
    if value is None:
        return b""
    return b"VALUE %s %d %d\r\n%s\r\n" % (key, flags, len(value), value)


def store(command, key, value, flags=0, noreply=False):
    tail = b" noreply" if noreply else b""
    return b"%s %s %d 0 %d%s\r\n%s\r\n" % (
        command, key, flags, len(value), tail, value)


class Session:
    """Random requests on a seeded model. run() sends them, and checks every reply.

    Counters keep 19 digits: memcached fills a number that became shorter with blanks, which would
    be one more thing to model.
    """

    KEYS = 40

    def __init__(self, name, random, address, largest=200_000):
        self.name_ = name
        self.random_ = random
        self.address_ = address
        self.largest_ = largest
        self.values_ = {}  # key: (value, flags)
        self.counters_ = {}
        self.done = 0
        self.connection_ = None

    def connect(self):
        self.connection_ = Connection(self.address_)

    def close(self):
        self.connection_.close()

    def forget(self):
        """Called after a restart of the server."""
        self.values_.clear()
        self.counters_.clear()

    def run(self, batches, per_batch=20):
        for _ in range(batches):
            self.batch(self.random_.randint(1, per_batch))

    def batch(self, count):
        """Sends some requests at once, except the first bytes, which are sent before; then
        checks their replies."""
        pairs = [self.request() for _ in range(count)]
        requests = b"".join(request for request, _ in pairs)
        expected = b"".join(reply for _, reply in pairs)
        cut = self.random_.randrange(min(len(requests), 2000))
        self.connection_.send(requests[:cut])
        self.connection_.ask(requests[cut:], expected)
        self.done += count

    def verify(self):
        """Reads back all items of the model."""
        for key in self.keys():
            value, flags = self.values_.get(key, (None, 0))
            self.connection_.ask(b"get %s\r\n" % key, get(key, value, flags) + b"END\r\n")
        for key, number in self.counters_.items():
            self.connection_.ask(b"incr %s 0\r\n" % key, b"%d\r\n" % number)

    def keys(self):
        return [b"%s:%d" % (self.name_, number) for number in range(self.KEYS)]

    def key(self):
        return b"%s:%d" % (self.name_, self.random_.randrange(self.KEYS))

    def value(self):
        size = self.random_.choice((0, 10, 100, 100, 1000, 3000, 20_000, self.largest_))
        return self.random_.randbytes(self.random_.randint(0, size))

    def request(self):
        """Returns (request, expected reply), and updates the model."""
        kinds = (self.get_, self.get_, self.get_many_, self.set_, self.set_, self.set_silently_,
                 self.add_, self.replace_, self.extend_, self.extend_, self.delete_,
                 self.delete_silently_, self.count_, self.touch_)
        return self.random_.choice(kinds)()

    def get_(self):
        key = self.key()
        value, flags = self.values_.get(key, (None, 0))
        return b"get %s\r\n" % key, get(key, value, flags) + b"END\r\n"

    def get_many_(self):
        keys = [self.key() for _ in range(self.random_.randint(2, 5))]
        reply = b"".join(get(key, *self.values_.get(key, (None, 0))) for key in keys)
        return b"get %s\r\n" % b" ".join(keys), reply + b"END\r\n"

    def set_(self):
        key, value, flags = self.key(), self.value(), self.random_.randrange(65536)
        self.values_[key] = value, flags
        return store(b"set", key, value, flags), b"STORED\r\n"

    def set_silently_(self):
        key, value = self.key(), self.value()
        self.values_[key] = value, 0
        return store(b"set", key, value, noreply=True), b""

    def add_(self):
        key, value = self.key(), self.value()
        if key in self.values_:
            return store(b"add", key, value), b"NOT_STORED\r\n"
        self.values_[key] = value, 7
        return store(b"add", key, value, 7), b"STORED\r\n"

    def replace_(self):
        key, value = self.key(), self.value()
        if key not in self.values_:
            return store(b"replace", key, value), b"NOT_STORED\r\n"
        self.values_[key] = value, 8
        return store(b"replace", key, value, 8), b"STORED\r\n"

    def extend_(self):
        """append or prepend, which keep the flags."""
        key = self.key()
        command = self.random_.choice((b"append", b"prepend"))
        added = self.random_.randbytes(self.random_.randint(0, 5000))
        if key not in self.values_:
            return store(command, key, added), b"NOT_STORED\r\n"
        value, flags = self.values_[key]
        whole = value + added if command == b"append" else added + value
        if len(whole) > 2 * self.largest_:
            return self.delete_()
        self.values_[key] = whole, flags
        return store(command, key, added), b"STORED\r\n"

    def delete_(self):
        key = self.key()
        known = self.values_.pop(key, None) is not None
        return b"delete %s\r\n" % key, b"DELETED\r\n" if known else b"NOT_FOUND\r\n"

    def delete_silently_(self):
        key = self.key()
        self.values_.pop(key, None)
        return b"delete %s noreply\r\n" % key, b""

    def touch_(self):
        key = self.key()
        return b"touch %s 0\r\n" % key, b"TOUCHED\r\n" if key in self.values_ else b"NOT_FOUND\r\n"

    def count_(self):
        key = b"%s:count:%d" % (self.name_, self.random_.randrange(4))
        if key not in self.counters_:
            self.counters_[key] = 5 * 10**18
            return store(b"set", key, b"%d" % self.counters_[key]), b"STORED\r\n"
        step = self.random_.randrange(10**9)
        down = self.random_.random() < 0.5
        self.counters_[key] += -step if down else step
        return (b"%s %s %d\r\n" % (b"decr" if down else b"incr", key, step),
                b"%d\r\n" % self.counters_[key])
