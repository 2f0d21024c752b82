"""A Kerberos realm for a test, with users and a service."""

import harness

REALM = "TEST.EXAMPLE"
USERS = 6
PASSWORD = "correct horse"
SERVICE = "host/service.example"

CLIENT_CONF = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  udp_preference_limit = {udp_most}
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""

KDC_CONF = """
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    supported_enctypes = aes256-cts:normal
  }}
[logging]
  kdc = STDERR
"""


class Kerberos:
    def __init__(self, run):
        self.run = run
        self.port = harness.free_port()
        self.profile = run.file("kdc.conf", KDC_CONF.format(
            realm=REALM, port=self.port, directory=run.directory))
        self.by_udp = self.environment("udp.conf", 1400)
        self.by_tcp = self.environment("tcp.conf", 1)
        self.call("kdb5_util", "create", "-s", "-P", "master")
        for user in range(USERS):
            self.call("kadmin.local", "addprinc", "-pw", PASSWORD, f"user{user}")
        self.call("kadmin.local", "addprinc", "-randkey", SERVICE)

    def environment(self, name, udp_most):
        conf = CLIENT_CONF.format(realm=REALM, port=self.port, udp_most=udp_most)
        return {"KRB5_CONFIG": self.run.file(name, conf), "KRB5_KDC_PROFILE": self.profile}

    def call(self, *words):
        self.run.call(*words, dropin=False, env=self.by_udp)

    def start(self, **how):
        server = self.run.start("krb5kdc", "-n", env=self.by_udp, **how)
        server.wait_tcp(self.port)
        return server

    def ask(self, user, environment, password=PASSWORD):
        """Returns a running kinit."""
        number = len(self.run.programs)
        given = self.run.file(f"password{number}", password + "\n")
        with open(given, "rb") as stdin:
            return self.run.start("kinit", f"user{user}", dropin=False, stdin=stdin,
                                  env=environment | self.cache(user))

    def cache(self, user):
        return {"KRB5CCNAME": "FILE:" + self.run.path(f"cache{user}")}

    def tickets(self, user):
        return self.run.call("klist", dropin=False, env=self.by_udp | self.cache(user))
