"""A road to the server on which one statement is held up, whatever becomes of the client that sent it."""

import os
import socket
import threading


class HeldUp:
    """Passes connections on; the first statement that `is_it` does not get to the server before `let_go`. When its client is gone, the server does not
    learn of that until then: as if it were busy with the statement."""

    def __init__(self, path, server, is_it):
        self.server, self.is_it = server, is_it
        self.arrived, self.released = threading.Event(), threading.Event()
        self.taking = threading.Lock()
        if os.path.exists(path):
            os.remove(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server)
                threading.Thread(target=self.pass_on, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(server, client, False), daemon=True).start()
        except OSError:
            # It was closed.
            pass

    def pass_on(self, source, target, watched):
        try:
            while part := source.recv(65536):
                # Behind the packet's length, its number, and the command; a client waits for the answer, so there is
                # nothing before it.
                if watched and part[4:5] == b"\x03" and self.is_it(part[5:]) and self.take():
                    self.released.wait()
                target.sendall(part)
        except OSError:
            pass
        finally:
            try:
                # The other direction, which waits for the server, ends with it.
                target.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def take(self):
        """Whether it is the first."""
        with self.taking:
            if self.arrived.is_set():
                return False
            self.arrived.set()
            return True

    def let_go(self):
        self.released.set()
        self.listener.close()
