"""What is known to differ between the two engines, and where a user finds it (docs/compatibility.md). A reason is as narrow as it can be told from the outside,
and each use of one is counted: what is taken for known too often hides what is not."""

import re
import unicodedata
from collections import Counter

# Which error of several ends a statement of many rows depends on the order in which rows and keys are looked at.
OF_ROWS = {1022, 1048, 1062, 1088, 1169, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1442, 1451, 1452, 1557, 1586, 1690, 1761, 4025, 4078}
CONFLICTS = {1020, 1205, 1213}
# The table was changed after the snapshot: InnoDB has an error without a text for some ways of reading.
CHANGED = {159, 1412}
# What Teak refuses with one number and InnoDB with another, or which of several comes first.
REFUSALS = {1005, 1025, 1072, 1091, 1150, 1215, 1217, 1451, 1452, 1478, 1846, 1845, 1221, 1506, 1553, 1828, 1829, 1830, 1832, 1833, 1834, 1822, 4110, 4119}
# What InnoDB's pages and records are too small for.
TOO_LARGE = {139, 1030, 1118, 1071, 1713}
# A trigger's cascade takes the row itself away, or its parent with it.
GOES = {1032, 1442, 1451, 1452}
# What the values of a virtual column may be refused with.
COMPUTED = {1264, 1265, 1292, 1366, 1406, 1690}
DEFINITIONS = ("alter", "create", "optimize", "rename")


class Case:
    """A statement with what both engines gave."""

    def __init__(self, statement, inners, teaks, pair):
        self.statement, self.inners, self.teaks, self.pair = statement, inners, teaks, pair
        self.inner, self.teak = (outcome.error[0] if outcome.error else None for outcome in (inners, teaks))

    def begins(self, *words):
        """Whether the statement is one of these."""
        return self.statement.startswith(words)

    def only(self, *numbers):
        """Whether one engine alone gave an error, which is one of these."""
        return (self.inner is None) != (self.teak is None) and (self.inner or self.teak) in numbers

    def refuses(self, *numbers):
        """Whether Teak alone gave an error, which is one of these."""
        return self.inner is None and self.teak in numbers

    def takes(self, *numbers):
        """Whether InnoDB alone gave an error, which is one of these."""
        return self.teak is None and self.inner in numbers

    def both_within(self, *groups):
        """Whether both gave errors, of one of these groups."""
        return any({self.inner, self.teak} <= group for group in groups)

    def has_unindexed(self):
        """Whether a table has a constraint that has lost an index."""
        texts = self.pair.definitions()
        return any(unindexed(text, texts) for text in texts.values())

    def near(self, pattern):
        """Whether a table that the statement names, or one that constraints, triggers and functions connect with it, has this in its definition."""
        texts = self.pair.definitions()
        return any(re.search(pattern, texts.get(name, "")) for name in connected(self.statement, texts, self.pair.programs()))


def connected(statement, texts, programs):
    """The tables that a statement reaches: those it names, and those that constraints and programs (triggers, functions) name together with one of them."""
    groups = [set(re.findall(r"\bt\d+\b", text)) for text in [*texts.values(), *programs]]
    reached, before = set(re.findall(r"\bt\d+\b", statement)), set()
    if re.search(r"\bf\d+\(", statement):
        reached |= {name for text in programs for name in re.findall(r"\bt\d+\b", text)}
    while reached != before:
        before = set(reached)
        for group in groups:
            if group & reached:
                reached |= group
    return reached


def worded(outcome):
    """Numbers of the warnings: texts have rows' numbers and values, which the order of the rows decides. Which of several reasons has refused a row, the order of
    its keys and constraints does."""
    return sorted({min(number, 1062) if number in (1062, 1452) else number for level, number, _ in outcome.warnings if level != "Note"})


def same_letters(case):
    """Whether a SELECT gives rows that differ in case, accents and spaces only: of what its collation holds for the same, DISTINCT and LIMIT leave any."""
    def folded(rows):
        letters = [unicodedata.normalize("NFD", row).casefold() for row in rows]
        return sorted(re.sub(r"[\u0300-\u036f]| +(?=')", "", row) for row in letters)

    return (case.begins("select") and re.search(r"\bdistinct\b| limit ", case.statement) and case.inners.rows and case.teaks.rows
            and folded(case.inners.rows) == folded(case.teaks.rows))


def same_but_rows(case):
    """Whether no engine gave an error, and both other rows."""
    return case.inner is None and case.teak is None and case.inners.rows != case.teaks.rows


def same_rows(case):
    """Whether no engine gave an error, and both the same rows."""
    return case.inner is None and case.teak is None and case.inners.rows == case.teaks.rows


def spoils_index(case):
    """Whether a statement or its trigger is refused to take rows away beneath history, of several tables or of one without a primary key: they are back among
    InnoDB's rows, and by an index no longer found."""
    if 1451 not in [case.inner, *(number for _, number, _ in case.inners.warnings)]:
        return False
    takes = any(word in text for text in [case.statement, *case.pair.programs()] for word in ("delete ", "replace "))
    return takes and (" join " in case.statement and case.near(VERSIONED) or case.near(f"^(?![^;]*PRIMARY KEY)[^;]*{VERSIONED}"))


def moves_children(case):
    """Whether a DELETE or UPDATE of several tables has met other numbers of rows, near a rule for children that it may come to by their parents or by itself."""
    rule = r"ON UPDATE (?:CASCADE|SET NULL)" if case.begins("update") else "REFERENCES"
    return (same_rows(case) and case.begins("delete", "update") and re.search(r" join |\(select ", case.statement) and case.inners.counts != case.teaks.counts
            and case.near(rule))


def meets_restriction(case):
    """Whether one engine alone comes to a row's children that restrict it: by another constraint of the child a rule takes them when another of the parent's rows
    goes, which comes before, or after."""
    return (case.only(1451) and case.begins("delete", "update", "replace")
            and case.near(r"CONSTRAINT [^\n]* (?:CASCADE|SET NULL)[^;]*\n  CONSTRAINT|\n  CONSTRAINT[^;]*\n  CONSTRAINT [^\n]* (?:CASCADE|SET NULL)"))


def passes_over(case):
    """Whether an UPDATE of a partitioned table has met no row on one side: behind a statement with an empty range of a scan of the primary key the server's next
    one finds nothing, with either engine, if its plan is such a scan, too."""
    none = [outcome.counts and "(Rows matched: 0 " in str(outcome.counts[1]) for outcome in (case.inners, case.teaks)]
    return case.begins("update") and any(none) and not all(none) and case.near("PARTITION BY")


def ends_with_primary(case):
    """Whether a constraint names columns of a parent of which the last is its primary key's: InnoDB takes an index without that one for it."""
    texts = case.pair.definitions()
    for text in [case.statement, *texts.values()]:
        for parent, columns in re.findall(r"references `?(t\d+)`? \(([^)]*, [^)]*)\)", text, re.IGNORECASE):
            primary = re.search(r"PRIMARY KEY \(([^)]*)\)", texts.get(parent, ""))
            if primary and f"`{columns.replace('`', '').split(', ')[-1]}`" in primary[1]:
                return True
    return False


def computes_for_log(case):
    """Whether no more than warnings of a virtual column are Teak's alone: only its side is in the binary log, whose row events have such columns computed."""
    inner, teak = ([warning for warning in outcome.warnings if warning[1] not in COMPUTED] for outcome in (case.inners, case.teaks))
    return (same_rows(case) and inner == teak and len(case.inners.warnings) < len(case.teaks.warnings) and case.inners.counts[0] == case.teaks.counts[0]
            and case.near(r"\) VIRTUAL"))


SELF = r"CREATE TABLE `(\w+)`[^;]*REFERENCES `\1`"
VERSIONED = "SYSTEM VERSIONING"

# The tables are the same after it: the history goes on.
ALIKE = {
    "of several reasons to refuse a definition one is told": lambda c: c.inner and c.teak and c.begins("alter", "create"),
    "another text": lambda c: c.inner and c.inner == c.teak,
    "another row's error comes first": lambda c: c.both_within(OF_ROWS),
    "another refusal comes first": lambda c: c.both_within(REFUSALS),
    "a changed table, by another number": lambda c: c.both_within(CHANGED) or c.begins("checksum") and any(number in CHANGED for _, number, _ in c.inners.warnings),
    "which index is read is the plan's, so one that is younger than the snapshot, too": lambda c: c.only(1412) and "select " in c.statement,
    "of several reasons to refuse a row that of a trigger's table is told": lambda c: c.both_within({*OF_ROWS, 1146}) and c.pair.programs(),
    "which of equal letters DISTINCT and LIMIT leave": same_letters,
    "an index that is younger than the snapshot is read, or a row's error comes first": lambda c: c.inner and c.teak == 1412,
    "a trigger's cascade takes its own row or its parent": lambda c: c.both_within(GOES) or ((c.inner, c.teak) == (1062, 1032) and c.pair.programs()),
    "OPTIMIZE copies, or not": lambda c: c.begins("optimize") and c.inner is None and c.teak is None,
    "rows that a copy counts": lambda c: same_rows(c) and c.begins("alter", "optimize", "analyze"),
    "the binary log has virtual columns computed, which warns": computes_for_log,
    "texts and order of warnings": lambda c: same_rows(c) and c.inners.counts == c.teaks.counts
                                             and (not c.begins("insert", "update", "delete", "replace") or worded(c.inners) == worded(c.teaks)),
}

# The tables differ from here on, or may: the history ends, and proves nothing more.
APART = {
    "InnoDB's index is damaged": lambda c: c.inner in (1034, 1712),
    "InnoDB does not take UPDATE IGNORE beside UNIQUE USING HASH": lambda c: c.takes(1235) and c.begins("update ignore"),
    "InnoDB does not drop an index together with its constraint": lambda c: c.takes(1553) and "drop foreign key" in c.statement,
    "InnoDB fills history partitions further after a restart": lambda c: same_but_rows(c) and " partition (" in c.statement and c.near("PARTITION BY SYSTEM_TIME[^;]* LIMIT"),
    "InnoDB keeps history that lasted for no time": lambda c: c.inner is None and c.teak is None and c.begins("delete history", "checksum") and c.near(VERSIONED),
    "a rule takes a child before or after the parent that it restricts goes": meets_restriction,
    "the server passes over rows of partitions": passes_over,
    "a plan compares values that do not fit": lambda c: c.only(1292) and " join " in c.statement and not c.begins("select"),
    "InnoDB takes an index that ends with the primary key's columns for a parent's": lambda c: c.refuses(1005, 1553) and c.begins(*DEFINITIONS) and ends_with_primary(c),
    "InnoDB does not look for children of a parent without an index": lambda c: c.refuses(1451, 1829) and c.has_unindexed(),
    "InnoDB's records are too small": lambda c: c.takes(*TOO_LARGE),
    "Teak says that it does not take an option": lambda c: c.refuses(1478) and c.begins(*DEFINITIONS),
    "InnoDB has to copy the table for a change, which is younger than the snapshot": lambda c: c.inner in CHANGED and c.teak not in CHANGED,
    "InnoDB does not ask how old an index over virtual columns is": lambda c: c.refuses(1412) and c.near("GENERATED ALWAYS"),
    "InnoDB lets go the index of a self reference": lambda c: c.refuses(1553) and c.begins("alter") and ("drop primary key" in c.statement or c.near(SELF)),
    "InnoDB lets a parent's column become NULL that cascades into NOT NULL": lambda c: c.refuses(1833) and c.begins("alter") and c.near(f"{SELF}|ON UPDATE CASCADE"),
    "a column becomes NOT NULL under a rule that may make it NULL": lambda c: c.refuses(1005, 1830) and c.begins("alter") and c.near("SET NULL|ON UPDATE CASCADE")
                                                                           and re.search("not null|primary key", c.statement),
    "ADD of a UNIQUE USING HASH without what partitions are chosen by": lambda c: c.teak == 1503 and c.begins("alter") and "using hash" in c.statement,
    "InnoDB does not copy a table whose constraint has lost its index": lambda c: (c.takes(1025) and c.begins("alter") and "incorrectly formed" in c.inners.error[1]
                                                                        or c.takes(1215) and c.begins("truncate")) and c.has_unindexed(),
    "InnoDB's copy that fails at its end has dropped a constraint": lambda c: c.inner == 1025 and c.teak in REFUSALS and "drop foreign key" in c.statement,
    "a virtual column that comes with other changes is a copy, which computes it": lambda c: c.refuses(*COMPUTED) and c.begins("alter")
                                                                                       and re.search(r"\) virtual, |, .*\) virtual", c.statement),
    "InnoDB copies partitions for a virtual column, and computes it": lambda c: c.takes(*COMPUTED) and c.begins("alter") and ") virtual" in c.statement
                                                                            and c.near("PARTITION BY"),
    "names of constraints": lambda c: c.takes(1823) and c.begins(*DEFINITIONS),
    "InnoDB takes columns of several types for a foreign key": lambda c: c.refuses(1005) and any("does not match referenced column" in text for _, _, text in c.teaks.warnings),
    "rows that are their own parents": lambda c: (c.only(1451, 1452) or c.begins("delete") and (c.inners.counts != c.teaks.counts or " returning " in c.statement)
                                                  or " ignore " in c.statement and (c.inners.counts, c.inners.warnings) != (c.teaks.counts, c.teaks.warnings))
                                               and c.near(SELF),
    "InnoDB takes history for rows, or has one row of it for a statement": lambda c: (c.only(1451, 1452) or c.takes(1761)
                                                                                      or any(number == 1761 for _, number, _ in c.inners.warnings)) and c.near(VERSIONED),
    "InnoDB looks for a parent before it comes to a unique key that is younger": lambda c: c.takes(1452) and "on duplicate key" in c.statement,
    "keys change hands, parents and children go in the order of a plan": lambda c: c.only(1062, 1451) and " join " in c.statement and not c.begins("select"),
    "InnoDB changes a row that a trigger's cascade has taken away": lambda c: c.refuses(1032) and any("delete from" in text or "replace into" in text
                                                                                                       for text in c.pair.programs()),
    "which rows a trigger compares with a value that does not fit is the plan's": lambda c: c.only(1292) and not c.begins("select", *DEFINITIONS)
                                                                                         and any(" where " in text for text in c.pair.programs()),
    "children go or change by a rule before a DELETE or UPDATE of several tables comes to them, as its plan has it": moves_children,
    "InnoDB's index lacks rows that are back": spoils_index,
    "InnoDB counts a row that is about to go once more where a cascade comes back to it, and is too deep": lambda c: c.inner == 152 != c.teak and c.near(SELF),
    "the binary log has virtual columns computed, and refuses": lambda c: c.refuses(*COMPUTED) and c.near(r"\) VIRTUAL")
                                                                           and c.begins("insert", "update", "delete", "replace", "load"),
    "a prepared transaction without changes, after a kill": lambda c: c.only(1397) and c.begins("xa rollback", "xa commit"),
}


def unindexed(text, texts):
    """The constraints of a definition of whose columns it has no index, or the parent none."""
    def has(definition, columns):
        keys = re.findall(r"(?<!FOREIGN) KEY (?:`\w+` )?\((.*)\)", definition)
        return any(key.replace(" DESC", "").startswith(columns) for key in keys)

    found = []
    for line in re.findall(r",\n  CONSTRAINT [^\n]*?(?=,?\n)", text):
        own, parent, theirs = re.search(r"FOREIGN KEY \(([^)]*)\) REFERENCES `(\w+)` \(([^)]*)\)", line).groups()
        if not has(text, own) or parent in texts and not has(texts[parent], theirs):
            found.append(line)
    return found


def without_index(inner, teak, texts):
    """Whether InnoDB's definition of a table lacks constraints of Teak's of which one has no index any more, on either side: without checks InnoDB loses them in
    silence when the index goes, or when the table is copied."""
    lost = [line for line in re.findall(r",\n  CONSTRAINT [^\n]*?(?=,?\n)", teak) if line not in inner]
    rest = teak
    for line in lost:
        rest = rest.replace(line, "")
    return inner == rest and any(line in lost for line in unindexed(teak, texts))


def other_order(inner, teak):
    """Whether two definitions differ in the order of their UNIQUE keys only: those that the server keeps by hash come last, and it is not asked again when a
    column's change makes one of them."""
    lines = [text.replace(",\n", "\n").splitlines() for text in (inner, teak)]
    rest = [[line for line in side if "UNIQUE KEY" not in line] for side in lines]
    return rest[0] == rest[1] and sorted(lines[0]) == sorted(lines[1])


def ruled(program, texts):
    """The tables whose rows go or change by the rules of constraints when a program (a trigger, a function) changes what it names."""
    parents = set(re.findall(r"\bt\d+\b", program.split(" ", 1)[1]))
    found, before = set(), None
    while found != before:
        before = set(found)
        for name, text in texts.items():
            if any(re.search(f"REFERENCES `{parent}` [^\n]* (?:CASCADE|SET NULL)", text) for parent in parents | found):
                found.add(name)
    return found


# What a replica may stop at, of any engine.
STOPS = {
    "a row that is its own parent is deleted": lambda stop: stop.is_of(1451) and any(re.search(SELF, text) for text in stop.texts.values()),
    "the binary log has a row as it was before a trigger's change of its parent has changed it": lambda stop: stop.is_of(1032, 1451, 1452) and stop.comes_back(),
}


def reason(reasons, case):
    """The first of the reasons that holds, or None."""
    return next((name for name, holds in reasons.items() if holds(case)), None)


class Uses:
    """How often each reason was used, of those with which a history goes on, and of those that end one."""

    def __init__(self):
        self.counts, self.ends = Counter(), Counter()

    def reason(self, case):
        """The first of the reasons after which the tables are alike; None if there is none."""
        name = reason(ALIKE, case)
        self.counts.update([name] if name else [])
        return name

    def __str__(self):
        return "\n".join(f"{count:7} {name}{end}" for counts, end in ((self.counts, ""), (self.ends, " (the end)")) for name, count in counts.most_common())
