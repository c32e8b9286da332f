"""The sides of memory_bound.py: engines, each with the same cache and (-whole) with the group's memory in its own; the server's options for them."""

from comparison import plugin_options, size_of
from external import server_options

ENGINES = ("InnoDB", "RocksDB", "Teak")
WHOLE = "-whole"
SIDES = [*ENGINES, *(engine + WHOLE for engine in ENGINES)]
# What the cache of a -whole side gets: a share of what the group has beyond a server without any. MariaDB's manual has
# 50 to 75 % of it for InnoDB's pool; Teak's bound (cache, leaves, threads, 5 %) allows as much.
SERVER_BYTES, WHOLE_SHARE = 96 << 20, 0.75
# Who gives RocksDB's block cache the memory, and not the kernel's, reads past that.
DIRECT = ["--rocksdb-use-direct-reads=ON", "--rocksdb-use-direct-io-for-flush-and-compaction=ON"]
# MyRocks's defaults take a gigabyte to build an index, and refuse a log whose last record a kill has cut off.
SMALL = ["--rocksdb-merge-buf-size=4M", "--rocksdb-merge-combine-read-size=8M", "--rocksdb-wal-recovery-mode=2"]


def engine_of(side):
    """The engine of a side."""
    return side.removesuffix(WHOLE)


def options_of(side, cache, memory, plugins, plugin_dir):
    """The server's options of a side, and whether its engine is installed. `plugins` is a directory where plugins are gathered."""
    engine, is_whole, cache = engine_of(side), side.endswith(WHOLE), size_of(cache)
    if is_whole:
        cache = int((size_of(memory) - SERVER_BYTES) * WHOLE_SHARE)
    installed, more = [engine], []
    # MyRocks's memtables get half as much as its block cache: both together are the cache.
    block_cache = cache * 2 // 3
    from_plugins = plugin_options(installed, plugins, plugin_dir, str(block_cache))
    if engine == "RocksDB":
        # Each family of columns takes an eighth of the buffer at once: with the default of 64 MiB all of a small budget
        # of memtables, which are written out at each insert then. Without filters each insert looks into all files.
        families = (f"compression=kZSTD;bottommost_compression=kZSTD;write_buffer_size={block_cache // 4};"
                    "block_based_table_factory={filter_policy=bloomfilter:10:false;cache_index_and_filter_blocks=1}")
        more = [f"--rocksdb-default-cf-options={families}", *SMALL, *(DIRECT if is_whole else [])]
    return server_options(engine, str(cache), ["--character-set-server=utf8mb4", *from_plugins, *more]), bool(installed)
