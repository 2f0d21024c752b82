"""The audit of tools/fresh: what a command changed in its root, outside the tree.

A command may install packages of the sets it names, with their dependencies. Nothing else may
change: no other file, no user or group, no service, no process that outlives the command.
"""

import os
import re
import stat

PROCESSES = "/var/log/fresh/processes"  # One a line: its command.
SERVICES = "/var/log/fresh/services"  # One a line: the arguments of policy-rc.d.

MOUNTED = ("/proc", "/sys", "/dev", "/run", "/out")
HOME = "/root"
TREE = HOME + "/spate"
# Written by dpkg, apt, their triggers, and maintainer scripts of the sets test, extras and bench.
BOOKKEEPING = re.compile(r"""
    /var/lib/(?:dpkg|apt)(?:/.*)?
  | /var/cache/(?:apt|debconf|ldconfig)(?:/.*)?
  | /var/log/(?:dpkg|alternatives)\.log
  | /var/log/(?:apt|fresh)(?:/.*)?
  | /etc/ld\.so\.cache
  | /etc/alternatives/.*
  | /usr/lib/[^/]+/gconv/gconv-modules\.cache
  | /usr/(?:lib|share)/.*/__pycache__(?:/.*)?
  | /usr/local/lib/python3[^/]*(?:/dist-packages)?
  | /var/lib/python(?:/.*)?
  | /etc/python3(?:/debian_config)?
  | /etc/inputrc
  | /etc/fonts/conf\.d/.*
  | /usr/local/share/fonts
  | /etc/lighttpd/conf-enabled(?:/.*)?
""", re.VERBOSE)
SERVICE = re.compile(r"/etc/(?:init|rc.)\.d/.*"
                     r"|/usr/lib/systemd/system/[^/]*\.(?:service|socket|timer)"
                     r"|/usr/share/dbus-1/system-services/.*")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Snapshot:
    """The files of a root, without the tree; its packages; and the two records of the last run."""

    def __init__(self, root):
        self.root = root
        self.files = dict(find_files(root))
        self.packages = dict(find_packages(root))
        self.services = read(root + SERVICES).splitlines()

    def records(self):
        """Returns the processes that were left, and the services that were to be started."""
        return read(self.root + PROCESSES).splitlines(), self.services


def find_files(root):
    """Yields (path, description) of each file outside the tree and outside other mounts."""
    for directory, subdirectories, names in os.walk(root):
        inside = directory[len(root):]
        subdirectories[:] = [name for name in subdirectories
                             if f"{inside}/{name}" not in (*MOUNTED, TREE)]
        for name in subdirectories + names:
            path = os.path.join(directory, name)
            yield f"{inside}/{name}", describe(path, os.lstat(path))


def describe(path, status):
    """Returns all that matters of a file; a directory's time changes with every file in it."""
    kind = (status.st_mode, status.st_uid, status.st_gid)
    if stat.S_ISLNK(status.st_mode):
        return (*kind, os.readlink(path))
    if stat.S_ISREG(status.st_mode):
        return (*kind, status.st_size, status.st_mtime_ns)
    return kind


def find_packages(root):
    """Yields (package, (version, priority)) of each that is installed."""
    for paragraph in read(root + "/var/lib/dpkg/status").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version|Priority): (.*)$", paragraph,
                                 re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields["Package"], (fields["Version"], fields.get("Priority"))


def automatic_packages(root):
    """Returns the packages that apt installed only because others depend on them."""
    path = root + "/var/lib/apt/extended_states"
    return set() if not os.path.exists(path) else {
        re.search(r"^Package: (.*)$", paragraph, re.MULTILINE).group(1)
        for paragraph in read(path).split("\n\n") if "Auto-Installed: 1" in paragraph}


def package_files(root, package):
    """Yields the paths of a package's files, where /bin is /usr/bin."""
    directory = root + "/var/lib/dpkg/info"
    for name in (f"{package}.list", f"{package}:amd64.list", f"{package}:arm64.list"):
        if os.path.exists(os.path.join(directory, name)):
            for path in read(os.path.join(directory, name)).splitlines():
                yield re.sub(r"^/(bin|sbin|lib|lib32|lib64|libx32)/", r"/usr/\1/", path)


def allowed_packages(tree, sets):
    """Returns the packages of some sets of tools/packages.txt."""
    rows = [line.split() for line in read(os.path.join(tree, "tools", "packages.txt")).splitlines()]
    return {row[1] for row in rows if row and row[0][0] != "#"
            and set(row[0].split(",")) & set(sets.split(","))}


def is_usual(package):
    """Returns whether the root lacks a package that Debian's installer installs."""
    return package[1] in ("required", "important", "standard")


def violations(before, after, allowed):
    """Yields a line for each thing that a command did to the root and may not do."""
    installed = {name for name, _ in after.packages.items() - before.packages.items()}
    for name in sorted(before.packages.keys() - after.packages.keys()):
        yield f"removed the package {name}"
    for name in sorted(installed - automatic_packages(after.root) - allowed
                       - before.packages.keys()):
        yield f"installed the package {name}"
    owned = set()
    for name in sorted(installed):
        files = set(package_files(after.root, name))
        owned |= files
        services = set(filter(SERVICE.fullmatch, files))
        if services and name not in before.packages and not is_usual(after.packages[name]):
            yield f"installed the service {name}"
    yield from changed_files(before.files, after.files, owned)
    processes, services = after.records()
    yield from (f"left a process: {process}" for process in processes)
    yield from (f"would start a service: {line}" for line in services[len(before.services):])


def changed_files(before, after, owned):
    """Yields a line for each file that changed; a new directory stands for all that it contains."""
    reported = set()
    for path in sorted({path for path, _ in before.items() ^ after.items()}):
        link = str(after.get(path, before.get(path))[-1])
        target = os.path.normpath(os.path.join(os.path.dirname(path), link))
        if path in owned or BOOKKEEPING.fullmatch(path) or target.startswith("/etc/alternatives/"):
            continue
        if SERVICE.fullmatch(path) and target in owned:  # A link to a service, counted above.
            continue
        verb = "removed" if path not in after else "changed" if path in before else "created"
        if os.path.dirname(path) not in reported:
            yield f"{verb} {path}"
        if verb != "changed":
            reported.add(path)


def report(before, after, allowed):
    """Prints what a command changed, and returns whether it was allowed to."""
    wrong = list(violations(before, after, allowed))
    count = len(after.packages.keys() - before.packages.keys())
    for line in wrong:
        print(f"audit: the command {line}")
    print(f"audit: {count} packages were installed; {len(wrong)} other changes outside the tree",
          flush=True)
    return not wrong
