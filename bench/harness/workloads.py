"""All workloads."""
import os

from harness import scale
from harness.descriptors import larger_sizes, possible
from harness.workload import Case, Count, Workload


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
                cases.append(Case(params, runs=2 if quick else 6, overrides=out,
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


def pingpong_case(connections, block, threads, milliseconds):
    params = {"connections": connections, "block": block, "threads": threads,
              "milliseconds": milliseconds}
    return Case(params, hidden=("milliseconds",))


def pingpong(quick):
    milliseconds = 200 if quick else 1000
    columns = possible("pingpong", [1, 10, 100, 1000, 10000])
    cases = [pingpong_case(n, 16384, 1, milliseconds) for n in columns]
    for block in (64, 409600) if quick else (64, 1024, 4096, 81920, 409600):
        for n in [100] if quick else columns:
            if n * block <= 2**30:  # all of it may be waiting somewhere
                cases.append(pingpong_case(n, block, 1, milliseconds))
    check = [Case({"connections": n, "block": block, "messages": messages, "verify": 1})
             for n, block, messages in ((20, 16384, 20), (100, 64, 20), (3, 409600, 5))]
    one = {"connections": 1, "block": 16384}
    many = {"connections": 100, "block": 64, "lockstep": 1}
    counts = [Count("message, 1 connection", "message", {**one, "messages": 200},
                    {**one, "messages": 2200}),
              Count("message, 100 connections", "message", {**many, "messages": 10},
                    {**many, "messages": 60})]
    return Workload("pingpong", cases, check, counts, pinned=False)  # the load pins itself


def threads(quick):
    cases = [pingpong_case(n, 16384, count, 200 if quick else 1000)
             for n in ([100] if quick else [100, 1000])
             for count in ((1, 2) if quick else (1, 2, 4, 8))]
    base = {"connections": 8, "block": 16384, "threads": 2}
    check = [Case({**base, "messages": 50, "verify": 1})]
    counts = [Count("message, 2 threads", "message", {**base, "messages": 50},
                    {**base, "messages": 300})]
    return Workload("threads", cases, check, counts, pinned=False)


def header_body(quick):
    total_count = 2048 if quick else 8192
    cases = []
    for n in [100] if quick else possible("header_body", [100, 1000, 10000]):
        for count in (1, 2) if quick else (1, 2, 3, 4, 6, 8):
            cases.append(Case({"connections": n, "threads": count, "total_count": total_count},
                              most_repeats={1000: 3, 10000: 1}.get(n, 1000), timeout_s=3600))
    check = [Case({"connections": n, "threads": count, "total_count": 512, "verify": 1})
             for n, count in ((1, 1), (50, 1), (50, 2))]
    base = {"connections": 10, "threads": 1}
    counts = [Count("message", "message", {**base, "total_count": 100},
                    {**base, "total_count": 1100})]
    return Workload("header_body", cases, check, counts, pinned=False)


def churn(quick):
    cases = [Case({"connections": n, "milliseconds": 200 if quick else 2000},
                  hidden=("milliseconds",)) for n in ([100] if quick else [100, 1000])]
    check = [Case({"connections": 20, "count": 500})]
    base = {"connections": 20}
    counts = [Count("connection", "connection", {**base, "count": 200}, {**base, "count": 1200})]
    return Workload("churn", cases, check, counts, pinned=False)


def idle(quick):
    counted = possible("idle", [10000])
    quiet = {"idle_ms": 60000, "heartbeat_ms": 0, "milliseconds": 1000}
    beating = {"idle_ms": 2000, "heartbeat_ms": 500, "milliseconds": 2500 if quick else 6000}
    cases = [Case({"connections": n, **how}, hidden=("milliseconds",),
                  most_repeats=1 if quick else 1000)
             for n in counted for how in ((beating,) if quick else (quiet, beating))]
    check = [Case({"connections": 200, "idle_ms": 60000, "heartbeat_ms": 100, "milliseconds": 300}),
             Case({"connections": 50, "idle_ms": 300, "milliseconds": 0, "expire": 1})]
    base = {"idle_ms": 60000, "milliseconds": 0}
    counts = [Count("connection made and greeted", "connection", {**base, "connections": 100},
                    {**base, "connections": 600})]
    return Workload("idle", cases, check, counts, pinned=False)


def latency(quick):
    peers = ("libev", "libevent", "libevent_direct", "libuv", "asio", "muduo", "evpp",
             "floor_ring", "spate_coro", "asio_coro")
    out = {(0, 0): (), (200, 0): peers, (200, 1): (*peers, "floor")}
    cases = [Case({"busy_poll_us": window, "adaptive": adaptive, "block": 64,
                   "milliseconds": 200 if quick else 2000},
                  hidden=("block", "milliseconds"),
                  overrides={name: None for name in without})
             for (window, adaptive), without in out.items()]
    base = {"block": 64, "busy_poll_us": 0}
    check = [Case({**base, "messages": 300})]
    counts = [Count("message", "message", {**base, "messages": 500}, {**base, "messages": 2500})]
    return Workload("latency", cases, check, counts, pinned=False)


def udp(quick):
    cases = [Case({"size": size, "batch": batch, "milliseconds": 200 if quick else 1000},
                  hidden=("milliseconds",)) for size in (64, 1200) for batch in (0, 1)]
    check = [Case({"size": size, "batch": batch, "packets": 3000, "verify": 1})
             for size in (64, 1200) for batch in (0, 1)]
    counts = []
    for batch, name in ((0, "packet"), (1, "packet, in batches")):
        base = {"size": 64, "batch": batch}
        counts.append(Count(name, "packet", {**base, "packets": 1000}, {**base, "packets": 9000}))
    return Workload("udp", cases, check, counts, pinned=False)


def udp_send(quick):
    ways = [(peers, segments) for peers in (1, 100) for segments in (0, 1)]
    cases = [Case({"peers": peers, "segments": segments, "milliseconds": 200 if quick else 1000},
                  hidden=("milliseconds",)) for peers, segments in ways]
    check = [Case({"peers": peers, "segments": segments, "requests": 500, "verify": 1})
             for peers, segments in ways]
    counts = []
    for segments, name in ((0, "packet"), (1, "packet, split by the kernel")):
        base = {"peers": 1, "segments": segments}
        counts.append(Count(name, "packet", {**base, "requests": 100}, {**base, "requests": 900}))
    return Workload("udp_send", cases, check, counts, pinned=False)


def fanout(quick):
    cases = [Case({"subscribers": n, "size": size, "milliseconds": 200 if quick else 1000},
                  hidden=("milliseconds",))
             for n in possible("fanout", [100, 1000]) for size in (64, 1024)]
    check = [Case({"subscribers": n, "size": size, "messages": 640, "verify": 1})
             for n, size in ((3, 1024), (100, 64))]
    counts = [Count(f"delivery of {size} bytes", "delivery",
                    {"subscribers": 50, "size": size, "messages": 320},
                    {"subscribers": 50, "size": size, "messages": 1600}) for size in (64, 1024)]
    return Workload("fanout", cases, check, counts, pinned=False)


HTTP_KINDS = ("keepalive", "pipelined", "ten", "close", "body20k", "file1m", "upload1m")

# Ready-made servers pass an upload on to another program, which is not measured here.
HTTP_FILES_ONLY = {name: None for name in ("nginx", "lighttpd", "h2o")}


def http(quick):
    milliseconds = 200 if quick else 1500

    def case(kind, connections, **more):
        left_out = HTTP_FILES_ONLY if kind == "upload1m" else {}
        return Case({"connections": connections, "kind": kind, **more}, overrides=left_out,
                    hidden=("milliseconds", "requests", "verify"))

    cases = [case("keepalive", n, milliseconds=milliseconds)
             for n in possible("http", [1, 100] if quick else [1, 100, 1000])]
    cases += [case(kind, 100, milliseconds=milliseconds) for kind in HTTP_KINDS[1:5]]
    cases += [case(kind, 10, milliseconds=milliseconds) for kind in HTTP_KINDS[5:]]
    check = [case(kind, 10, requests=32 if kind in HTTP_KINDS[:4] else 4, verify=1)
             for kind in HTTP_KINDS]
    counts = []
    for kind, shorter, longer in (("keepalive", 40, 240), ("pipelined", 160, 960),
                                  ("close", 40, 140), ("file1m", 4, 12), ("upload1m", 4, 12)):
        base = case(kind, 10)
        counts.append(Count(f"request, {kind}", "request", {**base.params, "requests": shorter},
                            {**base.params, "requests": longer}, without=(*base.overrides,)))
    return Workload("http", cases, check, counts, pinned=False)


def h2(quick):
    """By h2load, which takes about as long for a request as the fastest server."""
    requests = 10000 if quick else 100000

    def case(kind, connections, streams, requests):
        return Case({"kind": kind, "connections": connections, "streams": streams,
                     "requests": requests}, hidden=("requests",))

    cases = [case("hello", connections, streams, requests)
             for connections in (1, 100) for streams in (1, 32)]
    cases.append(case("page", 100, 32, requests // 4))
    check = [case(kind, 2, 4, 64) for kind in ("hello", "page")]
    counts = [Count(f"request, {streams} at a time", "request",
                    {"connections": 1, "streams": streams, "requests": 500},
                    {"connections": 1, "streams": streams, "requests": 2500})
              for streams in (1, 32)]
    return Workload("h2", cases, check, counts, pinned=False)


WEBSOCKET_SIZES = (20, 1024, 16384)
WEBSOCKET_TOLD = {100: "message of 100 bytes told to one of 1,000",
                  1024: "message of 1 KiB told to one of 1,000"}


def websocket(quick):
    milliseconds = 200 if quick else 1500

    def case(size, connections, **more):
        return Case({"connections": connections, "size": size, **more},
                    hidden=("milliseconds", "messages", "verify"))

    cases = [case(20, n, milliseconds=milliseconds)
             for n in possible("websocket", [1, 200] if quick else [1, 200, 1000])]
    cases += [case(size, 200, milliseconds=milliseconds) for size in WEBSOCKET_SIZES[1:]]
    cases += [case(size, n, kind="tell", milliseconds=milliseconds)
              for n in possible("websocket", [1000]) for size in WEBSOCKET_SIZES[:2]]
    check = [case(size, 10, messages=16, verify=1, **kind) for size in WEBSOCKET_SIZES
             for kind in ({}, {"kind": "tell"})]
    counts = [Count(f"message of {size} bytes", "message",
                    {"connections": 10, "size": size, "messages": 40},
                    {"connections": 10, "size": size, "messages": 240})
              for size in WEBSOCKET_SIZES]
    counts += [Count(what, "message",
                     {"connections": 1000, "size": size, "kind": "tell", "messages": 5},
                     {"connections": 1000, "size": size, "kind": "tell", "messages": 45})
               for size, what in WEBSOCKET_TOLD.items()]
    return Workload("websocket", cases, check, counts, pinned=False)


PARSER_HEADS = (100, 703, 8000)


def parser(quick):
    """Whole heads, and heads from a peer that sends a byte at a time."""
    bytes_a_run = 50_000_000 if quick else 200_000_000

    def case(size, piece):
        return Case({"head_bytes": size, "piece": piece,
                     "heads": bytes_a_run // size // (50 if piece else 1)},
                    runs=3, hidden=("heads",))

    cases = [case(size, 0) for size in PARSER_HEADS] + [case(size, 1) for size in (4000, 8000)]
    check = [Case({"head_bytes": size, "piece": piece, "heads": 10})
             for size in PARSER_HEADS for piece in (0, 1, 7)]
    counts = [Count(f"head of {size} bytes" + (", a byte at a time" if piece else ""), "head",
                    {"head_bytes": size, "piece": piece, "heads": 50},
                    {"head_bytes": size, "piece": piece, "heads": 250})
              for size, piece in [*((size, 0) for size in PARSER_HEADS), (4000, 1), (8000, 1)]]
    return Workload("parser", cases, check, counts)


# Operations on blocks of a file: size, write, cold, and how many are timed.
FILES = ((4096, 0, 0, 20000), (4096, 0, 1, 400), (4096, 1, 0, 20000), (1048576, 0, 0, 400),
         (1048576, 0, 1, 60), (1048576, 1, 0, 400))


def files(quick):
    def case(size, write, cold, operations, **more):
        return Case({"size": size, "write": write, "cold": cold, "operations": operations, **more},
                    runs=3, hidden=("operations", "mebibytes"))

    cases = [case(*what, operations // (4 if quick else 1)) for *what, operations in FILES]
    check = [case(*what, 20, mebibytes=4) for *what, _ in FILES]
    counts = [Count("read of 4 KiB", "operation", {"size": 4096, "operations": 200, "mebibytes": 1},
                    {"size": 4096, "operations": 1200, "mebibytes": 1},
                    kinds=("syscalls",))]  # callgrind's own turns between threads would decide
    return Workload("files", cases, check, counts)


# The operations of coroutines, and how often each is timed.
CORO_KINDS = {"child": 3000000, "spawn": 300000, "sleep": 20000, "all": 300000, "channel": 3000000}


def coro(quick):
    cases = [Case({"kind": kind, "count": count // (4 if quick else 1)}, runs=3, hidden=("count",))
             for kind, count in CORO_KINDS.items()]
    check = [Case({"kind": kind, "count": 1000}) for kind in CORO_KINDS]
    counts = [Count(kind, "operation", {"kind": kind, "count": 1000},
                    {"kind": kind, "count": 3000}) for kind in CORO_KINDS]
    return Workload("coro", cases, check, counts)


def idle_behind(name, connections):
    """Memory alone, of servers that are another workload's too."""
    def workload(quick):
        cases = [Case({"connections": n, "kind": "idle"}, most_repeats=1 if quick else 1000,
                      hidden=("kind",)) for n in possible(name, [connections])]
        check = [Case({"connections": 20, "kind": "idle", "rest_ms": 0})]
        return Workload(name, cases, check, [], pinned=False)
    return workload


# Handshakes, how many at once, and how many each connection makes in a run that is counted.
TLS_KINDS = {"full": (20, 1, 6), "resumed": (20, 1, 6), "echo64": (100, 10, 60),
             "echo16k": (100, 2, 7), "bulk": (10, 1, 4)}

# nginx sends nothing back: it is there for its handshakes.
TLS_SHAKES_HANDS = ("full", "resumed")


def tls(quick):
    def case(kind, connections, **more):
        left_out = {} if kind in TLS_SHAKES_HANDS else {"nginx": None}
        return Case({"connections": connections, "kind": kind, **more}, overrides=left_out,
                    hidden=("milliseconds", "operations", "verify"))

    cases = [case(kind, connections, milliseconds=200 if quick else 1500)
             for kind, (connections, _, _) in TLS_KINDS.items()]
    check = [case(kind, 10, operations=4, verify=1) for kind in TLS_KINDS]
    counts = []
    for kind, (_, fewer, more) in TLS_KINDS.items():
        base = case(kind, 10)
        counts.append(Count(kind, "operation", {**base.params, "operations": fewer},
                            {**base.params, "operations": more}, without=(*base.overrides,)))
    return Workload("tls", cases, check, counts, pinned=False)


def programs(quick):
    servers = ("memcached", "nghttpd")
    cases = []
    for server in servers:
        params = {"server": server, "connections": 50, "requests": 50000 if quick else 200000}
        others = {name: None for name in servers if name != server}
        cases.append(Case(params, runs=3 if quick else 6, overrides=others, hidden=("requests",)))
    counts = [Count("request", "request", {"connections": 50, "requests": 5000},
                    {"connections": 50, "requests": 25000})]
    check = [Case({"connections": 50, "requests": 2000})]
    return Workload("programs", cases, check, counts, pinned=False)  # the server alone is


# Systems that take far longer than the others for as many watchers.
SLOW_IN_PERL = ("event", "event_any", "glib", "io_async")
SLOWEST_IN_PERL = ("poe_event", "poe_select", "tk")


def anyevent(quick):
    fewer = {name: {"watchers": 4000 if quick else 16000} for name in SLOW_IN_PERL}
    least = {name: {"watchers": 2000} for name in SLOWEST_IN_PERL}
    cases = [Case({"watchers": 100000}, runs=3, overrides={**fewer, **least})]
    check = [Case({"watchers": 200, "verify": 1})]
    counts = [Count("watcher", "watcher", {"watchers": 1000}, {"watchers": 3000},
                    without=(*SLOW_IN_PERL, *SLOWEST_IN_PERL))]
    return Workload("anyevent", cases, check, counts)


def anyevent_server(quick):
    out = {name: None for name in (*SLOW_IN_PERL, *SLOWEST_IN_PERL)}
    few = {name: {"requests": 2000} for name in SLOWEST_IN_PERL}
    requests = 10000 if quick else 100000
    cases = [Case({"servers": 9900, "active": 100, "requests": requests}, overrides=out,
                  hidden=("requests",)),
             Case({"servers": 8, "active": 3, "requests": requests}, overrides=few,
                  hidden=("requests",))]
    check = [Case({"servers": 20, "active": 3, "requests": 200})]
    counts = [Count("request", "request", {"servers": 100, "requests": 200},
                    {"servers": 100, "requests": 1200}, kinds=("syscalls",),
                    without=SLOWEST_IN_PERL)]
    return Workload("anyevent_server", cases, check, counts)


def asyncio(quick):
    cases = [Case({"operations": 10000 if quick else 100000}, runs=1 if quick else 3,
                  hidden=("operations",))]
    check = [Case({"operations": 1000, "verify": 1})]
    return Workload("asyncio", cases, check, [])


# The modes in which aiofastnet is measured. The others use the same transports.
AIOFASTNET_MODES = ("protocol", "streams")
ON_AIOFASTNET = ("spate_aiofastnet", "asyncio_aiofastnet", "uvloop_aiofastnet")


def asyncio_echo(quick):
    def case(mode, connections, **more):
        out = {} if mode in AIOFASTNET_MODES else dict.fromkeys(ON_AIOFASTNET)
        return Case({"mode": mode, "connections": connections, "block": 1024, **more},
                    overrides=out, hidden=("milliseconds",))
    modes = ("protocol", "buffered", "streams", "sockets")
    cases = [case(mode, 50, milliseconds=200 if quick else 1000) for mode in modes]
    check = [case(mode, 10, messages=50, verify=1) for mode in modes]
    return Workload("asyncio_echo", cases, check, [], pinned=False)


def asyncio_tls(quick):
    def case(kind, mode, **more):
        return Case({"kind": kind, "mode": mode, "connections": 1 if kind == "full" else 20,
                     **more}, hidden=("connections", "milliseconds"))
    milliseconds = 200 if quick else 1500
    cases = [case(kind, mode, milliseconds=milliseconds)
             for kind, mode in (("full", "protocol"), ("echo1k", "protocol"), ("echo1k", "streams"),
                                ("echo16k", "protocol"))]
    check = [case("echo1k", mode, operations=4, verify=1) for mode in ("protocol", "streams")]
    return Workload("asyncio_tls", cases, check, [], pinned=False)


def asgi(quick):
    def case(kind, connections, **more):
        return Case({"connections": connections, "kind": kind, **more},
                    hidden=("milliseconds", "requests", "verify"))
    milliseconds = 300 if quick else 1500
    cases = [case(kind, connections, milliseconds=milliseconds)
             for kind, connections in (("keepalive", 1), ("keepalive", 64), ("body20k", 64))]
    check = [case(kind, 10, requests=32, verify=1) for kind in ("keepalive", "body20k")]
    return Workload("asgi", cases, check, [], pinned=False)


# In this order: first what the published comparisons are about.
ALL = {"fd": fd, "watchers": watchers, "timers": timers, "pingpong": pingpong,
       "header_body": header_body, "threads": threads, "anyevent": anyevent,
       "anyevent_server": anyevent_server, "post": post, "churn": churn, "idle": idle,
       "latency": latency, "udp": udp, "udp_send": udp_send, "fanout": fanout, "files": files,
       "coro": coro, "parser": parser, "http": http, "h2": h2, "tls": tls,
       "idle_http": idle_behind("idle_http", 5000), "idle_tls": idle_behind("idle_tls", 1000),
       "websocket": websocket, "idle_websocket": idle_behind("idle_websocket", 5000),
       "programs": programs, "asyncio": asyncio, "asyncio_echo": asyncio_echo,
       "asyncio_tls": asyncio_tls, "asgi": asgi,
       **scale.ALL}

# Names that stand for several workloads.
GROUPS = {"scale": tuple(scale.ALL)}
