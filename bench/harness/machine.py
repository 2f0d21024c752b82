"""What the run ran on."""
import os
import pathlib
import platform
import re
import subprocess

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
    """Versions of the peers' packages: several of them are headers that cannot be asked."""
    names = ["libevent-dev", "libev-dev", "libuv1-dev", "libasio-dev", "libboost-dev",
             "libglib2.0-dev", "libconcurrentqueue-dev"]
    listed = output_of("dpkg-query", "-W", "-f", "${Package} ${Version}, ", *names)
    return listed.rstrip(", ") or "not known"


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
    }
