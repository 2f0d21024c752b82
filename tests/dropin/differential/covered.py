#!/usr/bin/env python3
"""Checks that each function of the installed headers has a row in an argument table.

    covered.py LIBRARY HEADERS [--tables DIRECTORY]

LIBRARY is libev or libevent, HEADERS the directory with ev.h or event2/. Counted are declared and
inline functions, and function-like macros. A function has a row if a <library>_arguments*.c names
it, outside of the sections that only prepare a call: those before the first heading, "domains" and
"the world". The compiler reports a call that no table has. EXEMPT lists the functions without rows.

Exits with 0 if each function has a row or an exemption, and each exemption is needed; 1 if not.
"""

import argparse
import glob
import os
import re
import sys

# Directory of the headers -> patterns; prefixes of the tables; the fewest functions of a real
# installation: fewer mean that the headers are no longer written as this reads them.
LIBRARIES = {
    "libev": (["ev.h"], ["libev"], 120),
    "libevent": (["event2/*.h", "ev[ehru]*.h"], ["libevent", "openssl"], 480),
}
OWN_STRUCT = "accesses only the program's own message, without a call"
EXEMPT = {
    "libev": {
        "EV_CB": "internal macro: the type of a callback",
        "EV_CB_DECLARE": "internal macro: a member of a watcher",
        "EV_CB_INVOKE": "internal macro: for libev's own source",
        "EV_CPP": "internal macro: text for C++ only",
        "EV_WATCHER": "internal macro: members of a watcher",
        "EV_WATCHER_LIST": "internal macro: members of a watcher",
        "EV_WATCHER_TIME": "internal macro: members of a watcher",
        "ev_cb_": "internal macro of ev_cb",
        "ev_default_loop_uc_": "internal function of EV_DEFAULT_UC",
        "ev_walk": "Debian's library does not have it: EV_WALK_ENABLE is 0",
    },
    "libevent": {
        "EVRPC_HEADER": "declares functions: libevent_rpc.h uses it",
        "EVRPC_GENERATE": "defines functions: libevent_rpc.h uses it",
        "EVRPC_STRUCT": "names a struct",
        "EVTAG_ADD": OWN_STRUCT,
        "EVTAG_ARRAY_ADD": OWN_STRUCT,
        "EVTAG_ARRAY_ADD_VALUE": OWN_STRUCT,
        "EVTAG_ARRAY_GET": OWN_STRUCT,
        "EVTAG_ARRAY_LEN": OWN_STRUCT,
        "EVTAG_ASSIGN_WITH_LEN": OWN_STRUCT,
        "EVTAG_GET": OWN_STRUCT,
        "EVTAG_GET_WITH_LEN": OWN_STRUCT,
        "EVTAG_HAS": OWN_STRUCT,
        "EVTAG_LEN": OWN_STRUCT,
        "LIST_ENTRY": "declares members, as in sys/queue.h",
        "LIST_HEAD": "declares a struct, as in sys/queue.h",
        "TAILQ_ENTRY": "declares members, as in sys/queue.h",
        "TAILQ_HEAD": "declares a struct, as in sys/queue.h",
        "evdns_base_config_windows_nameservers": "Windows only",
        "evdns_config_windows_nameservers": "Windows only",
        "evthread_use_windows_threads": "Windows only",
    },
}
PREPARING = {"", "domains", "the world"}

MARK = r"\b(?:EVENT2_EXPORT_SYMBOL|EVENT2_CORE_EXPORT_SYMBOL|EV_API_DECL|EV_INLINE)\b"
DECLARATION = re.compile(MARK + r"([^;{]*)[;{]")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
DISABLED = re.compile(r"^[ \t]*#[ \t]*if 0\b.*?^[ \t]*#[ \t]*endif", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^// ---- (.*)$", re.MULTILINE)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def functions_of(header):
    """Returns the names of the functions and function-like macros in a header's text."""
    text = DISABLED.sub("", without_comments(header)).replace("\\\n", " ")
    names = set(MACRO.findall(text))
    for declaration in DECLARATION.findall(DIRECTIVE.sub("", text)):
        found = re.search(r"(\w+)\s*\(", declaration)
        if found:  # Otherwise it is a variable.
            names.add(found.group(1))
    return names


def named_in(source):
    """Returns the words of a table's source that belong to its calls."""
    parts = HEADING.split(source)
    titles = ["", *parts[1::2]]
    names = set()
    for title, part in zip(titles, parts[0::2]):
        if title not in PREPARING:
            part = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(part))
            names.update(re.findall(r"\w+", part))
    return names


def read(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield file.read()


def matching(directory, patterns):
    return sorted({path for pattern in patterns
                   for path in glob.glob(os.path.join(directory, pattern))})


def check(declared, named, exempt, least):
    """Yields a line for each error."""
    if len(declared) < least:
        yield f"the headers have only {len(declared)} functions, not {least}: are they complete?"
    for name in sorted(declared - named - exempt.keys()):
        yield f"{name}: no argument table has a row for it"
    for name in sorted(exempt.keys() - declared):
        yield f"{name}: is exempt, but the headers do not have it"
    for name in sorted(exempt.keys() & declared & named):
        yield f"{name}: is exempt, but has a row"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("headers")
    parser.add_argument("--tables", default=os.path.dirname(os.path.abspath(__file__)))
    options = parser.parse_args()
    headers, prefixes, least = LIBRARIES[options.library]
    declared = set().union(*map(functions_of, read(matching(options.headers, headers))))
    sources = matching(options.tables, [f"{prefix}_arguments*.c" for prefix in prefixes])
    named = set().union(*map(named_in, read(sources)))
    errors = list(check(declared, named, EXEMPT[options.library], least))
    for error in errors:
        print(error)
    if not errors:
        print(f"{len(declared)} functions: each has a row, or is exempt")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
