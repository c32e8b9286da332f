/*
  Full scans that pass over rows for which the server's condition is not true, as far as like_filter.h can tell.
*/
#include "ha_teak.h"

using namespace teak;

/* The server keeps all of the condition: what is made of it here only passes over rows for which it is not true. Who
   locks rows, or applies what another server has done, sees them all; so does who counts them. */
const COND* ha_teak::cond_push(const COND* condition) {
    likes_.clear();
    const THD* thd = ha_thd();
    const bool counts = thd->lex->analyze_stmt || thd->lex->limit_rows_examined_cnt != ULONGLONG_MAX;
    if (inited == RND && use_.is_begun() && use_.read_mode() == TEAK_READ_SNAPSHOT && !use_.held.may_miss && !counts &&
        !reads_virtual())
        likes_.set(condition, table, open_.rows);
    return condition;
}

/* Whether the server computes columns of each row that it reads, which may warn. */
bool ha_teak::reads_virtual() const {
    if (!table->vfield) return false;
    for (Field** field = table->vfield; *field; field++)
        if (!(*field)->stored_in_db() && bitmap_is_set(table->read_set, (*field)->field_index)) return true;
    return false;
}

/* Rows that were passed over count as if the server had turned them down. */
void ha_teak::count_passed(ulonglong rows) {
    THD* thd = table->in_use;
    status_var_add(thd->status_var.ha_read_rnd_next_count, static_cast<ulong>(rows));
    thd->inc_examined_row_count(rows);
    Diagnostics_area* area = thd->get_stmt_da();
    for (ulonglong i = 0; i < rows; i++) {
        update_rows_read();
        area->inc_current_row_for_warning();
    }
    scan_.passed += rows;
}

int ha_teak::next_row_filtered(uchar* buf) {
    constexpr ulonglong kRowsBetweenLooks = 64;
    ulonglong passed = 0;
    teak_entry_view row;
    int error;
    while (!(error = next_entry(&row))) {
        if (!likes_.rules_out(open_.rows, row.value)) {
            error = deliver_row(buf, row);
            break;
        }
        if (++passed % kRowsBetweenLooks == 0 && thd_kill_level(ha_thd()) != THD_IS_NOT_KILLED) {
            error = HA_ERR_ABORTED_BY_USER;
            break;
        }
    }
    if (passed) count_passed(passed);
    return error;
}

void ha_teak::end_filter() {
    likes_.clear();
    if (scan_.passed) teak_count_passed_rows(plugin.engine, scan_.passed);
}
