"""The contestants: programs that stand for several, those with twins, and the order in tables."""


def backends(*names):
    """spate as it chooses by itself, and on each of these backends."""
    named = {f"spate_{name.removeprefix('io_')}": {"backend": name} for name in names}
    return {"spate": {}, **named}


# A program that stands for several contestants: name -> extra arguments.
VARIANTS = {
    **{(name, "spate"): backends("epoll", "io_uring")
       for name in ("pingpong", "header_body", "churn", "udp", "udp_send", "fanout", "http", "h2",
                    "websocket")},
    ("fd", "spate"): backends("epoll", "io_uring", "poll", "select"),
    ("fd", "libevent"): {"libevent": {}, "libevent_changelist": {"changelist": 1}},
    **{(name, "libevent"): {"libevent": {}, "libevent_direct": {"direct": 1}}
       for name in ("pingpong", "header_body", "threads", "churn", "latency")},
    ("header_body", "asio"): {"asio": {}, "asio_buffered": {"buffered": 1}},
    ("idle", "asio"): {"asio": {}, "asio_wait": {"wait": 1}},
    ("files", "spate"): {"spate": {}, "spate_fresh": {"fresh": 1}},
}

# Contestants that cannot run a workload, and the reason.
CANNOT = {("idle", name): "has no idle timeouts"
          for name in ("floor", "floor_ring", "muduo", "evpp", "asio_coro")}
CANNOT["asyncio_tls", "rloop"] = "has no TLS"

# Programs whose libev or libevent spate's drop-in can take the place of, by workload: each
# contestant of theirs gains a twin, the same program on the drop-in.
TWINNED = {
    "fd": {"libev", "libev_libevent", "libevent"},
    "watchers": {"libev", "libevent"},
    "timers": {"libev", "libevent"},
    **{name: {"libevent"} for name in
       ("pingpong", "header_body", "threads", "churn", "idle", "latency")},
    "http": {"evhttp"},
    "idle_http": {"evhttp"},
    "tls": {"libevent"},
    "idle_tls": {"libevent"},
    "programs": {"memcached", "nghttpd"},
}

# Workloads whose contestants have nothing in common but that each has a twin.
PAIRS_ONLY = {"programs"}

# The order in tables: the library itself, the floor, then the peers, these first.
ORDER = ["spate", "spate_epoll", "spate_uring", "spate_poll", "spate_select", "floor", "floor_ring",
         "libev", "mutex"]

# Which of them stands for spate, where it is compared: the first that was run.
OURS = ("spate", "spate_epoll")

# A server that is not a library: shown for reference, not a rival.
REFERENCES = {"redis"}

TWIN = "_on_spate"


def twin_of(name):
    return name + TWIN


def is_twin(name):
    return name.endswith(TWIN)


def original_of(name):
    """The contestant that a twin is compared with; of all others they themselves."""
    return name.removesuffix(TWIN)


def can_be_counted(name):
    """callgrind knows no io_uring: under it such a program waits for ever. And it follows no
    program that makes its code, or its stacks, by itself."""
    return not name.endswith(("_ring", "_uring")) and name not in ("go", "node")


def is_main(name):
    """Whether it is spate or a peer, as opposed to the same on another backend or a drop-in."""
    return not is_twin(name) and not name.startswith("spate_")


def is_floor(name):
    return name.split("_")[0] == "floor"


def is_peer(name):
    return not (name.startswith("spate") or is_floor(name) or is_twin(name) or name in REFERENCES)
