#include "index_codec.h"
#include <algorithm>

namespace teak {
namespace {

/* Images that may be left out: a bit each. */
constexpr size_t kGuessedImages = 8;

bool same_layout(const KeyPartCodec& a, const KeyPartCodec& b) {
    return a.fieldnr == b.fieldnr && a.length == b.length && a.prefix == b.prefix && a.null_mask == 0 &&
           b.null_mask == 0;
}

} // namespace

bool PrimaryCodec::init(const TABLE* table, KeyEncoding encoding) {
    encoding_ = encoding;
    uint pk = table->s->primary_key;
    restored_.assign(table->s->fields, false);
    hidden_ = pk == MAX_KEY;
    if (hidden_) return true;
    const KEY* key = &table->key_info[pk];
    if (!key_.add_parts(table, key, key->user_defined_key_parts, encoding)) return false;
    key_.finish();
    for (const KeyPartCodec& part : key_.parts())
        if (part.restorable) {
            restored_[part.fieldnr] = true;
            decodes_ = true;
            cuts_columns_ |= part.outdated;
        }
    /* What an index entry restores has nothing of a column whose prefix is in the key. */
    const bool whole =
        std::none_of(key_.parts().begin(), key_.parts().end(), [](const KeyPartCodec& part) { return part.prefix; });
    ids_are_columns_ = whole && key_.tuple_size() < key_.max_size();
    return true;
}

bool PrimaryCodec::decode_parts(teak_bytes pk, uchar* record) const {
    if (!decodes_) return true;
    const uchar* p = pk.data;
    const uchar* end = p + pk.len;
    for (const KeyPartCodec& part : key_.parts()) {
        p = KeyCodec::decode_part(part, p, end, record);
        if (!p) return false;
    }
    return true;
}

size_t PrimaryCodec::id_size() const {
    if (ids_are_columns_) return key_.tuple_size();
    return fixed_size() ? fixed_size() : 2 + max_size();
}

void PrimaryCodec::make_id(uchar* to, teak_bytes pk) const {
    if (fixed_size()) {
        memcpy(to, pk.data, pk.len);
        return;
    }
    int2store(to, pk.len);
    memcpy(to + 2, pk.data, pk.len);
    memset(to + 2 + pk.len, 0, max_size() - pk.len);
}

void PrimaryCodec::make_id(uchar* to, const uchar* record) const {
    if (ids_are_columns_) return key_.copy_columns(to, record);
    if (fixed_size()) {
        encode(to, record);
        return;
    }
    const size_t length = encode(to + 2, record);
    int2store(to, length);
    memset(to + 2 + length, 0, max_size() - length);
}

teak_bytes PrimaryCodec::of_id(const uchar* id, uchar* scratch) const {
    if (!ids_are_columns_) return fixed_size() ? teak_bytes{id, fixed_size()} : teak_bytes{id + 2, uint2korr(id)};
    uint done;
    bool has_null;
    const uchar* end = key_.encode_tuple(scratch, id, static_cast<uint>(key_.tuple_size()), &done, &has_null);
    return {scratch, static_cast<size_t>(end - scratch)};
}

bool PrimaryCodec::changed(const uchar* old_record, const uchar* new_record) const {
    for (const KeyPartCodec& part : key_.parts())
        if (part.differs(old_record, new_record)) return true;
    return false;
}

bool IndexCodec::init(const TABLE* table, uint index, const PrimaryCodec* primary) {
    const KEY* info = &table->key_info[index];
    primary_ = primary;
    unique_ = (info->flags & HA_NOSAME) && info->algorithm != HA_KEY_ALG_LONG_HASH;
    user_parts_ = info->user_defined_key_parts;
    if (!key_.add_parts(table, info, user_parts_, primary->encoding())) return false;
    std::vector<bool> known(table->s->fields, false), imaged(table->s->fields, false);
    auto note = [&](const KeyPartCodec& part) {
        if (part.restorable)
            known[part.fieldnr] = true;
        else if (!part.prefix && !imaged[part.fieldnr]) {
            imaged[part.fieldnr] = true;
            images_.push_back({ColumnCodec::of(table, table->field[part.fieldnr]), UINT_MAX, PlainText()});
        }
    };
    for (const KeyPartCodec& part : key_.parts()) {
        note(part);
        gives_back_ &= !part.outdated;
        if (!table->field[part.fieldnr]->stored_in_db()) virtual_columns_.push_back(part.fieldnr);
    }
    if (!unique_ && !primary->hidden()) {
        /* First the columns in the server's order of extended keys, then what could not be taken from the index's
           columns. */
        std::vector<KeyPartCodec> late;
        pk_sources_.assign(primary->parts(), Source{UINT_MAX, false});
        for (uint i = 0; i < primary->parts(); i++) {
            const KeyPartCodec& part = primary->key().parts()[i];
            bool present = false;
            for (uint j = 0; j < user_parts_; j++) {
                const KeyPartCodec& mine = key_.parts()[j];
                if (mine.fieldnr != part.fieldnr) continue;
                present = true;
                if (same_layout(mine, part)) pk_sources_[i] = Source{j, mine.descending != part.descending};
            }
            if (pk_sources_[i].part != UINT_MAX || present) continue;
            pk_sources_[i] = Source{static_cast<uint>(key_.parts().size()), false};
            key_.add_part(part);
        }
        for (uint i = 0; i < primary->parts(); i++)
            if (pk_sources_[i].part == UINT_MAX) {
                pk_sources_[i] = Source{static_cast<uint>(key_.parts().size()), false};
                key_.add_part(primary->key().parts()[i]);
            }
        tail_is_pk_ = true;
        for (uint i = 0; i < primary->parts(); i++)
            tail_is_pk_ &= pk_sources_[i].part == user_parts_ + i;
        if (tail_is_pk_) tail_size_ = primary->key().fixed_size();
    }
    if (!unique_ && primary->hidden()) tail_size_ = kRowIdBytes;
    for (const KeyPartCodec& part : primary->key().parts())
        if (!known[part.fieldnr]) note(part);
    key_.finish();
    for (const KeyCodec* key : {static_cast<const KeyCodec*>(&key_), &primary->key()})
        for (const KeyPartCodec& part : key->parts())
            if (part.prefix && !known[part.fieldnr] && !imaged[part.fieldnr]) unknown_.push_back(part);
    const uint parts = static_cast<uint>(key_.parts().size());
    /* A unique key ends with its row's if one of its columns is NULL. */
    size_t behind = unique_ ? kUnknown : primary_->hidden() ? kRowIdBytes : 0;
    behind_.assign(parts, kUnknown);
    for (uint i = parts; i-- > 0 && behind != kUnknown;) {
        const KeyPartCodec& part = key_.parts()[i];
        behind_[i] = behind;
        behind = part.fixed_size && !part.null_mask ? behind + part.fixed_size : kUnknown;
    }
    for (size_t i = 0; i < images_.size() && i < kGuessedImages; i++)
        for (uint j = 0; j < parts && images_[i].part == UINT_MAX; j++)
            if (key_.parts()[j].fieldnr == images_[i].column.fieldnr && !key_.parts()[j].prefix) {
                images_[i].part = j;
                images_[i].text = PlainText(key_.parts()[j]);
            }
    find_numbers();
    return true;
}

/* Most indexes are of integers, in tables whose primary key is one. */
void IndexCodec::find_numbers() {
    if (unique_ || !images_.empty() || !unknown_.empty()) return;
    for (const KeyPartCodec& part : key_.parts()) {
        if (part.kind != PartKind::Integer || !part.restorable) return numbers_.clear();
        numbers_.push_back({part.offset, part.null_offset, part.null_mask, static_cast<uint8_t>(part.length),
                            static_cast<uint8_t>(part.descending ? 0xff : 0),
                            static_cast<uint8_t>(part.is_signed ? 0x80 : 0)});
    }
}

IndexCodec::Guesses IndexCodec::guesses(const uchar* record) const {
    Guesses found;
    bool capitals = false;
    for (size_t i = 0; i < images_.size(); i++) {
        const Image& image = images_[i];
        if (image.column.is_null(record)) continue;
        const PlainText::Form form = image.part == UINT_MAX ? PlainText::Form::Other : image.text.form(record);
        if (form == PlainText::Form::Other) {
            found.others = true;
            continue;
        }
        found.left_out |= static_cast<uchar>(1 << i);
        found.capitals_size += image.text.capitals_size(record);
        capitals |= form == PlainText::Form::Capitals;
    }
    if (!capitals) found.capitals_size = 0;
    return found;
}

bool IndexCodec::encode(const uchar* record, teak_bytes pk, Buffer* key, Buffer* value, teak_entry* out) const {
    uchar* to = key->room(max_key_size());
    if (!to) return false;
    uchar* p = to;
    out->tree = tree_;
    out->flags = 0;
    size_t images = unique_ ? 2 + pk.len : 0;
    const Guesses guessed = guesses(record);
    auto left_out = [&](size_t i) { return i < kGuessedImages && (guessed.left_out >> i & 1); };
    auto stored = [&](size_t i) { return !images_[i].column.is_null(record) && !left_out(i); };
    const bool any = guessed.others || guessed.capitals_size;
    images += any + guessed.capitals_size;
    for (size_t i = 0; i < images_.size(); i++)
        if (stored(i)) images += images_[i].column.packed_size(record);
    if (unique_) {
        p = key_.encode_record(p, record, user_parts_);
        if (key_.has_null(record, user_parts_)) {
            memcpy(p, pk.data, pk.len);
            p += pk.len;
        } else
            out->flags = TEAK_ENTRY_UNIQUE;
    } else {
        p = key_.encode_record(p, record, static_cast<uint>(key_.parts().size()));
        if (primary_->hidden()) {
            memcpy(p, pk.data, pk.len);
            p += pk.len;
        }
    }
    out->key = {to, static_cast<size_t>(p - to)};
    uchar* v = value->room(images + 1);
    if (!v) return false;
    p = v;
    if (unique_) {
        int2store(p, pk.len);
        memcpy(p + 2, pk.data, pk.len);
        p += 2 + pk.len;
    }
    if (any) *p++ = guessed.left_out;
    for (size_t i = 0; i < images_.size(); i++)
        if (stored(i)) p = images_[i].column.pack(p, record);
    for (size_t i = 0; i < images_.size() && guessed.capitals_size; i++)
        if (left_out(i)) p = images_[i].text.pack_capitals(p, record);
    out->value = {v, static_cast<size_t>(p - v)};
    return true;
}

bool IndexCodec::changed(const uchar* old_record, const uchar* new_record) const {
    for (const KeyPartCodec& part : key_.parts())
        if (part.differs(old_record, new_record)) return true;
    return false;
}

teak_bytes IndexCodec::find_primary(const teak_entry_view& entry, uchar* scratch, size_t room) const {
    const teak_bytes none{nullptr, 0};
    const uchar* end = entry.key.data + entry.key.len;
    if (unique_) {
        if (entry.value.len < 2) return none;
        size_t n = uint2korr(entry.value.data);
        if (entry.value.len - 2 < n) return none;
        return {entry.value.data + 2, n};
    }
    const uchar* p = entry.key.data;
    if (tail_is_pk_) {
        p = end_of_parts(entry.key, user_parts_);
        return p ? teak_bytes{p, static_cast<size_t>(end - p)} : none;
    }
    const uchar* starts[MAX_REF_PARTS * 2 + 2];
    uint count = static_cast<uint>(key_.parts().size());
    if (count > MAX_REF_PARTS * 2) return none;
    for (uint i = 0; i < count; i++) {
        starts[i] = p;
        p = KeyCodec::skip_part(key_.parts()[i], p, end);
        if (!p) return none;
    }
    starts[count] = p;
    uchar* to = scratch;
    for (const Source& source : pk_sources_) {
        const uchar* from = starts[source.part];
        const uchar* stop = starts[source.part + 1];
        if (static_cast<size_t>(stop - from) > room - static_cast<size_t>(to - scratch)) return none;
        for (; from < stop; from++)
            *to++ = source.flip ? static_cast<uchar>(~*from) : *from;
    }
    return {scratch, static_cast<size_t>(to - scratch)};
}

bool IndexCodec::has_unknown(const MY_BITMAP* columns) const {
    return std::any_of(unknown_.begin(), unknown_.end(),
                       [=](const KeyPartCodec& part) { return bitmap_is_set(columns, part.fieldnr); });
}

bool IndexCodec::restore_numbers(const teak_entry_view& entry, uchar* record) const {
    const uchar* p = entry.key.data;
    const uchar* const end = p + entry.key.len;
    for (const Number& number : numbers_) {
        if (number.null_mask) {
            if (p == end) return false;
            /* The marker: 00 is NULL, which has nothing behind it. */
            if (*p++ == number.flip) {
                record[number.null_offset] |= number.null_mask;
                continue;
            }
            record[number.null_offset] &= static_cast<uchar>(~number.null_mask);
        }
        if (static_cast<size_t>(end - p) < number.length) return false;
        uchar* const to = record + number.offset;
        if (number.length == 4) {
            const uint32_t value = __builtin_bswap32(uint4korr(p)) ^ (number.flip ? UINT32_MAX : 0);
            int4store(to, value ^ static_cast<uint32_t>(number.sign) << 24);
        } else {
            for (uint i = 0; i < number.length; i++)
                to[number.length - 1 - i] = p[i] ^ number.flip;
            to[number.length - 1] ^= number.sign;
        }
        p += number.length;
    }
    return true;
}

bool IndexCodec::restore_parts(const teak_entry_view& entry, uchar* record) const {
    for (const KeyPartCodec& part : unknown_)
        memset(record + part.offset, 0, part.column_bytes);
    const uchar* p = entry.key.data;
    const uchar* end = p + entry.key.len;
    const uchar* starts[MAX_REF_PARTS * 2 + 2];
    const size_t parts = key_.parts().size();
    if (parts > MAX_REF_PARTS * 2) return false;
    for (size_t i = 0; i < parts; i++) {
        starts[i] = p;
        const uchar* behind = behind_[i] <= entry.key.len ? end - behind_[i] : nullptr;
        p = KeyCodec::decode_part(key_.parts()[i], p, end, record, behind);
        if (!p) return false;
    }
    const uchar* v = entry.value.data;
    const uchar* v_end = v + entry.value.len;
    if (unique_) {
        teak_bytes pk = primary_of(entry, nullptr, 0);
        if (!pk.data || (!primary_->hidden() && !primary_->decode(pk, record))) return false;
        v = pk.data + pk.len;
    }
    return restore_images(v, v_end, starts, end, record);
}

bool IndexCodec::restore_images(const uchar* v, const uchar* v_end, const uchar* const* starts, const uchar* end,
                                uchar* record) const {
    uchar* blobs = nullptr;
    const uchar left_out = v == v_end ? 0xff : *v++;
    auto is_left_out = [&](size_t i) { return i < kGuessedImages && (left_out >> i & 1); };
    for (size_t i = 0; i < images_.size(); i++) {
        if (is_left_out(i) || images_[i].column.is_null(record)) continue;
        v = images_[i].column.unpack(v, v_end, record, &blobs);
        if (!v) return false;
    }
    /* What follows the images says which letters are capital. */
    const uchar* capitals = v == v_end ? nullptr : v;
    for (size_t i = 0; i < images_.size(); i++) {
        const Image& image = images_[i];
        if (!is_left_out(i) || image.column.is_null(record)) continue;
        if (image.part == UINT_MAX || !image.text.restore(starts[image.part], end, &capitals, v_end, record))
            return false;
    }
    return true;
}

bool IndexCodec::says_the_same(teak_bytes key, teak_bytes a, teak_bytes b, uchar* record_a, uchar* record_b) const {
    if (!restore({key, a}, record_a) || !restore({key, b}, record_b)) return false;
    if (unique_) {
        const teak_bytes pk_a = primary_of({key, a}, nullptr, 0), pk_b = primary_of({key, b}, nullptr, 0);
        if (pk_a.len != pk_b.len || memcmp(pk_a.data, pk_b.data, pk_a.len) != 0) return false;
    }
    Buffer packed_a, packed_b;
    for (const Image& image : images_) {
        if (image.column.is_null(record_a) != image.column.is_null(record_b)) return false;
        if (image.column.is_null(record_a)) continue;
        const size_t size = image.column.packed_size(record_a);
        if (size != image.column.packed_size(record_b)) return false;
        uchar *to_a = packed_a.room(size + 1), *to_b = packed_b.room(size + 1);
        if (!to_a || !to_b) return false;
        image.column.pack(to_a, record_a);
        image.column.pack(to_b, record_b);
        if (memcmp(to_a, to_b, size) != 0) return false;
    }
    return true;
}

const uchar* IndexCodec::end_of_parts(teak_bytes key, uint count) const {
    const uchar* p = key.data;
    const uchar* end = p + key.len;
    for (uint i = 0; i < count && p; i++)
        p = KeyCodec::skip_part(key_.parts()[i], p, end);
    return p;
}

} // namespace teak
