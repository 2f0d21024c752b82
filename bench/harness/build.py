"""Builds the contestants and lists those that exist."""
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from harness import processes
from harness.contestants import CANNOT, ORDER, TWINNED, VARIANTS, is_twin, twin_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY_DIR = ROOT / "build" / "bench"
MANIFEST = BINARY_DIR / "bench" / "contestants.json"
DROPINS = BINARY_DIR / "compat" / "lib"


@dataclasses.dataclass(frozen=True)
class Contestant:
    workload: str
    name: str
    binary: str
    program: str  # the program measured: the binary itself, or the server that it starts
    arguments: tuple  # ((name, value), ...) beside those of the case
    left_out: str  # why it is not built, or ""

    def command(self, params, under=()):
        """The words to start it with; `under`: those of a tool that is to run the program."""
        starts_server = self.program != self.binary
        words = [self.binary] if starts_server else [*under, self.binary]
        for name, value in (*params.items(), *self.arguments):
            words += [f"--{name}", str(value)]
        return [*words, "--under", shlex.join(under)] if starts_server and under else words

    @property
    def environment(self):
        if not is_twin(self.name):
            return dict(os.environ)
        paths = [str(DROPINS), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths)}

    def libraries(self):
        """The shared objects that the dynamic linker gives the program, by name; ldd runs none that
        has no use for them."""
        done = subprocess.run(["ldd", self.program], text=True, capture_output=True, check=False,
                              env=self.environment)
        return dict(re.findall(r"^\s*(\S+) => (/.*) \(0x", done.stdout, re.MULTILINE))

    def replaceable(self):
        """Returns those of its libraries that a drop-in was built for."""
        return {name: path for name, path in self.libraries().items() if (DROPINS / name).exists()}

    def wrong_libraries(self):
        """Paths of libraries that are spate's and should not be, or should be and are not."""
        wanted = is_twin(self.name)
        return [path for path in self.replaceable().values()
                if (pathlib.Path(path).parent == DROPINS) != wanted]

    def twin(self):
        """Returns this contestant on spate's drop-in. It counts as available until it is built."""
        twin = dataclasses.replace(self, name=twin_of(self.name))
        if twin.left_out or not os.path.exists(self.program) or twin.replaceable():
            return twin
        return dataclasses.replace(twin, left_out="spate's drop-in for it is not built")


class BuildFailed(Exception):
    """The build cannot be configured: the message has the output."""


def configure():
    """Configures the preset, and with it writes the manifest."""
    done = run("cmake", "--preset", "bench")
    if done.returncode != 0:
        raise BuildFailed(f"{done.stdout}{done.stderr}\ncmake --preset bench failed")


def build(workload):
    """Builds the programs of the workload, except those that do not compile.

    Returns "", or the output if something failed. Nothing is built while something is timed.
    """
    nice = ["nice"] if shutil.which("nice") else []
    targets = [f"bench_of_{workload}"]
    if workload in TWINNED:
        targets.append("bench_dropins")
    done = run(*nice, "cmake", "--build", "--preset", "bench", "-j",
               str(len(os.sched_getaffinity(0))), "--target", *targets, "--", "-k", "0")
    return "" if done.returncode == 0 else done.stdout + done.stderr


def can_be_built(contestant):
    """Builds a contestant's programs alone, and the drop-ins for a twin: whether that succeeds."""
    files = [str(path.relative_to(BINARY_DIR))
             for path in map(pathlib.Path, (contestant.binary, contestant.program))
             if path.is_relative_to(BINARY_DIR)]
    if is_twin(contestant.name):
        files.append("bench_dropins")
    return not files or run("ninja", "-C", str(BINARY_DIR), *files).returncode == 0


def run(*command):
    try:
        return processes.run(command, directory=ROOT)
    except FileNotFoundError:
        raise BuildFailed(f"there is no {command[0]}; `tools/setup bench` installs it") from None


class UnknownContestant(Exception):
    """An unknown contestant was requested."""


def chosen(names, only=frozenset()):
    """Returns the contestants of these workloads, by workload; of those named in `only`, if any."""
    found = [c for c in contestants() if not only or c.name in only]
    return {name: [c for c in found if c.workload == name] for name in names}


def check_names(names, only):
    """Raises UnknownContestant unless each of `only` is a contestant of one of these workloads."""
    existing = {c.name for found in chosen(names).values() for c in found}
    if unknown := only - existing:
        raise UnknownContestant(f"no contestant {', '.join(sorted(unknown))}; there are "
                                f"{', '.join(sorted(existing))}")


def contestants():
    """All contestants of the last build, those left out included, in the order of the tables."""
    found = []
    for row in json.loads(MANIFEST.read_text()):
        variants = VARIANTS.get((row["workload"], row["contestant"]),
                                          {row["contestant"]: {}})
        for name, arguments in variants.items():
            reason = row["left_out"] or CANNOT.get((row["workload"], name), "")
            original = Contestant(row["workload"], name, row["binary"], row["program"],
                                  (*row["arguments"].items(), *arguments.items()), reason)
            found.append(original)
            if row["contestant"] in TWINNED.get(row["workload"], ()):
                found.append(original.twin())
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(found, key=lambda c: (rank.get(c.name, len(rank)), c.name))
