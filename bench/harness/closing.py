"""The last lines of a run, in words: the results, those that are missing, and the next step."""
import collections
import re

from harness import absences
from harness.schedule import in_words

PACKAGE = re.compile(r"(\S+) is not installed")
OPTION = re.compile(r"it has no package, and (\S+) names no installed copy")


def lines(results, elapsed_s, build_s, report, samples, end=""):
    """Yields the lines. `report` and `samples` are the files that were written.

    `end` says why the run ended early, if it did.
    """
    names = {name for workload in results.workloads() for name in results.contestants(workload)}
    if end:
        yield f"{end} What was measured until then is kept."
    counted = len({workload for workload, _, _, _ in results.counts})
    parts = [f"the times of {count(len(results.workloads()), 'workload')} with "
             f"{count(len(names), 'contestant')}"] if names else []
    parts += [f"instructions and system calls of {count(counted, 'workload')}"] if counted else []
    yield (f"Measured: {' and '.join(parts) or 'nothing'}. It took {in_words(elapsed_s)}, "
           f"{in_words(build_s)} of it for the build.")
    yield from left_out(results)
    holes = results.holes()
    if holes:
        yield f"Failed: {count(len(holes), 'result')} that should be here:"
        yield from (f"  {a.where}: {a.kind}: {a.reason}" for a in holes)
    late = list(dict.fromkeys(a.workload for a in results.absences if a.kind == absences.LATER))
    if late:
        yield "No time was left for all counts. These run them, and keep those that there are:"
        yield f"  bench/run --quick --only-counts {' '.join(late)}"
    yield f"Samples: {samples}"
    yield f"Report: {report}"
    yield ("Next: open the report in a browser. `bench/run --quick fd timers` measures single "
           "workloads, `bench/run` all sizes of all.")


def count(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")


def left_out(results):
    """Yields the contestants that were left out, with the commands that enable them."""
    packages, options = collections.defaultdict(set), collections.defaultdict(set)
    others = collections.defaultdict(set)
    for a in results.absences:
        if a.kind != absences.LEFT_OUT:
            continue
        name = a.contestant.removesuffix("_on_spate")
        if found := PACKAGE.fullmatch(a.reason):
            packages[found[1]].add(name)
        elif found := OPTION.fullmatch(a.reason):
            options[found[1]].add(name)
        else:
            others[a.reason].add(f"{a.workload}/{name}")
    if packages:
        yield f"Left out, not installed: {listed(set.union(*packages.values()))}. To enable:"
        yield f"  apt-get install --no-install-recommends {' '.join(sorted(packages))}"
        yield "  (Debian starts servers, such as nginx, as soon as they are installed.)"
    if options:
        yield f"Left out, in no package: {listed(set.union(*options.values()))}. To enable:"
        yield f"  cmake --preset bench {' '.join(f'-D{name}=<prefix>' for name in sorted(options))}"
    for reason, who in others.items():
        yield f"Left out, {listed(who)}: {reason}"


def listed(names):
    return ", ".join(sorted(names))
