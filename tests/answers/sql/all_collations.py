#!/usr/bin/env python3
"""Every collation of the server: an index against a scan, and Teak against InnoDB.

The texts are short and chosen to be awkward: spaces at the end and inside, capitals, accents, letters that expand (sharp s, ligatures), letters
that contract or are ignored, and what is below a space. Texts that a character set cannot hold are left out. A language's collation is the same
in all character sets of Unicode, and its variants (accents, case, padding) differ as those of the root: without --all the languages are tried in utf8mb4
only, those of uca1400 in two variants. Prints what differs and 'collations: N passed, N failed'.
"""

import sys

from kit.options import parser

from serving import serving

TEXTS = [
    "", " ", "  ", "a", "A", "a ", "A ", "a  b", "a b", "a\tb", "a\t", "a!", "ab", "aB", "Ab", "ab ", "aa", "aA", "aaa", "b", "ae", "AE", "æ", "Æ",
    "ä", "Ä", "á", "à", "ǎ", "aé", "é", "e", "É", "ss", "ß", "SS", "sS", "ßa", "ßb", "ssa", "ßß", "ssss", "s", "st", "ﬆ", "ff", "ﬀ", "ﬃ", "ffi", "ij", "ĳ",
    "dz", "dž", "ǆ", "Dž", "ch", "c", "ch ", "cz", "ll", "lz", "č", "C", "ñ", "n", "ŉ", "o", "ö", "oe", "œ", "ø", "z", "ž", "Ž", "zz", "ø ", "þ", "th", "i", "ı", "I", "İ",
    "1", "10", "2", "½", "-", "a-b", "a'b", "a\u00adb", "a\u0301", "\u0301", "ﷺ", "中", "日", "天", "一", "丁", "あ", "ア", "ｱ", "か", "が", "к", "К", "ё", "е", "ก", "เก", "กเ", "א", "ب",
]
# What ranges and patterns are made of.
PROBES = ["", "a", "A", "a ", "ab", "ae", "ss", "ß", "e", "ch", "z", "č", "dž", "ﬀ"]
# Columns: the last is so short that weights of long expansions do not fit if they are cut.
COLUMNS = ["VARCHAR(10)", "CHAR(6)", "VARCHAR(2)"]


UNICODE = ("ucs2", "utf8mb3", "utf8mb4", "utf16", "utf32")
# The words in a collation's name that are no language.
GENERAL = {"ai", "as", "ci", "cs", "nopad", "bin", "general", "mysql500", "unicode", "520", "uca1400"}


def chosen(rows, everything):
    """The collations to try, as (character set, collation)."""
    for charset, collation in rows:
        suffix = collation[len(charset) + 1:]
        by_language = charset in UNICODE and not GENERAL.issuperset(suffix.split("_"))
        variant = "uca1400" not in suffix or suffix.endswith(("nopad_as_ci", "_as_cs")) and not suffix.endswith("nopad_as_cs")
        if everything or not by_language or (charset == "utf8mb4" and variant):
            yield charset, collation


class Tester:
    def __init__(self, connection):
        self.cursor = connection.cursor()

    def run(self, statement):
        self.cursor.execute(statement)
        return self.cursor.fetchall()

    def texts(self, charset):
        """Those that the character set can hold, by number, as SQL."""
        cases = [(number, f"CONVERT({self.quote(text)} USING {charset})") for number, text in enumerate(TEXTS)]
        kept = self.run(" UNION ALL ".join(
            f"SELECT {number}, HEX({text}), CONVERT(CONVERT({text} USING utf8mb4) USING utf8mb4) = BINARY {self.quote(TEXTS[number])}" for number, text in cases))
        return [(number, code) for number, code, same in kept if same]

    @staticmethod
    def quote(text):
        return f"_utf8mb4 X'{text.encode().hex()}'" if text else "_utf8mb4''"

    def changed_weights(self, collation, texts):
        """How many texts have other weights in the collation of that name for utf8mb4: an instant change of the character set keeps keys."""
        other = collation.replace("utf8mb3", "utf8mb4", 1)
        if collation.endswith("_bin") or not self.run(
                f"SELECT 1 FROM information_schema.collation_character_set_applicability WHERE full_collation_name = '{other}'"):
            return 0
        characters = "SELECT CAST(UNHEX(LPAD(HEX(seq), 4, '0')) AS CHAR(1) CHARACTER SET ucs2) t FROM seq_1_to_65535 WHERE seq NOT BETWEEN 55296 AND 57343"
        strings = "".join(f" UNION ALL SELECT CONVERT(_utf8mb3 X'{code}' USING ucs2)" for _, code in texts)
        weights = "WEIGHT_STRING(CONVERT(t USING {}) COLLATE {})"
        rows = self.run(f"SELECT COUNT(*), SUM({weights.format('utf8mb3', collation)} <> {weights.format('utf8mb4', other)}) FROM ({characters}{strings}) s")
        assert rows[0][0] == 63487 + len(texts), rows
        return rows[0][1]

    def table(self, name, engine, charset, collation, keys):
        columns = "".join(f"c{i} {column} CHARACTER SET {charset} COLLATE {collation}, " for i, column in enumerate(COLUMNS))
        keys = ", ".join(keys.format(i=i) for i in range(len(COLUMNS)))
        self.run(f"CREATE OR REPLACE TABLE {name} (id INT PRIMARY KEY, {columns} {keys}) ENGINE={engine}")

    def fill(self, engine, charset, collation, texts):
        """Tables of the engine with all texts in each column."""
        self.literals = {number: f"_{charset} X'{code}'" for number, code in texts}
        self.table("k", engine, charset, collation, "KEY up{i} (c{i}), KEY down{i} (c{i} DESC)")
        rows = ", ".join(f"({number}{f', {literal}' * len(COLUMNS)})" for number, literal in self.literals.items())
        self.run(f"INSERT IGNORE INTO k VALUES {rows}, (1000{', NULL' * len(COLUMNS)})")
        self.table("u", engine, charset, collation, "UNIQUE KEY (c{i})")
        for i in range(len(COLUMNS)):
            rows = ", ".join(f"({1000 * i + number}, {literal})" for number, literal in self.literals.items())
            self.run(f"INSERT IGNORE INTO u (id, c{i}) VALUES {rows}")

    def answers(self, i, charset, collation):
        """What the engine answers about column i, and where its index and its scan disagree."""
        c, literals = f"c{i}", self.literals
        found, wrong = {}, []
        found["unique"] = self.run(f"SELECT id % 1000, HEX({c}) FROM u WHERE {c} IS NOT NULL ORDER BY id")
        found["order"] = self.run(f"SELECT id FROM k FORCE INDEX (up{i}) WHERE {c} IS NOT NULL ORDER BY {c}, id")
        found["texts"] = self.run(f"SELECT id, HEX({c}) FROM k FORCE INDEX (up{i}) WHERE {c} >= '' OR {c} < '' ORDER BY id")

        def both(name, select):
            by_index = self.run(select.replace("{}", f"FORCE INDEX (up{i})"))
            by_scan = self.run(select.replace("{}", f"IGNORE INDEX (up{i}, down{i})"))
            descending = self.run(select.replace("{}", f"FORCE INDEX (down{i})"))
            found[name] = by_index
            if not by_index == by_scan == descending:
                wrong.append((name, by_index, by_scan, descending))

        both("equal", f"SELECT a.id, b.id FROM k a STRAIGHT_JOIN k b {{}} ON b.{c} = a.{c} ORDER BY a.id, b.id")
        conditions = []
        known = {TEXTS[number]: literal for number, literal in literals.items()}
        for probe in PROBES:
            if probe not in known:
                continue
            text = f"{known[probe]} COLLATE {collation}"
            conditions += [f"{c} {operator} {text}" for operator in ("=", "<", ">=")]
            conditions.append(f"{c} LIKE CONCAT({known[probe]}, CONVERT('%' USING {charset})) COLLATE {collation}")
        conditions.append(f"{c} BETWEEN {known['a']} AND {known['ab']}")
        numbered = list(enumerate(conditions))
        both("ranges", " UNION ALL ".join(f"SELECT {number} n, GROUP_CONCAT(id ORDER BY id) g FROM k {{}} WHERE {condition}" for number, condition in numbered))
        self.conditions = conditions
        return found, wrong


def describe(name, ours, theirs, conditions):
    """The first row in which two answers differ."""
    for ours_row, theirs_row in zip(ours, theirs):
        if ours_row != theirs_row:
            text = f" ({conditions[ours_row[0]]})" if name == "ranges" else ""
            return f"{ours_row} and {theirs_row}{text}"
    return f"{len(ours)} and {len(theirs)} rows"


def compare(connection, everything, names):
    """Those collations, or those that are named; how many went well and how many did not."""
    tester = Tester(connection)
    tester.run("CREATE OR REPLACE DATABASE all_collations")
    tester.run("USE all_collations")
    tester.run("SET sql_mode = '', group_concat_max_len = 1 << 20, note_verbosity = ''")
    collations = chosen(tester.run(
        "SELECT character_set_name, full_collation_name FROM information_schema.collation_character_set_applicability"
        " WHERE character_set_name <> 'binary' ORDER BY 1, 2"), everything)
    passed = failed = 0
    known = {}
    for charset, collation in collations:
        if names and collation not in names:
            continue
        if charset not in known:
            known[charset] = tester.texts(charset)
        problems = []
        results = {}
        for engine in ("InnoDB", "Teak"):
            tester.fill(engine, charset, collation, known[charset])
            results[engine] = [tester.answers(i, charset, collation) for i in range(len(COLUMNS))]
        for i, column in enumerate(COLUMNS):
            theirs, _ = results["InnoDB"][i]
            ours, wrong = results["Teak"][i]
            for name, answer in ours.items():
                if answer != theirs[name]:
                    problems.append(f"{column} {name}: Teak and InnoDB: {describe(name, answer, theirs[name], tester.conditions)}")
            # Where InnoDB's index disagrees with its scan in the same way it is the server that builds the wrong range.
            for name, by_index, by_scan, descending in wrong:
                if by_index != theirs[name] or descending != by_index:
                    problems.append(f"{column} {name}: index and scan: {describe(name, by_index, by_scan, tester.conditions)}"
                                    f", descending: {describe(name, descending, by_scan, tester.conditions)}")
        if charset == "utf8mb3" and tester.changed_weights(collation, known[charset]):
            problems.append("weights: not those that its counterpart for utf8mb4 has")
        for problem in problems:
            print(f"FAILED {collation} {problem}", flush=True)
        passed, failed = passed + (not problems), failed + bool(problems)
    tester.run("DROP DATABASE all_collations")
    return passed, failed


def main():
    options = parser(__doc__, names="only these collations")
    options.add_argument("--all", action="store_true", help="all pairs of language and character set")
    arguments = options.parse_args()
    with serving(arguments) as server:
        passed, failed = compare(server.connect(database=None, autocommit=True), arguments.all, arguments.names)
    print(f"collations: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
