/*
  What the engine is to the server as a whole: connections, transactions, two-phase commit, savepoints.

  A connection's Session lives in the THD's slot. The transaction begins when a statement first uses a Teak table
  (begin_statement) and ends in commit or rollback; `all` false inside a transaction means the end of a statement.
*/
#include "counted_call.h"
#include "session.h"
#include "errors.h"
#include "foreign_error.h"
#include "innodb_settings.h"
#include "server_contracts.h"
#include "server_version.h"

#include <mysql/service_thd_wait.h>
#include <mutex>
#include <set>
#include <utility>

namespace teak {

Plugin plugin;

Session* existing_session(THD* thd) { return static_cast<Session*>(thd_get_ha_data(thd, plugin.hton)); }

namespace {

uint32_t isolation_of(THD* thd) {
    switch (thd_tx_isolation(thd)) {
    case ISO_READ_UNCOMMITTED:
    case ISO_READ_COMMITTED:
        return TEAK_READ_COMMITTED;
    case ISO_SERIALIZABLE:
        return TEAK_SERIALIZABLE;
    default:
        return TEAK_REPEATABLE_READ;
    }
}

/* Format (4, LE), length of the global part, length of the branch part, both parts. */
teak_bytes pack_xid(const XID& xid, uchar* to) {
    int4store(to, xid.formatID);
    to[4] = static_cast<uchar>(xid.gtrid_length);
    to[5] = static_cast<uchar>(xid.bqual_length);
    size_t n = static_cast<size_t>(xid.gtrid_length + xid.bqual_length);
    memcpy(to + 6, xid.data, n);
    return {to, 6 + n};
}

bool unpack_xid(const teak_xid& from, XID* xid) {
    if (from.len < 6) return false;
    size_t gtrid = from.data[4], bqual = from.data[5];
    if (gtrid > MAXGTRIDSIZE || bqual > MAXBQUALSIZE || from.len != 6 + gtrid + bqual) return false;
    const char* const name = reinterpret_cast<const char*>(from.data) + 6;
    xid->set(static_cast<int32>(uint4korr(from.data)), name, static_cast<long>(gtrid), name + gtrid,
             static_cast<long>(bqual));
    return true;
}

/* Connections that pause checkpoints; 0 is FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT. */
std::mutex pauses_mutex;
std::set<my_thread_id> pauses;

int close_connection(THD* thd) {
    if (Session* session = existing_session(thd)) {
        thd_set_ha_data(thd, plugin.hton, nullptr);
        resume_checkpoints(thd, session);
        teak_session_free(session->handle);
        delete session;
    }
    return 0;
}

/* What the end of a statement or of a transaction came to. The server only says that there was an error during the
   commit, and its number. */
int end_result(teak_status status, THD* thd) {
    switch (status) {
    case TEAK_DISK_FULL:
    case TEAK_READ_ONLY:
    case TEAK_NO_DESCRIPTOR:
        return raise_error(status, thd);
    /* Entries that were written late may have to wait for the ranges of others. */
    case TEAK_LOCK_TIMEOUT:
        my_error(ER_LOCK_WAIT_TIMEOUT, MYF(0));
        break;
    case TEAK_DEADLOCK:
        my_error(ER_LOCK_DEADLOCK, MYF(0));
        break;
    case TEAK_INTERRUPTED:
        thd->send_kill_message();
        break;
    default:
        break;
    }
    return error_code(status, thd);
}

/* Whom the end of a statement or transaction is counted for: it costs something if there were writes. */
ha_handler_stats* asked_of(THD* thd, const Session* session) {
    return session->rows_written != session->rows_settled ? &thd->handler_stats : nullptr;
}

int end_statement(THD* thd, Session* session) {
    if (!session->statement_open) return 0;
    CountedCall call(asked_of(thd, session));
    teak_status status = teak_statement_commit(session->handle);
    /* After an error it is still to be rolled back. */
    session->statement_open = status != TEAK_OK;
    return end_result(status, thd);
}

int commit(THD* thd, bool all) {
    Session* session = existing_session(thd);
    if (!session) return 0;
    if (!all && in_transaction(thd)) return end_statement(thd, session);
    session->statement_open = session->overtook = false;
    CountedCall call(asked_of(thd, session));
    session->rows_settled = session->rows_written;
    bool forgotten = std::exchange(session->forgotten, false);
    int error = end_result(teak_commit(session->handle), thd);
    if (!session->telling.empty()) session->note_told();
    /* By now all engines of the transaction have committed (commit_ordered), and none has synced that. */
    if (!error && forgotten && ha_flush_logs()) return HA_ERR_GENERIC;
    return error;
}

int rollback(THD* thd, bool all) {
    Session* session = existing_session(thd);
    if (!session) return 0;
    bool open = session->statement_open;
    session->statement_open = false;
    session->forgotten = false;
    CountedCall call(asked_of(thd, session));
    if (all || !in_transaction(thd)) {
        session->overtook = false;
        session->rows_settled = session->rows_written;
        session->telling.clear();
        return error_code(teak_rollback(session->handle), thd);
    }
    return open ? error_code(teak_statement_rollback(session->handle), thd) : 0;
}

int prepare(THD* thd, bool all) {
    Session* session = existing_session(thd);
    if (!session) return 0;
    if (!all && in_transaction(thd)) return end_statement(thd, session);
    /* It has told the error. */
    if (commits_out_of_order(thd) && thd->wait_for_prior_commit()) return HA_ERR_GENERIC;
    session->statement_open = session->overtook = false;
    /* Then the logs of all engines are synced before the commit is acknowledged, instead of some time after it. */
    session->forgotten = commits_are_durable() && coordinator_forgets(thd);
    XID xid;
    thd_get_xid(thd, reinterpret_cast<MYSQL_XID*>(&xid));
    uchar packed[6 + XIDDATASIZE];
    CountedCall call(asked_of(thd, session));
    const uint8_t is_external = thd->transaction->xid_state.is_explicit_XA();
    return end_result(teak_prepare(session->handle, pack_xid(xid, packed), is_external), thd);
}

/* Under a server mutex, possibly on another thread: an error is kept by the core and comes back from commit. */
void commit_ordered(THD* thd, bool all) {
    Session* session = existing_session(thd);
    if (!session || (!all && in_transaction(thd))) return;
    teak_commit_ordered(session->handle);
    /* Before the next in the primary's order goes on. */
    if (!session->telling.empty()) session->note_told();
}

int recover(XID* xids, uint capacity) {
    static size_t start = 0; /* the server asks again until it gets fewer than it has room for */
    uint filled = 0;
    while (filled < capacity) {
        teak_xid batch[16];
        size_t n = teak_recover(plugin.engine, {batch, std::min<size_t>(16, capacity - filled)}, start);
        if (n == 0) break;
        start += n;
        for (size_t i = 0; i < n; i++)
            if (unpack_xid(batch[i], &xids[filled])) filled++;
    }
    if (filled < capacity) start = 0;
    return static_cast<int>(filled);
}

/* Results of the XA interface, which no server header defines. */
enum { XA_RESULT_OK = 0, XA_RESULT_FAILED = -3, XA_RESULT_UNKNOWN = -4 };

int end_by_xid(teak_status status) {
    if (status == TEAK_OK) return XA_RESULT_OK;
    return status == TEAK_NO_XID ? XA_RESULT_UNKNOWN : XA_RESULT_FAILED;
}

int commit_by_xid(XID* xid) {
    uchar packed[6 + XIDDATASIZE];
    return end_by_xid(teak_commit_by_xid(plugin.engine, pack_xid(*xid, packed)));
}

int rollback_by_xid(XID* xid) {
    uchar packed[6 + XIDDATASIZE];
    return end_by_xid(teak_rollback_by_xid(plugin.engine, pack_xid(*xid, packed)));
}

int savepoint_set(THD* thd, void* at) {
    Session* session = session_of(thd);
    if (!session) return HA_ERR_OUT_OF_MEM;
    return error_code(teak_savepoint_set(session->handle, static_cast<teak_savepoint*>(at)), thd);
}

int savepoint_rollback(THD* thd, void* at) {
    Session* session = existing_session(thd);
    if (!session) return 0;
    return error_code(teak_savepoint_rollback(session->handle, static_cast<const teak_savepoint*>(at)), thd);
}

/* Locks are kept, also those taken since the savepoint, and what is locked keeps its definition. */
bool savepoint_rollback_can_release_mdl(THD* thd) {
    Session* session = existing_session(thd);
    return !session || !teak_txn_has_locks(session->handle);
}

int savepoint_release(THD*, void*) { return 0; }

int start_consistent_snapshot(THD* thd) {
    Session* session = session_of(thd);
    if (!session) return HA_ERR_OUT_OF_MEM;
    if (int error = begin_transaction(thd, session)) return error;
    if (isolation_of(thd) == TEAK_READ_COMMITTED) return 0;
    return error_code(teak_open_snapshot(session->handle), thd);
}

void commit_checkpoint_request(void* cookie) {
    if (teak_engine_flush_logs(plugin.engine) == TEAK_OK)
        commit_checkpoint_notify_ha(cookie);
    else
        log_last_error("flushing the log for the binlog's checkpoint");
}

bool flush_logs(handlerton*) {
    if (teak_engine_flush_logs(plugin.engine) == TEAK_OK) return false;
    log_last_error("flushing the log");
    return true;
}

/* FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT, and its end: one connection at a time can have the read lock. */
int checkpoint_state(bool disabled) {
    static teak_pause* pause = nullptr;
    teak_checkpoints_resume(plugin.engine, pause);
    pause = nullptr;
    note_pause(nullptr, disabled);
    if (!disabled || teak_checkpoints_pause(plugin.engine, &pause) == TEAK_OK) return 0;
    note_pause(nullptr, false);
    log_last_error("pausing checkpoints");
    return 1;
}

bool show_status(handlerton*, THD* thd, stat_print_fn* print, enum ha_stat_type stat) {
    if (stat != HA_ENGINE_STATUS) return false;
    teak_buffer text{};
    if (teak_engine_status_text(plugin.engine, &text) != TEAK_OK) return true;
    const std::string all = std::string(text.data, text.len) + latest_foreign_error();
    teak_buffer_free(&text);
    return print(thd, "Teak", 4, "", 0, all.data(), all.size());
}

void kill_query(handlerton*, THD* thd, enum thd_kill_levels) {
    if (Session* session = existing_session(thd)) teak_interrupt(session->handle);
}

void drop_database(handlerton*, char* path) {
    /* "./db/" */
    if (teak_tables_drop_prefix(plugin.engine, table_name(path)) != TEAK_OK) log_last_error("dropping a database");
}

/* BACKUP STAGE START, with which mariadb-backup begins. teak backup has it run and copies Teak's tables itself. */
void prepare_for_backup() {
    THD* thd = current_thd;
    if (thd && !warns_of_backups(thd)) return;
    uint64_t tables = 0;
    if (teak_tables_count(plugin.engine, &tables) == TEAK_OK && tables == 0) return;
    sql_print_warning(
        "Teak: connection %llu begins a backup (BACKUP STAGE START). mariadb-backup does NOT copy Teak's tables, of "
        "which there are %llu, and reports success all the same. Use teak backup, which runs mariadb-backup and copies "
        "Teak's tables as of the same moment; or a snapshot of the file system, or mariadb-dump --single-transaction.",
        thd ? thd_get_thread_id(thd) : 0ULL, static_cast<unsigned long long>(tables));
    if (thd)
        push_warning_printf(
            thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG,
            "Teak: mariadb-backup does not copy Teak's tables, of which there are %llu; use teak backup",
            static_cast<unsigned long long>(tables));
}

uint partition_flags() { return 0; }

void set_wait_limits(THD* thd, Session* session) {
    uint64_t seconds = 0;
    const bool limited = clause_limit(thd->lex, &seconds);
    session->waits_of = thd->lex;
    session->fails_at_once = limited && seconds == 0;
    teak_session_set_lock_wait_timeout(session->handle, limited ? seconds * 1000 : lock_wait_timeout_ms(thd));
}

} // namespace

void note_pause(THD* thd, bool begins) {
    std::lock_guard<std::mutex> guard(pauses_mutex);
    const my_thread_id id = thd ? thd_get_thread_id(thd) : 0;
    if (begins)
        pauses.insert(id);
    else
        pauses.erase(id);
}

void resume_checkpoints(THD* thd, Session* session) {
    if (!session->pause) return;
    teak_checkpoints_resume(plugin.engine, session->pause);
    session->pause = nullptr;
    note_pause(thd, false);
}

std::string pausing() {
    std::lock_guard<std::mutex> guard(pauses_mutex);
    std::string names;
    for (my_thread_id id : pauses) {
        if (!names.empty()) names += ", ";
        names += id ? "connection " + std::to_string(id) : "FLUSH TABLES ... DISABLE CHECKPOINT";
    }
    return names;
}

Session* session_of(THD* thd) {
    if (Session* session = existing_session(thd)) return session;
    find_innodb_settings();
    auto* session = new (std::nothrow) Session;
    if (!session) return nullptr;
    if (teak_session_new(plugin.engine, thd, thd_get_thread_id(thd), &session->handle) != TEAK_OK) {
        log_last_error("a new session");
        delete session;
        return nullptr;
    }
    session->moment = teak_session_moment(session->handle);
    thd_set_ha_data(thd, plugin.hton, session);
    return session;
}

int wait_for_holders(THD* thd, teak_bytes table, uint32_t holders) {
    Session* session = session_of(thd);
    if (!session) return HA_ERR_OUT_OF_MEM;
    set_wait_limits(thd, session);
    return error_code(teak_table_wait_for_holders(session->handle, table, holders), thd);
}

bool in_transaction(THD* thd) { return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

int begin_transaction(THD* thd, Session* session) {
    teak_status status = teak_txn_begin(session->handle, isolation_of(thd), snapshot_isolation(thd), thd->start_utime);
    if (status != TEAK_OK) return error_code(status, thd);
    trans_register_ha(thd, true, plugin.hton, 0);
    return 0;
}

int begin_statement(THD* thd, Session* session, bool locks) {
    /* Also for a statement that is already open: the server forgets registrations at each statement's end. */
    trans_register_ha(thd, false, plugin.hton, 0);
    if (in_transaction(thd)) trans_register_ha(thd, true, plugin.hton, 0);
    if (!session->statement_open) {
        const bool strict = snapshot_isolation(thd);
        const uint32_t isolation = isolation_of(thd);
        if (teak_status status = teak_statement_begin(session->handle, isolation, strict, thd->start_utime))
            return error_code(status, thd);
        session->lenient = !strict && isolation != TEAK_READ_COMMITTED;
        session->unlocks = isolation == TEAK_READ_COMMITTED;
        session->statement_open = true;
        session->statement++;
        session->waits_of = nullptr;
    }
    /* Most reads wait for nobody. */
    if (locks && !session->waits_of) set_wait_limits(thd, session);
    return 0;
}

bool fails_at_once(THD* thd, Session* session) {
    if (session->waits_of != thd->lex) set_wait_limits(thd, session);
    return session->fails_at_once;
}

int init_handlerton(handlerton* hton) {
    hton->create = create_handler;
    hton->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_SUPPORTS_FOREIGN_KEYS;
    hton->savepoint_offset = sizeof(teak_savepoint);
    hton->close_connection = hook<close_connection>;
    hton->commit = hook<commit>;
    hton->rollback = hook<rollback>;
    hton->prepare = hook<prepare>;
    hton->commit_ordered = hook<commit_ordered>;
    hton->recover = hook<recover>;
    hton->commit_by_xid = hook<commit_by_xid>;
    hton->rollback_by_xid = hook<rollback_by_xid>;
    hton->savepoint_set = hook<savepoint_set>;
    hton->savepoint_rollback = hook<savepoint_rollback>;
    hton->savepoint_rollback_can_release_mdl = hook<savepoint_rollback_can_release_mdl>;
    hton->savepoint_release = hook<savepoint_release>;
    hton->start_consistent_snapshot = hook<start_consistent_snapshot>;
    hton->commit_checkpoint_request = commit_checkpoint_request;
    hton->flush_logs = flush_logs;
    set_costs(hton);
/* handler.h: void (*disable_internal_writes)(bool disable); */
#if MYSQL_VERSION_ID >= 110800
    hton->disable_internal_writes = [](bool disabled) { checkpoint_state(disabled); };
#else
    hton->checkpoint_state = hook<checkpoint_state>;
#endif
    hton->show_status = show_status;
    hton->kill_query = kill_query;
    hton->drop_table = drop_table_by_path;
    hton->check_version = check_version;
    hton->drop_database = drop_database;
    hton->prepare_for_backup = prepare_for_backup;
    hton->partition_flags = partition_flags;
    hton->signal_ddl_recovery_done = [](handlerton*) { return register_stages(), 0; };
    hton->table_options = table_options;
    static const char* no_files[] = {NullS};
    hton->tablefile_extensions = no_files;
    return 0;
}

} // namespace teak
