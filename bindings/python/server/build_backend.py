#!/usr/bin/env python3
"""Builds the package spate-server, for pip (PEP 517).

Needs CMake, Ninja, a compiler of C++23, and the headers of Python, OpenSSL, c-ares and zlib.
The library's source is taken from the tree around this file, which a source distribution
contains. Environment: CXX, CXXFLAGS, LDFLAGS.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import package_files  # pylint: disable=wrong-import-position

ROOT = HERE.parents[2]
DISTRIBUTION = "spate_server"
TARGET = "spate_python_server"
# Where a build finds the library's source, and this package; by the root of the project.
FOLDERS = ("cmake", "include", "src", "bindings/python/src", "bindings/python/server/src",
           "bindings/python/server/spate_server")
FILES = ("CMakeLists.txt", "LICENSE", "bindings/python/package_files.py",
         "bindings/python/server/CMakeLists.txt", "bindings/python/server/README.md",
         "bindings/python/server/build_backend.py",
         "bindings/python/server/pyproject.toml")
ENTRY_POINTS = "[console_scripts]\nspate-server = spate_server.command:main\n"


def version():
    return re.search(r'__version__ = "(.*)"', (HERE / "spate_server/__init__.py").read_text())[1]


def metadata():
    described = (HERE / "README.md").read_text()
    return (f"Metadata-Version: 2.1\nName: spate-server\nVersion: {version()}\n"
            "Summary: An ASGI server for HTTP/1.1, HTTP/2 and WebSocket\nLicense: MIT\n"
            "Requires-Python: >=3.11\nDescription-Content-Type: text/markdown\n\n" + described)


def check_tools():
    """Raises an exception if a program or a header of Python is missing: CMake's own texts come
    late, or do not name the package."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))[0]
    package_files.check_tools({compiler: "install g++ 12 or later, or set CXX",
                               "cmake": "install CMake 3.25 or later (on Debian, cmake)",
                               "ninja": "install Ninja (on Debian, ninja-build)"})


def build_package(work):
    """Returns the directory that has the package."""
    if not (ROOT / "CMakeLists.txt").exists():
        raise RuntimeError("spate-server is built in the source tree of spate")
    check_tools()
    # The tests' programs and the benchmarks are on by default, and installing.
    off = [f"-DSPATE_{part}=OFF" for part in ("TESTS", "EXAMPLES", "PROGRAMS", "COMPAT", "BENCH",
                                              "INSTALL")]
    subprocess.run(["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(work),
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                    "-DSPATE_PYTHON_SERVER=ON", *off, f"-DPython3_EXECUTABLE={sys.executable}"],
                   check=True)
    subprocess.run(["cmake", "--build", str(work), "--target", TARGET], check=True)
    return work / "bindings/python/server/package"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as work:
        built = build_package(pathlib.Path(work))
        contents = {str(path.relative_to(built)): path.read_bytes()
                    for path in sorted((built / DISTRIBUTION).iterdir()) if path.is_file()}
    return package_files.write_wheel(wheel_directory, f"{DISTRIBUTION}-{version()}", contents,
                                     {"METADATA": metadata(), "entry_points.txt": ENTRY_POINTS})


def source_files():
    """Returns the paths that a source distribution has, by the root of the project."""
    found = list(FILES)
    for folder in FOLDERS:
        found += [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts
                  and not path.name.endswith("_test.cc")]
    return sorted(found)


def root_project():
    """Returns the pyproject.toml of a source distribution, whose backend is in a folder."""
    text = (HERE / "pyproject.toml").read_text()
    folder = HERE.relative_to(ROOT).as_posix()
    return (text.replace('backend-path = ["."]', f'backend-path = ["{folder}"]')
            .replace('readme = "README.md"', f'readme = "{folder}/README.md"'))


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{DISTRIBUTION}-{version()}"
    with tarfile.open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz") as archive:
        for path in source_files():
            archive.add(ROOT / path, f"{stem}/{path}")
        package_files.add_text(archive, f"{stem}/pyproject.toml", root_project())
        package_files.add_text(archive, f"{stem}/PKG-INFO", metadata())
    return f"{stem}.tar.gz"
