/*
  See table_use.h.
*/
#include "table_use.h"
#include "server_contracts.h"

namespace teak {

int TableUse::prepare(THD* thd, bool locks) {
    if (!thd) return HA_ERR_INTERNAL_ERROR;
    held.session = session_of(thd);
    if (!held.session) return HA_ERR_OUT_OF_MEM;
    if (int error = prepare_change(thd)) return error;
    if (int error = open_.renew()) return error;
    held.max_rows = max_rows(thd);
    held.may_miss = thd->rgi_slave && teak_table_has_lost_rows(open_.core);
    if (int error = check_discarded(thd)) return error;
    if (int error = begin_statement(thd, held.session, locks)) return error;
    /* Who was to tell it when the table was opened has been rolled back, perhaps. */
    if (lives_in_memory(open_.table->s->option_struct))
        if (int error = tell_emptied(open_)) return error;
    return held.session->has_made(thd->query_id, open_.name) ? open_.fail(teak_txn_founds(session(), open_.core)) : 0;
}

/* The server calls it once it keeps writers out: whatever the statement does to the table, it needs all its rows. */
int TableUse::prepare_change(THD* thd) {
    const int command = thd_sql_command(thd);
    /* OPTIMIZE works beside all writers, unless it rebuilds: then the old table is locked in another way. */
    if (command == SQLCOM_OPTIMIZE && held.writes && !thd->locked_tables_mode) return 0;
    switch (command) {
    case SQLCOM_FLUSH:
        if (!is_export(thd)) return 0;
        [[fallthrough]];
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE:
    case SQLCOM_TRUNCATE: /* of a partitioned table: all partitions before the first is emptied */
        if (open_.temporary) return 0;
        return wait_for_holders(thd, bytes_of(open_.name), TEAK_HOLDERS_PREPARED);
    default:
        return 0;
    }
}

/* What may be done with a table that was discarded; the rest is told so. */
int TableUse::check_discarded(THD* thd) const {
    if (!open_.meta.discarded || thd_tablespace_op(thd)) return 0;
    switch (thd_sql_command(thd)) {
    case SQLCOM_LOCK_TABLES:
    case SQLCOM_TRUNCATE:
    case SQLCOM_CHECK:
        return 0;
    default:
        my_error(ER_TABLESPACE_DISCARDED, MYF(0), open_.table->s->table_name.str);
        return HA_ERR_TABLESPACE_MISSING;
    }
}

/* MAX_ROWS of a table in memory, as of a MEMORY table: inserts heed it. A replica takes what its primary has taken, and
   ALTER the rows that are there. */
ulonglong TableUse::max_rows(THD* thd) const {
    if (!open_.table->s->max_rows || thd->rgi_slave || !lives_in_memory(open_.table->s->option_struct)) return 0;
    return open_.table->s->max_rows;
}

} // namespace teak
