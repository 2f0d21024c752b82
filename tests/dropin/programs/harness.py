"""Runs Debian's own programs on the drop-in libraries, or on the originals.

A test is a file beside this one:

    import harness

    def test(run):
        harness.need("nghttpd")
        port = harness.free_port()
        server = run.start("nghttpd", "--no-tls", port)
        server.wait_tcp(port)
        ...
        harness.check(answer == expected, f"got {answer!r}")

    if __name__ == "__main__":
        harness.main(test, library="libev.so.4")

    test.py --mode original                                    on the installed library
    test.py --mode dropin --lib-dir DIR                        on ours
    test.py --mode faults --lib-dir DIR --weather FILE.so      on ours, with calls that fail

`original` takes --weather too: what a program cannot stand on the original library either says
nothing about ours. Such a program gets milder weather, Weather(...) in its start(), and the reason
stands beside it.

Everything that a test starts gets a private directory, its output is shown when the test fails,
and all of it is ended when the test ends, whatever happened.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import fcntl
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir,
                                "support"))
import missing  # pylint: disable=wrong-import-position
from ports import free_port  # pylint: disable=wrong-import-position

ANSWER_SECONDS = 60  # How long a program may take to open its port.
CALL_SECONDS = 100  # How long a program may run that is to end by itself.
STOP_SECONDS = 20  # Between SIGTERM and SIGKILL, at the end of a test.
TEST_SECONDS = 110  # A little less than ctest's limit, so that the outputs are still shown.
PAUSE_SECONDS = 0.02
SHOWN_BYTES = 3000  # Of each output, from its end.
SHOWN_LATEST = 5
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """The test has failed; the message gives the reason."""


class Skip(Exception):
    """The test cannot run here; the message says why."""


@dataclasses.dataclass
class Weather:
    """The effect of the preload library on a program: tests/dropin/weather/weather.cc."""
    share: float = 0.05  # Share of the calls that fail.
    kinds: str = "again,interrupt,short"
    calls: str = "in,out,accept"
    least: int = 0  # Calls that send fewer bytes are left alone.
    least_read: int = 1  # A short read may still return as many bytes.
    local: bool = True  # Also pipes and Unix sockets, which connect a program's own processes.


def check(truth, message):
    if not truth:
        raise Failure(message)


def need(*programs):
    """Skips the test if a program is not installed, or cannot be made to use our library."""
    for program in programs:
        path = shutil.which(program, path=search_path())
        if path is None:
            raise Skip(missing.not_installed(program))
        if not is_root() and has_privileges(path):
            raise Skip(f"{program} is setuid or has capabilities: run as root")


def has_privileges(path):
    """Then the loader does not look at LD_LIBRARY_PATH."""
    return (os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID) != 0
            or "security.capability" in os.listxattr(path))


def search_path():
    """Servers are in the sbin directories, which a normal user's PATH may lack."""
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def program_path(name):
    path = shutil.which(str(name), path=search_path())
    check(path is not None, f"{name} is not installed")
    return path


def is_root():
    return os.geteuid() == 0


def libev(backend):
    """The environment in which libev programs choose that backend. LIBEV_FLAGS: ev(3)."""
    return {"LIBEV_FLAGS": str({"select": 1, "poll": 2, "epoll": 4, "io_uring": 128}[backend])}


@contextlib.contextmanager
def alone(name):
    """Holds the lock `name`, which excludes all other processes."""
    path = os.path.join(tempfile.gettempdir(), f"spate-{os.getuid()}-{name}.lock")
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wait_until(condition, what, seconds=ANSWER_SECONDS, alive=None):
    """The first true value of condition(); fails after the deadline or when `alive` ends."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if alive is not None and alive.status() is not None:
            raise Failure(f"{alive.name} ended with {alive.status()} before {what}")
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds} s for {what}")
        time.sleep(PAUSE_SECONDS)


def answers(family, address):
    with socket.socket(family) as probe:
        probe.settimeout(1)
        try:
            probe.connect(address)
        except OSError:
            return False
        return True


def is_bound(port):
    """Returns whether the UDP port of 127.0.0.1 is bound: connecting to it cannot show this."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Program:
    """A running program, in a separate process group."""

    def __init__(self, run, name, command, environment, user, cwd, stdin, pass_fds):
        self.run = run
        self.name = name
        number = len(run.programs)
        self.output_path = run.path(f"{number}.{name}.output")
        self.weather_path = environment.get("WEATHER_REPORT")
        as_user = user and {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
        with open(self.output_path, "wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=cwd or run.directory, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent,
                stdin=subprocess.DEVNULL if stdin is None else stdin, pass_fds=pass_fds,
                **(as_user or {}))
        self.pid = self.process.pid

    def output(self):
        """Returns its whole output until now."""
        return self.output_bytes().decode("utf-8", "replace")

    def output_bytes(self):
        with open(self.output_path, "rb") as file:
            return file.read()

    def status(self):
        """Its exit status (negative: the signal that ended it), or None while it runs."""
        if self.process.returncode is None and self._has_ended():
            self._reap()
        return self.process.returncode

    def _has_ended(self):
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def _reap(self):
        """Kills the rest of its group, whose ID cannot be reused until the program is reaped."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()

    def kill(self, number):
        """Sends a signal to the program alone, but not before the program handles that signal.

        A server may listen, and a client connect, before it installs its handlers.
        """
        if number != signal.SIGKILL:
            self.wait_for(lambda: handles(self.pid, number),
                          f"it handles {signal.Signals(number).name}")
        self._send(number)

    def _send(self, number):
        check(self.status() is None, f"{self.name} has ended with {self.status()}")
        os.kill(self.pid, number)

    def wait(self, status=0, seconds=CALL_SECONDS):
        """Waits for its end and returns its output. `status`: the expected one; None for any."""
        wait_until(lambda: self.status() is not None, f"{self.name} to end", seconds)
        check(status is None or self.status() == status,
              f"{self.name} ended with {self.status()}, not {status}")
        return self.output()

    def stop(self, status=None, seconds=CALL_SECONDS):
        """SIGTERM and its end; `status` as in wait(). Fails if the program does not obey."""
        send = self.kill if status == 0 else self._send
        send(signal.SIGTERM)
        return self.wait(status, seconds)

    def end(self):
        """Ends it with the test: SIGTERM, then SIGKILL after a while, without an error."""
        if self.status() is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                self.wait(None, STOP_SECONDS)
            except Failure:
                self._reap()

    def wait_tcp(self, port, host="127.0.0.1", seconds=ANSWER_SECONDS):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.wait_for(lambda: answers(family, (host, int(port))), f"port {port}", seconds)

    def wait_udp(self, port, seconds=ANSWER_SECONDS):
        self.wait_for(lambda: is_bound(int(port)), f"UDP port {port}", seconds)

    def wait_unix(self, path, seconds=ANSWER_SECONDS):
        self.wait_for(lambda: answers(socket.AF_UNIX, path), path, seconds)

    def wait_output(self, text, seconds=ANSWER_SECONDS):
        self.wait_for(lambda: text in self.output(), f"{text!r} from {self.name}", seconds)

    def wait_for(self, condition, what, seconds=ANSWER_SECONDS):
        """As wait_until(), but fails at once if the program ends."""
        return wait_until(condition, what, seconds, self)

    def assert_uses(self, library=None, seconds=ANSWER_SECONDS):
        """It has mapped the library that this mode means, and no other of that name."""
        library = library or self.run.library
        self.wait_for(lambda: self.run.mapped(library, self.pid), f"{library} is mapped", seconds)
        self.run.check_mapped(library, self.run.mapped(library, self.pid))

    def weather(self):
        """Returns the number of failed calls of it and its children: {"again": .., "interrupt":
        .., "short": ..}."""
        return read_weather(self.weather_path)


def handles(pid, number):
    """Returns whether the process catches the signal, or blocks it to read it from a descriptor."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        masks = re.findall(r"^Sig(?:Blk|Cgt):\s*(\w+)", file.read(), re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def mapped_files(pid):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return set()
    return {line.split(maxsplit=5)[5] for line in lines if line.count("/")}


def stem(library):
    """libev for libev.so.4; libevent for all of the libraries of libevent but that of OpenSSL."""
    name = re.split("[-.]", os.path.basename(library))[0]
    return re.sub("_(core|extra|pthreads)$", "", name)


def read_weather(path):
    names = ("calls", "again", "interrupt", "short")
    try:
        with open(path, "rb") as file:
            data = file.read(8 * len(names))
    except (FileNotFoundError, TypeError):
        data = b""
    numbers = struct.unpack(f"{len(names)}Q", data.ljust(8 * len(names), b"\0"))
    return dict(zip(names, numbers))


def sum_weather(programs):
    total = {}
    for program in programs:
        for name, count in program.weather().items():
            total[name] = total.get(name, 0) + count
    return total


class Run:
    """One run of one test: its mode, its directory, and its programs."""

    def __init__(self, arguments, library, has_traffic):
        self.has_traffic = has_traffic
        self.mode = arguments.mode
        self.weather_library = arguments.weather
        self.seed = arguments.seed
        self.only = arguments.only
        given = {"share": arguments.share, "kinds": arguments.kinds, "calls": arguments.calls}
        self.overrides = {name: value for name, value in given.items() if value is not None}
        self.library = library
        self.programs = []
        if self.mode != "original" and not os.path.exists(f"{arguments.lib_dir}/{library}"):
            raise Skip(f"{library} was not built (package libev-dev or libevent-dev)")
        self.directory = tempfile.mkdtemp(prefix="spate_")
        if is_root():
            os.chmod(self.directory, 0o777)  # Some of the programs drop root's privileges.
        self.lib_dir = None if self.mode == "original" else self._public(arguments.lib_dir)
        self.faults = self.file("faults", "", 0o666)
        if self.weather_library:
            self.weather_library = shutil.copy(self.weather_library, self.directory)

    def _public(self, lib_dir):
        """A copy: the build directory may be out of reach of the user that a program becomes."""
        copy = os.path.join(self.directory, "lib")
        return shutil.copytree(lib_dir, copy, symlinks=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def file(self, name, data, mode=0o644):
        """Writes a file into the private directory; the result is its path."""
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        os.chmod(path, mode)
        return path

    def start(self, name, *arguments, dropin=True, weather=None, user=None, env=None, cwd=None,
              stdin=None, pass_fds=()):
        """Starts a program; only from the test's own thread, since its programs end with that.

        dropin=False: one that only helps the test; it runs on the originals, without faults.
        weather: milder than the mode's, with the reason in a comment; weather=False for none. user:
        the user to run as, if the test runs as root.
        """
        environment = self.environment(weather) if dropin else self.plain_environment()
        environment.update(env or {})
        command = [program_path(name), *map(str, arguments)]
        name = os.path.basename(str(name))
        program = Program(self, name, command, environment, user if is_root() else None,
                          cwd, stdin, pass_fds)
        self.programs.append(program)
        return program

    def call(self, name, *arguments, status=0, seconds=CALL_SECONDS, **how):
        """Runs a program to its end, and checks its status. Returns its output."""
        return self.start(name, *arguments, **how).wait(status, seconds)

    def plain_environment(self):
        environment = dict(os.environ, PATH=search_path(), LC_ALL="C.UTF-8",
                           HOME=self.directory, TMPDIR=self.directory)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "http_proxy", "all_proxy"):
            environment.pop(name, None)
        return environment

    def environment(self, weather=None):
        """Returns the environment for a program in this mode."""
        environment = self.plain_environment()
        if self.lib_dir:
            environment["LD_LIBRARY_PATH"] = self.lib_dir
        if self.mode == "faults":
            environment["SPATE_FAULT_SEED"] = self.program_seed()
            environment["SPATE_FAULT_REPORT"] = self.faults
        if self.weather_library and weather is not False:
            environment.update(self.weather_variables(weather or Weather()))
        return environment

    def program_seed(self):
        """Another one for each program: short ones would all meet the same."""
        return str(1000 * self.seed + len(self.programs))

    def weather_variables(self, weather):
        weather = dataclasses.replace(weather, **self.overrides)
        report = self.file(f"{len(self.programs)}.weather", bytes(32), 0o666)
        return {"LD_PRELOAD": self.weather_library, "WEATHER_REPORT": report,
                "WEATHER_SEED": self.program_seed(), "WEATHER_SHARE": str(weather.share),
                "WEATHER_KINDS": weather.kinds, "WEATHER_CALLS": weather.calls,
                "WEATHER_LEAST": str(weather.least), "WEATHER_LEAST_READ": str(weather.least_read),
                "WEATHER_LOCAL": str(int(weather.local))}

    def mapped(self, library, pid):
        prefix = stem(library)
        return {file for file in mapped_files(pid) if stem(file) == prefix and ".so" in file}

    def check_mapped(self, library, files):
        """`files` are the expected library's, and only that one's."""
        if self.lib_dir:
            wanted = os.path.realpath(os.path.join(self.lib_dir, library))
            check(files == {wanted}, f"{wanted} is expected, not {sorted(files)}")
        else:
            wrong = [file for file in files if not file.startswith(("/usr/lib/", "/lib/"))]
            check(files and not wrong, f"the system's {library} is expected, not {sorted(files)}")

    def assert_uses(self, pid, library=None):
        """As Program.assert_uses(), for a process that some program started."""
        library = library or self.library
        wait_until(lambda: self.mapped(library, pid), f"{library} is mapped by {pid}")
        self.check_mapped(library, self.mapped(library, pid))

    def fault_counts(self):
        """{call: [how often made, how often made to fail]} by the programs that have exited."""
        counts = {}
        with open(self.faults, encoding="ascii") as file:
            lines = file.read().splitlines()
        for line in lines:
            name, calls, failures = line.split()
            entry = counts.setdefault(name, [0, 0])
            entry[0] += int(calls)
            entry[1] += int(failures)
        return counts

    def end_programs(self, first=0):
        for program in reversed(self.programs[first:]):
            program.end()

    def check_faults(self):
        """Faults that did not happen have tested nothing."""
        if self.weather_library and self.has_traffic:
            weather = sum_weather(self.programs)
            print("weather:", ", ".join(f"{name} {count}" for name, count in weather.items()))
            check(sum(weather.values()) > weather["calls"], "there was no weather at all")
        if self.mode == "faults":
            counts = self.fault_counts()
            print("faults:", ", ".join(f"{n} {f}/{c}" for n, (c, f) in sorted(counts.items())))
            check(counts, "no program reported that the fault plan was asked")

    def show(self):
        """Prints the last lines of the programs that failed or still run, and of the latest ones.

        A test that polls starts hundreds of programs, and all of these succeed.
        """
        latest = self.programs[-SHOWN_LATEST:]
        for program in self.programs:
            if program.status() == 0 and program not in latest:
                continue
            print(f"--- {program.name}, status {program.status()}\n{shown(program)}".rstrip())


def shown(program):
    data = program.output_bytes()
    text = data[-SHOWN_BYTES:].decode("utf-8", "replace")
    if "\ufffd" not in text and "\0" not in text:
        return text
    return f"({len(data)} bytes)" if len(data) > 1000 else repr(data)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("original", "dropin", "faults"), required=True)
    parser.add_argument("--lib-dir", help="the directory of the drop-in libraries")
    parser.add_argument("--weather", help="the preload library that makes system calls fail")
    parser.add_argument("--share", type=float, help="how many of the calls, 0 to 1")
    parser.add_argument("--kinds", help="of again,interrupt,short: these only, for every program")
    parser.add_argument("--calls", help="of in,out,accept: these only, for every program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="NAME", help="this row of a test that is a table")
    parser.add_argument("--keep", action="store_true", help="keep the private directory")
    arguments = parser.parse_args()
    if arguments.mode != "original" and not arguments.lib_dir:
        parser.error("--lib-dir is needed")
    if arguments.mode == "faults" and not arguments.weather:
        parser.error("--weather is needed")
    return arguments


def interrupted(number, _):
    raise Failure("the test takes too long" if number == signal.SIGALRM
                  else f"the test was ended by {signal.Signals(number).name}")


def execute(run, test):
    try:
        try:
            test(run)
        finally:
            signal.alarm(0)
            run.end_programs()
        run.check_faults()
    except Skip:
        raise
    except BaseException as failure:
        report(failure, run)
        sys.exit(1)


def report(failure, run):
    """The reason comes first: a summary of many tests has only the first lines of each."""
    print("failed:", failure if isinstance(failure, Failure) else repr(failure))
    traceback.print_tb(failure.__traceback__, file=sys.stdout)
    run.show()


def main(test, library, has_traffic=True):
    """Runs test(run) and exits: 0, 1 or missing.SKIPPED.

    library: the drop-in library that the programs use. has_traffic=False: no program has a socket
    or pipe that the weather affects.
    """
    arguments = parse()
    run = None
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, interrupted)
    signal.alarm(TEST_SECONDS)
    try:
        run = Run(arguments, library, has_traffic)
        execute(run, test)
        print("passed")
    except Skip as skip:
        print(skip)
        sys.exit(missing.SKIPPED)
    finally:
        if run is not None and not arguments.keep:
            shutil.rmtree(run.directory, ignore_errors=True)
        elif run is not None:
            print(f"kept: {run.directory}")
