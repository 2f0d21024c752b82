"""The headers X-Forwarded-For and X-Forwarded-Proto of trusted proxies."""

import ipaddress


class ProxyHeaders:
    """Replaces the client and the scheme of a scope by those that a trusted proxy sent."""

    def __init__(self, trusted):
        names = [name.strip() for name in trusted.split(",") if name.strip()]
        self.trusts_all = "*" in names
        self.networks = [ipaddress.ip_network(name, strict=False) for name in names if name != "*"]

    def is_trusted(self, host):
        if self.trusts_all:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self.networks)

    def __call__(self, scope):
        client = scope["client"]
        if not self.is_trusted(client[0] if client else ""):
            return
        forwarded = []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-proto":
                scheme = value.decode("latin1").strip().lower()
                if scheme in ("http", "https", "ws", "wss"):
                    scope["scheme"] = self.scheme_of(scope["type"], scheme)
            elif name == b"x-forwarded-for":
                forwarded += [host.strip() for host in value.decode("latin1").split(",")]
        host = self.client_of([host for host in forwarded if host])
        if host is not None:
            scope["client"] = (host, 0)

    @staticmethod
    def scheme_of(kind, scheme):
        if kind == "http":
            return scheme.replace("ws", "http")
        return scheme.replace("http", "ws")

    def client_of(self, hosts):
        """Returns the last host that is not a trusted proxy: all before it may be forged."""
        for host in reversed(hosts):
            if not self.is_trusted(host):
                return host
        return hosts[0] if hosts else None
