/*
  The border between the C++ half of ha_teak.so (shim/) and its Rust half (crates/plugin/src/).

  Who does what
    C++   keys and rows: memcomparable encoding by collation, row codec, index entries, the server's
          conditions and record buffers.
    Rust  transactions, locks, uniqueness, row operations over all trees of a table, scans, errors,
          panics, statistics. It sees keys and values as plain bytes.

  Conventions
    - Every function that returns teak_status leaves a text behind when it is not OK, NOT_FOUND or END:
      teak_last_error() on the same thread fetches it.
    - No function unwinds. A panic is logged with its backtrace, turns the engine read-only and comes back
      as TEAK_INTERNAL.
    - Byte strings that go in are only read during the call. Byte strings that come out point into memory
      of the handle they came from and stay valid until the next call on that handle (said at each).
    - Names (tables) are bytes of UTF-8 without a terminating zero, e.g. "db/table".
    - A session, and a cursor, is used by one thread at a time. teak_interrupt() may be called from any
      thread. Everything else may be called from any thread.
    - Booleans are uint8_t 0 or 1.

  Trees of a table
    Tree 0 holds the rows: key = primary key (memcomparable) or hidden row id (8 bytes, big-endian),
    value = packed row. Trees 1.. hold one index each:
      non-unique   key = index columns, then the primary key     value = whatever the shim needs to restore columns
      unique       key = index columns alone                     value = primary key length (2 bytes, little-endian),
                                                                         primary key, then what the shim needs
      unique, but a column is NULL: stored as a non-unique entry (columns, then primary key; same value format as a
                   unique entry), TEAK_ENTRY_UNIQUE not set. The shim sees to it that the two cannot collide
                   (the NULL marker does it).
    Keys must be self-delimiting part by part: "begins with the encoded parts" must mean "equal in these parts".
*/
#ifndef TEAK_FFI_H
#define TEAK_FFI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct teak_engine teak_engine;
typedef struct teak_table teak_table;
typedef struct teak_session teak_session;
typedef struct teak_cursor teak_cursor;

typedef struct teak_bytes {
    const uint8_t* data; /* may be NULL when len is 0 */
    size_t len;
} teak_bytes;

/* ---- status ------------------------------------------------------------------------------------- */

typedef enum teak_status {
    TEAK_OK = 0,
    TEAK_NOT_FOUND = 1,    /* exact read, seek: no such key (HA_ERR_KEY_NOT_FOUND) */
    TEAK_END = 2,          /* next, prev: no further key within the bounds (HA_ERR_END_OF_FILE) */
    TEAK_DUPLICATE = 3,    /* HA_ERR_FOUND_DUPP_KEY */
    TEAK_LOCK_TIMEOUT = 4, /* 1205; the statement failed, the transaction goes on */
    TEAK_DEADLOCK =
        5, /* 1213; the whole transaction must be rolled back (thd_mark_transaction_to_rollback(thd, true)) */
    TEAK_WOULD_BLOCK = 6, /* NOWAIT: locked by another transaction (HA_ERR_LOCK_WAIT_TIMEOUT) */
    TEAK_INTERRUPTED = 7, /* KILL (HA_ERR_ABORTED_BY_USER) */
    TEAK_CONFLICT = 8,    /* 1020 HA_ERR_RECORD_CHANGED; the whole transaction must be rolled back, as InnoDB does */
    TEAK_TOO_OLD = 9,     /* the snapshot had to give way (a code of Teak's own); it fails until the transaction ends */
    TEAK_READ_ONLY =
        10, /* the engine stopped writing after a failure (HA_ERR_TABLE_READONLY); also a write in a READ ONLY transaction */
    TEAK_DISK_FULL = 11,         /* HA_ERR_RECORD_FILE_FULL (DISK_FULL) */
    TEAK_CORRUPT = 12,           /* HA_ERR_CRASHED_ON_USAGE; the text names file and offset */
    TEAK_EXISTS = 13,            /* HA_ERR_TABLE_EXIST */
    TEAK_NO_TABLE = 14,          /* HA_ERR_NO_SUCH_TABLE; ENOENT for drop */
    TEAK_TOO_LARGE = 15,         /* key or value past the limits (HA_ERR_TO_BIG_ROW) */
    TEAK_IO = 16,                /* the operating system refused (HA_ERR_GENERIC / EIO) */
    TEAK_OUT_OF_MEMORY = 17,     /* HA_ERR_OUT_OF_MEM */
    TEAK_COUNTER_EXHAUSTED = 18, /* HA_ERR_AUTOINC_ERANGE */
    TEAK_NO_XID = 19,            /* no such prepared transaction, or the xid is taken (XAER_NOTA / XAER_DUPID) */
    TEAK_IN_USE = 20,            /* another process has the directory open */
    TEAK_UNKNOWN_VERSION = 21,   /* on-disk format of another build */
    TEAK_MISUSE = 22,            /* a call that makes no sense now (no transaction, bad argument): a bug of the shim */
    TEAK_INTERNAL = 23,          /* a panic was caught (HA_ERR_INTERNAL_ERROR) */
    TEAK_TABLE_CHANGED = 24,     /* altered after the snapshot (HA_ERR_TABLE_DEF_CHANGED) */
    TEAK_HISTORY_FULL = 25,      /* the write waited in vain for old snapshots to end (HA_ERR_LOCK_WAIT_TIMEOUT) */
    TEAK_UNDECIDED = 26,         /* a prepared transaction has written to the table (HA_ERR_LOCK_WAIT_TIMEOUT) */
    TEAK_LOCK_MEMORY = 27,       /* 1206 HA_ERR_LOCK_TABLE_FULL; the whole transaction must be rolled back */
    TEAK_NO_DESCRIPTOR = 28      /* too many open files (EMFILE); it may be tried again */
} teak_status;

/* Copies the text of this thread's last error, zero-terminated and cut to `capacity`; returns its whole length. */
size_t teak_last_error(char* buffer, size_t capacity);

/* A text or list that Rust owns until it is given back. */
typedef struct teak_buffer {
    const char* data;
    size_t len;
    void* owner;
} teak_buffer;
void teak_buffer_free(teak_buffer* buffer); /* idempotent: empties *buffer */

/* ---- engine ------------------------------------------------------------------------------------- */

enum { TEAK_LOG_NOTE = 0, TEAK_LOG_WARNING = 1, TEAK_LOG_ERROR = 2 };

typedef struct teak_callbacks {
    /* To the error log; called from any thread, also before teak_engine_open returns. Required. */
    void (*log)(int level, const char* text, size_t len);
    /* thd_kill_level(thd) != THD_IS_NOT_KILLED. Called from the session's own thread while it waits. May be NULL. */
    int (*is_killed)(void* thd);
    /* thd_rpl_deadlock_check(waiter, holder), on the waiter's thread before it sleeps: whether the server is to roll
       `holder` back. `holder` is alive during the call; NULL asks, before the first sleep, whether the server wants to
       know for whom this session waits: it is told then, and only then. Must not call into Teak. May be NULL. */
    int (*report_wait)(void* waiter_thd, void* holder_thd);
    /* After reports that were answered with yes, on the same thread before it sleeps: sees to it that the server does
       what it said. No latch is held, so it may end in teak_interrupt. May be NULL. */
    void (*reports_made)(void);
    /* thd_wait_begin(thd, THD_WAIT_ROW_LOCK) and thd_wait_end(thd), around each sleep. May be NULL. */
    void (*wait_begin)(void* thd);
    void (*wait_end)(void* thd);
} teak_callbacks;

/* What happens when old snapshots hold as much as they may: the oldest gives way, or writers wait. */
enum { TEAK_HISTORY_FAIL_OLDEST = 0, TEAK_HISTORY_WAIT = 1 };

typedef struct teak_options {
    teak_bytes directory;      /* e.g. <datadir>/#teak */
    teak_bytes temp_directory; /* empty: <directory>/tmp */
    uint64_t cache_bytes;
    uint64_t checkpoint_log_bytes;
    uint64_t log_segment_bytes;
    uint64_t spill_max_bytes;
    uint64_t history_max_bytes;
    uint64_t snapshot_warn_seconds; /* 0: never */
    uint64_t lock_max_bytes;        /* 0: a quarter of the cache */
    uint64_t disk_reserve_bytes;    /* kept on the disk so that a full one can be emptied; 0: none */
    uint32_t commit_flush;          /* 0, 1, 2 as innodb_flush_log_at_trx_commit */
    uint32_t recovery_threads;      /* 0: one per processor */
    uint32_t history_full;          /* TEAK_HISTORY_... */
    uint32_t force_recovery;        /* 0 to 3, see ForceRecovery in the core */
} teak_options;

void teak_options_default(teak_options* options);
teak_status teak_engine_open(const teak_options* options, const teak_callbacks* callbacks, teak_engine** out);
/* Final checkpoint; all sessions, tables and cursors must have been freed. The handle is gone whatever the status. */
teak_status teak_engine_close(teak_engine* engine);

void teak_engine_set_cache_bytes(teak_engine* engine, uint64_t bytes);
void teak_engine_set_commit_flush(teak_engine* engine, uint32_t mode);
void teak_engine_set_checkpoint_log_bytes(teak_engine* engine, uint64_t bytes);
void teak_engine_set_spill_max_bytes(teak_engine* engine, uint64_t bytes);
void teak_engine_set_history_max_bytes(teak_engine* engine, uint64_t bytes);
void teak_engine_set_lock_max_bytes(teak_engine* engine, uint64_t bytes);
void teak_engine_set_history_full(teak_engine* engine, uint32_t what);
void teak_engine_set_snapshot_warn_seconds(teak_engine* engine, uint64_t seconds);

teak_status teak_engine_checkpoint(teak_engine* engine);
/* Everything committed so far is durable when it returns (flush_logs, commit_checkpoint_request). */
teak_status teak_engine_flush_logs(teak_engine* engine);

typedef struct teak_status_variable {
    const char* name; /* static, zero-terminated, lower case without the prefix "teak_", e.g. "cache_bytes_used" */
    uint64_t value;
} teak_status_variable;
/* SHOW STATUS: fills up to `capacity` variables, returns how many there are (at most 64; the same names in the same
   order each time). */
size_t teak_engine_status_variables(teak_engine* engine, teak_status_variable* out, size_t capacity);
/* An open snapshot, and what is kept for it: the versions of which it is the oldest that sees them. */
typedef struct teak_snapshot {
    uint64_t session;
    uint64_t timestamp; /* it sees the commits up to this */
    uint64_t age_seconds;
    uint64_t versions;
    uint64_t memory_bytes;
    uint64_t spilled_bytes;
    uint64_t too_old; /* 0 or 1: it had to give way */
} teak_snapshot;
/* Fills up to `capacity` of the open snapshots, oldest first, and returns how many there are. */
size_t teak_engine_snapshots(teak_engine* engine, teak_snapshot* out, size_t capacity);

/* SHOW ENGINE TEAK STATUS. Free with teak_buffer_free. */
teak_status teak_engine_status_text(teak_engine* engine, teak_buffer* out);

/* ---- tables ------------------------------------------------------------------------------------- */

enum { TEAK_COMPRESSION_NONE = 0, TEAK_COMPRESSION_LZ4 = 1, TEAK_COMPRESSION_ZSTD = 2 };

typedef struct teak_tree_spec {
    uint32_t block_bytes; /* 4 KiB to 1 MiB; 0: default (32 KiB) */
    uint16_t compression;
    uint16_t level; /* of Zstandard; 0: the default */
} teak_tree_spec;

/* All DDL is atomic and durable when it returns. `meta` is opaque to Teak. trees[0] is the row tree. */
teak_status teak_table_create(teak_engine* engine, teak_bytes name, const teak_tree_spec* trees, size_t n_trees,
                              teak_bytes meta);
/* Before anything that changes what a table is made of, or reads its rows to make it anew: waits until no prepared
   transaction has written to it, as long as the session waits for locks, then TEAK_UNDECIDED. The session's KILL ends
   it. The metadata lock is to keep writers out. */
teak_status teak_table_wait_for_prepared(teak_session* session, teak_bytes name);
/* TEAK_UNDECIDED if a prepared transaction has written to it; so TRUNCATE, and the build of an index. */
teak_status teak_table_drop(teak_engine* engine, teak_bytes name);
/* The same for a temporary table, whatever transactions have written to it. */
teak_status teak_table_discard(teak_engine* engine, teak_bytes name);
teak_status teak_table_rename(teak_engine* engine, teak_bytes from, teak_bytes to);
/* Empties the table and resets its AUTO_INCREMENT. Open handles of the table must be closed and opened again. */
teak_status teak_table_truncate(teak_engine* engine, teak_bytes name);
/* Gives tables other trees, and other metadata, all in one step. Open handles of them must be closed and opened again.
   */
#define TEAK_NEW_TREE UINT32_MAX
typedef struct teak_alteration {
    teak_bytes name;
    const uint32_t*
        layout; /* for each tree its place so far, or TEAK_NEW_TREE: new and empty, of `spec`; the first stays */
    size_t n_layout;
    teak_bytes meta;
    teak_tree_spec spec;
    uint64_t
        repacks; /* not 0: blocks are written as `spec` says (but for its size) from now on, those that are there are
                         rewritten in the background */
} teak_alteration;
teak_status teak_tables_alter(teak_engine* engine, const teak_alteration* alterations, size_t n_alterations);
/* Calls `visit` with the metadata of table `name` or, if there is none, of each whose name begins with `parts`. */
teak_status teak_tables_meta(teak_engine* engine, teak_bytes name, teak_bytes parts,
                             void (*visit)(void* context, teak_bytes meta), void* context);
/* Drops every table whose name begins with `prefix` ("db/"); TEAK_OK also when there is none. */
teak_status teak_tables_drop_prefix(teak_engine* engine, teak_bytes prefix);
uint8_t teak_table_exists(teak_engine* engine, teak_bytes name);

teak_status teak_table_open(teak_engine* engine, teak_bytes name, teak_table** out);
/* A temporary table: the snapshot of its session may be older than it. To be called after each open. */
void teak_table_show_to_older_snapshots(teak_table* table);
void teak_table_close(teak_table* table);            /* after its cursors were freed; NULL is ignored */
teak_bytes teak_table_meta(const teak_table* table); /* valid until close */
/* What was found out about the table's rows, at most 2000 bytes: outlives a restart from the next checkpoint on, and
   goes with the rows. */
teak_status teak_table_keep_digest(const teak_table* table, teak_bytes digest);
/* Calls `visit` with what was told last, if anything is known. */
teak_status teak_table_get_digest(const teak_table* table, void (*visit)(void* context, teak_bytes digest),
                                  void* context);
size_t teak_table_trees(const teak_table* table);

typedef struct teak_tree_statistics {
    uint64_t entries; /* committed, approximate */
    uint64_t leaves;
    uint64_t disk_bytes;
} teak_tree_statistics;
typedef struct teak_table_statistics {
    uint64_t rows;
    uint64_t data_bytes;   /* tree 0 */
    uint64_t index_bytes;  /* the other trees */
    uint64_t next_counter; /* next AUTO_INCREMENT value */
    uint64_t raw_bytes;    /* tree 0 before compression, as of the last checkpoint */
} teak_table_statistics;
void teak_table_get_statistics(const teak_table* table, teak_table_statistics* out);
/* What is free in the table's file and still takes space on the disk; asks the file system. */
uint64_t teak_table_free_bytes(const teak_table* table);
teak_status teak_tree_get_statistics(const teak_table* table, uint32_t tree, teak_tree_statistics* out);
/* Of one tree. What it takes, of its leaves only: large values and inner pages are not in it. */
typedef struct teak_tree_report {
    teak_bytes table; /* "db/table", as created */
    uint64_t tree;    /* its number in the table */
    uint64_t entries; /* committed, approximate */
    uint64_t leaves;
    uint64_t raw_bytes;  /* before compression, as of the last checkpoint */
    uint64_t disk_bytes; /* the same after it */
    uint64_t dictionary_bytes;
    uint32_t compression; /* as in teak_tree_spec */
    uint32_t level;
} teak_tree_report;
/* Calls `visit` for every tree of every table, until it returns something but 0. Tables that are damaged are left out.
   */
teak_status teak_trees_report(teak_engine* engine, int (*visit)(void* context, const teak_tree_report* tree),
                              void* context);
/* Bounds of a range speak of prefixes: a key "is at" the bound when it begins with its bytes. */
typedef enum teak_bound_kind {
    TEAK_BOUND_NONE = 0,
    TEAK_BOUND_INCLUDE = 1, /* keys that begin with the bytes are inside */
    TEAK_BOUND_EXCLUDE = 2  /* ... are outside */
} teak_bound_kind;
typedef struct teak_bound {
    teak_bytes key;
    uint32_t kind;
} teak_bound;
/* records_in_range: no leaf is read from disk. */
teak_status teak_estimate_range(const teak_table* table, uint32_t tree, const teak_bound* from, const teak_bound* to,
                                uint64_t* rows);

/* Keys of up to `max_leaves` leaves spread over the tree, for cardinalities. */
typedef struct teak_sample {
    const teak_bytes* keys; /* all sampled keys, leaf after leaf, ascending within a leaf */
    size_t n_keys;
    const size_t* leaf_ends; /* leaf i has keys [leaf_ends[i-1], leaf_ends[i]) */
    size_t n_leaves;
    void* owner;
} teak_sample;
teak_status teak_tree_sample(const teak_table* table, uint32_t tree, size_t max_leaves, teak_sample* out);
void teak_sample_free(teak_sample* sample);

/* AUTO_INCREMENT: one atomic counter per table, no lock. */
/* Reserves n values offset + k*increment at or after the counter; *first is the first. increment 0 counts as 1. The new
   counter is persisted with the session's next log write. */
teak_status teak_counter_reserve(teak_session* session, teak_table* table, uint64_t offset, uint64_t increment,
                                 uint64_t n, uint64_t* first);
/* An explicit value was stored: the next value given out is greater than `value`. */
void teak_counter_raise(teak_session* session, teak_table* table, uint64_t value);
uint64_t teak_counter_get(const teak_table* table); /* next value, at least 1 */
/* CREATE/ALTER ... AUTO_INCREMENT = value, reset_auto_increment: also downwards. Within a transaction; persisted as
   above. */
teak_status teak_counter_set(teak_session* session, teak_table* table, uint64_t value);
/* Hidden primary key, never reused. Store big-endian. */
uint64_t teak_next_row_id(teak_table* table);

/* ---- building indexes --------------------------------------------------------------------------- */

/* Fills trees that are empty and that nobody else uses, from entries in any order and without the log. After a crash
   before teak_build_finish returns they are empty. `sort_bytes`: memory for sorting; what is more goes to temporary
   files. */
typedef struct teak_build teak_build;
teak_status teak_build_new(teak_table* table, const uint32_t* trees, size_t n_trees, uint64_t sort_bytes,
                           teak_build** out);
/* An entry for the `part`-th of the trees. */
teak_status teak_build_add(teak_build* build, uint32_t part, teak_bytes key, teak_bytes value);

/* The entries of all rows, by several threads. Where one of them puts its entries: */
typedef struct teak_feed teak_feed;
teak_status teak_feed_add(teak_feed* feed, uint32_t part, teak_bytes key, teak_bytes value);
/* What is called for that; `context` is that of teak_build_feed, used by all threads at once. */
typedef struct teak_row_reader {
    /* On each thread, once: what the calls below get. NULL: memory is out. */
    void* (*begin)(void* context);
    /* Takes one row apart. A teak_status: that of teak_feed_add, TEAK_CORRUPT or TEAK_OUT_OF_MEMORY. */
    uint32_t (*row)(void* maker, teak_feed* feed, teak_bytes pk, teak_bytes row);
    void (*end)(void* maker);
    /* Now and then on the calling thread, with the rows done so far. Not 0: stop (TEAK_INTERRUPTED). */
    int (*watch)(void* context, uint64_t rows);
} teak_row_reader;
/* The rows are those that the session's transaction sees as the latest, its own included. */
teak_status teak_build_feed(teak_session* session, teak_build* build, const teak_row_reader* reader, void* context);
/* Sorts, loads and makes a checkpoint; `watch` is as in teak_row_reader, with entries of all trees. TEAK_DUPLICATE if
   two entries of a unique index have one key. Not to be called twice; the build is freed all the same. */
teak_status teak_build_finish(teak_build* build, int (*watch)(void* context, uint64_t entries), void* context);
uint64_t teak_build_entries(const teak_build* build);
/* After TEAK_DUPLICATE: the primary key of one of the rows, valid until the build is freed, and which part it was. */
teak_bytes teak_build_duplicate(const teak_build* build, uint32_t* part);
void teak_build_free(teak_build* build); /* NULL is ignored */

/* ---- checks (CHECK TABLE) ------------------------------------------------------------------------ */

enum {
    TEAK_CHECK_BLOCKS = 0,   /* each block on disk */
    TEAK_CHECK_STRUCTURE = 1 /* and how they fit together; entries are counted */
};
typedef struct teak_table_check_result {
    uint64_t findings; /* `note` is called for the first hundred */
    uint64_t trees;    /* that there were: so many of `entries` are filled */
} teak_table_check_result;
/* Looks at up to `n_entries` trees of the table from tree `first` on, while others read and write. entries[i]: what the
   session's snapshot sees in tree first + i. `note` gets the text of a finding, `watch` the leaves done so far; not 0:
   stop (TEAK_INTERRUPTED). Both are called on the calling thread and must not call into Teak. */
teak_status teak_table_check(teak_session* session, const teak_table* table, uint32_t first, uint32_t depth,
                             void (*note)(void* context, teak_bytes text), int (*watch)(void* context, uint64_t leaves),
                             void* context, uint64_t* entries, size_t n_entries, teak_table_check_result* out);

/* Whether trees have exactly the entries that the table's rows make, as the session's snapshot sees both: the entries
   of all rows are given by teak_check_feed or teak_check_add, then compared, once. `sort_bytes` 0: as sums, which tell
   whether there is a difference; else one by one. */
typedef struct teak_check teak_check;
teak_status teak_check_new(const teak_table* table, const uint32_t* trees, size_t n_trees, uint64_t sort_bytes,
                           teak_check** out);
teak_status teak_check_add(teak_check* check, uint32_t part, teak_bytes key, teak_bytes value);
/* As teak_build_feed. */
teak_status teak_check_feed(teak_session* session, teak_check* check, const teak_row_reader* reader, void* context);
typedef struct teak_index_count {
    uint64_t wanted; /* entries that the rows make */
    uint64_t found;
    uint64_t equal; /* 0 or 1: they are the same */
} teak_index_count;
/* Fills one for each part. */
teak_status teak_check_sums(teak_session* session, teak_check* check, int (*watch)(void* context, uint64_t entries),
                            void* context, teak_index_count* out);
enum {
    TEAK_ENTRY_MISSING = 0,    /* the row of `key` and `wanted` has no entry */
    TEAK_ENTRY_UNEXPECTED = 1, /* no row makes the entry of `key` and `found` */
    TEAK_ENTRY_OTHER = 2       /* a row makes `wanted`, there is `found` */
};
typedef struct teak_difference {
    uint32_t part;
    uint32_t kind;
    teak_bytes key;
    teak_bytes wanted;
    teak_bytes found;
} teak_difference;
/* Calls `each` for what differs, until it returns 0, which ends the part. */
teak_status teak_check_differences(teak_session* session, teak_check* check,
                                   int (*each)(void* context, const teak_difference* difference),
                                   int (*watch)(void* context, uint64_t entries), void* context);
void teak_check_free(teak_check* check); /* NULL is ignored */

/* ---- sessions and transactions ------------------------------------------------------------------ */

typedef enum teak_isolation {
    TEAK_READ_COMMITTED = 1, /* READ UNCOMMITTED as well */
    TEAK_REPEATABLE_READ = 2,
    TEAK_SERIALIZABLE = 3
} teak_isolation;

/* `thd` must stay valid until teak_session_free; `id` (thread id) labels the session in status texts. */
teak_status teak_session_new(teak_engine* engine, void* thd, uint64_t id, teak_session** out);
/* Rolls an open transaction back; a prepared one is left to teak_commit_by_xid / teak_rollback_by_xid. */
void teak_session_free(teak_session* session);
/* Memory for sorting rows with TEAK_ROW_SORT. */
void teak_session_set_sort_bytes(teak_session* session, uint64_t bytes);
void teak_session_set_lock_wait_timeout(teak_session* session, uint64_t milliseconds); /* default 50,000 */
/* teak_snapshot_isolation: 1 (default) = writing or locking what was committed after the snapshot is TEAK_CONFLICT.
   Counts from the next teak_txn_begin or teak_txn_set_isolation. */
void teak_session_set_snapshot_isolation(teak_session* session, uint8_t strict);

/* Does nothing if a transaction is open (but applies the isolation, as teak_txn_set_isolation). `read_only` refuses all
   writes, also to temporary tables, which READ ONLY transactions of the server may write: leave such checks to the
   server and pass 0 then. */
teak_status teak_txn_begin(teak_session* session, uint32_t isolation, uint8_t read_only);
uint8_t teak_txn_is_active(const teak_session* session);
uint8_t teak_txn_has_writes(const teak_session* session);
uint8_t teak_txn_is_prepared(const teak_session* session);
uint64_t teak_txn_id(const teak_session* session); /* 0: none */
uint8_t teak_txn_has_locks(const teak_session* session);
/* Per statement; a snapshot already taken stays. */
teak_status teak_txn_set_isolation(teak_session* session, uint32_t isolation);
/* START TRANSACTION WITH CONSISTENT SNAPSHOT; otherwise the first consistent read takes it. */
teak_status teak_open_snapshot(teak_session* session);
/* What the open transaction writes to `table`, which no other session has seen, is how the table begins: snapshots from
   before the commit get TEAK_TABLE_CHANGED, not an empty table. */
teak_status teak_txn_founds(teak_session* session, const teak_table* table);

/* A statement begins (once each statement, after teak_txn_begin): the point a statement rollback returns to. */
teak_status teak_statement_begin(teak_session* session);
/* No more rows with TEAK_ROW_APPEND follow. May wait for range locks; after an error the statement is to be rolled
   back. TEAK_DUPLICATE, only after rows with TEAK_ROW_SORT, fills *duplicate. */
typedef struct teak_duplicate teak_duplicate;
teak_status teak_append_end(teak_session* session, teak_duplicate* duplicate);
/* It ended inside a transaction that goes on. READ COMMITTED drops the snapshot. */
teak_status teak_statement_commit(teak_session* session);
/* Undoes its writes, keeps its locks. */
teak_status teak_statement_rollback(teak_session* session);

/* savepoint_offset = sizeof(teak_savepoint). Locks taken since are kept. */
typedef struct teak_savepoint {
    uint64_t token;
} teak_savepoint;
teak_status teak_savepoint_set(teak_session* session, teak_savepoint* out);
teak_status teak_savepoint_rollback(teak_session* session, const teak_savepoint* savepoint);

/* These end the transaction (is_active becomes 0) except prepare and commit_ordered; without a transaction they are OK.
   */
teak_status teak_prepare(teak_session* session,
                         teak_bytes xid);               /* durable (as commit_flush says), synced once a group */
teak_status teak_commit_ordered(teak_session* session); /* after prepare: publishes, no I/O; then teak_commit ends it */
teak_status
teak_commit(teak_session* session); /* on an error it was rolled back; a prepared one stays prepared (recover) */
teak_status teak_rollback(teak_session* session);

/* recover(): copies up to `capacity` xids, from the `start`th on, ordered; returns how many were copied. */
typedef struct teak_xid {
    uint8_t data[160]; /* as given to teak_prepare; longer ones are refused there */
    uint32_t len;
} teak_xid;
size_t teak_recover(teak_engine* engine, teak_xid* out, size_t capacity, size_t start);
teak_status teak_commit_by_xid(teak_engine* engine, teak_bytes xid);
teak_status teak_rollback_by_xid(teak_engine* engine, teak_bytes xid);

/* kill_query, from any thread: wakes the session if it waits for a lock; is_killed() then decides. */
void teak_interrupt(const teak_session* session);

/* ---- reading ------------------------------------------------------------------------------------ */

/* How a read sees and locks: one of the first group, or'ed with any of the second. */
enum {
    TEAK_READ_SNAPSHOT = 0,  /* consistent, takes the snapshot if there is none; no locks, no waits */
    TEAK_READ_SHARED = 1,    /* newest committed, locked shared */
    TEAK_READ_EXCLUSIVE = 2, /* newest committed, locked exclusive */
    TEAK_READ_LATEST = 3,    /* newest committed, no locks */

    TEAK_READ_NOWAIT = 0x10,
    TEAK_READ_SKIP_LOCKED = 0x20, /* locked rows are passed over; at REPEATABLE READ no range is locked either */
    TEAK_READ_NO_RANGE = 0x40     /* never lock ranges (a table nobody else can write to) */
};

/* Prefix semantics as for bounds: "at" the key = begins with its bytes. */
typedef enum teak_seek {
    TEAK_SEEK_FIRST = 0,       /* key ignored; then next */
    TEAK_SEEK_LAST = 1,        /* key ignored; then prev */
    TEAK_SEEK_AT_OR_AFTER = 2, /* HA_READ_KEY_OR_NEXT; HA_READ_KEY_EXACT with end = INCLUDE the same key; then next */
    TEAK_SEEK_AFTER = 3,       /* HA_READ_AFTER_KEY: behind all keys that begin with it; then next */
    TEAK_SEEK_AT_OR_BEFORE =
        4, /* HA_READ_PREFIX_LAST_OR_PREV, HA_READ_KEY_OR_PREV; HA_READ_PREFIX_LAST with end = INCLUDE the same key;
                                   last key that begins with it or is smaller; then prev */
    TEAK_SEEK_BEFORE = 5 /* HA_READ_BEFORE_KEY; then prev */
} teak_seek;

typedef struct teak_entry_view {
    teak_bytes key;
    teak_bytes value;
} teak_entry_view; /* valid until the next call on the cursor it came from; also across calls on other cursors and row operations */

/* `unique`: the tree is of a unique index (its values begin with length and primary key); 0 for tree 0. */
teak_status teak_cursor_new(teak_table* table, uint32_t tree, uint8_t unique, teak_cursor** out);
void teak_cursor_free(teak_cursor* cursor);
/* Lets go of the pinned block and the position (index_end, reset, end of statement). */
void teak_cursor_reset(teak_cursor* cursor);

/*
  Placing a cursor and moving it. `end` (may be NULL) bounds the scan in its direction: upper bound for scans that go on with
  next, lower bound for prev. Past it the answer is NOT_FOUND (seek) or END (next, prev), and nothing there is locked. The bound and
  the mode hold for the following next/prev. prev after an upward seek, or next after a downward one, is allowed; the end bound does
  not apply against its direction.

  Locking modes on tree 0: the row is locked, then read again under the lock; rows that went away meanwhile are passed over. A row that
  another transaction has inserted and not committed is waited for. At REPEATABLE READ with strict snapshot isolation a row that was
  changed after an existing snapshot is TEAK_CONFLICT.
  Locking modes on an index tree: the entry comes back *unlocked* (evaluate the pushed condition on it), then teak_fetch_row locks. It may be
  the entry of a transaction that has not committed: without teak_fetch_row it must not reach the user.
  Both lock the key range they pass (REPEATABLE READ and SERIALIZABLE) against inserts of others.
*/
teak_status teak_cursor_seek(teak_session* session, teak_cursor* cursor, uint32_t seek, teak_bytes key,
                             const teak_bound* end, uint32_t read, teak_entry_view* out);
teak_status teak_cursor_next(teak_session* session, teak_cursor* cursor, teak_entry_view* out);
teak_status teak_cursor_prev(teak_session* session, teak_cursor* cursor, teak_entry_view* out);
/* The entry with exactly this key (rnd_pos, primary key or unique key given whole): only that row, or that one missing
   key, is locked. The cursor can be moved from there by next/prev. */
teak_status teak_cursor_get(teak_session* session, teak_cursor* cursor, teak_bytes key, uint32_t read,
                            teak_entry_view* out);
/*
  The row of the index entry that `index` stands on. `row` is a cursor on tree 0, `pk` the primary key the shim took from the entry (may point
  into `index`'s memory). Modes as for the seek that found the entry.
  SNAPSHOT: reads the row as of the snapshot. SHARED/EXCLUSIVE: locks the row, checks that the index entry is still there, reads the row.
  TEAK_NOT_FOUND: the entry is stale or (SKIP LOCKED) its row is locked: go on with next/prev. The index cursor's memory is invalid after a locking
  fetch: take key and value from `entry` (filled if not NULL) for a covering read.
*/
teak_status teak_fetch_row(teak_session* session, teak_cursor* index, teak_cursor* row, teak_bytes pk, uint32_t read,
                           teak_entry_view* out, teak_entry_view* entry);
/* The newest committed version (or the transaction's own) of the entry that a locking cursor stands on, whose version
   may be that of a transaction that has not committed. TEAK_NOT_FOUND: there is none. Valid until the session's next
   call. */
teak_status teak_cursor_committed(teak_session* session, teak_cursor* index, teak_entry_view* out);
/* handler::unlock_row: the row last returned by this tree-0 cursor did not match. Its lock is released at READ
   COMMITTED, if this read took it. */
void teak_cursor_unlock_row(teak_session* session, teak_cursor* row);

/* ---- writing ------------------------------------------------------------------------------------ */

enum {
    TEAK_ENTRY_UNIQUE = 1 /* check uniqueness of the key */
};
typedef struct teak_entry {
    uint32_t tree; /* 1.. */
    uint32_t flags;
    teak_bytes key; /* data == NULL: no entry (index disabled) */
    teak_bytes value;
} teak_entry;

enum {
    TEAK_ROW_LOCK_DUPLICATE =
        1,                  /* a duplicate is locked exclusive instead of shared (ON DUPLICATE KEY UPDATE, REPLACE) */
    TEAK_ROW_FRESH_KEY = 2, /* the primary key comes from teak_next_row_id: not looked up */
    TEAK_ROW_NO_LOCKS =
        4, /* nobody else can see the table (copying ALTER, temporary table): no locks; uniqueness is still checked */
    TEAK_ROW_APPEND =
        8, /* one of many rows that a statement inserts: may go to the file past the log; teak_append_end follows */
    TEAK_ROW_SORT =
        16, /* with TEAK_ROW_APPEND: a duplicate primary key ends the statement, so teak_append_end may be the one that tells */
    TEAK_ROW_APART =
        32 /* in a transaction of its own, committed when the call returns: stays if the session's is rolled back */
};

struct teak_duplicate {
    uint32_t tree; /* which tree found it: 0 = primary key, else the entry's tree */
    teak_bytes pk; /* primary key of the existing row; valid until the session's next row operation */
};

/*
  Each is atomic over all trees: on any error the row and all entries are as before (locks may be kept). Waits for locks as needed.
  TEAK_DUPLICATE fills *duplicate; the primary key is checked first, then entries in the given order.
  Strict snapshot isolation: writing a row committed after an existing snapshot is TEAK_CONFLICT.
*/
teak_status teak_insert(teak_session* session, teak_table* table, teak_bytes pk, teak_bytes row,
                        const teak_entry* entries, size_t n_entries, uint32_t flags, teak_duplicate* duplicate);
/*
  old_entries[i] and new_entries[i] belong to the same tree; indexes whose entry certainly did not change may be left out. Pairs with equal key and
  value cost nothing, with equal key only the value is replaced.
  Halloween: a scan sees the session's own writes, so a row moved ahead of the scan in the scanned tree is met again. The server prevents that
  (used_key_is_modified makes UPDATE collect positions first); a shim that updates behind the server's back must do likewise.
*/
teak_status teak_update(teak_session* session, teak_table* table, teak_bytes old_pk, teak_bytes new_pk, teak_bytes row,
                        const teak_entry* old_entries, const teak_entry* new_entries, size_t n_entries, uint32_t flags,
                        teak_duplicate* duplicate);
/* TEAK_NOT_FOUND: there is no such row (any more). */
teak_status teak_delete(teak_session* session, teak_table* table, teak_bytes pk, const teak_entry* entries,
                        size_t n_entries, uint32_t flags);

#ifdef __cplusplus
}

/* Sizes that src/ffi/border.rs asserts as well: a change on one side only does not build. */
static_assert(sizeof(teak_bytes) == 16 && sizeof(teak_bound) == 24 && sizeof(teak_entry_view) == 32, "layout");
static_assert(sizeof(teak_alteration) == 64, "layout");
static_assert(sizeof(teak_entry) == 40 && sizeof(teak_duplicate) == 24 && sizeof(teak_buffer) == 24, "layout");
static_assert(sizeof(teak_options) == 112 && sizeof(teak_callbacks) == 48 && sizeof(teak_xid) == 164, "layout");
static_assert(sizeof(teak_table_statistics) == 40 && sizeof(teak_tree_statistics) == 24, "layout");
static_assert(sizeof(teak_tree_report) == 72, "layout");
static_assert(sizeof(teak_difference) == 56 && sizeof(teak_index_count) == 24, "layout");
static_assert(sizeof(teak_table_check_result) == 16, "layout");
static_assert(sizeof(teak_sample) == 40 && sizeof(teak_status_variable) == 16, "layout");
static_assert(sizeof(teak_snapshot) == 56, "layout");
static_assert(sizeof(teak_tree_spec) == 8 && sizeof(teak_savepoint) == 8, "layout");
#endif
#endif
