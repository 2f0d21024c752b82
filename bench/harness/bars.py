"""The bars that spate holds itself to, measured in one run."""
import dataclasses

from harness import workloads


@dataclasses.dataclass(frozen=True)
class Bar:
    what: str
    bar: str
    measured: str  # "" when the run did not contain it
    met: bool | None


def at_most(what, value, limit, where=""):
    text = "" if value is None else f"{value:.3g}" + (f" ({where})" if where else "")
    return Bar(what, f"≤ {limit:g}", text, None if value is None else value <= limit)


def at_least(what, value, limit):
    text = "" if value is None else f"{value:.3g}"
    return Bar(what, f"≥ {limit:g}", text, None if value is None else value >= limit)


def case_where(results, workload, **wanted):
    for key in results.cases(workload):
        if all(dict(key).get(k) == v for k, v in wanted.items()):
            return key
    return None


def title(key):
    return " ".join(f"{k}={v}" for k, v in key)


def worst_of(ratios):
    """The greatest of (ratio or None, where it was)."""
    return max((r for r in ratios if r[0] is not None), default=(None, ""))


def worst_against_peers(results, workload, metric, keys):
    """The worst cost ratio of ours to any peer in any of the cases, and where that was."""
    me = results.ours(workload)
    return worst_of((results.cost_ratio(workload, key, metric, me, peer),
                     f"{title(key)} against {peer}")
                    for key in keys for peer in results.peers(workload))


def twins_bars(results, workload, metrics):
    """By metric, each twin against its original where it does worst."""
    for original, twin in results.pairs(workload):
        for metric in metrics:
            worst, where = worst_of((results.cost_ratio(workload, key, metric, twin, original),
                                     title(key)) for key in results.cases(workload))
            yield at_most(f"{workload} {metric}, worst case: {twin} / {original}", worst, 1, where)


def fd_bars(results):
    me = results.ours("fd")
    key = case_where(results, "fd", pairs=9900, active=100, timeouts=0)
    idle = case_where(results, "fd", pairs=9900, active=100, timeouts=1)

    def whole(over, under):
        return results.cost_ratio("fd", key, "whole_us", over, under)

    yield at_most("fd 9900 pairs, 100 active, whole iteration: spate / floor",
                  whole(me, "floor"), 1.25)
    yield at_least("the same: libev / spate", whole("libev", me), 8)
    yield at_least("the same: libevent / libevent_on_spate",
                   whole("libevent", "libevent_on_spate"), 3)
    yield at_most("the same: with idle timeouts / without",
                  results.across("fd", "whole_us", me, idle, key) if me else None, 1.15)
    worst, where = worst_against_peers(results, "fd", "processing_us", results.cases("fd"))
    yield at_most("fd event processing, worst size: spate / best peer", worst, 1, where)
    yield from twins_bars(results, "fd", ("processing_us", "whole_us"))


def watchers_bars(results):
    me = results.ours("watchers")
    for kind, size in (("io", 56), ("timer", 64)):
        key = (("kind", kind),)
        for metric in ("create_ns", "invoke_ns", "destroy_ns"):
            ratio = results.cost_ratio("watchers", key, metric, me, "libev") if me else None
            yield at_most(f"watchers {kind} {metric[:-3]}: spate / libev", ratio, 1)
        yield at_most(f"sizeof {kind}, bytes",
                      results.median("watchers", key, "object_bytes", me) if me else None, size)
    yield from twins_bars(results, "watchers", ("bytes", "create_ns", "invoke_ns", "destroy_ns"))


def timers_bars(results):
    me = results.ours("timers")
    key = (("pending", 1000000),)

    def ratio(metric, reference):
        return results.cost_ratio("timers", key, metric, me, reference) if me else None

    yield at_most("timers restart, random of 1 M: spate / floor", ratio("restart_ns", "floor"), 1.5)
    yield at_most("timers stop and start, random of 1 M: spate / libev",
                  ratio("stop_start_ns", "libev"), round(1 / 3, 3))
    worst, where = worst_against_peers(results, "timers", "expire_ns", results.cases("timers"))
    yield at_most("timers expiry, worst size: spate / best peer", worst, 1, where)
    yield from twins_bars(results, "timers", results.metrics("timers"))


def post_bars(results):
    programs = list(dict.fromkeys(dict(key)["program"] for key in results.cases("post")))
    for program in programs:
        keys = [key for key in results.cases("post") if dict(key)["program"] == program]
        worst, where = worst_against_peers(results, "post", "posts_per_s", keys)
        yield at_most(f"post program {program}, worst column: time of spate / best other", worst, 1,
                      where)


def ahead_of_peers(results, workload, metric):
    """Ours against every peer in every case: where it does worst."""
    worst, where = worst_against_peers(results, workload, metric, results.cases(workload))
    return at_most(f"{workload} {metric}, worst column: cost of spate / best peer", worst, 1, where)


def fewest_instructions(results, workload):
    """By operation, ours against the peer that needs fewest."""
    me = results.ours(workload)
    operations = dict.fromkeys(op for w, op, metric, _ in results.counts
                               if w == workload and metric == "instructions_per_op")
    for op in operations:
        least, who = results.fewest(workload, op, "instructions")
        mine = results.count(workload, op, "instructions", me)
        ratio = mine / least if least and mine else None
        yield at_most(f"{workload} instructions a {op}: spate / fewest of all peers", ratio, 1, who)


def pingpong_bars(results):
    me = results.ours("pingpong")
    worst, where = worst_of((results.cost_ratio("pingpong", key, "mib_per_s", me, "floor"),
                             title(key)) for key in results.cases("pingpong"))
    text = f"pingpong, worst column: spate / floor ({where})"
    yield at_least(text, 1 / worst if worst else None, 0.97)
    yield ahead_of_peers(results, "pingpong", "mib_per_s")
    # Each of n connections that are ready at once may cost 2, and the wait 1. Some of the hundred
    # arrive while others are served, so that there are a few waits more.
    for op, limit in (("message, 1 connection", 3.01), ("message, 100 connections", 2.1)):
        calls = results.counts.get(("pingpong", op, "syscalls_per_op", me))
        yield at_most(f"pingpong system calls a {op}", calls, limit)
    yield from fewest_instructions(results, "pingpong")
    for block, connections, least in ((16384, 100, 2.5), (16384, 1000, 2.5), (64, 100, 1.2)):
        key = case_where(results, "pingpong", block=block, connections=connections)
        yield at_least(f"pingpong, {connections:,} connections, {block:,} bytes: "
                       "libevent_on_spate / libevent",
                       results.cost_ratio("pingpong", key, "mib_per_s", "libevent",
                                          "libevent_on_spate") if key else None, least)
    yield from twins_bars(results, "pingpong", ("mib_per_s",))


def header_body_bars(results):
    yield ahead_of_peers(results, "header_body", "seconds")
    yield from fewest_instructions(results, "header_body")
    yield from twins_bars(results, "header_body", ("seconds",))


def rate_bars(workload, metric):
    def bars(results):
        yield ahead_of_peers(results, workload, metric)
        yield from fewest_instructions(results, workload)
        yield from twins_bars(results, workload, (metric,))
    return bars


def idle_bars(results):
    me = results.ours("idle")
    for key in results.cases("idle"):
        def of(metric):
            return results.median("idle", key, metric, me) if me else None
        whole, own = of("bytes_per_connection"), of("user_bytes")
        library = whole - own if whole is not None and own is not None else None
        yield at_most(f"idle {title(key)}: bytes of spate's own", library, 128)
    yield from twins_bars(results, "idle", ("bytes_per_connection",))


def latency_bars(results):
    me = results.ours("latency")
    keys = list(results.cases("latency"))
    polling = [key for key in keys if dict(key)["busy_poll_us"] > 0]
    blocking = next((key for key in keys if key not in polling), None)
    medians = [results.median("latency", blocking, "p50_us", name)
               for name in results.peers("latency")]
    best = min((m for m in medians if m is not None), default=None)
    for key in polling:
        mine = results.median("latency", key, "p50_us", me)
        yield at_least(f"latency {title(key)}: median of the best peer, which blocks / spate",
                       best / mine if best and mine else None, 2)
    yield from fewest_instructions(results, "latency")


def fanout_bars(results):
    me = results.ours("fanout")
    worst, where = worst_against_peers(results, "fanout", "messages_per_s",
                                       results.cases("fanout"))
    yield at_most("fanout, worst column: cost of spate / best peer", worst, 0.5, where)
    worst, where = worst_of((results.cost_ratio("fanout", key, "messages_per_s", me, "floor"),
                             title(key)) for key in results.cases("fanout"))
    yield at_least(f"fanout, worst column: spate / floor, which gathers by hand ({where})",
                   1 / worst if worst else None, 0.95)
    yield from fewest_instructions(results, "fanout")


def http_bars(results):
    yield from rate_bars("http", "requests_per_s")(results)
    me = results.ours("http")
    asked, echoed = (results.count(workload, op, "instructions", results.ours(workload))
                     for workload, op in (("http", "request, keepalive"),
                                          ("pingpong", "message, 100 connections")))
    yield at_most("http instructions a kept-alive request, beyond an echoed message",
                  asked - echoed if me and asked and echoed else None, 700)


def h2_bars(results):
    me = results.ours("h2")
    for key in results.cases("h2"):
        if ("streams", 32) not in key:
            continue
        for peer, limit in (("nghttpd", 1), ("go", 1.5)):
            cost = results.cost_ratio("h2", key, "requests_per_s", me, peer) if me else None
            yield at_least(f"h2 {title(key)}: spate / {peer}", 1 / cost if cost else None, limit)


def websocket_bars(results):
    yield from rate_bars("websocket", "messages_per_s")(results)
    me = results.ours("websocket")
    key = case_where(results, "websocket", connections=200, size=20)
    for peer, limit in (("spate_streams", 0.9), ("libwebsockets", 1.5), ("beast", 2), ("node", 5),
                        ("uwebsockets", 1)):
        cost = (results.cost_ratio("websocket", key, "messages_per_s", me, peer)
                if me and key else None)
        yield at_least(f"websocket, 20 bytes on 200 connections: spate / {peer}",
                       1 / cost if cost else None, limit)
    for what in workloads.WEBSOCKET_TOLD.values():
        published, written = (results.count("websocket", what, "instructions", name)
                              for name in (me, "spate_streams"))
        yield at_most(f"websocket instructions, {what}: published / a share of a Buffer written",
                      published / written if published and written else None, 1.15)


def parser_bars(results):
    me = results.ours("parser")
    if me is None:
        return
    for size in workloads.PARSER_HEADS:
        mine, theirs = (results.count("parser", f"head of {size} bytes", "instructions", name)
                        for name in (me, "http_parser"))
        yield at_most(f"parser instructions, head of {size} bytes: spate / http_parser",
                      mine / theirs if mine and theirs else None, 0.4)
    half, whole = (results.count("parser", f"head of {size} bytes, a byte at a time",
                                 "instructions", me) for size in (4000, 8000))
    yield at_most("parser instructions a byte at a time, of 8,000 bytes / of 4,000",
                  whole / half if half and whole else None, 2.2)


def coro_bars(results):
    for kind in workloads.CORO_KINDS:
        mine, theirs = (results.count("coro", kind, "instructions", name)
                        for name in ("spate", "asio"))
        yield at_most(f"coro instructions, {kind}: spate / asio",
                      mine / theirs if mine and theirs else None, 1)


def tls_bars(results):
    me = results.ours("tls")
    if me is None:
        return

    def beside_floor(kind):
        key = case_where(results, "tls", kind=kind)
        return results.cost_ratio("tls", key, "processor_us", me, "floor")

    echo, floor = (results.count("tls", "echo64", "instructions", name) for name in (me, "floor"))
    yield at_most("tls instructions for 64 bytes echoed: spate / floor",
                  echo / floor if echo and floor else None, 1.1)
    for kind, limit in (("echo16k", 1.05), ("bulk", 1.05), ("full", 1.03), ("resumed", 1.03)):
        yield at_most(f"tls processor time, {kind}: spate / floor", beside_floor(kind), limit)
    full, resumed = (case_where(results, "tls", kind=kind) for kind in ("full", "resumed"))
    yield at_least("tls processor time of a full handshake / of a resumed one",
                   results.across("tls", "processor_us", me, full, resumed), 2)
    # Pieces of 64 KiB, so 16; the others are the request and the waits.
    yield at_most("tls system calls for 1 MiB", results.count("tls", "bulk", "syscalls", me), 20)


def idle_tls_bars(results):
    me = results.ours("idle_tls")
    for key in results.cases("idle_tls"):
        yield at_most("idle_tls bytes of a connection",
                      results.median("idle_tls", key, "bytes_per_connection", me) if me else None,
                      14500)


def idle_websocket_bars(results):
    me = results.ours("idle_websocket")
    for key in results.cases("idle_websocket"):
        kept = results.median("idle_websocket", key, "bytes_per_connection", me) if me else None
        yield at_most("idle_websocket bytes of a connection, and of its session", kept,
                      126 + 64 + 80)


def idle_http_bars(results):
    me = results.ours("idle_http")
    for key in results.cases("idle_http"):
        yield at_most("idle_http bytes of a connection",
                      results.median("idle_http", key, "bytes_per_connection", me) if me else None,
                      222)


def programs_bars(results):
    for original, twin in results.pairs("programs"):
        for key in results.cases("programs"):
            cost = results.cost_ratio("programs", key, "requests_per_s", twin, original)
            if cost is not None:
                yield at_least(f"requests per second: {twin} / {original}", 1 / cost, 1)


def anyevent_bars(results):
    (key,) = results.cases("anyevent")
    yield at_most("anyevent, bytes a watcher",
                  results.median("anyevent", key, "bytes", "spate"), 190)
    for metric, ours, theirs, limit in (
            ("create_us", "spate", "ev", 0.85), ("invoke_us", "spate_ae", "ev_ae", 0.65),
            ("destroy_us", "spate", "ev", 0.85), ("bytes", "spate_any", "ev_any", 1),
            ("create_us", "spate_any", "ev_any", 1), ("invoke_us", "spate_any", "ev_any", 1),
            ("destroy_us", "spate_any", "ev_any", 1)):
        yield at_most(f"anyevent {metric.partition('_')[0]}: {ours} / {theirs}",
                      results.cost_ratio("anyevent", key, metric, ours, theirs), limit)


def anyevent_server_bars(results):
    for key in results.cases("anyevent_server"):
        servers = dict(key)["servers"]
        yield at_most(f"anyevent, a request of {servers:,} servers: spate_ae / ev_ae",
                      results.cost_ratio("anyevent_server", key, "request_us", "spate_ae", "ev_ae"),
                      0.9 if servers > 1000 else 1)


# Rows of one process, and the share of uvloop's time that spate may need.
ASYNCIO_LIMITS = {"call_soon": 0.5, "callback": 0.7, "callback_with_arguments": 0.4,
                  "timer_cancelled": 0.2, "timer_among_many": 0.3, "timer_expired": 0.8,
                  "call_from_thread": 0.5, "sleep_zero": 0.4, "task": 0.4, "future": 0.4,
                  "task_of_gather": 0.5, "reader_added_and_removed": 0.4, "reader_hop": 0.8,
                  "socket_hop": 0.4, "stream_hop": 0.6, "datagram_hop": 0.6,
                  "address_looked_up": 0.9, "connection": 1, "executor_call": 0.9}


def asyncio_bars(results):
    (key,) = results.cases("asyncio")
    for name, limit in ASYNCIO_LIMITS.items():
        yield at_most(f"asyncio {name}: spate / uvloop",
                      results.cost_ratio("asyncio", key, f"{name}_ns", "spate", "uvloop"), limit)


def asyncio_echo_bars(results):
    worst, where = worst_against_peers(results, "asyncio_echo", "processor_us",
                                       results.cases("asyncio_echo"))
    yield at_most("asyncio_echo, worst column: spate / best peer", worst, 1.03, where)


def asyncio_tls_bars(results):
    key = case_where(results, "asyncio_tls", kind="echo1k", mode="protocol")
    for peer, limit in (("uvloop", 0.65), ("uvloop_aiofastnet", 1)):
        ratio = results.cost_ratio("asyncio_tls", key, "processor_us", "spate", peer)
        yield at_most(f"asyncio_tls, echo of 1 KiB: spate / {peer}", ratio if key else None, limit)


# The share of the processor time of a peer that spate's server for Python may need.
ASGI_LIMITS = {"uvicorn_uvloop": 0.55, "granian": 0.45}


def asgi_bars(results):
    key = case_where(results, "asgi", kind="keepalive", connections=64)
    for peer, limit in ASGI_LIMITS.items():
        ratio = results.cost_ratio("asgi", key, "processor_us", "spate", peer) if key else None
        yield at_most(f"asgi, a request of 64 connections: spate / {peer}", ratio, limit)


# How much more the instructions of one unit may be at the greatest size than at the smallest.
SCALE_GROWTH = 1.1


def scale_bars(workload):
    """Instructions of one unit, at the greatest size beside the smallest."""
    def bars(results):
        me = results.ours(workload)
        for operation, _ in results.series(workload):
            by_size = results.counted(workload, operation, me)
            first, last = (by_size[size] for size in (min(by_size), max(by_size))) if by_size else (
                None, None)
            yield at_most(f"{workload} instructions: {operation} at the greatest size / smallest",
                          last / first if first and len(by_size) > 1 else None, SCALE_GROWTH)
    return bars


def all_bars(results):
    bars = {"fd": fd_bars, "watchers": watchers_bars, "timers": timers_bars, "post": post_bars,
            "pingpong": pingpong_bars, "header_body": header_body_bars,
            "threads": rate_bars("threads", "mib_per_s"),
            "churn": rate_bars("churn", "connections_per_s"), "idle": idle_bars,
            "latency": latency_bars, "udp": rate_bars("udp", "packets_per_s"),
            "udp_send": rate_bars("udp_send", "processor_us"),
            "fanout": fanout_bars, "files": rate_bars("files", "operation_us"),
            "coro": coro_bars, "parser": parser_bars, "http": http_bars,
            "h2": h2_bars,
            "tls": tls_bars,
            "websocket": websocket_bars, "idle_websocket": idle_websocket_bars,
            "idle_http": idle_http_bars, "idle_tls": idle_tls_bars, "programs": programs_bars,
            "anyevent": anyevent_bars, "anyevent_server": anyevent_server_bars,
            "asyncio": asyncio_bars, "asyncio_echo": asyncio_echo_bars,
            "asyncio_tls": asyncio_tls_bars, "asgi": asgi_bars,
            **{name: scale_bars(name) for name in workloads.GROUPS["scale"]}}
    assert bars.keys() == workloads.ALL.keys()
    return [bar for name, function in bars.items() if name in results.workloads()
            for bar in function(results)]
