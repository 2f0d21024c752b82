"""Builds the contestants and lists those that exist."""
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from harness import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY_DIR = ROOT / "build" / "bench"
MANIFEST = BINARY_DIR / "bench" / "contestants.json"
DROPINS = BINARY_DIR / "compat" / "lib"


@dataclasses.dataclass(frozen=True)
class Contestant:
    workload: str
    name: str
    binary: str
    program: str  # what is measured: the binary itself, or the server that it starts
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
        if not workloads.is_twin(self.name):
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
        """Those of its libraries that a drop-in was built for."""
        return {name: path for name, path in self.libraries().items() if (DROPINS / name).exists()}

    def wrong_libraries(self):
        """Paths of libraries that are spate's and should not be, or should be and are not."""
        wanted = workloads.is_twin(self.name)
        return [path for path in self.replaceable().values()
                if (pathlib.Path(path).parent == DROPINS) != wanted]

    def twin(self):
        twin = dataclasses.replace(self, name=workloads.twin_of(self.name))
        if twin.left_out or twin.replaceable():
            return twin
        return dataclasses.replace(twin, left_out="spate's drop-in for it is not built")


def build():
    """Configures and builds the preset; its output is shown only when it fails."""
    nice = ["nice"] if shutil.which("nice") else []
    for command in (["cmake", "--preset", "bench"],
                    [*nice, "cmake", "--build", "--preset", "bench", "-j2"]):
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.stderr.write(done.stdout)
            raise SystemExit(f"bench: {' '.join(command)} failed")


def contestants():
    """All contestants of the last build, those left out included, in the order of the tables."""
    found = []
    for row in json.loads(MANIFEST.read_text()):
        variants = workloads.VARIANTS.get((row["workload"], row["contestant"]),
                                          {row["contestant"]: {}})
        for name, arguments in variants.items():
            reason = row["left_out"] or workloads.CANNOT.get((row["workload"], name), "")
            original = Contestant(row["workload"], name, row["binary"], row["program"],
                                  (*row["arguments"].items(), *arguments.items()), reason)
            found.append(original)
            if row["contestant"] in workloads.TWINNED.get(row["workload"], ()):
                found.append(original.twin())
    rank = {name: i for i, name in enumerate(workloads.ORDER)}
    return sorted(found, key=lambda c: (rank.get(c.name, len(rank)), c.name))
