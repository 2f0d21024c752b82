"""A server that starts again when a source file changes."""

import logging
import os
import signal
import time

from .workers import SIGNALS, blocked_signals, fork_server

logger = logging.getLogger("spate_server")
SECONDS_BETWEEN_LOOKS = 0.25
SECONDS_OF_SHUTDOWN = 2


class Reloader:
    """Runs the server in a child, so that each start imports all modules again."""

    def __init__(self, config):
        self.config = config
        self.directories = config.reload_dir or [config.app_dir or "."]
        self.process = None
        self.is_stopping = False
        self.status = 0
        if config.timeout_graceful_shutdown is None:  # An endless response must not prevent it.
            config.timeout_graceful_shutdown = SECONDS_OF_SHUTDOWN

    def run(self):
        for number in SIGNALS:
            signal.signal(number, self.stop)
        while not self.is_stopping:
            before = self.look()
            self.start()
            while not self.is_stopping and self.look() == before:
                self.reap(os.WNOHANG)
                time.sleep(SECONDS_BETWEEN_LOOKS)
            if not self.is_stopping:
                logger.info("A file changed: the server starts again")
            self.end()
        return self.status

    def look(self):
        """Returns the time of the last change of each file."""
        found = {}
        for directory in self.directories:
            for path, folders, files in os.walk(directory):
                if "pyvenv.cfg" in files:  # An environment, whose thousands of files do not change.
                    folders.clear()
                    continue
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in files:
                    if name.endswith(".py"):
                        file = os.path.join(path, name)
                        try:
                            found[file] = os.stat(file).st_mtime_ns
                        except FileNotFoundError:
                            pass
        return found

    def start(self):
        with blocked_signals():
            if not self.is_stopping:
                self.process = fork_server(self.config, False)

    def reap(self, options):
        """Notes the end of the process, and waits for it without WNOHANG."""
        if self.process is None:
            return
        process, status = os.waitpid(self.process, options)
        if process == 0:
            return
        self.process = None
        self.status = max(0, os.waitstatus_to_exitcode(status))
        if self.status != 0 and not self.is_stopping:
            logger.error("The server ended with status %d: it waits for a change", self.status)

    def end(self):
        self.signal()
        self.reap(0)

    def signal(self):
        if self.process is not None:
            os.kill(self.process, signal.SIGTERM)

    def stop(self, *_):
        self.is_stopping = True
