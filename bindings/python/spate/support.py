"""Functions in Python that the native half seldom calls."""

import sys
import time
from asyncio import base_events, format_helpers
from asyncio.log import logger


def describe_handle(handle, callback, arguments):
    parts = [handle.__class__.__name__]
    if handle.cancelled():
        parts.append("cancelled")
    if parts[0] == "TimerHandle":
        parts.append(f"when={handle.when()}")
    if callback is not None:
        parts.append(format_helpers._format_callback_source(callback, arguments))
    stack = handle._source_traceback
    if stack:
        parts.append(f"created at {stack[-1][0]}:{stack[-1][1]}")
    return f"<{' '.join(parts)}>"


def capture_stack():
    return format_helpers.extract_stack(sys._getframe(1))


def report(loop, exception, message, handle, transport):
    if message is None:
        callback = format_helpers._format_callback_source(handle._callback, handle._args or ())
        message = f"Exception in callback {callback}"
    context = {"message": message, "exception": exception}
    if handle is not None:
        context["handle"] = handle
        if handle._source_traceback:
            context["source_traceback"] = handle._source_traceback
    if transport is not None:
        context["transport"] = transport
        context["protocol"] = transport.get_protocol()
    loop.call_exception_handler(context)


def run_in_debug_mode(loop, handle):
    """Runs a handle, and warns if it takes long."""
    loop._current_handle = handle
    begin = time.monotonic()
    try:
        handle._run()
    finally:
        seconds = time.monotonic() - begin
        if seconds >= loop.slow_callback_duration:
            logger.warning("Executing %s took %.3f seconds",
                           base_events._format_handle(handle), seconds)
        loop._current_handle = None


def warn_of_lost_write():
    logger.warning("socket.send() raised exception.")
