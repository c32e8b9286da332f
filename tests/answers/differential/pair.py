"""Two databases of one server, `d_i` with InnoDB as the default engine and `d_t` with Teak, in which the same statements are carried out one after the other.
What each statement gives is compared at once (rows, counts, errors, warnings), and what the tables have, now and then and at the end."""

import os
import re

import pymysql

from kit.asking import nothing_prepared, wait_until

from known import APART, CONFLICTS, Case, Uses, other_order, reason, spoils_index, without_index

DATABASES = {"InnoDB": "d_i", "Teak": "d_t"}
GONE = {0, 2006, 2013, 2014, 2055}
# The protocol's number of the type.
BIT = 16
# A history partition has no room left: by the estimate of its rows.
FULL_PARTITION = 4114
# A value that does not fit is told when it is compared: which conditions of a join are looked at first is the
# optimizer's to say.
TRUNCATED = 1292


class Difference(Exception):
    """What the two engines disagree about. `kind` stays the same while a history is made smaller."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Conflict(Exception):
    """The tables may differ now, which proves nothing: one engine gave up a lock that the other one got, outside of a transaction, or did what is known to
    differ. The text is the reason, which is counted."""


class Outcome:
    """What a statement gave on one side."""

    def __init__(self):
        self.rows, self.counts, self.error, self.warnings = None, None, None, []

    def __eq__(self, other):
        return (self.rows, self.counts, self.error, self.warnings) == (other.rows, other.counts, other.error, other.warnings)

    def conflicts(self):
        """Why IGNORE has passed over rows for want of a lock: which those are is the plan's, and no replica knows of it that has the statement."""
        return set() if self.error else CONFLICTS & {number for _, number, _ in self.warnings}

    def __str__(self):
        if self.error:
            return f"error {self.error[0]}: {self.error[1]}"
        rows = f", rows {self.rows[:12]}" if self.rows is not None else ""
        return f"counts {self.counts}{rows}, warnings {self.warnings[:6]}"


def masked(text):
    """A message without what must differ: names of databases, of engines, of temporary tables."""
    text = re.sub(r"\bd_[it]\b", "d", str(text))
    text = re.sub(r"\b(InnoDB|Teak)\b", "ENGINE", text, flags=re.IGNORECASE)
    return re.sub(r"#sql[-\w]*", "#sql", text)


def without_bits(row, description):
    """A row with numbers for BIT, which in a temporary table are numbers: when there is one is the optimizer's to say."""
    return tuple(int.from_bytes(value, "big") if column[1] == BIT and isinstance(value, bytes) else value for value, column in zip(row, description))


class Side:
    """One engine's sessions."""

    def __init__(self, server, engine, sessions, settings):
        self.server, self.engine, self.settings = server, engine, settings
        self.database = DATABASES[engine]
        self.count = sessions
        self.sessions = []

    def begin(self):
        """An empty database, new sessions."""
        self.server.query(f"drop database if exists {self.database}", database=None)
        self.server.query(f"create database {self.database} default character set latin1", database=None)
        self.connect()

    def connect(self):
        """New sessions."""
        self.close()
        for _ in range(self.count):
            session = self.server.connect(database=self.database, autocommit=True, read_timeout=60)
            self.sessions.append(session)
            with session.cursor() as cursor:
                # Nobody follows InnoDB's side, and XA of a database that a replica ignores stops it.
                cursor.execute(f"set sql_log_bin = {int(self.engine == 'Teak')}, default_storage_engine = {self.engine}, lock_wait_timeout = 0, innodb_lock_wait_timeout = 0, max_statement_time = 30")
                for setting in self.settings:
                    cursor.execute(f"set {setting}")

    def close(self):
        """Ends the sessions."""
        for session in self.sessions:
            try:
                session.close()
            except pymysql.err.Error:
                pass
        self.sessions = []

    def own(self, statement):
        """The statement with what only this side can say: the engine's name, a file with what LOAD DATA is to read."""
        data = re.search(r"infile 'data:([^']*)'", statement)
        if data:
            path = os.path.join(self.server.directory, "tmp", "load.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(data[1].replace("\\t", "\t").replace("\\n", "\n"))
            statement = statement.replace(data[0], f"infile '{path}'")
        if self.engine == "InnoDB":
            statement = self.as_innodb(statement)
        return statement.replace("%ENGINE%", self.engine)

    def as_innodb(self, statement):
        """What InnoDB cannot be asked for: UNIQUE USING HASH, which in Teak is an ordered index, but where it leaves out what partitions are chosen by; and loads
        without an undo log, which do not see duplicates."""
        table = re.match(r"alter table (\w+)", statement)
        if table and " using hash" in statement:
            chosen_by = re.search(r"PARTITION BY (?:HASH|KEY|RANGE) \(([^)]*)\)", self.definition_by(f"show create table {table[1]}"))
            listed = re.findall(r"unique key k\d+ \((.*?)\) using hash", statement)
            columns = set(re.findall(r"\w+", chosen_by[1])) if chosen_by else set()
            if all(columns <= set(re.findall(r"\w+", key)) for key in listed):
                statement = statement.replace(" using hash", "")
        elif " partition by " not in statement:
            statement = statement.replace(" using hash", "")
        return statement.replace("set unique_checks = 0", "do 0")

    def definition_by(self, shown):
        """What SHOW CREATE says; nothing of a table that is not there."""
        try:
            return self.server.query(shown, database=self.database)[0][1]
        except pymysql.err.ProgrammingError:
            return ""

    def warnings(self, cursor, statement):
        """What the last statement has warned of."""
        unsaid = {FULL_PARTITION, TRUNCATED} if " join " in statement else {FULL_PARTITION}
        cursor.execute("show warnings")
        return sorted((level, number, masked(text)) for level, number, text in cursor.fetchall() if number not in unsaid)

    def run(self, session, statement, at):
        """Carries out a statement as if it were `at` seconds since 1970."""
        outcome = Outcome()
        statement = self.own(statement)
        try:
            with self.sessions[session].cursor() as cursor:
                cursor.execute(f"set timestamp = {at}")
                try:
                    cursor.execute(statement)
                    rows = cursor.fetchall()
                    outcome.counts = (cursor.rowcount, masked((cursor._result.message or b"").decode()))  # pylint: disable=protected-access
                    if cursor.description is not None:
                        outcome.rows = [masked(without_bits(row, cursor.description)) for row in rows]
                        if statement == "select @seen":
                            # In which order triggers see the rows is the plan's.
                            outcome.rows = [sorted(re.findall(r"/[^/']*", row)) for row in outcome.rows]
                        if "order by" not in statement:
                            outcome.rows.sort()
                except pymysql.err.MySQLError as error:
                    number = error.args[0] if error.args else 0
                    if number in GONE:
                        raise
                    outcome.error = (number, masked(error.args[1]))
                # Without, the list may be that of the statement before.
                if outcome.error or cursor._result.warning_count:  # pylint: disable=protected-access
                    outcome.warnings = self.warnings(cursor, statement)
        except (pymysql.err.InterfaceError, pymysql.err.OperationalError, OSError) as error:
            raise Difference("end", f"{self.engine}: the server is gone ({error})\n{self.server.log_end(60)}") from None
        return outcome


def compare_rows(name, places, kind, hint=""):
    """The rows of a table, with its history, in two places: triples of a name, a server and a database. Raises Difference."""
    shown = places[0][1].query(f"show create table {name}", database=places[0][2])[0][1]
    # What was for no time InnoDB's rules leave, and the server's statements do not.
    history, lasted = (" for system_time all", " where row_start < row_end") if "SYSTEM VERSIONING" in shown else ("", "")
    rows = [sorted(map(repr, server.query(f"select * from {name}{history}{hint}{lasted}", database=database))) for _, server, database in places]
    if rows[0] != rows[1]:
        only = [[row for row in rows[here] if row not in rows[1 - here]][:8] for here in (0, 1)]
        said = [f"{place[0]} has {len(rows[here])} rows, alone {only[here]}" for here, place in enumerate(places)]
        raise Difference(kind, f"table {name}: {'; '.join(said)}")


def programs(server):
    """What Teak's triggers and functions do, with the tables of the triggers."""
    return [" ".join(map(str, row)) for row in server.query(
        "select event_object_table, action_statement from information_schema.triggers where trigger_schema = 'd_t' union all "
        "select '', routine_definition from information_schema.routines where routine_schema = 'd_t'", database="d_t")]


class Pair:
    """Both sides."""

    def __init__(self, server, sessions, settings=(), teak_settings=(), uses=None):
        self.server, self.uses = server, uses or Uses()
        self.sides = [Side(server, "InnoDB", sessions, settings), Side(server, "Teak", sessions, [*settings, *teak_settings])]
        self.at = 1_600_000_000
        self.conflicts = 0

    def begin(self):
        """Empty databases."""
        self.at = 1_600_000_000
        for side in self.sides:
            side.close()
        wait_until(lambda: nothing_prepared(self.server), "the end of prepared transactions")
        for side in self.sides:
            side.begin()

    def run(self, session, statement):
        """One statement on both sides. Raises Difference, or Conflict."""
        self.at += 1
        first, second = (self.run_on(side, session, statement) for side in self.sides)
        if first.error or second.error:
            # Which rows a statement has seen when it ends, nothing takes back.
            for side in self.sides:
                side.run(session, "set @seen = null", self.at)
        case = Case(statement, first, second, self)
        if first == second and not first.conflicts() and not spoils_index(case):
            return
        numbers = {case.inner, case.teak}
        if CONFLICTS & numbers and (len(numbers) > 1 or 1213 in numbers) or first.conflicts() or second.conflicts():
            self.give_up(session, case)
        else:
            self.judge(session, case)

    def judge(self, session, case):
        """Of a statement that gave other things: raises Conflict if that is known to lead apart, and Difference if it is not known."""
        apart = reason(APART, case)
        if apart:
            raise Conflict(apart)
        if self.uses.reason(case):
            return
        text = "InnoDB finds by its rows what it does not find by an index"
        if not self.is_found_by_rows(session, case.statement, case.teaks):
            verb = " ".join(case.statement.split()[:2])
            raise Difference(f"{verb} {case.inner} {case.teak}", f"session {session}: {case.statement}\n    InnoDB: {case.inners}\n    Teak:   {case.teaks}")
        if not case.begins("select"):
            raise Conflict(text)
        self.uses.counts[text] += 1

    def give_up(self, session, case):
        """Of a statement that not both engines got the same locks for: takes back what the session did, on all sides, or has the one that failed carry it out, too.
        Raises Conflict if neither can be done."""
        self.conflicts += 1
        if self.in_transaction(session):
            self.roll_back([session])
        elif case.inner is None and case.teak is None:
            raise Conflict("IGNORE passes over locked rows, outside of a transaction")
        elif case.inner is None or case.teak is None:
            self.carry_out_again(session, case)

    def roll_back(self, sessions):
        """Takes back what is not committed of these sessions."""
        if any(side.run(session, "rollback", self.at).error for session in sessions for side in self.sides):
            raise Conflict("one engine alone gets a lock, beside a transaction that nothing takes back")

    def carry_out_again(self, session, case):
        """A statement that one engine alone got the locks for, outside of a transaction: the other one carries it out when nobody has locks any more."""
        self.roll_back(range(len(self.sides[0].sessions)))
        outcomes = [self.run_on(side, session, case.statement) if outcome.error else outcome for side, outcome in zip(self.sides, (case.inners, case.teaks))]
        for side in self.sides:
            side.run(session, "set @seen = null", self.at)
        case = Case(case.statement, *outcomes, self)
        if CONFLICTS & {case.inner, case.teak} or outcomes[0].conflicts() or outcomes[1].conflicts():
            raise Conflict("one engine alone gets a lock, and the other one does not get it later")
        if outcomes[0] != outcomes[1]:
            self.judge(session, case)

    def definitions(self):
        """SHOW CREATE TABLE of each of Teak's tables, by its name."""
        return {name: self.definition(self.sides[1], name) for name in self.names(self.sides[1])}

    def programs(self):
        """What Teak's triggers and functions do."""
        return programs(self.server)

    def is_found_by_rows(self, session, statement, second):
        """Whether InnoDB finds by its rows what it does not find by an index: its indexes over virtual columns have other sessions' changes. A SELECT then gives what
        it gives in Teak; of a change only the rows are asked for."""
        if second.error:
            return False
        def by_rows(text):
            return re.sub(r"\b(from|join) (t\d+)( [ab])?(?= where| group| order| limit| join| on|\)|$)", r"\1 \2\3 use index ()", text)

        change = re.match(r"(?:update (?:ignore )?(.*?) set .*?|delete (?:[ab, ]*|ignore )from (.*?)) (where .*?)(?: order by .*| limit .*| returning .*)?$", statement)
        if change:
            looked = f"select count(*) from {change[1] or change[2]} {change[3]}"
            found = [self.sides[0].run(session, text, self.at).rows for text in (looked, by_rows(looked))]
            return found[0] != found[1]
        if not statement.startswith("select"):
            return False
        return by_rows(statement) != statement and self.sides[0].run(session, by_rows(statement), self.at).rows == second.rows

    def run_on(self, side, session, statement):
        """A statement on one side. What cannot be had in the way that ALTER TABLE asks for is had in another: which ways there are differs."""
        outcome = side.run(session, statement, self.at)
        if outcome.error and outcome.error[0] in (1845, 1846, 1847):
            return side.run(session, re.sub(r", (algorithm|lock)=\w+", "", statement), self.at)
        return outcome

    def in_transaction(self, session):
        """Whether a rollback takes back what the session's last statement did, on the side that did it."""
        return any(side.run(session, "select @@in_transaction", self.at).rows == ["(1,)"] for side in self.sides)

    def compare(self):
        """All tables of both sides, as those see them who come new."""
        tables = [self.names(side) for side in self.sides]
        if tables[0] != tables[1]:
            raise Difference("tables", f"InnoDB has {tables[0]}, Teak {tables[1]}")
        for name in tables[0]:
            self.compare_table(name)

    def names(self, side):
        """The tables of a side."""
        return [row[0] for row in self.server.query("show tables", database=side.database)]

    def compare_table(self, name):
        """Rows, definition, and the indexes of Teak's."""
        shown = [self.definition(side, name) for side in self.sides]
        if shown[0] != shown[1]:
            if without_index(*shown, self.definitions()):
                raise Conflict("InnoDB has lost a constraint with its index")
            if other_order(*shown):
                raise Conflict("a UNIQUE key that has become one by hash stands before or after another one")
            raise Difference("definition", f"table {name}\n    InnoDB: {shown[0]}\n    Teak:   {shown[1]}")
        self.compare_rows(name, shown[1])
        found = self.server.query(f"check table {name} extended", database="d_t")
        # Rows without parents are there by foreign_key_checks = 0; that InnoDB has the same, the rows say. A virtual
        # column that cannot be computed is the server's to tell.
        if any(row[3] != "OK" and row[2] != "note" and "constraint '" not in row[3] and not re.match("Truncated incorrect|.* value is out of range", row[3]) for row in found):
            raise Difference("check", f"check table {name} extended: {found}\n{self.server.log_end(6)}")

    def compare_rows(self, name, shown):
        """Rows, which InnoDB may read by an index: after a value that its collation holds for the same, that over a virtual column has the one of before."""
        places = [(side.engine, self.server, side.database) for side in self.sides]
        try:
            compare_rows(name, places, "rows")
        except Difference:
            if ") VIRTUAL" not in shown:
                raise
            compare_rows(name, places, "rows", " use index ()")
            raise Conflict("InnoDB's index over a virtual column has another value than the row") from None

    def definition(self, side, name):
        """SHOW CREATE TABLE without what must differ."""
        text = masked(self.server.query(f"show create table {name}", database=side.database)[0][1])
        text = re.sub(r" (AUTO_INCREMENT=\d+|`?IN_MEMORY`?='?ON'?)", "", text)
        return re.sub(r" USING (HASH|BTREE)", "", text)
