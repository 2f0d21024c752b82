#!/usr/bin/env python3
"""Makes packages of the module for Perl.   tools/perl_package.py DIRECTORY

DIRECTORY gets Spate-VERSION.tar.gz, in CPAN's format, with the loop's source in it; and
libspate-perl_VERSION_ARCH.deb, made of the installed files. Needs perl's headers, make, a compiler
of C++23, and dpkg-deb, dpkg-shlibdeps (Debian's dpkg-dev).
"""

import argparse
import os
import pathlib
import re
import shutil
import sys

import debian_package
from debian_package import ROOT, files_below, run

NAME = "libspate-perl"
MANIFEST_SKIP = "#!include_default\n"
CONTROL = """\
Package: {name}
Version: {version}-1
Architecture: {architecture}
Maintainer: {maintainer}
Section: perl
Priority: optional
Installed-Size: {kibibytes}
Depends: perl, {perl_abi}, {libraries}
Suggests: libanyevent-perl, libmojolicious-perl, libio-async-perl, libpoe-perl
Description: fast event loop for Perl
 Spate watches descriptors, timers, signals, child processes and files. Its
 interface is that of EV where that makes sense. AnyEvent, Mojolicious,
 IO::Async and POE run on it.
"""


def git_files(below):
    return run("git", "ls-files", below, at=ROOT).split()


def copy_sources(source):
    for path in (ROOT / name for name in git_files("bindings/perl")):
        to = source / path.relative_to(ROOT / "bindings/perl")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    (source / "CMakeLists.txt").unlink()
    shutil.copyfile(ROOT / "LICENSE", source / "LICENSE")
    run(sys.executable, str(ROOT / "tools/amalgamate.py"), str(source), at=ROOT)


def build(source):
    (source / "MANIFEST.SKIP").write_text(MANIFEST_SKIP)
    run("perl", "-MExtUtils::Manifest=mkmanifest", "-e", "mkmanifest", at=source)
    run("perl", "Makefile.PL", "INSTALLDIRS=vendor", at=source,
        env=os.environ | {"PERL_MM_USE_DEFAULT": "1"})
    run("make", at=source)
    run("make", "dist", at=source)


def install(source, root):
    run("make", "install", f"DESTDIR={root}", at=source)
    for path in files_below(root):
        if path.name in (".packlist", "perllocal.pod"):
            path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory.resolve()
    work = directory / "work"
    shutil.rmtree(work, ignore_errors=True)
    source, root = work / "source", work / "root"
    root.mkdir(parents=True)

    copy_sources(source)
    version = re.search(r"VERSION = '(.*)'", (source / "lib/Spate.pm").read_text())[1]
    build(source)
    shutil.copy(source / f"Spate-{version}.tar.gz", directory)
    install(source, root)
    abi = run("perl", "-MConfig", "-e",
              'print "perlapi-", $Config{debian_abi} || $Config{version}', at=root)
    package = debian_package.build(root, directory, CONTROL, NAME, version, perl_abi=abi)
    shutil.rmtree(work)
    print(f"{package}\n{directory / f'Spate-{version}.tar.gz'}")


if __name__ == "__main__":
    main()
