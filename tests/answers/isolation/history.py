"""What clients saw: transactions that append numbers to lists and read lists."""

from dataclasses import dataclass, field

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


@dataclass
class Read:
    """A list as a statement that began at `began` (seconds) returned it; `locking`: what it asked to be locked."""

    key: int
    elements: list
    began: float
    locking: str = ""


@dataclass
class Append:
    """A number, unique in the history, at the end of a list. `undone`: taken back by ROLLBACK TO SAVEPOINT."""

    key: int
    element: int
    undone: bool = False


@dataclass
class Transaction:
    """Operations in the order in which they were carried out. `began`: before the first of them, `ended`: when the client heard of the outcome."""

    client: int
    operations: list = field(default_factory=list)
    outcome: str = ABORTED
    began: float = 0.0
    ended: float = 0.0

    def reads(self):
        """The reads alone."""
        return [operation for operation in self.operations if isinstance(operation, Read)]

    def appends(self):
        """The appends that count, if the transaction does."""
        return [operation for operation in self.operations if isinstance(operation, Append) and not operation.undone]
