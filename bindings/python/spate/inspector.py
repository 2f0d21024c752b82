"""A page that shows the figures and the tasks of a running loop."""

import asyncio
import html
import ipaddress
import json

LONGEST_REQUEST = 8192
SECONDS = 10  # A client must send its request in this time.
PAGE = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>spate</title><style>body {{ font: 14px sans-serif }} td {{ padding: 0 1em 0 0 }}</style>
<h1>Loop</h1><table>{figures}</table><h1>Tasks: {count}</h1><table>{tasks}</table>
"""


def describe_task(task):
    """Returns the task's name and the place where its coroutine is suspended."""
    frames = task.get_stack(limit=1)
    place = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
    coroutine = getattr(task.get_coro(), "__qualname__", "")
    return {"name": task.get_name(), "coroutine": coroutine, "place": place}


def make_rows(rows):
    cells = ("".join(f"<td>{html.escape(str(cell))}" for cell in row) for row in rows)
    return "".join(f"<tr>{row}" for row in cells)


def make_page(figures, tasks):
    return "text/html; charset=utf-8", PAGE.format(
        figures=make_rows(figures.items()), count=len(tasks),
        tasks=make_rows(task.values() for task in tasks))


def make_json(figures, tasks):
    return "application/json", json.dumps({**figures, "tasks": tasks})


def make_prometheus(figures, tasks):
    lines = [f"spate_loop_{name} {value}\n" for name, value in figures.items()]
    lines.append(f"spate_loop_tasks {len(tasks)}\n")
    return "text/plain; version=0.0.4; charset=utf-8", "".join(lines)


DOCUMENTS = {"/": make_page, "/json": make_json, "/metrics": make_prometheus}


def is_local_name(host):
    """Returns whether a page of another site cannot have led the browser here by its own name."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name in ("", "localhost")
    return True


def respond(head, loop):
    """Returns the status, the type and the text for the request."""
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    fields = dict(line.lower().split(":", 1) for line in lines[1:] if ":" in line)
    make = DOCUMENTS.get(rest.partition(" ")[0].partition("?")[0])
    if method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", "text/plain", "GET or HEAD\n"
    if not is_local_name(fields.get("host", "").strip()):
        return "421 Misdirected Request", "text/plain", "use an address or localhost\n"
    if make is None:
        return "404 Not Found", "text/plain", "/, /json, /metrics\n"
    tasks = [describe_task(task) for task in asyncio.all_tasks(loop)]
    return "200 OK", *make(loop.metrics()._asdict(), tasks)


async def serve(reader, writer):
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
        status, kind, text = respond(head, asyncio.get_running_loop())
        body = text.encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                     f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
                     "Connection: close\r\n\r\n".encode())
        if not head.startswith(b"HEAD "):
            writer.write(body)
        await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError,
            ConnectionError):
        pass
    finally:
        writer.close()


async def inspect(port, host="127.0.0.1"):
    """Serves the figures and tasks of the running loop over HTTP. Returns the asyncio.Server.

    The documents are / for people, /json, and /metrics for Prometheus. Anyone who can connect
    may read them.
    """
    return await asyncio.start_server(serve, host, port, limit=LONGEST_REQUEST)
