"""What all cases know: the engines, the server's options, and how a case fails."""

ENGINES = ("Teak", "InnoDB")
OPTIONS = ["--max-allowed-packet=16M", "--innodb-buffer-pool-size=128M", "--event-scheduler=off"]

# Exit statuses of the program.
OTHER, USAGE, DAMAGE, INPUT_OUTPUT, SERVER, NOTHING_TO_RESUME = range(1, 7)


class Failure(Exception):
    """A case found something wrong."""


def check(condition, text):
    """Fails the case with a text."""
    if not condition:
        raise Failure(text)
