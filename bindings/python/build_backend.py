#!/usr/bin/env python3
"""Builds the package, for pip (PEP 517), and by itself.   build_backend.py DIRECTORY

Needs a compiler of C++23 and Python's headers, and no other package. By itself it puts the package
into DIRECTORY, ready to be imported. The loop's source is taken from the tree around this file, or
from loop/ beside it, as in a source distribution. Environment: CXX, CXXFLAGS, LDFLAGS.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
import package_files  # pylint: disable=wrong-import-position

ROOT = HERE.parent.parent
DISTRIBUTION = "spate"
# Flags for the loop's source.
LOOP_FLAGS = ["-fno-exceptions", "-fno-rtti", "-w"]


def version():
    return re.search(r'__version__ = "(.*)"', (HERE / "spate/__init__.py").read_text())[1]


def metadata():
    described = (HERE / "README.md").read_text()
    return (f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version()}\n"
            "Summary: A fast event loop for asyncio\nLicense: MIT\nRequires-Python: >=3.11\n"
            "Description-Content-Type: text/markdown\n\n" + described)


def loop_source(work):
    """Returns the directory of spate.cc and spate.h."""
    packed = HERE / "loop"
    if (packed / "spate.cc").exists():
        return packed
    made = work / "loop"
    subprocess.run([sys.executable, str(ROOT / "tools/amalgamate.py"), str(made)], check=True,
                   stdout=subprocess.DEVNULL)
    return made


def compiler():
    return shlex.split(os.environ.get("CXX", "g++"))


def compile_all(jobs):
    """Runs the compiler for each (source, object, flags)."""
    for source, target, flags in jobs:
        subprocess.run(compiler() + flags + ["-c", str(source), "-o", str(target)], check=True)


def build_module(directory, work):
    """Compiles spate/_core into the directory."""
    package_files.check_tools({compiler()[0]: "install g++ 12 or later, or set CXX"})
    loop = loop_source(work)
    flags = ["-std=c++23", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden",
             f"-I{loop}"] + shlex.split(os.environ.get("CXXFLAGS", ""))
    # Not -isystem: g++ resolves links of such headers, and Debian's debug headers are links.
    python = [f"-I{sysconfig.get_path('include')}", "-fno-exceptions", "-Wall", "-Wextra",
              "-Wno-missing-field-initializers", "-Wno-cast-function-type"]
    jobs = [(loop / "spate.cc", work / "loop.o", flags + LOOP_FLAGS)]
    for source in sorted((HERE / "src").glob("*.cc")):
        jobs.append((source, work / f"{source.stem}.o", flags + python))
    compile_all(jobs)
    name = "_core" + sysconfig.get_config_var("EXT_SUFFIX")
    (directory / "spate").mkdir(parents=True, exist_ok=True)
    keeps_lines = any(flag.startswith("-g") for flag in flags)
    # Links the C++ library statically, so that the module needs only the C library.
    subprocess.run(compiler() + ["-shared", "-static-libstdc++", "-static-libgcc",
                                 "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL"]
                   + ([] if keeps_lines else ["-Wl,-s"])
                   + [str(target) for _, target, _ in jobs]
                   + shlex.split(os.environ.get("LDFLAGS", ""))
                   + ["-o", str(directory / "spate" / name)], check=True)


def build_package(directory):
    with tempfile.TemporaryDirectory() as work:
        build_module(directory, pathlib.Path(work))
    for path in (HERE / "spate").iterdir():
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            shutil.copyfile(path, directory / "spate" / path.name)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as built:
        built = pathlib.Path(built)
        build_package(built)
        contents = {str(path.relative_to(built)): path.read_bytes()
                    for path in sorted(built.rglob("*")) if path.is_file()}
    return package_files.write_wheel(wheel_directory, f"{DISTRIBUTION}-{version()}", contents,
                                     {"METADATA": metadata()})


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{DISTRIBUTION}-{version()}"
    with tempfile.TemporaryDirectory() as work:
        loop = loop_source(pathlib.Path(work))
        with tarfile.open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz") as archive:
            for path in sorted(HERE.rglob("*")):
                inside = path.relative_to(HERE)
                is_ours = inside.parts[0] != "server" and "__pycache__" not in inside.parts
                if path.is_file() and is_ours:
                    archive.add(path, f"{stem}/{inside}")
            if loop.parent != HERE:
                for name in ("spate.cc", "spate.h"):
                    archive.add(loop / name, f"{stem}/loop/{name}")
                archive.add(ROOT / "LICENSE", f"{stem}/LICENSE")
            package_files.add_text(archive, f"{stem}/PKG-INFO", metadata())
    return f"{stem}.tar.gz"


if __name__ == "__main__":
    build_package(pathlib.Path(sys.argv[1]))
