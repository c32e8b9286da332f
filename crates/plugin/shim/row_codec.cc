#include "row_codec.h"
#include <algorithm>

namespace teak {
namespace {

constexpr uchar kVersion = 1;
constexpr size_t kHeader = 3;

inline size_t read_length(const uchar* p, uint bytes) {
    if (bytes == 2) return uint2korr(p);
    size_t n = 0;
    for (uint i = 0; i < bytes; i++)
        n |= static_cast<size_t>(p[i]) << (8 * i);
    return n;
}

} // namespace

ColumnCodec ColumnCodec::of(const TABLE* table, const Field* field) {
    ColumnCodec c{};
    c.fieldnr = field->field_index;
    c.offset = static_cast<uint>(field->offset(table->record[0]));
    c.bytes = field->pack_length();
    c.charset = field->charset();
    if (field->real_maybe_null()) {
        c.null_offset = field->null_offset();
        c.null_mask = field->null_bit;
    }
    if (field->flags & BLOB_FLAG) {
        c.kind = Blob;
        c.length_bytes = static_cast<uint8_t>(static_cast<const Field_blob*>(field)->pack_length_no_ptr());
    } else if (field->real_type() == MYSQL_TYPE_VARCHAR) {
        c.kind = Varchar;
        c.length_bytes = static_cast<uint8_t>(static_cast<const Field_varstring*>(field)->length_bytes);
    } else if (field->key_type() == HA_KEYTYPE_TEXT && c.charset->mbmaxlen > 1) {
        c.kind = PaddedChar;
        c.length_bytes = 2;
    } else
        c.kind = Fixed;
    return c;
}

size_t ColumnCodec::packed_size(const uchar* record) const {
    const uchar* p = record + offset;
    switch (kind) {
    case Varchar:
        return std::min<size_t>(length_bytes + read_length(p, length_bytes), bytes);
    case Blob:
        return length_bytes + read_length(p, length_bytes);
    case PaddedChar:
        return 2 + bytes;
    case Fixed:
        break;
    }
    return bytes;
}

uchar* ColumnCodec::pack(uchar* to, const uchar* record) const {
    const uchar* p = record + offset;
    switch (kind) {
    case Varchar:
    case Fixed: {
        size_t n = packed_size(record);
        memcpy(to, p, n);
        return to + n;
    }
    case Blob: {
        size_t n = read_length(p, length_bytes);
        const uchar* data;
        memcpy(&data, p + length_bytes, sizeof data);
        memcpy(to, p, length_bytes);
        if (n) memcpy(to + length_bytes, data, n);
        return to + length_bytes + n;
    }
    case PaddedChar: {
        size_t n = charset->lengthsp(reinterpret_cast<const char*>(p), bytes);
        int2store(to, n);
        memcpy(to + 2, p, n);
        return to + 2 + n;
    }
    }
    return to;
}

inline const uchar* ColumnCodec::skip(const uchar* from, const uchar* end) const {
    size_t left = static_cast<size_t>(end - from);
    size_t n = bytes;
    if (kind != Fixed) {
        if (left < length_bytes) return nullptr;
        n = length_bytes + read_length(from, length_bytes);
    }
    return n <= left ? from + n : nullptr;
}

const uchar* ColumnCodec::unpack(const uchar* from, const uchar* end, uchar* record, uchar** blobs) const {
    const uchar* next = skip(from, end);
    if (!next) return nullptr;
    uchar* p = record + offset;
    size_t n = static_cast<size_t>(next - from);
    switch (kind) {
    case Varchar:
    case Fixed:
        if (n > bytes) return nullptr;
        memcpy(p, from, n);
        break;
    case Blob: {
        n -= length_bytes;
        memcpy(p, from, length_bytes);
        uchar* data = *blobs;
        if (n) memcpy(data, from + length_bytes, n);
        memcpy(p + length_bytes, &data, sizeof data);
        *blobs += n;
        break;
    }
    case PaddedChar:
        n -= 2;
        if (n > bytes) return nullptr;
        memcpy(p, from + 2, n);
        /* What charset->fill() does where a space is one byte. */
        if (n < bytes && charset->mbminlen == 1)
            memset(p + n, ' ', bytes - n);
        else if (n < bytes)
            charset->fill(reinterpret_cast<char*>(p) + n, bytes - n, ' ');
        break;
    }
    return next;
}

bool ColumnCodec::same(const uchar* a, const uchar* b) const {
    const uchar *p = a + offset, *q = b + offset;
    if (kind != Varchar && kind != Blob) return memcmp(p, q, bytes) == 0;
    const size_t n = read_length(p, length_bytes);
    if (n != read_length(q, length_bytes)) return false;
    p += length_bytes;
    q += length_bytes;
    if (kind == Blob) {
        const uchar *data_p, *data_q;
        memcpy(&data_p, p, sizeof data_p);
        memcpy(&data_q, q, sizeof data_q);
        p = data_p;
        q = data_q;
    }
    return n == 0 || p == q || memcmp(p, q, n) == 0;
}

bool ColumnCodec::reads(const ColumnCodec& other) const {
    return kind == other.kind && length_bytes == other.length_bytes && fieldnr == other.fieldnr &&
           null_offset == other.null_offset && null_mask == other.null_mask && charset == other.charset &&
           (kind == Varchar ? bytes >= other.bytes : bytes == other.bytes);
}

void RowCodec::init(const TABLE* table, const std::vector<bool>& in_key) {
    const TABLE_SHARE* share = table->s;
    null_bytes_ = share->null_bytes;
    columns_ = share->fields;
    /* Among the null bytes are bits of BIT columns, too. Whether a virtual column is NULL may not be known yet. */
    stored_nulls_.assign(null_bytes_, 0xff);
    for (uint i = 0; i < share->fields; i++) {
        const Field* field = table->field[i];
        if (!field->stored_in_db()) {
            if (field->real_maybe_null()) stored_nulls_[field->null_offset()] &= static_cast<uchar>(~field->null_bit);
            continue;
        }
        if (in_key[i]) continue;
        ColumnCodec column = ColumnCodec::of(table, field);
        stored_.push_back(column);
        if (column.kind != ColumnCodec::Fixed) {
            has_blobs_ |= column.kind == ColumnCodec::Blob;
            variable_.push_back(column);
        } else if (!runs_.empty() && runs_.back().offset + runs_.back().length == column.offset)
            runs_.back().length += column.bytes;
        else
            runs_.push_back({column.offset, column.bytes});
    }
    for (const Run& run : runs_)
        runs_length_ += run.length;
    find_tail(table);
}

/* Which columns are the tail, and whether each of them has the one bit in the null bytes that its place says. */
void RowCodec::find_tail(const TABLE* table) {
    base_columns_ = columns_;
    while (base_columns_ > 0 && !table->field[base_columns_ - 1]->stored_in_db())
        base_columns_--;
    base_null_bits_ = table->s->db_create_options & HA_OPTION_PACK_RECORD ? 0 : 1;
    tail_may_change_ = true;
    uint bits = base_null_bits_;
    for (uint i = 0; i < columns_; i++) {
        const Field* field = table->field[i];
        if (i == base_columns_) base_null_bits_ = bits;
        if (field->real_maybe_null()) {
            tail_may_change_ &= field->null_offset() == bits / 8 && field->null_bit == 1 << bits % 8;
            bits++;
        } else if (i >= base_columns_)
            tail_may_change_ = false;
    }
    if (base_columns_ == columns_) base_null_bits_ = bits;
    tail_may_change_ &= null_bytes_ == (bits + 7) / 8;
}

bool RowCodec::reads(const RowCodec& other) const {
    const bool same_columns = columns_ == other.columns_ && null_bytes_ == other.null_bytes_;
    const bool same_base = tail_may_change_ && other.tail_may_change_ && base_columns_ == other.base_columns_ &&
                           base_null_bits_ == other.base_null_bits_;
    return (same_columns || same_base) &&
           std::equal(stored_.begin(), stored_.end(), other.stored_.begin(), other.stored_.end(),
                      [](const ColumnCodec& a, const ColumnCodec& b) { return a.reads(b); });
}

size_t RowCodec::packed_size(const uchar* record) const {
    size_t n = kHeader + null_bytes_ + runs_length_;
    for (const ColumnCodec& column : variable_)
        if (!column.is_null(record)) n += column.packed_size(record);
    return n;
}

size_t RowCodec::pack(uchar* to, const uchar* record) const {
    uchar* p = to;
    *p++ = kVersion;
    int2store(p, columns_);
    p += 2;
    for (uint i = 0; i < null_bytes_; i++)
        *p++ = record[i] | static_cast<uchar>(~stored_nulls_[i]);
    for (const Run& run : runs_) {
        memcpy(p, record + run.offset, run.length);
        p += run.length;
    }
    for (const ColumnCodec& column : variable_)
        if (!column.is_null(record)) p = column.pack(p, record);
    return static_cast<size_t>(p - to);
}

/* The null bytes of a row with another tail; the columns of the tail are NULL until they are computed. Behind them,
   nullptr if the row is malformed. */
const uchar* RowCodec::unpack_other_nulls(teak_bytes row, uchar* record) const {
    const uint columns = uint2korr(row.data + 1);
    if (!tail_may_change_ || columns < base_columns_) return nullptr;
    const size_t nulls = (base_null_bits_ + columns - base_columns_ + 7) / 8;
    if (row.len < kHeader + nulls + runs_length_) return nullptr;
    memset(record, 0xff, null_bytes_);
    const size_t base = base_null_bits_ / 8;
    memcpy(record, row.data + kHeader, base);
    if (const uint rest = base_null_bits_ % 8)
        record[base] = row.data[kHeader + base] | static_cast<uchar>(0xff << rest);
    return row.data + kHeader + nulls;
}

bool RowCodec::unpack(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const {
    const uchar* p = row.data;
    const uchar* end = p + row.len;
    if (row.len < kHeader || p[0] != kVersion) return false;
    if (uint2korr(p + 1) == columns_) {
        if (row.len < kHeader + null_bytes_ + runs_length_) return false;
        p += kHeader;
        copy_few(record, p, null_bytes_);
        p += null_bytes_;
    } else if (!(p = unpack_other_nulls(row, record)))
        return false;
    /* Virtual columns are NULL until they are computed, as in InnoDB: CHECKSUM TABLE sees those bits. Rows from before
       2026-11-23 have whatever was in the record when they were written. */
    for (uint i = 0; i < null_bytes_; i++)
        record[i] |= static_cast<uchar>(~stored_nulls_[i]);
    for (const Run& run : runs_) {
        copy_few(record + run.offset, p, run.length);
        p += run.length;
    }
    if (variable_.empty()) return true;
    uchar* blob = nullptr;
    if (has_blobs_ && !(blob = blobs->room(row.len))) return false;
    for (const ColumnCodec& column : variable_) {
        if (column.is_null(record)) {
            if (column.kind == ColumnCodec::Blob) memset(record + column.offset, 0, column.bytes);
            continue;
        }
        if (wanted && !bitmap_is_set(wanted, column.fieldnr))
            p = column.skip(p, end);
        else
            p = column.unpack(p, end, record, &blob);
        if (!p) return false;
    }
    return true;
}

bool RowCodec::same(const uchar* a, const uchar* b) const {
    for (uint i = 0; i < null_bytes_; i++)
        if ((a[i] ^ b[i]) & stored_nulls_[i]) return false;
    for (const ColumnCodec& column : stored_)
        if (!column.is_null(a) && !column.same(a, b)) return false;
    return true;
}

} // namespace teak
