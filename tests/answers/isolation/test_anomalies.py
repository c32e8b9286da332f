"""The analysis finds each anomaly in the smallest history that has it, and nothing in those that have none."""

import unittest

from anomalies import Analysis
from history import ABORTED, COMMITTED, UNKNOWN, Append, Read, Transaction


def transaction(*operations, outcome=COMMITTED, began=0.0, ended=1.0):
    """Operations as ('a', key, element), ('u', key, element) for one undone, ('r', key, elements)."""
    made = []
    for kind, key, value in operations:
        made.append(Read(key, list(value), began) if kind == "r" else Append(key, value, kind == "u"))
    return Transaction(0, made, outcome, began, ended)


def kinds(transactions, final, **settings):
    """The kinds of all anomalies."""
    return sorted(Analysis(transactions, final, **settings).counts())


class Anomalies(unittest.TestCase):
    """Each by its name."""

    def test_a_serial_history_has_none(self):
        one = transaction(("r", 1, []), ("a", 1, 10), ("a", 1, 11), ("r", 1, [10, 11]))
        two = transaction(("r", 1, [10, 11]), ("a", 1, 12), ("a", 2, 20))
        self.assertEqual(kinds([one, two], {1: [10, 11, 12], 2: [20]}), [])

    def test_g0(self):
        one, two = transaction(("a", 1, 10), ("a", 2, 20)), transaction(("a", 1, 11), ("a", 2, 21))
        self.assertEqual(kinds([one, two], {1: [10, 11], 2: [21, 20]}), ["G0"])

    def test_g1a(self):
        gone = transaction(("a", 1, 10), outcome=ABORTED)
        self.assertIn("G1a", kinds([gone, transaction(("r", 1, [10]))], {1: []}))
        undone = transaction(("u", 1, 10), ("a", 1, 11))
        self.assertIn("G1a", kinds([undone, transaction(("r", 1, [10, 11]))], {1: [10, 11]}))

    def test_g1b(self):
        writer = transaction(("a", 1, 10), ("a", 1, 11))
        self.assertIn("G1b", kinds([writer, transaction(("r", 1, [10]))], {1: [10, 11]}))

    def test_g1c(self):
        one, two = transaction(("a", 1, 10), ("r", 2, [20])), transaction(("a", 2, 20), ("r", 1, [10]))
        self.assertEqual(kinds([one, two], {1: [10], 2: [20]}), ["G1c"])

    def test_read_skew_is_g_single(self):
        reader, writer = transaction(("r", 1, []), ("r", 2, [20])), transaction(("a", 1, 10), ("a", 2, 20))
        self.assertEqual(kinds([reader, writer], {1: [10], 2: [20]}), ["G-single"])

    def test_lost_update(self):
        # Both read nothing; the second append stands behind the first.
        one, two = transaction(("r", 1, []), ("a", 1, 10)), transaction(("r", 1, []), ("a", 1, 11))
        self.assertEqual(kinds([one, two], {1: [10, 11]}), ["lost update"])

    def test_lost_append(self):
        self.assertEqual(kinds([transaction(("a", 1, 10))], {1: []}), ["lost append"])

    def test_write_skew_is_g2(self):
        one, two = transaction(("r", 1, []), ("a", 2, 20)), transaction(("r", 2, []), ("a", 1, 10))
        self.assertEqual(kinds([one, two], {1: [10], 2: [20]}), ["G2"])

    def test_long_fork_is_nonadjacent(self):
        # Two readers that see two writers in different orders: two anti-dependencies, never one after the other.
        writers = [transaction(("a", 1, 10)), transaction(("a", 2, 20))]
        readers = [transaction(("r", 1, [10]), ("r", 2, [])), transaction(("r", 2, [20]), ("r", 1, []))]
        self.assertEqual(kinds(writers + readers, {1: [10], 2: [20]}), ["G-nonadjacent"])

    def test_internal_and_fuzzy_reads(self):
        self.assertIn("internal", kinds([transaction(("a", 1, 10), ("r", 1, []))], {1: [10]}))
        twice = transaction(("r", 1, []), ("r", 1, [10]))
        self.assertIn("fuzzy read", kinds([transaction(("a", 1, 10)), twice], {1: [10]}))

    def test_stale_read(self):
        writer = transaction(("a", 1, 10), ended=1.0)
        self.assertEqual(kinds([writer, transaction(("r", 1, []), began=2.0)], {1: [10]}), ["stale read"])
        self.assertEqual(kinds([writer, transaction(("r", 1, []), began=0.5)], {1: [10]}), [])

    def test_lists_that_contradict_each_other(self):
        writers = [transaction(("a", 1, 10)), transaction(("a", 1, 11))]
        self.assertIn("incompatible order", kinds(writers + [transaction(("r", 1, [11]))], {1: [10, 11]}))

    def test_an_unknown_outcome_is_what_others_saw(self):
        writer = transaction(("a", 1, 10), outcome=UNKNOWN, ended=0.0)
        self.assertEqual(kinds([writer], {1: []}), [])
        self.assertEqual(kinds([transaction(("a", 1, 10), outcome=UNKNOWN, ended=0.0)], {1: [10]}), [])


if __name__ == "__main__":
    unittest.main()
