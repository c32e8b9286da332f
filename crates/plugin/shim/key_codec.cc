#include "key_codec.h"

namespace teak {
namespace {

constexpr uchar kNull = 0, kValue = 1;
constexpr uchar kEscapedZero = 1;
constexpr uchar kBelowSpaces = 1, kAboveSpaces = 3;

/* Bytes of collation weights that `bytes` bytes of text can have. */
size_t weights_bound(CHARSET_INFO* cs, size_t bytes) { return cs->strnxfrmlen(bytes + cs->mbmaxlen) + 16; }

bool is_zero(const uchar* p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

void complement(uchar* from, const uchar* to) {
    for (; from < to; from++)
        *from = static_cast<uchar>(~*from);
}

/* A unit of `U` bytes; the size is known, so that no unit costs a call. */
template <size_t U> bool is_unit(const uchar* at, const uchar* unit) { return memcmp(at, unit, U) == 0; }

template <size_t U> uchar* encode_padded(const uchar* special, uchar* to, const uchar* w, size_t n) {
    while (n >= U && is_unit<U>(w + n - U, special))
        n -= U;
    const uchar* end = w + n;
    uchar run_flag = 0; /* of the run of spaces we are in; 0 = not in one */
    for (; static_cast<size_t>(end - w) >= U; w += U) {
        memcpy(to, w, U);
        to += U;
        if (!is_unit<U>(w, special)) {
            run_flag = 0;
            continue;
        }
        if (run_flag == 0) {
            const uchar* next = w + U;
            while (static_cast<size_t>(end - next) >= U && is_unit<U>(next, special))
                next += U;
            size_t rest = std::min<size_t>(U, static_cast<size_t>(end - next));
            run_flag = memcmp(next, special, rest) < 0 ? kBelowSpaces : kAboveSpaces;
        }
        *to++ = run_flag;
    }
    if (w < end) { /* no collation does this; keep the order sane anyway */
        memcpy(to, special, U);
        memcpy(to, w, static_cast<size_t>(end - w));
        to += U;
    }
    memcpy(to, special, U);
    to += U;
    *to++ = kEndSpaces;
    return to;
}

template <size_t U> uchar* encode_zero(uchar* to, const uchar* w, size_t n) {
    static const uchar zero[U] = {};
    const uchar* end = w + n;
    for (; static_cast<size_t>(end - w) >= U; w += U) {
        memcpy(to, w, U);
        to += U;
        if (is_unit<U>(w, zero)) *to++ = kEscapedZero;
    }
    if (w < end) {
        memcpy(to, zero, U);
        memcpy(to, w, static_cast<size_t>(end - w));
        to += U;
        if (is_unit<U>(to - U, zero)) *to++ = kEscapedZero;
    }
    memcpy(to, zero, U);
    to += U;
    *to++ = kEndZero;
    return to;
}

/* What `action` gives for units of so many bytes, which it knows when it is compiled. */
template <typename Action> auto with_unit(size_t unit, const Action& action) {
    switch (unit) {
    case 2:
        return action(std::integral_constant<size_t, 2>());
    case 3:
        return action(std::integral_constant<size_t, 3>());
    case 4:
        return action(std::integral_constant<size_t, 4>());
    default:
        return action(std::integral_constant<size_t, 1>());
    }
}

/* Collations that give the weights of all their levels one after the other, whatever they are asked for. */
bool has_one_sequence(CHARSET_INFO* cs) { return (cs->state & MY_CS_STRNXFRM_BAD_NWEIGHTS) != 0; }

/*
  Big5 by Chinese rules compares the codes of characters of two bytes, while its strnxfrm gives what is the same for all
  that are written with as many strokes.
*/
bool compares_codes(CHARSET_INFO* cs) { return strcmp(cs->cs_name.str, "big5") == 0 && !(cs->state & MY_CS_BINSORT); }

/* Whether keys of KeyEncoding::CutWeights had something else than what the collation compares. */
bool was_cut(CHARSET_INFO* cs) { return cs->levels_for_order > 1 || has_one_sequence(cs) || compares_codes(cs); }

size_t codes_of(CHARSET_INFO* cs, uchar* to, const uchar* text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (cs->charlen(text + i, text + length) == 2) {
            to[i] = text[i];
            i++;
            to[i] = text[i];
        } else
            to[i] = cs->sort_order[text[i]];
    }
    return length;
}

} // namespace

bool set_levels(KeyPartCodec* part) {
    CHARSET_INFO* cs = part->charset;
    const bool several = cs->levels_for_order > 1 && !has_one_sequence(cs);
    uchar space[8], weight[64];
    memset(space, 0, sizeof space);
    cs->fill(reinterpret_cast<char*>(space), cs->mbminlen, ' ');
    for (uint i = 0; i < (several ? MY_STRXFRM_NLEVELS : 1); i++) {
        if (several && !(cs->levels_for_order >> i & 1)) continue;
        KeyPartCodec::Level& level = part->level[part->levels];
        level.flags = several ? MY_STRXFRM_LEVEL1 << i : 0;
        /* What is left of a CHAR is compared to its full length. */
        level.padded = !has_one_sequence(cs) && (part->pad_space || (part->levels > 0 && part->length_bytes));
        size_t n = has_one_sequence(cs) ? 1 : cs->strnxfrm(weight, sizeof weight, 1, space, cs->mbminlen, level.flags);
        if (n < 1 || n > sizeof level.special) n = 1;
        if (part->levels == 0) part->unit = static_cast<uint8_t>(n);
        if (n != part->unit) return false;
        if (level.padded) memcpy(level.special, weight, n);
        part->levels++;
    }
    part->level_size = static_cast<uint>(weights_bound(cs, part->length) / part->levels + 1);
    return true;
}

namespace {

bool describe_string(KeyPartCodec* part, const Field* field, KeyEncoding encoding) {
    CHARSET_INFO* cs = field->charset();
    part->charset = cs;
    part->characters = cs->mbmaxlen > 1 || part->prefix ? part->length / cs->mbmaxlen : 0;
    part->pad_space = !(cs->state & MY_CS_NOPAD);
    part->outdated = encoding == KeyEncoding::CutWeights && was_cut(cs);
    part->by_codes = compares_codes(cs) && !part->outdated;
    if (part->outdated && !compares_codes(cs)) {
        part->kind = PartKind::Weights;
        return true;
    }
    part->kind = PartKind::String;
    return set_levels(part);
}

/* Fixed size of padded weights: what a full column gives. */
uint weights_size(const KeyPartCodec& part) {
    uint characters = part.length / part.charset->mbmaxlen;
    std::vector<uchar> buffer(weights_bound(part.charset, part.length));
    uchar nothing = 0;
    if (part.charset->state & MY_CS_STRNXFRM_BAD_NWEIGHTS) return static_cast<uint>(buffer.size());
    return static_cast<uint>(
        part.charset->strnxfrm(buffer.data(), buffer.size(), characters, &nothing, 0, MY_STRXFRM_PAD_WITH_SPACE));
}

/* How long its encoding is: always, or at most. */
void set_sizes(KeyPartCodec* part) {
    switch (part->kind) {
    case PartKind::Integer:
    case PartKind::Raw:
    case PartKind::Float:
        part->fixed_size = part->length;
        part->max_size = part->length;
        break;
    case PartKind::Binary:
        part->max_size = 2 * part->length + 2;
        break;
    case PartKind::String: {
        const uint one = part->level_size + part->level_size / part->unit + 2 * part->unit + 2;
        part->max_size = part->levels * one;
        break;
    }
    case PartKind::Weights:
        part->fixed_size = part->max_size = weights_size(*part);
        break;
    }
    part->max_size += part->null_mask ? 1 : 0;
}

/* Behind the end of one level's units, nullptr if there is none. */
template <size_t U>
const uchar* skip(const KeyPartCodec::Level& level, uchar flip, const uchar* from, const uchar* end) {
    const uchar stop = level.padded ? kEndSpaces : kEndZero;
    uchar special[U];
    for (size_t i = 0; i < U; i++)
        special[i] = level.special[i] ^ flip;
    while (static_cast<size_t>(end - from) > U) {
        const bool is_special = is_unit<U>(from, special);
        from += U;
        if (is_special && (*from++ ^ flip) == stop) return from;
    }
    return nullptr;
}

} // namespace

bool has_same_weights(const CHARSET_INFO* from, const CHARSET_INFO* to) {
    auto own_name = [](const CHARSET_INFO* cs) { return cs->coll_name.str + cs->cs_name.length; };
    return from == to || (!(from->state & MY_CS_BINSORT) && !strcmp(own_name(from), own_name(to)));
}

const uchar* KeyPartCodec::data(const uchar* record, size_t* length_of_data) const {
    const uchar* p = record + offset;
    if (length_bytes == 0) {
        *length_of_data = length;
        return p;
    }
    size_t n = 0;
    for (uint i = 0; i < length_bytes; i++)
        n |= static_cast<size_t>(p[i]) << (8 * i);
    p += length_bytes;
    if (is_blob) {
        const uchar* blob;
        memcpy(&blob, p, sizeof blob);
        p = blob;
        if (!p) n = 0;
    }
    *length_of_data = n;
    return p;
}

bool KeyPartCodec::differs(const uchar* a, const uchar* b) const {
    bool null_a = is_null(a), null_b = is_null(b);
    if (null_a != null_b) return true;
    if (null_a) return false;
    if (length_bytes == 0) return memcmp(a + offset, b + offset, column_bytes) != 0;
    size_t n_a, n_b;
    const uchar *data_a = data(a, &n_a), *data_b = data(b, &n_b);
    return n_a != n_b || (n_a != 0 && memcmp(data_a, data_b, n_a) != 0);
}

bool KeyCodec::add_parts(const TABLE* table, const KEY* key, uint count, KeyEncoding encoding) {
    for (uint i = 0; i < count; i++) {
        const KEY_PART_INFO& info = key->key_part[i];
        const Field* field = info.field;
        KeyPartCodec part{};
        part.fieldnr = field->field_index;
        part.offset = static_cast<uint>(field->offset(table->record[0]));
        if (field->real_maybe_null()) {
            part.null_offset = field->null_offset();
            part.null_mask = field->null_bit;
        }
        part.length = info.length;
        part.column_bytes = field->pack_length();
        part.descending = (info.key_part_flag & HA_REVERSE_SORT) != 0;
        part.is_blob = (field->flags & BLOB_FLAG) != 0;
        const bool is_short = !part.is_blob && !is_whole(table, info);
        part.prefix = part.is_blob || (is_short && encoding >= KeyEncoding::Prefixes);
        part.restorable = !part.prefix;
        if (part.is_blob)
            part.length_bytes = static_cast<uint8_t>(static_cast<const Field_blob*>(field)->pack_length_no_ptr());
        else if (field->real_type() == MYSQL_TYPE_VARCHAR)
            part.length_bytes = static_cast<uint8_t>(static_cast<const Field_varstring*>(field)->length_bytes);
        switch (field->key_type()) {
        case HA_KEYTYPE_SHORT_INT:
        case HA_KEYTYPE_INT24:
        case HA_KEYTYPE_LONG_INT:
        case HA_KEYTYPE_LONGLONG:
        case HA_KEYTYPE_INT8:
            part.is_signed = true;
            part.kind = PartKind::Integer;
            break;
        case HA_KEYTYPE_USHORT_INT:
        case HA_KEYTYPE_UINT24:
        case HA_KEYTYPE_ULONG_INT:
        case HA_KEYTYPE_ULONGLONG:
            part.kind = PartKind::Integer;
            break;
        case HA_KEYTYPE_FLOAT:
        case HA_KEYTYPE_DOUBLE:
            part.kind = PartKind::Float;
            part.restorable = false; /* -0 becomes 0 */
            break;
        case HA_KEYTYPE_BINARY:
        case HA_KEYTYPE_BIT:
            part.kind = PartKind::Raw;
            break;
        case HA_KEYTYPE_VARBINARY1:
        case HA_KEYTYPE_VARBINARY2:
            part.kind = PartKind::Binary;
            break;
        case HA_KEYTYPE_TEXT:
        case HA_KEYTYPE_VARTEXT1:
        case HA_KEYTYPE_VARTEXT2:
            if (!describe_string(&part, field, encoding)) return false;
            part.restorable = false;
            break;
        default:
            return false; /* the decimals of MySQL 4.1, which no statement creates any more */
        }
        part.outdated |= is_short && !part.prefix;
        set_sizes(&part);
        parts_.push_back(part);
    }
    return true;
}

void KeyCodec::finish() {
    max_size_ = 0;
    fixed_size_ = 0;
    bool fixed = true;
    size_t scratch = 0;
    for (const KeyPartCodec& part : parts_) {
        max_size_ += part.max_size;
        fixed_size_ += part.fixed_size;
        if (part.fixed_size == 0 || part.null_mask) fixed = false;
        scratch = std::max<size_t>(scratch, part.level_size);
    }
    if (!fixed) fixed_size_ = 0;
    const KeyPartCodec* only = parts_.size() == 1 ? parts_.data() : nullptr;
    if (only && only->kind == PartKind::Integer && only->length == 4 && !only->null_mask && !only->descending)
        one_int_ = {true, only->is_signed ? 0x80000000U : 0, only->offset};
    weights_.resize(scratch);
}

uchar* KeyCodec::encode_body(const KeyPartCodec& part, uchar* to, const uchar* data, size_t length) const {
    switch (part.kind) {
    case PartKind::Integer: {
        const uint n = part.length;
        if (n == 4) {
            /* The most frequent by far. */
            int4store(to, __builtin_bswap32(uint4korr(data)));
        } else if (n == 8) {
            int8store(to, __builtin_bswap64(uint8korr(data)));
        } else
            for (uint i = 0; i < n; i++)
                to[i] = data[n - 1 - i];
        if (part.is_signed) to[0] ^= 0x80;
        return to + n;
    }
    case PartKind::Raw:
        memcpy(to, data, part.length);
        return to + part.length;
    case PartKind::Float: {
        uint n = part.length;
        uchar big[8] = {};
        for (uint i = 0; i < n; i++)
            big[i] = data[n - 1 - i];
        if (big[0] & 0x80) {
            uchar magnitude[8];
            memcpy(magnitude, big, n);
            magnitude[0] &= 0x7f;
            if (is_zero(magnitude, n))
                memcpy(big, magnitude, n), big[0] = 0x80;
            else
                complement(big, big + n);
        } else
            big[0] |= 0x80;
        memcpy(to, big, n);
        return to + n;
    }
    case PartKind::Binary:
        return encode_zero<1>(to, data, std::min<size_t>(length, part.length));
    case PartKind::String:
    case PartKind::Weights:
        break;
    }
    CHARSET_INFO* cs = part.charset;
    if (part.characters) {
        size_t cut = cs->charpos(data, data + length, part.characters);
        length = std::min(length, cut);
    }
    length = std::min<size_t>(length, part.length);
    if (part.kind == PartKind::Weights) {
        uint characters = part.length / cs->mbmaxlen;
        size_t n = cs->strnxfrm(to, part.fixed_size, characters, data, length,
                                MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
        if (n < part.fixed_size) memset(to + n, 0, part.fixed_size - n);
        return to + part.fixed_size;
    }
    if (part.pad_space && length) length = cs->lengthsp(reinterpret_cast<const char*>(data), length);
    for (uint i = 0; i < part.levels; i++) {
        const KeyPartCodec::Level& level = part.level[i];
        size_t n = part.by_codes
                       ? codes_of(cs, weights_.data(), data, length)
                       : cs->strnxfrm(weights_.data(), part.level_size, part.level_size, data, length, level.flags);
        to = with_unit(part.unit, [&](auto u) {
            return level.padded ? encode_padded<u>(level.special, to, weights_.data(), n)
                                : encode_zero<u>(to, weights_.data(), n);
        });
    }
    return to;
}

uchar* KeyCodec::encode_columns(uchar* to, const uchar* record, uint count) const {
    for (uint i = 0; i < count; i++) {
        const KeyPartCodec& part = parts_[i];
        uchar* start = to;
        bool null = part.is_null(record);
        if (part.null_mask) *to++ = null ? kNull : kValue;
        if (!null) {
            size_t length;
            const uchar* data = part.data(record, &length);
            to = encode_body(part, to, data, length);
        }
        if (part.descending) complement(start, to);
    }
    return to;
}

bool KeyCodec::has_null(const uchar* record, uint count) const {
    for (uint i = 0; i < count; i++)
        if (parts_[i].is_null(record)) return true;
    return false;
}

uchar* KeyCodec::encode_values(uchar* to, const uchar* tuple, uint tuple_length, uint* parts_done,
                               bool* has_null) const {
    *has_null = false;
    const uchar* tuple_end = tuple + tuple_length;
    uint done = 0;
    for (; done < parts_.size() && tuple < tuple_end; done++) {
        const KeyPartCodec& part = parts_[done];
        uchar* start = to;
        bool null = false;
        if (part.null_mask) {
            null = *tuple++ != 0;
            *to++ = null ? kNull : kValue;
            *has_null |= null;
        }
        const uchar* data = tuple;
        size_t length = part.length;
        tuple += part.length;
        if (part.length_bytes) { /* in a tuple always 2 bytes, whatever the record has */
            length = data[0] | static_cast<size_t>(data[1]) << 8;
            data += 2;
            tuple += 2;
        }
        if (!null) to = encode_body(part, to, data, length);
        if (part.descending) complement(start, to);
    }
    *parts_done = done;
    return to;
}

void KeyCodec::copy_columns(uchar* to, const uchar* record) const {
    for (const KeyPartCodec& part : parts_) {
        size_t length;
        const uchar* data = part.data(record, &length);
        if (part.length_bytes) {
            length = std::min<size_t>(length, part.length);
            int2store(to, length);
            to += 2;
        }
        memcpy(to, data, length);
        memset(to + length, 0, part.length - length);
        to += part.length;
    }
}

size_t KeyCodec::tuple_size() const {
    size_t size = 0;
    for (const KeyPartCodec& part : parts_)
        size += part.length + (part.length_bytes ? 2 : 0);
    return size;
}

const uchar* KeyCodec::skip_part(const KeyPartCodec& part, const uchar* from, const uchar* end) {
    const uchar flip = part.descending ? 0xff : 0;
    if (part.null_mask) {
        if (from >= end) return nullptr;
        if ((*from++ ^ flip) == kNull) return from;
    }
    if (part.fixed_size) return static_cast<size_t>(end - from) >= part.fixed_size ? from + part.fixed_size : nullptr;
    static const KeyPartCodec::Level binary{};
    if (part.kind == PartKind::Binary) return skip<1>(binary, flip, from, end);
    for (uint i = 0; i < part.levels && from; i++)
        from = with_unit(part.unit, [&](auto u) { return skip<u>(part.level[i], flip, from, end); });
    return from;
}

const uchar* KeyCodec::decode_part(const KeyPartCodec& part, const uchar* from, const uchar* end, uchar* record,
                                   const uchar* behind) {
    const uchar flip = part.descending ? 0xff : 0;
    if (part.null_mask) {
        if (from >= end) return nullptr;
        if ((*from ^ flip) == kNull) {
            record[part.null_offset] |= part.null_mask;
            return from + 1;
        }
        record[part.null_offset] &= static_cast<uchar>(~part.null_mask);
    }
    if (!part.restorable) return behind && behind > from ? behind : skip_part(part, from, end);
    if (part.null_mask) from++;
    uchar* to = record + part.offset;
    if (part.kind == PartKind::Binary) {
        uchar* data = to + part.length_bytes;
        size_t n = 0;
        while (from + 1 < end) {
            uchar c = *from++ ^ flip;
            if (c == 0) {
                uchar mark = *from++ ^ flip;
                if (mark == kEndZero) {
                    to[0] = static_cast<uchar>(n);
                    if (part.length_bytes == 2) to[1] = static_cast<uchar>(n >> 8);
                    return from;
                }
            }
            if (n >= part.length) return nullptr;
            data[n++] = c;
        }
        return nullptr;
    }
    const uint n = part.length;
    if (static_cast<size_t>(end - from) < n) return nullptr;
    if (part.kind == PartKind::Integer) {
        if (n == 4) {
            /* The most frequent by far. */
            uint32_t number = __builtin_bswap32(uint4korr(from)) ^ (flip ? UINT32_MAX : 0);
            int4store(to, part.is_signed ? number ^ 0x80000000U : number);
            return from + n;
        }
        for (uint i = 0; i < n; i++)
            to[n - 1 - i] = from[i] ^ flip;
        if (part.is_signed) to[n - 1] ^= 0x80;
    } else
        for (uint i = 0; i < n; i++)
            to[i] = from[i] ^ flip;
    return from + n;
}

} // namespace teak
