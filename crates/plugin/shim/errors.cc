#include "errors.h"
#include "session.h"

namespace teak {
namespace {

bool was_told(THD* thd, const char* text) {
    Diagnostics_area::Sql_condition_iterator conditions = thd->get_stmt_da()->sql_conditions();
    while (const Sql_condition* condition = conditions++)
        if (strcmp(condition->get_message_text(), text) == 0) return true;
    return false;
}

/* In strict mode the server turns a warning of a writing statement into its error; a note stays a note. What ends a
   statement may come again when it cleans up, and is told once. */
void warn_with_text(THD* thd, int code, Sql_condition::enum_warning_level level = Sql_condition::WARN_LEVEL_WARN) {
    if (!thd) return;
    char last[MYSQL_ERRMSG_SIZE - 64], text[MYSQL_ERRMSG_SIZE];
    if (teak_last_error({last, sizeof last}) == 0) return;
    snprintf(text, sizeof text, "Teak: %s (error %d)", last, code);
    if (!was_told(thd, text)) push_warning(thd, level, ER_GET_ERRMSG, text);
}

/* The client has a warning, and a number that says little: which file, and where, is for the operator. */
void log_text() {
    char text[512];
    if (teak_last_error({text, sizeof text})) sql_print_error("Teak: %s", text);
}

} // namespace

int error_code(teak_status status, THD* thd) {
    int code = HA_ERR_INTERNAL_ERROR;
    switch (status) {
    case TEAK_OK:
        return 0;
    case TEAK_NOT_FOUND:
        return HA_ERR_KEY_NOT_FOUND;
    case TEAK_END:
        return HA_ERR_END_OF_FILE;
    case TEAK_DUPLICATE:
    case TEAK_LINK_EXISTS: /* of a definition; as InnoDB */
        return HA_ERR_FOUND_DUPP_KEY;
    case TEAK_LOCK_TIMEOUT:
        if (thd) thd->mark_transaction_to_rollback(rollback_on_timeout());
        return HA_ERR_LOCK_WAIT_TIMEOUT;
    case TEAK_WOULD_BLOCK:
        return HA_ERR_LOCK_WAIT_TIMEOUT;
    case TEAK_DEADLOCK:
        if (thd) thd->mark_transaction_to_rollback(true);
        return HA_ERR_LOCK_DEADLOCK;
    case TEAK_LOCK_MEMORY:
        if (thd) thd->mark_transaction_to_rollback(true);
        warn_with_text(thd, HA_ERR_LOCK_TABLE_FULL, Sql_condition::WARN_LEVEL_NOTE);
        return HA_ERR_LOCK_TABLE_FULL;
    case TEAK_INTERRUPTED:
        return HA_ERR_ABORTED_BY_USER;
    case TEAK_CONFLICT:
        if (thd) thd->mark_transaction_to_rollback(true);
        return HA_ERR_RECORD_CHANGED;
    case TEAK_TABLE_CHANGED:
        return HA_ERR_TABLE_DEF_CHANGED;
    case TEAK_TOO_OLD:
        /* Not rolled back: a client that overlooks the error must not go on with another snapshot. */
        return kSnapshotTooOld;
    case TEAK_HISTORY_FULL:
        if (thd) thd->mark_transaction_to_rollback(rollback_on_timeout());
        [[fallthrough]];
    case TEAK_UNDECIDED:
    case TEAK_CHECKPOINTS_PAUSED:
        warn_with_text(thd, HA_ERR_LOCK_WAIT_TIMEOUT, Sql_condition::WARN_LEVEL_NOTE);
        return HA_ERR_LOCK_WAIT_TIMEOUT;
    case TEAK_READ_ONLY:
        code = HA_ERR_TABLE_READONLY;
        break;
    case TEAK_DISK_FULL:
        /* A note: users look for 1114 (1021 of a commit), not for what strict mode would make of a warning. */
        warn_with_text(thd, HA_ERR_RECORD_FILE_FULL, Sql_condition::WARN_LEVEL_NOTE);
        return HA_ERR_RECORD_FILE_FULL;
    case TEAK_NO_DESCRIPTOR: /* the server's text for it says enough for a start: "Too many open files" */
        warn_with_text(thd, EMFILE, Sql_condition::WARN_LEVEL_NOTE);
        return EMFILE;
    case TEAK_CORRUPT:
        code = HA_ERR_CRASHED_ON_USAGE;
        log_text();
        break;
    case TEAK_EXISTS:
        return HA_ERR_TABLE_EXIST;
    case TEAK_NO_TABLE:
        return HA_ERR_NO_SUCH_TABLE;
    case TEAK_TOO_LARGE:
        code = HA_ERR_TO_BIG_ROW;
        break;
    case TEAK_OUT_OF_MEMORY:
        code = HA_ERR_OUT_OF_MEM;
        break;
    case TEAK_COUNTER_EXHAUSTED:
        return HA_ERR_AUTOINC_ERANGE;
    case TEAK_IO:
        code = HA_ERR_GENERIC;
        log_text();
        break;
    case TEAK_OTHER_DEFINITION:
    case TEAK_NO_XID:
    case TEAK_IN_USE:
    case TEAK_UNKNOWN_VERSION:
    case TEAK_MISUSE:
    case TEAK_INTERNAL:
        break;
    }
    warn_with_text(thd, code);
    return code;
}

int raise_error(teak_status status, THD* thd) {
    if (status == TEAK_OK) return 0;
    char text[512];
    if (teak_last_error({text, sizeof text}) == 0) snprintf(text, sizeof text, "no more is known");
    int code = error_code(status, thd);
    if (status == TEAK_DISK_FULL)
        my_error(ER_DISK_FULL, MYF(0), text, ENOSPC);
    else
        my_error(ER_GET_ERRMSG, MYF(0), code, text, "Teak");
    return code;
}

int end_of_fill(teak_status status, THD* thd) {
    if (status != TEAK_OK && !thd->is_error() && !thd_killed(thd)) raise_error(status, thd);
    return status == TEAK_OK ? 0 : 1;
}

bool own_error_text(int error, String* text) {
    if (error != kSnapshotTooOld) return false;
    char last[512];
    size_t length = std::min(teak_last_error({last, sizeof last}), sizeof last - 1);
    text->copy(last, static_cast<uint32>(length), system_charset_info);
    return false; /* trying again is of no use */
}

void log_last_error(const char* what) {
    char text[1024];
    teak_last_error({text, sizeof text});
    sql_print_error("Teak: %s: %s", what, text);
}

} // namespace teak
