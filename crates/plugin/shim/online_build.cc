#include "online_build.h"
#include "session.h"

namespace teak {
namespace {

/* So few changed rows the last time may leave for when nobody can write. */
constexpr uint64_t kFewRows = 1000;
/* Writers may be faster than this is: then it does not get less any more. */
constexpr uint kLeastTurns = 3, kMostTurns = 30;

} // namespace

bool compute_columns(TABLE* table, std::vector<Field*>* keyed) {
    THD* const thd = table->in_use;
    if (!thd->is_strict_mode()) {
        table->update_virtual_fields(table->file, VCOL_UPDATE_FOR_READ);
        return true;
    }
    /* Of those that are only read nobody is told: the server would read them without a word, too. */
    Dummy_error_handler silence;
    thd->push_internal_handler(&silence);
    table->update_virtual_fields(table->file, VCOL_UPDATE_FOR_READ);
    thd->pop_internal_handler();
    const Abort_on_warning_instant_set strict(thd, true);
    Field** const all = table->vfield;
    table->vfield = keyed->data();
    table->update_virtual_fields(table->file, VCOL_UPDATE_FOR_WRITE);
    table->vfield = all;
    if (!thd->is_error()) return true;
    /* So errors that were warnings end a statement; this one has them to tell. */
    if (thd->killed == KILL_BAD_DATA) thd->reset_killed();
    return false;
}

int OnlineBuild::begin(THD* thd, teak_table* rows, teak_table* into, const std::vector<uint32_t>& trees) {
    return error_code(teak_online_new(rows, into, {trees.data(), trees.size()}, sort_buffer_bytes(thd),
                                      thd_get_thread_id(thd), &handle_),
                      thd);
}

int OnlineBuild::run(THD* thd, teak_session* session, const RowReading& reading, ulonglong rows, const Stages& stages) {
    Stage stage(thd, stages.filling, 3);
    int error = fill(thd, session, reading, rows);
    filled_ = true;
    if (!error) {
        stage.next_part(stages.following);
        error = follow(thd, reading);
    }
    return error;
}

int OnlineBuild::finish(THD* thd, const RowReading& reading) {
    uint64_t changed;
    int error = catch_up(thd, reading, &changed);
    return error ? error : note(thd, teak_online_finish(handle_), nullptr);
}

int OnlineBuild::fill(THD* thd, teak_session* session, const RowReading& reading, ulonglong rows) {
    teak_build* build = nullptr;
    teak_status status = teak_online_build(handle_, &build);
    if (status != TEAK_OK) return error_code(status, thd);
    if (reading.by_session) teak_build_use_one_thread(build);
    reading.progress->expected = std::max<ulonglong>(rows, 1);
    int error = error_code(teak_build_feed(session, build, &reading.functions, reading.context), thd);
    if (!error) {
        Progress progress{thd, teak_build_entries(build)};
        thd_progress_next_stage(thd);
        error = note(thd, teak_build_finish(build, Progress::report, &progress), build);
    }
    teak_build_free(build);
    return error;
}

int OnlineBuild::follow(THD* thd, const RowReading& reading) {
    uint64_t changed = UINT64_MAX;
    for (uint turn = 1; turn <= kMostTurns && changed > kFewRows; turn++) {
        const uint64_t before = changed;
        if (int error = catch_up(thd, reading, &changed)) return error;
        if (turn > kLeastTurns && changed >= before) return 0;
    }
    return 0;
}

int OnlineBuild::catch_up(THD* thd, const RowReading& reading, uint64_t* changed) {
    reading.progress->expected = std::max<uint64_t>(teak_online_noted(handle_), 1);
    return note(thd, teak_online_catch_up(handle_, &reading.functions, reading.context, changed), nullptr);
}

/* `build`: which one had the status, if not that of the turns. */
int OnlineBuild::note(THD* thd, teak_status status, const teak_build* build) {
    if (status != TEAK_DUPLICATE) return error_code(status, thd);
    const teak_entry_view entry = teak_online_duplicate_entry(handle_, build, &part_);
    key_.assign(entry.key.data, entry.key.data + entry.key.len);
    value_.assign(entry.value.data, entry.value.data + entry.value.len);
    return HA_ERR_FOUND_DUPP_KEY;
}

} // namespace teak
