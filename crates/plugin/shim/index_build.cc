/*
  See index_build.h.
*/
#include "index_build.h"
#include "ha_teak.h"

namespace teak {

namespace {

constexpr ha_rows kRowsBetweenReports = 4096;

} // namespace

int IndexBuild::run(const std::vector<const IndexCodec*>& indexes, const std::vector<uint32_t>& trees) {
    teak_build* build = nullptr;
    teak_status status =
        teak_build_new(open_.core, {trees.data(), trees.size()}, sort_buffer_bytes(open_.thd()), &build);
    if (status != TEAK_OK) return open_.fail(status);
    THD* thd = open_.thd();
    /* Two parts, reading the rows and loading what was sorted, unless a copy of the server's is under way, which has
       one. */
    Stage stage(thd, stages::building_indexes, use_.statement.copies ? 0 : 2);
    int error = feed({build, nullptr}, indexes);
    if (!error) {
        Progress progress{thd, teak_build_entries(build)};
        stage.next_part();
        status = teak_build_finish(build, Progress::report, &progress);
        error = status == TEAK_DUPLICATE ? read_duplicate(teak_build_duplicate(build, &duplicate_part_))
                                         : open_.fail(status);
    }
    teak_build_free(build);
    return error;
}

int IndexBuild::feed(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    /* Only the server can compute virtual columns, and only in its TABLE. */
    return open_.table->vfield ? feed_record_by_record(target, indexes) : feed_by_threads(target, indexes);
}

int IndexBuild::feed_by_threads(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    if (int error = use_.ready()) return error;
    MY_BITMAP columns;
    if (my_bitmap_init(&columns, nullptr, open_.table->s->fields)) return HA_ERR_OUT_OF_MEM;
    open_.note_columns(indexes, &columns);
    RowScan scan{{open_.thd(), std::max<ha_rows>(file_.estimate_rows_upper_bound(), 1)},
                 {&open_.rows, &open_.primary, &indexes, &columns, open_.table->s->rec_buff_length}};
    const teak_row_reader reader{RowScan::begin, RowScan::row, RowScan::end, RowScan::watch};
    int error = open_.fail(target.feed(use_.session(), &reader, &scan));
    my_bitmap_free(&columns);
    return error;
}

/* Two rows have one key: reads one of them, and leaves the scan open so that its BLOBs stay until it is shown. */
int IndexBuild::read_duplicate(teak_bytes pk) {
    WholeRows whole(open_.table, use_.statement.reads_latest);
    if (int error = file_.ha_rnd_init(false)) return error;
    int error = file_.read_row(open_.table->record[0], pk);
    return error ? error : HA_ERR_FOUND_DUPP_KEY;
}

int IndexBuild::feed_record_by_record(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    WholeRows whole(open_.table, target.build ? use_.statement.reads_latest : use_.statement.reads_snapshot);
    Progress progress{open_.thd(), std::max<ha_rows>(file_.estimate_rows_upper_bound(), 1)};
    if (int error = file_.ha_rnd_init(true)) return error;
    int error;
    ha_rows done = 0;
    Buffer key, value;
    while (!(error = file_.ha_rnd_next(open_.table->record[0]))) {
        teak_bytes pk = file_.current_key();
        for (uint32_t part = 0; part < indexes.size() && !error; part++) {
            teak_entry entry;
            if (!indexes[part]->encode(open_.table->record[0], pk, &key, &value, &entry))
                error = HA_ERR_OUT_OF_MEM;
            else
                error = open_.fail(target.add(part, entry.key, entry.value));
        }
        if (error) break;
        if (++done % kRowsBetweenReports == 0 && Progress::report(&progress, done)) {
            error = HA_ERR_ABORTED_BY_USER;
            break;
        }
    }
    int ended = file_.ha_rnd_end();
    if (error == HA_ERR_END_OF_FILE) error = 0;
    return error ? error : ended;
}

} // namespace teak
