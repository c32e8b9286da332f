"""Lists as tables, each in a way that takes other paths through an engine."""

import time

from history import Read


class Concatenated:
    """A list is a row, its elements one text. Appends change the row in place, delete and insert it, or overwrite it."""

    name = "concat"
    schema = "(k INT PRIMARY KEY, v MEDIUMTEXT NOT NULL, changed INT NOT NULL DEFAULT 0, KEY (changed)) ENGINE={engine}"
    extra_index = "ADD INDEX extra (changed, k)"

    def append(self, cursor, key, element, choice, saw):
        """Puts `element` at the end of the list; tells `saw` of a list that it has read for that without a lock."""
        way = choice(("upsert", "update", "replace", "delete"))
        if way == "upsert":
            cursor.execute(f"INSERT INTO lists (k, v) VALUES ({key}, '{element}') ON DUPLICATE KEY UPDATE v = CONCAT(v, ',', '{element}'), changed = changed + 1")
        elif way == "update":
            if not cursor.execute(f"UPDATE lists SET v = CONCAT(v, ',', '{element}'), changed = changed + 1 WHERE k = {key}"):
                cursor.execute(f"INSERT INTO lists (k, v) VALUES ({key}, '{element}')")
        else:
            cursor.execute(f"SELECT v, changed FROM lists WHERE k = {key} FOR UPDATE")
            row = cursor.fetchone()
            text, changed = (f"{row[0]},{element}", row[1]) if row else (str(element), 0)
            # Without a row there was nothing to lock at READ COMMITTED, and DELETE or REPLACE would take what came
            # since.
            if row and way == "delete":
                cursor.execute(f"DELETE FROM lists WHERE k = {key}")
            cursor.execute(f"{'REPLACE' if row and way == 'replace' else 'INSERT'} INTO lists (k, v, changed) VALUES ({key}, '{text}', {changed})")

    def read(self, cursor, key, locking):
        """The list."""
        cursor.execute(f"SELECT v FROM lists WHERE k = {key} {locking}")
        row = cursor.fetchone()
        return numbers(row[0]) if row else []

    def read_range(self, cursor, first, last, locking):
        """All lists of these keys that have elements, with one statement."""
        cursor.execute(f"SELECT k, v FROM lists WHERE k BETWEEN {first} AND {last} {locking}")
        return {key: numbers(text) for key, text in cursor.fetchall()}


class Rewritten(Concatenated):
    """A list is a row; appends read it without a lock and write the whole, as many applications do."""

    name = "rewrite"

    def append(self, cursor, key, element, choice, saw):
        began = time.monotonic()
        before = self.read(cursor, key, "")
        saw(Read(key, before, began))
        text = ",".join(map(str, before + [element]))
        if before:
            cursor.execute(f"UPDATE lists SET v = '{text}', changed = changed + 1 WHERE k = {key}")
        else:
            cursor.execute(f"INSERT INTO lists (k, v) VALUES ({key}, '{text}')")


class Rows:
    """An element is a row; a list is a range of the primary key."""

    name = "rows"
    schema = "(k INT, place INT, x INT NOT NULL, PRIMARY KEY (k, place), UNIQUE KEY (x)) ENGINE={engine}"
    extra_index = "ADD INDEX extra (x, place)"
    hint = ""

    def append(self, cursor, key, element, choice, saw):
        """Puts `element` behind the last one; a duplicate place is an error that ends the transaction."""
        if choice((True, False)):
            cursor.execute(f"INSERT INTO lists (k, place, x) SELECT {key}, COALESCE(MAX(place), 0) + 1, {element} FROM lists WHERE k = {key}")
            return
        cursor.execute(f"SELECT MAX(place) FROM lists {self.hint} WHERE k = {key} FOR UPDATE")
        place = (cursor.fetchone()[0] or 0) + 1
        cursor.execute(f"INSERT INTO lists (k, place, x) VALUES ({key}, {place}, {element})")

    def read(self, cursor, key, locking):
        """The list."""
        return self.read_range(cursor, key, key, locking).get(key, [])

    def read_range(self, cursor, first, last, locking):
        """All lists of these keys that have elements, with one statement."""
        cursor.execute(f"SELECT k, x FROM lists {self.hint} WHERE k BETWEEN {first} AND {last} ORDER BY k, place {locking}")
        found = {}
        for key, element in cursor.fetchall():
            found.setdefault(key, []).append(element)
        return found


class Indexed(Rows):
    """An element is a row; a list is a range of a secondary index, which has all columns for a read or only some."""

    name = "index"
    schema = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT, place INT, x INT NOT NULL, UNIQUE KEY place (k, place), KEY covering (k, place, x)) ENGINE={engine}"
    hint = "FORCE INDEX (place, covering)"


def numbers(text):
    """The elements of a text."""
    return [int(part) for part in text.split(",")]


KINDS = {kind.name: kind for kind in (Concatenated, Rewritten, Rows, Indexed)}
