"""The settings of a server, and how they name an application."""

import dataclasses
import importlib
import inspect
import sys

from .proxy import ProxyHeaders


class ConfigError(Exception):
    """Settings that cannot be used. Its text is for the user."""


@dataclasses.dataclass
class Config:
    """Settings, with the names of the command's options."""
    app: object
    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None
    fd: int | None = None
    workers: int = 1
    backlog: int = 2048
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_ca_certs: str | None = None
    ssl_cert_reqs: int = 0
    root_path: str = ""
    proxy_headers: bool = True
    forwarded_allow_ips: str = "127.0.0.1,::1"
    log_level: str = "info"
    access_log: bool = False
    limit_concurrency: int | None = None
    limit_max_requests: int | None = None
    timeout_keep_alive: float = 60
    timeout_graceful_shutdown: float | None = None
    lifespan: str = "auto"
    factory: bool = False
    app_dir: str = ""
    ws_max_size: int = 16 * 1024 * 1024
    server_header: bool = True
    header: list[str] | None = None
    interface: str = "asgi"
    threads: int = 8
    reload: bool = False
    reload_dir: list[str] | None = None

    def check(self):
        if self.lifespan not in ("auto", "on", "off"):
            raise ConfigError(f"lifespan is auto, on or off, not {self.lifespan}")
        if self.interface not in ("asgi", "wsgi"):
            raise ConfigError(f"interface is asgi or wsgi, not {self.interface}")
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"the port is from 0 to 65535, not {self.port}")
        if self.threads < 1:
            raise ConfigError("there must be at least one thread")
        if self.workers < 1:
            raise ConfigError("there must be at least one worker")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ConfigError("--ssl-keyfile needs --ssl-certfile")
        if self.ssl_cert_reqs not in (0, 1, 2):
            raise ConfigError("--ssl-cert-reqs is 0, 1 or 2")
        if self.ssl_cert_reqs and not (self.ssl_certfile and self.ssl_ca_certs):
            raise ConfigError("--ssl-cert-reqs needs --ssl-certfile and --ssl-ca-certs")
        if self.ssl_certfile and (self.uds or self.fd is not None):
            raise ConfigError("TLS is for --host and --port, not for --uds and --fd")
        if self.reload and self.workers > 1:
            raise ConfigError("--reload is for one worker")
        if self.workers > 1 and self.port == 0 and not self.uds and self.fd is None:
            raise ConfigError("several workers need a port that is not 0")
        if self.timeout_keep_alive <= 0:
            raise ConfigError("--timeout-keep-alive must be more than 0")
        if self.limit_max_requests is not None and self.limit_max_requests < 1:
            raise ConfigError("--limit-max-requests must be at least 1")
        try:
            ProxyHeaders(self.forwarded_allow_ips)
        except ValueError as error:
            raise ConfigError(f"--forwarded-allow-ips: {error}") from None
        self.headers()

    def headers(self):
        """Returns the headers of all responses, as pairs of bytes."""
        pairs = []
        for header in self.header or []:
            try:
                name, colon, value = header.encode("latin-1").partition(b":")
            except UnicodeEncodeError:
                raise ConfigError("--header has characters that a header cannot have") from None
            if not colon:
                raise ConfigError(f"a header is NAME:VALUE, not {header}")
            pairs.append((name, value.strip()))
        return pairs

    def load(self):
        """Returns the application."""
        app = self.app
        if isinstance(app, str):
            app = import_name(app, self.app_dir)
        if self.factory:
            app = app()
        check_application(app, self.interface)
        return app


def check_application(app, interface):
    """Refuses an object that cannot be an application of the interface.

    Its calls would fail too, but with an exception that does not name the option.
    """
    if not callable(app):
        raise ConfigError(f"the application is {app!r}, which cannot be called")
    try:
        signature = inspect.signature(app, follow_wrapped=False)
    except (TypeError, ValueError):  # A callable of an extension module.
        return

    def takes(count):
        try:
            signature.bind(*range(count))
        except TypeError:
            return False
        return True

    wanted, other, name = (3, 2, "wsgi") if interface == "asgi" else (2, 3, "asgi")
    if takes(wanted):
        return
    if takes(other):
        raise ConfigError(f"the application takes {other} arguments: try --interface {name}")
    if takes(0):
        raise ConfigError("the application takes no arguments: if it returns one, use --factory")


def import_name(name, directory):
    """Imports "module:attribute"."""
    module_name, colon, attributes = name.partition(":")
    if not module_name or not colon or not attributes:
        raise ConfigError(f"the application is named module:attribute, not {name}")
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        is_file = "/" in module_name or module_name.endswith(".py")
        hint = ": the name is that of a module, not of a file" if is_file else ""
        raise ConfigError(f"there is no module {module_name} in {directory or 'this directory'}, "
                          f"and none is installed{hint}") from None
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise ConfigError(f"the module {module_name} has no {attributes}") from None
    return found
