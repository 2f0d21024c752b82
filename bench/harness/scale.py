"""`scale`: the workloads that show how the cost of a unit grows."""
from harness.descriptors import possible
from harness.workload import SCALE_KINDS, Case, Count, Workload

# The sizes of `scale`: --quick has the smaller ones.
SIZES = {
    "connections": ([1, 100, 1000], [1, 10, 100, 1000, 10000, 97500]),
    "subscribers": ([10, 1000], [10, 100, 1000, 10000, 97500]),
    "pending": ([1000, 100000], [1000, 10000, 100000, 1000000, 10000000]),
    "files": ([10, 1000], [10, 100, 1000, 10000, 100000]),
}
COUNTED = ([100, 1000], [100, 1000, 8000])
MOST_PROCESSES = 5  # for the greatest number of connections


def processes(connections):
    return MOST_PROCESSES if connections > 10000 else 1


def series(axis, operation, sizes, shorter, longer):
    """Returns the counts of one operation at several sizes."""
    found = []
    for n in sizes:
        found.append(Count(f"{operation}, {n:,} {axis}", operation, shorter(n), longer(n),
                           series=operation, axis=axis, size=n))
    return found


def connections(kind):
    """Connections that are idle, a hundredth active, and all active, over one protocol."""
    name = f"scale_{kind}"

    def workload(quick):
        def case(n, **more):
            return Case({"connections": n, "processes": processes(n), "kind": kind, **more},
                        most_repeats=3 if quick or n <= 10000 else 1, timeout_s=900,
                        hidden=("processes", "kind", "milliseconds", "rest_ms", "requests",
                                "verify"))

        sizes = possible(name, SIZES["connections"][not quick], processes)
        cases = [case(n, milliseconds=40 if quick else 500, rest_ms=20 if quick else 2500)
                 for n in sizes]
        check = [case(n, requests=200, verify=1, rest_ms=0) for n in (7, 100)]

        def counted(n, requests):
            return {"connections": n, "kind": kind, "rest_ms": 0, "requests": requests}

        sizes = possible(name, COUNTED[not quick])
        if kind == "tls":  # A handshake takes millions of instructions.
            sizes = [10, 100] if quick else sizes[:2]
        counts = series("connections", "request", sizes, lambda n: counted(n, n),
                        lambda n: counted(n, 3 * n))
        if not quick:
            counts += series("connections", "connection", sizes, lambda n: counted(n // 2, 1),
                             lambda n: counted(n, 1))
        return Workload(name, cases, check, counts, pinned=False)
    return workload


def topics(quick):
    """Messages published to more and more subscribers of a topic."""
    def case(n, **more):
        return Case({"connections": n, "processes": processes(n), "kind": "topics", **more},
                    most_repeats=3 if quick or n <= 10000 else 1, timeout_s=900,
                    hidden=("processes", "kind", "milliseconds", "rest_ms", "requests", "verify"))

    sizes = possible("scale_topics", SIZES["subscribers"][not quick], processes)
    cases = [case(n, milliseconds=100 if quick else 1000, rest_ms=50 if quick else 2500)
             for n in sizes]
    check = [case(n, requests=20, verify=1, rest_ms=0) for n in (7, 100)]

    def counted(n, requests):
        return {"connections": n, "kind": "topics", "rest_ms": 0, "requests": requests}

    counts = series("subscribers", "delivery", possible("scale_topics", COUNTED[not quick]),
                    lambda n: counted(n, 5), lambda n: counted(n, 25))
    return Workload("scale_topics", cases, check, counts, pinned=False)


def timers(quick):
    """The programs of `timers`, with more of them."""
    operations = 200000 if quick else 1000000
    cases = []
    for n in SIZES["pending"][not quick]:
        params = {"pending": n, "restarts": operations, "stop_starts": operations,
                  "rounds": max(1, 100000 // n)}
        cases.append(Case(params, most_repeats=3 if n <= 1000000 else 1, timeout_s=900,
                          hidden=("restarts", "stop_starts", "rounds")))
    sizes = (1000, 10000) if quick else (1000, 10000, 100000)

    # Many operations for each timer: how the wheel sorts those that wait depends on the run's time.
    def counted(n, restarts, stop_starts):
        return {"pending": n, "restarts": 1000 + restarts, "stop_starts": 1000 + stop_starts,
                "draws": 1000 + 10 * n}

    counts = series("pending", "restart", sizes, lambda n: counted(n, 0, 0),
                    lambda n: counted(n, 10 * n, 0))
    counts += series("pending", "stop_start", sizes, lambda n: counted(n, 0, 0),
                     lambda n: counted(n, 0, 10 * n))
    check = [Case({"pending": 2000, "restarts": 5000, "stop_starts": 5000})]
    return Workload("scale_timers", cases, check, counts)


def files(quick):
    """Writes to the files of a watched directory."""
    def params(n, events):
        return {"files": n, "events": events}

    cases = [Case(params(n, max(n, 10000 if quick else 100000)), most_repeats=3, runs=1,
                  hidden=("events",)) for n in SIZES["files"][not quick]]
    check = [Case(params(n, 500)) for n in (10, 100)]
    sizes = (10, 1000) if quick else (10, 1000, 100000)
    counts = series("files", "event", sizes, lambda n: params(n, 1000), lambda n: params(n, 6000))
    return Workload("scale_files", cases, check, counts)


ALL = {**{f"scale_{kind}": connections(kind) for kind in SCALE_KINDS}, "scale_topics": topics,
       "scale_timers": timers, "scale_files": files}
