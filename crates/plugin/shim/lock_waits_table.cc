/*
  information_schema.TEAK_LOCK_WAITS: a row for each transaction that waits for a lock and each that is in its way.

  The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there, or after it
  could not start. Then the table is empty. As with the process list, other people's waits are shown only to those
  who have the PROCESS privilege.
*/
#include "lock_waits_table.h"
#include "errors.h"
#include "i_s_row.h"
#include "i_s_tables.h"
#include "key_text.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include <string>

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO waits[] = {Column("WAITING_CONNECTION_ID", Show::ULonglong(), NOT_NULL),
                         Column("WAITING_TRX_ID", Show::ULonglong(), NOT_NULL),
                         Column("WAIT_SECONDS", Double(12), NOT_NULL),
                         Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("TREE", Show::ULonglong(), NULLABLE),
                         Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                         Column("LOCK_MODE", Varchar(16), NOT_NULL),
                         Column("LOCK_TYPE", Varchar(16), NOT_NULL),
                         Column("LOCK_KEY", Varchar(kShownKey), NOT_NULL),
                         Column("BLOCKING_CONNECTION_ID", Show::ULonglong(), NULLABLE),
                         Column("BLOCKING_TRX_ID", Show::ULonglong(), NOT_NULL),
                         Column("ROOT_CONNECTION_ID", Show::ULonglong(), NULLABLE),
                         Column("ROOT_TRX_ID", Show::ULonglong(), NOT_NULL),
                         Column("BEHIND_ROOT", Show::ULonglong(), NOT_NULL),
                         Column("KILL_STATEMENT", Varchar(32), NULLABLE),
                         CEnd()};
} // namespace fields

/* One row; 1 ends the listing. */
int store_wait(void* context, const teak_lock_wait* wait) {
    const auto& asker = *static_cast<const Asker*>(context);
    if (!asker.may_see(wait->user, wait->host)) return 0;
    ListedRow row(asker.table);
    row.number(wait->waiter);
    row.number(wait->waiter_txn);
    row.seconds(wait->milliseconds);
    add_sought(wait->sought, asker.thd, &row);
    row.unless_zero(wait->holder);
    row.number(wait->holder_txn);
    row.unless_zero(wait->root);
    row.number(wait->root_txn);
    row.number(wait->behind_root);
    if (wait->root)
        row.maybe("KILL " + std::to_string(wait->root));
    else
        row.null();
    return schema_table_store_record(asker.thd, asker.table) || thd_killed(asker.thd);
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine) return 0;
    Asker asker = asker_of(thd, tables);
    return end_of_fill(teak_lock_waits_report(plugin.engine, store_wait, &asker), thd);
}

} // namespace

void add_place(const teak_sought& sought, ListedRow* row) {
    if (sought.table.len) {
        const auto [schema, table] = shown_names(sought.table);
        row->maybe(schema);
        row->maybe(table);
        row->maybe(sought.tree);
    } else {
        row->null();
        row->null();
        row->null();
    }
}

void add_sought(const teak_sought& sought, THD* thd, ListedRow* row) {
    add_place(sought, row);
    const KeyText key(sought.description, sought.tree);
    row->unless_empty(key.index());
    row->text(sought.is_exclusive ? "EXCLUSIVE" : "SHARED");
    row->text(sought.is_range ? "RANGE" : "ROW");
    row->text(key.of(sought, thd));
}

st_mysql_information_schema lock_waits_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_lock_waits_table(void* schema_table) { return has_columns(schema_table, fields::waits, fill); }

} // namespace teak
