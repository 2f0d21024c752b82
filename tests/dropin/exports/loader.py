#!/usr/bin/env python3
"""Starts Debian's programs with every symbol bound at once, on the original libraries and on ours.

    loader.py --lib-dir DIRECTORY [PROGRAM]...

Each prints its version or its usage. It must end and print as on the original, and the loader must
report that it loaded our file. Programs that are not installed are left out.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from shared_objects import environment, finish, left_out

CALL_SECONDS = 30
LOADED = re.compile(r"calling init: (\S*/(lib(?:ev|event\S*)[.-][\d.]*so[.\d]*))\s*$", re.MULTILINE)
SEARCHED = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

PROGRAMS = {
    "libev.so.4": [
        "curvedns", "dvblast -V", "elinks -version", "gdnsd version", "gtlsclient -h",
        "gtlsserver -h", "h2load --version", "hitch -V", "i3 --version", "i3bar --version",
        "i3lock -v", "knxd --version", "multiwatch", "nftlb -h", "nghttp --version",
        "nghttpd --version", "nghttpx --version", "nsca-ng -V", "obfs-local -h", "obfs-server -h",
        "ocserv -v", "ocserv-worker", "picom --version", "send_nsca -V", "sniproxy -V",
        "ss-local -h", "ss-manager -h", "ss-redir -h", "ss-server -h", "ss-tunnel -h",
        "ualpn --version", "unagi -v", "unclutter --version", "yubiserver --version"],
    "libevent-2.1.so.7": [
        "apt-cacher-ng -h", "bgplgd -h", "bitlbee -V", "cam --help", "catmaster --version",
        "dnsproxy -V", "farpd -h", "fstrm_capture --help", "gearmand --version", "getstream -h",
        "iked -h", "inetd -h", "kickpass --version", "ladvd -h", "links2 -version", "lldpd -v",
        "memcached -V", "memcaslap -V", "mpirun --version", "nfsdcld -h", "nsd -v", "ocproxy",
        "pgbouncer --version", "pgqd -V", "php --version", "poolcounterd -h", "redsocks -v",
        "remctld -v", "rpc.gssd -h", "rpc.idmapd -h", "rtpengine --version", "scanssh -V",
        "seaf-daemon --help", "smtpd -h", "sslsplit -V", "sstpc --version", "tcpbench",
        "tmate -V", "tmux -V", "tor --version", "transmission-daemon --version",
        "trust_router --help", "trickled -V", "turnserver -h", "turnutils_uclient", "tvoe -h",
        "unbound -V", "unbound-host -h", "unworkable", "ustreamer --version", "zabbix_proxy -V"],
}

# Modules that other programs load are loaded by a small program.
MODULES = {
    "libev.so.4": ["libgetdns_ex_ev.so.10", "libshadowsocks-libev.so.2", "libverto-libev.so.1",
                   "libwebsockets-evlib_ev.so",
                   "/usr/lib/python3/dist-packages/cassandra/io/libevwrapper.*.so"],
    "libevent-2.1.so.7": ["libevhtp.so.0", "libgetdns_ex_event.so.10", "libopen-pal.so.40",
                          "libpmix.so.2", "libradsec.so.0", "libunbound.so.8"],
}
LOAD = "import ctypes, glob, sys; ctypes.CDLL((glob.glob(sys.argv[1]) or sys.argv[1:])[0])"


class Ending:
    def __init__(self, status, output, libraries):
        self.status, self.output, self.libraries = status, output, libraries


def start(command, lib_dir):
    with tempfile.TemporaryDirectory() as directory:
        variables = environment(lib_dir, LD_BIND_NOW="1", LD_DEBUG="files",
                                LD_DEBUG_OUTPUT=os.path.join(directory, "loaded"))
        done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=CALL_SECONDS, cwd=directory)
        libraries = set()
        for name in glob.glob(os.path.join(directory, "loaded.*")):
            with open(name, errors="replace", encoding="utf-8") as file:
                libraries.update(path for path, _ in LOADED.findall(file.read()))
    return Ending(done.returncode, done.stdout.decode(errors="replace"), libraries)


def check(command, lib_dir):
    theirs = start(command, None)
    ours = start(command, lib_dir)
    if not ours.libraries:
        yield "loads neither libev nor libevent"
    for path in sorted(ours.libraries):
        if os.path.dirname(os.path.realpath(path)) != os.path.realpath(lib_dir):
            yield f"loads {path}"
    if ours.status != theirs.status:
        yield f"ends with {ours.status}, and with {theirs.status} on the original"
    if ours.output != theirs.output:
        yield f"prints\n{ours.output}\nand on the original\n{theirs.output}"


def program(command):
    """Returns [path, argument...], or None if it is not installed."""
    name, *arguments = command.split()
    path = shutil.which(name, path=SEARCHED)
    return path and [path, *arguments]


def loader_of(module):
    """Returns a command that loads it, or None if it is not installed."""
    command = [sys.executable, "-c", LOAD, module]
    return command if start(command, None).status == 0 else None


def commands(soname):
    """Returns {name: command or None} of all programs that use the library."""
    found = {command.split()[0]: program(command) for command in PROGRAMS[soname]}
    return {**found, **{module: loader_of(module) for module in MODULES[soname]}}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib-dir", required=True)
    parser.add_argument("programs", nargs="*", help="only these")
    options = parser.parse_args()
    problems = []
    tried = 0
    for soname in PROGRAMS:
        if not os.path.exists(os.path.join(options.lib_dir, soname)):
            print(f"left out: {soname} was not built")
            continue
        for name, command in commands(soname).items():
            if options.programs and name not in options.programs:
                continue
            if command is None:
                print(f"left out: {name} is not installed")
                continue
            tried += 1
            problems += [f"{name}: {problem}" for problem in check(command, options.lib_dir)]
    if not tried:
        return left_out("none of the programs is installed (packages: the set `programs` of "
                        "tools/packages.txt)")
    return finish(problems, f"{tried} programs")


if __name__ == "__main__":
    sys.exit(main())
