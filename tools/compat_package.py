#!/usr/bin/env python3
"""Makes a package of spate-run and the drop-in libraries.   tools/compat_package.py DIRECTORY

    tools/compat_package.py [--build TREE] DIRECTORY

DIRECTORY gets spate-compat_VERSION_ARCH.deb. It replaces no installed library: its libraries are in
a separate directory, which only spate-run searches. They are built for that, below DIRECTORY; with
--build they are those of a build tree. Needs dpkg-deb, dpkg-shlibdeps (Debian's dpkg-dev).
"""

import argparse
import os
import pathlib
import shutil

import debian_package
from debian_package import ROOT, run, version_of_spate

NAME = "spate-compat"
TARGETS = ("dropin_ev", "dropin_event", "dropin_event_openssl")
# The drop-in libevent_openssl needs a libevent: the one beside it, not Debian's.
ITS_OWN = ("libevent-2.1-7", "libevent-core-2.1-7", "libev4")
CONTROL = """\
Package: {name}
Version: {version}-1
Architecture: {architecture}
Maintainer: {maintainer}
Section: libs
Priority: optional
Installed-Size: {kibibytes}
Depends: {libraries}
Recommends: libcap2-bin
Description: run programs of libev and libevent on spate
 spate-run starts a program that was built for libev 4.33 or libevent 2.1.12 on
 the event loop of spate, unmodified. The system's own libraries stay as they
 are, and so does every program that is not started by spate-run.
"""


def configure(tree):
    run("cmake", "-S", str(ROOT), "-B", str(tree), "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_INSTALL_PREFIX=/usr", "-DSPATE_COMPAT=ON", "-DSPATE_INSTALL=ON",
        *(f"-DSPATE_{part}=OFF" for part in ("TESTS", "BENCH", "EXAMPLES", "PROGRAMS")), at=ROOT)
    run("cmake", "--build", str(tree), f"-j{os.cpu_count()}", "--target", *TARGETS, at=ROOT)


def install(tree, root):
    run("cmake", "--install", str(tree), "--component", "compat", "--prefix", "/usr", at=ROOT,
        env=os.environ | {"DESTDIR": str(root)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    directory = options.directory.resolve()
    work = directory / "work"
    shutil.rmtree(work, ignore_errors=True)
    root = work / "root"
    root.mkdir(parents=True)

    tree = options.build
    if tree is None:
        tree = directory / "build"
        configure(tree)
    install(tree, root)
    print(debian_package.build(root, directory, CONTROL, NAME, version_of_spate(), ITS_OWN))
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
