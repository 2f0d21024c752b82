"""Writes wheels and source distributions, for the build backends of both packages."""

import base64
import hashlib
import io
import os
import shutil
import sys
import sysconfig
import tarfile
import zipfile

EPOCH = (2020, 1, 1, 0, 0, 0)


def tag():
    """Returns pip's tag of this interpreter and machine."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    abi = python + getattr(sys, "abiflags", "")
    return f"{python}-{abi}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def check_tools(programs):
    """Raises an exception if a header of Python or a program is missing.

    `programs` is a dictionary: the name of each program, and how it is installed.
    """
    headers = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(headers, "Python.h")):
        raise RuntimeError(f"there is no Python.h in {headers}: on Debian, install python3-dev")
    for program, remedy in programs.items():
        if shutil.which(program) is None:
            raise RuntimeError(f"there is no {program}: {remedy}")


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(directory, stem, contents, information):
    """Writes a wheel. Returns its name.

    `stem` is the package's name and version, `contents` a dictionary of paths and bytes, and
    `information` one of names in .dist-info and texts.
    """
    name = f"{stem}-{tag()}.whl"
    info = f"{stem}.dist-info"
    described = information | {"WHEEL": "Wheel-Version: 1.0\nGenerator: spate\n"
                                        f"Root-Is-Purelib: false\nTag: {tag()}\n"}
    contents = contents | {f"{info}/{path}": text.encode() for path, text in described.items()}
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n"
                     for path, data in contents.items())
    contents[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def add_text(archive, name, text):
    entry = tarfile.TarInfo(name)
    entry.size = len(text.encode())
    archive.addfile(entry, io.BytesIO(text.encode()))
