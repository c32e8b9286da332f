"""The server that SQL tests run on, with both engines alike."""

import contextlib

from kit.server import SHARE, Server

OPTIONS = ["--default-storage-engine=InnoDB", "--teak-snapshot-isolation=INNODB", "--innodb-snapshot-isolation=ON", "--innodb-buffer-pool-size=64M",
           "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2", "--teak-memory-max-size=512M", "--lock-wait-timeout=20",
           "--innodb-lock-wait-timeout=5", f"--lc-messages-dir={SHARE}"]


@contextlib.contextmanager
def serving(arguments):
    """A new server, which ends with the block."""
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start(OPTIONS)
    try:
        yield server
    finally:
        server.kill()
