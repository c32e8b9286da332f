#include "layout_maker.h"
#include <algorithm>

namespace teak {
namespace {

RowLayouts::Default packed_default(uint16_t id, const ColumnCodec& column, const uchar* record) {
    RowLayouts::Default value{id, column.is_null(record), {}};
    if (value.is_null) return value;
    value.value.resize(column.packed_size(record));
    value.value.resize(static_cast<size_t>(column.pack(value.value.data(), record) - value.value.data()));
    return value;
}

} // namespace

/* InnoDB's rule: times are those of the statement's beginning and what a session function says is the same all the
   statement long; whatever else is no constant has to be evaluated row by row. */
bool evaluate_default(Field* field) {
    if (field->default_value && (field->default_value->flags & ~uint(VCOL_SESSION_FUNC | VCOL_TIME_FUNC))) return false;
    const int result = field->set_default();
    return result == 0 || result == 3; /* 3: of a time, the date is taken */
}

bool is_in_index(const TABLE* table, const Field* field) {
    for (uint i = 0; i < table->s->keys; i++)
        for (uint part = 0; part < table->key_info[i].user_defined_key_parts; part++)
            if (table->key_info[i].key_part[part].fieldnr == field->field_index + 1u) return true;
    return false;
}

size_t LayoutMaker::place_of(const Field* field) const {
    for (size_t i = 0; i < now.stored().size(); i++)
        if (now.stored()[i].fieldnr == field->field_index) return i;
    return SIZE_MAX;
}

bool LayoutMaker::leaves_rows(List<Create_field>& columns) const {
    /* Virtual columns may come and go behind the others; no key of a row restores them. */
    std::vector<bool> a = in_key_now, b = in_key_then;
    a.resize(std::max(a.size(), b.size()));
    b.resize(a.size());
    if (a != b || now.stored().size() != then.stored().size()) return false;
    size_t stored = 0;
    uint number = 0;
    for (const Create_field& column : columns) {
        if (stored == then.stored().size() || then.stored()[stored].fieldnr != number++) continue;
        const ColumnCodec &before = now.stored()[stored], &after = then.stored()[stored];
        if (!column.field || column.field->field_index != before.fieldnr || !keeps_bytes(before.charset, after.charset))
            return false;
        stored++;
    }
    return layouts.empty() ? then.reads(now) : layouts.newest().has_form_of(then.layout());
}

/* Whether a column's values of before can be read by its new definition. */
bool LayoutMaker::keep(const TABLE* table, const Field* field, const LayoutColumn& before, LayoutColumn* mine) const {
    mine->id = before.id;
    if (!before.reads_as(*mine)) return false;
    /* Entries of indexes have no layouts. */
    const bool changed = before.length_bytes != mine->length_bytes || before.bytes != mine->bytes ||
                         before.may_be_null() != mine->may_be_null();
    return !changed || !is_in_index(table, field);
}

bool LayoutMaker::has_room(const RowLayouts& made, const char** reason) const {
    std::vector<uchar> bytes;
    made.encode(&bytes);
    if (made.layouts.size() > RowLayouts::kMost)
        *reason = "the table has as many row layouts as it can have; ALTER TABLE ... FORCE leaves one";
    else if (bytes.size() > RowLayouts::kMostBytes)
        *reason = "row layouts and the defaults of added columns take too much space; ALTER TABLE ... FORCE frees it";
    else
        return true;
    return false;
}

bool LayoutMaker::make(const TABLE* table, const TABLE* altered, List<Create_field>& columns, RowLayouts* out,
                       const char** reason) const {
    *out = layouts;
    if (out->empty()) {
        out->tail = now.tail();
        out->layouts.push_back(now.layout());
    }
    const RowLayout before = out->newest();
    RowLayout after = then.layout();
    uint16_t id = out->next_id();
    size_t stored = 0;
    uint number = 0;
    for (const Create_field& column : columns) {
        const uint mine = number++;
        if (in_key_then[mine]) {
            if (!column.field || !in_key_now[column.field->field_index]) return false;
            continue;
        }
        Field* field = altered->field[mine];
        if (!field->stored_in_db()) continue;
        if (field->pack_length() != field->pack_length_in_rec()) return false; /* bits outside of its bytes */
        const ColumnCodec& codec = then.stored()[stored];
        LayoutColumn* place = &after.columns[stored++];
        if (column.field) {
            const size_t old = place_of(column.field);
            if (old == SIZE_MAX || !keeps_bytes(now.stored()[old].charset, codec.charset)) return false;
            if (!keep(table, column.field, before.columns[old], place)) return false;
            continue;
        }
        if (field->vcol_info || id == 0 || id == UINT16_MAX || !evaluate_default(field)) return false;
        place->id = id++;
        out->defaults.push_back(packed_default(place->id, codec, altered->record[0]));
    }
    auto gone = [&](const RowLayouts::Default& value) { return !after.find(value.id); };
    out->defaults.erase(std::remove_if(out->defaults.begin(), out->defaults.end(), gone), out->defaults.end());
    out->layouts.push_back(std::move(after));
    return has_room(*out, reason);
}

} // namespace teak
