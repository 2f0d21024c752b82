#!/usr/bin/env python3
"""Makes the packages for Python.   tools/python_package.py DIRECTORY [INTERPRETER]...

DIRECTORY gets for each package NAME-VERSION.tar.gz, with the library's source in it, and a wheel
for each interpreter; without arguments, for the one that runs this. Needs their headers, a compiler
of C++23, and the packages in bindings/python/server/README.md. Each wheel is built from the
unpacked .tar.gz, and is tried.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

BINDING = pathlib.Path(__file__).resolve().parents[1] / "bindings/python"
BUILD = "import sys, build_backend; print(build_backend.build_{}(sys.argv[1]))"
TRY_LOOP = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import spate
spate.run(asyncio.sleep(0.001))
print("runs on", sys.version.split()[0])
"""
TRY_SERVER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import spate_server

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": sys.version.split()[0].encode()})

async def main():
    server = spate_server.Server(spate_server.Config(None, port=0, lifespan="off"), app)
    await server.start()
    reader, writer = await asyncio.open_connection(*server.addresses[0])
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print("serves on", (await reader.read()).split()[-1].decode())
    await server.stop()

asyncio.run(main())
"""
# The folder of each package, that of the backend in its .tar.gz, and the program that tries it.
PACKAGES = ((BINDING, ".", TRY_LOOP),
            (BINDING / "server", "bindings/python/server", TRY_SERVER))


def build(interpreter, source, what, directory):
    done = subprocess.run([interpreter, "-B", "-c", BUILD.format(what), str(directory)], cwd=source,
                          check=True, stdout=subprocess.PIPE, text=True)
    return directory / done.stdout.split()[-1]


def try_wheel(interpreter, wheel, program, directory):
    unpacked = directory / wheel.stem
    shutil.unpack_archive(wheel, unpacked, "zip")
    done = subprocess.run([interpreter, "-B", "-c", program, str(unpacked)], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def make(folder, backend, program, interpreters, directory):
    archive = build(sys.executable, folder, "sdist", directory)
    print(archive, flush=True)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        with tarfile.open(archive) as sources:
            sources.extractall(work)
        source = work / archive.name.removesuffix(".tar.gz") / backend
        for interpreter in interpreters:
            wheel = build(interpreter, source, "wheel", directory)
            print(f"{wheel} {try_wheel(interpreter, wheel, program, work)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("interpreters", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    for folder, backend, program in PACKAGES:
        make(folder, backend, program, arguments.interpreters, directory)


if __name__ == "__main__":
    main()
