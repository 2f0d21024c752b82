"""Shared by the checkers of this directory: the list of files, and C++ without its comments."""

import os
import re
import subprocess
import sys

SKIPPED_DIRECTORIES = {"build", ".git", "__pycache__"}

# Comments, strings and characters; 1'000 is one number and no character.
TOKEN = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*|/\*.*?(?:\*/|\Z)"""
    r"""|(?<!\w)R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)\""""
    r'''|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+\'''',
    re.DOTALL,
)


def files(root):
    """The project's files, relative to its root: tracked or not, but not the ignored ones."""
    if os.path.exists(os.path.join(root, ".git")):
        git = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if git.returncode == 0:
            names = git.stdout.decode("utf-8", "surrogateescape").split("\0")
            return sorted({n for n in names if n and os.path.isfile(os.path.join(root, n))})
    found = []
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [d for d in subdirectories if d not in SKIPPED_DIRECTORIES]
        found += [os.path.relpath(os.path.join(directory, n), root) for n in names]
    return sorted(found)


def read(root, name):
    """A file's text, or None if it is no text."""
    with open(os.path.join(root, name), "rb") as file:
        data = file.read()
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def blank(text, strings=True):
    """C++ with its comments and strings replaced by blanks; lines stay where they are."""
    def replace(match):
        token = match.group()
        if not strings and not token.startswith("/"):
            return token
        return re.sub(r"[^\n]", " ", token)
    return TOKEN.sub(replace, text)


def is_test(name):
    """Tests, and their helpers, need not follow the rules of the library."""
    return name.startswith("tests/") or "_test." in name or "/testing/" in name


def root_from(arguments):
    """The one optional argument of a checker: the root of the tree, by default this project's."""
    if len(arguments) > 2 or (len(arguments) == 2 and arguments[1].startswith("-")):
        sys.exit(f"usage: {arguments[0]} [root of the tree]")
    root = arguments[1] if len(arguments) == 2 else os.path.join(os.path.dirname(__file__), "..")
    if not os.path.isdir(root):
        sys.exit(f"{arguments[0]}: {root} is no directory")
    return os.path.abspath(root)


def finish(tool, problems, count):
    """Prints the problems and the verdict; the result is the exit code."""
    for problem in problems:
        print(problem)
    print(f"{tool}: {count} files, {len(problems)} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0
