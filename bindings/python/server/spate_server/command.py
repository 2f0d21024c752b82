"""The command spate-server."""

import argparse
import dataclasses
import sys

from . import __version__
from .config import Config, ConfigError
from .files import configure_logs, read_environment
from .reload import Reloader
from .server import run
from .workers import Workers

LEVELS = ("critical", "error", "warning", "info", "debug")


def parser():
    made = argparse.ArgumentParser(prog="spate-server",
                                   description="Serves an ASGI or WSGI application.")
    made.add_argument("app", help="module:attribute")
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    made.add_argument("--interface", choices=("asgi", "wsgi"), default="asgi",
                      help="of the application (asgi)")
    made.add_argument("--threads", type=int, default=8, help="that call a WSGI application (8)")
    made.add_argument("--host", default="127.0.0.1", help="address or name (127.0.0.1)")
    made.add_argument("--port", type=int, default=8000, help="0: any free one (8000)")
    made.add_argument("--uds", help="path of a unix socket, in place of a host and port")
    made.add_argument("--fd", type=int, help="descriptor of a listening socket")
    made.add_argument("--workers", type=int, default=1, help="processes (1)")
    made.add_argument("--backlog", type=int, default=2048, help="connections that wait (2048)")
    made.add_argument("--ssl-certfile", help="chain of certificates: enables TLS")
    made.add_argument("--ssl-keyfile", help="key, if it is not in the same file")
    made.add_argument("--ssl-ca-certs", help="issuers of the certificates of clients")
    made.add_argument("--ssl-cert-reqs", type=int, default=0,
                      help="certificates of clients: 0 none, 1 optional, 2 required (0)")
    made.add_argument("--root-path", default="", help="prefix of all paths")
    made.add_argument("--proxy-headers", action=argparse.BooleanOptionalAction, default=True,
                      help="use X-Forwarded-For and X-Forwarded-Proto")
    made.add_argument("--forwarded-allow-ips", default="127.0.0.1,::1",
                      help="proxies whose headers are trusted: addresses, networks, or *")
    made.add_argument("--log-level", choices=LEVELS, default="info")
    made.add_argument("--log-config", metavar="FILE",
                      help="configuration of logging: .json, .yaml, or else that of fileConfig()")
    made.add_argument("--env-file", metavar="FILE",
                      help="variables of the environment (needs python-dotenv)")
    made.add_argument("--access-log", action=argparse.BooleanOptionalAction, default=False,
                      help="log each request")
    made.add_argument("--limit-concurrency", type=int,
                      help="requests in progress; others get 503")
    made.add_argument("--limit-max-requests", type=int,
                      help="requests after which the process ends; --workers starts another")
    made.add_argument("--timeout-keep-alive", type=float, default=60,
                      help="seconds without a request, or without reading a response (60)")
    made.add_argument("--timeout-graceful-shutdown", type=float,
                      help="seconds for requests in progress (no limit)")
    made.add_argument("--lifespan", choices=("auto", "on", "off"), default="auto")
    made.add_argument("--factory", action="store_true",
                      help="the attribute is a function that returns the application")
    made.add_argument("--app-dir", default="", help="directory of the module (the current one)")
    made.add_argument("--ws-max-size", type=int, default=16 * 1024 * 1024,
                      help="bytes of a WebSocket message (16 MiB)")
    made.add_argument("--reload", action="store_true",
                      help="start again when a Python file changes")
    made.add_argument("--reload-dir", action="append",
                      help="directory of these files (--app-dir, or the current one)")
    made.add_argument("--server-header", action=argparse.BooleanOptionalAction, default=True,
                      help="send the header Server")
    made.add_argument("--header", action="append", metavar="NAME:VALUE",
                      help="a header of each response; may be repeated")
    return made


def main(arguments=None):
    options = parser().parse_args(arguments)
    names = [field.name for field in dataclasses.fields(Config)]
    config = Config(**{name: getattr(options, name) for name in names})
    try:
        config.check()
        if options.env_file:
            read_environment(options.env_file)
        configure_logs(options.log_config, options.log_level)
        if config.reload:
            return Reloader(config).run()
        return Workers(config).run() if config.workers > 1 else run(config)
    except (ConfigError, OSError) as error:
        print(f"spate-server: {error}", file=sys.stderr)
        return 2
