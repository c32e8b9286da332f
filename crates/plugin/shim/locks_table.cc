/*
  information_schema.TEAK_LOCKS: a row for each range and each run of rows that is locked, and each row that is waited
  for; one for all other rows of a transaction, of which nothing is known but how many there are.

  The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there, or after it
  could not start. Then the table is empty. As with the process list, other people's sessions are shown only to those
  who have the PROCESS privilege.
*/
#include "locks_table.h"
#include "errors.h"
#include "i_s_row.h"
#include "key_text.h"
#include "lock_waits_table.h"
#include "server_contracts.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO locks[] = {Column("TRX_ID", Show::ULonglong(), NOT_NULL),
                         Column("CONNECTION_ID", Show::ULonglong(), NULLABLE),
                         Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("TREE", Show::ULonglong(), NULLABLE),
                         Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("LOCK_MODE", Varchar(16), NULLABLE),
                         Column("LOCK_TYPE", Varchar(16), NOT_NULL),
                         Column("LOCK_KEY", Varchar(kShownKey), NULLABLE),
                         Column("OTHER_ROWS", Show::ULonglong(), NULLABLE),
                         CEnd()};
} // namespace fields

struct Look : Asker {
    uint64_t most; /* rows that the statement takes */
    uint64_t rows = 0;
    /* Of the last lock: those of one tree follow each other. */
    const uint8_t* description = nullptr;
    uint64_t tree = 0;
    std::unique_ptr<KeyText> text{};

    const KeyText& text_of_keys(const teak_sought& keys) {
        if (!text || description != keys.description.data || tree != keys.tree)
            text = std::make_unique<KeyText>(keys.description, keys.tree);
        description = keys.description.data;
        tree = keys.tree;
        return *text;
    }
};

const char* type_of(const teak_held_lock& lock) {
    switch (lock.kind) {
    case TEAK_LOCK_RANGE:
        return "RANGE";
    case TEAK_LOCK_RUN:
        return "RUN";
    case TEAK_LOCK_WIDENED:
        return "WIDENED RUN";
    case TEAK_LOCK_ROWS:
        return "OTHER ROWS";
    default:
        return "ROW";
    }
}

/* One row; 1 ends the listing. */
int store_lock(void* context, const teak_held_lock* lock) {
    auto& look = *static_cast<Look*>(context);
    if (!look.may_see(lock->user, lock->host)) return thd_killed(look.thd);
    ListedRow row(look.table);
    row.number(lock->txn);
    row.unless_zero(lock->session);
    if (lock->kind == TEAK_LOCK_ROWS) {
        for (int column = 0; column < 5; column++)
            row.null();
        row.text(type_of(*lock));
        row.null();
        row.maybe(lock->rows);
    } else {
        add_place(lock->keys, &row);
        const KeyText& key = look.text_of_keys(lock->keys);
        row.unless_empty(key.index());
        row.maybe(std::string(lock->keys.is_exclusive ? "EXCLUSIVE" : "SHARED"));
        row.text(type_of(*lock));
        row.maybe(key.of(lock->keys, look.thd));
        row.null();
    }
    if (schema_table_store_record(look.thd, look.table) || thd_killed(look.thd)) return 1;
    return ++look.rows >= look.most;
}

int fill(THD* thd, TABLE_LIST* tables, Item* condition) {
    if (!plugin.engine) return 0;
    Look look{asker_of(thd, tables), wanted_rows(tables, condition)};
    if (!look.most) return 0;
    return end_of_fill(teak_locks_report(plugin.engine, store_lock, &look), thd);
}

} // namespace

st_mysql_information_schema locks_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_locks_table(void* schema_table) { return has_columns(schema_table, fields::locks, fill); }

} // namespace teak
