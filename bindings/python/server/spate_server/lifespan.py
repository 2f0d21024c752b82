"""The lifespan protocol of ASGI: the application starts before the first request is accepted."""

import asyncio


class StartupFailed(Exception):
    """The application reported that it cannot start, or raised an exception."""


class Lifespan:
    def __init__(self, app, mode, logger):
        self.app = app
        self.mode = mode
        self.logger = logger
        self.state = {}
        self.messages = asyncio.Queue()
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.is_supported = False
        self.failure = None
        self.task = None

    async def startup(self):
        """Starts the application. Raises StartupFailed."""
        if self.mode == "off":
            return
        self.task = asyncio.create_task(self.call())
        self.messages.put_nowait({"type": "lifespan.startup"})
        await self.started.wait()
        if self.failure is not None:
            raise StartupFailed(self.failure)

    async def shutdown(self):
        """Stops the application. Returns whether it stopped without a failure."""
        if not self.is_supported or self.task.done():
            return True
        self.failure = None
        self.messages.put_nowait({"type": "lifespan.shutdown"})
        await self.stopped.wait()
        if self.failure is not None:
            self.logger.error("The application failed to shut down: %s", self.failure)
        return self.failure is None

    async def call(self):
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"},
                 "state": self.state}
        try:
            await self.app(scope, self.messages.get, self.send)
            if not self.started.is_set() and self.mode == "on":
                self.failure = "it returned without lifespan.startup.complete"
        except Exception as error:
            self.fail(error)
        finally:
            self.started.set()
            self.stopped.set()

    def fail(self, error):
        if self.started.is_set():
            if self.failure is None:
                self.failure = repr(error)
            self.logger.error("The application failed in its lifespan", exc_info=error)
        elif self.mode == "auto" and self.failure is None:
            self.logger.debug("The application does not support lifespan: %r", error)
        else:
            self.failure = self.failure or repr(error)
            self.logger.error("The application failed to start", exc_info=error)

    async def send(self, message):
        kind = message["type"]
        if kind == "lifespan.startup.complete" and not self.started.is_set():
            self.is_supported = True
            self.started.set()
        elif kind == "lifespan.startup.failed" and not self.started.is_set():
            self.failure = message.get("message") or "it gave no reason"
            self.started.set()
        elif kind == "lifespan.shutdown.complete" and self.started.is_set():
            self.stopped.set()
        elif kind == "lifespan.shutdown.failed" and self.started.is_set():
            self.failure = message.get("message") or "it gave no reason"
            self.stopped.set()
        else:
            raise RuntimeError(f"the message {kind!r} is not expected now")
