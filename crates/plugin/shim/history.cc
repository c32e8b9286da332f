#include "history.h"

namespace teak {

bool RowEnd::init(const TABLE* table) {
    *this = RowEnd();
    if (!table->versioned()) return true;
    const Field* const field = table->vers_end_field();
    mi_int4store(now_, TIMESTAMP_MAX_VALUE);
    mi_int3store(now_ + 4, TIME_MAX_SECOND_PART);
    /* Not Field::is_max: the server asserts that what is asked is a column that the statement reads. */
    if (!table->versioned(VERS_TIMESTAMP) || field->real_type() != MYSQL_TYPE_TIMESTAMP2 ||
        field->pack_length() != kBytes)
        return false;
    offset_ = static_cast<uint>(field->ptr - table->record[0]);
    bytes_ = kBytes;
    return true;
}

bool has_end_behind(const TABLE* table, const KEY& key, size_t columns) {
    return table->versioned() && key.user_defined_key_parts > columns &&
           key.key_part[columns].fieldnr == table->s->vers.end_fieldno + 1U;
}

bool EntryOwner::init(const TABLE* table, uint index, size_t columns, const TableMeta& meta) {
    in_rows_ = index == table->s->primary_key;
    if (!primary_.init(table, meta.encoding) || (!in_rows_ && !index_.init(table, index, &primary_)) ||
        !end_.init(table))
        return false;
    scratch_.resize(primary_.max_size());
    if (!end_.exists()) return true;
    record_.resize(table->s->rec_buff_length);
    end_.set_now(record_.data());
    const uint end = table->s->vers.end_fieldno;
    by_row_ = primary_.hidden() || !primary_.restored_columns()[end];
    if (by_row_ && !rows_.init(table, primary_.restored_columns(), meta.layouts)) return false;
    const KEY& key = table->key_info[index];
    if (!has_end_behind(table, key, columns)) return true;
    KeyCodec all, last;
    if (!all.add_parts(table, &key, static_cast<uint>(columns) + 1, meta.encoding)) return false;
    last.add_part(all.parts()[columns]);
    last.finish();
    behind_.resize(last.max_size());
    behind_.resize(static_cast<size_t>(last.encode_record(behind_.data(), record_.data(), 1) - behind_.data()));
    return true;
}

teak_reading EntryOwner::reading(bool asks) {
    const bool tells = asks && end_.exists();
    return {primary_of, tells ? is_history : nullptr, by_row_, this};
}

bool EntryOwner::restore(const teak_entry_view& entry, uchar* record) const {
    return in_rows_ ? primary_.decode(entry.key, record) : index_.restore(entry, record);
}

teak_bytes EntryOwner::primary_of(void* context, teak_entry_view entry) {
    auto* self = static_cast<EntryOwner*>(context);
    return self->index_.primary_of(entry, self->scratch_.data(), self->scratch_.size());
}

/* What is malformed is left to who meets it. */
int EntryOwner::is_history(void* context, teak_bytes row) {
    auto* self = static_cast<EntryOwner*>(context);
    uchar* const record = self->record_.data();
    const bool is_read =
        self->by_row_ ? self->rows_.unpack(row, record, &self->blobs_, nullptr) : self->primary_.decode(row, record);
    return is_read && self->end_.is_history(record);
}

} // namespace teak
