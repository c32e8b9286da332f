/*
  Indexes that are not kept up row by row: ALTER TABLE ... DISABLE KEYS and ENABLE KEYS, and those of a table that ALTER
  copies into. Both are built at the end, in one pass over the rows (teak_build).

  Which indexes are disabled is in the table's metadata. DISABLE gives these indexes new empty trees; until ENABLE has
  made the built trees durable and said so, they count for nothing.
*/
#include "ha_teak.h"
#include "row_scan.h"

using namespace teak;

namespace {

constexpr ha_rows kRowsBetweenReports = 4096;
/* Fewer rows than these are not worth another pass over them. */
constexpr ha_rows kRowsToDefer = 1000;
/* Fewer rows are not worth gathering. */
constexpr ha_rows kRowsToAppend = 64;

} // namespace

/* What DISABLE KEYS leaves alone: an index that keeps rows apart, or that AUTO_INCREMENT or a foreign key needs. */
bool ha_teak::may_be_disabled(uint index) const {
    const KEY& key = table->key_info[index];
    return index != table->s->primary_key && !(key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH &&
           !(table->s->found_next_number_field && table->s->next_number_index == index) && !constraints_.needs(index);
}

/* The table's metadata says from now on that `disabled` are; those in `renewed` begin anew, empty. */
int ha_teak::alter_indexes(ulonglong disabled, ulonglong renewed) {
    TableMeta meta = open_.meta;
    std::vector<uint32_t> layout{0};
    for (uint32_t tree = 1; tree <= meta.indexes.size(); tree++) {
        uint index = open_.index_of(tree);
        bool known = index != MAX_KEY;
        layout.push_back(known && renewed & 1ULL << index ? TEAK_NEW_TREE : tree);
        if (known) meta.indexes[tree - 1].disabled = disabled & 1ULL << index;
    }
    int error = open_.alter_trees(layout, meta);
    return error ? error : info(HA_STATUS_CONST | HA_STATUS_VARIABLE);
}

/* `map`: what stays enabled. */
int ha_teak::disable_indexes(key_map map, bool persist) {
    if (!persist) return HA_ERR_WRONG_COMMAND;
    if (int error = use_.ready()) return error;
    ulonglong disabled = open_.disabled_indexes;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !map.is_set(i)) disabled |= 1ULL << i;
    if (disabled == open_.disabled_indexes) return 0;
    return alter_indexes(disabled, disabled & ~open_.disabled_indexes);
}

int ha_teak::enable_indexes(key_map map, bool persist) {
    if (!persist) return open_.disabled_indexes ? HA_ERR_WRONG_COMMAND : 0;
    if (int error = use_.ready()) return error;
    ulonglong enabled = open_.disabled_indexes & map.to_ulonglong();
    if (!enabled) return 0;
    /* What a build that did not come to its end may have left. */
    if (int error = alter_indexes(open_.disabled_indexes, enabled)) return error;
    int error = build_indexes(enabled);
    if (error) return error;
    return alter_indexes(open_.disabled_indexes & ~enabled, 0);
}

int ha_teak::indexes_are_disabled() {
    if (!open_.disabled_indexes) return 0;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !(open_.disabled_indexes & 1ULL << i)) return 1;
    return 2;
}

int ha_teak::build_indexes(ulonglong indexes) {
    std::vector<const IndexCodec*> codecs;
    for (uint i = 0; i < table->s->keys; i++)
        if (indexes & 1ULL << i) codecs.push_back(&open_.indexes[i]);
    int error = build(codecs, open_.trees_of(indexes));
    if (error != HA_ERR_FOUND_DUPP_KEY) return error;
    use_.held.session->duplicate = {table, open_.index_of(open_.trees_of(indexes)[use_.statement.duplicate_part])};
    ha_rnd_end();
    return error;
}

/* Fills `trees` with the entries that `indexes` make of the rows. */
int ha_teak::build(const std::vector<const IndexCodec*>& indexes, const std::vector<uint32_t>& trees) {
    teak_build* build = nullptr;
    teak_status status = teak_build_new(open_.core, {trees.data(), trees.size()}, sort_buffer_bytes(ha_thd()), &build);
    if (status != TEAK_OK) return fail(status);
    THD* thd = ha_thd();
    const char* before = thd_proc_info(thd, "Building indexes");
    /* Two stages, reading the rows and loading what was sorted, unless a copy of the server's is under way, which has
       one. */
    const bool stages = !use_.statement.copies;
    if (stages) thd_progress_init(thd, 2);
    int error = feed({build, nullptr}, indexes);
    if (!error) {
        Progress progress{thd, teak_build_entries(build)};
        if (stages) thd_progress_next_stage(thd);
        status = teak_build_finish(build, Progress::report, &progress);
        error = status == TEAK_DUPLICATE ? read_duplicate(teak_build_duplicate(build, &use_.statement.duplicate_part))
                                         : fail(status);
    }
    if (stages) thd_progress_end(thd);
    thd_proc_info(thd, before);
    teak_build_free(build);
    return error;
}

/* Gives the entries that `indexes` make of all rows to a build, or to a check. */
int ha_teak::feed(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    /* Only the server can compute virtual columns, and only in its TABLE. */
    return table->vfield ? feed_record_by_record(target, indexes) : feed_by_threads(target, indexes);
}

int ha_teak::feed_by_threads(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    if (int error = use_.ready()) return error;
    MY_BITMAP columns;
    if (my_bitmap_init(&columns, nullptr, table->s->fields)) return HA_ERR_OUT_OF_MEM;
    open_.note_columns(indexes, &columns);
    RowScan scan{{ha_thd(), std::max<ha_rows>(estimate_rows_upper_bound(), 1)},
                 {&open_.rows, &open_.primary, &indexes, &columns, table->s->rec_buff_length}};
    const teak_row_reader reader{RowScan::begin, RowScan::row, RowScan::end, RowScan::watch};
    int error = fail(target.feed(use_.session(), &reader, &scan));
    my_bitmap_free(&columns);
    return error;
}

/* Two rows have one key: reads one of them, and leaves the scan open so that its BLOBs stay until it is shown. */
int ha_teak::read_duplicate(teak_bytes pk) {
    WholeRows whole(table, use_.statement.reads_latest);
    if (int error = ha_rnd_init(false)) return error;
    int error = read_row(table->record[0], pk);
    return error ? error : HA_ERR_FOUND_DUPP_KEY;
}

int ha_teak::feed_record_by_record(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes) {
    WholeRows whole(table, target.build ? use_.statement.reads_latest : use_.statement.reads_snapshot);
    Progress progress{ha_thd(), std::max<ha_rows>(estimate_rows_upper_bound(), 1)};
    if (int error = ha_rnd_init(true)) return error;
    int error;
    ha_rows done = 0;
    Buffer key, value;
    while (!(error = ha_rnd_next(table->record[0]))) {
        teak_bytes pk = bytes_of(current_pk_.data(), current_pk_length_);
        for (uint32_t part = 0; part < indexes.size() && !error; part++) {
            teak_entry entry;
            if (!indexes[part]->encode(table->record[0], pk, &key, &value, &entry))
                error = HA_ERR_OUT_OF_MEM;
            else
                error = fail(target.add(part, entry.key, entry.value));
        }
        if (error) break;
        if (++done % kRowsBetweenReports == 0 && Progress::report(&progress, done)) {
            error = HA_ERR_ABORTED_BY_USER;
            break;
        }
    }
    int ended = ha_rnd_end();
    if (error == HA_ERR_END_OF_FILE) error = 0;
    return error ? error : ended;
}

void ha_teak::start_bulk_insert(ha_rows rows, uint) {
    use_.statement.has_many_rows = rows >= kRowsToDefer;
    /* 0: the server does not know. */
    use_.statement.appends = rows == 0 || rows >= kRowsToAppend;
    use_.statement.sorts = use_.statement.appends && may_sort() && use_.ready() == 0;
    if (use_.statement.sorts) teak_session_set_sort_bytes(use_.session(), sort_buffer_bytes(ha_thd()));
    defer_indexes();
}

/*
  Whether a duplicate key may be told at the end of the statement. Not to who may have read the rows before
  (triggers), who skips single errors (a replica) or looks at the keys by reading before each row (long unique keys,
  WITHOUT OVERLAPS); nor by one of several partitions, as the server asks the last that was written to what the key was.
*/
bool ha_teak::may_sort() const {
    return !table->triggers && !table->s->long_unique_table && !table->s->period.unique_keys && !table->part_info &&
           !ha_thd()->slave_thread;
}

/* A table that ALTER copies into is seen by nobody else: its indexes can wait until the rows are there. */
void ha_teak::defer_indexes() {
    if (!use_.statement.has_many_rows || !use_.statement.copies || use_.statement.deferred_indexes || use_.ready() != 0)
        return;
    teak_cursor* rows = open_.cursor_of(0);
    if (!rows) return;
    teak_entry_view entry;
    teak_status status =
        teak_cursor_seek(use_.session(), rows, TEAK_SEEK_FIRST, {nullptr, 0}, nullptr, TEAK_READ_LATEST, &entry);
    teak_cursor_reset(rows);
    if (status != TEAK_NOT_FOUND && status != TEAK_END) return;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !(open_.disabled_indexes & 1ULL << i)) use_.statement.deferred_indexes |= 1ULL << i;
}

/* After a duplicate that was told late the record becomes a row that has the key, for the message. It is not read: the
   statement may have others that wait to be written, and that would come first. */
void ha_teak::show_duplicate(const teak_duplicate& duplicate) {
    if (duplicate.row.len) open_.show_row(duplicate.pk, duplicate.row, this, &blobs_);
}

int ha_teak::end_append() {
    teak_duplicate duplicate{};
    const int error =
        note_duplicate(teak_append_end(use_.session(), open_.core, use_.statement.copies, &duplicate), duplicate);
    if (error == HA_ERR_FOUND_DUPP_KEY) show_duplicate(duplicate);
    return error;
}

int ha_teak::end_bulk_insert() {
    use_.statement.has_many_rows = false;
    int error = 0;
    if (std::exchange(use_.statement.appends, false) && use_.held.session) error = end_append();
    use_.statement.sorts = false;
    ulonglong deferred = std::exchange(use_.statement.deferred_indexes, 0);
    if (!error && deferred) error = build_indexes(deferred);
    /* INSERT ... VALUES looks here and not at what is returned. */
    if (error) my_errno = error;
    return error;
}
