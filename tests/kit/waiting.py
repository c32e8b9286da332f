"""A session that waits for a lock, beside the test."""

import contextlib
import threading

import pymysql

from kit.asking import rows


class Waiter(threading.Thread):
    """A session that is in a transaction, and then waits in a statement."""

    def __init__(self, server, *statements, begin="begin"):
        super().__init__()
        self.connection, self.error = server.connect(), None
        self.id = self.connection.thread_id()
        for statement in (begin, *statements):
            rows(self.connection, statement)

    def waits(self, statement):
        self.statement = statement
        self.start()
        return self

    def run(self):
        try:
            rows(self.connection, self.statement)
        except pymysql.err.MySQLError as error:
            self.error = error.args[0]

    def end(self):
        if self.ident:
            self.join()
        with contextlib.suppress(pymysql.err.Error):
            self.connection.close()
