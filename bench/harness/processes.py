"""Runs programs, and ends them together with everything that they started."""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

_sessions = set()  # of the programs that run now, in any thread
_is_stopped = False
KILL_TRIES = 1000


class TimedOut(Exception):
    """A program did not end in time. It was killed."""


class Stopped(Exception):
    """stop() was called. All programs were killed, and no other starts."""


def run(command, timeout_s=None, environment=None, core=None, directory=None):
    """Runs a program to its end and returns a CompletedProcess, with text.

    The program is kept on `core`, if that is given. Processes that it leaves behind are killed, and
    files in its TMPDIR are deleted.
    """
    with tempfile.TemporaryDirectory(prefix="spate-bench-", ignore_cleanup_errors=True) as files:
        return _run_within(files, command, timeout_s, environment, core, directory)


def _run_within(files, command, timeout_s, environment, core, directory):
    if _is_stopped:
        raise Stopped
    environment = {**(os.environ if environment is None else environment), "TMPDIR": files}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", env=environment, cwd=directory, start_new_session=True,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}))
    _sessions.add(process.pid)
    try:
        # A signal that arrived before the program was in the set has not killed it.
        printed, told = ("", "") if _is_stopped else process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TimedOut from None
    finally:
        kill_session(process.pid)
        process.wait()
        process.stdout.close()
        process.stderr.close()
        _sessions.discard(process.pid)
    if _is_stopped:
        raise Stopped
    return subprocess.CompletedProcess(command, process.returncode, printed, told)


def stop_on_signals():
    """Makes SIGINT and SIGTERM call stop()."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop())


def stop():
    """Kills the running programs. run() raises Stopped from now on, also where it waits on
    another thread."""
    global _is_stopped
    _is_stopped = True
    for session in list(_sessions):
        kill_session(session)


def kill_session(session):
    """Kills each process of a session, again and again: one may fork meanwhile."""
    for _ in range(KILL_TRIES):
        members = members_of(session)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def members_of(session):
    """Returns the processes of a session that have not ended."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = status.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # It ended just now.
            continue
        if int(its_session) == session and state not in "ZX":
            found.append(int(status.parent.name))
    return found
