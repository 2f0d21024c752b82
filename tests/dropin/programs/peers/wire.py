"""Two network namespaces with a wire between them, for programs that need an Ethernet."""

import os
import shutil
import subprocess

import harness

ADDRESSES = ("10.9.8.1", "10.9.8.2")


class Side:
    """A namespace with the interface `wire`, its address, and loopback."""

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
        """Runs a tool of the test, to its end."""
        done = subprocess.run(["nsenter", "--net", "-t", str(self.pid), *map(str, command)],
                              capture_output=True, check=False)
        harness.check(done.returncode == 0, f"{command}: {done.stderr.decode()}")
        return done.stdout.decode()


def network_of(pid):
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def connect(run):
    """Returns the two sides. Skips the row where namespaces cannot be created."""
    if not harness.is_root():
        raise harness.Skip("root is missing: it makes a network")
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
        raise harness.Skip("a network namespace is missing: run as root with CAP_NET_ADMIN "
                           f"({failure})") from failure
    return left, right
