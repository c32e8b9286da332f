/*
  Row operations, AUTO_INCREMENT, and how statements lock.
*/
#include "ha_teak.h"
#include "server_contracts.h"
#include <algorithm>

using namespace teak;

namespace {

bool skips_locked(thr_lock_type lock_type) {
    return lock_type == TL_WRITE_SKIP_LOCKED || lock_type == TL_READ_SKIP_LOCKED;
}

} // namespace

teak_bytes ha_teak::primary_key_of(const uchar* record, Buffer* to) {
    uchar* key = to->room(open_.primary.max_size());
    if (!key) return {nullptr, 0};
    if (!open_.primary.hidden()) return {key, open_.primary.encode(key, record)};
    /* The row was read before it can be changed. */
    memcpy(key, current_pk_.data(), current_pk_length_);
    return {key, current_pk_length_};
}

teak_bytes ha_teak::pack_row(const uchar* record) {
    uchar* to = row_buffer_.room(open_.rows.packed_size(record));
    if (!to) return {nullptr, 0};
    return {to, open_.rows.pack(to, record)};
}

uint32_t ha_teak::row_flags() const {
    uint32_t flags = 0;
    if (open_.temporary || use_.statement.copies) flags |= TEAK_ROW_PRIVATE;
    if (use_.statement.replaces) flags |= TEAK_ROW_LOCK_DUPLICATE;
    if (is_sequence()) flags |= TEAK_ROW_APART;
    return flags;
}

/* The same for a change of a row that stays at its place. */
uint32_t ha_teak::row_flags_of(teak_bytes pk) const {
    const teak_window* window = open_.windows.empty() ? nullptr : open_.windows[0];
    const bool passed = window && window->opened && window->step == 1 && window->moment == *use_.held.session->moment &&
                        pk.len == current_pk_length_ && !memcmp(pk.data, current_pk_.data(), pk.len);
    return row_flags() | (passed ? TEAK_ROW_PASSED : 0);
}

int ha_teak::note_duplicate(teak_status status, const teak_duplicate& duplicate) {
    if (status != TEAK_DUPLICATE) return fail(status);
    errkey = duplicate.tree ? open_.index_of(duplicate.tree) : table->s->primary_key;
    use_.held.session->duplicate = {table, errkey};
    return HA_ERR_FOUND_DUPP_KEY;
}

/* A value past the counter, stored into the AUTO_INCREMENT column, moves it. */
void ha_teak::raise_counter() {
    if (uint64_t value = open_.counted_value()) teak_counter_raise(use_.session(), open_.core, value);
}

/* Whether a write to the row goes over what was committed after the snapshot; see teak_row_overtakes. */
int ha_teak::note_overtaking(teak_bytes pk, bool* overtakes) {
    *overtakes = false;
    if (!use_.held.session->lenient || open_.temporary || use_.statement.copies || is_sequence()) return 0;
    const teak_status status = teak_row_overtakes(use_.session(), open_.core, pk);
    if (status == TEAK_NOT_FOUND) return 0;
    if (status != TEAK_OK) return fail(status);
    *overtakes = use_.held.session->overtook = true;
    return 0;
}

/*
  The session may itself have changed the row since it was read: by a BEFORE trigger, by a function, and by what follows
  from those. Then the row that is there is the old one; and of the new one, columns that the statement does not change
  are as they are there. `new_record` is nullptr, or points to it. HA_ERR_KEY_NOT_FOUND: the row has gone.
*/
int ha_teak::find_own_changes(teak_bytes pk, const uchar** old_record, const uchar** new_record) {
    const uint64_t written = use_.held.session->rows_written++;
    if (written == read_as_of_ || open_.temporary || use_.statement.copies || is_sequence()) return 0;
    teak_cursor* cursor;
    if (teak_cursor_new(open_.core, 0, false, &cursor) != TEAK_OK) return HA_ERR_OUT_OF_MEM;
    const size_t bytes = table->s->rec_buff_length;
    uchar *is = own_old_.room(bytes), *becomes = own_new_.room(bytes);
    teak_entry_view row;
    const teak_status status = teak_cursor_get(use_.session(), cursor, pk, TEAK_READ_LATEST, &row);
    int error = status == TEAK_NOT_FOUND ? HA_ERR_KEY_NOT_FOUND : fail(status);
    if (!error && (!is || !becomes)) error = HA_ERR_OUT_OF_MEM;
    if (!error) {
        memcpy(is, *old_record, table->s->reclength);
        const bool intact = open_.rows.unpack(row.value, is, &own_blobs_, nullptr) &&
                            (open_.primary.hidden() || open_.primary.decode(row.key, is));
        if (!intact) error = HA_ERR_CRASHED_ON_USAGE;
    }
    teak_cursor_free(cursor);
    if (error || open_.rows.same(*old_record, is)) return error;
    if (new_record) {
        memcpy(becomes, *new_record, table->s->reclength);
        open_.rows.take_unchanged(*old_record, is, becomes);
        *new_record = becomes;
    }
    *old_record = is;
    return 0;
}

int ha_teak::write_row(const uchar* buf) {
    CountedCall call(handler_stats);
    if (int error = use_.ready()) return error;
    if (use_.held.may_miss && passes_over(Change::Insert)) return 0;
    const bool bounded = use_.held.max_rows && !use_.statement.copies;
    if (bounded && teak_table_rows(use_.session(), open_.core) >= use_.held.max_rows) return HA_ERR_RECORD_FILE_FULL;
    if (open_.unbuilt_unique != MAX_KEY) return kUnbuiltUnique;
    if (open_.primary.cuts_columns()) return HA_ERR_TABLE_NEEDS_UPGRADE;
    bool counted = table->next_number_field && buf == table->record[0];
    if (counted)
        if (int error = update_auto_increment()) return error;
    uint32_t flags = row_flags();
    bool constrained = false;
    if (int error = constraints_.prepare(&constrained)) return error;
    constrained = constrained && constraints_.has_parents();
    /* Rows that are appended are counted late. */
    if (use_.statement.appends && !bounded && !use_.statement.replaces && !constrained && !is_sequence())
        flags |= use_.statement.sorts && !use_.statement.ignores_duplicates ? TEAK_ROW_MANY_OR_NONE : TEAK_ROW_MANY;
    teak_bytes pk;
    if (open_.primary.hidden()) {
        uchar* key = pk_buffer_.room(kRowIdBytes);
        if (!key) return HA_ERR_OUT_OF_MEM;
        mi_int8store(key, teak_next_row_id(open_.core));
        pk = {key, kRowIdBytes};
        flags |= TEAK_ROW_FRESH_KEY;
    } else
        pk = primary_key_of(buf, &pk_buffer_);
    teak_bytes row = pack_row(buf);
    if (!pk.data || !row.data) return HA_ERR_OUT_OF_MEM;
    size_t entries = 0;
    for (uint i = 0; i < table->s->keys; i++) {
        if (i == table->s->primary_key || use_.is_idle(i)) continue;
        if (!entries_.has_virtual_values(open_.indexes[i]))
            entries_.compute_virtual(open_.indexes[i], const_cast<uchar*>(buf), RowEntries::Image::Written);
        if (!entries_.encode(i, buf, RowEntries::Image::Written, pk, &entries_.written[entries++]))
            return HA_ERR_OUT_OF_MEM;
    }
    use_.held.session->rows_written++;
    if (int error = insert_row(buf, pk, row, entries, flags, constrained)) return error;
    remember(pk);
    statistics_.note_changed_keys();
    /* Also after a generated value: SET INSERT_ID generates without asking the counter. */
    if (counted) raise_counter();
    return 0;
}

/* Puts in the row and its entries, and looks for its parents. */
int ha_teak::insert_row(const uchar* record, teak_bytes pk, teak_bytes row, size_t entries, uint32_t flags,
                        bool constrained) {
    bool again;
    do {
        again = false;
        if (constrained)
            if (int error = constraints_.mark_row()) return error;
        teak_duplicate duplicate{};
        const teak_status status =
            teak_insert(use_.session(), open_.core, pk, row, {entries_.written.data(), entries}, flags, &duplicate);
        if (status != TEAK_OK) {
            const int error = note_duplicate(status, duplicate);
            if (duplicate.late) show_duplicate(duplicate);
            return error;
        }
        bool overtakes;
        if (!(flags & TEAK_ROW_FRESH_KEY))
            if (int error = note_overtaking(pk, &overtakes)) return error;
        if (constrained)
            if (int error = constraints_.look_at_parents(record, nullptr, &again)) return error;
    } while (again);
    return 0;
}

int ha_teak::update_row(const uchar* old_record, const uchar* new_record) {
    CountedCall call(handler_stats);
    if (int error = use_.ready()) return error;
    if (use_.held.may_miss && passes_over(Change::Other)) return 0;
    if (open_.unbuilt_unique != MAX_KEY) return kUnbuiltUnique;
    if (open_.primary.cuts_columns()) return HA_ERR_TABLE_NEEDS_UPGRADE;
    teak_bytes old_pk = primary_key_of(old_record, &pk_buffer_);
    if (!old_pk.data) return HA_ERR_OUT_OF_MEM;
    const uchar *const was_read = old_record, *const given = new_record;
    if (int error = find_own_changes(old_pk, &old_record, &new_record)) return error;
    const bool changed = old_record != was_read;
    bool moved = !open_.primary.hidden() && open_.primary.changed(old_record, new_record);
    /* The server leaves it to an engine that need not read all columns to see that nothing changes. What is to be
       updated was read whole. */
    if (!moved && open_.rows.same(old_record, new_record)) return HA_ERR_RECORD_IS_THE_SAME;
    bool constrained = false;
    if (int error = constraints_.prepare(&constrained)) return error;
    if (constrained)
        if (int error =
                constraints_.look_at_children(old_record, constraints_.follower_of(old_record, new_record), old_pk))
            return error;
    teak_bytes new_pk = moved ? primary_key_of(new_record, &new_pk_buffer_) : old_pk;
    if (!new_pk.data) return HA_ERR_OUT_OF_MEM;
    bool overtakes;
    if (int error = note_overtaking(old_pk, &overtakes)) return error;
    size_t entries = 0;
    for (uint i = 0; i < table->s->keys; i++) {
        if (i == table->s->primary_key || use_.is_idle(i)) continue;
        const IndexCodec& index = open_.indexes[i];
        const bool computes = changed ? !index.virtual_columns().empty() : !entries_.has_virtual_values(index);
        if (!moved && !overtakes && !computes && !index.changed(old_record, new_record)) continue;
        if (computes) entries_.compute_virtual(index, const_cast<uchar*>(old_record), RowEntries::Image::Read);
        if (!entries_.encode(i, old_record, RowEntries::Image::Read, old_pk, &entries_.read[entries]))
            return HA_ERR_OUT_OF_MEM;
        if (computes) entries_.compute_virtual(index, const_cast<uchar*>(new_record), RowEntries::Image::Written);
        if (!entries_.encode(i, new_record, RowEntries::Image::Written, new_pk, &entries_.written[entries]))
            return HA_ERR_OUT_OF_MEM;
        entries++;
    }
    if (int error = change_row(old_record, new_record, old_pk, new_pk, entries, overtakes, constrained)) return error;
    if (moved || entries) statistics_.note_changed_keys();
    if (table->found_next_number_field && given == table->record[0] &&
        bitmap_is_set(table->write_set, table->found_next_number_field->field_index))
        raise_counter();
    return 0;
}

/* Makes the row `after` of `before`, and the entries that are written of those that were read; its children follow, its
   parents are looked for. `rewrites`: also entries that stay as they are. */
int ha_teak::change_row(const uchar* before, const uchar* after, teak_bytes old_pk, teak_bytes new_pk, size_t entries,
                        bool rewrites, bool constrained) {
    const teak_bytes row = pack_row(after);
    if (!row.data) return HA_ERR_OUT_OF_MEM;
    const bool moved = new_pk.data != old_pk.data;
    bool again;
    do {
        again = false;
        if (constrained)
            if (int error = constraints_.mark_row()) return error;
        const uint32_t flags = (moved ? row_flags() : row_flags_of(old_pk)) | (rewrites ? TEAK_ROW_REWRITES : 0);
        teak_duplicate duplicate{};
        const teak_status status =
            teak_update(use_.session(), open_.core, old_pk, new_pk, row, {entries_.read.data(), entries},
                        {entries_.written.data(), entries}, flags, &duplicate);
        if (status != TEAK_OK) return note_duplicate(status, duplicate);
        bool overtakes;
        if (moved)
            if (int error = note_overtaking(new_pk, &overtakes)) return error;
        if (!constrained) return 0;
        const uchar* const follower = constraints_.follower_of(before, after);
        if (constraints_.has_to_cascade(before, follower))
            if (int error = constraints_.cascade(before, follower, new_pk)) return constraints_.undo_row(error);
        if (int error = constraints_.look_at_parents(after, open_.end.is_history(before) ? nullptr : before, &again))
            return error;
    } while (again);
    return 0;
}

int ha_teak::delete_row(const uchar* buf) {
    CountedCall call(handler_stats);
    if (int error = use_.ready()) return error;
    if (use_.held.may_miss && passes_over(Change::Other)) return 0;
    teak_bytes pk = primary_key_of(buf, &pk_buffer_);
    if (!pk.data) return HA_ERR_OUT_OF_MEM;
    const uchar* const was_read = buf;
    if (int error = find_own_changes(pk, &buf, nullptr)) return error;
    const bool changed = buf != was_read;
    bool overtakes;
    if (int error = note_overtaking(pk, &overtakes)) return error;
    bool constrained = false;
    if (int error = constraints_.prepare(&constrained)) return error;
    if (constrained)
        if (int error = constraints_.look_at_children(buf, nullptr, pk)) return error;
    const bool cascades = constrained && constraints_.has_to_cascade(buf, nullptr);
    if (cascades)
        if (int error = constraints_.mark_row()) return error;
    size_t entries = 0;
    for (uint i = 0; i < table->s->keys; i++) {
        if (i == table->s->primary_key || use_.is_idle(i)) continue;
        const IndexCodec& index = open_.indexes[i];
        if (changed || !entries_.has_virtual_values(index))
            entries_.compute_virtual(index, const_cast<uchar*>(buf), RowEntries::Image::Read);
        if (!entries_.encode(i, buf, RowEntries::Image::Read, pk, &entries_.read[entries++])) return HA_ERR_OUT_OF_MEM;
    }
    statistics_.note_changed_keys();
    const teak_status status =
        teak_delete(use_.session(), open_.core, pk, {entries_.read.data(), entries}, row_flags_of(pk));
    if (status != TEAK_OK || !cascades) return fail(status);
    int error = constraints_.cascade(buf, nullptr, {nullptr, 0});
    return error ? constraints_.undo_row(error) : 0;
}

void ha_teak::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                                 ulonglong* reserved) {
    uint64_t value = 0;
    *first = ULONGLONG_MAX;
    *reserved = 0;
    if (use_.ready()) return;
    if (teak_counter_reserve(use_.session(), open_.core, offset, increment, std::max<ulonglong>(wanted, 1), &value) !=
        TEAK_OK)
        return;
    *first = value;
    *reserved = std::max<ulonglong>(wanted, 1);
}

int ha_teak::set_counter(THD* thd, ulonglong value) {
    if (int error = use_.ready()) return error;
    return error_code(teak_counter_set(use_.session(), open_.core, value), thd);
}

int ha_teak::reset_auto_increment(ulonglong value) { return set_counter(ha_thd(), std::max<ulonglong>(value, 1)); }

int ha_teak::extra(enum ha_extra_function operation) {
    switch (operation) {
    case HA_EXTRA_KEYREAD:
    case HA_EXTRA_NO_KEYREAD:
        use_.statement.entries_only = operation == HA_EXTRA_KEYREAD;
        break;
    case HA_EXTRA_WRITE_CAN_REPLACE:
    case HA_EXTRA_INSERT_WITH_UPDATE:
        use_.statement.replaces = true;
        break;
    case HA_EXTRA_IGNORE_DUP_KEY:
        use_.statement.ignores_duplicates = true;
        break;
    case HA_EXTRA_WRITE_CANNOT_REPLACE:
        use_.statement.replaces = false;
        break;
    case HA_EXTRA_NO_IGNORE_DUP_KEY:
        use_.statement.replaces = use_.statement.ignores_duplicates = false;
        break;
    case HA_EXTRA_BEGIN_COPY:
    case HA_EXTRA_BEGIN_ALTER_IGNORE_COPY:
        use_.statement.copies = true;
        if (operation == HA_EXTRA_BEGIN_ALTER_IGNORE_COPY) use_.statement.ignores_duplicates = true;
        defer_indexes();
        break;
    case HA_EXTRA_ABORT_COPY:
        /* The table is dropped: end_bulk_insert, which is still to come, has nothing to build. */
        use_.statement.deferred_indexes = 0;
        [[fallthrough]];
    case HA_EXTRA_END_COPY:
        use_.statement.copies = false;
        break;
    default:
        break;
    }
    return 0;
}

/*
  Three calls say which rows a statement locks. For each table of a statement the server calls store_lock, and then
  external_lock; under LOCK TABLES, and for a statement within a function or trigger, start_stmt in their place.

    statement                                   rows that it reads are locked
    -----------------------------------------   -----------------------------------------------------------------------
    writes to the table, SELECT ... FOR UPDATE  exclusive: external_lock(F_WRLCK), whatever store_lock has said
    reads it                                    as row_lock_of says (store_lock)
    ... and that says not at all                shared with SERIALIZABLE in a transaction, but for ALTER (external_lock)
    under LOCK TABLES, within a function        as the table is locked for all of it; a plain SELECT not at all, but for
                                                SERIALIZABLE (start_stmt)
    uses a temporary table under LOCK TABLES    exclusive: nobody else is there (start_stmt without external_lock)

  row_lock_of, for a table that is read:

    statement                                       TL_READ   TL_READ_NO_INSERT   other locks
    ---------------------------------------------   -------   -----------------   -----------
    SELECT                                          no (1)    shared              shared (2)
    CHECK, CHECKSUM, FLUSH, HANDLER,
    CREATE SEQUENCE                                 no        no                  no
    ANALYZE                                         no        shared              shared
    ALTER, CREATE and DROP INDEX, OPTIMIZE (3)      no        no                  shared
    INSERT ... SELECT, REPLACE ... SELECT,
    UPDATE, CREATE ... SELECT                       (4)       (4)                 shared
    all others                                      shared    shared              shared

    (1) TL_READ_HIGH_PRIORITY likewise; shared where thd_in_lock_tables() is true
    (2) LOCK IN SHARE MODE, SKIP LOCKED; for locks for writing comes F_WRLCK
    (3) as the source of a copy: the metadata lock keeps writers out, or (TL_READ, since MariaDB 11.2) what they write
        from the first row on is noted and brought after: the copy is of a snapshot
    (4) not up to READ COMMITTED, shared from REPEATABLE READ on
*/
static RowLock row_lock_of(THD* thd, enum thr_lock_type lock_type) {
    const bool plain = lock_type == TL_READ || lock_type == TL_READ_NO_INSERT;
    const auto shared_if = [](bool locks) { return locks ? RowLock::Shared : RowLock::None; };
    switch (thd_sql_command(thd)) {
    case SQLCOM_SELECT:
        if (lock_type == TL_READ || lock_type == TL_READ_HIGH_PRIORITY) return shared_if(thd_in_lock_tables(thd));
        return shared_if(lock_type == TL_READ_WITH_SHARED_LOCKS || lock_type == TL_READ_SKIP_LOCKED ||
                         lock_type == TL_READ_NO_INSERT);
    case SQLCOM_CHECK: /* misplaced rows of partitions are looked for in a snapshot */
    case SQLCOM_CHECKSUM:
    case SQLCOM_CREATE_SEQUENCE:
    case SQLCOM_FLUSH:
    case SQLCOM_HA_OPEN:
    case SQLCOM_HA_READ:
        return RowLock::None;
    case SQLCOM_ANALYZE:
        return shared_if(lock_type != TL_READ);
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE:
        return shared_if(!plain);
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_CREATE_TABLE:
        return shared_if(!plain || thd_tx_isolation(thd) > ISO_READ_COMMITTED);
    default:
        return RowLock::Shared;
    }
}

THR_LOCK_DATA** ha_teak::store_lock(THD* thd, THR_LOCK_DATA** to, enum thr_lock_type lock_type) {
    const int command = thd_sql_command(thd);
    if (lock_type == TL_IGNORE || command == SQLCOM_DROP_TABLE || command == SQLCOM_DROP_SEQUENCE) return to;
    use_.held.rows = use_.held.rows_of_all = row_lock_of(thd, lock_type);
    use_.held.skips_locked = skips_locked(lock_type);
    use_.held.writes = lock_type >= TL_FIRST_WRITE;
    return to;
}

int ha_teak::external_lock(THD* thd, int lock_type) {
    if (lock_type == F_UNLCK) {
        end_export();
        if (use_.held.may_miss) use_.held.session->lost_row = {};
        use_.held = {};
        return 0;
    }
    RowLock rows = use_.held.rows;
    if (lock_type == F_WRLCK)
        rows = RowLock::Exclusive;
    else if (rows == RowLock::None && thd_tx_isolation(thd) == ISO_SERIALIZABLE && in_transaction(thd) &&
             thd_sql_command(thd) != SQLCOM_ALTER_TABLE)
        rows = RowLock::Shared;
    if (int error = use_.prepare(thd, rows != RowLock::None)) return error;
    if (!use_.held.session->stale.empty()) drop_stale_results(thd);
    use_.held.by_server = true;
    use_.held.rows = rows;
    use_.held.rows_of_all = use_.held.rows;
    return lock_type == F_RDLCK && is_export(thd) ? export_table(thd) : 0;
}

int ha_teak::start_stmt(THD* thd, thr_lock_type lock_type) {
    if (int error = use_.prepare(thd, true)) return error;
    use_.held.skips_locked = skips_locked(lock_type);
    if (!use_.held.by_server) {
        /* A temporary table made under LOCK TABLES, for which external_lock is not called. */
        use_.held.by_server = true;
        use_.held.rows = RowLock::Exclusive;
    } else if (thd_sql_command(thd) == SQLCOM_SELECT && lock_type == TL_READ &&
               thd_tx_isolation(thd) != ISO_SERIALIZABLE)
        use_.held.rows = RowLock::None;
    else
        use_.held.rows = use_.held.rows_of_all;
    return 0;
}

/* Not by the name that the caller has: of a partition, the server's multi-range reads have the table's. */
handler* ha_teak::clone(const char*, MEM_ROOT* root) {
    auto* copy = static_cast<ha_teak*>(handler::clone(open_.name.c_str(), root));
    if (copy) {
        if (wanted_.makes_reader) copy->rows_reader_ = this;
        copy->use_.held = use_.held;
    }
    return copy;
}
