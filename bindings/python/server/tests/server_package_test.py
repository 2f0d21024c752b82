"""Packages of the server for pip: the source distribution, the needed libraries."""

import importlib.util
import pathlib
import subprocess
import tarfile
import tempfile
import tomllib
import unittest

import server_case  # Skips if the server was not built.

import spate_server
from spate_server import _native

SOURCE = pathlib.Path(__file__).resolve().parents[1]
# The libraries that the module may need: those of spate, and the C library.
LIBRARIES = r"^(lib(z|cares|ssl|crypto|c|m|pthread)|ld-linux.*)\.so"


def load_backend():
    spec = importlib.util.spec_from_file_location("server_backend", SOURCE / "build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Package(unittest.TestCase):
    def setUp(self):
        self.backend = load_backend()

    def test_source_distribution_has_each_source_and_its_backend(self):
        with tempfile.TemporaryDirectory() as directory:
            name = self.backend.build_sdist(directory)
            stem = name.removesuffix(".tar.gz")
            with tarfile.open(f"{directory}/{name}") as archive:
                names = {path.removeprefix(stem + "/") for path in archive.getnames()}
                project = tomllib.loads(
                    archive.extractfile(f"{stem}/pyproject.toml").read().decode())
        root = SOURCE.parents[2]
        wanted = [path for folder in ("src", "include", "cmake")
                  for path in (root / folder).rglob("*") if path.is_file()]
        wanted += [path for path in (SOURCE / "src").iterdir()]
        wanted += (SOURCE / "spate_server").glob("*.py")
        for path in wanted:
            if not path.name.endswith("_test.cc"):
                self.assertIn(path.relative_to(root).as_posix(), names)
        for path in ("CMakeLists.txt", "LICENSE", "PKG-INFO", "bindings/python/src/python.h",
                     "bindings/python/package_files.py", project["project"]["readme"]):
            self.assertIn(path, names)
        backend, = project["build-system"]["backend-path"]
        self.assertIn(f"{backend}/build_backend.py", names)
        self.assertFalse([path for path in names if "__pycache__" in path])

    def test_versions_agree(self):
        self.assertIn(f"Version: {spate_server.__version__}\n", self.backend.metadata())

    def test_module_needs_only_listed_libraries(self):
        try:
            printed = subprocess.run(["readelf", "-d", _native.__file__], capture_output=True,
                                     text=True, check=True).stdout
        except FileNotFoundError:
            self.skipTest("there is no readelf")
        needed = [line.split("[")[1].rstrip("]") for line in printed.splitlines()
                  if "(NEEDED)" in line]
        self.assertTrue(needed)
        for library in needed:
            self.assertRegex(library, LIBRARIES)
