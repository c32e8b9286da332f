"""The Insert Benchmark's steps, one client and one table each: a load in key order, three indexes, inserts and deletes, queries beside them."""

import os
from concurrent.futures import ThreadPoolExecutor

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "insert_benchmark.lua")
TABLE = """CREATE TABLE purchases{} (
    transactionid BIGINT NOT NULL PRIMARY KEY, dateandtime DATETIME NOT NULL, cashregisterid INT NOT NULL, customerid INT NOT NULL,
    productid INT NOT NULL, price INT NOT NULL, data VARCHAR(4000) NOT NULL
) ENGINE={}"""
INDEXES = {
    "marketsegment": "productid, customerid", "registersegment": "cashregisterid, price, customerid", "pdc": "price, dateandtime, customerid",
}
BATCH, SMALL_BATCH = 50, 5
# Inserts a second for each client, beside the queries.
RATES = (100, 500)
# A step of so many rows ends long before this, in seconds.
LIMIT = 7200


class Steps:
    """The steps on one side's server."""

    def __init__(self, side, arguments):
        self.side, self.clients = side, arguments.clients
        side.rows = arguments.insert_rows // self.clients

    def run(self):
        """All of them, in the order of the description; none without the rows and the indexes."""
        side = self.side
        for number in range(1, self.clients + 1):
            side.query(side.engine, TABLE.format(number, side.engine))
        if None in (side.step("l.i0", lambda: self.changes("load", BATCH, seconds=0, limit=LIMIT)), side.step("l.x", self.index)):
            return
        for name, batch in (("l.i1", BATCH), ("l.i2", SMALL_BATCH)):
            side.after_pause(name, lambda size=batch: self.changes("change", size))
        side.step("checkpoint", side.checkpoint)
        for rate in RATES:
            for kind, query in (("qr", "range"), ("qp", "point")):
                side.after_pause(f"{kind}{rate}", lambda each=rate, asked=query: self.queries(asked, each))
        for number in range(1, self.clients + 1):
            self.check(f"purchases{number}")

    def timed(self, step, *options, **times):
        """One run of all clients: its figures, and what went wrong or None."""
        return self.side.timed(CLIENT, self.clients, self.clients, f"--step={step}", *options, **times)

    def changes(self, step, batch, *options, **times):
        """Inserts, with deletes or without: an operation is a row inserted, a time that of a transaction."""
        found, failure = self.timed(step, f"--batch={batch}", *options, **times)
        return {**found, "operations": found["operations"] * batch, "rate": found["rate"] * batch}, failure

    def index(self):
        """Three secondary indexes on each table, all tables at the same time: an operation is a row."""
        added = ", ".join(f"ADD INDEX {name} ({columns})" for name, columns in INDEXES.items())
        statements = [f"ALTER TABLE purchases{number} {added}" for number in range(1, self.clients + 1)]
        self.side.at_once(statements, LIMIT)
        return {"operations": self.side.rows * self.clients}, None

    def queries(self, step, rate):
        """As many queries as there can be, beside so many inserts and deletes a second for each client."""
        with ThreadPoolExecutor() as beside:
            changes = beside.submit(self.changes, "change", SMALL_BATCH, f"--rate={rate * self.clients // SMALL_BATCH}")
            found, failure = self.timed(step)
            inserted, other_failure = changes.result()
        return {**found, "beside": {**inserted, "wanted": rate * self.clients}}, failure or other_failure

    def check(self, table):
        """As many rows as were loaded, and the same ones in each index."""
        content = "SELECT COUNT(*), SUM(transactionid) FROM {} FORCE INDEX ({}) WHERE {} >= 0"
        columns = {"PRIMARY": "transactionid"} | {name: columns.partition(",")[0] for name, columns in INDEXES.items()}
        found = {name: self.side.query(self.side.engine, content.format(table, name, column))[0] for name, column in columns.items()}
        if len(set(found.values())) > 1 or (found["PRIMARY"][0] != self.side.rows and not self.side.died):
            self.side.failed(self.side.name, f"check of {table}", f"{self.side.rows} rows are wanted: {found}")
