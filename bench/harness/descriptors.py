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


def possible(workload, connections):
    """Returns the numbers of connections for which server and client may each open enough
    descriptors."""
    allowed = [n for n in connections if n + 100 <= most_descriptors()]
    for n in connections:
        if n not in allowed:
            say_left_out(workload, n)
    return allowed


@functools.cache
def say_left_out(workload, connections):
    """Prints the line once, however often the workload is made."""
    print(f"bench: {workload}: {connections:,} connections left out: they need "
          f"{connections + 100:,} file descriptors, and the hard limit is {most_descriptors():,} "
          "(ulimit -Hn)", file=sys.stderr)
