/*
  See column_change.h.
*/
#include "column_change.h"
#include "layout_maker.h"

namespace teak {

namespace {

/* Which integer may become which: a wider one that can hold all its values, where neither an index nor a partition is
   told by its bytes. */
bool widens(const OpenTable& open, const Field& field, const Column_definition& to) {
    const enum_field_types type = to.type_handler()->field_type();
    if (!is_integer(field.type()) || !is_integer(type) || field.vcol_info || to.vcol_info) return false;
    const uint32 now = field.pack_length(), then = to.type_handler()->calc_pack_length(static_cast<uint32>(to.length));
    const bool was_unsigned = field.flags & UNSIGNED_FLAG, is_unsigned = to.flags & UNSIGNED_FLAG;
    if (then <= now || (is_unsigned && !was_unsigned)) return false;
    /* As texts, which generated columns may have, such integers are as long as their type says. */
    if ((field.flags | to.flags) & ZEROFILL_FLAG) return false;
    return !(field.flags & FIELD_IN_PART_FUNC_FLAG) && !is_in_index(open.table, &field);
}

/* Whether the column's bytes may mean what the new collation makes of them, which has them in another order perhaps:
   nothing that is stored was computed from that order. */
bool takes_collation(const OpenTable& open, const Field& field, const CHARSET_INFO* to) {
    if (field.charset() == to) return true;
    if (!keeps_bytes(field.charset(), to) || field.flags & FIELD_IN_PART_FUNC_FLAG) return false;
    if (is_in_index(open.table, &field) && !has_same_weights(field.charset(), to)) return false;
    for (uint i = 0; i < open.table->s->keys; i++)
        if (open.table->key_info[i].algorithm == HA_KEY_ALG_LONG_HASH) return false;
    for (Field** other = open.table->field; *other; other++)
        if ((*other)->vcol_info && ((*other)->stored_in_db() || is_in_index(open.table, *other))) return false;
    return true;
}

bool is_plain_blob(const Type_handler* type) {
    return type == &type_handler_tiny_blob || type == &type_handler_blob || type == &type_handler_medium_blob ||
           type == &type_handler_long_blob;
}

} // namespace

bool converts_in_place(const OpenTable& open, const Field& field, const Column_definition& to) {
    if (widens(open, field, to)) return true;
    if (field.vcol_info || to.vcol_info || to.compression_method()) return false;
    const enum_field_types type = field.real_type();
    if (type == MYSQL_TYPE_VARCHAR) {
        const auto& text = static_cast<const Field_varstring&>(field);
        if (field.type_handler() != to.type_handler() || text.compression_method() || to.length < text.field_length ||
            to.char_length < field.char_length() || !takes_collation(open, field, to.charset))
            return false;
        if (HA_VARCHAR_PACKLENGTH(to.length) != text.length_bytes && is_in_index(open.table, &field)) return false;
        /* Keys of before all weights were kept have as many as fit into the column. */
        return open.meta.encoding != KeyEncoding::CutWeights || text.part_of_key.is_clear_all();
    }
    if (is_in_index(open.table, &field)) return false;
    if (type == MYSQL_TYPE_STRING) {
        /* Without its spaces in a row where a character may have several bytes. */
        const bool is_padded = field.charset()->mbmaxlen > 1 && to.length > field.field_length;
        return field.type_handler() == to.type_handler() && to.char_length >= field.char_length() &&
               (is_padded || to.length == field.field_length) && takes_collation(open, field, to.charset);
    }
    if (!is_plain_blob(field.type_handler()) || !is_plain_blob(to.type_handler())) return false;
    return !static_cast<const Field_blob&>(field).compression_method() && to.pack_length >= field.pack_length() &&
           takes_collation(open, field, to.charset);
}

} // namespace teak
