"""Two networks of the test's own with a wire between them, for programs that need an Ethernet."""

import os
import shutil
import subprocess

import harness

ADDRESSES = ("10.9.8.1", "10.9.8.2")


class Side:
    """A network with the interface `wire`, its address, and loopback."""

    def __init__(self, run, address):
        self.run_ = run
        self.address = address
        self.holder_ = run.start("unshare", "--net", "sleep", "1000", dropin=False)
        own = network_of("self")
        harness.wait_until(lambda: network_of(self.holder_.pid) != own, "a network")
        self.pid = self.holder_.pid

    def start(self, name, *arguments, **how):
        """As Run.start()."""
        program = shutil.which(str(name), path=harness.search_path())
        return self.run_.start("nsenter", "--net", "-t", self.pid, program, *arguments, **how)

    def call(self, *command):
        """A program that helps the test, run to its end."""
        done = subprocess.run(["nsenter", "--net", "-t", str(self.pid), *map(str, command)],
                              capture_output=True, check=False)
        harness.check(done.returncode == 0, f"{command}: {done.stderr.decode()}")
        return done.stdout.decode()


def network_of(pid):
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def connect(run):
    """The two sides. Skips the row where no such network can be made."""
    if not harness.is_root():
        raise harness.Skip("only root makes networks")
    harness.need("ip", "nsenter", "unshare")
    try:
        left, right = (Side(run, address) for address in ADDRESSES)
        left.call("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns",
                  right.pid)
        for side in (left, right):
            side.call("ip", "address", "add", f"{side.address}/24", "dev", "wire")
            side.call("ip", "link", "set", "lo", "up")
            side.call("ip", "link", "set", "wire", "up")
    except harness.Failure as failure:
        raise harness.Skip(f"no network of its own: {failure}") from failure
    return left, right
