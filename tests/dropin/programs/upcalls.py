#!/usr/bin/env python3
"""NFS's daemons, which the kernel calls through pipes; here, terminals take their place."""

import os
import pwd
import struct
import tty

import harness
from peers.table import Table

table = Table()


class Pipe:
    """A path that can be opened once for reading and writing, like one of rpc_pipefs."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.near_, far = os.openpty()
        tty.setraw(self.near_)
        tty.setraw(far)
        os.symlink(os.ttyname(far), path)
        self.far_ = far  # Kept open, since a terminal without an open end is hung up.

    def write(self, data):
        os.write(self.near_, data)

    def read(self, size):
        data = b""
        while len(data) < size:
            data += os.read(self.near_, size - len(data))
        return data


IDMAP = struct.Struct("=BB128sxxIBxxx")  # struct idmap_msg of linux/nfs_idmap.h
USER, GROUP = 0, 1
ID_TO_NAME, NAME_TO_ID = 0, 1
SUCCESS = 8


@table.row("rpc.idmapd", has_traffic=False)
def idmapd(run):
    pipes = [Pipe(run.path(f"pipes/nfs/clnt{number}/idmap")) for number in range(2)]
    daemon = run.start("rpc.idmapd", "-f", "-C", "-p", run.path("pipes"))
    daemon.assert_uses()
    users = [user for user in pwd.getpwall() if user.pw_uid < 60000][:10]
    for user in users:
        for pipe in pipes:
            pipe.write(IDMAP.pack(USER, ID_TO_NAME, b"", user.pw_uid, 0))
        for pipe in pipes:
            _, _, name, number, status = IDMAP.unpack(pipe.read(IDMAP.size))
            name = name.rstrip(b"\0").decode()
            harness.check(status & SUCCESS and name.split("@")[0] == user.pw_name
                          and number == user.pw_uid, f"{user}: {name}, {status}")
            pipe.write(IDMAP.pack(USER, NAME_TO_ID, name.encode(), 0, 0))
            _, _, _, number, status = IDMAP.unpack(pipe.read(IDMAP.size))
            harness.check(status & SUCCESS and number == user.pw_uid, f"{name}: {number}, {status}")


CLD = struct.Struct("=BBhL")  # struct cld_msg_hdr of linux/nfsd/cld.h
CLD_SIZE = CLD.size + 1059
CREATE, REMOVE, CHECK, GRACE_DONE, GRACE_START, GET_VERSION = range(6)
REFUSED = -13


@table.row("nfsdcld", has_traffic=False)
def nfsdcld(run):
    """It keeps a list of clients; the pipe appears after its start."""
    os.makedirs(run.path("pipes/nfsd"))
    daemon = run.start("nfsdcld", "-F", "-d", "-p", run.path("pipes"), "-s", run.path("storage"))
    daemon.wait_output("Starting event dispatch")
    daemon.assert_uses()
    pipe = Pipe(run.path("pipes/nfsd/cld"))

    def ask(number, command, name=b""):
        body = struct.pack("=H", len(name)) + name if name else b""
        pipe.write((CLD.pack(2, command, 0, number) + body).ljust(CLD_SIZE, b"\0"))
        answer = pipe.read(CLD_SIZE)
        _, _, status, got = CLD.unpack(answer[:CLD.size])
        harness.check(got == number, f"an answer to {got}, not to {number}")
        return status, answer[CLD.size:]

    status, body = ask(1, GET_VERSION)
    harness.check(status == 0 and body[0] == 2, f"version: {status}, {body[:8]}")
    harness.check(ask(2, GRACE_START)[0] == 0, "the grace period")
    for number in range(10):
        name = b"client %d" % number
        harness.check(ask(10 + number, CHECK, name)[0] == REFUSED, "an unknown client")
        harness.check(ask(30 + number, CREATE, name)[0] == 0, "a new client")
    harness.check(ask(50, REMOVE, b"client 3")[0] == 0, "a client that goes")
    harness.check(ask(51, GRACE_DONE)[0] == 0, "the end of the grace period")


INFO = """RPC server: localhost
service: nfs (100003) version 4
address: 127.0.0.1
protocol: tcp
port: {port}
"""


@table.row("rpc.gssd", has_traffic=False)
def gssd(run):
    """No user has a ticket here: each request is refused."""
    pipes = [Pipe(run.path(f"pipes/nfs/clnt{number}/gssd")) for number in range(2)]
    for number in range(2):
        run.file(f"pipes/nfs/clnt{number}/info", INFO.format(port=harness.free_port()))
    daemon = run.start("rpc.gssd", "-f", "-v", "-p", run.path("pipes"))
    daemon.assert_uses()
    for uid in range(1000, 1005):
        for pipe in pipes:
            pipe.write(b"mech=krb5 uid=%d enctypes=18,17\n" % uid)
        for pipe in pipes:
            heard = struct.unpack("=4l", pipe.read(16))
            harness.check(heard[0] == uid and heard[3] < 0, f"{uid} is answered {heard}")


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
