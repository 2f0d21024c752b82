#!/usr/bin/env python3
"""Holds the dependency rule.   tools/check_layers.py [root of the tree]

Reads the #include lines of every C and C++ file and prints one line per breach. The rule is the
table LAYERS below; docs/design.md says why.
"""

import os
import re
import sys

from source_tree import blank, files, finish, is_test, read, root_from

# The layers that each layer may include beside itself and the vocabulary, from the ground up. A
# layer may include only layers listed above it, so that there is no circle. A layer is a directory
# of src/, or a room of src/net, src/http or src/sim, with its public headers: include/spate/*.h are
# core's, except BESIDE_CORE, and include/spate/net/*.h those of the rooms of net; include/*.h are
# C's. PUBLIC has no header of http and sim.
GROUND = {"base", "sys", "core", "net"}
PUBLIC = "the public headers of the loop and the network"
LAYERS = {
    "base": set(),
    "sys": {"base"},
    "backend": {"base", "sys"},
    "core": {"base", "sys", "backend"},
    "offload": {"base", "sys", "core"},
    "net": {"base", "sys", "core"},
    "file": GROUND | {"offload"},
    "net/stream": GROUND | {"offload"},
    "net/dns": GROUND,
    "net/connect": GROUND | {"net/stream", "net/dns"},
    "net/listen": GROUND | {"net/stream", "net/connect"},
    "net/datagram": GROUND,
    "net/process": GROUND | {"net/stream"},
    "net/tls": GROUND | {"net/stream", "net/connect"},
    "net/reconnect": GROUND | {"net/stream", "net/connect", "net/tls"},
    "net/workers": GROUND | {"net/stream", "net/listen", "net/tls", "net/datagram"},
    "c": GROUND | {"file", "net/stream", "net/listen", "net/dns", "net/connect", "net/datagram",
                   "net/tls"},
    "tls": {"base", "core", "net", "net/tls", "net/dns", "c"},
    "http/codec": {"base", "spate/net/bytes.h", "spate/net/buffer.h", "spate/net/address.h",
                   "spate/net/network.h"},
    "http/content": {"base", "spate/net/bytes.h", "spate/net/buffer.h", "spate/net/address.h",
                     "spate/net/network.h", "http/codec"},
    "http/tunnel": {PUBLIC, "base", "http/codec"},
    "http/server": {PUBLIC, "base", "sys", "core", "offload", "http/codec", "http/content",
                    "http/tunnel"},
    "http2": {PUBLIC, "base", "core", "http/codec"},
    "http/client": {PUBLIC, "base", "sys", "http/codec", "http/content", "http/tunnel"},
    "http/middleware": {PUBLIC, "base", "sys", "http/codec", "http/content", "http/server"},
    "http/websocket": {PUBLIC, "base", "sys", "core", "http/codec", "http/server", "http/client"},
    "http/gateway": {PUBLIC, "base", "sys", "core", "http/codec", "http/content", "http/server",
                     "http/client"},
    "http/inspector": {PUBLIC, "base", "http/codec", "http/content", "http/server", "http/client",
                       "http/gateway"},
    "coro": {"base", "core", "offload", "file", "net", "net/stream", "net/listen", "net/dns",
             "net/connect", "net/datagram", "net/tls", "net/reconnect"},
    "http/coro": {PUBLIC, "base", "coro", "http/codec", "http/server", "http/client",
                  "http/websocket"},
    "sim/kernel": {PUBLIC, "base", "core"},
    "sim/net": {PUBLIC, "base", "sim/kernel"},
    "sim/unix": {PUBLIC, "base", "sim/kernel"},
    "sim/disk": {PUBLIC, "base", "sim/kernel"},
    "sim/syscalls": {PUBLIC, "base", "sim/kernel", "sim/net", "sim/unix", "sim/disk"},
    "sim/world": {PUBLIC, "base", "sim/kernel", "sim/net", "sim/unix", "sim/disk", "sim/syscalls"},
    "sim/explore": {PUBLIC, "base", "sim/kernel", "sim/world"},
}

# The layer of a public header of include/spate that is not core's.
BESIDE_CORE = {"offload": "offload", "file": "file",
               "file_writer": "file", "watch": "file", "c_loop": "c"}

# The room of a public header of net; those that are not here belong to net itself.
ROOMS = {
    "stream": "net/stream", "stream_info": "net/stream", "stream_use": "net/stream",
    "rate_limit": "net/stream", "session": "net/stream", "relay": "net/stream",
    "listener": "net/listen", "proxy_protocol": "net/listen",
    "workers": "net/workers", "workers_server": "net/workers", "server": "net/workers",
    "session_service": "net/workers",
    "datagram_group": "net/workers",
    "resolver": "net/dns", "connect": "net/connect", "client": "net/reconnect",
    "request_pipe": "net/reconnect",
    "datagram": "net/datagram", "process": "net/process",
    "service_manager": "net/process", "tls": "net/tls",
}

# The room of a public header of http; those that are not here are the codec's.
HTTP_ROOMS = {
    "compression": "http/content", "conditional": "http/content", "cookie": "http/content",
    "event_stream": "http/content", "form": "http/content", "html": "http/content",
    "media_type": "http/content", "negotiate": "http/content", "range": "http/content",
    "request": "http/server", "exchange": "http/server", "server": "http/server",
    "router": "http/server", "files": "http/server", "events": "http/server",
    "receive_file": "http/server", "download": "http/client",
    "hosts": "http/server", "attribute": "http/server", "json": "http/server",
    "nlohmann_json": "http/server", "simdjson": "http/server", "middleware": "http/middleware",
    "access_log": "http/middleware", "exchange_keeper": "http/server",
    "client": "http/client", "call": "http/client", "body": "http/client", "retry": "http/client",
    "event_source": "http/client",
    "response": "http/client", "proxy": "http/client", "gateway": "http/gateway",
    "upstreams": "http/gateway",
    "inspector": "http/inspector", "readings": "http/inspector",
    "websocket": "http/websocket", "websocket_client": "http/websocket",
    "websocket_sessions": "http/websocket",
    "topic": "http/websocket", "coro": "http/coro",
    "coro_body": "http/coro", "coro_call": "http/coro", "coro_exchange": "http/coro",
    "coro_websocket": "http/coro", "coro_handler": "http/coro",
}

# The room of a public header of sim; those that are not here are the World's.
SIM_ROOMS = {"running": "sim/kernel", "link": "sim/net", "disk": "sim/disk",
             "explore": "sim/explore"}

# As above for the drop-in layers, whose files may include the headers of their room and of these.
COMPAT = {
    "libev": set(),
    "libev_source": {"libev"},
    "libevent": set(),
    "libevent/event": {"libevent"},
    "libevent/evutil": {"libevent"},
    "libevent/buffer": {"libevent", "libevent/event"},
    "libevent/bufferevent": {"libevent", "libevent/buffer", "libevent/event"},
    "libevent/listener": {"libevent", "libevent/event"},
    "libevent/http": {"libevent"},
    "libevent/rpc": {"libevent", "libevent/http"},
    "libevent/dns": {"libevent", "libevent/event", "libevent/evutil"},
    "libevent_openssl": {"libevent", "libevent/bufferevent"},
}

# Public headers that depend on nothing but one another, and that every layer may use.
VOCABULARY = {f"spate/{name}.h" for name in (
    "assert", "error", "events", "export", "function", "invoke", "metrics", "time",
    "version")} | {"spate_version.h"}

# Built on the public headers only, besides their own files.
OUTSIDE = ("compat", "bindings", "examples", "bench", "programs")

# Except these, which measure internal interfaces: file -> layer.
INSIDE = {"bench/workloads/parser/spate.cc": "http/codec"}

# Only src/sys enters the kernel, and src/sim, which stands in for it.
KERNEL_LAYERS = ("sys", *(layer for layer in LAYERS if layer.startswith("sim/")))
KERNEL_HEADERS = re.compile(
    r"(sys|linux|asm|arpa|net|netinet|netpacket|bits)/.*"
    r"|(unistd|fcntl|signal|poll|time|pthread|sched|semaphore|netdb|ifaddrs|dirent|dlfcn|spawn"
    r"|termios|pwd|grp|syslog|wait|ucontext|mqueue|aio|glob|resolv|syscall)\.h|csignal|ctime")
CLOCKS = re.compile(
    r"\b(?:steady|system|high_resolution|utc|tai)_clock::now\b|\bsleep_(?:for|until)\b"
    r"|\b(?:clock_gettime|clock_nanosleep|gettimeofday|nanosleep|timespec_get)\s*\("
    r"|(?:\bstd::|(?<![\w>])::)time\s*\(")
SYSTEM_CALLS = re.compile(
    r"(?<![\w>])::(?:read|write|readv|writev|close|open|pipe2?|dup[23]?|fcntl|ioctl|poll|ppoll"
    r"|select|pselect|epoll_\w+|eventfd|timerfd_\w+|signalfd|inotify_\w+|socket|socketpair|bind"
    r"|listen|accept4?|connect|shutdown|send|sendto|sendmsg|sendmmsg|recv|recvfrom|recvmsg|recvmmsg"
    r"|[gs]etsockopt|getsockname|getpeername|fork|vfork|waitpid|waitid|kill|raise|sigaction"
    r"|sigprocmask|pthread_\w+|mmap|munmap|syscall|getpid|gettid|stat|fstat|lstat)\s*\(")

# The headers of the benchmarks' peers: a contestant is built on one of them.
PEERS = {
    "libevent": re.compile(r"event2/.*|event\.h|evhttp\.h|evdns\.h|evutil\.h"),
    "libev": re.compile(r"ev\.h|ev\+\+\.h"),
    "libuv": re.compile(r"uv\.h|uv/.*"),
    "asio": re.compile(r"asio\.hpp|asio/.*"),
    "boost": re.compile(r"boost/.*"),
    "glib": re.compile(r"glib\.h|glib-.*|gio/.*"),
    "concurrentqueue": re.compile(r"(concurrentqueue/)?(blocking)?concurrentqueue\.h"),
    "muduo": re.compile(r"muduo/.*"),
    "evpp": re.compile(r"evpp/.*"),
    "spate": re.compile(r"spate/.*"),
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')


def public_layer(path):
    """The layer of a public header, spate/..., or one of C's."""
    parts = path.split("/")
    if len(parts) == 1:
        return "c"
    if parts[1] == "net":
        return ROOMS.get(parts[2].removesuffix(".h"), "net")
    if parts[1] == "http":
        return HTTP_ROOMS.get(parts[2].removesuffix(".h"), "http/codec")
    if parts[1] == "sim":
        return SIM_ROOMS.get(parts[2].removesuffix(".h"), "sim/world")
    if parts[1] == "layer":
        return "core"
    return parts[1] if len(parts) > 2 else BESIDE_CORE.get(parts[1].removesuffix(".h"), "core")


def source_layer(parts):
    """Returns the layer of a file of src/, from its path below src/."""
    if parts[0] in ("net", "http", "sim") and len(parts) > 2:
        return parts[0] + "/" + parts[1]
    return parts[0] if len(parts) > 1 else "core"


def layer_of(name):
    """The layer of a file of the tree, or None if it belongs to none."""
    parts = name.split("/")
    if name.startswith("include/"):
        return public_layer("/".join(parts[1:]))
    if parts[0] == "src":
        return source_layer(parts[1:])
    return parts[0] if parts[0] in OUTSIDE else None


def compat_room(name):
    """Returns the room of a file of compat/, or None for files beside the layers, which are
    their build."""
    parts = name.split("/")
    return "/".join(parts[1:-1]) if parts[0] == "compat" and len(parts) > 2 else None


def resolve(name, path, quoted, tree):
    """Resolves an include: returns (public, path), (src, layer), (own, path) or (system, path)."""
    if path.startswith("spate/"):
        return "public", path
    if quoted:
        beside = os.path.normpath(os.path.join(os.path.dirname(name), path))
        for candidate in (beside, f"src/{path}", path, f"include/{path}"):
            if candidate not in tree:
                continue
            if candidate.startswith("src/"):
                return "src", layer_of(candidate)
            if candidate.startswith("include/"):
                return "public", candidate[len("include/"):]
            return "own", candidate
        parts = path.split("/")
        if len(parts) > 1 and source_layer(parts) in LAYERS:
            return "src", source_layer(parts)
    return "system", path


def may_include(layer, target):
    """Whether a layer may include a public header, or a layer's internal one."""
    if target in VOCABULARY or target in LAYERS[layer]:
        return True
    other = public_layer(target) if target.endswith(".h") else target
    is_general = other != target and not other.startswith(("http/", "sim/"))
    if is_general and PUBLIC in LAYERS[layer]:
        return True
    return other == layer or other in LAYERS[layer]


def check_include(name, kind, target):
    """Returns the error in one include of a project's or a system's header, or None."""
    layer = layer_of(name)
    is_public = name.startswith("include/")
    if kind == "system":
        is_ours = (layer in LAYERS or is_public) and layer not in KERNEL_LAYERS
        if is_ours and KERNEL_HEADERS.fullmatch(target):
            return f"<{target}> is for src/sys only"
        return None
    if kind == "own" and layer in LAYERS:
        return "a file outside src and include"
    if kind == "own" and compat_room(name) and compat_room(target):
        room, other = compat_room(name), compat_room(target)
        if other != room and other not in COMPAT[room]:
            return f"{room} may not include {other}"
    if kind == "src" and is_public:
        return f"a public header includes an internal one, of {target}"
    if kind == "src" and layer in OUTSIDE and INSIDE.get(name) != target:
        return f"{layer} is built on the public headers only, and includes one of src/{target}"
    if is_public and name[len("include/"):] in VOCABULARY and target not in VOCABULARY:
        return f"the vocabulary depends on nothing else, and includes {target}"
    if kind in ("src", "public") and layer in LAYERS and not may_include(layer, target):
        return f"{layer} may not include {target}"
    return None


def peers_of(includes):
    return sorted({peer for path in includes for peer, header in PEERS.items()
                   if header.fullmatch(path)})


def check_file(root, name, tree):
    text = read(root, name)
    if text is None:
        return
    layer = layer_of(name)
    if name.startswith("src/") and layer not in LAYERS:
        yield 1, f"src/{layer} is no layer that tools/check_layers.py knows"
        return
    if compat_room(name) and compat_room(name) not in COMPAT:
        yield 1, f"compat/{compat_room(name)} is no room that tools/check_layers.py knows"
        return
    included = []
    for number, line in enumerate(blank(text, strings=False).split("\n"), 1):
        include = INCLUDE.match(line)
        if include:
            path = include.group(2)
            included.append(path)
            kind, target = resolve(name, path, include.group(1) == '"', tree)
            problem = check_include(name, kind, target)
            if problem:
                yield number, problem
    peers = peers_of(included)
    if name.startswith("bench/") and len(peers) > 1:
        yield 1, f"a contestant is built on one library, not on {' and '.join(peers)}"
    if layer in LAYERS and layer not in KERNEL_LAYERS:
        for number, line in enumerate(blank(text).split("\n"), 1):
            if CLOCKS.search(line):
                yield number, "only src/sys reads a clock or sleeps"
            if SYSTEM_CALLS.search(line):
                yield number, "only src/sys enters the kernel"


def check_table():
    """Returns the errors in LAYERS itself."""
    known = set()
    for layer, others in LAYERS.items():
        for other in others:
            if not other.startswith("spate/") and other != PUBLIC and other not in known:
                yield f"{layer} may include {other}, which does not stand above it"
        known.add(layer)


def check_tree(root):
    names = [name for name in files(root) if name.endswith((".h", ".cc", ".c", ".hpp", ".cpp"))]
    tree = set(names)
    checked = [name for name in names if layer_of(name) and not is_test(name)]
    problems = [f"tools/check_layers.py: {message}" for message in check_table()]
    problems += [f"{name}:{line}: {message}" for name in checked
                 for line, message in check_file(root, name, tree)]
    return problems, len(checked)


def main(arguments):
    return finish("layers", *check_tree(root_from(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
