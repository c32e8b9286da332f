/*
  ALTER TABLE in place of tables with foreign keys: constraints come and go, and follow columns that get other names.

    check      nothing that a constraint needs goes; what they are to be like is found out (ConstraintMaker), with the
               definitions of the tables on the other side held to the end of the statement
    alter      rows are searched for missing parents, by merge of two indexes (orphan_search.h): nobody writes to either
               table from then on, to the end of the statement
    commit     the links of this table, and of those that follow, change in the transaction that the ALTER is

  With foreign_key_checks=0 nothing is searched for, and a constraint comes at once.
*/
#include "altered_constraints.h"
#include "field_converter.h"
#include "ha_teak.h"
#include "orphan_search.h"
#include <algorithm>
#include <optional>
#include <set>

namespace teak {

namespace {

/* To the end of the statement nobody writes to the table, and nobody has written to it without having committed. */
int keep_writers_out(THD* thd, const std::string& core_name) {
    const TableName name(core_name);
    MDL_request request;
    MDL_REQUEST_INIT(&request, MDL_key::TABLE, name.db().str, name.table().str, MDL_SHARED_NO_WRITE, MDL_STATEMENT);
    if (int error = acquire_definition(thd, &request)) return error;
    return wait_for_holders(thd, bytes_of(core_name.c_str()), TEAK_HOLDERS_PREPARED);
}

/* A column of this name, by its old one if there is an ALTER; nullptr: it goes. */
const Field* column_of(const TABLE* altered, Alter_info* alter, const std::string& column) {
    std::vector<std::string> name{column};
    if (alter) rename_columns(alter, &name);
    return column_named(altered, name[0]);
}

} // namespace

/* Whether an index goes that a constraint needs, and no other will do. */
bool AlteredConstraints::loses_needed_index(const TABLE* altered, const Alter_inplace_info* info, uint* index) const {
    const ForeignKeys& keys = keeper_.keys();
    *index = MAX_KEY;
    auto look = [&](std::vector<std::string> columns) {
        const uint needed = index_on(open_.table, columns, nullptr);
        rename_columns(info->alter_info, &columns);
        if (needed != MAX_KEY && index_on(altered, columns, nullptr) == MAX_KEY) *index = std::min(*index, needed);
    };
    for (const ForeignKey& key : keys.own)
        if (!is_dropped(info->alter_info, key)) look(key.columns);
    for (const ForeignKey& key : keys.of_others)
        if (!key.is_of_itself() || !is_dropped(info->alter_info, key)) look(key.parent_columns);
    return *index != MAX_KEY;
}

/* Whether a column of a constraint goes, or may not be NULL any more though its rule wants that; the error is set. */
bool AlteredConstraints::loses_needed_column(const TABLE* altered, const Alter_inplace_info* info) const {
    const ForeignKeys& keys = keeper_.keys();
    for (const ForeignKey& key : keys.own) {
        if (is_dropped(info->alter_info, key)) continue;
        const bool sets_null = key.on_delete == FK_OPTION_SET_NULL || key.on_update == FK_OPTION_SET_NULL;
        for (const std::string& column : key.columns) {
            const Field* const field = column_of(altered, info->alter_info, column);
            if (field && (!sets_null || field->real_maybe_null())) continue;
            my_error(field ? ER_FK_COLUMN_NOT_NULL : ER_FK_COLUMN_CANNOT_DROP, MYF(0), column.c_str(),
                     key.name().c_str());
            return true;
        }
    }
    for (const ForeignKey& key : keys.of_others) {
        if (key.is_of_itself() && is_dropped(info->alter_info, key)) continue;
        for (const std::string& column : key.parent_columns) {
            if (column_of(altered, info->alter_info, column)) continue;
            const TableName child(key.child);
            const std::string called = quoted(open_.thd(), child.db()) + "." + quoted(open_.thd(), child.table());
            my_error(ER_FK_COLUMN_CANNOT_DROP_CHILD, MYF(0), column.c_str(), key.name().c_str(), called.c_str());
            return true;
        }
    }
    return false;
}

/* Whether values of a constraint's columns would be encoded in another way than those on its other side. */
bool AlteredConstraints::changes_needed_type(const TABLE* altered, const Alter_inplace_info* info) const {
    auto changes = [&](const std::vector<std::string>& columns) {
        std::vector<std::string> renamed = columns;
        rename_columns(info->alter_info, &renamed);
        const uint before = index_on(open_.table, columns, nullptr), after = index_on(altered, renamed, nullptr);
        return before != MAX_KEY && after != MAX_KEY &&
               differing_column(open_.table, before, altered, after, columns.size()) != SIZE_MAX;
    };
    const ForeignKeys& keys = keeper_.keys();
    return std::any_of(keys.own.begin(), keys.own.end(),
                       [&](const auto& key) { return !is_dropped(info->alter_info, key) && changes(key.columns); }) ||
           std::any_of(keys.of_others.begin(), keys.of_others.end(), [&](const auto& key) {
               return !(key.is_of_itself() && is_dropped(info->alter_info, key)) && changes(key.parent_columns);
           });
}

bool AlteredConstraints::changes_needed_values(const FieldConverter& fields) const {
    const ForeignKeys& keys = keeper_.keys();
    auto changes = [&](const std::vector<std::string>& columns) {
        return std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
            const Field* const field = column_of(open_.table, nullptr, column);
            return field && fields.converts(field);
        });
    };
    return std::any_of(keys.own.begin(), keys.own.end(), [&](const auto& key) { return changes(key.columns); }) ||
           std::any_of(keys.of_others.begin(), keys.of_others.end(),
                       [&](const auto& key) { return changes(key.parent_columns); });
}

/*
  Whether ON UPDATE CASCADE could give NULL from now on where none may be: to this table's column that may have none any
  more, or from the one that may have one. InnoDB's rule and errors, which does not ask a table without an index for the
  constraint, nor without strict mode. The error is set.
*/
bool AlteredConstraints::lets_null_follow(const TABLE* altered, const Alter_inplace_info* info) const {
    THD* thd = open_.thd();
    if (!thd->is_strict_mode()) return false;
    Alter_info* const alter = info->alter_info;
    const ForeignKeys& keys = keeper_.keys();
    auto changes = [&](const std::string& column, bool to_null) {
        const Field *const before = column_of(open_.table, nullptr, column), *const after =
                                                                                 column_of(altered, alter, column);
        return before && after && before->real_maybe_null() != to_null && after->real_maybe_null() == to_null;
    };
    /* Whether the other side's column may be NULL; -1: it has none, or no index on the columns. */
    auto other_may_be_null = [&](const std::string& name, const ForeignKey& key, size_t place, bool is_parent) -> int {
        std::vector<std::string> columns = is_parent ? key.parent_columns : key.columns;
        std::optional<OtherDefinition> definition;
        if (key.is_of_itself())
            rename_columns(alter, &columns);
        else if (hold_definition(thd, name))
            return -1;
        else
            definition.emplace(thd, name);
        const TABLE* const other = definition ? definition->table() : altered;
        const uint index = other ? index_on(other, columns, nullptr) : MAX_KEY;
        return index == MAX_KEY ? -1 : other->key_info[index].key_part[place].field->real_maybe_null();
    };
    for (const ForeignKey& key : keys.own)
        for (size_t i = 0; i < key.columns.size(); i++)
            if (key.on_update == FK_OPTION_CASCADE && !is_dropped(alter, key) && changes(key.columns[i], false) &&
                other_may_be_null(key.parent, key, i, true) == 1) {
                my_error(ER_FK_COLUMN_NOT_NULL, MYF(0), key.columns[i].c_str(), key.name().c_str());
                return true;
            }
    for (const ForeignKey& key : keys.of_others)
        for (size_t i = 0; i < key.columns.size(); i++)
            if (key.on_update == FK_OPTION_CASCADE && !(key.is_of_itself() && is_dropped(alter, key)) &&
                changes(key.parent_columns[i], true) && other_may_be_null(key.child, key, i, false) == 0) {
                const TableName child(key.child);
                const std::string called = std::string(child.db().str) + "." + child.table().str;
                my_error(ER_FK_COLUMN_CANNOT_CHANGE_CHILD, MYF(0), key.parent_columns[i].c_str(), key.name().c_str(),
                         called.c_str());
                return true;
            }
    return thd->is_error();
}

enum_alter_inplace_result AlteredConstraints::check(TABLE* altered, const Alter_inplace_info* info) {
    change_ = {};
    const alter_table_operations changes = ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;
    /* It is the copy that says so. */
    if (open_.temporary && info->handler_flags & changes) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (keeper_.know()) return HA_ALTER_ERROR;
    if (open_.temporary || (keeper_.keys().empty() && !(info->handler_flags & changes)))
        return HA_ALTER_INPLACE_INSTANT;
    uint index;
    if (loses_needed_index(altered, info, &index) && are_checked(open_.thd())) {
        /* A copy without the column of a primary key is refused by the server, with better words. */
        const alter_table_operations drops = ALTER_DROP_STORED_COLUMN | ALTER_DROP_VIRTUAL_COLUMN;
        if (info->handler_flags & drops && index == open_.table->s->primary_key) return HA_ALTER_INPLACE_NOT_SUPPORTED;
        my_error(ER_DROP_INDEX_FK, MYF(0), open_.table->key_info[index].name.str);
        return HA_ALTER_ERROR;
    }
    if (loses_needed_column(altered, info) || lets_null_follow(altered, info)) return HA_ALTER_ERROR;
    /* The server refuses the copy, with its words. */
    if (changes_needed_type(altered, info)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (!(info->handler_flags & (changes | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN))) return HA_ALTER_INPLACE_INSTANT;
    return plan(altered, info);
}

/* Finds out what constraints are to be like. Errors are those of a copy. */
enum_alter_inplace_result AlteredConstraints::plan(TABLE* altered, const Alter_inplace_info* info) {
    THD* thd = open_.thd();
    ConstraintMaker maker(thd, open_.name, altered, info->create_info);
    const int error = maker.make();
    /* InnoDB has errors of its own for what it does in place. */
    if (error == HA_ERR_FOUND_DUPP_KEY && !are_checked(thd)) {
        if (maker.name_is_own())
            my_error(ER_DUP_CONSTRAINT_NAME, MYF(0), "FOREIGN KEY", maker.taken_name().c_str());
        else
            my_error(ER_FK_FAIL_ADD_SYSTEM, MYF(0), maker.taken_name().c_str());
        return HA_ALTER_ERROR;
    }
    if (error == HA_ERR_CANNOT_ADD_FOREIGN || error == HA_ERR_FOUND_DUPP_KEY) {
        my_error(ER_CANT_CREATE_TABLE, MYF(0), open_.table->s->db.str, open_.table->s->table_name.str, error);
        /* Not by print_error(), which would ask which of the table's keys it is. */
        if (error == HA_ERR_FOUND_DUPP_KEY)
            my_error(ER_DUP_KEY, MYF(ME_WARNING), open_.table->s->table_name.str);
        else
            file_.print_error(error, MYF(ME_WARNING));
        return HA_ALTER_ERROR;
    }
    if (error) {
        if (!thd->is_error()) file_.print_error(error, MYF(0));
        return HA_ALTER_ERROR;
    }
    change_ = {true, maker.keys(), maker.added(), maker.followers()};
    return HA_ALTER_INPLACE_INSTANT;
}

int AlteredConstraints::relink(Relinks* out) const {
    if (!change_.any) return 0;
    out->add(open_.name, change_.own);
    std::set<std::string> children;
    for (const ForeignKey& key : change_.followers)
        children.insert(key.child);
    for (const std::string& child : children) {
        ForeignKeys all;
        if (int error = all.load(child, open_.thd())) return error;
        for (ForeignKey& key : all.own)
            for (const ForeignKey& follower : change_.followers)
                if (follower.child == child && follower.name() == key.name()) key = follower;
        out->add(child, all.own);
    }
    return 0;
}

int AlteredConstraints::verify(const TABLE* altered, const TableMeta& meta) {
    THD* thd = open_.thd();
    if (int error = use_.prepare_change(thd)) return error;
    const std::vector<ForeignKey>& added = change_.added;
    Stage stage(thd, stages::checking_foreign_keys, static_cast<uint>(added.size()));
    int error = 0;
    for (size_t i = 0; i < added.size() && !error; i++) {
        if (i) stage.next_part();
        if (!added[i].is_of_itself()) error = keep_writers_out(thd, added[i].parent);
        if (error) break;
        OrphanSearch search(added[i]);
        error = search.open(thd, altered, open_.core, meta);
        if (!error) error = search.run(use_.session(), OrphanSearch::Latest, 1, file_.estimate_rows_upper_bound());
        if (!error && !search.found().empty()) {
            push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_GET_ERRMSG, "Teak: there is no parent of %s",
                                search.found()[0].c_str());
            error = keeper_.break_constraint(added[i], HA_ERR_NO_REFERENCED_ROW);
        }
    }
    return error;
}

} // namespace teak
