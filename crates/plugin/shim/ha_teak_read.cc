/*
  Scans and look-ups.

  Each call of the server is one call over the border, except that entries which a pushed condition turns down are
  passed over here, that a row behind a secondary entry is a second call, and that scans take what they can from the
  cursor's window (scan_window.h).
*/
#include <algorithm>

#include "ha_teak.h"

using namespace teak;

namespace {

bool is_locking(uint32_t mode) { return (mode & 3) == TEAK_READ_SHARED || (mode & 3) == TEAK_READ_EXCLUSIVE; }

} // namespace

int ha_teak::deliver_row(uchar* buf, const teak_entry_view& row) {
    /* Who may update the row needs all of it: the new row is packed from the record. */
    const MY_BITMAP* wanted = use_.held.rows == RowLock::Exclusive ? nullptr : table->read_set;
    open_.rows.choose(wanted, &open_.chosen);
    if (!open_.rows.unpack_chosen(row.value, buf, &blobs_, wanted, open_.chosen)) return HA_ERR_CRASHED_ON_USAGE;
    if (!open_.primary.hidden() && !open_.primary.decode(row.key, buf)) return HA_ERR_CRASHED_ON_USAGE;
    if (row.key.len > current_pk_.size()) return HA_ERR_CRASHED_ON_USAGE;
    remember(row.key);
    return 0;
}

/* Whether the server looks at whole columns though it asks for an index only that has prefixes of them: it compares all
   columns of a key WITHOUT OVERLAPS (handler::ha_check_overlaps), and of an index whose order it merges from several
   partitions (key_rec_cmp). What restores an entry does not fill those. */
static bool compares_prefixes(const KEY& key, bool merges) {
    if (!key.without_overlaps && !merges) return false;
    return std::any_of(key.key_part, key.key_part + key.user_defined_key_parts,
                       [](const KEY_PART_INFO& part) { return part.key_part_flag & (HA_PART_KEY_SEG | HA_BLOB_PART); });
}

/* Whether entries of the active index have all that the server looks at. It also asks for an index only where it wants
   the primary key's columns: index_merge leaves out what is in a range of that key. */
inline bool ha_teak::fills_record(const IndexCodec& codec) {
    return (keyread_enabled() || use_.statement.entries_only) && codec.gives_back() &&
           !codec.lacks_any(table->read_set) &&
           !compares_prefixes(table->key_info[active_index], scan_.sorted && table->part_info);
}

/* Brings the row of an entry that the cursor of the active index stands on into `buf`, if it is wanted and can be had.
   */
int ha_teak::deliver_entry(uchar* buf, teak_cursor* cursor, const teak_entry_view& entry, Found* found) {
    const IndexCodec& codec = open_.indexes[active_index];
    const uint32_t mode = use_.read_mode();
    if (use_.held.session->overtook && mode == TEAK_READ_SNAPSHOT) return deliver_own_entry(buf, cursor, entry, found);
    teak_bytes pk;
    if (!primary_of(entry, &pk)) return HA_ERR_CRASHED_ON_USAGE;
    bool matches;
    *found = Found::Unwanted;
    if (int error = check_entry(codec, entry, pk, &matches)) return error;
    /* A transaction that has not committed may yet take back what does not match: then what it replaced counts. */
    if (!matches && is_locking(mode)) {
        if (int error = check_committed(codec, cursor, &matches)) return error;
        if (matches && !primary_of(entry, &pk)) return HA_ERR_CRASHED_ON_USAGE;
    }
    if (!matches) return 0;
    const bool covered = fills_record(codec);
    if (covered && (mode & 3) == TEAK_READ_SNAPSHOT) {
        *found = Found::Delivered;
        remember(pk);
        return restore_entry(codec, entry, buf);
    }
    teak_cursor* rows = open_.cursor_of(0);
    if (!rows) return HA_ERR_OUT_OF_MEM;
    teak_entry_view row, again;
    teak_status status =
        teak_fetch_row(use_.session(), cursor, rows, pk, mode, &row, is_locking(mode) ? &again : nullptr);
    if (status == TEAK_NOT_FOUND) {
        *found = is_locking(mode) && !(mode & TEAK_READ_SKIP_LOCKED) ? Found::Gone : Found::Unwanted;
        return 0;
    }
    if (status != TEAK_OK) return fail(status);
    /* While the lock was waited for the key may have passed to another row, or its text to other letters. */
    if (is_locking(mode)) {
        if (int error = check_entry(codec, again, row.key, &matches)) return error;
        if (!matches) {
            unlock_row();
            return 0;
        }
    }
    *found = Found::Delivered;
    if (!covered) {
        if (int error = deliver_row(buf, row)) return error;
        /* In other records than its first the server computes nothing, but compares the keys of partitions by them; and
           nothing at all if it has asked for the entry. */
        if (buf != table->record[0] || keyread_enabled() || use_.statement.entries_only)
            entries_.compute_virtual(codec, buf, RowEntries::Image::Read);
        return 0;
    }
    remember(row.key);
    return restore_entry(codec, is_locking(mode) ? again : entry, buf);
}

/* A row for a server that looks at nothing but what the entry has. */
inline int ha_teak::restore_entry(const IndexCodec& codec, const teak_entry_view& entry, uchar* buf) {
    if (kPoisons) open_.rows.poison(buf);
    return codec.restore(entry, buf) ? 0 : HA_ERR_CRASHED_ON_USAGE;
}

/* Brings what the cursor of the active index stands on into `buf`; moves on in `direction` over what does not match. */
int ha_teak::deliver(uchar* buf, teak_status status, teak_entry_view entry, Direction direction, int at_end) {
    teak_cursor* cursor = open_.cursors[open_.tree_of(active_index)];
    for (;;) {
        if (status == TEAK_NOT_FOUND || status == TEAK_END) return at_end;
        if (status != TEAK_OK) return fail(status);
        if (on_primary()) return deliver_row(buf, entry);
        if (scan_.placed == Placed::ByPrefix) {
            uchar* to = exact_key_.room(entry.key.len);
            if (!to) return HA_ERR_OUT_OF_MEM;
            memcpy(to, entry.key.data, entry.key.len);
            scan_.exact_key_length = entry.key.len;
        }
        Found found;
        if (int error = deliver_entry(buf, cursor, entry, &found)) return error == HA_ERR_END_OF_FILE ? at_end : error;
        if (found == Found::Delivered) return 0;
        status = step(open_.tree_of(active_index), direction, &entry);
    }
}

/* Moves the cursor of a tree, which there is, by one entry. */
teak_status ha_teak::step(uint32_t tree, Direction direction, teak_entry_view* entry) {
    const bool forward = direction == Direction::Forward;
    if (take(open_.windows[tree], *use_.held.session->moment, forward ? 1 : -1, entry)) return TEAK_OK;
    return forward ? teak_cursor_next(use_.session(), open_.cursors[tree], entry)
                   : teak_cursor_prev(use_.session(), open_.cursors[tree], entry);
}

/* The window of a scan that goes on from where it is; nullptr if the scan has to look closer. */
inline teak_window* ha_teak::open_window(uint32_t tree) const {
    if (!use_.is_begun() || use_.held.may_miss || open_.windows.empty()) return nullptr;
    return scan_.placed == Placed::Anywhere && !scan_.owes_move ? open_.windows[tree] : nullptr;
}

/* Brings the next row of such a scan into `buf`, if its window has it; false: the engine has to be asked. */
inline bool ha_teak::take_row(uchar* buf, Direction direction, int* error) {
    teak_window* const window = open_window(0);
    teak_entry_view row;
    if (!window || !take(window, *use_.held.session->moment, direction == Direction::Forward ? 1 : -1, &row))
        return false;
    *error = deliver_row(buf, row);
    return true;
}

/* The same of an index, for who wants nothing but what its entries have, without a condition on it. */
inline bool ha_teak::take_entry(uchar* buf, Direction direction, int* error) {
    teak_window* const window = open_window(open_.trees[active_index]);
    if (!window || pushed_idx_cond || pushed_rowid_filter || use_.held.session->overtook) return false;
    const IndexCodec& codec = open_.indexes[active_index];
    if (use_.read_mode() != TEAK_READ_SNAPSHOT || !fills_record(codec)) return false;
    teak_entry_view entry;
    if (!take(window, *use_.held.session->moment, direction == Direction::Forward ? 1 : -1, &entry)) return false;
    teak_bytes pk;
    if (!primary_of(entry, &pk)) {
        *error = HA_ERR_CRASHED_ON_USAGE;
        return true;
    }
    remember(pk);
    *error = restore_entry(codec, entry, buf);
    return true;
}

/* Looks a key up with the cursor of a tree, which there is. */
teak_status ha_teak::look_up(uint32_t tree, teak_bytes key, uint32_t mode, teak_entry_view* entry) {
    if (mode == TEAK_READ_SNAPSHOT && take_equal(open_.windows[tree], *use_.held.session->moment, key, entry))
        return TEAK_OK;
    return teak_cursor_get(use_.session(), open_.cursors[tree], key, mode, entry);
}

int ha_teak::seek(uchar* buf, uint32_t where, teak_bytes key, const teak_bound* end) {
    scan_.owes_move = false;
    if (int error = use_.ready()) return error;
    teak_cursor* cursor = open_.cursor_of(open_.tree_of(active_index));
    if (!cursor) return HA_ERR_OUT_OF_MEM;
    teak_entry_view entry;
    teak_status status = teak_cursor_seek(use_.session(), cursor, where, key, end, use_.read_mode(), &entry);
    bool down = where == TEAK_SEEK_LAST || where == TEAK_SEEK_AT_OR_BEFORE || where == TEAK_SEEK_BEFORE;
    return deliver(buf, status, entry, down ? Direction::Backward : Direction::Forward, HA_ERR_KEY_NOT_FOUND);
}

/* Goes to the first or the last entry whose key begins with `key`, which seek_key_ has; the scan ends with the last. */
int ha_teak::seek_prefix(uchar* buf, uint32_t where, teak_bytes key) {
    const teak_bound bound{key, TEAK_BOUND_INCLUDE};
    scan_.placed = Placed::ByPrefix;
    const int error = seek(buf, where, key, &bound);
    if (error == HA_ERR_KEY_NOT_FOUND) scan_.placed = Placed::Missed;
    return error;
}

bool ha_teak::range_end(teak_bound* out) {
    if (!scan_.range_end) return false;
    *out = bound_of(open_.key_codec(active_index), scan_.range_end, &end_key_);
    if (scan_.range_end->flag == HA_READ_BEFORE_KEY) out->kind = TEAK_BOUND_EXCLUDE;
    return out->kind != TEAK_BOUND_NONE;
}

int ha_teak::index_init(uint index, bool sorted) {
    if (use_.is_idle(index)) return HA_ERR_WRONG_INDEX;
    active_index = index;
    scan_ = {};
    scan_.sorted = sorted;
    return 0;
}

int ha_teak::index_end() {
    sorted_ranges_.dsmrr_close();
    open_.reset_cursors();
    active_index = MAX_KEY;
    scan_ = {};
    return 0;
}

int ha_teak::index_read_map(uchar* buf, const uchar* key, key_part_map parts, enum ha_rkey_function flag) {
    CountedCall call(handler_stats);
    const int error = find_key(buf, key, parts, flag);
    return use_.held.may_miss ? or_lost_row(buf, error, Asked::ByKey) : error;
}

int ha_teak::find_key(uchar* buf, const uchar* key, key_part_map parts, enum ha_rkey_function flag) {
    if (!key) {
        if (flag == HA_READ_PREFIX_LAST || flag == HA_READ_PREFIX_LAST_OR_PREV || flag == HA_READ_BEFORE_KEY)
            return index_last(buf);
        return index_first(buf);
    }
    expect(&(rows_reader_ ? rows_reader_ : this)->wanted_.coming_entries, open_.tree_of(active_index));
    const KeyCodec& codec = open_.key_codec(active_index);
    uchar* to = seek_key_.room(codec.max_size());
    if (!to) return HA_ERR_OUT_OF_MEM;
    uint done;
    bool has_null;
    uchar* end = codec.encode_tuple(to, key, calculate_key_len(table, active_index, key, parts), &done, &has_null);
    teak_bytes encoded{to, static_cast<size_t>(end - to)};
    scan_.placed = Placed::Anywhere;
    scan_.sought_key_length = encoded.len;
    switch (flag) {
    case HA_READ_KEY_EXACT: {
        bool whole = on_primary() ? done == open_.primary.parts()
                                  : open_.indexes[active_index].unique() &&
                                        done == open_.indexes[active_index].user_parts() && !has_null;
        if (!whole) {
            return seek_prefix(buf, TEAK_SEEK_AT_OR_AFTER, encoded);
        }
        scan_.placed = Placed::ByPoint;
        scan_.owes_move = false;
        if (int error = use_.ready()) return error;
        teak_cursor* cursor = open_.cursor_of(open_.tree_of(active_index));
        if (!cursor) return HA_ERR_OUT_OF_MEM;
        /* Nothing else has this key: if its entry goes while its row is waited for it is looked up again, which keeps
           it missing then. */
        Found found;
        do {
            teak_entry_view entry;
            teak_status status = look_up(open_.tree_of(active_index), encoded, use_.read_mode(), &entry);
            if (status != TEAK_OK) return fail(status);
            if (on_primary()) return deliver_row(buf, entry);
            if (int error = deliver_entry(buf, cursor, entry, &found)) return error;
        } while (found == Found::Gone);
        return found == Found::Delivered ? 0 : HA_ERR_KEY_NOT_FOUND;
    }
    case HA_READ_KEY_OR_NEXT: {
        teak_bound limit;
        bool limited = range_end(&limit);
        return seek(buf, TEAK_SEEK_AT_OR_AFTER, encoded, limited ? &limit : nullptr);
    }
    case HA_READ_AFTER_KEY: {
        teak_bound limit;
        bool limited = range_end(&limit);
        return seek(buf, TEAK_SEEK_AFTER, encoded, limited ? &limit : nullptr);
    }
    case HA_READ_PREFIX_LAST:
        return seek_prefix(buf, TEAK_SEEK_AT_OR_BEFORE, encoded);
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV:
        return seek(buf, TEAK_SEEK_AT_OR_BEFORE, encoded, nullptr);
    case HA_READ_BEFORE_KEY:
        return seek(buf, TEAK_SEEK_BEFORE, encoded, nullptr);
    default:
        return HA_ERR_UNSUPPORTED;
    }
}

int ha_teak::move(uchar* buf, Direction direction) {
    if (int error = use_.ready()) return error;
    teak_cursor* cursor = open_.cursor_of(open_.tree_of(active_index));
    if (!cursor) return HA_ERR_OUT_OF_MEM;
    teak_entry_view entry;
    teak_status status;
    if (std::exchange(scan_.owes_move, false)) {
        status = teak_cursor_next(use_.session(), cursor, &entry);
        if (direction == Direction::Forward || (status != TEAK_OK && status != TEAK_END))
            return deliver(buf, status, entry, direction, HA_ERR_END_OF_FILE);
    }
    status = step(open_.tree_of(active_index), direction, &entry);
    return deliver(buf, status, entry, direction, HA_ERR_END_OF_FILE);
}

/* `move` of a scan that need not end with the key that placed it. */
int ha_teak::move_on(uchar* buf, Direction direction) {
    uint32_t where = direction == Direction::Forward ? TEAK_SEEK_AFTER : TEAK_SEEK_BEFORE;
    teak_bytes from{seek_key_.data(), scan_.sought_key_length};
    switch (scan_.placed) {
    case Placed::Missed:
        break;
    case Placed::ByPrefix:
        if (const int error = move(buf, direction); error != HA_ERR_END_OF_FILE) return error;
        from = on_primary() ? bytes_of(current_pk_.data(), current_pk_length_)
                            : bytes_of(exact_key_.data(), scan_.exact_key_length);
        break;
    case Placed::Passed:
        if (direction == Direction::Backward) {
            where = TEAK_SEEK_AT_OR_BEFORE;
            break;
        }
        [[fallthrough]];
    case Placed::Anywhere:
    case Placed::ByPoint:
        scan_.placed = Placed::Anywhere;
        return move(buf, direction);
    }
    scan_.placed = Placed::Anywhere;
    const int error = seek(buf, where, from, nullptr);
    return error == HA_ERR_KEY_NOT_FOUND ? HA_ERR_END_OF_FILE : error;
}

int ha_teak::index_next(uchar* buf) {
    int error;
    if (on_primary() ? take_row(buf, Direction::Forward, &error) : take_entry(buf, Direction::Forward, &error))
        return error;
    CountedCall call(handler_stats);
    error = move_on(buf, Direction::Forward);
    return use_.held.may_miss ? or_lost_row(buf, error, Asked::ByStep) : error;
}

int ha_teak::index_prev(uchar* buf) {
    int error;
    if (on_primary() ? take_row(buf, Direction::Backward, &error) : take_entry(buf, Direction::Backward, &error))
        return error;
    CountedCall call(handler_stats);
    return move_on(buf, Direction::Backward);
}

int ha_teak::index_next_same(uchar* buf, const uchar* key, uint key_length) {
    CountedCall call(handler_stats);
    switch (scan_.placed) {
    case Placed::ByPrefix:
        if (!scan_.owes_move && is_last(open_.windows[open_.tree_of(active_index)], *use_.held.session->moment)) {
            scan_.owes_move = true;
            return HA_ERR_END_OF_FILE;
        }
        return move(buf, Direction::Forward);
    case Placed::ByPoint:
        scan_.placed = Placed::Passed;
        return HA_ERR_END_OF_FILE;
    case Placed::Missed:
    case Placed::Passed:
        return HA_ERR_END_OF_FILE;
    case Placed::Anywhere:
        break;
    }
    return handler::index_next_same(buf, key, key_length);
}

int ha_teak::index_first(uchar* buf) {
    CountedCall call(handler_stats);
    scan_.placed = Placed::Anywhere;
    teak_bound limit;
    bool limited = range_end(&limit);
    int error = seek(buf, TEAK_SEEK_FIRST, {nullptr, 0}, limited ? &limit : nullptr);
    return error == HA_ERR_KEY_NOT_FOUND ? HA_ERR_END_OF_FILE : error;
}

int ha_teak::index_last(uchar* buf) {
    CountedCall call(handler_stats);
    scan_.placed = Placed::Anywhere;
    int error = seek(buf, TEAK_SEEK_LAST, {nullptr, 0}, nullptr);
    return error == HA_ERR_KEY_NOT_FOUND ? HA_ERR_END_OF_FILE : error;
}

int ha_teak::read_range_first(const key_range* start, const key_range* end, bool eq_range, bool sorted) {
    if (end && !end_key_.room(open_.key_codec(active_index).max_size())) return HA_ERR_OUT_OF_MEM;
    scan_.range_end = end;
    /* Not to be compared with the record, which need not have the key's columns: of a prefix even an index-only read
       fills nothing. */
    const bool checked = std::exchange(in_range_check_pushed_down, true);
    int error = handler::read_range_first(start, end, eq_range, sorted);
    in_range_check_pushed_down = checked;
    scan_.range_end = nullptr;
    return error;
}

int ha_teak::read_range_next() {
    const bool checked = std::exchange(in_range_check_pushed_down, true);
    int error = handler::read_range_next();
    in_range_check_pushed_down = checked;
    return error;
}

/* Conditions are asked for where a full scan begins, between this and its first row (init_read_record in records.cc):
   then the server has put together all that it is going to look at. It asks by the cached flags. To say that of the
   handler from the start would have the optimizer copy the conditions of each statement. */
int ha_teak::rnd_init(bool scan) {
    scan_ = {};
    likes_.clear();
    if (scan) cached_table_flags |= HA_CAN_TABLE_CONDITION_PUSHDOWN;
    /* CHECKSUM TABLE reads generated columns that are stored, too, and does not say so: it would take what the record
       has from earlier (handler::calculate_checksum, TABLE::use_all_stored_columns). */
    if (scan && table->vfield && thd_sql_command(ha_thd()) == SQLCOM_CHECKSUM)
        for (Field** field = table->vfield; *field; field++)
            if ((*field)->stored_in_db()) bitmap_set_bit(table->read_set, (*field)->field_index);
    return 0;
}

int ha_teak::rnd_end() {
    open_.reset_cursors();
    end_filter();
    scan_ = {};
    cached_table_flags &= ~HA_CAN_TABLE_CONDITION_PUSHDOWN;
    return 0;
}

int ha_teak::rnd_next(uchar* buf) {
    int error;
    if (!likes_.is_set() && scan_.started && take_row(buf, Direction::Forward, &error)) return error;
    CountedCall call(handler_stats);
    if (likes_.is_set()) return next_row_filtered(buf);
    error = next_row(buf);
    return use_.held.may_miss ? or_lost_row(buf, error, Asked::ByStep) : error;
}

int ha_teak::next_row(uchar* buf) {
    teak_entry_view row;
    const int error = next_entry(&row);
    return error ? error : deliver_row(buf, row);
}

/* The next row of a full scan, as it is packed. */
int ha_teak::next_entry(teak_entry_view* row) {
    if (int error = use_.ready()) return error;
    teak_cursor* cursor = open_.cursor_of(0);
    if (!cursor) return HA_ERR_OUT_OF_MEM;
    teak_status status;
    if (scan_.started)
        status = step(0, Direction::Forward, row);
    else {
        scan_.started = true;
        status =
            teak_cursor_seek(use_.session(), cursor, TEAK_SEEK_FIRST, {nullptr, 0}, nullptr, use_.read_mode(), row);
    }
    if (status == TEAK_OK) return 0;
    return status == TEAK_END || status == TEAK_NOT_FOUND ? HA_ERR_END_OF_FILE : fail(status);
}

int ha_teak::rnd_pos(uchar* buf, uchar* pos) {
    CountedCall call(handler_stats);
    if (int error = use_.ready()) return error;
    teak_cursor* cursor = open_.cursor_of(0);
    if (!cursor) return HA_ERR_OUT_OF_MEM;
    expect(&wanted_.coming_rows, 0);
    uchar* scratch = pk_buffer_.room(open_.primary.max_size());
    if (!scratch) return HA_ERR_OUT_OF_MEM;
    teak_entry_view row;
    teak_status status = look_up(0, open_.primary.of_id(pos, scratch), use_.read_mode(), &row);
    return status == TEAK_OK ? deliver_row(buf, row) : fail(status);
}

int ha_teak::read_row(uchar* buf, teak_bytes pk) {
    if (int error = use_.ready()) return error;
    if (!open_.cursor_of(0)) return HA_ERR_OUT_OF_MEM;
    teak_entry_view row;
    return deliver_whole(buf, look_up(0, pk, use_.read_mode(), &row), row);
}

int ha_teak::read_held_row(uchar* buf, teak_bytes pk) {
    if (int error = use_.ready()) return error;
    teak_cursor* cursor = open_.cursor_of(0);
    if (!cursor) return HA_ERR_OUT_OF_MEM;
    teak_entry_view row;
    return deliver_whole(buf, teak_cursor_get_held(use_.session(), cursor, pk, &row), row);
}

/* deliver_row, with the virtual columns that the server computes behind ha_rnd_pos. */
int ha_teak::deliver_whole(uchar* buf, teak_status status, const teak_entry_view& row) {
    const int error = status == TEAK_OK ? deliver_row(buf, row) : fail(status);
    if (!error && table->vfield && buf == table->record[0]) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    return error;
}

void ha_teak::position(const uchar* record) {
    /* The record's key columns, since the server also asks for rows it did not read here. During a scan of a secondary
       index whose entries cannot restore the primary key's columns, the key of the row that was delivered. */
    bool from_scan = open_.primary.hidden();
    if (!from_scan && active_index < MAX_KEY && !on_primary())
        for (const KeyPartCodec& part : open_.primary.key().parts())
            from_scan |= part.prefix;
    if (from_scan)
        open_.primary.make_id(ref, bytes_of(current_pk_.data(), current_pk_length_));
    else
        open_.primary.make_id(ref, record);
    if (!rows_reader_) return;
    uchar* scratch = pk_buffer_.room(open_.primary.max_size());
    if (!scratch) return; /* what is not known to come is read when it does */
    const teak_bytes pk = open_.primary.of_id(ref, scratch);
    std::vector<uchar>& coming = rows_reader_->wanted_.coming_rows;
    coming.insert(coming.end(), {static_cast<uchar>(pk.len), static_cast<uchar>(pk.len >> 8)});
    coming.insert(coming.end(), pk.data, pk.data + pk.len);
}

/* The order of the rows in their tree, as scans that are merged by row ids need it. */
int ha_teak::cmp_ref(const uchar* a, const uchar* b) {
    const int differ = memcmp(a, b, ref_length);
    if (!differ || open_.primary.ids_are_keys()) return differ;
    const size_t size = open_.primary.max_size();
    uchar* scratch = pk_buffer_.room(2 * size);
    if (!scratch) return differ;
    const teak_bytes pk_a = open_.primary.of_id(a, scratch), pk_b = open_.primary.of_id(b, scratch + size);
    const int order = memcmp(pk_a.data, pk_b.data, std::min(pk_a.len, pk_b.len));
    if (order) return order;
    return pk_a.len == pk_b.len ? 0 : pk_a.len < pk_b.len ? -1 : 1;
}

Item* ha_teak::idx_cond_push(uint index, Item* condition) {
    if (index == table->s->primary_key || !open_.indexes[index].gives_back()) return condition;
    pushed_idx_cond = condition;
    pushed_idx_cond_keyno = index;
    in_range_check_pushed_down = true;
    return nullptr;
}

bool ha_teak::rowid_filter_push(Rowid_filter* filter) {
    pushed_rowid_filter = filter; /* the server sets it active once it is filled */
    return false;
}

int ha_teak::reset() {
    sorted_ranges_.dsmrr_close();
    open_.reset_cursors();
    row_buffer_.give_back_large();
    blobs_.give_back_large();
    own_blobs_.give_back_large();
    cancel_pushed_idx_cond();
    cancel_pushed_rowid_filter();
    scan_ = {};
    likes_.clear();
    use_.statement = {};
    return 0;
}

bool ha_teak::was_semi_consistent_read() {
    return use_.statement.semi_consistent && !open_.cursors.empty() && teak_cursor_is_unlocked(open_.cursors[0]);
}

void ha_teak::unlock_row() {
    if (use_.held.session && use_.held.session->unlocks && !open_.cursors.empty() && open_.cursors[0] &&
        use_.held.rows != RowLock::None)
        teak_cursor_unlock_row(use_.session(), open_.cursors[0]);
}
