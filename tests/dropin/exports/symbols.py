#!/usr/bin/env python3
"""Compares the symbols of a drop-in library with those of Debian's.

    symbols.py LIBRARY --lib-dir DIRECTORY --map FILE [--headers DIRECTORY]

The two must export the same names with the same type; of libevent, those that the headers declare,
and ours a few more for libevent_openssl. Ours must export exactly the names in the map, have the
same SONAME, and need no library that a program does not have anyway.
"""

import argparse
import glob
import os
import re
import sys

from shared_objects import defines_versions, dynamic, exports, finish, installed, left_out
import missing  # shared_objects adds its directory to the path.

# The libraries that each may need, beside libc and its parts.
LIBRARIES = {
    "libev": ("libev.so.4", ["libev.so.4"], set()),
    "libevent": ("libevent-2.1.so.7", ["libevent-2.1.so.7", "libevent_pthreads-2.1.so.7"], set()),
    "libevent_openssl": ("libevent_openssl-2.1.so.7", ["libevent_openssl-2.1.so.7"],
                         {"libevent-2.1.so.7", "libssl.so.3", "libcrypto.so.3"}),
}
LIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}
LINKS = ("libevent_core-2.1.so.7", "libevent_extra-2.1.so.7", "libevent_pthreads-2.1.so.7")
LIBEV_EXPORTS = 97
# Exports of one of our libraries for another one of ours, under names that no program can use.
BETWEEN_OURS = {
    "libevent": {"spate_bufferevent_tls_new", "spate_bufferevent_tls_of",
                 "spate_bufferevent_tls_renegotiate"},
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def declared(directory):
    """Returns every word in libevent's headers outside of comments."""
    names = set()
    for path in [*glob.glob(os.path.join(directory, "event2", "*.h")),
                 *glob.glob(os.path.join(directory, "ev*.h"))]:
        with open(path, encoding="utf-8", errors="replace") as file:
            names.update(re.findall(r"\w+", without_comments(file.read())))
    return names


def listed(path):
    with open(path, encoding="utf-8") as file:
        return set(re.findall(r"(\w+);", without_comments(file.read()).split("local:")[0]))


def check_names(ours, wanted, what):
    for name in sorted(wanted - ours):
        yield f"{name}: {what}, and ours does not export it"
    for name in sorted(ours - wanted):
        yield f"{name}: ours exports it, but not {what}"


def check_kinds(ours, theirs):
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            yield f"{name}: is {theirs[name]}, ours is {ours[name]}"


def check_file(path, soname, allowed):
    tags = dynamic(path)
    if tags.get("SONAME") != [soname]:
        yield f"the SONAME is {tags.get('SONAME')}, not {soname}"
    for name in sorted(set(tags.get("NEEDED", [])) - LIBC - allowed):
        yield f"needs {name}"
    if "SYMBOLIC" in tags:
        yield "is linked -Bsymbolic: a program's copy of a variable would be another one"
    if defines_versions(path):
        yield "defines symbol versions, and the original has none"


def check_links(lib_dir, soname):
    """All names must be links to one file, or a program would load two libraries."""
    for name in LINKS:
        path = os.path.join(lib_dir, name)
        if not os.path.exists(path):
            yield f"{name} is not there"
        elif not os.path.samefile(path, os.path.join(lib_dir, soname)):
            yield f"{name} is another file than {soname}"


def check(options, ours, originals):
    theirs = {}
    for original in originals:
        theirs.update(exports(original))
    wanted = set(theirs)
    if options.headers:
        wanted &= declared(options.headers)
    soname, _, allowed = LIBRARIES[options.library]
    found = exports(ours)
    between = BETWEEN_OURS.get(options.library, set())
    yield from check_names(set(found), wanted | between, "Debian's exports it")
    yield from check_names(set(found), listed(options.map), "the map lists it")
    yield from check_kinds(found, theirs)
    yield from check_file(ours, soname, allowed)
    if options.library == "libevent":
        yield from check_links(options.lib_dir, soname)
    if options.library == "libev" and len(wanted) != LIBEV_EXPORTS:
        yield f"Debian's has {len(wanted)} exports; this test knows one with {LIBEV_EXPORTS}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--lib-dir", required=True)
    parser.add_argument("--map", required=True)
    parser.add_argument("--headers", help="where event2/ is; without it, all exports count")
    options = parser.parse_args()
    soname, sources, _ = LIBRARIES[options.library]
    ours = os.path.join(options.lib_dir, soname)
    if not os.path.exists(ours):
        return left_out(f"{ours} was not built (package libev-dev or libevent-dev)")
    originals = [installed(name) for name in sources]
    if None in originals:
        return left_out(missing.not_installed(sources[originals.index(None)]))
    return finish(list(check(options, ours, originals)), f"{len(exports(ours))} exports")


if __name__ == "__main__":
    sys.exit(main())
