"""The reason why a test is skipped: a missing program, and the package that has it."""

import shutil

SKIPPED = 77  # CTest takes this exit code as "skipped".

# Debian's package of a program, or of a library, that has another name than its package.
PACKAGES = {
    "dig": "bind9-dnsutils",
    "fstrm_capture": "fstrm-bin",
    "fstrm_replay": "fstrm-bin",
    "gearadmin": "gearman-tools",
    "gearman": "gearman-tools",
    "gearmand": "gearman-job-server",
    "go": "golang-go and golang-golang-x-net-dev",
    "h2load": "nghttp2-client",
    "hiredis": "libhiredis-dev",
    "i3": "i3-wm",
    "i3-msg": "i3-wm",
    "inetd": "openbsd-inetd",
    "ip": "iproute2",
    "kadmin.local": "krb5-admin-server",
    "kdb5_util": "krb5-kdc",
    "kinit": "krb5-user",
    "klist": "krb5-user",
    "krb5kdc": "krb5-kdc",
    "kvno": "krb5-user",
    "ladvdc": "ladvd",
    "libev.so.4": "libev4",
    "libevent-2.1.so.7": "libevent-2.1-7",
    "libevent_openssl-2.1.so.7": "libevent-openssl-2.1-7",
    "libevent_pthreads-2.1.so.7": "libevent-pthreads-2.1-7",
    "lldpcli": "lldpd",
    "memcaslap": "libmemcached-tools",
    "memccapable": "libmemcached-tools",
    "mpirun": "openmpi-bin",
    "nfsdcld": "nfs-kernel-server",
    "nghttp": "nghttp2-client",
    "nghttpd": "nghttp2-server",
    "nghttpx": "nghttp2-proxy",
    "node": "nodejs",
    "prometheus_client": "python3-prometheus-client",
    "promtool": "prometheus",
    "nsd-control": "nsd",
    "nsenter": "util-linux",
    "php": "php8.2-cli",
    "poolcounterd": "poolcounter",
    "prove": "perl",
    "remctl": "remctl-client",
    "remctld": "remctl-server",
    "rpc.gssd": "nfs-common",
    "rpc.idmapd": "nfs-common",
    "rtpengine": "rtpengine-daemon",
    "seaf-daemon": "seafile-daemon",
    "seq": "coreutils",
    "smtpd": "opensmtpd",
    "ss-local": "shadowsocks-libev",
    "ss-server": "shadowsocks-libev",
    "sstpc": "sstp-client",
    "tor-gencert": "tor",
    "transmission-create": "transmission-cli",
    "transmission-remote": "transmission-cli",
    "trickled": "trickle",
    "turnserver": "coturn",
    "turnutils_peer": "coturn",
    "turnutils_uclient": "coturn",
    "unbound-control": "unbound",
    "unshare": "util-linux",
    "xev": "x11-utils",
    "xmessage": "x11-utils",
    "Xvfb": "xvfb",
    "zabbix_proxy": "zabbix-proxy-sqlite3",
}
# Programs that Debian does not package, and the commands that install them.
COMMANDS = {
    "h2spec": "go install github.com/summerwind/h2spec/cmd/h2spec@latest",
    "kosoku": "pip install kosoku",
}


def package(program):
    return PACKAGES.get(program, program)


def not_installed(program):
    """Returns the reason if the program is needed, and is missing."""
    return f"{program} is not installed ({COMMANDS.get(program, 'package ' + package(program))})"


def none_installed(*programs):
    """Returns the reason if one of the programs is needed, and all are missing."""
    packages = ", ".join(dict.fromkeys(map(package, programs)))
    return f"none of {', '.join(programs)} is installed (packages {packages})"


def first_missing(*programs, path=None):
    """Returns the reason for the first program that is missing, or None if all are installed."""
    absent = (name for name in programs if shutil.which(name, path=path) is None)
    return next(map(not_installed, absent), None)
