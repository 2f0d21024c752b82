"""Describes the machine that a run used, and the other load on it."""
import os
import pathlib
import platform
import re
import resource
import subprocess
import time

from harness import build


def output_of(*command):
    try:
        done = subprocess.run(command, cwd=build.ROOT, text=True, capture_output=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu_model():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def packages():
    """Returns the versions of the peers' packages: several of them are headers, which report no
    version."""
    names = ["libevent-dev", "libev-dev", "libuv1-dev", "libasio-dev", "libboost-dev",
             "libglib2.0-dev", "libconcurrentqueue-dev"]
    listed = output_of("dpkg-query", "-W", "-f", "${Package} ${Version}, ", *names)
    return listed.rstrip(", ") or "not known"


def processor_seconds():
    """(busy, stolen by the hypervisor) of all processors since the start of the machine."""
    words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, interrupts, soft, steal = (
        int(word) / os.sysconf("SC_CLK_TCK") for word in words)
    return user + nice + system + interrupts + soft, steal


class Disturbance:
    """Measures the load of other processes while our programs ran.

    `steal`: the share of the processors' time that the hypervisor gave to others; `load`: how many
    processors other programs kept busy.
    """

    def __init__(self):
        self._elapsed = self._others = self._stolen = 0.0

    def __enter__(self):
        self._begin = self._snapshot()
        return self

    def __exit__(self, *_):
        elapsed, busy, stolen, own = (
            after - before for after, before in zip(self._snapshot(), self._begin))
        self._elapsed += elapsed
        self._others += busy - own
        self._stolen += stolen

    @staticmethod
    def _snapshot():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), *processor_seconds(), children.ru_utime + children.ru_stime

    @property
    def steal(self):
        return round(self._stolen / self._elapsed / os.cpu_count(), 4) if self._elapsed else 0.0

    @property
    def load(self):
        return round(max(0.0, self._others / self._elapsed), 3) if self._elapsed else 0.0


def describe():
    commit = output_of("git", "rev-parse", "--short=12", "HEAD") or "none"
    if output_of("git", "status", "--porcelain"):
        commit += " with local changes"
    return {
        "processor": cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": platform.release(),
        "compiler": output_of("c++", "--version").split("\n")[0],
        "packages": packages(),
        "commit": commit,
        "load before the run": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "begun": time.strftime("%Y-%m-%d %H:%M"),
    }
