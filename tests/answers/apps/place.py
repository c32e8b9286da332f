"""Where an application is installed and run: a directory of its own, with the means to fill it from package registries."""

import glob
import os
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree


class Unavailable(Exception):
    """The application cannot be installed here."""


class Place:
    """One application's directory. Whatever its commands print goes to a log beside it."""

    def __init__(self, root, name):
        self.name = name
        self.directory = os.path.join(root, name)
        self.engine = None
        os.makedirs(self.directory, exist_ok=True)

    def path(self, *parts):
        """A path in the directory."""
        return os.path.join(self.directory, *parts)

    def result(self, ending):
        """A file that a run writes; what an earlier one left is removed."""
        path = self.path(f"results-{self.engine}.{ending}")
        if os.path.exists(path):
            os.unlink(path)
        return path

    def need(self, *programs):
        """Programs that must be on the machine; scripts/setup.sh does not install them, since nothing else needs them."""
        for program in programs:
            if not shutil.which(program):
                raise Unavailable(f"{program} is missing")

    def command(self, *command, check=True, timeout=7200, **settings):
        """Runs a command in the directory; returns its exit status. What it prints is added to the log. `input` is what it reads, if anything."""
        settings.setdefault("cwd", self.directory)
        if "input" not in settings:
            settings["stdin"] = subprocess.DEVNULL
        log = self.path(f"log-{self.engine or 'install'}.txt")
        with open(log, "a", encoding="utf-8") as out:
            out.write("+ " + " ".join(command) + "\n")
            out.flush()
            done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=timeout, **settings)
        if check and done.returncode:
            raise Unavailable(f"{command[0]} ended with {done.returncode}: see {log}")
        return done.returncode

    def output(self, *command, timeout=3600, **settings):
        """What a command prints on standard output, as lines; messages go to the log."""
        settings.setdefault("cwd", self.directory)
        with open(self.path(f"log-{self.engine or 'install'}.txt"), "a", encoding="utf-8") as out:
            out.write("+ " + " ".join(command) + "\n")
            out.flush()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=out, stdin=subprocess.DEVNULL, check=False, timeout=timeout, text=True, errors="replace", **settings)
            out.write(done.stdout)
        return done.stdout.splitlines() + ([] if done.returncode == 0 else [f"exit status: {done.returncode}"])

    def python(self, *packages):
        """A virtual environment with these pinned packages; its interpreter."""
        interpreter = self.path("venv", "bin", "python")
        wanted = "\n".join(packages)
        stamp = self.path("venv", "packages")
        if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != wanted:
            shutil.rmtree(self.path("venv"), ignore_errors=True)
            self.command("/usr/bin/python3", "-m", "venv", "venv")
            self.command(interpreter, "-m", "pip", "install", "-q", *packages)
            with open(stamp, "w", encoding="utf-8") as out:
                out.write(wanted)
        return interpreter

    def source_of(self, package, version):
        """The directory of a Python package's source distribution, with its tests."""
        found = self.path("source", f"{package}-{version}")
        if not os.path.isdir(found):
            interpreter = self.path("venv", "bin", "python")
            self.command(interpreter, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", "source", f"{package}=={version}")
            archive = self.path("source", f"{package}-{version}.tar.gz")
            with tarfile.open(archive) as files:
                files.extractall(self.path("source"))
        return found

    def npm(self, *packages):
        """These pinned packages of npm, without scripts of their own."""
        self.need("node", "npm")
        if not all(os.path.isdir(self.path("node_modules", package.rpartition("@")[0])) for package in packages):
            self.command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", self.directory, *packages)

    def debian(self, package):
        """The files of a Debian package, unpacked and not installed; their root."""
        root = self.path("debian", package)
        if not os.path.isdir(root):
            self.need("apt-get", "dpkg-deb")
            for directory in ("packages", "debian"):
                os.makedirs(self.path(directory), exist_ok=True)
            self.command("apt-get", "download", "-q", package, cwd=self.path("packages"))
            (file,) = (name for name in os.listdir(self.path("packages")) if name.startswith(package + "_"))
            self.command("dpkg-deb", "-x", self.path("packages", file), root)
        return root

    def php(self, *extensions):
        """Debian's PHP, unpacked and not installed: the beginning of a command line."""
        packages = {"mysqli": "mysql", "mysqlnd": "mysql", "simplexml": "xml", "dom": "xml", "xmlreader": "xml", "xml": "xml", "mbstring": "mbstring", "intl": "intl"}
        root = os.path.join(self.debian("php8.2-cli"), "usr/bin/php8.2")
        loaded = []
        for extension in extensions:
            package = self.debian(f"php8.2-{packages.get(extension, 'common')}")
            (directory,) = glob.glob(os.path.join(package, "usr/lib/php/20*"))
            loaded += ["-d", f"extension={directory}/{extension}.so"]
        return [root, "-n", *loaded, "-d", "memory_limit=512M", "-d", "error_reporting=E_ALL & ~E_DEPRECATED", "-d", "display_errors=stderr"]


def junit(path):
    """The outcomes in a JUnit file as pytest writes it."""
    outcomes = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcome = "passed"
        for kind in ("failure", "error", "skipped"):
            if case.find(kind) is not None:
                outcome = {"failure": "failed"}.get(kind, kind)
        outcomes[name] = outcome
    return outcomes


def numbered(lines):
    """Lines that were printed, as outcomes: what is in one place must be the same with both engines."""
    return {f"line {number}": line for number, line in enumerate(lines, 1)} or {"output": "none"}
