"""Conan 2: builds spate from the tree that this recipe is in.   conan create packaging/conan"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

TREE = ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "programs/*", "compat/*",
        "docs/man/*", "tools/coro_lint.py")


class Spate(ConanFile):
    name = "spate"
    license = "MIT"
    description = "An event loop and networking library for C++23 and C"
    topics = ("event-loop", "networking", "http", "websocket", "coroutines")
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "http": [True, False],
               "tls": [True, False]}
    default_options = {"shared": False, "fPIC": True, "http": True, "tls": True}
    package_type = "library"
    implements = ["auto_shared_fpic"]

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        header = load(self, os.path.join(self._tree, "include/spate_version.h"))
        self.version = ".".join(re.findall(r"SPATE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        for pattern in TREE:
            copy(self, pattern, self._tree, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 23)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("spate runs on Linux")

    def requirements(self):
        self.requires("c-ares/[>=1.18 <2]")
        if self.options.http:
            self.requires("zlib/[>=1.2.11 <2]")
        if self.options.tls:
            self.requires("openssl/[>=3.0 <4]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES", "COMPAT", "PROGRAMS"):
            toolchain.cache_variables[f"SPATE_{part}"] = False
        if not self.options.http:
            toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_ZLIB"] = True
        if not self.options.tls:
            toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_OpenSSL"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.components["spate"].libs = ["spate"]
        self.cpp_info.components["spate"].system_libs = ["pthread"]
        self.cpp_info.components["spate"].requires = ["c-ares::c-ares"]
        if self.options.http:
            self._room("http", "zlib::zlib")
            self._room("http2")
        if self.options.tls:
            self._room("tls", "openssl::ssl")

    def _room(self, name, *needs):
        self.cpp_info.components[name].libs = [f"spate_{name}"]
        self.cpp_info.components[name].requires = ["spate", *needs]
