"""The question that each workload answers, in words: for the page and for the terminal."""
import dataclasses

from harness import stats
from harness.workload import ASYNCIO_ROWS, METRICS


@dataclasses.dataclass(frozen=True)
class Subject:
    """A part of the page: a workload, or those of its cases whose parameters are `fixed`."""

    workload: str
    title: str
    after: str  # the project that published the benchmark
    link: str  # where that was published, or ""
    measured: str  # one sentence
    axes: tuple = ()  # parameters over which there is a line, in the order of preference
    fixed: tuple = ()

    def cases(self, results):
        return [key for key in results.cases(self.workload)
                if all(dict(key).get(k) == v for k, v in self.fixed)]

    def verdicts(self, results):
        cases = set(self.cases(results))
        return [v for v in results.verdicts(self.workload, METRICS[self.workload])
                if v.key in cases]


SCALE_MEASURED = (
    "1 to 97,500 connections (the last over five processes), on which {}, at most 32 at a time: "
    "idle, every hundredth active, and all active. Each figure is for one connection or one "
    "request, so a flat curve is ideal.")

SUBJECTS = (
    Subject("fd", "Many sockets, few of them active", "libevent's bench.c",
            "https://libevent.org/",
            "Socket pairs with a watcher each: all are registered anew, then a hundred or a "
            "thousand bytes hop from pair to pair; less time is better.",
            ("pairs",), (("timeouts", 0),)),
    Subject("fd", "The same with idle timeouts", "libev's comparison with libevent",
            "http://libev.schmorp.de/bench.html",
            "As above, but every watcher has a timeout that each byte puts off, as in a server "
            "that drops idle clients; less time is better.",
            ("pairs",), (("timeouts", 1),)),
    Subject("pingpong", "Bytes to and fro", "muduo's and evpp's ping-pong, and Asio's",
            "https://github.com/Qihoo360/evpp/blob/master/docs/benchmark_throughput_vs_muduo_cn.md",
            "A server of one thread sends back whatever its connections send; more MiB a second is "
            "better.", ("connections", "block")),
    Subject("threads", "Bytes to and fro, on several threads", "evpp's table of threads",
            "https://github.com/Qihoo360/evpp/blob/master/docs/benchmark_throughput_vs_asio.md",
            "The same ping-pong of 16 KiB blocks with a loop in each of several threads; more MiB "
            "a second is better.", ("threads",)),
    Subject("header_body", "Growing messages with a header",
            "evpp's and asio_benchmark's header_body",
            "https://github.com/Qihoo360/evpp/blob/master/docs/"
            "benchmark_ping_pong_spend_time_vs_asio.md",
            "Connections exchange messages that grow by a byte each time, as a protocol's would; "
            "fewer seconds are better.", ("threads",)),
    Subject("post", "Tasks from other threads", "evpp's post_task programs",
            "https://github.com/Qihoo360/evpp/blob/master/docs/benchmark_lockfree_vs_mutex.md",
            "Loops in threads of their own hand tasks to each other and wake each other; more "
            "tasks a second are better.", ("producers",)),
    Subject("watchers", "A watcher's life", "AnyEvent's table",
            "https://metacpan.org/pod/AnyEvent#BENCHMARKS",
            "The time to make, call and destroy one watcher among a hundred thousand; less is "
            "better."),
    Subject("anyevent", "A watcher's life, in Perl", "AnyEvent's first table",
            "https://metacpan.org/pod/AnyEvent#BENCHMARKS",
            "The memory of a watcher, and the time to make, call and destroy it, by Perl's event "
            "loops, directly and through AnyEvent; less is better."),
    Subject("anyevent_server", "Requests, in Perl", "AnyEvent's second and third table",
            "https://metacpan.org/pod/AnyEvent#BENCHMARKS",
            "Bytes go from server to server, each of which postpones a timeout; less time for a "
            "request is better.", ("servers",)),
    Subject("timers", "A million timers", "libuv's million_timers",
            "https://github.com/libuv/libuv/blob/v1.x/test/benchmark-million-timers.c",
            "Timers are started, put off, stopped and started again at random, and expire; the "
            "time for each, less is better.", ("pending",)),
    Subject("churn", "Short connections", "libuv's tcp4_pound",
            "https://github.com/libuv/libuv/blob/v1.x/test/benchmark-pound.c",
            "Connections are accepted, answered once and closed, server and client on one core; "
            "more a second is better.", ("connections",)),
    Subject("latency", "One round trip", "libuv's ping_pongs and muduo's roundtrip",
            "https://github.com/libuv/libuv/blob/v1.x/test/benchmark-ping-pongs.c",
            "64 bytes to and fro on one connection, by a client that never sleeps: the middle and "
            "the slowest hundredth of the round trips; less time is better."),
    Subject("udp", "Packets to and fro", "libuv's udp_pummel",
            "https://github.com/libuv/libuv/blob/v1.x/test/benchmark-udp-pummel.c",
            "64 packets are on the way to a server that sends each back, one by one or in batches; "
            "more packets a second are better."),
    Subject("udp_send", "Packets to many peers", "", "",
            "A server sends 16 packets of 1,200 bytes to each of 1 or 100 clients that ask, one by "
            "one or split by the kernel (segments 1); less processor time for a packet is better."),
    Subject("files", "Blocks of a file", "", "",
            "One thread reads or writes blocks of a file, one by one and without blocking its loop "
            "(cold 1: the file is not in the page cache); less time is better."),
    Subject("coro", "Coroutines", "", "",
            "Awaiting a child, spawning and joining, sleeping for no time, awaiting two together, "
            "passing a value through a channel; the time for each, less is better."),
    Subject("parser", "Heads of requests", "picohttpparser's bench",
            "https://github.com/h2o/picohttpparser/blob/master/bench.c",
            "Heads of 100 to 8,000 bytes are parsed, whole or with one more byte of them at a time "
            "(piece 1), and their fields found; less time is better.", ("head_bytes",)),
    Subject("http", "HTTP/1.1 requests", "wrk's and h2load's runs against servers", "",
            "A server of one thread answers requests of 13 bytes, 20 KiB and 1 MiB, over kept and "
            "new connections, and receives uploads; more requests a second are better.",
            ("connections",), (("kind", "keepalive"),)),
    Subject("h2", "HTTP/2 requests", "nghttp2's h2load",
            "https://nghttp2.org/documentation/h2load-howto.html",
            "A server of one thread answers requests of 13 bytes and 20 KiB, 1 and 32 at a time on "
            "1 and 100 connections; more requests a second, for less of the server's processor "
            "time, are better.", ("connections",), (("kind", "hello"), ("streams", 32))),
    Subject("tls", "TLS 1.3", "", "",
            "Handshakes, full and resumed, and bytes echoed or sent, all with AES-128-GCM and a "
            "certificate on P-256: the server's processor time for one (bulk: for 1 MiB), as a "
            "client of TLS costs as much as its server; less is better."),
    Subject("websocket", "WebSocket echo", "uWebSockets' load_test",
            "https://github.com/uNetworking/uWebSockets/blob/master/benchmarks/load_test.c",
            "Messages of 20 bytes to 16 KiB are sent back, one on the way on each connection; more "
            "messages a second are better.", ("connections",), (("size", 20),)),
    Subject("fanout", "One publisher, every message to all",
            "muduo's and Asio's chat servers, and Redis's PUBLISH",
            "https://github.com/chenshuo/muduo/tree/master/examples/asio/chat",
            "Each message of one connection goes to a hundred or a thousand others; more messages "
            "delivered a second are better.", ("subscribers",)),
    Subject("idle", "Ten thousand idle connections", "", "",
            "The memory that an idle connection takes, and the processor's time when each says a "
            "byte twice a second and its timeout is put off; less is better."),
    Subject("idle_http", "Idle connections of HTTP", "", "",
            "The memory that each of 5,000 takes which were answered once and are kept alive: by "
            "the allocator's count, and by pages; less is better."),
    Subject("idle_tls", "Idle connections of TLS", "", "",
            "The memory that each of 1,000 takes, two seconds after 64 bytes were sent back: "
            "by the allocator's count, and by pages; less is better."),
    Subject("idle_websocket", "Idle WebSockets", "", "",
            "The memory that each of 5,000 takes which have had a message echoed: by the "
            "allocator's count, and by pages; less is better."),
    Subject("asyncio", "Loops for Python", "", "",
            "Callbacks, timers, tasks, descriptors and sockets inside of one process: the "
            "processor time for one; less is better."),
    Subject("asyncio_echo", "Echo servers in Python", "", "",
            "A server sends back 1 KiB at a time to 50 connections, written with protocols, "
            "buffered protocols, streams or sockets: its processor time for one message; less is "
            "better."),
    Subject("asyncio_tls", "TLS 1.3 in Python", "", "",
            "Handshakes, and 1 and 16 KiB sent back to 20 connections: the server's processor time "
            "for one; less is better."),
    Subject("asgi", "Servers for Python", "", "",
            "One process serves the same ASGI application: its processor time for a request; less "
            "is better."),
    Subject("scale_plain", "C10K and beyond: the cost of a TCP connection", "", "",
            SCALE_MEASURED.format("64 bytes are echoed"), ("connections",)),
    Subject("scale_tls", "The cost of a TLS connection", "", "",
            SCALE_MEASURED.format("64 bytes are echoed with TLS 1.3"), ("connections",)),
    Subject("scale_http", "The cost of an HTTP keep-alive connection", "", "",
            SCALE_MEASURED.format("a GET is answered with 13 bytes"), ("connections",)),
    Subject("scale_websocket", "The cost of a WebSocket connection", "", "",
            SCALE_MEASURED.format("a message of 64 bytes is echoed"), ("connections",)),
    Subject("scale_topics", "Pub/sub: the cost of a delivery", "", "",
            "Messages of 64 bytes are published to 10 to 97,500 WebSocket subscribers (the last "
            "over five processes): time and processor time of one delivery, memory of a "
            "subscriber. A flat curve is ideal.", ("connections",)),
    Subject("scale_timers", "The cost of a timer among thousands to millions", "", "",
            "Timers are started, moved, stopped and started again, and expire, among 1,000 to "
            "10,000,000: the time for one operation. A flat curve is ideal.", ("pending",)),
    Subject("scale_files", "File watching: the cost of a change", "", "",
            "Files of one watched directory are written, 100 at a time: the time to start the "
            "watch, and the loop's time for one reported change. A flat curve is ideal.",
            ("files",)),
    Subject("programs", "Servers as the distribution built them", "", "",
            "memcached and nghttpd, the same binaries, on their own event library and on spate's "
            "drop-in for it; more requests a second are better."),
)

METRIC_WORDS = {
    "whole_us": "whole iteration", "processing_us": "events alone", "setup_us": "registration",
    "create_ns": "make", "invoke_ns": "call", "destroy_ns": "destroy",
    "bytes": "memory a watcher", "object_bytes": "size of the object",
    "start_ns": "start", "restart_ns": "put off", "stop_start_ns": "stop and start",
    "expire_ns": "expire", "posts_per_s": "tasks a second", "mib_per_s": "throughput",
    "messages_per_s": "messages a second", "processor_us": "processor time for one",
    "seconds": "time", "connections_per_s": "connections a second",
    "bytes_per_connection": "memory a connection", "cpu_percent": "processor",
    "resident_per_connection": "pages a connection", "user_bytes": "the contestant's own bytes",
    "p50_us": "median", "p99_us": "99 % are faster", "p999_us": "99.9 % are faster",
    "head_ns": "time for a head", "operation_ns": "time for one",
    "operations_per_s": "operations a second",
    **{f"{row}_ns": row.replace("_", " ") for row in ASYNCIO_ROWS},
    "accept_us": "accept", "accept_processor_us": "accept: processor time",
    "accept_p50_us": "request during accept: median",
    "accept_p99_us": "request during accept: 99 % are faster",
    "idle_p50_us": "request, others idle: median",
    "idle_p99_us": "request, others idle: 99 % are faster",
    "few_processor_us": "request, 1 % active: processor time",
    "few_p50_us": "request, 1 % active: median",
    "few_p99_us": "request, 1 % active: 99 % are faster",
    "all_processor_us": "request, all active: processor time",
    "all_p50_us": "request, all active: median",
    "all_p99_us": "request, all active: 99 % are faster",
    "drain_us": "drain", "drain_processor_us": "drain: processor time",
    "delivery_us": "delivery", "delivery_processor_us": "delivery: processor time",
    "watch_us": "start the watch", "watch_bytes": "memory of the watch",
    "event_ns": "a reported change",
    "packets_per_s": "packets a second", "requests_per_s": "requests a second",
}

UNIT_WORDS = {"us": "µs", "1/s": "/s"}


def unit(text):
    return UNIT_WORDS.get(text, text)


def metric_words(metric):
    return METRIC_WORDS.get(metric, metric)


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def count_words(results, workload, operation, name):
    """Instructions; system calls."""
    instructions = results.count(workload, operation, "instructions", name)
    calls = results.count(workload, operation, "syscalls", name)
    if instructions is None and calls is None:
        return "–"
    return f"{number(instructions)}; {'–' if calls is None else f'{calls:.2f}'}"


def factor(value):
    return "–" if value is None else f"{value:.2f}×" if value < 9.95 else f"{value:.1f}×"


def telling(keys):
    """The parameters in which these cases differ."""
    names = [name for name, _ in keys[0]] if keys else []
    return {name for name in names if len({dict(key).get(name) for key in keys}) > 1}


def case_words(key, names):
    """The case by those of its parameters that are named: "connections 100, block 64"."""
    parts = []
    for name, value in key:
        if name in names:
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            parts.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(parts)


def where(verdict, names):
    """The case of a verdict, and the metric if its workload has several: "start, pending 1,000"."""
    case, metric = case_words(verdict.key, names), metric_words(verdict.metric)
    if case and len(METRICS[verdict.workload]) == 1:
        return case
    return ", ".join(filter(None, [metric, case]))


def in_one_sentence(verdicts, names):
    """Returns one sentence with the winners, from verdicts on cases that the parameters `names`
    distinguish."""
    told = [v for v in verdicts if v.word]
    if not told:
        return "Too few repetitions to tell who is ahead."
    if len(told) == 1:
        [only] = told
        place = {stats.AHEAD: "ahead of", stats.LEVEL: "level with", stats.BEHIND: "behind"}
        return (f"spate is {place[only.word]} the best peer, {only.other}: {factor(only.factor)} "
                "as good.")
    ahead, level, behind = stats.tally(told)
    parts = [f"{word} in {count}" for count, word in
             ((ahead, "ahead"), (level, "level"), (behind, "behind")) if count]
    text = f"Of {len(told)} comparisons with the best peer, spate is {', '.join(parts)}"
    least = stats.worst(told)
    if least is None:
        return text + "."
    noise = ", which is within the noise" if least.word == stats.LEVEL else ""
    return (f"{text}; typically it is {factor(stats.typical(told))} as good, at worst "
            f"{factor(least.factor)} {least.other} ({where(least, names)}){noise}.")
