"""Several processes that share a port."""

import contextlib
import logging
import os
import signal
import time

from .config import ConfigError
from .server import hosts_of, listen_on_path, run

logger = logging.getLogger("spate_server")
# A worker that ends sooner than this has failed to start, and is not started again.
SECONDS_OF_START = 1


SIGNALS = {signal.SIGINT, signal.SIGTERM}


@contextlib.contextmanager
def blocked_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def fork_server(config, reuse_port):
    """Starts a process that serves. Returns its id. The caller has blocked the signals."""
    process = os.fork()
    if process != 0:
        return process
    # A terminal sends SIGINT to all processes; the parent passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    status = 1
    try:
        status = run(config, reuse_port, [signal.SIGTERM])
    except ConfigError as error:
        logger.error("%s", error)
        status = 2
    except Exception:
        logger.exception("The worker failed")
    finally:
        logging.shutdown()
        os._exit(status)


class Workers:
    """Starts processes, restarts those that end, and passes signals on."""

    def __init__(self, config):
        self.config = config
        self.started = {}
        self.is_stopping = False
        self.status = 0

    def run(self):
        # A path, or a descriptor, is bound once. Workers share a port with SO_REUSEPORT.
        reuse_port = not self.config.uds and self.config.fd is None
        if self.config.uds:
            listener = listen_on_path(self.config)
            self.config.fd, self.config.uds = listener.detach(), None
        elif self.config.fd is None:
            hosts_of(self.config.host, self.config.port)  # Fails here, not in each worker.
        for number in SIGNALS:
            signal.signal(number, self.stop)
        for _ in range(self.config.workers):
            self.start(reuse_port)
        while self.started:
            self.wait(reuse_port)
        return self.status

    def start(self, reuse_port):
        with blocked_signals():
            if not self.is_stopping:
                self.started[fork_server(self.config, reuse_port)] = time.monotonic()

    def wait(self, reuse_port):
        process, status = os.wait()
        began = self.started.pop(process, None)
        if began is None or self.is_stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        if time.monotonic() - began < SECONDS_OF_START or code in (1, 2, 3):
            logger.error("The worker %d failed to start: status %d", process, code)
            self.status = code if code > 0 else 1
            self.stop()
        else:
            logger.warning("The worker %d ended with status %d: starting another", process, code)
            self.start(reuse_port)

    def stop(self, *_):
        self.is_stopping = True
        for process in list(self.started):
            try:
                os.kill(process, signal.SIGTERM)
            except ProcessLookupError:
                pass
