"""Somebody who answers in a MySQL server's place, with TLS and any certificate, and asks for the password itself."""

import socket
import ssl
import struct
import threading

PROTOCOL_41, SSL, SECURE_CONNECTION, PLUGIN_AUTH = 1 << 9, 1 << 11, 1 << 15, 1 << 19
PLUGIN = b"caching_sha2_password"
# "I do not have it in my cache: send it to me."
FULL_AUTHENTICATION = b"\x01\x04"


class Impostor(threading.Thread):
    """Serves connections to `port` one after the other; `heard` is what clients said after that request, packet by packet."""

    def __init__(self, certificate, key):
        super().__init__(daemon=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = []

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                connection.settimeout(20)
                self.serve(connection)
            except (OSError, EOFError):
                pass
            finally:
                connection.close()

    def stop(self):
        """No more connections."""
        self.listener.close()

    def serve(self, connection):
        """Up to the answer to the request for the password."""
        flags = PROTOCOL_41 | SSL | SECURE_CONNECTION | PLUGIN_AUTH
        greeting = b"\x0a8.0.99\0" + struct.pack("<I", 7) + b"12345678\0" + struct.pack("<H", flags & 0xFFFF)
        greeting += b"\x2d" + struct.pack("<HH", 2, flags >> 16) + b"\x15" + bytes(10) + b"123456789012\0" + PLUGIN + b"\0"
        send(connection, 0, greeting)
        wants_tls = struct.unpack("<I", receive(connection)[:4])[0] & SSL
        sequence = 2
        if wants_tls:
            connection = self.context.wrap_socket(connection, server_side=True)
            receive(connection)
            sequence = 3
        send(connection, sequence, FULL_AUTHENTICATION)
        self.heard.append(receive(connection))


def send(connection, sequence, payload):
    """A packet."""
    connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)


def receive(connection):
    """The payload of a packet."""
    head = exactly(connection, 4)
    return exactly(connection, struct.unpack("<I", head[:3] + b"\0")[0])


def exactly(connection, count):
    """So many bytes."""
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data
