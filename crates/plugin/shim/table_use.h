/*
  An open table as a session uses it: which locks it takes there, and what the statement under way is like.

  The server says when each of them begins and ends. What a handler is told of that is here, and nowhere else; parts
  that read or write rows look here how they are to do it.
*/
#ifndef TEAK_TABLE_USE_H
#define TEAK_TABLE_USE_H

#include "open_table.h"
#include "session.h"

namespace teak {

enum class RowLock : uint8_t { None, Shared, Exclusive };

class TableUse {
  public:
    explicit TableUse(OpenTable& open) : open_(open) {}
    TableUse(const TableUse&) = delete;
    TableUse& operator=(const TableUse&) = delete;

    /* Session, transaction, statement and table handle are there; to be called at the start of each statement. `locks`:
       it locks rows. Returns an HA_ERR_ code, as all of these. */
    int prepare(THD* thd, bool locks);
    /* The statement changes the table's definition: it waits for prepared transactions that have written to it. */
    int prepare_change(THD* thd);
    /* `prepare` for calls that can come without external_lock (temporary tables under LOCK TABLES). */
    int ready() { return is_begun() ? 0 : prepare(open_.thd(), true); }
    bool is_begun() const { return held.session && held.session->statement_open && held.by_server; }
    teak_session* session() const { return held.session->handle; }
    /* One of TEAK_READ_. */
    uint32_t read_mode() const {
        if (statement.reads_snapshot) return TEAK_READ_SNAPSHOT;
        if (open_.temporary || statement.copies || statement.reads_latest || open_.is_sequence())
            return TEAK_READ_LATEST;
        return held.rows == RowLock::None ? TEAK_READ_SNAPSHOT : locking_mode();
    }
    /* Whether rows have no entry in this index for now. */
    bool is_idle(uint index) const { return (open_.disabled_indexes | statement.deferred_indexes) & 1ULL << index; }

    /* As long as the server has the table locked: from store_lock and external_lock(F_*LCK) to F_UNLCK. Under LOCK
       TABLES, and within functions and triggers, those are several statements, each of which begins with start_stmt. */
    struct Held {
        Session* session = nullptr;
        RowLock rows = RowLock::None;        /* for the present statement */
        RowLock rows_of_all = RowLock::None; /* for any of them */
        bool skips_locked = false;
        ulonglong max_rows = 0; /* that inserts leave in it; 0: any number */
        bool may_miss = false;  /* rows that are looked for to apply changes of another server */
        bool writes = false;    /* by the server's lock, which is not that of a copy's source */
        bool by_server = false; /* external_lock was called, not only store_lock */
        bool exported = false;  /* its export goes with the lock */
    };
    Held held;

    /* As long as a statement: to reset(). */
    struct Statement {
        bool copies = false;             /* a copying ALTER, into this table */
        bool replaces = false;           /* REPLACE, ON DUPLICATE KEY UPDATE */
        bool ignores_duplicates = false; /* those, and IGNORE: the statement goes on after a duplicate */
        bool entries_only = false;       /* of an index the columns that it has are enough (HA_EXTRA_KEYREAD) */
        bool has_many_rows = false;      /* between start_bulk_insert and end_bulk_insert */
        bool appends = false;            /* so many that they may go past the log */
        bool sorts = false;              /* and be sorted before */
        bool reads_latest = false;       /* rows whoever wrote them */
        bool reads_snapshot = false;     /* rows as of the snapshot, whatever the statement would read */
        bool semi_consistent = false;    /* a scan looks at rows that others have locked before it waits for them */
        ulonglong deferred_indexes = 0;  /* to be built at the end of the bulk insert */
    };
    Statement statement;

  private:
    int check_discarded(THD* thd) const;
    uint32_t locking_mode() const {
        uint32_t mode = held.rows == RowLock::Shared ? TEAK_READ_SHARED : TEAK_READ_EXCLUSIVE;
        if (held.skips_locked) mode |= TEAK_READ_SKIP_LOCKED;
        if (fails_at_once(open_.thd(), held.session)) mode |= TEAK_READ_NOWAIT;
        if (statement.semi_consistent) mode |= TEAK_READ_SEMI_CONSISTENT;
        return mode;
    }
    ulonglong max_rows(THD* thd) const;

    OpenTable& open_;
};

/* ha_teak_memory.cc. To be called when the table is opened, and before it is used: returns when the binary log has it
   that a restart has emptied the table. */
int tell_emptied(const OpenTable& open);

} // namespace teak
#endif
