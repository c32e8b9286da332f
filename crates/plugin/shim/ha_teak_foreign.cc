/*
  Foreign keys as the server asks about them, and the looks that a change of a row needs.

  A row that is put in, or names another parent than before, is written first; then its parent is looked for. A row that
  goes, or is known by another key than before, is held first; then its children are looked for. Which tables there are
  to look at is asked of the engine before each row (one number, teak_link_changes, tells whether it is the same as
  before): a constraint holds from the moment in which it is committed, also for statements under way.
*/
#include "ha_teak.h"
#include "foreign_error.h"
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

/* ---- what the server asks */

const ForeignKeys& ha_teak::foreign_keys() const {
    static const ForeignKeys none;
    if (temporary_) return none;
    /* After an error they are empty, and asked for again. */
    foreign_.keys.load(name_, ha_thd());
    return foreign_.keys;
}

/* For those who must not take a catalog that cannot be read for a table without constraints: the error is set. */
int ha_teak::know_foreign_keys() {
    const int error = temporary_ ? 0 : foreign_.keys.load(name_, ha_thd());
    if (error && !ha_thd()->is_error()) print_error(error, MYF(0));
    return error;
}

/* What cannot be read may refer to it: then get_parent_foreign_key_list has the error. */
bool ha_teak::referenced_by_foreign_key() const noexcept {
    return !foreign_keys().of_others.empty() || !(temporary_ || foreign_.keys.are_known());
}

bool ha_teak::can_switch_engines() { return !know_foreign_keys() && foreign_keys().empty(); }

int ha_teak::get_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
    if (int error = know_foreign_keys()) return error;
    for (const ForeignKey& key : foreign_keys().own)
        if (!add_info(thd, list, key, table, true)) return HA_ERR_OUT_OF_MEM;
    return 0;
}

int ha_teak::get_parent_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
    if (int error = know_foreign_keys()) return error;
    for (const ForeignKey& key : foreign_keys().of_others)
        if (!add_info(thd, list, key, table, false)) return HA_ERR_OUT_OF_MEM;
    return 0;
}

/* The server asks for no error, but tells the one that is set: else a dump would have the table without its
   constraints. */
char* ha_teak::get_foreign_key_create_info() {
    if (know_foreign_keys()) return nullptr;
    std::string text;
    for (const ForeignKey& key : foreign_keys().own)
        text += ",\n  " + key.text(ha_thd());
    return my_strndup(PSI_NOT_INSTRUMENTED, text.data(), text.size(), MYF(0));
}

void ha_teak::free_foreign_key_create_info(char* text) { my_free(text); }

/* Whether a foreign key needs the index: then it is always kept up. */
bool ha_teak::is_needed_by_foreign_key(uint index) const {
    const ForeignKeys& keys = foreign_keys();
    return std::any_of(keys.own.begin(), keys.own.end(),
                       [&](const ForeignKey& key) { return index_on(table, key.columns, nullptr) == index; }) ||
           std::any_of(keys.of_others.begin(), keys.of_others.end(),
                       [&](const ForeignKey& key) { return index_on(table, key.parent_columns, nullptr) == index; });
}

/* ---- rows */

/* Finds out which looks the table's rows need now. */
int ha_teak::make_looks() {
    THD* thd = ha_thd();
    foreign_.looks.reset();
    if (int error = foreign_.keys.load(name_, thd)) return error;
    std::vector<ForeignKey> own = foreign_.keys.own;
    /* What the table is a copy of may have rows without parents by its constraints: nobody asks for those. */
    if (statement_.copies)
        if (int error = leave_out_kept(thd, &own)) return error;
    const auto looks = std::make_shared<Looks>();
    looks->changes = foreign_.keys.changes;
    for (const ForeignKey& key : own)
        looks->at_parents.emplace_back(new ForeignLook(key, true));
    for (const ForeignKey& key : foreign_.keys.of_others)
        looks->at_children.emplace_back(new ForeignLook(key, false));
    if (int error = hold_looks(*looks)) return error;
    for (auto* side : {&looks->at_parents, &looks->at_children}) {
        for (auto& look : *side)
            if (int error = look->open(thd, table)) return error;
        /* In the order of the indexes, as InnoDB looks. */
        std::stable_sort(side->begin(), side->end(),
                         [](const auto& a, const auto& b) { return a->index() < b->index(); });
    }
    foreign_.looks = looks;
    return 0;
}

/* Keeps the tables that are looked at as they are, to the end of the statement. */
int ha_teak::hold_looks(const Looks& looks) {
    for (const auto* side : {&looks.at_parents, &looks.at_children})
        for (const auto& look : *side)
            if (int error = look->hold(ha_thd(), session())) return error;
    foreign_.held_in = held_.session->statement;
    return 0;
}

/* Makes the looks, if they are not those that there are now, and holds them, if the statement does not yet. Nobody has
   changed anything before they were held: else once more. */
int ha_teak::renew_looks() {
    for (;;) {
        const bool are_known = foreign_.looks && foreign_.looks->are_of(teak_link_changes(plugin.engine));
        if (are_known && foreign_.held_in == held_.session->statement) return 0;
        if (int error = are_known ? hold_looks(*foreign_.looks) : make_looks()) return error;
    }
}

/* To be called before each row that is changed, also in a cascade, whose handlers may have been idle for long:
   `*wanted` says whether foreign keys are to be looked after. */
int ha_teak::prepare_looks(bool* wanted) {
    *wanted = false;
    THD* thd = ha_thd();
    if (temporary_ && !statement_.copies) return 0;
    if (foreign_.looks && foreign_.looks->empty() && foreign_.looks->are_of(teak_link_changes(plugin.engine))) return 0;
    /* A copy has the rows of a table whose constraints hold, unless it gets others. */
    if (!are_checked(thd) || (statement_.copies && !(thd->lex->alter_info.flags & ALTER_ADD_FOREIGN_KEY))) return 0;
    if (int error = renew_looks()) return error;
    *wanted = !foreign_.looks->empty();
    return 0;
}

/* Whether a row that is changed is held to name a parent: as in InnoDB, if its entry in the constraint's index is a new
   one. */
bool ha_teak::names_again(const ForeignLook& look, const uchar* before, const uchar* record) const {
    if (look.differs(before, record)) return true;
    const uint index = look.index();
    if (index == MAX_KEY) return false;
    const bool moved = !primary_.hidden() && primary_.changed(before, record);
    return moved || (index != table->s->primary_key && indexes_[index].changed(before, record));
}

/*
  The parents of a row that was written; `before`: what it was, nullptr if it is new. What has come of the row is undone
  if there is an error.

  Whoever has a parent locked may be about to change its children: he would meet the row, and wait for who waits for
  him. So the row is taken back before a parent is waited for, and `*again` says that it is to be written once more.
*/
int ha_teak::look_at_parents(const uchar* record, const uchar* before, bool* again) {
    *again = false;
    for (const auto& look : foreign_.looks->at_parents) {
        if (look->names_none(record) || (before && !names_again(*look, before, record))) continue;
        if (before && look->is_open() && takes_key_of_parent(look->key())) continue;
        const teak_bytes unmet = unmet_parent(look->key());
        /* The parent that is getting another key has the old one yet, for this constraint. */
        if (unmet.len && before && !look->differs(before, record)) continue;
        bool found = false;
        if (look->is_open()) {
            const teak_status status = look->look(session(), record, false, unmet, &found);
            if (status == TEAK_WOULD_BLOCK) {
                if (int error = undo_row(0)) return error;
                *again = true;
                return fail(look->look(session(), record, true, unmet, &found));
            }
            if (status != TEAK_OK) return undo_row(fail(status));
        }
        if (!found) return undo_row(break_constraint(look->key(), HA_ERR_NO_REFERENCED_ROW, record));
    }
    return 0;
}

/* The children of a row that is about to go, or to become `after`; those that a rule might change before are looked for
   when it has (cascade), as in InnoDB: it may leave none. */
int ha_teak::look_at_children(const uchar* record, const uchar* after, teak_bytes pk) {
    bool held = false;
    for (const auto& look : foreign_.looks->at_children) {
        if (!look->has_say(record, after)) continue;
        if (look->key().cascades(!after)) return 0;
        if (!held) {
            const teak_status status = teak_row_hold(session(), open_.table, pk);
            if (status != TEAK_OK) return fail(status);
            held = true;
        }
        if (int error = refuse_children(*look, record)) return error;
    }
    return 0;
}

/* An error if the row has children by this constraint. */
int ha_teak::refuse_children(ForeignLook& look, const uchar* record) {
    /* What cannot be looked at may have some. */
    bool found = true;
    if (look.is_open()) {
        const teak_status status = look.look(session(), record, true, {nullptr, 0}, &found);
        if (status != TEAK_OK) return fail(status);
    }
    return found ? break_constraint(look.key(), HA_ERR_ROW_IS_REFERENCED, record) : 0;
}

int ha_teak::break_constraint(const ForeignKey& key, int error, const uchar* record) {
    THD* thd = ha_thd();
    foreign_.broken = key.error_text(thd);
    const bool lacks_parent = error == HA_ERR_NO_REFERENCED_ROW;
    note_broken_constraint(thd, key, lacks_parent,
                           record ? values_of(lacks_parent ? key.columns : key.parent_columns, record) : "a row");
    return error;
}

/* Columns of this table's record and their values, for people. */
std::string ha_teak::values_of(const std::vector<std::string>& columns, const uchar* record) const {
    const my_ptrdiff_t offset = record - table->record[0];
    MY_BITMAP* const before = tmp_use_all_columns(table, &table->read_set);
    std::string names, values;
    for (const std::string& column : columns) {
        Field* const field = column_named(table, column);
        if (!field) continue;
        field->move_field_offset(offset);
        names += (names.empty() ? "" : ", ") + quoted(ha_thd(), field->field_name);
        values += (values.empty() ? "" : ", ") + readable_value(field);
        field->move_field_offset(-offset);
    }
    tmp_restore_column_map(&table->read_set, before);
    return "(" + names + ") = (" + values + ")";
}
