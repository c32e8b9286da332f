"""A server that is killed, or held, at its n-th change of a file."""

import mmap
import os
import struct
import subprocess

from kit.options import BUILD


class Stops:
    """The number at which the preloaded library (stopper.c) kills the server, or holds a thread of it."""

    # More than any statement makes.
    NEVER = 1 << 40

    def __init__(self, path):
        """`path` is of a file for the numbers, which the library maps as well."""
        library = os.path.join(BUILD, "tests", "stopper.so")
        os.makedirs(os.path.dirname(library), exist_ok=True)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stopper.c")
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        with open(path, "wb") as file:
            file.write(bytes(16))
        with open(path, "r+b") as file:
            self.numbers = mmap.mmap(file.fileno(), 16)
        self.environment = {"LD_PRELOAD": library, "TEAK_STOP_FILE": path}

    def start(self, server, options=()):
        """Starts the server with the library."""
        os.environ.update(self.environment)
        try:
            server.start(options)
        finally:
            for name in self.environment:
                del os.environ[name]

    def arm(self, changes, hold=False):
        """The server is to be killed before the change of a file with this number, from now on, or held in it; 0: not at all. What was held goes on."""
        self.numbers[8:] = struct.pack("<q", hold)
        self.numbers[:8] = struct.pack("<q", changes)

    def changed(self):
        """How many changes there were since `arm(NEVER)`."""
        return self.NEVER - struct.unpack("<q", self.numbers[:8])[0]

    def is_held(self):
        """Whether a thread is held."""
        return struct.unpack("<q", self.numbers[8:])[0] == 2
