"""Shared by tools/*_package.py: turns a tree of installed files into a Debian package, with
dpkg-deb and dpkg-shlibdeps alone (Debian's dpkg-dev)."""

import gzip
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAINTAINER = "The spate authors <spate@localhost>"
CHANGELOG = """\
{name} ({version}-1) unstable; urgency=medium

  * Made from spate {version}.

 -- {maintainer}  Thu, 01 Jan 2026 00:00:00 +0000
"""


def version_of_spate():
    header = (ROOT / "include/spate_version.h").read_text()
    return ".".join(re.findall(r"define SPATE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def run(*command, at, **more):
    done = subprocess.run(command, cwd=at, text=True, capture_output=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def files_below(root):
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def is_shared_object(path):
    return re.search(r"\.so(\.\d+)*$", path.name) is not None


def compress(path):
    to = path.with_name(path.name + ".gz")
    with open(to, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(path.read_bytes())
    path.unlink()
    to.chmod(0o644)


def put_in_order(root):
    """Strips shared objects, compresses manual pages, and sets modes, as Debian wants them."""
    for path in files_below(root):
        if is_shared_object(path):
            run("strip", "--strip-unneeded", "--remove-section=.comment", str(path), at=root)
        if re.fullmatch(r".*/man/man\d", str(path.parent)):
            compress(path)
        else:
            path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir():
            path.chmod(0o755)
            if not any(path.iterdir()):
                path.rmdir()


def add_documents(root, name, version):
    documents = root / "usr/share/doc" / name
    documents.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", documents / "copyright")
    changelog = documents / "changelog.Debian"
    changelog.write_text(CHANGELOG.format(name=name, version=version, maintainer=MAINTAINER))
    compress(changelog)


def libraries_of(root, name, without):
    """Returns the dependencies that dpkg-shlibdeps finds; it needs a debian/control beside it."""
    beside = root.parent / "shlibdeps"
    (beside / "debian").mkdir(parents=True)
    (beside / "debian/control").write_text(
        f"Source: {name}\n\nPackage: {name}\nArchitecture: any\n")
    objects = [str(path) for path in files_below(root) if is_shared_object(path)]
    found = run("dpkg-shlibdeps", "-O", *(f"-x{other}" for other in without), *objects, at=beside)
    return re.search(r"shlibs:Depends=(.*)", found)[1]


def build(root, directory, control, name, version, without=(), **values):
    """Makes the package of the files below root, to which it adds DEBIAN/. Returns the package's
    path. Fills {architecture}, {kibibytes}, {libraries} and {maintainer} into the template
    `control`. No library is taken from the packages `without`."""
    put_in_order(root)
    add_documents(root, name, version)
    files = files_below(root)
    values |= {
        "name": name,
        "version": version,
        "maintainer": MAINTAINER,
        "architecture": run("dpkg", "--print-architecture", at=root).strip(),
        "kibibytes": sum(path.stat().st_size for path in files) // 1024 + 1,
        "libraries": libraries_of(root, name, without),
    }
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
            for path in files]
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(control.format(**values))
    (root / "DEBIAN/md5sums").write_text("".join(sums))
    package = directory / f"{name}_{version}-1_{values['architecture']}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", str(root), str(package), at=root)
    return package
