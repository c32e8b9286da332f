/*
  information_schema.TEAK_TRX: a row for each open transaction of Teak, and each that is prepared without a session.

  The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there, or after it
  could not start. Then the table is empty. As with the process list, other people's transactions are shown only to
  those who have the PROCESS privilege.
*/
#include "trx_table.h"
#include "errors.h"
#include "i_s_row.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO trx[] = {Column("TRX_ID", Show::ULonglong(), NOT_NULL),
                       Column("CONNECTION_ID", Show::ULonglong(), NULLABLE),
                       Column("STATE", Varchar(16), NOT_NULL),
                       Column("STARTED", Show::Datetime(0), NULLABLE),
                       Column("AGE_SECONDS", Double(12), NULLABLE),
                       Column("ISOLATION_LEVEL", Varchar(16), NULLABLE),
                       Column("SNAPSHOT_TIMESTAMP", Show::ULonglong(), NULLABLE),
                       Column("SNAPSHOT_SECONDS", Double(12), NULLABLE),
                       Column("ROWS_WRITTEN", Show::ULonglong(), NULLABLE),
                       Column("ROW_LOCKS", Show::ULonglong(), NOT_NULL),
                       Column("LOCK_MEMORY", Show::ULonglong(), NOT_NULL),
                       Column("REDO_BYTES", Show::ULonglong(), NOT_NULL),
                       Column("LOG_BYTES_PINNED", Show::ULonglong(), NOT_NULL),
                       Column("WAITS_FOR_TRX_ID", Show::ULonglong(), NULLABLE),
                       Column("WAIT_SECONDS", Double(12), NULLABLE),
                       Column("XID", Varchar(320), NULLABLE),
                       Column("QUERY", Varchar(TEAK_QUERY_BYTES), NULLABLE),
                       CEnd()};
} // namespace fields

const char* state_of(const teak_transaction& trx) {
    if (trx.waits_for) return "LOCK WAIT";
    switch (trx.phase) {
    case TEAK_PHASE_PREPARED:
        return "PREPARED";
    case TEAK_PHASE_COMMITTING:
        return "COMMITTING";
    case TEAK_PHASE_ROLLING_BACK:
        return "ROLLING BACK";
    default:
        return "RUNNING";
    }
}

const char* level_of(const teak_transaction& trx) {
    switch (trx.isolation) {
    case TEAK_READ_COMMITTED:
        return "READ COMMITTED";
    case TEAK_REPEATABLE_READ:
        return "REPEATABLE READ";
    case TEAK_SERIALIZABLE:
        return "SERIALIZABLE";
    default:
        return "";
    }
}

struct Look : Asker {
    uint64_t now;      /* by the clock of THD::start_utime */
    my_time_t now_utc; /* in seconds */
};

/* Since when, and how long: of one that nobody works on, what the log knows. */
void add_age(const Look& look, const teak_transaction& trx, ListedRow* row) {
    uint64_t age = trx.age_milliseconds;
    if (trx.started) age = look.now > trx.started ? (look.now - trx.started) / 1000 : 0;
    if (!trx.started && !trx.pinned_bytes) {
        row->null();
        row->null();
        return;
    }
    row->maybe(look.local_time(look.now_utc - static_cast<my_time_t>(age / 1000)));
    row->maybe_seconds(age);
}

/* One row; 1 ends the listing. */
int store_transaction(void* context, const teak_transaction* trx) {
    const auto& look = *static_cast<const Look*>(context);
    if (!look.may_see(trx->user, trx->host)) return 0;
    ListedRow row(look.table);
    row.number(trx->txn);
    row.unless_zero(trx->session);
    row.text(state_of(*trx));
    add_age(look, *trx, &row);
    row.unless_empty(level_of(*trx));
    row.unless_zero(trx->snapshot);
    trx->snapshot ? row.maybe_seconds(trx->snapshot_milliseconds) : row.null();
    trx->rows == UINT64_MAX ? row.null() : row.maybe(trx->rows);
    for (uint64_t number : {trx->row_locks, trx->lock_bytes, trx->redo_bytes, trx->pinned_bytes})
        row.number(number);
    row.unless_zero(trx->waits_for);
    trx->waits_for ? row.maybe_seconds(trx->wait_milliseconds) : row.null();
    row.unless_empty(text_of(trx->xid));
    row.unless_empty(text_of(trx->query));
    return schema_table_store_record(look.thd, look.table) || thd_killed(look.thd);
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine) return 0;
    Look look{asker_of(thd, tables), microsecond_interval_timer(), static_cast<my_time_t>(my_time(0))};
    return end_of_fill(teak_transactions_report(plugin.engine, store_transaction, &look), thd);
}

template <size_t n> size_t copy_name(const char* from, uint8_t (&to)[n]) {
    const size_t length = std::min(strlen(from), n);
    memcpy(to, from, length);
    return length;
}

} // namespace

/* As the process list reads it: with the mutex that the session has when it changes its statement. */
void tell_person(void* of, teak_person* out) {
    THD* const thd = static_cast<THD*>(of);
    mysql_mutex_lock(&thd->LOCK_thd_data);
    const Security_context& user = thd->main_security_ctx;
    out->user_len = copy_name(c_name(user.priv_user), out->user);
    out->host_len = copy_name(c_name(user.priv_host), out->host);
    if (const char* query = thd->query()) {
        out->query_len = std::min<size_t>(thd->query_length(), sizeof out->query);
        memcpy(out->query, query, out->query_len);
    }
    mysql_mutex_unlock(&thd->LOCK_thd_data);
}

st_mysql_information_schema trx_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_trx_table(void* schema_table) { return has_columns(schema_table, fields::trx, fill); }

} // namespace teak
