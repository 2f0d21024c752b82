"""Which sizes this process may run: each connection and each socket pair needs descriptors."""
import functools
import resource
import sys


def most_descriptors():
    """How many a process may open: the hard limit, to which every program raises its own."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def larger_sizes():
    """Returns the published sizes beyond 9,900 pairs that the limit of descriptors allows."""
    return [pairs for pairs in (20000, 50000, 100000) if 2 * pairs + 100 <= most_descriptors()]


def possible(workload, connections, processes_of=lambda n: 1):
    """Returns the numbers of connections for which each process of the server and of the client may
    open enough descriptors."""
    needed = {n: n // processes_of(n) + 100 for n in connections}
    for n in connections:
        if needed[n] > most_descriptors():
            say_left_out(workload, n, needed[n])
    return [n for n in connections if needed[n] <= most_descriptors()]


@functools.cache
def say_left_out(workload, connections, needed):
    """Prints the line once, however often the workload is made."""
    print(f"bench: {workload}: {connections:,} connections left out: they need {needed:,} file "
          f"descriptors in a process, and the hard limit is {most_descriptors():,} (ulimit -Hn)",
          file=sys.stderr)
