#include "row_translation.h"
#include "row_codec.h"

namespace teak {
namespace {

/* An integer in more bytes. */
void widen(const uchar* from, size_t length, uchar* to, size_t wider, bool is_signed) {
    memcpy(to, from, length);
    memset(to + length, is_signed && from[length - 1] & 0x80 ? 0xff : 0, wider - length);
}

/* Puts a value that was packed by `from` into the record: behind it, nullptr if the bytes are malformed. */
const uchar* unpack_as(const LayoutColumn& from, const ColumnCodec& to, const uchar* at, const uchar* end,
                       uchar* record, uchar** blobs) {
    uchar* p = record + to.offset;
    if (!from.is_variable() && from.bytes < to.bytes) {
        if (static_cast<size_t>(end - at) < from.bytes) return nullptr;
        widen(at, from.bytes, p, to.bytes, from.kind == ColumnKind::Signed);
        return at + from.bytes;
    }
    if (from.length_bytes == to.length_bytes) return to.unpack(at, end, record, blobs);
    /* A VARCHAR or a BLOB whose length takes more bytes now. */
    if (static_cast<size_t>(end - at) < from.length_bytes) return nullptr;
    const size_t length = packed_length(at, from.length_bytes);
    widen(at, from.length_bytes, p, to.length_bytes, false);
    at += from.length_bytes;
    if (length > static_cast<size_t>(end - at)) return nullptr;
    uchar* value = p + to.length_bytes;
    if (to.kind == ColumnKind::Blob) {
        memcpy(value, blobs, sizeof *blobs);
        value = *blobs;
        *blobs += length;
    } else if (length + to.length_bytes > to.bytes)
        return nullptr;
    if (length) memcpy(value, at, length);
    return at + length;
}

} // namespace

void RowTranslation::add_fixed(const LayoutColumn& from, const ColumnCodec* to) {
    runs_length_ += from.bytes;
    if (!to)
        runs_.push_back({Run::Gone, 0, from.bytes, 0});
    else if (from.bytes < to->bytes)
        runs_.push_back({from.kind == ColumnKind::Signed ? Run::Signed : Run::Unsigned, static_cast<uint8_t>(to->bytes),
                         from.bytes, to->offset});
    else if (!runs_.empty() && runs_.back().kind == Run::Copied &&
             runs_.back().offset + runs_.back().length == to->offset)
        runs_.back().length += from.bytes;
    else
        runs_.push_back({Run::Copied, 0, from.bytes, to->offset});
}

bool RowTranslation::add_default(const RowLayouts& layouts, const LayoutColumn& column, const ColumnCodec& to) {
    const RowLayouts::Default* value = layouts.default_of(column.id);
    if (!value) return false;
    if (value->is_null) {
        if (!to.null_mask) return false;
        record_nulls_[to.null_offset] |= to.null_mask;
        if (to.kind == ColumnKind::Blob) defaults_.push_back({to.offset, std::vector<uchar>(to.bytes, 0)});
        return true;
    }
    std::vector<uchar> record(to.offset + to.bytes, 0);
    large_defaults_.emplace_back(value->value.size() + 1);
    uchar* blobs = large_defaults_.back().data();
    const uchar* const end = value->value.data() + value->value.size();
    if (unpack_as(layouts.form_of_default(column.id), to, value->value.data(), end, record.data(), &blobs) != end)
        return false;
    defaults_.push_back({to.offset, {record.begin() + to.offset, record.end()}});
    return true;
}

bool RowTranslation::init(const RowLayouts& layouts, const RowLayout& from, const std::vector<ColumnCodec>& columns,
                          const std::vector<uchar>& null_bytes) {
    const RowLayout& newest = layouts.newest();
    if (newest.columns.size() != columns.size()) return false;
    record_nulls_ = null_bytes;
    null_bytes_ = from.null_bytes;
    for (size_t i = 0; i < columns.size(); i++) {
        const ColumnCodec& to = columns[i];
        if (to.null_mask) record_nulls_[to.null_offset] &= static_cast<uchar>(~to.null_mask);
        const LayoutColumn* older = from.find(newest.columns[i].id);
        if (!older) {
            if (!add_default(layouts, newest.columns[i], to)) return false;
        } else if (!older->reads_as(newest.columns[i]))
            return false;
        else if (older->may_be_null())
            nulls_.push_back({older->null_bit, to.null_mask, to.null_offset});
    }
    for (const LayoutColumn& column : from.columns) {
        const ColumnCodec* to = nullptr;
        for (size_t i = 0; i < columns.size(); i++)
            if (newest.columns[i].id == column.id) to = &columns[i];
        if (column.is_variable())
            variable_.push_back({column, to});
        else
            add_fixed(column, to);
    }
    return true;
}

bool RowTranslation::unpack(teak_bytes row, size_t null_bytes, uchar* record, uchar* blobs,
                            const MY_BITMAP* wanted) const {
    if (row.len < null_bytes + runs_length_) return false;
    const uchar* const nulls = row.data;
    const uchar* const end = row.data + row.len;
    const uchar* p = nulls + null_bytes;
    memcpy(record, record_nulls_.data(), record_nulls_.size());
    for (const NullBit& bit : nulls_)
        if (nulls[bit.from / 8] >> bit.from % 8 & 1) record[bit.offset] |= bit.mask;
    for (const Default& value : defaults_)
        memcpy(record + value.offset, value.bytes.data(), value.bytes.size());
    for (const Run& run : runs_) {
        if (run.kind == Run::Copied)
            copy_few(record + run.offset, p, run.length);
        else if (run.kind != Run::Gone)
            widen(p, run.length, record + run.offset, run.wider, run.kind == Run::Signed);
        p += run.length;
    }
    for (const Variable& column : variable_) {
        const ColumnCodec* to = column.to;
        if (column.from.is_null(nulls)) {
            if (to && to->kind == ColumnKind::Blob) memset(record + to->offset, 0, to->bytes);
            continue;
        }
        if (to && (!wanted || bitmap_is_set(wanted, to->fieldnr)))
            p = unpack_as(column.from, *to, p, end, record, &blobs);
        else {
            if (static_cast<size_t>(end - p) < column.from.length_bytes) return false;
            const size_t length = column.from.length_bytes + packed_length(p, column.from.length_bytes);
            p = length <= static_cast<size_t>(end - p) ? p + length : nullptr;
        }
        if (!p) return false;
    }
    return true;
}

} // namespace teak
