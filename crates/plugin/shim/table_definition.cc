#include "table_definition.h"
#include "server_version.h"
#include "session.h"
#include <algorithm>
#include <vector>

namespace teak {

namespace {

constexpr ulonglong kDefaultBlockBytes = 32 << 10;

std::string text_of(const String& text) { return {text.ptr(), text.length()}; }

std::string quoted(const LEX_CSTRING& name) { return "`" + std::string(name.str, name.length) + "`"; }

std::string column_text(Field* field) {
    StringBuffer<256> type;
    field->sql_type(type);
    std::string text = "column " + quoted(field->field_name) + " " + text_of(type);
    if (field->has_charset()) text += std::string(" collate ") + field->charset()->coll_name.str;
    text += field->real_maybe_null() ? " null" : " not null";
    if (const Virtual_column_info* made = field->vcol_info) {
        StringBuffer<256> expression;
        made->expr->print_for_table_def(&expression);
        text += (made->is_stored() ? " stored as (" : " virtual as (") + text_of(expression) + ")";
    }
    if (field->flags & VERS_ROW_START) text += " row start";
    if (field->flags & VERS_ROW_END) text += " row end";
    return text;
}

std::string key_text(const TABLE* table, uint number) {
    const KEY& key = table->key_info[number];
    std::string text = "key " + quoted(key.name);
    if (number == table->s->primary_key) text += " of the rows";
    if (key.flags & HA_NOSAME) text += " unique";
    if (key.algorithm == HA_KEY_ALG_LONG_HASH) text += " by hash";
    if (is_spatial(key)) text += " spatial";
    if (is_fulltext(key)) text += " fulltext";
    for (uint i = 0; i < key.user_defined_key_parts; i++) {
        const KEY_PART_INFO& part = key.key_part[i];
        text += (i ? ", " : " on ") + quoted(part.field->field_name) + "(" + std::to_string(part.length) + ")";
        if (part.key_part_flag & HA_REVERSE_SORT) text += " desc";
    }
    return text;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

} // namespace

std::string definition_text(const TABLE* table) {
    const ha_table_option_struct* options = table->s->option_struct;
    const ulonglong block_bytes = options && options->block_size ? options->block_size : kDefaultBlockBytes;
    std::string text = "block_size " + std::to_string(block_bytes) + "\n";
    for (Field** field = table->field; *field; field++)
        text += column_text(*field) + "\n";
    std::vector<std::string> keys;
    for (uint i = 0; i < table->s->keys; i++)
        keys.push_back(key_text(table, i));
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys)
        text += key + "\n";
    return text;
}

std::string definition_difference(const std::string& here, const std::string& in_file) {
    const std::vector<std::string> ours = lines_of(here), theirs = lines_of(in_file);
    for (size_t i = 0; i < std::max(ours.size(), theirs.size()); i++) {
        const std::string one = i < ours.size() ? ours[i] : "nothing more";
        const std::string other = i < theirs.size() ? theirs[i] : "nothing more";
        if (one != other) return "the table has " + one + ", the file has " + other;
    }
    return "";
}

} // namespace teak
