"""A port before a server's socket that can stop to pass on what is sent, without closing anything, as a network does of which a part is gone."""

import contextlib
import socket
import threading


class Passing:
    """One connection: passes on in both directions, while its gate is open."""

    def __init__(self, wire, client, path):
        self.wire, self.client, self.gate = wire, client, threading.Event()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(path)
        self.gate.set()
        for one, other in ((self.client, self.server), (self.server, self.client)):
            threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    def pass_on(self, one, other):
        """Until the end of one side, which is passed on as well."""
        with contextlib.suppress(OSError):
            while True:
                data = one.recv(1 << 16)
                self.gate.wait()
                if not data:
                    break
                other.sendall(data)
                if one is self.client:
                    self.wire.passed(data)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


class Wire:
    """Listens at `port`, and passes connections on to the socket at `path`."""

    def __init__(self, path):
        self.path, self.all, self.is_cut, self.words = path, [], False, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                with contextlib.suppress(OSError):
                    passing = Passing(self, client, self.path)
                    if self.is_cut:
                        passing.gate.clear()
                    self.all.append(passing)

    def forget(self):
        """Passes nothing more on of the connections that are there."""
        for passing in list(self.all):
            passing.gate.clear()

    def forget_behind(self, words):
        """The same, as soon as something with these words was passed on to the server."""
        self.words = words

    def passed(self, data):
        """The server has this."""
        words = self.words
        if words and words in data:
            self.words = None
            self.forget()

    def cut(self):
        """The same, and nothing of new ones."""
        self.is_cut = True
        self.forget()

    def mend(self):
        """Passes on again, also what has waited."""
        self.is_cut = False
        for passing in list(self.all):
            passing.gate.set()

    def close(self):
        """Nobody can connect any more, and all have ended."""
        self.listener.close()
        self.mend()
