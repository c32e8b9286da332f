/*
  Indexes that are not kept up row by row: ALTER TABLE ... DISABLE KEYS and ENABLE KEYS, and those of a table that ALTER copies into.
  Both are built at the end, in one pass over the rows (teak_build).

  Which indexes are disabled is in the table's metadata: version byte, then from version 1 on the set as 8 bytes, if it is not empty.
  DISABLE gives these indexes new empty trees; until ENABLE has made the built trees durable and said so, they count for nothing.
*/
#include "ha_teak.h"

using namespace teak;

namespace {

constexpr uchar kMetaHead[] = {'T', 'e', 'a', 'k', 1};
constexpr size_t kMetaBytes = sizeof kMetaHead + 8;
constexpr ha_rows kRowsBetweenReports = 4096;
/* A build ends with a checkpoint, which fewer rows than these are not worth. */
constexpr ha_rows kRowsToDefer = 10000;

} // namespace

namespace teak {

MetaBytes::MetaBytes(ulonglong disabled) {
    memcpy(bytes_, kMetaHead, sizeof kMetaHead);
    int8store(bytes_ + sizeof kMetaHead, disabled);
    length_ = disabled ? kMetaBytes : sizeof kMetaHead;
}

ulonglong disabled_indexes(teak_bytes meta) {
    return meta.len < kMetaBytes ? 0 : uint8korr(meta.data + sizeof kMetaHead);
}

} // namespace teak

/* What DISABLE KEYS leaves alone: an index that keeps rows apart, or that AUTO_INCREMENT needs. */
bool ha_teak::may_be_disabled(uint index) const {
    const KEY& key = table->key_info[index];
    return index != table->s->primary_key && !(key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH &&
           !(table->s->found_next_number_field && table->s->next_number_index == index);
}

std::vector<uint32_t> ha_teak::trees_of(ulonglong indexes) const {
    std::vector<uint32_t> trees;
    for (uint i = 0; i < table->s->keys; i++)
        if (indexes & 1ULL << i) trees.push_back(tree_of(i));
    return trees;
}

/* The table's metadata says from now on that `disabled` are; those in `renewed` begin anew, empty. */
int ha_teak::alter_indexes(ulonglong disabled, ulonglong renewed) {
    std::vector<uint32_t> trees = trees_of(renewed);
    MetaBytes meta(disabled);
    close_table();
    teak_status status =
        teak_table_alter(plugin.engine, bytes_of(reinterpret_cast<const uchar*>(name_.data()), name_.size()),
                         trees.data(), trees.size(), meta.bytes());
    int error = fail(status);
    share_->generation++;
    int reopened = open_table();
    if (!error) error = reopened;
    if (!error) error = info(HA_STATUS_CONST | HA_STATUS_VARIABLE);
    return error;
}

/* `map`: what stays enabled. */
int ha_teak::disable_indexes(key_map map, bool persist) {
    if (!persist) return HA_ERR_WRONG_COMMAND;
    if (int error = ready()) return error;
    ulonglong disabled = disabled_indexes_;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !map.is_set(i)) disabled |= 1ULL << i;
    if (disabled == disabled_indexes_) return 0;
    return alter_indexes(disabled, disabled & ~disabled_indexes_);
}

int ha_teak::enable_indexes(key_map map, bool persist) {
    if (!persist) return disabled_indexes_ ? HA_ERR_WRONG_COMMAND : 0;
    if (int error = ready()) return error;
    ulonglong enabled = disabled_indexes_ & map.to_ulonglong();
    if (!enabled) return 0;
    /* What a build that did not come to its end may have left. */
    if (int error = alter_indexes(disabled_indexes_, enabled)) return error;
    THD* thd = ha_thd();
    const char* stage = thd_proc_info(thd, "Building indexes");
    thd_progress_init(thd, 1);
    int error = build_indexes(enabled);
    thd_progress_end(thd);
    thd_proc_info(thd, stage);
    if (error) return error;
    return alter_indexes(disabled_indexes_ & ~enabled, 0);
}

int ha_teak::indexes_are_disabled() {
    if (!disabled_indexes_) return 0;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !(disabled_indexes_ & 1ULL << i)) return 1;
    return 2;
}

/* Fills the trees of `indexes` from the rows. */
int ha_teak::build_indexes(ulonglong indexes) {
    std::vector<uint32_t> trees = trees_of(indexes);
    teak_build* build = nullptr;
    teak_status status =
        teak_build_new(table_, trees.data(), trees.size(), sort_buffer_bytes(ha_thd()), &build);
    if (status != TEAK_OK) return fail(status);
    MY_BITMAP* read_set = tmp_use_all_columns(table, &table->read_set);
    reads_for_build_ = true;
    int error = feed_build(build, indexes);
    reads_for_build_ = false;
    tmp_restore_column_map(&table->read_set, read_set);
    if (!error) error = fail(teak_build_finish(build));
    teak_build_free(build);
    return error;
}

int ha_teak::feed_build(teak_build* build, ulonglong indexes) {
    THD* thd = ha_thd();
    const ha_rows rows = std::max<ha_rows>(estimate_rows_upper_bound(), 1);
    if (int error = ha_rnd_init(true)) return error;
    int error;
    ha_rows done = 0;
    while (!(error = ha_rnd_next(table->record[0]))) {
        uint32_t part = 0;
        for (uint i = 0; i < table->s->keys && !error; i++) {
            if (!(indexes & 1ULL << i)) continue;
            EntryBuffers& buffers = *entry_buffers_[i];
            teak_entry entry;
            if (!indexes_[i].encode(table->record[0], bytes_of(current_pk_.data(), current_pk_length_),
                                    &buffers.new_key, &buffers.new_value, &entry))
                error = HA_ERR_OUT_OF_MEM;
            else if (entry.key.data)
                error = fail(teak_build_add(build, part, entry.key, entry.value));
            part++;
        }
        if (error) break;
        if (++done % kRowsBetweenReports == 0) {
            if (thd_kill_level(thd) != THD_IS_NOT_KILLED) {
                error = HA_ERR_ABORTED_BY_USER;
                break;
            }
            thd_progress_report(thd, done, std::max(rows, done));
        }
    }
    int ended = ha_rnd_end();
    if (error == HA_ERR_END_OF_FILE) error = 0;
    return error ? error : ended;
}

void ha_teak::start_bulk_insert(ha_rows rows, uint) {
    bulk_insert_ = rows >= kRowsToDefer;
    defer_indexes();
}

/* A table that ALTER copies into is seen by nobody else: its indexes can wait until the rows are there. */
void ha_teak::defer_indexes() {
    if (!bulk_insert_ || !copying_alter_ || deferred_indexes_ || ready() != 0) return;
    teak_cursor* rows = cursor_of(0);
    if (!rows) return;
    teak_entry_view entry;
    teak_status status =
        teak_cursor_seek(session(), rows, TEAK_SEEK_FIRST, {nullptr, 0}, nullptr, TEAK_READ_LATEST, &entry);
    teak_cursor_reset(rows);
    if (status != TEAK_NOT_FOUND && status != TEAK_END) return;
    for (uint i = 0; i < table->s->keys; i++)
        if (may_be_disabled(i) && !(disabled_indexes_ & 1ULL << i)) deferred_indexes_ |= 1ULL << i;
}

int ha_teak::end_bulk_insert() {
    bulk_insert_ = false;
    ulonglong deferred = std::exchange(deferred_indexes_, 0);
    return deferred ? build_indexes(deferred) : 0;
}
