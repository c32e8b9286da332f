/*
  Names for performance_schema, and what it is told under them. The server offers PSI_server for that, which does
  nothing if performance_schema is off: no key is given out then.
*/
#include "instruments.h"

#include <iterator>
#include <mutex>
#include <string_view>

namespace teak {

namespace stages {
PSI_stage_info applying_changes_to_indexes{0, "Applying changes to indexes", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info applying_changes_to_table{0, "Applying changes to the table", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info awaiting_range{0, "Waiting for a range lock", 0};
PSI_stage_info awaiting_row{0, "Waiting for a row lock", 0};
PSI_stage_info building_indexes{0, "Building indexes", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info checking_foreign_keys{0, "Checking foreign keys", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info checking_table{0, "Checking table", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info exporting_table{0, "Exporting the table", 0};
PSI_stage_info importing_table{0, "Importing the table", 0};
PSI_stage_info packing_table{0, "Packing table", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info rebuilding_table{0, "Rebuilding the table", PSI_FLAG_STAGE_PROGRESS};
} // namespace stages

namespace {

PSI_stage_info* all_stages[] = {
    &stages::applying_changes_to_indexes,
    &stages::applying_changes_to_table,
    &stages::awaiting_range,
    &stages::awaiting_row,
    &stages::building_indexes,
    &stages::checking_foreign_keys,
    &stages::checking_table,
    &stages::exporting_table,
    &stages::importing_table,
    &stages::packing_table,
    &stages::rebuilding_table,
};

/* Threads are called teak-NAME, or teak-NAME-NUMBER; the last name is for those that are not here. */
constexpr std::string_view kThreadNames[] = {
    "ahead",    "alike",    "block",    "build",  "checkpoint", "compare", "copy", "evict", "history", "inspect",
    "log-read", "log-scan", "log-sync", "replay", "restore",    "scan",    "sort", "write", "worker"};
constexpr size_t kThreads = std::size(kThreadNames);
PSI_thread_key thread_keys[kThreads];

PSI_file_key file_keys[TEAK_FILE_OTHER + 1];
PSI_file_info files[] = {{&file_keys[TEAK_FILE_TABLE], "table", 0},
                         {&file_keys[TEAK_FILE_LOG], "log", 0},
                         {&file_keys[TEAK_FILE_TEMPORARY], "temporary", 0},
                         {&file_keys[TEAK_FILE_OTHER], "other", 0}};

PSI_thread_key thread_key(std::string_view name) {
    constexpr std::string_view kPrefix = "teak-";
    if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
    name = name.substr(0, name.find_last_not_of("0123456789") + 1);
    if (!name.empty() && name.back() == '-') name.remove_suffix(1);
    for (size_t i = 0; i < kThreads; i++)
        if (kThreadNames[i] == name) return thread_keys[i];
    return thread_keys[kThreads - 1];
}

void thread_begins(const char* name, size_t len) {
    PSI_thread* thread = PSI_THREAD_CALL(new_thread)(thread_key({name, len}), nullptr, 0);
    if (!thread) return;
    PSI_THREAD_CALL(set_thread_os_id)(thread);
    PSI_THREAD_CALL(set_thread)(thread);
}

void thread_ends() { PSI_THREAD_CALL(delete_current_thread)(); }

static_assert(sizeof(PSI_file_locker_state) <= sizeof(teak_file_wait));

void* file_begins(teak_file_wait* wait, const teak_file_event* event) {
    auto* state = reinterpret_cast<PSI_file_locker_state*>(wait);
    const auto operation = static_cast<PSI_file_operation>(event->operation);
    if (event->name) {
        PSI_file_locker* locker =
            PSI_FILE_CALL(get_thread_file_name_locker)(state, file_keys[event->kind], operation, event->name, event);
        if (!locker) return nullptr;
        if (operation == PSI_FILE_OPEN)
            PSI_FILE_CALL(start_file_open_wait)(locker, __FILE__, __LINE__);
        else
            PSI_FILE_CALL(start_file_close_wait)(locker, __FILE__, __LINE__);
        return locker;
    }
    auto* file = static_cast<PSI_file*>(event->file);
    PSI_file_locker* locker = PSI_FILE_CALL(get_thread_file_stream_locker)(state, file, operation);
    if (!locker) return nullptr;
    if (operation == PSI_FILE_CLOSE)
        PSI_FILE_CALL(start_file_close_wait)(locker, __FILE__, __LINE__);
    else
        PSI_FILE_CALL(start_file_wait)(locker, event->bytes, __FILE__, __LINE__);
    return locker;
}

void* file_ends(void* begun, const teak_file_event* event, size_t bytes, int failed) {
    auto* locker = static_cast<PSI_file_locker*>(begun);
    switch (static_cast<PSI_file_operation>(event->operation)) {
    case PSI_FILE_OPEN:
        return PSI_FILE_CALL(end_file_open_wait)(locker, failed ? nullptr : begun);
    case PSI_FILE_CLOSE:
    case PSI_FILE_DELETE:
        PSI_FILE_CALL(end_file_close_wait)(locker, failed);
        return nullptr;
    default:
        PSI_FILE_CALL(end_file_wait)(locker, failed ? static_cast<size_t>(-1) : bytes);
        return nullptr;
    }
}

} // namespace

teak_instruments register_instruments() {
    PSI_thread_info threads[kThreads];
    /* The server copies names. */
    for (size_t i = 0; i < kThreads; i++)
        threads[i] = {&thread_keys[i], kThreadNames[i].data(), 0};
    PSI_THREAD_CALL(register_thread)("teak", threads, kThreads);
    PSI_FILE_CALL(register_file)("teak", files, static_cast<int>(std::size(files)));
    const bool lists_threads = thread_keys[0];
    const bool lists_files = file_keys[0];
    return {lists_threads ? thread_begins : nullptr, lists_threads ? thread_ends : nullptr,
            lists_files ? file_begins : nullptr, lists_files ? file_ends : nullptr};
}

void register_stages() {
    static std::once_flag once;
    std::call_once(once, [] {
        PSI_STAGE_CALL(register_stage)("teak", all_stages, static_cast<int>(std::size(all_stages)));
    });
}

Stage::Stage(THD* thd, const PSI_stage_info& what, uint parts) : thd_(thd), has_parts_(parts) {
    thd->backup_stage(&before_);
    if (has_parts_) thd_progress_init(thd, parts);
    begin(what, what.m_name);
}

Stage::Stage(THD* thd, const PSI_stage_info& what, const char* text) : thd_(thd), has_parts_(false) {
    thd->backup_stage(&before_);
    begin(what, text);
}

Stage::~Stage() {
    if (has_parts_) thd_progress_end(thd_);
    begin(before_, before_.m_name);
}

void Stage::next_part() {
    if (has_parts_) thd_progress_next_stage(thd_);
}

void Stage::next_part(const PSI_stage_info& what) {
    next_part();
    begin(what, what.m_name);
}

/* As THD::enter_stage, which calls what the server does not give plugins. */
void Stage::begin(const PSI_stage_info& what, const char* text) {
    register_stages();
    thd_proc_info(thd_, text);
    thd_->m_stage_progress_psi = PSI_STAGE_CALL(start_stage)(what.m_key, __FILE__, __LINE__);
}

} // namespace teak
