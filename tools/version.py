#!/usr/bin/env python3
"""Checks the version.   tools/version.py [root of the tree]

include/spate_version.h is where the version is written. Recipes for package managers, Debian's
changelog and the module for Perl have to repeat it, since other programs read them. Prints one line
for each that differs.
"""

import os
import re
import sys

from source_tree import finish, read, root_from

HEADER = "include/spate_version.h"
PART = re.compile(r"^#define SPATE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", re.MULTILINE)
# Where the whole version is repeated, and how.
COPIES = {
    "bindings/perl/lib/Spate.pm": r"\$VERSION = '(.*?)'",
    "debian/changelog": r"\Aspate \((.*?)\)",
    "packaging/alpine/APKBUILD": r"^pkgver=(.*)",
    "packaging/arch/PKGBUILD": r"^pkgver=(.*)",
    "packaging/homebrew/spate.rb": r"/v([\d.]+)\.tar",
    "packaging/meson/spate.wrap": r"^revision = v(.*)",
    "packaging/nix/package.nix": r'version = "(.*?)"',
    "packaging/rpm/spate.spec": r"^Version:\s+(.*)",
    "packaging/vcpkg/spate/vcpkg.json": r'"version": "(.*?)"',
}
# Where the version of the SONAME is repeated, which names Debian's packages.
SONAMES = {
    "debian/control": r"^Package: libspate(\d.*)",
    "debian/libspate0.1.symbols": r"\Alibspate\.so\.(.*?) ",
    "debian/libspate-http0.1.symbols": r"\Alibspate_http\.so\.(.*?) ",
    "debian/libspate-http2-0.1.symbols": r"\Alibspate_http2\.so\.(.*?) ",
    "debian/libspate-tls0.1.symbols": r"\Alibspate_tls\.so\.(.*?) ",
    "packaging/rpm/spate.spec": r"/libspate\.so\.([\d.]+)\*",
}


def version_of(root):
    return ".".join(PART.findall(read(root, HEADER)))


def soversion_of(version):
    major, minor, _ = version.split(".")
    return major if major != "0" else f"0.{minor}"


def check(root, copies, wanted):
    for name, pattern in copies.items():
        if not os.path.exists(os.path.join(root, name)):
            yield f"{name}: not there"
            continue
        found = re.search(pattern, read(root, name), re.MULTILINE)
        if not found or found[1] != wanted:
            yield f"{name}: {found[1] if found else 'nothing'}, and {HEADER} wants {wanted}"


def problems(root):
    version = version_of(root)
    return [*check(root, COPIES, version), *check(root, SONAMES, soversion_of(version))]


if __name__ == "__main__":
    ROOT = root_from(sys.argv)
    sys.exit(finish("version", problems(ROOT), len(COPIES) + len(SONAMES)))
