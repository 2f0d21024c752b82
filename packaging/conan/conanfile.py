"""Conan 2: builds spate from the tree that this recipe is in.   conan create packaging/conan"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir

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
        libraries = os.path.join(self.package_folder, "lib")
        if self.options.shared:
            rm(self, "*.a", libraries, excludes="libspate_sim.a")
        else:
            rm(self, "*.so*", libraries)
        for directory in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan generates them.
            rmdir(self, os.path.join(self.package_folder, directory))

    def package_info(self):
        # The names that an installed spate has. The target of all components gets another one.
        self.cpp_info.set_property("cmake_target_name", "spate::all")
        self.cpp_info.set_property("pkg_config_name", "spate-all")
        self.cpp_info.components["spate"].set_property("pkg_config_name", "spate")
        rooms = {}
        if self.options.http:
            rooms |= {"http": ["zlib::zlib"], "http2": []}
        if self.options.tls:
            rooms["tls"] = ["openssl::ssl"]
        self._component("spate", "spate", "c-ares::c-ares")
        for name, needs in rooms.items():
            self._component(name, f"spate_{name}", "spate", *needs)
        if self._has_simulation():
            self._component("sim", "spate_sim", "c-ares::c-ares", *sum(rooms.values(), []))

    def _component(self, name, library, *needs):
        component = self.cpp_info.components[name]
        component.libs = [library]
        component.system_libs = ["pthread"]
        component.requires = list(needs)

    def _has_simulation(self):
        return os.path.exists(os.path.join(self.package_folder, "lib", "libspate_sim.a"))
