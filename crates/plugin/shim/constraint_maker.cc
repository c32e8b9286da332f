#include "constraint_maker.h"
#include "server_version.h"
#include "errors.h"
#include "foreign_error.h"
#include "session.h"
#include <algorithm>
#include <optional>

namespace teak {
namespace {

std::string text_of(const LEX_CSTRING& text) { return {text.str, text.length}; }

/* The table that the statement alters, of whatever engine; empty: it makes one, or alters a temporary one. */
std::string altered_table(const Alter_info* alter) {
    const TABLE* table = alter ? alter->original_table : nullptr;
    if (!table || table->s->tmp_table != NO_TMP_TABLE) return "";
    return TableName::core(table->s->db.str, table->s->table_name.str);
}

/* As InnoDB names one in its messages. */
std::string called(THD* thd, Foreign_key* key) {
    if (key->constraint_name.length) return quoted(thd, key->constraint_name);
    if (key->name.length) return quoted(thd, key->name);
    std::string columns;
    List_iterator_fast<Key_part_spec> parts(key->columns);
    while (const Key_part_spec* part = parts++)
        columns += (columns.empty() ? "" : ", ") + text_of(part->field_name);
    return "(" + columns + ")";
}

/* What holds unless something else is said is RESTRICT. */
enum_fk_option rule_of(enum_fk_option said) { return said == FK_OPTION_UNDEF ? FK_OPTION_RESTRICT : said; }

/* Names of columns in the spelling that the table's definition has. */
void spell_as(const TABLE* table, std::vector<std::string>* columns) {
    for (std::string& column : *columns)
        if (const Field* field = column_named(table, column)) column = text_of(field->field_name);
}

/* The first column whose values have other spaces behind them on either side, where those count (NO PAD): no row would
   ever fit. SIZE_MAX: there is none. */
size_t unequal_padding(const TABLE* a, uint index_a, const TABLE* b, uint index_b, size_t columns) {
    for (size_t i = 0; i < columns; i++) {
        const Field* const mine = a->key_info[index_a].key_part[i].field;
        const Field* const theirs = b->key_info[index_b].key_part[i].field;
        const bool padded = mine->real_type() == MYSQL_TYPE_STRING || theirs->real_type() == MYSQL_TYPE_STRING;
        const bool same = mine->real_type() == theirs->real_type() && mine->char_length() == theirs->char_length();
        if (padded && !same && mine->has_charset() && mine->charset()->state & MY_CS_NOPAD) return i;
    }
    return SIZE_MAX;
}

} // namespace

ConstraintMaker::ConstraintMaker(THD* thd, const std::string& name, TABLE* form, const HA_CREATE_INFO* info)
    : thd_(thd), name_(name), form_(form), alter_(info->alter_info), altered_(altered_table(alter_)),
      temporary_(altered_.empty() && (info->tmp_table() || !alter_ || alter_->original_table)),
      in_memory_(lives_in_memory(info->option_struct)), checked_(!thd || are_checked(thd)) {}

int ConstraintMaker::make() {
    if (!thd_ || !alter_) return 0;
    if (int error = keep_old()) return error;
    if (int error = take_new()) return error;
    if (in_memory_ && !keys_.empty()) return fail("", "Tables with IN_MEMORY=YES can't have foreign key constraints.");
    if (int error = check_rename()) return error;
    return check_children();
}

bool is_dropped(Alter_info* alter, const ForeignKey& key) {
    List_iterator_fast<Alter_drop> drops(alter->drop_list);
    while (const Alter_drop* drop = drops++)
        if (drop->type == Alter_drop::FOREIGN_KEY && key.has_name(c_name(drop->name))) return true;
    return false;
}

int leave_out_kept(THD* thd, std::vector<ForeignKey>* keys) {
    if (thd_sql_command(thd) != SQLCOM_ALTER_TABLE) return 0;
    /* The statement's own: the server alters by a copy of it, which has more, and is not to be had here. */
    Alter_info* const alter = &thd->lex->alter_info;
    const TABLE_LIST* const altered = thd->lex->query_tables;
    ForeignKeys old;
    if (int error = old.load(TableName::core(altered->db.str, altered->table_name.str), thd)) return error;
    auto is_kept = [&](const ForeignKey& key) {
        return std::any_of(old.own.begin(), old.own.end(), [&](const ForeignKey& had) {
            return had.given_name == key.given_name && had.number == key.number && !is_dropped(alter, had);
        });
    };
    keys->erase(std::remove_if(keys->begin(), keys->end(), is_kept), keys->end());
    return 0;
}

bool rename_columns(Alter_info* alter, std::vector<std::string>* columns) {
    bool renamed = false;
    for (std::string& column : *columns) {
        List_iterator_fast<Create_field> fields(alter->create_list);
        while (const Create_field* field = fields++) {
            if (!field->field || !is_same_name(field->field->field_name.str, column.c_str())) continue;
            renamed |= column != field->field_name.str;
            column = field->field_name.str;
            break;
        }
    }
    return renamed;
}

/* What the altered table has and the statement does not drop. */
int ConstraintMaker::keep_old() {
    if (altered_.empty()) return 0;
    ForeignKeys old;
    if (int error = old.load(altered_, thd_)) return error;
    for (ForeignKey& key : old.own) {
        number_ = std::max(number_, key.number);
        if (is_dropped(alter_, key)) continue;
        const std::string name = key.name();
        const std::string words = quoted(thd_, {name.data(), name.size()});
        key.child = name_;
        const std::vector<std::string> old_columns = key.columns;
        rename_columns(alter_, &key.columns);
        /* What the server does not ask for without strict mode. */
        if (int error = check_nullable(key, words)) return error;
        if (int error = check_index(key.columns, old_columns)) return error;
        if (is_self(key.parent)) {
            const std::vector<std::string> old_parent_columns = key.parent_columns;
            rename_columns(alter_, &key.parent_columns);
            if (int error = check_index(key.parent_columns, old_parent_columns)) return error;
        }
        keys_.push_back(std::move(key));
    }
    kept_ = keys_.size();
    return 0;
}

/* What the constraint looks by stays: an index over `columns`, which the altered table calls `old_columns`. */
int ConstraintMaker::check_index(const std::vector<std::string>& columns,
                                 const std::vector<std::string>& old_columns) const {
    if (!checked_ || index_on(form_, columns, nullptr) != MAX_KEY) return 0;
    const TABLE* const old_table = alter_->original_table;
    const uint index = index_on(old_table, old_columns, nullptr);
    my_error(ER_DROP_INDEX_FK, MYF(0), index == MAX_KEY ? "" : old_table->key_info[index].name.str);
    return HA_ERR_DROP_INDEX_FK;
}

int ConstraintMaker::take_new() {
    List_iterator_fast<Key> keys(alter_->key_list);
    while (Key* key = keys++)
        if (key->type == Key::FOREIGN_KEY && !key->old)
            if (int error = take(static_cast<Foreign_key*>(key))) return error;
    return 0;
}

/* Rules that Teak does not carry out. */
int ConstraintMaker::refuse_unkept(const Foreign_key* from) const {
    const char* refused = nullptr;
    if (from->delete_opt == FK_OPTION_SET_DEFAULT)
        refused = "FOREIGN KEY ... ON DELETE SET DEFAULT";
    else if (from->update_opt == FK_OPTION_SET_DEFAULT)
        refused = "FOREIGN KEY ... ON UPDATE SET DEFAULT";
    if (!refused) return 0;
    my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", refused);
    return HA_WRONG_CREATE_OPTION;
}

/* SET NULL needs columns that can be. */
int ConstraintMaker::check_nullable(const ForeignKey& key, const std::string& words) const {
    if (key.on_delete != FK_OPTION_SET_NULL && key.on_update != FK_OPTION_SET_NULL) return 0;
    for (const std::string& column : key.columns) {
        const Field* const field = column_named(form_, column);
        if (field && !field->real_maybe_null())
            return fail(words,
                        "You have defined a SET NULL condition but column '" + column + "' is defined as NOT NULL.");
    }
    return 0;
}

int ConstraintMaker::take(Foreign_key* from) {
    const ForeignKeysMode mode = foreign_keys_mode(thd_);
    if (mode == ForeignKeysMode::Error) {
        my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", "FOREIGN KEY");
        return HA_WRONG_CREATE_OPTION;
    }
    if (mode == ForeignKeysMode::Warn) {
        push_warning_printf(thd_, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                            ER_THD(thd_, ER_ILLEGAL_HA_CREATE_OPTION), "Teak", "FOREIGN KEY");
        return 0;
    }
    if (temporary_) return fail("", "Temporary tables can't have foreign key constraints.");
    if (in_memory_) return fail("", "Tables with IN_MEMORY=YES can't have foreign key constraints.");
    if (int error = refuse_unkept(from)) return error;
    ForeignKey key;
    key.child = name_;
    const TableName own(called_name());
    std::string db = from->ref_db.str ? from->ref_db.str : own.db().str, table = from->ref_table.str;
    if (lower_case_table_names) {
        db = lower_case(db.data(), db.size());
        table = lower_case(table.data(), table.size());
    }
    key.parent = TableName::core(db.c_str(), table.c_str());
    if (from->constraint_name.length)
        key.set_name(from->constraint_name.str, called_name());
    else
        do
            key.number = ++number_;
        while (std::any_of(keys_.begin(), keys_.end(), [&](const auto& other) { return other.number == key.number; }));
    key.on_delete = rule_of(from->delete_opt);
    key.on_update = rule_of(from->update_opt);
    List_iterator_fast<Key_part_spec> mine(from->columns), theirs(from->ref_columns);
    while (const Key_part_spec* part = mine++)
        key.columns.push_back(text_of(part->field_name));
    while (const Key_part_spec* part = theirs++)
        key.parent_columns.push_back(text_of(part->field_name));
    const std::string words = called(thd_, from);
    if (int error = check_length(key)) return error;
    if (int error = check_name(key)) return error;
    if (int error = check(&key, words)) return error;
    keys_.push_back(std::move(key));
    return 0;
}

/* A name that is made of the table's could be too long to be said: a dump could not be read back. */
int ConstraintMaker::check_length(const ForeignKey& key) const {
    ForeignKey to_be = key;
    to_be.child = called_name();
    return to_be.check_length();
}

/* No two constraints of a database have one name; that of one which the statement drops is free. */
int ConstraintMaker::check_name(const ForeignKey& key) {
    ForeignKey to_be = key;
    to_be.child = called_name();
    const std::string name = to_be.name();
    const bool is_own = std::any_of(keys_.begin(), keys_.end(), [&](ForeignKey other) {
        other.child = called_name();
        return other.has_name(name.c_str());
    });
    if (!is_own && !is_name_taken(to_be, called_name())) return 0;
    taken_name_ = to_be.link_name();
    name_is_own_ = is_own;
    warn_of_duplicate_name(thd_, called_name(), to_be);
    return HA_ERR_FOUND_DUPP_KEY;
}

void ConstraintMaker::warn_of_taken_names() const {
    for (const ForeignKey& key : keys_)
        if (is_name_taken(key, called_name())) warn_of_duplicate_name(thd_, called_name(), key);
}

/* Whether what the constraint speaks of is there and fits. Its columns are called as the tables call them. */
int ConstraintMaker::check(ForeignKey* key, const std::string& words) {
    if (key->columns.size() != key->parent_columns.size())
        return fail(words, "It has to name as many columns of the referenced table.");
    spell_as(form_, &key->columns);
    const uint mine = index_on(form_, key->columns, nullptr);
    if (mine == MAX_KEY)
        return fail(words, "There is no index in the table where the columns appear as the first columns.");
    /* Not of the table itself: the server would keep what it read, and take a table that fails to come for one. */
    std::optional<OtherDefinition> other;
    if (!is_self(key->parent)) {
        if (int error = hold_definition(thd_, key->parent)) return error;
        other.emplace(thd_, key->parent);
    }
    TABLE* const parent = other ? other->table() : form_;
    const TableName name(key->parent);
    if (!parent) {
        const bool other_engine = other->is_of_another_engine();
        if (!checked_ && !other_engine) return check_nullable(*key, words);
        const std::string called = quoted(thd_, name.db()) + "." + quoted(thd_, name.table());
        const int error =
            fail(words, other_engine ? "Referenced table " + called + " is partitioned, or not a table of Teak."
                                     : "Referenced table " + called + " not found in the data dictionary.");
        /* It may be that such a table takes its place, as when a dump is read back. */
        return checked_ ? error : check_nullable(*key, words);
    }
    return check_parent(key, mine, parent, words);
}

int ConstraintMaker::check_parent(ForeignKey* key, uint mine, TABLE* parent, const std::string& words) const {
    if (lives_in_memory(parent->s->option_struct))
        return fail(words, "The referenced table has IN_MEMORY=YES: its rows go with the server.");
    for (const std::string& column : key->parent_columns)
        if (!column_named(parent, column)) return fail(words, "Column " + column + " was not found.", "");
    spell_as(parent, &key->parent_columns);
    const uint theirs = index_on(parent, key->parent_columns, nullptr);
    if (theirs == MAX_KEY)
        return fail(
            words,
            "There is no index in the referenced table where the referenced columns appear as the first columns.");
    size_t column = differing_column(form_, mine, parent, theirs, key->columns.size());
    if (column == SIZE_MAX) column = unequal_padding(form_, mine, parent, theirs, key->columns.size());
    if (column == SIZE_MAX) {
        if (int error = check_nullable(*key, words)) return error;
        return check_cascade(*key, parent, words);
    }
    return fail(words, "Field type or character set for column '" + key->columns[column] +
                           "' does not match referenced column '" + key->parent_columns[column] + "'.");
}

/* A NULL that follows from the parent's needs a column that can be. As InnoDB: the reason is in SHOW ENGINE ... STATUS
   alone, and an ALTER in place without checks, or anything without strict mode, does not ask: such a NULL is refused
   when it comes; nor does one with an action of ON DELETE besides, by the words of InnoDB's condition. */
int ConstraintMaker::check_cascade(const ForeignKey& key, const TABLE* parent, const std::string& words) const {
    if (key.on_update != FK_OPTION_CASCADE || (is_in_place() && !checked_) || !thd_->is_strict_mode()) return 0;
    if (key.on_delete != FK_OPTION_UNDEF && key.on_delete != FK_OPTION_RESTRICT) return 0;
    for (size_t i = 0; i < key.columns.size(); i++) {
        const Field* const mine = column_named(form_, key.columns[i]);
        const Field* const theirs = column_named(parent, key.parent_columns[i]);
        if (!mine || !theirs || mine->real_maybe_null() || !theirs->real_maybe_null()) continue;
        note_refused_constraint(thd_, refusal(words, "With ON UPDATE CASCADE column '" + key.columns[i] +
                                                         "' is to follow '" + key.parent_columns[i] +
                                                         "', which may be NULL, and is defined as NOT NULL."));
        return HA_ERR_CANNOT_ADD_FOREIGN;
    }
    return 0;
}

/* A copy that gets another name leaves behind the foreign keys that lead to the old one. */
int ConstraintMaker::check_rename() {
    if (altered_.empty() || is_in_place() || !(alter_->flags & ALTER_RENAME)) return 0;
    ForeignKeys old;
    if (int error = old.load(altered_, thd_)) return error;
    const bool to_self = std::any_of(keys_.begin(), keys_.end(), [&](const auto& key) { return is_self(key.parent); });
    if (old.of_others.empty() && !to_self) return 0;
    my_error(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON, MYF(0), "RENAME with ALGORITHM=COPY",
             "foreign keys refer to the table by its name", "a statement of its own for RENAME");
    return HA_ERR_UNSUPPORTED;
}

/* Constraints of others to a table of this name: those of the altered one, or of one that has been missing. */
int ConstraintMaker::check_children() {
    if (is_passing_name(called_name())) return 0;
    ForeignKeys all;
    if (int error = all.load(called_name(), thd_)) return error;
    for (ForeignKey& key : all.of_others) {
        if (key.is_of_itself()) continue;
        if (in_memory_)
            return fail("", "The foreign key " + key.name() + " refers to it, and rows in memory go with the server.");
        const bool renamed = !altered_.empty() && rename_columns(alter_, &key.parent_columns);
        if (renamed && is_in_place()) followers_.push_back(key);
        if (int error = hold_definition(thd_, key.child)) return error;
        OtherDefinition definition(thd_, key.child);
        TABLE* const child = definition.table();
        const uint theirs = child ? index_on(child, key.columns, nullptr) : MAX_KEY;
        if (theirs == MAX_KEY) continue;
        const uint mine = index_on(form_, key.parent_columns, nullptr);
        size_t column = mine == MAX_KEY ? 0 : differing_column(form_, mine, child, theirs, key.columns.size());
        if (column == SIZE_MAX) column = unequal_padding(form_, mine, child, theirs, key.columns.size());
        if (column == SIZE_MAX || !checked_) continue;
        const std::string called = quoted(thd_, TableName(key.child).table());
        if (mine == MAX_KEY)
            return fail("", "The foreign key " + key.name() + " of table " + called +
                                " needs an index where the referenced columns appear as the first columns.");
        return fail("", "Field type or character set for column '" + key.columns[column] + "' of table " + called +
                            " does not match referenced column '" + key.parent_columns[column] + "'.");
    }
    return 0;
}

/* The reason as users read it. */
std::string ConstraintMaker::refusal(const std::string& words, const std::string& why, const char* with) const {
    const TableName own(called_name());
    const LEX_CSTRING db = temporary_ ? form_->s->db : own.db();
    const LEX_CSTRING table = temporary_ ? form_->s->table_name : own.table();
    const bool alters = !altered_.empty() || (alter_ && alter_->original_table);
    return std::string(alters ? "Alter " : "Create ") + " table " + quoted(thd_, db) + "." + quoted(thd_, table) + " " +
           with + "foreign key " + (words.empty() ? "" : words + " ") + "constraint failed. " + why;
}

/* The reason as a warning; the error is the server's. */
int ConstraintMaker::fail(const std::string& words, const std::string& why, const char* with) const {
    const std::string text = refusal(words, why, with);
    push_warning(thd_, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, text.c_str());
    note_refused_constraint(thd_, text);
    return HA_ERR_CANNOT_ADD_FOREIGN;
}

} // namespace teak
