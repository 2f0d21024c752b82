#!/usr/bin/env python3
"""Starts Debian's programs with every symbol bound at once, on the original libraries and on ours.

    loader.py --lib-dir DIRECTORY [PROGRAM]...

Each is asked for its version or its usage. It must end and print as it does on the original, and
the loader must say that it took our file. Programs that are not installed are left out.
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
    "libev.so.4": ["elinks -version", "h2load --version", "i3 --version", "multiwatch",
                   "nghttp --version", "nghttpd --version", "nghttpx --version", "sniproxy -V",
                   "ss-local -h", "ss-server -h"],
    "libevent-2.1.so.7": ["gearmand --version", "memcached -V", "nsd -v", "pgbouncer --version",
                          "sslsplit -V", "tcpbench", "tmux -V", "turnutils_uclient", "unbound -V"],
}


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


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib-dir", required=True)
    parser.add_argument("programs", nargs="*", help="only these")
    options = parser.parse_args()
    problems = []
    tried = 0
    for soname, commands in PROGRAMS.items():
        if not os.path.exists(os.path.join(options.lib_dir, soname)):
            print(f"left out: {soname} was not built")
            continue
        for command in commands:
            name, *arguments = command.split()
            path = shutil.which(name, path=SEARCHED)
            if options.programs and name not in options.programs:
                continue
            if path is None:
                print(f"left out: {name} is not installed")
                continue
            tried += 1
            problems += [f"{command}: {problem}"
                         for problem in check([path, *arguments], options.lib_dir)]
    if not tried:
        return left_out("nothing to start")
    return finish(problems, f"{tried} programs")


if __name__ == "__main__":
    sys.exit(main())
