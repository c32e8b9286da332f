"""Finds anomalies in a history of lists, by cycles in its graph of dependencies.

The method is Elle's (Kingsbury and Alvaro, PVLDB 14(3), 2020) for appended lists, the levels are those of Adya's thesis (1999). Since each element is
written once and a list shows the order of all writes to it, the histories of the versions need not be guessed:

    ww  T1's element stands right before T2's
    wr  T2 read a list that ends with T1's element
    rw  T1 read a list, and T2's element stands right behind what it read

A cycle is an anomaly; which one depends on the edges that it needs. Beside cycles: reads of what was rolled back (G1a) or of what its transaction
changed afterwards (G1b), lists that contradict each other, transactions that do not see their own writes, acknowledged elements that are gone, and reads that
miss what was acknowledged before they began.
"""

from collections import defaultdict
from dataclasses import dataclass

from graph import components, cycle_within
from history import ABORTED, COMMITTED, Append, Read

WW, WR, RW = "ww", "wr", "rw"
# From those that no level allows to those that only SERIALIZABLE forbids.
KINDS = ("incompatible order", "lost append", "G1a", "G1b", "internal", "G0", "G1c", "stale read", "fuzzy read", "lost update", "G-single", "G-nonadjacent", "G2")
READ_COMMITTED_ALLOWS = {"fuzzy read", "lost update", "G-single", "G-nonadjacent", "G2"}
SNAPSHOT_ALLOWS = {"G2"}
SERIALIZABLE_ALLOWS = set()


@dataclass
class Anomaly:
    """One of KINDS, with what a reader needs to see it: a line, and the numbers of the transactions."""

    kind: str
    text: str
    transactions: tuple = ()


class Analysis:
    """Of one history. `final` is what a reader saw of each list after all transactions had ended."""

    def __init__(self, transactions, final, rereads_may_differ=False):
        self.transactions = transactions
        self.found = []
        # READ COMMITTED takes a snapshot a statement, so two reads of a list may differ.
        self.rereads_may_differ = rereads_may_differ
        self.writer = {}
        self.undone = set()
        self.known = []
        for number, transaction in enumerate(transactions):
            for operation in transaction.operations:
                if isinstance(operation, Append):
                    self.writer[operation.element] = number
                    if operation.undone:
                        self.undone.add(operation.element)
        self.settle_outcomes(final)
        self.order = self.orders(final)
        self.lost_appends(final)
        self.direct_checks()
        self.edges = self.dependencies()
        self.cycles()

    def report(self, kind, text, transactions=()):
        """Notes an anomaly."""
        self.found.append(Anomaly(kind, text, tuple(transactions)))

    def report_cycle(self, kind, cycle):
        """Notes an anomaly of these transactions, which then explains others of them."""
        self.report(kind, self.describe(cycle), cycle)
        self.known.append(set(cycle))

    def settle_outcomes(self, final):
        """A transaction whose COMMIT was never answered was committed if anybody saw an element of it."""
        seen = {element for elements in final.values() for element in elements}
        for transaction in self.transactions:
            if transaction.outcome == COMMITTED:
                seen.update(element for read in transaction.reads() for element in read.elements)
        for transaction in self.transactions:
            if transaction.outcome not in (COMMITTED, ABORTED):
                known = any(append.element in seen for append in transaction.appends())
                transaction.outcome = COMMITTED if known else ABORTED

    def committed(self):
        """Numbers and transactions of those that count."""
        return [(number, each) for number, each in enumerate(self.transactions) if each.outcome == COMMITTED]

    def orders(self, final):
        """The order of each list's elements; all committed reads must be beginnings of it, but for the reader's own elements."""
        order = {key: list(elements) for key, elements in final.items()}
        for number, transaction in self.committed():
            for read in transaction.reads():
                longest = order.get(read.key, [])
                if read.elements != longest[: len(read.elements)]:
                    self.report("incompatible order", f"transaction {number} read {tail(read.elements)} of list {read.key}, which became {tail(longest)}", [number])
        return order

    def lost_appends(self, final):
        """What was acknowledged is there at the end."""
        for number, transaction in self.committed():
            for append in transaction.appends():
                if append.element not in self.position(append.key, final):
                    self.report("lost append", f"element {append.element} of committed transaction {number} is not in list {append.key}")

    def position(self, key, final):
        """The elements of a list at the end, as a set that is made once."""
        if not hasattr(self, "_sets"):
            self._sets = {}
        if key not in self._sets:
            self._sets[key] = set(final.get(key, ()))
        return self._sets[key]

    def direct_checks(self):
        """Everything that one read shows."""
        acknowledged = self.acknowledged()
        for number, transaction in self.committed():
            own = defaultdict(list)
            before = {}
            for operation in transaction.operations:
                if isinstance(operation, Append):
                    if not operation.undone:
                        own[operation.key].append(operation.element)
                        before.pop(operation.key, None)
                    continue
                self.check_origin(number, operation)
                self.check_own(number, operation, own[operation.key])
                self.check_again(number, operation, before)
            self.check_fresh(number, transaction, acknowledged)

    def check_origin(self, number, read):
        """G1a and G1b."""
        for element in read.elements:
            writer = self.transactions[self.writer[element]] if element in self.writer else None
            if writer is None:
                self.report("incompatible order", f"transaction {number} read {element} of list {read.key}, which nobody wrote", [number])
            elif element in self.undone or (writer.outcome == ABORTED and self.writer[element] != number):
                self.report("G1a", f"transaction {number} read element {element} of list {read.key}, which was rolled back", [number])
        if read.elements and read.elements[-1] in self.writer:
            last = self.writer[read.elements[-1]]
            if last != number:
                of_list = [append.element for append in self.transactions[last].appends() if append.key == read.key]
                if of_list and of_list[-1] != read.elements[-1]:
                    self.report("G1b", f"transaction {number} read list {read.key} as of the middle of transaction {last}: it ends with {read.elements[-1]}", [number])

    def check_own(self, number, read, own):
        """Own elements are seen, at the end; also at READ COMMITTED, since the row is locked."""
        if own and read.elements[-len(own):] != own:
            self.report("internal", f"transaction {number} appended {own} to list {read.key} and then read {tail(read.elements)}", [number])

    def check_again(self, number, read, before):
        """Nothing changes between two reads of a list without an append of one's own."""
        if read.key in before and before[read.key] != read.elements:
            text = f"transaction {number} read list {read.key} as {tail(before[read.key])} and then as {tail(read.elements)}"
            self.report("fuzzy read", text, [number])
        before[read.key] = read.elements

    def acknowledged(self):
        """For each list: the earliest acknowledgement of an element at this place or behind it."""
        ended = {}
        for _, transaction in self.committed():
            for append in transaction.appends():
                ended[append.element] = transaction.ended or float("inf")
        result = {}
        for key, order in self.order.items():
            earliest = [float("inf")] * (len(order) + 1)
            for place in range(len(order) - 1, -1, -1):
                earliest[place] = min(earliest[place + 1], ended.get(order[place], float("inf")))
            result[key] = earliest
        return result

    def check_fresh(self, number, transaction, acknowledged):
        """A read has all that was acknowledged before it, or its snapshot, began."""
        for read in transaction.reads():
            began = read.began if self.rereads_may_differ else transaction.began
            earliest = acknowledged.get(read.key)
            if earliest and len(read.elements) < len(earliest) and earliest[len(read.elements)] < began:
                self.report("stale read", f"transaction {number} read list {read.key} without elements that were acknowledged before it began: {tail(read.elements)}", [number])

    def dependencies(self):
        """Kinds of edges between committed transactions, by their numbers."""
        edges = defaultdict(lambda: defaultdict(set))

        def add(source, target, kind, key):
            if source is not None and target is not None and source != target:
                edges[source][target].add((kind, key))

        def committed_writer(element):
            number = self.writer.get(element)
            return number if number is not None and self.transactions[number].outcome == COMMITTED else None

        places = {}
        for key, order in self.order.items():
            writers = [committed_writer(element) for element in order]
            places[key] = writers
            for earlier, later in zip(writers, writers[1:]):
                add(earlier, later, WW, key)
        for number, transaction in self.committed():
            for read in transaction.reads():
                writers = places.get(read.key, [])
                length = len(read.elements)
                if length:
                    add(committed_writer(read.elements[-1]), number, WR, read.key)
                # One's own elements at the end of the read are no news: what follows them still is.
                if length < len(writers):
                    add(number, writers[length], RW, read.key)
        return edges

    def cycles(self):
        """One anomaly for each knot of transactions, the worst that it has."""
        self.of_kind({WW}, "G0")
        self.of_kind({WW, WR}, "G1c")
        self.single()
        self.nonadjacent()
        for component in components(self.neighbours({WW, WR, RW})):
            if not self.explained(component):
                self.report_cycle("G2", cycle_within(self.neighbours({WW, WR, RW}), component))

    def neighbours(self, kinds):
        """The graph of edges of these kinds."""
        return {source: {target for target, found in targets.items() if any(kind in kinds for kind, _ in found)} for source, targets in self.edges.items()}

    def of_kind(self, kinds, name):
        """Cycles of edges of these kinds alone."""
        graph = self.neighbours(kinds)
        for component in components(graph):
            if not self.explained(component):
                self.report_cycle(name, cycle_within(graph, component))

    def explained(self, component):
        """Whether a worse anomaly among some of these is known already."""
        return any(known & set(component) for known in self.known)

    def single(self):
        """A cycle with one anti-dependency. If reader and writer changed the list that one of them had read, an update was lost."""
        graph = self.neighbours({WW, WR})
        inside = {}
        for number, component in enumerate(components(self.neighbours({WW, WR, RW}))):
            inside.update({member: number for member in component})
        for source, targets in list(self.edges.items()):
            for target, found in targets.items():
                keys = [key for kind, key in found if kind == RW]
                if not keys or source not in inside or inside.get(target) != inside[source]:
                    continue
                path = path_between(graph, target, source, inside)
                if path and not self.explained(path):
                    writes = {append.key for append in self.transactions[source].appends()}
                    name = "lost update" if len(path) == 2 and writes & set(keys) else "G-single"
                    self.report_cycle(name, path)

    def nonadjacent(self):
        """A cycle in which no two anti-dependencies follow each other; snapshot isolation excludes them all (Cerone and Gotsman, 2018)."""
        graph = defaultdict(set)
        for source, targets in self.edges.items():
            for target, found in targets.items():
                kinds = {kind for kind, _ in found}
                if kinds & {WW, WR}:
                    graph[(source, False)].add((target, False))
                    graph[(source, True)].add((target, False))
                if RW in kinds:
                    graph[(source, False)].add((target, True))
        for component in components(graph):
            members = [number for number, _ in component]
            if not self.explained(members):
                self.report_cycle("G-nonadjacent", [number for number, _ in cycle_within(graph, component)])

    def describe(self, cycle):
        """The edges of a cycle."""
        parts = []
        for source, target in zip(cycle, cycle[1:] + cycle[:1]):
            found = sorted(self.edges[source].get(target, ()))
            kind, key = found[0] if found else ("?", "?")
            parts.append(f"{source} -{kind} list {key}-> {target}")
        return ", ".join(parts)

    def story(self, number):
        """What a transaction did, line by line."""
        transaction = self.transactions[number]
        lines = [f"transaction {number} of client {transaction.client}, from {transaction.began:.6f} to {transaction.ended:.6f}, {transaction.outcome}"]
        for operation in transaction.operations:
            if isinstance(operation, Append):
                lines.append(f"    appends {operation.element} to list {operation.key}{', undone' if operation.undone else ''}")
            else:
                locking = f" {operation.locking}" if operation.locking else ""
                lines.append(f"    reads list {operation.key}{locking} at {operation.began:.6f}: {tail(operation.elements)}")
        return "\n".join(lines)

    def counts(self):
        """How many of each kind."""
        result = defaultdict(int)
        for anomaly in self.found:
            result[anomaly.kind] += 1
        return dict(result)


def path_between(graph, source, target, inside):
    """A shortest path from `source` to `target` within one component, or None."""
    previous, queue = {source: None}, [source]
    for node in queue:
        if node == target:
            path = []
            while node is not None:
                path.append(node)
                node = previous[node]
            return path[::-1]
        for following in graph.get(node, ()):
            if following not in previous and inside.get(following) == inside[source]:
                previous[following] = node
                queue.append(following)
    return None


def tail(elements):
    """The end of a list, for a message."""
    return f"[{len(elements)} elements, ... {', '.join(map(str, elements[-4:]))}]"
