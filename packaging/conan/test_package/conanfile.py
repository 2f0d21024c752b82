"""Builds programs against the package, one for each of its libraries, and runs them."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class SpateTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        components = self.dependencies[self.tested_reference_str].cpp_info.components
        toolchain.cache_variables["SPATE_COMPONENTS"] = ";".join(components)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for name in ("consumer", "rooms", "world"):
                program = os.path.join(self.cpp.build.bindir, name)
                if os.path.exists(program):
                    self.run(program, env="conanrun")
