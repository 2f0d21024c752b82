"""Invented results with every contestant, for the tests of the page."""
import random

from harness import absences, build, workloads
from harness.contestants import CANNOT, TWINNED, VARIANTS, twin_of
from harness.workload import RATES

FACTORS = {"floor": 0.9, "spate": 1.0, "libev": 1.15, "libuv": 1.1, "asio": 1.3, "libevent": 2.5}
LOADED = {"pingpong": "echo", "threads": "echo", "churn": "echo", "idle": "echo", "latency": "echo",
          "idle_http": "http", "idle_tls": "tls", "idle_websocket": "websocket"}
SCALED = {"scale_plain": ("spate", "floor", "asio", "libuv"),
          "scale_tls": ("spate", "floor", "asio"),
          "scale_http": ("spate", "floor", "beast", "nginx"),
          "scale_websocket": ("spate", "floor", "beast"),
          "scale_topics": ("spate", "floor", "beast"),
          "scale_timers": ("spate", "floor", "asio", "libuv")}
PERL_SYSTEMS = ("spate", "spate_any", "spate_ae", "ev", "ev_any", "ev_ae", "perl", "glib")
PYTHON_LOOPS = ("spate", "asyncio", "uvloop", "rloop", "zuvloop")
ASGI_SERVERS = ("spate", "spate_uvicorn", "uvicorn_asyncio", "uvicorn_uvloop", "granian",
                "hypercorn")
PYTHON_SERVERS = (*PYTHON_LOOPS, "spate_aiofastnet", "asyncio_aiofastnet", "uvloop_aiofastnet")
CONTESTANTS = (".c", ".cc", ".py", ".go", ".js")
ABSENCES = [
    absences.Absence(absences.FAILED, "tls", "libevent_on_spate", "connections=20 kind=full",
                     "it ended with status 1: a handshake fails: error:0A000126:SSL routines::"
                     "unexpected eof while reading:ssl/record/rec_layer_s3.c:303: connection 17"),
    absences.Absence(absences.WRONG, "fd", "libev_libevent",
                     "equal work: pairs=300 active=100 writes=100 timeouts=0 rounds=3",
                     "unequal work: bytes_received is 599, not 600"),
    *(absences.Absence(absences.LEFT_OUT, name, "nginx", "", "nginx-light is not installed")
      for name in ("http", "idle_http", "h2", "tls")),
]
MACHINE = {"processor": "Example 9000 at 3.0 GHz", "cores": "2", "kernel": "6.18",
           "compiler": "c++ 12", "packages": "none", "commit": "0123456789ab",
           "load before the run": "0.00 0.00 0.00", "begun": "2026-01-01 00:00"}


def contestants(workload):
    """All that have a file, with their variants and twins."""
    if workload in ("anyevent", "anyevent_server"):
        yield from PERL_SYSTEMS
        return
    if workload in ("asyncio", "asyncio_echo", "asyncio_tls"):
        for name in PYTHON_LOOPS if workload == "asyncio" else PYTHON_SERVERS:
            if (workload, name) not in CANNOT:
                yield name
        return
    if workload in SCALED or workload == "asgi":
        yield from SCALED.get(workload, ASGI_SERVERS)
        return
    directory = build.ROOT / "bench" / "workloads" / LOADED.get(workload, workload)
    for path in sorted(directory.iterdir()):
        if path.stem in ("load", "ready_made") or path.suffix not in CONTESTANTS:
            continue
        for name in VARIANTS.get((workload, path.stem), [path.stem]):
            if (workload, name) not in CANNOT:
                yield name
                if path.stem in TWINNED.get(workload, ()):
                    yield twin_of(name)


def row(workload, name, metric, value, **more):
    unit = "B" if metric.endswith("_per_connection") else metric.rsplit("_", 1)[-1]
    return {"workload": workload, "contestant": name, "version": "1", "metric": metric,
            "unit": unit, "value": value, "repeat": 0, **more}


def sample_rows(chance, workload, case, name):
    factor = FACTORS.get(name.split("_")[0], 1.2)
    for metric in workload.metrics:
        size = 1.0
        for key, value in case.key:
            if isinstance(value, int) and key != "timeouts":
                size *= 1 + value
        for repeat in range(5):
            cost = factor * size**0.6 * 100 * chance.lognormvariate(0, 0.03)
            value = 1e9 / cost if metric in RATES else cost
            yield {**row(workload.name, name, metric, value, params={}, case=dict(case.key)),
                   "repeat": repeat, "steal": 0.01, "load": 0.2}


def rows():
    """Yields the rows of a run of everything with --quick; always the same."""
    chance = random.Random(1)
    yield {"run": MACHINE}
    for absence in ABSENCES:
        yield absence.row()
    for title, make in workloads.ALL.items():
        workload = make(True)
        for name in contestants(title):
            for case in workload.cases:
                if case.params_of(name) is not None:
                    yield from sample_rows(chance, workload, case, name)
            for count in workload.counts:
                for kind in count.kinds:
                    value = chance.uniform(50, 3000) if kind == "instructions" else 2.01
                    yield row(title, name, f"{kind}_per_op", value, params=count.params)
