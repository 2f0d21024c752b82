#!/usr/bin/env python3
"""Tests a program of the docs by the commands that are shown with it.   console.py PROGRAM FILE

FILE has commands, each after "$ ", and the output of each. They run in one shell, in a new
directory in which ./NAME is the program; NAME is the first such name in the file. The command
"./NAME &" starts a server, and the next command runs when it listens at port 7000. If no command
names the program, it is started first. Ports 7000 and 7001 stand for free ones.

In the output, "..." stands for any text, and a line with only "..." for any lines.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import talk

END = "end of a command"


def commands(text):
    """[command, its output] of each."""
    found = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        elif found:
            found[-1][1] += line + "\n"
        elif line:
            raise ValueError(f"output before the first command: {line}")
    return [(command, output.strip("\n")) for command, output in found]


def matches(expected, output):
    """True if the output is as expected; "..." stands for anything."""
    pattern = re.escape(expected).replace(re.escape("\n...\n"), r"\n(?:.*\n)*?")
    pattern = pattern.replace(re.escape("\n..."), r"(?:\n.*)*").replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, output) is not None


def lacking(steps):
    """The first program of the commands that is not installed."""
    for command, _ in steps:
        for name in ("curl", "openssl"):
            if re.search(rf"\b{name} ", command) and shutil.which(name) is None:
                return name
    return None


class Shell:
    """A shell that runs one command after the other."""

    def __init__(self, directory, environment):
        self.process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=directory, env=environment, text=True, start_new_session=True)

    def run(self, command):
        """The output of a command, without the line break at its end."""
        self.process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{END}\\n'\n")
        self.process.stdin.flush()
        output = ""
        while not output.endswith(f"\n{END}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise EOFError(f"the shell ended in: {command}\n{output}")
            output += line
        return output[:-len(f"\n{END}\n")].replace("\r", "").removesuffix("\n")

    def stop_server(self):
        """Ends the server by SIGTERM; false if it did not end by that or with 0."""
        return self.run("kill -TERM $server; wait $server; echo $?").split("\n")[-1] in ("0", "143")

    def kill(self):
        """Ends the shell and all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def run(shell, steps, port, start):
    """The first difference between the commands' output and the expected output."""
    for command, expected in steps:
        output = shell.run(re.sub(r"\b700(\d)\b", lambda match: str(port + int(match[1])), command))
        if command == start:
            shell.run("server=$!")
            talk.connect(port, time.monotonic() + talk.PATIENCE).close()
        for offset in range(2):
            output = re.sub(rf"\b{port + offset}\b", str(7000 + offset), output)
        if not matches(expected, output):
            return f"$ {command}\nexpected:\n{expected}\nbut it printed:\n{output}"
    return None


def main(program, path):
    with open(path, encoding="utf-8") as file:
        steps = commands(file.read())
    missing = lacking(steps)
    if missing is not None:
        print(f"skipped: there is no {missing} (Debian: apt install {missing})")
        return 77
    name = re.search(r"\./(\w+)", "\n".join(command for command, _ in steps))
    name = name.group(1) if name else "server"
    start = f"./{name} &"
    if not any(f"./{name}" in command for command, _ in steps):
        steps.insert(0, (start, ""))
    port = talk.free_port()
    with tempfile.TemporaryDirectory() as directory:
        os.symlink(os.path.abspath(program), os.path.join(directory, name))
        shell = Shell(directory, dict(os.environ, SPATE_SAMPLE_PORT=str(port), LC_ALL="C"))
        timer = threading.Timer(4 * talk.PATIENCE, os.killpg,
                                (shell.process.pid, signal.SIGKILL))
        timer.start()
        try:
            problem = run(shell, steps, port, start)
            if any(command == start for command, _ in steps) and not shell.stop_server():
                problem = problem or "the server failed"
        finally:
            timer.cancel()
            shell.kill()
    print(problem or f"{len(steps)} commands printed the expected output")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
