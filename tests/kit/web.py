"""HTTP of programs that listen at an address or at a socket's path."""

import contextlib
import http.client
import socket


class Local(http.client.HTTPConnection):
    """HTTP over a socket's path."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def get(at, path="/metrics", method="GET", limit=20):
    """Status, type and text of an answer."""
    host, _, port = at.rpartition(":")
    connection = Local(at, timeout=limit) if at.startswith("/") else http.client.HTTPConnection(host, int(port), timeout=limit)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def answers(at, path="/metrics"):
    """Whether somebody answers, and well."""
    with contextlib.suppress(OSError):
        return get(at, path)[0] == 200
    return False
