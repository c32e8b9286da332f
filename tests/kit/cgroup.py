"""A limit of memory for servers: a control group of version 1 or 2, where the machine has one that this user may make."""

import contextlib
import os

ROOT = "/sys/fs/cgroup"
# Of each version: the directory, the file with the limit, and one that keeps it from being swap instead.
VERSIONS = {2: (ROOT, "memory.max", "memory.swap.max"), 1: (f"{ROOT}/memory", "memory.limit_in_bytes", None)}


def own_group(version):
    """Where this process is."""
    with open("/proc/self/cgroup", encoding="ascii") as groups:
        for line in groups:
            _, controllers, path = line.strip().split(":", 2)
            if (version == 2 and not controllers) or (version == 1 and "memory" in controllers.split(",")):
                return path
    return "/"


def write(path, value):
    """One value to a file of the kernel's, which is not made where there is none."""
    with open(path, "r+", encoding="ascii") as file:
        file.write(str(value))


class MemoryLimit:
    """A group for `limit` bytes, files in the kernel's cache included. `about` says which it is, or why there is none."""

    def __init__(self, name, limit):
        self.group, self.home, reasons = None, None, []
        for version, (root, file, swap) in VERSIONS.items():
            if not os.path.exists(f"{root}/{'cgroup.controllers' if version == 2 else 'cgroup.procs'}"):
                reasons.append(f"no cgroup v{version} for memory")
                continue
            group = os.path.join(root, name)
            try:
                if version == 2:
                    write(f"{root}/cgroup.subtree_control", "+memory")
                os.mkdir(group)
                write(f"{group}/{file}", limit)
                if swap:
                    write(f"{group}/{swap}", 0)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.rmdir(group)
                reasons.append(f"cgroup v{version}: {error}")
                continue
            self.group, self.home = group, root + own_group(version)
            if not os.path.exists(self.home):
                self.home = root
            self.about = f"cgroup v{version}, {limit / 1e6:.0f} MB for the server and its files in the kernel's cache"
            return
        self.about = f"no limit of memory ({'; '.join(reasons)}): the kernel's cache may hold all files"

    @contextlib.contextmanager
    def inside(self):
        """What is started here is in the group, from its first byte on: the caller is in it meanwhile."""
        if not self.group:
            yield
            return
        write(f"{self.group}/cgroup.procs", os.getpid())
        try:
            yield
        finally:
            write(f"{self.home}/cgroup.procs", os.getpid())

    def remove(self):
        """The group goes; nothing runs in it any more."""
        if self.group:
            with contextlib.suppress(OSError):
                os.rmdir(self.group)
