"""What every comparison of engines on one server shares: the server and its options, queries, errors, writing out."""

import os
import platform
import shutil
import subprocess
import time

import pymysql

from kit.options import PLUGIN_DIR
from kit.server import Server

# Tables in memory may have as much as there is; the server's own temporary tables may not.
TABLES_IN_MEMORY = ["--max-heap-table-size=16G", "--tmp-table-size=64M", "--teak-memory-max-size=16G"]
DEBIAN_PLUGIN_DIR = "/usr/lib/mysql/plugin"
DEBIAN_PLUGINS = {
    "BLACKHOLE": ("ha_blackhole.so", "mariadb-server"), "ARCHIVE": ("ha_archive.so", "mariadb-server"),
    "RocksDB": ("ha_rocksdb.so", "mariadb-plugin-rocksdb"),
}


class Comparison:
    """A server with tables of each engine, and what failed so far."""

    def __init__(self, directory, plugin_dir, engines, options):
        self.engines = engines
        self.server = Server(directory, plugin_dir)
        self.options = options
        self.errors = []

    def carry_out(self, keep):
        """Runs it and ends the server, whose data go unless `keep`; the exit status."""
        try:
            self.run()
        finally:
            self.server.kill()
            if not keep:
                shutil.rmtree(self.server.data, ignore_errors=True)
        return 1 if self.errors else 0

    def run(self):
        """What is compared."""
        raise NotImplementedError

    def processes(self):
        """What the server's sessions do, for the report of a hang."""
        try:
            sessions = self.query(None, "SELECT id, time, state, info FROM information_schema.processlist WHERE command <> 'Sleep'")
            return "; ".join(map(str, sessions[:8]))
        except pymysql.err.MySQLError as error:
            return repr(error)

    def query(self, engine, statement, limit=600):
        """All rows of one statement on a connection of its own; `limit` in seconds."""
        return self.server.query(statement, database(engine) if engine else None, read_timeout=limit)

    def failed(self, engine, where, what):
        """Notes an error; a dead server is started again, so that the other measurements still happen."""
        entry = {"engine": engine, "where": where, "what": what}
        if not self.server.is_running():
            entry["error_log"] = self.server.log_end(150)
            entry["what"] += f"; the server ended with {self.server.process.returncode}"
        self.errors.append(entry)
        print(f"ERROR: {engine}, {where}: {entry['what']}", flush=True)
        if "error_log" in entry:
            seconds = self.server.start(self.options)
            print(f"the server was started again in {seconds:.1f} s", flush=True)

    def write_out(self, engine):
        """Brings every change of one engine to its data files."""
        if engine == "Teak":
            self.query(None, "SET GLOBAL teak_checkpoint_now = 1")
        elif engine == "InnoDB":
            self.write_out_innodb()
        elif engine == "RocksDB":
            # Not ..._and_lzero_now: that compacts into files compressed by Snappy, whatever the options say.
            self.query(None, "SET GLOBAL rocksdb_force_flush_memtable_now = 1")
        else:
            self.query(None, "FLUSH TABLES")

    def write_out_innodb(self):
        """InnoDB has no statement for it: no page may be dirty, which is waited for, and it may write as fast as it can."""
        capacity = {name: self.query(None, f"SELECT @@GLOBAL.{name}")[0][0] for name in ("innodb_io_capacity", "innodb_io_capacity_max")}
        self.query(None, "SET GLOBAL innodb_io_capacity_max = 20000")
        self.query(None, "SET GLOBAL innodb_io_capacity = 20000")
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct = 0")
        deadline = time.monotonic() + 120
        while int(self.query(None, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")[0][1]) > 0:
            if time.monotonic() > deadline:
                self.failed("InnoDB", "write out", "dirty pages are left after 120 s")
                break
            time.sleep(0.2)
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")
        for name, value in capacity.items():
            self.query(None, f"SET GLOBAL {name} = {value}")

    def settle(self, limit, interval=0.5):
        """Waits, at most `limit` seconds, until the server is idle for an interval: what one run left behind (purge, flushing) must not slow the next."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            before = self.server.cpu_seconds()
            time.sleep(interval)
            if self.server.cpu_seconds() - before <= 0.04 * interval:
                return

    def note_error_log(self):
        """Errors that the server logged are errors, also where no client saw one."""
        try:
            with open(self.server.error_log, errors="replace", encoding="utf-8") as log:
                found = [line.strip() for line in log if "[ERROR]" in line or "panicked" in line]
        except OSError:
            found = []
        for line in found[:20]:
            self.errors.append({"engine": "", "where": "error log", "what": line})


class Side(Comparison):
    """One of what is compared, with a server of its own: an engine, or a build or a form of it, by its name."""

    def __init__(self, directory, plugin_dir, name, engine, options=()):
        super().__init__(directory, plugin_dir, [engine], list(options))
        self.name, self.engine = name, engine

    def start(self):
        """A new server."""
        self.server.install()
        self.server.start(self.options)


def sides_of(arguments, directory, options):
    """A side for each of --engines, and for each further build of Teak that --plugin names; the plugins are copies, one for each."""
    wanted = [(engine, engine, os.path.join(PLUGIN_DIR, "ha_teak.so")) for engine in arguments.engines.split(",")]
    wanted += [(name, "Teak", file) for name, _, file in (plugin.partition("=") for plugin in arguments.plugin)]
    sides = []
    for name, engine, plugin in wanted:
        plugins = os.path.join(directory, name, "plugins")
        os.makedirs(plugins)
        shutil.copy2(plugin, os.path.join(plugins, "ha_teak.so"))
        sides.append(Side(os.path.join(directory, name, "server"), plugins, name, engine, options))
    return sides


def in_turn(sides, number):
    """The sides in the order of one round: another one begins each time."""
    number %= len(sides)
    return sides[number:] + sides[:number]


def base_options(cache, *others):
    """The server's options that make engines comparable: the same cache, flush mode 2, no binlog, log enough for InnoDB."""
    return [
        f"--innodb-buffer-pool-size={cache}", f"--teak-cache-size={cache}",
        "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2",
        "--innodb-log-file-size=2G", "--skip-log-bin", "--skip-name-resolve", *others,
    ]


def database(engine):
    """Each engine's tables live in a database of their own."""
    return "bench_" + engine.lower().replace("-", "_")


def machine():
    """What the figures depend on besides the engines."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine())
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"cpu": model, "cores": os.cpu_count(), "load_average": os.getloadavg()[0], "server": version, "kernel": platform.release()}


def parse_limited(parser, quick, **lists):
    """The command line of a benchmark with limited memory. --quick sets what is in `quick`; of each option in `lists` the names must be known."""
    parser.add_argument("--server-option", action="append", default=[], help="a further option of mariadbd; repeatable")
    parser.add_argument("--keep", action="store_true", help="keep the last data directory")
    if parser.parse_args().quick:
        parser.set_defaults(**quick)
    arguments = parser.parse_args()
    for name, known in lists.items():
        if unknown := set(getattr(arguments, name).split(",")) - set(known):
            parser.error(f"not known: {', '.join(unknown)}; there are {', '.join(known)}")
    return arguments


UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def size_of(text):
    """Bytes of a size as the server takes it."""
    return int(text[:-1]) * UNITS[text[-1].upper()] if text[-1:].upper() in UNITS else int(text)


def plugin_options(engines, directory, teak, cache):
    """The server's options for engines that are plugins. Those that are not installed are taken out of `engines`, and named.

    The plugins are gathered in `directory`, as a server takes them from one only.
    """
    found = gather_plugins(directory, teak)
    options = []
    for engine, (plugin, package) in DEBIAN_PLUGINS.items():
        if engine in engines and plugin in found:
            options.append(f"--plugin-load-add={plugin}")
        elif engine in engines:
            print(f"{engine} is left out: {plugin} is not in {DEBIAN_PLUGIN_DIR} (package {package})", flush=True)
            engines.remove(engine)
    if "RocksDB" in engines:
        options += [
            f"--rocksdb-block-cache-size={cache}", "--rocksdb-flush-log-at-trx-commit=2",
            # Its default refuses keys on columns with a collation that is not binary.
            "--rocksdb-strict-collation-check=OFF",
            # Otherwise its memtables alone take more memory than some benchmarks allow a server.
            f"--rocksdb-db-write-buffer-size={size_of(cache) // 2}",
            "--rocksdb-default-cf-options=compression=kZSTD;bottommost_compression=kZSTD",
        ]
    return options


def gather_plugins(directory, teak):
    """Fills a directory with Teak's plugin and Debian's, since a server takes plugins from one; returns their names.

    Teak's is a copy: a build that ends during the benchmark must not change what is measured.
    """
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    shutil.copy2(os.path.join(teak, "ha_teak.so"), directory)
    for name, _ in DEBIAN_PLUGINS.values():
        if os.path.exists(os.path.join(DEBIAN_PLUGIN_DIR, name)):
            os.symlink(os.path.join(DEBIAN_PLUGIN_DIR, name), os.path.join(directory, name))
    return os.listdir(directory)


def sync(path):
    """Waits until a file, written by whatever process, is on disk."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # compacted away meanwhile
    try:
        os.fsync(file)
    finally:
        os.close(file)
