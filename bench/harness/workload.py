"""A workload: its cases, the operations that are counted, and the metrics of the verdicts."""
import dataclasses

from harness.contestants import original_of

# Metrics of which more is better; of all others less is.
RATES = {"posts_per_s", "requests_per_s", "mib_per_s", "messages_per_s", "connections_per_s",
         "packets_per_s", "operations_per_s"}

# The rows of workloads/asyncio/rows.py.
ASYNCIO_ROWS = ("call_soon", "callback", "callback_with_arguments", "timer_cancelled",
                "timer_among_many", "timer_expired", "call_from_thread", "sleep_zero", "task",
                "future", "task_of_gather", "reader_added_and_removed", "reader_hop", "socket_hop",
                "stream_hop", "datagram_hop", "address_looked_up", "connection", "executor_call")

# The protocols of `scale`.
SCALE_KINDS = ("plain", "tls", "http", "websocket")

# The metrics of each workload that verdicts are given on. The others explain.
METRICS = {
    "fd": ("whole_us", "processing_us"),
    "watchers": ("create_ns", "invoke_ns", "destroy_ns"),
    "timers": ("start_ns", "restart_ns", "stop_start_ns", "expire_ns"),
    "post": ("posts_per_s",),
    "pingpong": ("mib_per_s",),
    "header_body": ("seconds",),
    "threads": ("mib_per_s",),
    "churn": ("connections_per_s",),
    "idle": ("bytes_per_connection", "cpu_percent"),
    "idle_http": ("bytes_per_connection", "resident_per_connection"),
    "idle_tls": ("bytes_per_connection", "resident_per_connection"),
    "idle_websocket": ("bytes_per_connection", "resident_per_connection"),
    "latency": ("p50_us", "p99_us"),
    "udp": ("packets_per_s",),
    "udp_send": ("processor_us",),
    "files": ("operation_us",),
    "fanout": ("messages_per_s",),
    "http": ("requests_per_s",),
    "h2": ("requests_per_s", "processor_us"),
    "tls": ("processor_us",),
    "websocket": ("messages_per_s",),
    "parser": ("head_ns",),
    "coro": ("operation_ns",),
    "programs": ("requests_per_s",),
    "anyevent": ("bytes", "create_us", "invoke_us", "destroy_us"),
    "anyevent_server": ("request_us",),
    "asyncio": tuple(f"{row}_ns" for row in ASYNCIO_ROWS),
    "asyncio_echo": ("processor_us",),
    "asyncio_tls": ("processor_us",),
    "asgi": ("processor_us",),
    **{f"scale_{kind}": (
        "accept_us", "accept_processor_us", "accept_p50_us", "accept_p99_us",
        "resident_per_connection", "idle_p50_us", "idle_p99_us", "few_processor_us", "few_p50_us",
        "few_p99_us", "all_processor_us", "all_p50_us", "all_p99_us", "drain_us",
        "drain_processor_us") for kind in SCALE_KINDS},
    "scale_topics": ("delivery_us", "delivery_processor_us", "resident_per_connection",
                     "accept_p99_us", "drain_processor_us"),
    "scale_timers": ("start_ns", "restart_ns", "stop_start_ns", "expire_ns"),
    "scale_files": ("watch_us", "event_ns"),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One column of a workload: its parameters, and the contestants that deviate from them or
    are left out."""

    params: dict
    runs: int = 1  # program runs a repetition; the best value of each metric counts
    overrides: dict = dataclasses.field(default_factory=dict)  # contestant -> params, None: not run
    hidden: tuple = ()  # parameters that do not distinguish cases
    most_repeats: int = 1000  # of a case that is so long that one repetition says as much as five
    timeout_s: int = 300  # for one program run

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
    without: tuple = ()  # contestants that do not do such operations
    series: str = ""  # of counts of one operation at several sizes, which are a curve
    axis: str = ""
    size: int = 0

    @property
    def params(self):
        """Returns the params in a line of the results."""
        told = {"op": self.name}
        if self.series:
            told |= {"series": self.series, "axis": self.axis, "size": self.size}
        return told


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    cases: list
    check: list  # short cases that all must run with equal work before anything is timed
    counts: list
    pinned: bool = True

    @property
    def metrics(self):
        """Returns the metrics that verdicts are about. An unsteady case of one of these is run
        again."""
        return METRICS[self.name]
