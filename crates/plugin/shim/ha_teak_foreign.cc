/*
  Foreign keys as the server asks about them. How they are kept: constraint_keeper.h.
*/
#include "ha_teak.h"
#include <algorithm>

using namespace teak;

namespace {

LEX_CSTRING* lex_string(THD* thd, const LEX_CSTRING& text) {
    return thd_make_lex_string(thd, nullptr, text.str, text.length, 1);
}

LEX_CSTRING* lex_string(THD* thd, const std::string& text) {
    return lex_string(thd, LEX_CSTRING{text.data(), text.size()});
}

bool add_names(THD* thd, List<LEX_CSTRING>* to, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        LEX_CSTRING* text = lex_string(thd, name);
        if (!text || to->push_back(text, thd->mem_root)) return false;
    }
    return true;
}

/* What the server's checks of ALTER want to know of columns: which can be NULL. */
void note_nullable(THD* thd, FOREIGN_KEY_INFO* info, const TABLE* table, const std::vector<std::string>& columns,
                   bool referenced) {
    const uint index = index_on(table, columns, nullptr);
    if (index == MAX_KEY) return;
    if (referenced) info->referenced_key_name = lex_string(thd, table->key_info[index].name);
    for (uint i = 0; i < columns.size(); i++)
        if (table->field[table->key_info[index].key_part[i].fieldnr - 1]->real_maybe_null())
            info->set_nullable(thd, referenced, i, static_cast<uint>(columns.size()));
}

/* What is known of the columns of both sides; of the other one, if its definition can be looked at without waiting. */
void note_columns(THD* thd, FOREIGN_KEY_INFO* info, const ForeignKey& key, const TABLE* mine, bool is_child) {
    note_nullable(thd, info, mine, is_child ? key.columns : key.parent_columns, !is_child);
    const std::string& other = is_child ? key.parent : key.child;
    const TableName name(other);
    MDL_request request;
    MDL_REQUEST_INIT(&request, MDL_key::TABLE, name.db().str, name.table().str, MDL_SHARED_HIGH_PRIO, MDL_STATEMENT);
    if (thd->mdl_context.try_acquire_lock(&request) || !request.ticket) return;
    OtherDefinition definition(thd, other);
    if (const TABLE* theirs = definition.table())
        note_nullable(thd, info, theirs, is_child ? key.parent_columns : key.columns, is_child);
}

/* For the server's lists; false: memory is out. */
bool add_info(THD* thd, List<FOREIGN_KEY_INFO>* to, const ForeignKey& key, const TABLE* mine, bool is_child) {
    const TableName child(key.child), parent(key.parent);
    void* const memory = thd_alloc(thd, sizeof(FOREIGN_KEY_INFO));
    if (!memory) return false;
    auto* info = new (memory) FOREIGN_KEY_INFO();
    info->foreign_id = lex_string(thd, key.name());
    info->foreign_db = lex_string(thd, child.db());
    info->foreign_table = lex_string(thd, child.table());
    info->referenced_db = lex_string(thd, parent.db());
    info->referenced_table = lex_string(thd, parent.table());
    info->update_method = key.on_update;
    info->delete_method = key.on_delete;
    if (!info->foreign_id || !info->foreign_db || !info->foreign_table || !info->referenced_db ||
        !info->referenced_table || !add_names(thd, &info->foreign_fields, key.columns) ||
        !add_names(thd, &info->referenced_fields, key.parent_columns))
        return false;
    note_columns(thd, info, key, mine, is_child);
    return !to->push_back(info, thd->mem_root);
}

} // namespace

/* What cannot be read may refer to it: then get_parent_foreign_key_list has the error. */
bool ha_teak::referenced_by_foreign_key() const noexcept {
    const ForeignKeys& keys = constraints_.keys();
    return !keys.of_others.empty() || !(open_.temporary || keys.are_known());
}

bool ha_teak::can_switch_engines() { return !constraints_.know() && constraints_.keys().empty(); }

int ha_teak::get_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
    if (int error = constraints_.know()) return error;
    for (const ForeignKey& key : constraints_.keys().own)
        if (!add_info(thd, list, key, table, true)) return HA_ERR_OUT_OF_MEM;
    return 0;
}

int ha_teak::get_parent_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
    if (int error = constraints_.know()) return error;
    for (const ForeignKey& key : constraints_.keys().of_others)
        if (!add_info(thd, list, key, table, false)) return HA_ERR_OUT_OF_MEM;
    return 0;
}

/* The server asks for no error, but tells the one that is set: else a dump would have the table without its
   constraints. */
char* ha_teak::get_foreign_key_create_info() {
    if (constraints_.know()) return nullptr;
    std::string text;
    for (const ForeignKey& key : constraints_.keys().own)
        text += ",\n  " + key.text(ha_thd());
    return my_strndup(PSI_NOT_INSTRUMENTED, text.data(), text.size(), MYF(0));
}

void ha_teak::free_foreign_key_create_info(char* text) { my_free(text); }

bool ha_teak::get_foreign_dup_key(char* child, uint child_size, char* index, uint index_size) {
    strmake(child, constraints_.duplicate_table().c_str(), child_size - 1);
    strmake(index, constraints_.duplicate_index().c_str(), index_size - 1);
    return true;
}
