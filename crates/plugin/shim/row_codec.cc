#include "row_codec.h"
#include <algorithm>

namespace teak {
namespace {

constexpr uchar kVersion = 1;
constexpr uchar kVersionOfLayouts = 2;
constexpr uchar kPoison = 0xa5;

/* The bytes without trailing spaces, as the charset's lengthsp, which looks at one after the other: of a CHAR in a
   charset of several bytes most are padding. */
size_t without_padding(const CHARSET_INFO* charset, const uchar* data, size_t bytes) {
    if (charset->mbminlen > 1) return charset->lengthsp(reinterpret_cast<const char*>(data), bytes);
    constexpr uint64_t kSpaces = 0x2020202020202020;
    uint64_t eight;
    for (; bytes >= sizeof eight; bytes -= sizeof eight) {
        memcpy(&eight, data + bytes - sizeof eight, sizeof eight);
        if (eight != kSpaces) break;
    }
    while (bytes && data[bytes - 1] == ' ')
        bytes--;
    return bytes;
}

} // namespace

bool is_integer(enum_field_types type) {
    return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_INT24 || type == MYSQL_TYPE_LONG ||
           type == MYSQL_TYPE_LONGLONG;
}

bool keeps_bytes(const CHARSET_INFO* from, const CHARSET_INFO* to) {
    if (my_charset_same(from, to)) return true;
    return !strcmp(from->cs_name.str, MY_UTF8MB3) && !strcmp(to->cs_name.str, MY_UTF8MB4);
}

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
        c.kind = ColumnKind::Blob;
        c.length_bytes = static_cast<uint8_t>(static_cast<const Field_blob*>(field)->pack_length_no_ptr());
    } else if (field->real_type() == MYSQL_TYPE_VARCHAR) {
        c.kind = ColumnKind::Varchar;
        c.length_bytes = static_cast<uint8_t>(static_cast<const Field_varstring*>(field)->length_bytes);
    } else if (field->key_type() == HA_KEYTYPE_TEXT && c.charset->mbmaxlen > 1) {
        c.kind = ColumnKind::PaddedChar;
        c.length_bytes = 2;
    } else
        c.kind = ColumnKind::Fixed;
    c.kind_in_layout = c.kind;
    if (is_integer(field->type()))
        c.kind_in_layout = field->flags & UNSIGNED_FLAG ? ColumnKind::Unsigned : ColumnKind::Signed;
    return c;
}

size_t ColumnCodec::packed_size(const uchar* record) const {
    const uchar* p = record + offset;
    switch (kind) {
    case ColumnKind::Varchar:
        return std::min<size_t>(length_bytes + packed_length(p, length_bytes), bytes);
    case ColumnKind::Blob:
        return length_bytes + packed_length(p, length_bytes);
    case ColumnKind::PaddedChar:
        return 2 + bytes;
    case ColumnKind::Fixed:
    case ColumnKind::Signed:
    case ColumnKind::Unsigned:
        break;
    }
    return bytes;
}

uchar* ColumnCodec::pack(uchar* to, const uchar* record) const {
    const uchar* p = record + offset;
    switch (kind) {
    case ColumnKind::Varchar:
    case ColumnKind::Fixed:
    case ColumnKind::Signed:
    case ColumnKind::Unsigned: {
        size_t n = packed_size(record);
        memcpy(to, p, n);
        return to + n;
    }
    case ColumnKind::Blob: {
        size_t n = packed_length(p, length_bytes);
        const uchar* data;
        memcpy(&data, p + length_bytes, sizeof data);
        memcpy(to, p, length_bytes);
        if (n) memcpy(to + length_bytes, data, n);
        return to + length_bytes + n;
    }
    case ColumnKind::PaddedChar: {
        size_t n = without_padding(charset, p, bytes);
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
    if (kind != ColumnKind::Fixed) {
        if (left < length_bytes) return nullptr;
        n = length_bytes + packed_length(from, length_bytes);
    }
    return n <= left ? from + n : nullptr;
}

const uchar* ColumnCodec::unpack(const uchar* from, const uchar* end, uchar* record, uchar** blobs) const {
    const uchar* next = skip(from, end);
    if (!next) return nullptr;
    uchar* p = record + offset;
    size_t n = static_cast<size_t>(next - from);
    switch (kind) {
    case ColumnKind::Varchar:
    case ColumnKind::Fixed:
    case ColumnKind::Signed:
    case ColumnKind::Unsigned:
        if (n > bytes) return nullptr;
        memcpy(p, from, n);
        break;
    case ColumnKind::Blob: {
        n -= length_bytes;
        memcpy(p, from, length_bytes);
        uchar* data = *blobs;
        if (n) memcpy(data, from + length_bytes, n);
        memcpy(p + length_bytes, &data, sizeof data);
        *blobs += n;
        break;
    }
    case ColumnKind::PaddedChar:
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
    if (kind != ColumnKind::Varchar && kind != ColumnKind::Blob) return memcmp(p, q, bytes) == 0;
    const size_t n = packed_length(p, length_bytes);
    if (n != packed_length(q, length_bytes)) return false;
    p += length_bytes;
    q += length_bytes;
    if (kind == ColumnKind::Blob) {
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
           null_offset == other.null_offset && null_mask == other.null_mask && keeps_bytes(other.charset, charset) &&
           (kind == ColumnKind::Varchar || kind == ColumnKind::PaddedChar ? bytes >= other.bytes
                                                                          : bytes == other.bytes);
}

LayoutColumn ColumnCodec::in_layout(uint16_t id) const {
    LayoutColumn column{id, kind_in_layout, length_bytes, 0, LayoutColumn::kNeverNull};
    if (kind == ColumnKind::Fixed || kind == ColumnKind::PaddedChar) column.bytes = bytes;
    if (null_mask)
        column.null_bit = static_cast<uint16_t>(null_offset * 8 + static_cast<uint>(__builtin_ctz(null_mask)));
    return column;
}

bool RowCodec::init(const TABLE* table, const std::vector<bool>& in_key, const RowLayouts& layouts) {
    const TABLE_SHARE* share = table->s;
    null_bytes_ = share->null_bytes;
    defaults_ = share->default_values;
    /* Among the null bytes are bits of BIT columns, too. Whether a virtual column is NULL may not be known yet. */
    stored_nulls_.assign(null_bytes_, 0xff);
    for (uint i = 0; i < share->fields; i++) {
        const Field* field = table->field[i];
        if (!field->stored_in_db()) {
            if (field->real_maybe_null()) {
                stored_nulls_[field->null_offset()] &= static_cast<uchar>(~field->null_bit);
                has_virtual_nulls_ = true;
            }
            continue;
        }
        if (in_key[i]) continue;
        ColumnCodec column = ColumnCodec::of(table, field);
        stored_.push_back(column);
        if (column.null_mask && column.kind != ColumnKind::Blob) nullable_.push_back(column);
        if (column.kind != ColumnKind::Fixed) {
            has_blobs_ |= column.kind == ColumnKind::Blob;
            variable_.push_back(column);
        } else if (!runs_.empty() && runs_.back().offset + runs_.back().length == column.offset)
            runs_.back().length += column.bytes;
        else
            runs_.push_back({column.offset, column.bytes});
    }
    for (const Run& run : runs_)
        runs_length_ += run.length;
    find_tail(table);
    version_ = kVersion;
    number_ = tail_.columns;
    return layouts.empty() || find_older(table, layouts);
}

/* How rows of the older layouts are read. The newest must be what the server's definition makes of the table: after a
   crash that left another one the table is not opened. */
bool RowCodec::find_older(const TABLE* table, const RowLayouts& layouts) {
    if (!layouts.newest().has_form_of(layout())) return false;
    std::vector<uchar> nulls(table->s->default_values, table->s->default_values + null_bytes_);
    /* Virtual columns are NULL until they are computed. */
    for (Field** field = table->field; *field; field++)
        if (!(*field)->stored_in_db() && (*field)->real_maybe_null())
            nulls[(*field)->null_offset()] |= (*field)->null_bit;
    version_ = kVersionOfLayouts;
    number_ = static_cast<uint16_t>(layouts.layouts.size() - 1);
    tail_ = layouts.tail;
    older_.resize(number_);
    for (size_t i = 0; i < older_.size(); i++)
        if (!older_[i].init(layouts, layouts.layouts[i], stored_, nulls)) return false;
    return true;
}

RowLayout RowCodec::layout() const {
    RowLayout layout;
    layout.null_bytes = static_cast<uint16_t>(null_bytes_);
    for (const ColumnCodec& column : stored_)
        layout.columns.push_back(column.in_layout(static_cast<uint16_t>(layout.columns.size() + 1)));
    return layout;
}

/* Which columns are the tail, and whether each of them has the one bit in the null bytes that its place says. */
void RowCodec::find_tail(const TABLE* table) {
    uint base_columns = table->s->fields;
    while (base_columns > 0 && !table->field[base_columns - 1]->stored_in_db())
        base_columns--;
    uint bits = table->s->db_create_options & HA_OPTION_PACK_RECORD ? 0 : 1, base_bits = bits;
    bool may_change = true;
    for (uint i = 0; i < table->s->fields; i++) {
        const Field* field = table->field[i];
        if (i == base_columns) base_bits = bits;
        if (field->real_maybe_null()) {
            may_change &= field->null_offset() == bits / 8 && field->null_bit == 1 << bits % 8;
            bits++;
        } else if (i >= base_columns)
            may_change = false;
    }
    if (base_columns == table->s->fields) base_bits = bits;
    may_change &= null_bytes_ == (bits + 7) / 8;
    tail_ = {static_cast<uint16_t>(table->s->fields), static_cast<uint16_t>(base_columns),
             static_cast<uint16_t>(base_bits), may_change};
}

bool RowCodec::reads(const RowCodec& other) const {
    const bool same_columns = tail_.columns == other.tail_.columns && null_bytes_ == other.null_bytes_;
    const bool same_base = tail_.may_change && other.tail_.may_change &&
                           tail_.base_columns == other.tail_.base_columns &&
                           tail_.base_null_bits == other.tail_.base_null_bits;
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
    *p++ = version_;
    int2store(p, number_);
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
    const size_t nulls = tail_.null_bytes(uint2korr(row.data + 1), null_bytes_);
    if (nulls == SIZE_MAX || row.len < kHeader + nulls + runs_length_) return nullptr;
    memset(record, 0xff, null_bytes_);
    const size_t base = tail_.base_null_bits / 8;
    memcpy(record, row.data + kHeader, base);
    if (const uint rest = tail_.base_null_bits % 8)
        record[base] = row.data[kHeader + base] | static_cast<uchar>(0xff << rest);
    return row.data + kHeader + nulls;
}

/* A row of another layout than the newest. */
bool RowCodec::unpack_older(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const {
    const uint number = uint2korr(row.data + 1);
    const bool is_first = row.data[0] == kVersion;
    const size_t layout = is_first ? 0 : number;
    if (layout >= older_.size() || (!is_first && (row.data[0] != kVersionOfLayouts || layout == 0))) return false;
    const RowTranslation& older = older_[layout];
    const size_t nulls = is_first ? tail_.null_bytes(number, older.null_bytes()) : older.null_bytes();
    if (nulls == SIZE_MAX) return false;
    uchar* blob = nullptr;
    if (has_blobs_ && !(blob = blobs->room(row.len))) return false;
    return older.unpack({row.data + kHeader, row.len - kHeader}, nulls, record, blob, wanted);
}

void RowCodec::fill_nulls(uchar* record) const {
    for (const ColumnCodec& column : nullable_)
        if (column.is_null(record)) memcpy(record + column.offset, defaults_ + column.offset, column.bytes);
}

/* A large value can be read nevertheless: what is wrong is to be seen in the answer. */
void RowCodec::poison(uchar* record) const {
    static uchar value[] = {kPoison, kPoison, kPoison, kPoison};
    for (const ColumnCodec& column : stored_) {
        uchar* p = record + column.offset;
        record[column.null_offset] |= column.null_mask;
        memset(p, kPoison, column.bytes);
        if (column.kind == ColumnKind::Varchar) {
            const size_t most = column.bytes - column.length_bytes;
            for (uint i = 0; i < column.length_bytes; i++)
                p[i] = static_cast<uchar>(most >> 8 * i);
        } else if (column.kind == ColumnKind::Blob) {
            const uchar* data = value;
            memset(p, 0, column.length_bytes);
            p[0] = sizeof value;
            memcpy(p + column.length_bytes, &data, sizeof data);
        }
    }
}

bool RowCodec::unpack(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const {
    if (kPoisons) poison(record);
    if (!unpack_columns(row, record, blobs, wanted)) return false;
    if (!wanted) fill_nulls(record);
    return true;
}

bool RowCodec::unpack_columns(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const {
    const uchar* p = row.data;
    const uchar* end = p + row.len;
    if (row.len < kHeader) return false;
    if (p[0] == version_ && uint2korr(p + 1) == number_) {
        if (row.len < kHeader + null_bytes_ + runs_length_) return false;
        p += kHeader;
        copy_few(record, p, null_bytes_);
        p += null_bytes_;
    } else if (has_layouts())
        return unpack_older(row, record, blobs, wanted);
    else if (p[0] != kVersion || !(p = unpack_other_nulls(row, record)))
        return false;
    if (has_virtual_nulls_) hide_virtual(record);
    for (const Run& run : runs_) {
        copy_few(record + run.offset, p, run.length);
        p += run.length;
    }
    if (variable_.empty()) return true;
    uchar* blob = nullptr;
    if (has_blobs_ && !(blob = blobs->room(row.len))) return false;
    for (const ColumnCodec& column : variable_) {
        if (column.is_null(record)) {
            if (column.kind == ColumnKind::Blob) memset(record + column.offset, 0, column.bytes);
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

void RowCodec::choose_anew(const MY_BITMAP* wanted, ChosenColumns* chosen) const {
    /* In the memory that it has: statements on one table may want other columns by turns. */
    chosen->copies_.clear();
    chosen->variable_.clear();
    chosen->words_.clear();
    chosen->blobs_ = false;
    auto is_wanted = [=](const ColumnCodec& column) { return !wanted || bitmap_is_set(wanted, column.fieldnr); };
    uint from = 0;
    for (const ColumnCodec& column : stored_) {
        if (column.kind != ColumnKind::Fixed) continue;
        std::vector<ChosenColumns::Copy>& copies = chosen->copies_;
        ChosenColumns::Copy* last = copies.empty() ? nullptr : &copies.back();
        if (!is_wanted(column))
            ;
        else if (last && last->from + last->length == from && last->to + last->length == column.offset)
            last->length += column.bytes;
        else
            copies.push_back({from, column.offset, column.bytes});
        from += column.bytes;
    }
    size_t count = 0;
    for (const ColumnCodec& column : variable_) {
        chosen->variable_.push_back({&column, is_wanted(column)});
        if (!is_wanted(column)) continue;
        count = chosen->variable_.size();
        chosen->blobs_ |= column.kind == ColumnKind::Blob;
    }
    chosen->variable_.resize(count);
    if (wanted) chosen->words_.assign(wanted->bitmap, wanted->bitmap + no_words_in_map(wanted));
    chosen->known_ = true;
}

bool RowCodec::unpack_variable(const uchar* from, const uchar* end, uchar* record, Buffer* blobs,
                               const ChosenColumns& chosen) const {
    uchar* blob = nullptr;
    if (chosen.blobs_ && !(blob = blobs->room(static_cast<size_t>(end - from)))) return false;
    for (const ChosenColumns::Variable& variable : chosen.variable_) {
        const ColumnCodec& column = *variable.column;
        if (column.is_null(record)) {
            if (column.kind == ColumnKind::Blob) memset(record + column.offset, 0, column.bytes);
            continue;
        }
        from = variable.wanted ? column.unpack(from, end, record, &blob) : column.skip(from, end);
        if (!from) return false;
    }
    return true;
}

bool RowCodec::find_place(uint fieldnr, Place* place) const {
    size_t fixed = 0;
    for (const ColumnCodec& column : stored_) {
        if (column.kind != ColumnKind::Fixed) continue;
        if (column.fieldnr == fieldnr) {
            *place = {&column, fixed};
            return true;
        }
        fixed += column.bytes;
    }
    for (size_t i = 0; i < variable_.size(); i++)
        if (variable_[i].fieldnr == fieldnr) {
            *place = {&variable_[i], i};
            return true;
        }
    return false;
}

bool RowCodec::text_of(teak_bytes row, const Place& place, teak_bytes* text) const {
    const size_t before = kHeader + null_bytes_ + runs_length_;
    if (!is_newest(row) || row.len < before) return false;
    const uchar* const nulls = row.data + kHeader; /* which a record begins with */
    const ColumnCodec& wanted = *place.column;
    if (wanted.is_null(nulls)) return false;
    if (wanted.kind == ColumnKind::Fixed) {
        *text = {nulls + null_bytes_ + place.at, wanted.bytes};
        return true;
    }
    const uchar *from = row.data + before, *const end = row.data + row.len;
    for (size_t i = 0; i < place.at; i++)
        if (!variable_[i].is_null(nulls) && !(from = variable_[i].skip(from, end))) return false;
    const uchar* const next = wanted.skip(from, end);
    if (!next) return false;
    from += wanted.length_bytes;
    *text = {from, static_cast<size_t>(next - from)};
    return true;
}

void RowCodec::take_unchanged(const uchar* old_record, const uchar* is, uchar* record) const {
    for (const ColumnCodec& column : stored_) {
        const bool is_null = column.is_null(old_record);
        if (is_null != column.is_null(record) || !(is_null || column.same(old_record, record))) continue;
        memcpy(record + column.offset, is + column.offset, column.bytes);
        if (!column.null_mask) continue;
        record[column.null_offset] &= static_cast<uchar>(~column.null_mask);
        record[column.null_offset] |= is[column.null_offset] & column.null_mask;
    }
}

bool RowCodec::same(const uchar* a, const uchar* b) const {
    for (uint i = 0; i < null_bytes_; i++)
        if ((a[i] ^ b[i]) & stored_nulls_[i]) return false;
    for (const ColumnCodec& column : stored_)
        if (!column.is_null(a) && !column.same(a, b)) return false;
    return true;
}

} // namespace teak
