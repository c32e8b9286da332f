/*
  The plugin's declaration: start and stop, system variables, status variables.
*/
#include "foreign_tables.h"
#include "i_s_tables.h"
#include "indexes_table.h"
#include "innodb_settings.h"
#include "server_contracts.h"
#include "deadlocks_table.h"
#include "key_text.h"
#include "ha_teak.h"
#include "session.h"
#include "errors.h"
#include "lock_waits_table.h"
#include "locks_table.h"
#include "metrics_table.h"
#include "snapshots_table.h"
#include "trx_table.h"

#include <mysql/service_thd_wait.h>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

namespace {

using teak::plugin;

/* ---- variables -------------------------------------------------------------------------------- */

/* Values of force_recovery: nothing is written from the one on, there is none beyond the other. */
constexpr unsigned long kReadOnlyForce = 2, kMostForce = 3;

constexpr unsigned long long kLeastCache = 8ULL << 20;

unsigned long long cache_size, memory_max_size, checkpoint_log_size, disk_reserve, log_segment_size, history_max_size,
    lock_max_size;
unsigned long long spill_max_size;
unsigned long cache_size_pct, data_file_buffering, flush_log_at_trx_commit, force_recovery, history_full, read_ahead,
    snapshot_warn_age;
char* data_home_dir;
char* tmp_dir;
unsigned long deadlock_history;
char rolls_back_on_timeout, prints_deadlocks;

template <typename T> T assign(void* variable, const void* value) {
    return *static_cast<T*>(variable) = *static_cast<const T*>(value);
}

void set_cache_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_cache_bytes(plugin.engine, assign<unsigned long long>(variable, value));
    cache_size_pct = 0;
}
/* teak_cache_size as that share says, if there is one and the operating system says of what. */
void take_share() {
    const unsigned long long share = teak_memory_share(cache_size_pct);
    if (share) cache_size = std::max(share, kLeastCache);
}
void set_cache_size_pct(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    assign<unsigned long>(variable, value);
    take_share();
    teak_engine_set_cache_bytes(plugin.engine, cache_size);
}
void set_memory_max_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_memory_max_bytes(plugin.engine, assign<unsigned long long>(variable, value));
}
void set_flush(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_commit_flush(plugin.engine, static_cast<uint32_t>(assign<unsigned long>(variable, value)));
}
void set_checkpoint_log_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_checkpoint_log_bytes(plugin.engine, assign<unsigned long long>(variable, value));
}
void set_history_max_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_history_max_bytes(plugin.engine, assign<unsigned long long>(variable, value));
}
void set_lock_max_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_lock_max_bytes(plugin.engine, assign<unsigned long long>(variable, value));
}
void keep_deadlocks() { teak_deadlocks_keep(plugin.engine, deadlock_history, prints_deadlocks); }
void set_deadlock_history(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    assign<unsigned long>(variable, value);
    keep_deadlocks();
}
void set_print_all_deadlocks(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    assign<char>(variable, value);
    keep_deadlocks();
}
void set_read_ahead(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_read_ahead(plugin.engine, assign<unsigned long>(variable, value));
}
void set_history_full(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_history_full(plugin.engine, static_cast<uint32_t>(assign<unsigned long>(variable, value)));
}
void set_data_file_buffering(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_file_buffering(plugin.engine, static_cast<uint32_t>(assign<unsigned long>(variable, value)));
}
void set_snapshot_warn_age(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_snapshot_warn_seconds(plugin.engine, assign<unsigned long>(variable, value));
}
void set_spill_max_size(THD*, st_mysql_sys_var*, void* variable, const void* value) {
    teak_engine_set_spill_max_bytes(plugin.engine, assign<unsigned long long>(variable, value));
}

bool is_on(st_mysql_value* value) {
    if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING) {
        char buffer[8];
        int length = sizeof buffer;
        const char* text = value->val_str(value, buffer, &length);
        return text && (!strcasecmp(text, "on") || !strcasecmp(text, "true") || !strcmp(text, "1"));
    }
    long long number = 0;
    return value->val_int(value, &number) == 0 && number != 0;
}

/* A checkpoint is written while the value is checked: an update cannot fail, and is called with the server's lock on
   variables held. A variable of sessions, since a global one is for SUPER alone. */
int run_checkpoint(THD* thd, st_mysql_sys_var*, void* save, st_mysql_value* value) {
    *static_cast<char*>(save) = 0; /* the variable stays off */
    if (check_global_access(thd, SUPER_ACL, true) && check_global_access(thd, RELOAD_ACL)) return 1;
    return is_on(value) && teak::raise_error(teak_engine_checkpoint(plugin.engine), thd);
}
void leave_off(THD*, st_mysql_sys_var*, void* variable, const void*) { *static_cast<char*>(variable) = 0; }

int pause_checkpoints(THD* thd, st_mysql_sys_var*, void* save, st_mysql_value* value);
void set_pause(THD* thd, st_mysql_sys_var*, void* variable, const void* value);

MYSQL_SYSVAR_ULONGLONG(cache_size, cache_size, PLUGIN_VAR_RQCMDARG,
                       "Memory for blocks, changes and old versions, in bytes", nullptr, set_cache_size, 128ULL << 20,
                       kLeastCache, LLONG_MAX, 1 << 20);
MYSQL_SYSVAR_ULONG(
    cache_size_pct, cache_size_pct, PLUGIN_VAR_RQCMDARG,
    "teak_cache_size as a share, in percent, of the memory that the machine has, or the memory group of the "
    "server if that is less; 0: it is what teak_cache_size says",
    nullptr, set_cache_size_pct, 0, 0, 90, 0);
MYSQL_SYSVAR_ULONGLONG(
    memory_max_size, memory_max_size, PLUGIN_VAR_RQCMDARG,
    "Memory for all tables with IN_MEMORY=YES, in bytes, beyond teak_cache_size; error 1114 when it is "
    "used up",
    nullptr, set_memory_max_size, 128ULL << 20, 0, LLONG_MAX, 0);
MYSQL_SYSVAR_ULONG(flush_log_at_trx_commit, flush_log_at_trx_commit, PLUGIN_VAR_OPCMDARG,
                   "0: the log is written and synced about once a second; 1: written and synced at each commit; "
                   "2: written at each commit, synced about once a second",
                   nullptr, set_flush, 1, 0, 2, 0);
MYSQL_THDVAR_LONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                  "Seconds to wait for a row lock before error 1205; -1: as innodb_lock_wait_timeout says", nullptr,
                  nullptr, -1, -1, 100000000, 0);
/* Of names that end with NullS. What a release of the server has more than another stays empty. */
template <size_t n> TYPELIB typelib_of(const char* (&names)[n]) {
    TYPELIB library{};
    library.count = n - 1;
    library.name = "";
    library.type_names = names;
    return library;
}

/* The first two are numbered as a boolean is. */
enum SnapshotIsolation : unsigned long { SNAPSHOT_ISOLATION_OFF, SNAPSHOT_ISOLATION_ON, SNAPSHOT_ISOLATION_INNODB };
const char* snapshot_isolation_names[] = {"OFF", "ON", "INNODB", NullS};
TYPELIB snapshot_isolation_typelib = typelib_of(snapshot_isolation_names);
MYSQL_THDVAR_ENUM(
    snapshot_isolation, PLUGIN_VAR_OPCMDARG,
    "At REPEATABLE READ and above, writing or locking a row committed after the snapshot: ON: is error 1020; "
    "OFF: goes on with the newest row, so that updates may be lost; INNODB: as innodb_snapshot_isolation says",
    nullptr, nullptr, SNAPSHOT_ISOLATION_INNODB, &snapshot_isolation_typelib);
MYSQL_THDVAR_ULONGLONG(sort_buffer_size, PLUGIN_VAR_RQCMDARG,
                       "Memory for sorting when indexes are built, in bytes; what is more goes to temporary files",
                       nullptr, nullptr, 128ULL << 20, 1ULL << 20, LLONG_MAX, 1 << 20);
MYSQL_SYSVAR_ULONGLONG(checkpoint_log_size, checkpoint_log_size, PLUGIN_VAR_RQCMDARG,
                       "A checkpoint starts when half of this much log was written since the last, in bytes; 0: 256M, "
                       "or a 64th of teak_cache_size if that is more",
                       nullptr, set_checkpoint_log_size, 0, 0, LLONG_MAX, 1 << 20);
MYSQL_SYSVAR_ULONGLONG(log_segment_size, log_segment_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Size of one file of the log, in bytes", nullptr, nullptr, 64ULL << 20, 1ULL << 20, 4ULL << 30,
                       1 << 20);
MYSQL_SYSVAR_ULONGLONG(history_max_size, history_max_size, PLUGIN_VAR_RQCMDARG,
                       "What may be kept for old snapshots, in memory and on disk, in bytes; see teak_history_full",
                       nullptr, set_history_max_size, 64ULL << 30, 1ULL << 20, LLONG_MAX, 1 << 20);

const char* history_full_names[] = {"FAIL_OLDEST", "WAIT", NullS};
TYPELIB history_full_typelib = typelib_of(history_full_names);
MYSQL_SYSVAR_ENUM(
    history_full, history_full, PLUGIN_VAR_RQCMDARG,
    "When teak_history_max_size is reached: FAIL_OLDEST: the oldest snapshot fails with 'snapshot too old'; "
    "WAIT: writers wait until a snapshot ends, at most teak_lock_wait_timeout",
    nullptr, set_history_full, TEAK_HISTORY_FAIL_OLDEST, &history_full_typelib);
MYSQL_SYSVAR_ULONG(
    force_recovery, force_recovery, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
    "To save what is readable of damaged files. 1: damaged tables are left out, scans pass over blocks that "
    "cannot be read; 2: also read-only, nothing is written to the engine's directory; 3: also without what "
    "of the log lies behind damage",
    nullptr, nullptr, 0, 0, kMostForce, 0);
const char* buffering_names[] = {"AUTO", "ON", "OFF", NullS};
TYPELIB buffering_typelib = typelib_of(buffering_names);
MYSQL_SYSVAR_ENUM(data_file_buffering, data_file_buffering, PLUGIN_VAR_RQCMDARG,
                  "Whether look-ups of single blocks in table files use the operating system's cache of files; AUTO: "
                  "unless teak_cache_size is a third of the memory, or more",
                  nullptr, set_data_file_buffering, TEAK_BUFFERING_AUTO, &buffering_typelib);
MYSQL_SYSVAR_ULONG(snapshot_warn_age, snapshot_warn_age, PLUGIN_VAR_RQCMDARG,
                   "A snapshot older than this many seconds is mentioned in the error log, once; 0: never", nullptr,
                   set_snapshot_warn_age, 3600, 0, 100000000, 0);
MYSQL_SYSVAR_ULONGLONG(spill_max_size, spill_max_size, PLUGIN_VAR_RQCMDARG,
                       "Disk that changes of large transactions and sorting may take, in bytes", nullptr,
                       set_spill_max_size, 64ULL << 30, 1ULL << 20, LLONG_MAX, 1 << 20);
MYSQL_SYSVAR_ULONGLONG(
    lock_max_size, lock_max_size, PLUGIN_VAR_RQCMDARG,
    "When row locks take more memory than this, in bytes, transactions that lock many rows of a table "
    "lock all between the first and the last of them; 0: a quarter of teak_cache_size",
    nullptr, set_lock_max_size, 0, 0, LLONG_MAX, 1 << 20);
MYSQL_SYSVAR_ULONG(deadlock_history, deadlock_history, PLUGIN_VAR_RQCMDARG,
                   "Deadlocks that information_schema.TEAK_DEADLOCKS has, the last", nullptr, set_deadlock_history, 100,
                   0, 10000, 0);
MYSQL_SYSVAR_BOOL(print_all_deadlocks, prints_deadlocks, PLUGIN_VAR_OPCMDARG, "Each deadlock is told in the error log",
                  nullptr, set_print_all_deadlocks, FALSE);
MYSQL_SYSVAR_ULONG(
    read_ahead, read_ahead, PLUGIN_VAR_RQCMDARG,
    "Blocks that are read ahead of a scan which finds one after the other not in memory, at most; 0: none", nullptr,
    set_read_ahead, 32, 0, 1024, 0);
MYSQL_SYSVAR_STR(data_home_dir, data_home_dir, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "Directory of the engine's files; default #teak in the data directory", nullptr, nullptr, nullptr);
MYSQL_SYSVAR_STR(tmpdir, tmp_dir, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "Directory of temporary files; default tmp in the engine's directory", nullptr, nullptr, nullptr);
MYSQL_SYSVAR_BOOL(rollback_on_timeout, rolls_back_on_timeout, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                  "Roll back the whole transaction, not only the statement, on a lock wait timeout", nullptr, nullptr,
                  FALSE);

const char* foreign_keys_names[] = {"KEEP", "WARN", "ERROR", NullS};
TYPELIB foreign_keys_typelib = typelib_of(foreign_keys_names);
MYSQL_THDVAR_ENUM(
    foreign_keys, PLUGIN_VAR_RQCMDARG,
    "FOREIGN KEY in CREATE TABLE or ALTER TABLE: KEEP: the table has it from then on; WARN: it is left out, "
    "with a warning; ERROR: the statement fails",
    nullptr, nullptr, 0, &foreign_keys_typelib);
MYSQL_THDVAR_BOOL(checkpoint_now, PLUGIN_VAR_OPCMDARG, "SET to ON: write a checkpoint now. Needs the RELOAD privilege",
                  run_checkpoint, leave_off, FALSE);
MYSQL_THDVAR_BOOL(pause_checkpoints, PLUGIN_VAR_NOCMDOPT,
                  "ON: there are no checkpoints until it is OFF, or this connection ends; for backups, which copy the "
                  "engine's files. Needs the RELOAD privilege",
                  pause_checkpoints, set_pause, FALSE);

/* Waits for a checkpoint, so a pause begins while the value is checked, as above. */
int pause_checkpoints(THD* thd, st_mysql_sys_var*, void* save, st_mysql_value* value) {
    bool on = is_on(value);
    *static_cast<char*>(save) = on;
    if (check_global_access(thd, RELOAD_ACL)) return 1;
    teak::Session* session = teak::session_of(thd);
    if (!session) return 1;
    if (!on || session->pause) return 0;
    int error = teak::raise_error(teak_checkpoints_pause(plugin.engine, &session->pause), thd);
    if (!error) teak::note_pause(thd, true);
    return error;
}

/* And ends here: DEFAULT, and the end of SET STATEMENT, come without a check. Of no use for all sessions: the global
   value stays off. */
void set_pause(THD* thd, st_mysql_sys_var*, void* variable, const void* value) {
    char& own = THDVAR(thd, pause_checkpoints);
    *static_cast<char*>(variable) = variable == &own && *static_cast<const char*>(value);
    teak::Session* session = teak::session_of(thd);
    if (session && !own) teak::resume_checkpoints(thd, session);
}
MYSQL_THDVAR_BOOL(
    backup_warning, PLUGIN_VAR_OPCMDARG,
    "ON: BACKUP STAGE START, with which mariadb-backup begins, warns in the error log and the connection "
    "when there are tables of Teak, which mariadb-backup does not copy. teak backup, which does, sets it OFF",
    nullptr, nullptr, TRUE);
MYSQL_SYSVAR_ULONGLONG(
    disk_reserve, disk_reserve, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
    "Space kept in the engine's directory, so that a full disk can be emptied by DELETE, TRUNCATE and "
    "DROP TABLE, in bytes; 0: none",
    nullptr, nullptr, 16ULL << 20, 0, LLONG_MAX, 0);

MYSQL_THDVAR_BOOL(default_in_memory, PLUGIN_VAR_OPCMDARG,
                  "What IN_MEMORY is for tables that are made without saying it", nullptr, nullptr, false);

st_mysql_sys_var* plugin_variables[] = {MYSQL_SYSVAR(cache_size),
                                        MYSQL_SYSVAR(cache_size_pct),
                                        MYSQL_SYSVAR(deadlock_history),
                                        MYSQL_SYSVAR(print_all_deadlocks),
                                        MYSQL_SYSVAR(default_in_memory),
                                        MYSQL_SYSVAR(memory_max_size),
                                        MYSQL_SYSVAR(flush_log_at_trx_commit),
                                        MYSQL_SYSVAR(force_recovery),
                                        MYSQL_SYSVAR(lock_wait_timeout),
                                        MYSQL_SYSVAR(snapshot_isolation),
                                        MYSQL_SYSVAR(sort_buffer_size),
                                        MYSQL_SYSVAR(checkpoint_log_size),
                                        MYSQL_SYSVAR(log_segment_size),
                                        MYSQL_SYSVAR(history_max_size),
                                        MYSQL_SYSVAR(history_full),
                                        MYSQL_SYSVAR(data_file_buffering),
                                        MYSQL_SYSVAR(snapshot_warn_age),
                                        MYSQL_SYSVAR(spill_max_size),
                                        MYSQL_SYSVAR(lock_max_size),
                                        MYSQL_SYSVAR(read_ahead),
                                        MYSQL_SYSVAR(data_home_dir),
                                        MYSQL_SYSVAR(tmpdir),
                                        MYSQL_SYSVAR(rollback_on_timeout),
                                        MYSQL_SYSVAR(foreign_keys),
                                        MYSQL_SYSVAR(checkpoint_now),
                                        MYSQL_SYSVAR(pause_checkpoints),
                                        MYSQL_SYSVAR(backup_warning),
                                        MYSQL_SYSVAR(disk_reserve),
                                        nullptr};

/* ---- status ----------------------------------------------------------------------------------- */

constexpr size_t kMostStatusVariables = 192;

/* A snapshot in the server's buffer: values must outlive the call. */
struct StatusSnapshot {
    teak_metric metrics[kMostStatusVariables];
    char paused_by[200];
    SHOW_VAR rows[kMostStatusVariables + 2];
};
static_assert(sizeof(StatusSnapshot) > SHOW_VAR_FUNC_BUFF_SIZE, "allocated from the connection, not the buffer");

int show_counters(THD* thd, SHOW_VAR* out, void*, system_status_var*, enum_var_type) {
    auto* snapshot = static_cast<StatusSnapshot*>(thd_alloc(thd, sizeof(StatusSnapshot)));
    if (!snapshot || !plugin.engine) return 1;
    size_t n = std::min(teak_engine_metrics(plugin.engine, 0, {snapshot->metrics, kMostStatusVariables}),
                        kMostStatusVariables);
    for (size_t i = 0; i < n; i++) {
        SHOW_VAR row{};
        row.name = snapshot->metrics[i].name;
        row.value = &snapshot->metrics[i].value;
        row.type = SHOW_ULONGLONG;
        snapshot->rows[i] = row;
    }
    snprintf(snapshot->paused_by, sizeof snapshot->paused_by, "%s", teak::pausing().c_str());
    SHOW_VAR paused_by{};
    paused_by.name = "checkpoints_paused_by";
    paused_by.value = snapshot->paused_by;
    paused_by.type = SHOW_CHAR;
    snapshot->rows[n] = paused_by;
    snapshot->rows[n + 1] = SHOW_VAR{};
    out->type = SHOW_ARRAY;
    out->value = snapshot->rows;
    return 0;
}

SHOW_VAR status_variables[] = {{"Teak", reinterpret_cast<void*>(show_counters), SHOW_FUNC},
                               {nullptr, nullptr, SHOW_UNDEF}};

/* ---- callbacks of the core ---------------------------------------------------------------------- */

void log_message(uint32_t level, const char* text, size_t len) {
    int n = static_cast<int>(len);
    if (level == TEAK_LOG_ERROR)
        sql_print_error("Teak: %.*s", n, text);
    else if (level == TEAK_LOG_WARNING)
        sql_print_warning("Teak: %.*s", n, text);
    else
        sql_print_information("Teak: %.*s", n, text);
}

int is_killed(void* thd) { return thd && thd_kill_level(static_cast<THD*>(thd)) != THD_IS_NOT_KILLED; }

void wait_begin(void* thd) { thd_wait_begin(static_cast<THD*>(thd), THD_WAIT_ROW_LOCK); }
void wait_end(void* thd) {
    if (teak::Session* session = teak::existing_session(static_cast<THD*>(thd))) session->wait.reset();
    thd_wait_end(static_cast<THD*>(thd));
}

/* A text that stays: SHOW PROCESSLIST prints states when the sessions may be gone that were in them. There are as many
   as indexes that were waited for, up to a bound. */
const char* lasting(const std::string& text) {
    constexpr size_t kMost = 10000;
    static std::mutex latch;
    static std::unordered_set<std::string> texts;
    const std::lock_guard<std::mutex> alone(latch);
    const auto found = texts.find(text);
    if (found != texts.end()) return found->c_str();
    return texts.size() < kMost ? texts.insert(text).first->c_str() : "Waiting for a lock of Teak";
}

void show_wait(void* thd, const teak_sought* sought) {
    teak::Session* session = teak::existing_session(static_cast<THD*>(thd));
    if (!session || session->wait) return;
    const auto [schema, table] = teak::shown_names(sought->table);
    const std::string index = teak::KeyText(sought->description, sought->tree).index();
    const PSI_stage_info& stage = sought->is_range ? teak::stages::awaiting_range : teak::stages::awaiting_row;
    std::string text = stage.m_name;
    if (sought->table.len) text += " in " + schema + "." + table;
    if (!index.empty()) text += ", index " + index;
    session->wait.emplace(static_cast<THD*>(thd), stage, lasting(text));
}

/* ---- start and stop ------------------------------------------------------------------------------- */

int start(void* p) {
    auto* hton = static_cast<handlerton*>(p);
    static const teak_callbacks callbacks{
        log_message, is_killed,         teak::report_wait, teak::reports_made, wait_begin,
        wait_end,    teak::tell_person, show_wait,         teak::tell_key,     teak::register_instruments()};
    std::string home = data_home_dir && *data_home_dir ? data_home_dir : "#teak";
    if (home.compare(0, 2, "./") == 0) home.erase(0, 2);
    if (home[0] != '/') {
        ignore_db_dirs_append(home.c_str()); /* else SHOW DATABASES takes the directory for a database */
        std::string data = mysql_real_data_home_ptr;
        if (data.empty() || data.back() != '/') data += '/';
        home = data + home;
    }
    teak_options options;
    teak_options_default(&options);
    options.directory = teak::bytes_of(home.c_str());
    if (tmp_dir && *tmp_dir) options.temp_directory = teak::bytes_of(tmp_dir);
    take_share();
    options.cache_bytes = cache_size;
    options.memory_max_bytes = memory_max_size;
    options.checkpoint_log_bytes = checkpoint_log_size;
    options.log_segment_bytes = log_segment_size;
    options.spill_max_bytes = spill_max_size;
    options.disk_reserve_bytes = disk_reserve;
    options.history_max_bytes = history_max_size;
    options.history_full = static_cast<uint32_t>(history_full);
    options.file_buffering = static_cast<uint32_t>(data_file_buffering);
    options.snapshot_warn_seconds = snapshot_warn_age;
    options.lock_max_bytes = lock_max_size;
    options.read_ahead_blocks = read_ahead;
    options.commit_flush = static_cast<uint32_t>(flush_log_at_trx_commit);
    options.force_recovery = static_cast<uint32_t>(force_recovery);
    teak_status status = teak_engine_open(&options, &callbacks, &plugin.engine);
    if (status != TEAK_OK) {
        teak::log_last_error("cannot start");
        bool damaged = status == TEAK_CORRUPT || status == TEAK_IO;
        if (damaged && force_recovery < kMostForce)
            sql_print_error(
                "Teak: what is readable can be saved: start with --teak-force-recovery=%lu, or more (at most %lu); "
                "see 'The worst hour' in docs/operations.md",
                force_recovery + 1, kMostForce);
        plugin.engine = nullptr;
        return 1;
    }
    plugin.hton = hton;
    keep_deadlocks();
    if (force_recovery >= kReadOnlyForce) return teak::init_handlerton(hton);
    if (teak_tables_drop_temporary(plugin.engine) != TEAK_OK) teak::log_last_error("dropping old temporary tables");
    return teak::init_handlerton(hton);
}

int stop(void*) {
    if (!plugin.engine) return 0;
    teak::drop_all_results();
    teak_status status = teak_engine_close(plugin.engine);
    plugin.engine = nullptr;
    teak::forget_innodb_settings();
    if (status != TEAK_OK) teak::log_last_error("closing");
    return 0;
}

st_mysql_storage_engine descriptor = {MYSQL_HANDLERTON_INTERFACE_VERSION};

} // namespace

namespace teak {

bool snapshot_isolation(THD* thd) {
    const unsigned long value = THDVAR(thd, snapshot_isolation);
    return value == SNAPSHOT_ISOLATION_INNODB ? innodb_snapshot_isolation(thd) : value == SNAPSHOT_ISOLATION_ON;
}
uint64_t sort_buffer_bytes(THD* thd) { return THDVAR(thd, sort_buffer_size); }
uint64_t lock_wait_timeout_ms(THD* thd) {
    const long seconds = THDVAR(thd, lock_wait_timeout);
    return (seconds < 0 ? innodb_lock_wait_timeout(thd) : static_cast<uint64_t>(seconds)) * 1000;
}
ForeignKeysMode foreign_keys_mode(THD* thd) {
    const auto mode = static_cast<ForeignKeysMode>(THDVAR(thd, foreign_keys));
    return mode == ForeignKeysMode::Error && thd->slave_thread ? ForeignKeysMode::Warn : mode;
}
bool warns_of_backups(THD* thd) { return THDVAR(thd, backup_warning); }
bool rollback_on_timeout() { return rolls_back_on_timeout; }
bool commits_are_durable() { return flush_log_at_trx_commit == 1; }

ha_create_table_option table_options[] = {HA_TOPTION_NUMBER("BLOCK_SIZE", block_size, 0, 0, 1 << 20, 4096),
                                          HA_TOPTION_ENUM("COMPRESSION", compression, "zstd,lz4,none", 0),
                                          HA_TOPTION_NUMBER("COMPRESSION_LEVEL", compression_level, 0, 0, 19, 1),
                                          HA_TOPTION_BOOL("RECOMPRESS", recompress, false),
                                          HA_TOPTION_BOOL("SIMILARITY", similarity, false),
                                          HA_TOPTION_SYSVAR("IN_MEMORY", in_memory, default_in_memory),
                                          HA_TOPTION_NUMBER("MEMORY_LIMIT", memory_limit, 0, 0, LLONG_MAX, 1),
                                          HA_TOPTION_END};

} // namespace teak

// A table of information_schema.
static constexpr st_maria_plugin table_plugin(const char* name, const char* what, st_mysql_information_schema* table,
                                              int (*start)(void*)) {
    return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
            table,
            name,
            "Teak",
            what,
            PLUGIN_LICENSE_GPL,
            start,
            nullptr,
            0x0001,
            nullptr,
            nullptr,
            "0.1",
            MariaDB_PLUGIN_MATURITY_STABLE};
}

// The engine has the lowest maturity that a stable server loads without plugin_maturity, and the server says so in the
// error log at each start. The tables of information_schema hold nothing and are loaded with it: no notices of their
// own.
/* The server refuses a plugin of another version in words that name neither, and goes on without it. This runs when the
   library is opened, before that. */
__attribute__((constructor)) void tell_of_another_server() {
    const size_t digits = strcspn(MYSQL_SERVER_VERSION, "-");
    if (!server_version[0] ||
        (strncmp(server_version, MYSQL_SERVER_VERSION, digits) == 0 && strcspn(server_version, "-") == digits))
        return;
    sql_print_error(
        "Teak: this ha_teak.so was built for MariaDB %.*s, and the server is %s: it cannot be loaded. Tables "
        "of Teak stay as they are. Install the Teak that was built for this server, or the server for this "
        "Teak, and start again; see docs/operations.md, \"Another server\".",
        static_cast<int>(digits), MYSQL_SERVER_VERSION, server_version);
}

maria_declare_plugin(teak){MYSQL_STORAGE_ENGINE_PLUGIN,
                           &descriptor,
                           "Teak",
                           "Teak",
                           "Transactions, row locks, snapshots that cost nothing, compressed tables",
                           PLUGIN_LICENSE_GPL,
                           start,
                           stop,
                           0x0001,
                           status_variables,
                           plugin_variables,
                           "0.1",
                           MariaDB_PLUGIN_MATURITY_GAMMA},
    table_plugin("TEAK_TABLES", "Sizes of tables and indexes before and after compression", &teak::tables_descriptor,
                 teak::init_tables_table),
    table_plugin("TEAK_FOREIGN", "Foreign keys of tables of Teak", &teak::foreign_descriptor, teak::init_foreign_table),
    table_plugin("TEAK_FOREIGN_COLS", "Columns of foreign keys of tables of Teak", &teak::foreign_columns_descriptor,
                 teak::init_foreign_columns_table),
    table_plugin("TEAK_DEADLOCKS", "The last deadlocks over locks of Teak", &teak::deadlocks_descriptor,
                 teak::init_deadlocks_table),
    table_plugin("TEAK_INDEXES", "Sizes of trees of open tables of Teak, and how they were used",
                 &teak::indexes_descriptor, teak::init_indexes_table),
    table_plugin("TEAK_LOCK_WAITS", "Transactions that wait for locks of Teak, and who is in their way",
                 &teak::lock_waits_descriptor, teak::init_lock_waits_table),
    table_plugin("TEAK_LOCKS", "Locks of Teak that are held", &teak::locks_descriptor, teak::init_locks_table),
    table_plugin("TEAK_MEMORY", "What the memory of Teak is for", &teak::memory_descriptor, teak::init_memory_table),
    table_plugin("TEAK_METRICS", "What Teak counts, with its meaning", &teak::metrics_descriptor,
                 teak::init_metrics_table),
    table_plugin("TEAK_SNAPSHOTS", "Open snapshots of Teak and what is kept for each", &teak::snapshots_descriptor,
                 teak::init_snapshots_table),
    table_plugin("TEAK_TRX", "Open transactions of Teak, and those that are prepared", &teak::trx_descriptor,
                 teak::init_trx_table) maria_declare_plugin_end;
