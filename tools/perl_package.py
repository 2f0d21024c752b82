#!/usr/bin/env python3
"""Makes packages of the module for Perl.   tools/perl_package.py DIRECTORY

DIRECTORY gets Spate-VERSION.tar.gz, as CPAN takes it, with the loop's source in it; and
libspate-perl_VERSION_ARCH.deb, of what it installs. Needs perl's headers, make, a compiler of
C++23, and dpkg-deb, dpkg-shlibdeps (Debian's dpkg-dev).
"""

import argparse
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "libspate-perl"
MANIFEST_SKIP = "#!include_default\n"
CONTROL = """\
Package: {name}
Version: {version}-1
Architecture: {architecture}
Maintainer: The spate authors <spate@localhost>
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
CHANGELOG = """\
{name} ({version}-1) unstable; urgency=medium

  * Made from spate {version}.

 -- The spate authors <spate@localhost>  Thu, 01 Jan 2026 00:00:00 +0000
"""


def run(*command, at, **more):
    done = subprocess.run(command, cwd=at, text=True, capture_output=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def files_below(root):
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


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
        elif path.suffix == ".so":
            path.chmod(0o644)
            run("strip", "--strip-unneeded", str(path), at=root)
        elif re.fullmatch(r"\.[1-9]\w*", path.suffix):
            compress(path)
        else:
            path.chmod(0o644)
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir():
            path.chmod(0o755)
            if not any(path.iterdir()):
                path.rmdir()


def compress(path):
    to = path.with_name(path.name + ".gz")
    with open(to, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(path.read_bytes())
    path.unlink()
    to.chmod(0o644)


def add_documents(root, values):
    documents = root / "usr/share/doc" / NAME
    documents.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", documents / "copyright")
    (documents / "changelog.Debian").write_text(CHANGELOG.format(**values))
    compress(documents / "changelog.Debian")


def libraries_of(root):
    """What dpkg-shlibdeps finds; it wants to be beside a debian/control."""
    beside = root.parent / "shlibdeps"
    (beside / "debian").mkdir(parents=True)
    (beside / "debian/control").write_text(
        f"Source: {NAME}\n\nPackage: {NAME}\nArchitecture: any\n")
    objects = [str(path) for path in files_below(root) if path.suffix == ".so"]
    found = run("dpkg-shlibdeps", "-O", *objects, at=beside)
    return re.search(r"shlibs:Depends=(.*)", found)[1]


def add_control(root, values):
    files = files_below(root)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
            for path in files]
    values |= {
        "libraries": libraries_of(root),
        "kibibytes": sum(path.stat().st_size for path in files) // 1024 + 1,
        "perl_abi": run("perl", "-MConfig", "-e",
                        'print "perlapi-", $Config{debian_abi} || $Config{version}', at=root),
        "architecture": run("dpkg", "--print-architecture", at=root).strip(),
    }
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(CONTROL.format(**values))
    (root / "DEBIAN/md5sums").write_text("".join(sums))
    return f"{NAME}_{values['version']}-1_{values['architecture']}.deb"


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
    values = {"name": NAME, "version": version}
    build(source)
    shutil.copy(source / f"Spate-{version}.tar.gz", directory)
    install(source, root)
    add_documents(root, values)
    package = add_control(root, values)
    run("dpkg-deb", "--root-owner-group", "--build", str(root), str(directory / package), at=work)
    shutil.rmtree(work)
    print(f"{directory / package}\n{directory / f'Spate-{version}.tar.gz'}")


if __name__ == "__main__":
    main()
