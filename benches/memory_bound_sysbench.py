"""sysbench's part of memory_bound.py: its workloads over tables larger than memory, checkpoints of few and many changes, reads after them."""

WORKLOADS = ("oltp_point_select", "oltp_update_non_index", "oltp_update_index", "oltp_delete", "oltp_insert", "oltp_read_write")
TABLES, THREADS = 4, 8
# Three of forty rows of each table: 300,000 of four million, some in each leaf.
CHANGES = "UPDATE sbtest{} SET c = REVERSE(c) WHERE id % 40 IN (3, 17, 31)"
# One row of ten of Teak's leaves, of a hundred of InnoDB's pages.
FEW_CHANGES = "UPDATE sbtest{} SET c = REVERSE(c) WHERE id % 1700 = 5"
# A step of so many rows ends long before this, in seconds.
LIMIT = 7200


class Steps:
    """The steps on one side's server."""

    def __init__(self, side, arguments):
        self.side = side
        side.rows = arguments.rows

    def run(self):
        """All of them; none without the rows."""
        side = self.side
        if side.step("load", self.load) is None:
            return
        for workload in WORKLOADS:
            side.after_pause(workload, lambda script=workload: self.workload(script))
        side.step("checkpoint", side.checkpoint)
        for name, changes in (("few changes", FEW_CHANGES), ("many changes", CHANGES)):
            changed = side.step(name, lambda changes=changes: self.changes(changes))
            side.step(f"checkpoint of {name}", lambda changed=changed: side.checkpoint(changed))
        side.after_pause("reads after it", lambda: self.workload("oltp_point_select"))
        side.check(side.engine, TABLES)

    def load(self):
        """Fills the tables: an operation is a row."""
        _, failure = self.side.sysbench(self.side.engine, "oltp_read_write", TABLES, TABLES, "prepare", limit=LIMIT)
        return {"operations": self.side.rows * TABLES}, failure

    def workload(self, script):
        """One of sysbench's: an operation is a transaction."""
        return self.side.timed(script, TABLES, THREADS, "--rand-type=uniform")

    def changes(self, changes):
        """Changes in all tables at the same time: an operation is a row."""
        return {"operations": self.side.at_once([changes.format(number + 1) for number in range(TABLES)], LIMIT)}, None
