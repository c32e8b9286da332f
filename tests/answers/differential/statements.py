"""Random statements for the tables of a history (schemas.py). A step is a pair: the session's number, and the statement."""

from schemas import TYPES, Column, generated_column, key_part, random_table

SWITCHES = [
    "default", "'materialization=off,firstmatch=off,loosescan=off'", "'materialization=off,loosescan=off'", "'firstmatch=off,loosescan=off'",
    "'materialization=off,firstmatch=off'", "'semijoin=off'", "'mrr=on,mrr_cost_based=off'", "'index_merge_sort_intersection=on,rowid_filter=on'",
    "'index_condition_pushdown=off'", "'derived_merge=off,split_materialized=off'", "'extended_keys=off'",
]
SETTINGS = [
    "sql_mode = ''", "sql_mode = ''", "sql_mode = default", "sql_mode = default", "foreign_key_checks = 0", "foreign_key_checks = 1", "foreign_key_checks = 1",
    "alter_algorithm = copy", "alter_algorithm = default", "alter_algorithm = default", "sort_buffer_size = 65536", "sort_buffer_size = default",
    "join_cache_level = 4", "join_cache_level = 0", "join_cache_level = default", "tmp_memory_table_size = 0", "tmp_memory_table_size = default",
    "unique_checks = 0", "unique_checks = 1",
]


class Writer:
    """Writes the statements of one history. `source` gives all random numbers."""

    def __init__(self, source, features, sessions):
        self.source, self.features, self.sessions = source, features, sessions
        self.tables, self.made, self.triggers, self.functions = [], 0, 0, 0
        self.open, self.prepared, self.transactions = [False] * sessions, [], 0

    def beginning(self):
        """The statements that make the first tables, and fill them."""
        for _ in range(self.source.randint(2, 4)):
            yield 0, self.create_table()
        for table in list(self.tables):
            for _ in range(self.source.randint(1, 3)):
                yield 0, self.insert(table)

    def steps(self):
        """The next step, or some that belong together."""
        session = self.source.randrange(self.sessions)
        crossed = self.crossed(session) if self.sessions > 1 and self.source.random() < 0.05 else None
        if crossed:
            return crossed
        statements = self.statement(session)
        return [(session, statement) for statement in ([statements] if isinstance(statements, str) else statements)]

    def crossed(self, session):
        """Rows of a child, and, before their transaction has ended, one of a parent by another session: it may be what was looked for and was not there."""
        other = (session + 1) % self.sessions
        pairs = [(child, parent) for child in self.tables for parent in child.parents if parent is not child]
        if self.open[other] or not pairs:
            return None
        child, parent = self.source.choice(pairs)
        begun = [] if self.open[session] else [(session, "start transaction")]
        self.open[session] = True
        return begun + [(session, self.insert(child)), (other, "start transaction"), (other, self.insert(parent, one=True)), (other, "commit")]

    def statement(self, session):
        """What a session does next: a statement, or a list of some."""
        source = self.source
        choice = source.random()
        if self.sessions > 1:
            if not self.open[session] and choice < 0.9:
                self.open[session] = True
                return f"start transaction{source.choice(['', '', ' with consistent snapshot'])}"
            if self.open[session] and choice < 0.25:
                self.open[session] = False
                return source.choice(["commit", "commit", "rollback"])
            if self.open[session] and choice < 0.95:
                return self.change() if choice < 0.75 else self.select()
        if choice < 0.5:
            return self.change()
        if choice < 0.68:
            return self.select()
        if choice < 0.74:
            return self.transaction(session)
        if choice < 0.80:
            return self.setting()
        if choice < 0.84:
            return self.rare(session)
        return self.definition()

    # -- definitions

    def create_table(self):
        """CREATE TABLE, of a table that is known from now on."""
        table, statement = random_table(self.source, f"t{self.made}", self.tables, self.features)
        self.made += 1
        self.tables.append(table)
        return statement

    def definition(self):
        """A statement that changes a definition."""
        source = self.source
        table = source.choice(self.tables)
        choice = source.random()
        if choice < 0.10 and len(self.tables) < 6:
            return self.create_table()
        if choice < 0.16 and len(self.tables) > 2:
            if source.random() < 0.5:
                self.tables.remove(table)
            drop = f"drop table {source.choice(['', 'if exists '])}{table.name}"
            # Its children wait for another one of its name.
            leaves_children = self.features["foreign"] and self.sessions == 1 and source.random() < 0.4
            return ["set foreign_key_checks = 0", drop, "set foreign_key_checks = 1"] if leaves_children else drop
        if choice < 0.22:
            return f"truncate table {table.name}"
        if choice < 0.34:
            return self.trigger(table)
        if choice < 0.37:
            return f"drop trigger if exists g{source.randrange(max(self.triggers, 1))}"
        if choice < 0.40:
            return f"delete history from {table.name}" if table.versioned else f"{source.choice(['analyze', 'optimize'])} table {table.name}"
        if choice < 0.43:
            gone = [name for name in (f"t{number}" for number in range(self.made + 2)) if name not in {t.name for t in self.tables}]
            return f"drop table {source.choice(['', 'if exists '])}{source.choice(gone)}"
        return self.alter(table)

    def trigger(self, table):
        """A trigger whose statement may change what the statement itself is about, through a cascade."""
        source = self.source
        when, event = source.choice(["before", "after"]), source.choice(["insert", "update", "delete"])
        related = [other for other in table.parents if other is not table] + [t for t in self.tables if table in t.parents]
        other = source.choice([t for t in related or self.tables if t is not table] or self.tables)
        row = "old" if event == "delete" else "new"
        columns = [column for column in other.stored() if column.family == "n"] or other.stored()
        mine = [column for column in table.stored() if column.family == "n"] or table.stored()
        column, own = source.choice(columns), source.choice(mine)
        action = source.choice([
            f"update {other.name} set {column.name} = {column.name} + 20 where {column.name} = {row}.{own.name}",
            f"update {other.name} set {column.name} = {column.value(source)} where {column.name} = {row}.{own.name}",
            f"delete from {other.name} where {column.name} = {row}.{own.name}",
            f"set @seen = concat(coalesce(@seen, ''), '/', coalesce({row}.{own.name}, 'null'))",
            self.insert(other, one=True),
        ])
        self.triggers += 1
        return f"create trigger g{self.triggers - 1} {when} {event} on {table.name} for each row {action}"

    def alter(self, table):
        """ALTER TABLE with one change, now and then with two."""
        source = self.source
        # A copy puts history into the partition that it would go to now; which changes copy differs.
        table.limited = False
        changes = [self.alteration(table)]
        if source.random() < 0.2:
            changes.append(self.alteration(table))
        how = source.choice(["", "", "", "", ", algorithm=copy", ", lock=none", ", algorithm=inplace"])
        return f"alter table {table.name} {', '.join(changes)}{how}"

    def alteration(self, table):
        """One change of a table."""
        source = self.source
        column = source.choice(table.columns)
        choice = source.randrange(17)
        if choice <= 3:
            return "force"
        if choice == 4:
            new = Column(f"c{len(table.columns) + source.randrange(3)}", source.choice(TYPES), source.random() < 0.7)
            table.columns.append(new)
            return f"add column {new.definition}{source.choice(['', '', ' first'])}"
        if choice == 5:
            return f"drop column {column.name}"
        if choice == 6:
            kind = source.choice(TYPES)
            return f"modify {column.name} {kind[0]}{source.choice(['', ' not null', ' null'])}"
        if choice == 7:
            # Rather one of a constraint.
            column = source.choice([column] + [c for c in table.columns if c.name.startswith("f")] * 3)
            return f"modify {column.name} {column.type}{source.choice([' not null', ' not null', ' null'])}"
        if choice <= 9:
            unique = source.choice(["", "", "unique "])
            using = source.choice(["", "", "", " using hash"])
            parts = source.sample(table.columns, min(len(table.columns), source.choice([1, 1, 2])))
            if self.features["foreign"]:
                # It takes the place of the key that a foreign key has made for itself, unless it is a hash.
                using = ""
            table.hashed = table.hashed or bool(unique and using)
            listed = ", ".join(key_part(source, part) for part in parts)
            return f"add {unique}key k{source.randrange(6)} ({listed.replace(' desc', '') if using else listed}){using}"
        if choice == 10:
            return f"drop key k{source.randrange(4)}"
        if choice == 11:
            if table.constraints and source.random() < 0.6:
                return f"drop foreign key {source.choice(table.constraints)}"
            return f"drop key {column.name}"
        if choice == 12 and self.features["foreign"]:
            parent = source.choice([t for t in self.tables if t.primary and (t is not table or column.name not in t.primary)] or self.tables)
            target = parent.primary[0] if parent.primary else column.name
            # InnoDB's rules leave orphans in a table that has history of its own rows' parents.
            if parent is table and (target == column.name or self.features["versioned"]):
                return "force"
            table.parents.append(parent)
            action = source.choice(["", " on delete cascade", " on delete set null", " on update cascade", " on delete cascade on update cascade"])
            return f"add foreign key ({column.name}) references {parent.name} ({target}){action}"
        if choice == 13 and self.features["generated"]:
            new = generated_column(source, table, f"g{source.randrange(1, 5)}")
            if new and not (new.family == "l" and "stored" in new.generated and self.features["versioned"]):
                table.columns.append(new)
                return f"add column {new.definition}"
        if choice == 14 and self.features["versioned"] and not table.is_spoiled() and table not in table.parents:
            return source.choice(["add system versioning", "drop system versioning"])
        if choice == 15:
            return source.choice(["drop primary key", f"add primary key ({column.name})", f"drop primary key, add primary key ({column.name})"])
        return f"rename column {column.name} to {column.name}" if choice == 16 else "force"

    # -- rows

    def condition(self, table, prefix=""):
        """What stands behind WHERE."""
        source = self.source
        column = source.choice(table.columns)
        name = prefix + column.name
        value, other = source.choice(column.values), source.choice(column.values)
        return source.choice([
            f"{name} = {value}", f"{name} = {value}", f"{name} = {value}", f"{name} <=> {value}", f"{name} > {value}", f"{name} < {value}", f"{name} <> {value}",
            f"{name} in ({value}, {other})", f"{name} between {value} and {other}", f"{name} is null", f"{name} is not null",
            f"{name} >= {value} and {name} <= {other}", f"({name} = {value} or {self.simple(table, prefix)})", f"{name} like 'a%'", "1 = 1",
        ])

    def simple(self, table, prefix=""):
        """A comparison."""
        column = self.source.choice(table.columns)
        return f"{prefix}{column.name} {self.source.choice(['=', '<', '>='])} {self.source.choice(column.values)}"

    def order(self, table):
        """An order in which no two rows are alike, as far as the rows differ."""
        first = self.source.choice(table.columns)
        names = [first.name + self.source.choice(["", " desc"])] + [c.name for c in table.columns if c is not first and c.family != "l"]
        names += [c.name for c in table.columns if c is not first and c.family == "l"]
        return "order by " + ", ".join(names)

    def row(self, table, columns):
        """Values of a row, in parentheses."""
        return f"({', '.join(column.value(self.source) for column in columns)})"

    def insert(self, table, one=False):
        """INSERT or REPLACE of some rows."""
        source = self.source
        columns = [c for c in table.stored() if not c.more]
        if source.random() < 0.3:
            columns = source.sample(columns, max(1, len(columns) - 1))
        count = 1 if one else source.choice([1, 1, 2, 3, 5, 12, 40])
        # Of many rows one has no parent, mostly.
        ignored = ["insert ignore into"] * (6 if count > 2 and table.parents else 1)
        verb = source.choice(["insert into", "insert into", "insert into", "replace into", *ignored])
        rows = ", ".join(self.row(table, columns) for _ in range(count))
        names = [column.name for column in columns]
        end = ""
        if verb == "insert into" and source.random() < 0.25:
            target = source.choice(columns)
            end = f" on duplicate key update {target.name} = {source.choice([f'values({target.name})', target.value(source)])}"
        elif not one and verb != "insert ignore into" and source.random() < 0.08:
            end = f" returning {source.choice(names)}"
        return f"{verb} {table.name} ({', '.join(names)}) values {rows}{end}"

    def assignment(self, table, prefix=""):
        """A column and its new value."""
        source = self.source
        column = source.choice(table.stored() or table.columns)
        name = prefix + column.name
        values = [column.value(source), column.value(source)]
        if column.family == "n":
            values += [f"{name} + 1", f"{name} + 10", f"-{name}"]
        elif column.family == "t":
            values += [f"concat({name}, 'q')", f"left({name}, 1)", name]
        return f"{name} = {source.choice(values)}"

    def change(self):
        """A statement that changes rows."""
        source = self.source
        table = source.choice(self.tables)
        choice = source.random()
        if choice < 0.34:
            return self.insert(table)
        if choice < 0.38:
            other = source.choice(self.tables)
            return self.insert_select(table, other)
        if choice < 0.66:
            ignore = source.choice(["", "", "", "", "ignore "])
            assignments = ", ".join({self.assignment(table) for _ in range(source.choice([1, 1, 2]))})
            limit = f" limit {source.choice([1, 2, 5])}" if source.random() < 0.3 else ""
            # Keys that move may meet each other, in one order and not in another.
            order = self.order(table) if limit or ignore or " + " in assignments or source.random() < 0.4 else ""
            return f"update {ignore}{table.name} set {assignments} where {self.condition(table)} {order}{limit}"
        if choice < 0.86:
            limit = f" limit {source.choice([1, 2, 5])}" if source.random() < 0.3 else ""
            order = self.order(table) if limit or source.random() < 0.3 else ""
            returning = " returning *" if source.random() < 0.1 else ""
            ignore = source.choice(["", "", "", "", "ignore "])
            return f"delete {ignore}from {table.name} where {self.condition(table)} {order}{limit}{returning}"
        return self.several(table)

    def related(self, table):
        """A column, and one of the same type in another table or in this one: comparisons of different types warn of each row that they meet, and which
        those are is the plan's."""
        column, other = self.source.choice(table.columns), self.source.choice(self.tables)
        alike = [theirs for theirs in other.columns if theirs.type == column.type or theirs.family == column.family == "n"]
        return (column, other, self.source.choice(alike)) if alike else (column, table, column)

    def insert_select(self, table, other):
        """Rows of a table into another one."""
        columns, theirs = table.stored(), other.columns
        count = self.source.randint(1, min(len(columns), len(theirs)))
        mine, values = self.source.sample(columns, count), self.source.sample(theirs, count)
        verb = self.source.choice(["insert into", "insert ignore into", "replace into"])
        return f"{verb} {table.name} ({', '.join(c.name for c in mine)}) select {', '.join(c.name for c in values)} from {other.name} {self.order(other)}"

    def several(self, table):
        """A statement that changes several tables, or one by what another has."""
        source = self.source
        mine, other, theirs = self.related(table)
        on = f"a.{mine.name} = b.{theirs.name}"
        if source.random() < 0.4:
            return f"delete {source.choice(['a', 'b', 'a, b'])} from {table.name} a join {other.name} b on {on} where {self.condition(table, 'a.')}"
        if source.random() < 0.3:
            return f"delete from {table.name} where {mine.name} in (select {theirs.name} from {other.name} where {self.condition(other)})"
        target = source.choice([(table, "a."), (other, "b.")])
        return f"update {table.name} a join {other.name} b on {on} set {self.assignment(*target)} where {self.condition(table, 'a.')}"

    # -- reads, and the rest

    def select(self):
        """A query."""
        source = self.source
        table = source.choice(self.tables)
        column, other, second = self.related(table)
        names = ", ".join(c.name for c in source.sample(table.columns, source.randint(1, len(table.columns))))
        history = " for system_time all" if table.versioned and source.random() < 0.4 else ""
        lock = source.choice(["", "", "", " for update", " lock in share mode"]) if self.sessions > 1 else ""
        if table.limited and source.random() < 0.3:
            return f"select count(*) from {table.name} partition (p{source.randrange(2)})"
        return source.choice([
            f"select {names} from {table.name}{history} where {self.condition(table)}{lock}",
            f"select {names} from {table.name}{history} where {self.condition(table)} and {self.condition(table)}{lock}",
            f"select {names} from {table.name}{history} where {self.condition(table)} {self.order(table)} limit {source.choice([1, 3, 7])}{lock}",
            f"select min({column.name}), max({column.name}), count(*), count(distinct {column.name}) from {table.name} where {self.condition(table)}",
            f"select min({column.name}) from {table.name}", f"select max({column.name}) from {table.name}",
            f"select count(*), count(distinct a.{column.name}) from {table.name} a where {column.name} in (select b.{second.name} from {other.name} b where "
            f"{self.condition(other, 'b.')})",
            f"select {names} from {table.name} a where a.{column.name} in (select b.{second.name} from {other.name} b where b.{second.name} >= a.{column.name})",
            f"select count(*) from {table.name} a join {other.name} b on a.{column.name} = b.{second.name} where {self.condition(table, 'a.')}",
            f"select {column.name}, count(*) from {table.name} group by {column.name} order by {column.name}",
            f"select distinct {column.name} from {table.name} where {self.condition(table)} order by {column.name} desc",
            f"select {column.name} from {table.name} where {column.name} > {source.choice(column.values)} order by "
            f"{column.name} desc{', hex(' + column.name + ')' if column.family in 'tl' and not column.generated else ''} limit 2",
            # InnoDB's takes what the record had before for the values of generated columns, hidden ones too.
            "select @seen" if table.hashed or any(c.generated for c in table.columns) else f"checksum table {table.name}",
        ])

    def transaction(self, session):
        """What begins, ends or divides a transaction."""
        source = self.source
        if not self.open[session]:
            self.open[session] = True
            return source.choice(["begin", "begin", "set autocommit = 0"])
        choice = source.random()
        if choice < 0.3:
            return f"savepoint s{source.randrange(2)}"
        if choice < 0.5:
            return f"rollback to s{source.randrange(2)}"
        self.open[session] = False
        return source.choice(["commit", "commit", "rollback", "set autocommit = 1"])

    def rare(self, session):
        """HANDLER, XA, LOAD DATA, functions that change tables."""
        source = self.source
        table = source.choice(self.tables)
        choice = source.random()
        if choice < 0.35:
            key = source.choice(table.keys or [("primary", ["id"])])
            column = table.column(key[1][0]) or source.choice(table.columns)
            return source.choice([
                f"handler {table.name} open", f"handler {table.name} open", f"handler {table.name} read first limit 3", f"handler {table.name} read next",
                f"handler {table.name} read `{key[0]}` {source.choice(['first', 'last', 'next', 'prev'])}", f"handler {table.name} close",
                f"handler {table.name} read `{key[0]}` {source.choice(['=', '>=', '<=', '<', '>'])} ({source.choice(column.values)})",
            ])
        if choice < 0.6:
            return self.two_phases(session)
        if choice < 0.8:
            columns = [c for c in table.stored() if not c.more and c.family in "ntd"] or table.stored()
            lines = "".join("\\t".join(source.choice(c.values).strip("'") for c in columns) + "\\n" for _ in range(source.choice([1, 3, 10])))
            # Texts that are made by functions are not evaluated by LOAD DATA, which is as good a text as any.
            lines = lines.replace("'", "")
            how = source.choice(["", "ignore ", "replace "])
            return f"load data infile 'data:{lines}' {how}into table {table.name} character set utf8mb4 ({', '.join(c.name for c in columns)})"
        if choice < 0.9:
            self.functions += 1
            return f"create function f{self.functions - 1}(x bigint) returns bigint modifies sql data begin {self.change()}; return x; end"
        numbers = table.numbers()
        if not numbers:
            return f"drop function if exists f{source.randrange(self.functions + 1)}"
        column = source.choice([c for c in numbers if not c.generated] or numbers)
        return f"update {table.name} set {column.name} = f{source.randrange(self.functions + 1)}({column.name}) where {self.condition(table)} {self.order(table)} limit 1"

    def two_phases(self, session):
        """XA transactions, which are decided at once or later, by any session."""
        source = self.source
        if self.prepared and source.random() < 0.6:
            return f"xa {source.choice(['commit', 'commit', 'rollback'])} '{self.prepared.pop(source.randrange(len(self.prepared)))}'"
        if self.open[session]:
            return "xa recover"
        name = f"x{self.transactions}-%ENGINE%"
        self.transactions += 1
        if source.random() < 0.3:
            return f"xa start '{name}'"
        self.prepared.append(name)
        return [f"xa start '{name}'", self.change(), self.change(), f"xa end '{name}'", f"xa prepare '{name}'"]

    def setting(self):
        """SET of something that changes how statements are carried out."""
        if self.source.random() < 0.5:
            return f"set optimizer_switch = {self.source.choice(SWITCHES)}"
        return f"set {self.source.choice(SETTINGS)}"
