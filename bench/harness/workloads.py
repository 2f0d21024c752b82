"""What is run: the workloads, their cases, and which program stands for several contestants."""
import dataclasses
import os
import resource

# A program that stands for several contestants: name -> extra arguments.
VARIANTS = {
    ("fd", "spate"): {f"spate_{name}": {"backend": name} for name in ("epoll", "poll", "select")},
    ("fd", "libevent"): {"libevent": {}, "libevent_changelist": {"changelist": 1}},
}

# Programs whose libev or libevent spate's drop-in can take the place of, by workload: each
# contestant of theirs gains a twin, the same program on the drop-in.
TWINNED = {
    "fd": {"libev", "libev_libevent", "libevent"},
    "watchers": {"libev", "libevent"},
    "timers": {"libev", "libevent"},
    "programs": {"memcached", "nghttpd"},
}

# Workloads whose contestants have nothing in common but that each has a twin.
PAIRS_ONLY = {"programs"}

# The order in tables: the library itself, the floor, then the peers, these first.
ORDER = ["spate", "spate_epoll", "spate_uring", "spate_poll", "spate_select", "floor", "libev",
         "mutex"]

# Metrics of which more is better; of all others less is.
RATES = {"posts_per_s", "requests_per_s"}

TWIN = "_on_spate"


def twin_of(name):
    return name + TWIN


def is_twin(name):
    return name.endswith(TWIN)


def original_of(name):
    """The contestant that a twin is compared with; of all others they themselves."""
    return name.removesuffix(TWIN)


@dataclasses.dataclass(frozen=True)
class Case:
    """One column of a workload: its parameters, and who deviates from them or is left out."""

    params: dict
    runs: int = 1  # program runs a repetition; the best value of each metric counts
    overrides: dict = dataclasses.field(default_factory=dict)  # contestant -> params, None: not run
    hidden: tuple = ()  # parameters that do not tell cases apart

    def params_of(self, contestant):
        override = self.overrides.get(original_of(contestant), {})
        return None if override is None else {**self.params, **override}

    @property
    def key(self):
        return tuple((k, v) for k, v in self.params.items() if k not in self.hidden)

    @property
    def title(self):
        return " ".join(f"{k}={v}" for k, v in self.key)


@dataclasses.dataclass(frozen=True)
class Count:
    """Counts per operation: `longer` less `shorter`, divided by the difference of `ops`."""

    name: str
    ops: str
    shorter: dict
    longer: dict
    kinds: tuple = ("instructions", "syscalls")


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    cases: list
    check: list  # short cases that all must run with equal work before anything is timed
    counts: list
    pinned: bool = True


def larger_sizes():
    """The published sizes beyond 9,900 pairs, as far as this process may open descriptors."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = float("inf") if limit == resource.RLIM_INFINITY else limit
    return [pairs for pairs in (20000, 50000, 100000) if 2 * pairs + 100 <= limit]


def fd(quick):
    sizes = [100, 1000, 9900] if quick else [100, 200, 500, 1000, 2000, 5000, 9900, *larger_sizes()]
    cases = []
    for timeouts in (0, 1):
        for active in (100, 1000):
            for pairs in sizes:
                if active > pairs:
                    continue
                params = {"pairs": pairs, "active": active, "writes": 100, "timeouts": timeouts}
                out = {"spate_select": None} if pairs > 500 else {}
                cases.append(Case(params, runs=3 if quick else 6, overrides=out,
                                  hidden=("writes",)))
    base = {"pairs": 500, "active": 100, "writes": 100, "rounds": 2}
    idle = {"pairs": 500, "active": 1, "writes": 0, "rounds": 2}
    counts = []
    for timeouts in (0, 1):
        suffix = " with timeouts" if timeouts else ""
        with_timeouts = {"timeouts": timeouts}
        counts.append(Count("event" + suffix, "event", {**base, **with_timeouts},
                            {**base, **with_timeouts, "writes": 2100}))
        counts.append(Count("registration" + suffix, "registration", {**idle, **with_timeouts},
                            {**idle, **with_timeouts, "rounds": 12}))
    check = [Case({"pairs": 300, "active": 100, "writes": 100, "timeouts": t, "rounds": 3})
             for t in (0, 1)]
    return Workload("fd", cases, check, counts)


def watchers(quick):
    slow = 4000 if quick else 16000
    cases = [
        Case({"kind": "io", "count": 100000}, runs=3, hidden=("count",),
             overrides={"libevent": {"count": 65000}, "libuv": {"count": 8192},
                        "glib": {"count": slow}}),
        Case({"kind": "timer", "count": 100000}, runs=3, hidden=("count",),
             overrides={"glib": {"count": 16000}}),
    ]
    check = [Case({"kind": kind, "count": 1000}) for kind in ("io", "timer")]
    counts = [Count(f"{kind} watcher", "watcher", {"kind": kind, "count": 1024},
                    {"kind": kind, "count": 3072}) for kind in ("io", "timer")]
    return Workload("watchers", cases, check, counts)


def timers(quick):
    operations = 200000 if quick else 1000000
    cases = []
    for pending in ([1000, 1000000] if quick else [1000, 100000, 1000000]):
        params = {"pending": pending, "restarts": operations, "stop_starts": operations,
                  "rounds": max(1, 100000 // pending)}
        out = {"glib": None} if pending > 100000 else {}  # its passes and its set-up take too long
        cases.append(Case(params, runs=1 if quick else 3, overrides=out,
                          hidden=("restarts", "stop_starts", "rounds")))
    base = {"pending": 1000, "restarts": 1000, "stop_starts": 1000, "draws": 21000}
    counts = [
        Count("restart", "restart", base, {**base, "restarts": 21000}),
        Count("stop and start", "stop_start", base, {**base, "stop_starts": 21000}),
        Count("life: start, stop, start, expire", "expiry", base, {**base, "pending": 5000}),
    ]
    check = [Case({"pending": 2000, "restarts": 5000, "stop_starts": 5000})]
    return Workload("timers", cases, check, counts)


def post(quick):
    cores = len(os.sched_getaffinity(0))
    threads = (1, 2, 4) if quick else (1, 2, 4, 8)
    cases = []
    for program in (1, 2, 3, 6):
        for producers in (1,) if program == 3 else threads:
            if program == 2 and producers < 2:
                continue
            waits = program in (1, 2) and producers > 1  # each post wakes a sleeping loop
            count = (3000 if quick else 20000) if waits else (200000 if quick else 1000000)
            for limit in sorted({1, cores}) if waits else [cores]:
                cases.append(Case({"program": program, "producers": producers, "cores": limit,
                                   "count": count * (10 if waits and limit == 1 else 1)},
                                  runs=2 if quick else 3, hidden=("count",)))
    check = [Case({"program": program, "producers": producers, "count": 2000})
             for program, producers in ((1, 1), (1, 2), (2, 2), (3, 1), (6, 3))]
    counts = [
        Count("post, one to one", "post", {"program": 3, "producers": 1, "count": 5000},
              {"program": 3, "producers": 1, "count": 25000}),
        Count("post to a sleeping loop", "post",
              {"program": 1, "producers": 2, "cores": 1, "count": 500},
              {"program": 1, "producers": 2, "cores": 1, "count": 2500},
              kinds=("syscalls",)),  # callgrind's own turns between threads would decide the other
    ]
    return Workload("post", cases, check, counts, pinned=False)


def programs(quick):
    servers = ("memcached", "nghttpd")
    cases = []
    for server in servers:
        params = {"server": server, "connections": 50, "requests": 50000 if quick else 200000}
        others = {name: None for name in servers if name != server}
        cases.append(Case(params, runs=4 if quick else 6, overrides=others, hidden=("requests",)))
    counts = [Count("request", "request", {"connections": 50, "requests": 5000},
                    {"connections": 50, "requests": 25000})]
    check = [Case({"connections": 50, "requests": 2000})]
    return Workload("programs", cases, check, counts, pinned=False)  # the server alone is


ALL = {"fd": fd, "watchers": watchers, "timers": timers, "post": post, "programs": programs}
