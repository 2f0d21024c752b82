"""Packages for pip: the source distribution, the wheel's name, the needed libraries."""

import importlib.util
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

import spate
from spate import _core

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def load_backend():
    spec = importlib.util.spec_from_file_location("build_backend", SOURCE / "build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Package(unittest.TestCase):
    def test_source_distribution_has_all_that_a_build_needs(self):
        backend = load_backend()
        with tempfile.TemporaryDirectory() as directory:
            name = backend.build_sdist(directory)
            stem = name.removesuffix(".tar.gz")
            with tarfile.open(f"{directory}/{name}") as archive:
                names = archive.getnames()
        for path in ("pyproject.toml", "build_backend.py", "package_files.py", "loop/spate.cc",
                     "loop/spate.h", "LICENSE", "PKG-INFO", "README.md", "spate/__init__.py",
                     "spate/py.typed", "src/core.cc"):
            self.assertIn(f"{stem}/{path}", names)
        self.assertFalse([path for path in names if "__pycache__" in path or path.endswith(".so")])

    def test_wheel_is_named_after_this_interpreter(self):
        tag = load_backend().package_files.tag()
        version = f"cp{sys.version_info.major}{sys.version_info.minor}"
        self.assertTrue(tag.startswith(f"{version}-{version}"), tag)
        self.assertIn("linux_", tag)

    def test_versions_agree(self):
        self.assertIn(f"Version: {spate.__version__}\n", load_backend().metadata())

    def test_module_needs_the_c_library_only(self):
        try:
            printed = subprocess.run(["readelf", "-d", _core.__file__], capture_output=True,
                                     text=True, check=True).stdout
        except FileNotFoundError:
            self.skipTest("there is no readelf")
        needed = [line.split("[")[1].rstrip("]") for line in printed.splitlines()
                  if "(NEEDED)" in line]
        for library in needed:
            self.assertRegex(library, r"^(libc|libm|ld-linux.*|libpthread)\.so")
        self.assertLess(pathlib.Path(_core.__file__).stat().st_size, 1 << 20)

    def test_package_is_typed(self):
        directory = pathlib.Path(spate.__file__).parent
        for name in ("py.typed", "__init__.pyi", "_core.pyi"):
            self.assertTrue((directory / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
