/*
  information_schema.TEAK_DEADLOCKS: a row for each transaction of each of the last deadlocks, the newest first.

  The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there, or after it
  could not start. Then the table is empty. As with the process list, other people's sessions are shown only to those
  who have the PROCESS privilege.
*/
#include "deadlocks_table.h"
#include "errors.h"
#include "i_s_row.h"
#include "lock_waits_table.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO deadlocks[] = {Column("DEADLOCK_ID", Show::ULonglong(), NOT_NULL),
                             Column("OCCURRED", Show::Datetime(0), NOT_NULL),
                             Column("TRX_ID", Show::ULonglong(), NOT_NULL),
                             Column("CONNECTION_ID", Show::ULonglong(), NULLABLE),
                             Column("USER", Varchar(USERNAME_CHAR_LENGTH), NULLABLE),
                             Column("HOST", Varchar(HOSTNAME_LENGTH), NULLABLE),
                             Column("QUERY", Varchar(TEAK_QUERY_BYTES), NULLABLE),
                             Column("WAITS_FOR_TRX_ID", Show::ULonglong(), NOT_NULL),
                             Column("WAIT_SECONDS", Double(12), NOT_NULL),
                             Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
                             Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                             Column("TREE", Show::ULonglong(), NULLABLE),
                             Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                             Column("LOCK_MODE", Varchar(16), NOT_NULL),
                             Column("LOCK_TYPE", Varchar(16), NOT_NULL),
                             Column("LOCK_KEY", Varchar(kShownKey), NOT_NULL),
                             Column("WRITES", Show::ULonglong(), NOT_NULL),
                             Column("VICTIM", Varchar(3), NOT_NULL),
                             Column("REASON", Varchar(32), NULLABLE),
                             CEnd()};
} // namespace fields

const char* reason_of(const teak_entangled& member) {
    if (!member.is_victim) return "";
    switch (member.reason) {
    case TEAK_VICTIM_PREFERRED:
        return "PREFERRED AS VICTIM";
    case TEAK_VICTIM_WROTE_LEAST:
        return "WROTE LEAST";
    default:
        return "WAITED LAST";
    }
}

/* One row; 1 ends the listing. */
int store_member(void* context, const teak_entangled* member) {
    const auto& asker = *static_cast<const Asker*>(context);
    if (!asker.may_see(member->user, member->host)) return 0;
    ListedRow row(asker.table);
    row.number(member->deadlock);
    row.time(asker.local_time(static_cast<my_time_t>(member->at)));
    row.number(member->txn);
    row.unless_zero(member->session);
    row.unless_empty(text_of(member->user));
    row.unless_empty(text_of(member->host));
    row.unless_empty(text_of(member->query));
    row.number(member->waits_for);
    row.seconds(member->wait_milliseconds);
    add_sought(member->sought, asker.thd, &row);
    row.number(member->written);
    row.text(member->is_victim ? "YES" : "NO");
    row.unless_empty(reason_of(*member));
    return schema_table_store_record(asker.thd, asker.table) || thd_killed(asker.thd);
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine) return 0;
    Asker asker = asker_of(thd, tables);
    return end_of_fill(teak_deadlocks_report(plugin.engine, store_member, &asker), thd);
}

} // namespace

st_mysql_information_schema deadlocks_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_deadlocks_table(void* schema_table) { return has_columns(schema_table, fields::deadlocks, fill); }

} // namespace teak
