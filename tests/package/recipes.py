#!/usr/bin/env python3
"""Compares the recipes of packaging/ with an installed tree.   tests/package/recipes.py PREFIX

The tree has the programs. The list of files in the recipe for RPM must match it. Each recipe must
name the libraries' dependencies and only options that exist.
"""

import fnmatch
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = "packaging/rpm/spate.spec"
DIRECTORIES = {"_bindir": "bin", "_includedir": "include", "_libdir": "lib", "_datadir": "share",
               "_mandir": "share/man", "_docdir": "share/doc"}
# The names of c-ares, zlib and OpenSSL in each recipe that lists dependencies.
NEEDS = {
    "packaging/alpine/APKBUILD": ("c-ares-dev", "zlib-dev", "openssl-dev"),
    "packaging/arch/PKGBUILD": ("c-ares", "zlib", "openssl"),
    "packaging/conan/conanfile.py": ('"c-ares/', '"zlib/', '"openssl/'),
    "packaging/homebrew/spate.rb": ('"c-ares"', '"zlib"', '"openssl@3"'),
    "packaging/nix/package.nix": ("c-ares", "zlib", "openssl"),
    SPEC: ("c-ares-devel", "zlib-devel", "openssl-devel"),
    "packaging/vcpkg/spate/vcpkg.json": ('"c-ares"', '"zlib"', '"openssl"'),
}
# The drop-in libraries are built only where the headers of libev and libevent are installed.
OPTIONAL = ("lib/spate/",)
OTHERS = ("packaging/meson/spate.wrap", "packaging/vcpkg/spate/portfile.cmake", "debian/rules")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def installed(prefix):
    """Returns the installed files, with the directory of the libraries as `lib`."""
    found = []
    for directory, _, names in os.walk(prefix):
        place = os.path.relpath(directory, prefix)
        place = re.sub(r"^lib/[^/]+-linux-[^/]+", "lib", place)
        place = re.sub(r"^lib64", "lib", place)
        found += [os.path.join(place, name) for name in names]
    return sorted(found)


def patterns():
    """Returns the lines of the spec's %files sections, with the macros replaced."""
    lines = re.split(r"^%files.*$", read(SPEC), flags=re.MULTILINE)[1:]
    lines = [line for section in lines for line in section.split("\n")
             if line.startswith("%{")]
    return [re.sub(r"%\{(\w+)\}", lambda macro: DIRECTORIES[macro[1]], line) for line in lines]


def covers(pattern, name):
    """Returns whether a pattern names a file, or a directory above it."""
    parts, depth = name.split("/"), pattern.rstrip("/").count("/") + 1
    top = "/".join(parts[:depth])
    return fnmatch.fnmatchcase(top, pattern.rstrip("/")) and pattern.count("/") <= name.count("/")


def file_problems(prefix):
    files, listed = installed(prefix), patterns()
    for name in files:
        if not any(covers(pattern, name) for pattern in listed):
            yield f"{SPEC}: lists no {name}"
    for pattern in listed:
        if pattern not in OPTIONAL and not any(covers(pattern, name) for name in files):
            yield f"{SPEC}: {pattern}: nothing of that name is installed"


def option_problems():
    options = set(re.findall(r"^option\((\w+)", read("CMakeLists.txt"), re.MULTILINE))
    for name in (*NEEDS, *OTHERS):
        for option in sorted(set(re.findall(r"\b(SPATE_[A-Z]+)\b(?!_)", read(name))) - options):
            if not option.startswith("SPATE_VERSION") and option != "SPATE_COMPONENTS":
                yield f"{name}: there is no option {option}"


def need_problems():
    for name, needs in NEEDS.items():
        yield from (f"{name}: does not name {need}" for need in needs if need not in read(name))


def room_problems(prefix):
    modules = [os.path.basename(name) for name in installed(prefix) if name.endswith(".pc")]
    rooms = [re.sub(r"^spate-(.*)\.pc$", r"\1", name) for name in modules if name != "spate.pc"]
    recipe = read("packaging/conan/conanfile.py")
    yield from (f"packaging/conan/conanfile.py: has no component {room}"
                for room in rooms if f'"{room}"' not in recipe)
    for feature in json.loads(read("packaging/vcpkg/spate/vcpkg.json"))["features"]:
        if feature not in rooms:
            yield f"packaging/vcpkg/spate/vcpkg.json: there is no library {feature}"


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: recipes.py PREFIX")
    prefix = sys.argv[1]
    problems = [*file_problems(prefix), *option_problems(), *need_problems(),
                *room_problems(prefix)]
    print("\n".join(problems) or "recipes: packaging/ agrees with the installed tree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
