/*
  Foreign keys: the looks that a change of a row needs.

  A row that is put in, or names another parent than before, is written first; then its parent is looked for. A row that
  goes, or is known by another key than before, is held first; then its children are looked for. Which tables there are
  to look at is asked of the engine before each row (one number, teak_link_changes, tells whether it is the same as
  before): a constraint holds from the moment in which it is committed, also for statements under way.
*/
#include "constraint_keeper.h"
#include "constraint_maker.h"
#include "foreign_error.h"
#include "ha_teak.h"
#include <algorithm>

namespace teak {

const ForeignKeys& ConstraintKeeper::keys() const {
    static const ForeignKeys none;
    if (open_.temporary) return none;
    /* After an error they are empty, and asked for again. */
    keys_.load(open_.name, open_.thd());
    return keys_;
}

int ConstraintKeeper::know() const {
    const int error = open_.temporary ? 0 : keys_.load(open_.name, open_.thd());
    if (error && !open_.thd()->is_error()) file_.print_error(error, MYF(0));
    return error;
}

bool ConstraintKeeper::needs(uint index) const {
    const ForeignKeys& all = keys();
    return std::any_of(all.own.begin(), all.own.end(),
                       [&](const ForeignKey& key) { return index_on(open_.table, key.columns, nullptr) == index; }) ||
           std::any_of(all.of_others.begin(), all.of_others.end(), [&](const ForeignKey& key) {
               return index_on(open_.table, key.parent_columns, nullptr) == index;
           });
}

/* Finds out which looks the table's rows need now. */
int ConstraintKeeper::make_looks() {
    THD* thd = open_.thd();
    looks_.reset();
    if (int error = keys_.load(open_.name, thd)) return error;
    std::vector<ForeignKey> own = keys_.own;
    /* What the table is a copy of may have rows without parents by its constraints: nobody asks for those. */
    if (use_.statement.copies)
        if (int error = leave_out_kept(thd, &own)) return error;
    const auto looks = std::make_shared<Looks>();
    looks->changes = keys_.changes;
    for (const ForeignKey& key : own)
        looks->at_parents.emplace_back(new ForeignLook(key, true));
    for (const ForeignKey& key : keys_.of_others)
        looks->at_children.emplace_back(new ForeignLook(key, false));
    if (int error = hold_looks(*looks)) return error;
    for (auto* side : {&looks->at_parents, &looks->at_children}) {
        for (auto& look : *side)
            if (int error = look->open(thd, open_.table)) return error;
        /* In the order of the indexes, as InnoDB looks. */
        std::stable_sort(side->begin(), side->end(),
                         [](const auto& a, const auto& b) { return a->index() < b->index(); });
    }
    looks_ = looks;
    return 0;
}

/* Keeps the tables that are looked at as they are, to the end of the statement. */
int ConstraintKeeper::hold_looks(const Looks& looks) {
    for (const auto* side : {&looks.at_parents, &looks.at_children})
        for (const auto& look : *side)
            if (int error = look->hold(open_.thd(), use_.session())) return error;
    held_in_ = use_.held.session->statement;
    return 0;
}

/* Makes the looks, if they are not those that there are now, and holds them, if the statement does not yet. Nobody has
   changed anything before they were held: else once more. */
int ConstraintKeeper::renew_looks() {
    for (;;) {
        const bool are_known = looks_ && looks_->are_of(teak_link_changes(plugin.engine));
        if (are_known && held_in_ == use_.held.session->statement) return 0;
        if (int error = are_known ? hold_looks(*looks_) : make_looks()) return error;
    }
}

int ConstraintKeeper::prepare(bool* wanted) {
    *wanted = false;
    THD* thd = open_.thd();
    if (open_.temporary && !use_.statement.copies) return 0;
    if (looks_ && looks_->empty() && looks_->are_of(teak_link_changes(plugin.engine))) return 0;
    /* A copy has the rows of a table whose constraints hold, unless it gets others. */
    if (!are_checked(thd) || (use_.statement.copies && !(thd->lex->alter_info.flags & ALTER_ADD_FOREIGN_KEY))) return 0;
    if (int error = renew_looks()) return error;
    *wanted = !looks_->empty();
    return 0;
}

int ConstraintKeeper::undo_row(int error) const {
    const teak_status status = teak_row_undo(use_.session(), use_.held.session->cascade.size());
    return status == TEAK_OK ? error : open_.fail(status);
}

/* Whether a row that is changed is held to name a parent: as in InnoDB, if its entry in the constraint's index is a new
   one. */
bool ConstraintKeeper::names_again(const ForeignLook& look, const uchar* before, const uchar* record) const {
    if (look.differs(before, record)) return true;
    const uint index = look.index();
    if (index == MAX_KEY) return false;
    const bool moved = !open_.primary.hidden() && open_.primary.changed(before, record);
    return moved || (index != open_.table->s->primary_key && open_.indexes[index].changed(before, record));
}

int ConstraintKeeper::look_at_parents(const uchar* record, const uchar* before, bool* again) {
    *again = false;
    for (const auto& look : looks_->at_parents) {
        if (look->names_none(record) || (before && !names_again(*look, before, record))) continue;
        if (before && look->is_open() && takes_key_of_parent(look->key())) continue;
        const teak_bytes unmet = unmet_parent(look->key());
        /* The parent that is getting another key has the old one yet, for this constraint. */
        if (unmet.len && before && !look->differs(before, record)) continue;
        bool found = false;
        if (look->is_open()) {
            const teak_status status = look->look(use_.session(), record, false, unmet, &found);
            if (status == TEAK_WOULD_BLOCK) {
                if (int error = undo_row(0)) return error;
                *again = true;
                return open_.fail(look->look(use_.session(), record, true, unmet, &found));
            }
            if (status != TEAK_OK) return undo_row(open_.fail(status));
        }
        if (!found) return undo_row(break_constraint(look->key(), HA_ERR_NO_REFERENCED_ROW, record));
    }
    return 0;
}

int ConstraintKeeper::look_at_children(const uchar* record, const uchar* after, teak_bytes pk) {
    bool held = false;
    for (const auto& look : looks_->at_children) {
        if (!look->has_say(record, after)) continue;
        if (look->key().cascades(!after)) return 0;
        if (!held) {
            const teak_status status = teak_row_hold(use_.session(), open_.core, pk);
            if (status != TEAK_OK) return open_.fail(status);
            held = true;
        }
        if (int error = refuse_children(*look, record)) return error;
    }
    return 0;
}

/* An error if the row has children by this constraint. */
int ConstraintKeeper::refuse_children(ForeignLook& look, const uchar* record) {
    /* What cannot be looked at may have some. */
    bool found = true;
    if (look.is_open()) {
        const teak_status status = look.look(use_.session(), record, true, {nullptr, 0}, &found);
        if (status != TEAK_OK) return open_.fail(status);
    }
    return found ? break_constraint(look.key(), HA_ERR_ROW_IS_REFERENCED, record) : 0;
}

int ConstraintKeeper::break_constraint(const ForeignKey& key, int error, const uchar* record) {
    THD* thd = open_.thd();
    broken_ = key.error_text(thd);
    const bool lacks_parent = error == HA_ERR_NO_REFERENCED_ROW;
    note_broken_constraint(thd, key, lacks_parent,
                           record ? values_of(lacks_parent ? key.columns : key.parent_columns, record) : "a row");
    return error;
}

/* Columns of this table's record and their values, for people. */
std::string ConstraintKeeper::values_of(const std::vector<std::string>& columns, const uchar* record) const {
    const my_ptrdiff_t offset = record - open_.table->record[0];
    MY_BITMAP* const before = tmp_use_all_columns(open_.table, &open_.table->read_set);
    std::string names, values;
    for (const std::string& column : columns) {
        Field* const field = column_named(open_.table, column);
        if (!field) continue;
        field->move_field_offset(offset);
        names += (names.empty() ? "" : ", ") + quoted(open_.thd(), field->field_name);
        values += (values.empty() ? "" : ", ") + readable_value(field);
        field->move_field_offset(-offset);
    }
    tmp_restore_column_map(&open_.table->read_set, before);
    return "(" + names + ") = (" + values + ")";
}

} // namespace teak
