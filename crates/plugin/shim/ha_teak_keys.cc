/*
  Indexes that are not kept up row by row: ALTER TABLE ... DISABLE KEYS and ENABLE KEYS, and those of a table that ALTER
  copies into. Both are built at the end (index_build.h).

  Which indexes are disabled is in the table's metadata. DISABLE gives these indexes new empty trees; until ENABLE has
  made the built trees durable and said so, they count for nothing.
*/
#include "ha_teak.h"
#include "index_build.h"

using namespace teak;

namespace {

/* Fewer rows than these are not worth another pass over them. */
constexpr ha_rows kRowsToDefer = 1000;
/* Fewer rows are not worth gathering. */
constexpr ha_rows kRowsToAppend = 64;

} // namespace

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
    IndexBuild build(*this, open_, use_);
    const int error = build.run(codecs, open_.trees_of(indexes));
    if (error != HA_ERR_FOUND_DUPP_KEY) return error;
    use_.held.session->duplicate = {table, open_.index_of(open_.trees_of(indexes)[build.duplicate_part()])};
    ha_rnd_end();
    return error;
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
    CountedCall call(handler_stats);
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
