"""What clients of several tests write, one transaction for each step. Each is a base of a client, beside that test's own, which has `connection`,
`number` and `random`, and calls `step` with the number of the transaction."""

from kit.server import attempt

# A statement of a loader: more than goes through the log.
LOADED_ROWS = 2000


class Appends:
    """Appends rows to `appended`, some with a large text."""

    def step(self, _, number):
        body = "x" * (self.random.randint(20_000, 90_000) if self.random.random() < 0.05 else self.random.randint(0, 300))
        write = "INSERT INTO appended (client, number, note, body) VALUES (%s, %s, %s, %s)"
        return attempt(self.connection, [(write, (self.number, number, f"note {self.random.randint(0, 999)}", body))], self.random)


class Loads:
    """Loads many rows into `loaded` with one statement, and deletes those of earlier loads."""

    KEPT = 3  # loads
    DELETES = 1.0  # so often it does
    CHANGES = 0.0  # and so often it changes what it has just loaded
    COPIES = {}  # other tables that get each load, and lose it, with what fills them for a client and number

    def step(self, _, number):
        body = "".join(self.random.choices("abcdefghij ", k=200))
        values = ",".join(f"({self.number},{number},'{row} {body}')" for row in range(LOADED_ROWS))
        statements = [(f"INSERT INTO loaded (client, number, body) VALUES {values}", None)]
        statements += [(fill, (self.number, number)) for fill in self.COPIES.values()]
        if self.random.random() < self.DELETES:
            statements += [(f"DELETE FROM {table} WHERE client = %s AND number <= %s", (self.number, number - self.KEPT)) for table in ("loaded", *self.COPIES)]
        if self.random.random() < self.CHANGES:
            statements.append(("UPDATE loaded SET body = CONCAT(body, ' changed') WHERE client = %s AND number = %s", (self.number, number)))
        return attempt(self.connection, statements, self.random)
