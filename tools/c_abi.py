#!/usr/bin/env python3
"""Checks the binary interface of C.   tools/c_abi.py [--record] [--root ROOT]

Compares the headers of C, as a compiler lays them out, with the record in tests/c/abi.txt: the size
of each struct, the place and size of each member, the value of each constant, the type of each
function. A recorded line must neither change nor disappear, since compiled programs depend on it;
--record adds new lines. Structs that begin with their size may grow.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ("spate.h", "spate_net.h", "spate_tls.h")
RECORD = "tests/c/abi.txt"
FUNCTION = re.compile(r"^SPATE_API ([^;]*?)(\w+)\(([^;]*)\);", re.M | re.S)
STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{(.*?)^\}", re.M | re.S)
ENUM = re.compile(r"^(?:typedef )?enum(?: \w+)? \{(.*?)^\}", re.M | re.S)
MACRO = re.compile(r"^#define (SPATE_\w+) UINT32_C", re.M)
CALLBACK = re.compile(r"^typedef ([^;(]*?)(\w+_fn)\(([^;]*)\);", re.M | re.S)


def code_of(root):
    texts = []
    for header in HEADERS:
        with open(os.path.join(root, "include", header), encoding="utf-8") as file:
            texts.append(re.sub(r"//[^\n]*", "", file.read()))
    return "\n".join(texts)


def flat(text):
    return " ".join(text.split())


def members(body):
    """The names that a struct's body declares."""
    for declaration in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        if pointer:
            yield pointer.group(1)
            continue
        for name in re.findall(r"(\w+)(?:\[\w+\])?(?=\s*(?:,|$))", flat(declaration)):
            yield name


def may_grow(body):
    """Whether a struct begins with its size, and so may get more members at its end."""
    return body.split(";")[0].split() == ["size_t", "size"]


def probe(code):
    """Returns a program that prints a line for each layout or value that the compiler
    determines."""
    yield from ("#include <stdio.h>", "#include <stddef.h>")
    yield from (f"#include <{header}>" for header in HEADERS)
    yield "int main(void) {"
    for name, body in STRUCT.findall(code):
        if not may_grow(body):
            yield f'printf("struct {name} size %zu align %zu\\n", sizeof(struct {name}),'
            yield f"_Alignof(struct {name}));"
        for member in members(body):
            yield f'printf("struct {name} {member} at %zu size %zu\\n",'
            yield f"offsetof(struct {name}, {member}), sizeof(((struct {name}*)0)->{member}));"
    for body in ENUM.findall(code):
        for name in re.findall(r"\b(SPATE_\w+)", body):
            yield f'printf("constant {name} %lld\\n", (long long){name});'
    for name in MACRO.findall(code):
        yield f'printf("constant {name} %lld\\n", (long long){name});'
    yield "return 0; }"


def laid_out(root, code, compiler):
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "probe")
        subprocess.run([compiler, "-std=c11", "-x", "c", "-", "-I", os.path.join(root, "include"),
                        "-o", program], input="\n".join(probe(code)), text=True, check=True)
        return subprocess.run([program], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.splitlines()


def described(root, compiler):
    """Lines that begin with the key of the thing described, sorted."""
    code = code_of(root)
    lines = laid_out(root, code, compiler)
    lines += [f"function {name}: {flat(result)} ({flat(parameters)})"
              for result, name, parameters in FUNCTION.findall(code)]
    lines += [f"callback {name}: {flat(result)} ({flat(parameters)})"
              for result, name, parameters in CALLBACK.findall(code)]
    return sorted(lines)


def exported(libraries):
    """The C functions of shared libraries, with their versions."""
    listed = subprocess.run(["nm", "--dynamic", "--defined-only", *libraries],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(re.findall(r" T (spate_\w+)@@(\w+)", listed))


def compare(recorded, found):
    yield from (f"changed or gone: {line}" for line in recorded if line not in found)
    yield from (f"new, record it by --record: {line}" for line in found if line not in recorded)


def check_libraries(libraries, found):
    names = {line.split()[1].rstrip(":") for line in found if line.startswith("function ")}
    versions = exported(libraries)
    yield from (f"no library exports {name}" for name in sorted(names - versions.keys()))
    yield from (f"{name} is of {version}, not SPATE_C_1"
                for name, version in sorted(versions.items()) if version != "SPATE_C_1")
    yield from (f"{name} is exported, and no header declares it"
                for name in sorted(versions.keys() - names))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--library", action="append", default=[],
                        help="a shared library, whose symbols are compared, too")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    options = parser.parse_args(arguments)
    record = os.path.join(options.root, RECORD)
    found = described(options.root, options.compiler)
    recorded = []
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            recorded = file.read().splitlines()
    if options.record:
        with open(record, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(set(recorded) | set(found))) + "\n")
        return 0
    problems = list(compare(recorded, found))
    if options.library:
        problems += check_libraries(options.library, found)
    for problem in problems:
        print(f"c_abi: {problem}")
    print(f"c_abi: {len(found)} lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
