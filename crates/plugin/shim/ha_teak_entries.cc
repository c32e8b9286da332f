/*
  Entries of an index that a scan has to look at closer: conditions that the server has pushed, and entries whose rows
  the transaction has written over since.
*/
#include "ha_teak.h"
#include "row_scan.h"

using namespace teak;

/* The pushed condition and the rowid filter, on the columns of the entry. */
int ha_teak::check_entry(const IndexCodec& codec, const teak_entry_view& entry, teak_bytes pk, bool* matches) {
    *matches = true;
    bool condition = pushed_idx_cond && pushed_idx_cond_keyno == active_index;
    bool filter = pushed_rowid_filter && rowid_filter_is_active;
    if (!condition && !filter) return 0;
    if (!codec.restore(entry, table->record[0])) return HA_ERR_CRASHED_ON_USAGE;
    check_result_t result = CHECK_POS;
    /* The cursor ends where the range does. The server would compare the record, which has nothing of a column whose
       prefix is indexed. */
    key_range* const range = std::exchange(end_range, nullptr);
    if (condition) result = handler_index_cond_check(this);
    if (result == CHECK_POS && filter) {
        remember(pk);
        result = handler_rowid_filter_check(this);
    }
    end_range = range;
    *matches = result == CHECK_POS;
    switch (result) {
    case CHECK_POS:
    case CHECK_NEG:
        return 0;
    case CHECK_OUT_OF_RANGE:
        return HA_ERR_END_OF_FILE;
    case CHECK_ABORTED_BY_USER:
        return HA_ERR_ABORTED_BY_USER;
    case CHECK_ERROR:
        break;
    }
    return HA_ERR_INTERNAL_ERROR;
}

/* check_entry on the committed version of the entry that a cursor stands on. */
int ha_teak::check_committed(const IndexCodec& codec, teak_cursor* cursor, bool* matches) {
    *matches = false;
    teak_entry_view entry;
    teak_status status = teak_cursor_committed(use_.session(), cursor, &entry);
    if (status != TEAK_OK) return status == TEAK_NOT_FOUND ? 0 : fail(status);
    teak_bytes pk;
    if (!primary_of(entry, &pk)) return HA_ERR_CRASHED_ON_USAGE;
    return check_entry(codec, entry, pk, matches);
}

/*
  deliver_entry for a transaction that has written over what was committed after its snapshot: the entry may be the
  snapshot's, while the row that it leads to is the transaction's own by now. Such an entry is passed over; the row has
  another in this index, which is the transaction's as well. All is judged by the row.
*/
int ha_teak::deliver_own_entry(uchar* buf, teak_cursor* cursor, const teak_entry_view& entry, Found* found) {
    const IndexCodec& codec = open_.indexes[active_index];
    *found = Found::Unwanted;
    teak_bytes pk;
    if (!primary_of(entry, &pk)) return HA_ERR_CRASHED_ON_USAGE;
    teak_cursor* rows = open_.cursor_of(0);
    if (!rows) return HA_ERR_OUT_OF_MEM;
    teak_entry_view row;
    const teak_status status = teak_fetch_row(use_.session(), cursor, rows, pk, TEAK_READ_SNAPSHOT, &row, nullptr);
    if (status == TEAK_NOT_FOUND) return 0;
    if (status != TEAK_OK) return fail(status);
    teak_entry made;
    {
        WholeRows whole(table, use_.statement.reads_snapshot);
        if (int error = deliver_row(buf, row)) return error;
        entries_.compute_virtual(codec, buf, RowEntries::Image::Read);
        if (!entries_.encode(active_index, buf, RowEntries::Image::Written, row.key, &made)) return HA_ERR_OUT_OF_MEM;
    }
    if (made.key.len != entry.key.len || memcmp(made.key.data, entry.key.data, made.key.len)) return 0;
    bool matches;
    if (int error = check_entry(codec, {made.key, made.value}, row.key, &matches)) return error;
    remember(row.key);
    if (matches) *found = Found::Delivered;
    return 0;
}
