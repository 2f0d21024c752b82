#!/usr/bin/env python3
"""krb5kdc, which uses libverto on libev: tickets over UDP and TCP, for users and for services."""

import signal

import harness
from peers.kerberos import REALM, SERVICE, USERS, Kerberos


def check_users(kerberos, environment):
    """All run at once: each gets a ticket, and another for the service."""
    for program in [kerberos.ask(user, environment) for user in range(USERS)]:
        program.wait()
    for user in range(USERS):
        kerberos.run.call("kvno", SERVICE, dropin=False, env=environment | kerberos.cache(user))
        shown = kerberos.tickets(user)
        for wanted in (f"user{user}@{REALM}", f"krbtgt/{REALM}@{REALM}", f"{SERVICE}@{REALM}"):
            harness.check(wanted in shown, shown)


def check_refusals(kerberos, environment):
    wrong = kerberos.ask(0, environment, "wrong").wait(status=1)
    harness.check("Password incorrect" in wrong, wrong)
    nobody = kerberos.ask(USERS, environment).wait(status=1)
    harness.check("not found in Kerberos database" in nobody, nobody)


def test(run):
    harness.need("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "kvno", "klist")
    kerberos = Kerberos(run)
    server = kerberos.start()
    server.assert_uses()
    for environment in (kerberos.by_udp, kerberos.by_tcp):
        check_users(kerberos, environment)
        check_refusals(kerberos, environment)
    server.kill(signal.SIGHUP)
    check_users(kerberos, kerberos.by_tcp)
    server.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
