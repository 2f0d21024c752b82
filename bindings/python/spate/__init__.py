"""An asyncio event loop on spate.

    import spate
    spate.run(main())

or asyncio.Runner(loop_factory=spate.new_event_loop).
"""

import asyncio

from .inspector import inspect
from .loop import Loop, Metrics

__version__ = "0.1.0"
__all__ = ["Loop", "Metrics", "inspect", "install", "new_event_loop", "run"]


def new_event_loop():
    """Returns a new loop: a factory for asyncio.Runner and similar functions."""
    return Loop()


def run(main, *, debug=None):
    """Runs the coroutine on a new loop, as asyncio.run() does, and returns its result."""
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)


def install():
    """Makes spate's loop that of asyncio.run() and asyncio.new_event_loop().

    For programs that cannot be changed to use run() or a loop factory. It sets asyncio's event loop
    policy, which newer versions of Python deprecate.
    """
    asyncio.set_event_loop_policy(__getattr__("EventLoopPolicy")())


def __getattr__(name):
    """Makes EventLoopPolicy when it is first used, because Python warns of policies since 3.14."""
    if name != "EventLoopPolicy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
        """A policy whose loops are spate's, for asyncio.set_event_loop_policy()."""
        _loop_factory = Loop

    globals()[name] = EventLoopPolicy
    return EventLoopPolicy
