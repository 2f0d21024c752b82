"""Builds the contestants and lists those that exist."""
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

from harness import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY_DIR = ROOT / "build" / "bench"
MANIFEST = BINARY_DIR / "bench" / "contestants.json"


@dataclasses.dataclass(frozen=True)
class Contestant:
    workload: str
    name: str
    binary: str
    arguments: tuple  # ((name, value), ...) beside those of the case
    left_out: str  # why it is not built, or ""

    def command(self, params):
        words = [self.binary]
        for name, value in (*params.items(), *self.arguments):
            words += [f"--{name}", str(value)]
        return words


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
            found.append(Contestant(row["workload"], name, row["binary"],
                                    tuple(arguments.items()), row["left_out"]))
    rank = {name: i for i, name in enumerate(workloads.ORDER)}
    return sorted(found, key=lambda c: (rank.get(c.name, len(rank)), c.name))
