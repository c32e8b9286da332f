#include "record_converter.h"
#include "layout_maker.h"

namespace teak {
namespace {

/* Whether the bytes of one in a record are a value of the other, and the same. */
bool takes_bytes(const Field* before, const Create_field& column, const Field* after) {
    /* Types of one name and length may differ: where the point is, which words an ENUM has. */
    if (!before->is_equal(column) && !before->table->file->can_convert_nocopy(*before, column)) return false;
    if (before->type_handler() != after->type_handler() ||
        before->compression_method() != after->compression_method() ||
        before->pack_length() != before->pack_length_in_rec() || after->pack_length() != after->pack_length_in_rec() ||
        !keeps_bytes(before->charset(), after->charset()))
        return false;
    if (before->real_type() != MYSQL_TYPE_VARCHAR) return before->pack_length() == after->pack_length();
    const auto *a = static_cast<const Field_varstring*>(before), *b = static_cast<const Field_varstring*>(after);
    return a->length_bytes == b->length_bytes && a->pack_length() <= b->pack_length();
}

/* Whether the server's fields may refuse a date of the same type: sql_mode does not allow all that are there. */
bool may_refuse_dates(const THD* thd, const Field* after) {
    const enum_field_types type = after->type();
    return thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE) &&
           (type == MYSQL_TYPE_DATE || type == MYSQL_TYPE_NEWDATE || type == MYSQL_TYPE_DATETIME ||
            type == MYSQL_TYPE_TIMESTAMP);
}

/* Whether the column gets the time of the statement for NULL. */
bool becomes_now(const Field* before, const Field* after) {
    return before->real_maybe_null() && !after->real_maybe_null() && after->type() == MYSQL_TYPE_TIMESTAMP;
}

} // namespace

bool converts_some(TABLE* altered, List<Create_field>& columns) {
    uint number = 0;
    for (const Create_field& column : columns)
        if (const Field* const after = altered->field[number++]; column.field && after->stored_in_db())
            if (!takes_bytes(column.field, column, after)) return true;
    return false;
}

bool RecordConverter::init(const TABLE* now, TABLE* altered, List<Create_field>& columns, bool computed,
                           FieldConverter* others) {
    if (columns.elements > altered->s->fields) return false;
    const bool converts = converts_some(altered, columns);
    uint number = 0;
    for (const Create_field& column : columns) {
        Field* const after = altered->field[number++];
        if (!after->stored_in_db() && !computed) continue;
        if (!column.field) {
            if (after->vcol_info || after->unireg_check == Field::NEXT_NUMBER || !evaluate_default(after)) return false;
            continue;
        }
        /* A column that is generated from now on, or was, keeps nothing. */
        if (column.field->stored_in_db() != after->stored_in_db() || !column.field->vcol_info != !after->vcol_info)
            return false;
        const bool loses_null = column.field->real_maybe_null() && !after->real_maybe_null();
        const bool told = converts && (loses_null || may_refuse_dates(altered->in_use, after));
        if (takes_bytes(column.field, column, after) && !told)
            keep(now, column.field, altered, after);
        else if (!others->add(column.field, after))
            return false;
    }
    blank_.assign(altered->s->default_values, altered->s->default_values + altered->s->reclength);
    number = 0;
    for (const Create_field& column : columns) {
        Field* const after = altered->field[number++];
        if (!after->stored_in_db()) continue;
        if (column.field && !becomes_now(column.field, after)) continue;
        if (column.field) after->set_time();
        const ColumnCodec place = ColumnCodec::of(altered, after);
        memcpy(blank_.data() + place.offset, altered->record[0] + place.offset, place.bytes);
        if (!place.null_mask) continue;
        uchar& nulls = blank_[place.null_offset];
        nulls =
            static_cast<uchar>((nulls & ~place.null_mask) | (altered->record[0][place.null_offset] & place.null_mask));
    }
    /* Hidden columns, of keys that are hashes. */
    return number == altered->s->fields && others->is_enough(now, altered);
}

void RecordConverter::keep(const TABLE* now, const Field* before, const TABLE* altered, const Field* after) {
    const ColumnCodec from = ColumnCodec::of(now, before), to = ColumnCodec::of(altered, after);
    if (!runs_.empty() && runs_.back().from + runs_.back().bytes == from.offset &&
        runs_.back().to + runs_.back().bytes == to.offset)
        runs_.back().bytes += from.bytes;
    else
        runs_.push_back({from.offset, to.offset, from.bytes});
    if (from.null_mask || to.null_mask)
        nulls_.push_back({from.null_offset, to.null_offset, from.null_mask, to.null_mask, after, to.offset,
                          becomes_now(before, after) ? to.bytes : 0});
}

bool RecordConverter::convert(const uchar* from, uchar* to) const {
    memcpy(to, blank_.data(), blank_.size());
    for (const Run& run : runs_)
        memcpy(to + run.to, from + run.from, run.bytes);
    for (const Null& null : nulls_) {
        const bool is_null = null.is_set(from);
        if (is_null && null.is_refused()) return false;
        if (is_null) memcpy(to + null.instead, blank_.data() + null.instead, null.instead_bytes);
        uchar& nulls = to[null.to_offset];
        if (null.to_mask) nulls = static_cast<uchar>(is_null ? nulls | null.to_mask : nulls & ~null.to_mask);
    }
    return true;
}

const Field* RecordConverter::refused(const uchar* from) const {
    for (const Null& null : nulls_)
        if (null.is_refused() && null.is_set(from)) return null.to;
    return nullptr;
}

} // namespace teak
