/*
  ALTER TABLE in place: adding indexes, dropping indexes, another compression, and what changes the server's definition
  alone. What has all rows written anew is done by ha_teak_rebuild.cc if it can, and everything else by copy.

    prepare    new empty trees, known by the names of the indexes and marked disabled      (exclusive lock)
    alter      built from the rows; the log names their blocks (ha_teak_online.cc)         (others read and write)
    commit     no longer disabled, the new definition's version and names of indexes,
               another compression, another AUTO_INCREMENT                                 (exclusive lock)

  Where no index is added there is only the commit.

  The commit is one transaction of the engine, over all partitions of a table. Then the server puts its new definition
  in place. After a crash it asks which version the engine has (check_version) and takes the definition that fits. Trees
  of indexes that a definition does not have go when a table is opened by it (map_trees): so dropping an index does
  nothing here, and whichever definition a crash leaves finds its trees.

  What the server does not find equal in the two definitions may still leave every stored byte as it is; whether it does
  is asked of the codecs of both (next_layouts), not concluded from the statement's words. Else the rows may stay if
  they can be translated: the table has one layout more then (layout_maker.h).

  Another compression holds for blocks that are written from the commit on; the engine rewrites those that are there at
  its next checkpoints.
*/
#include "inplace_alter.h"
#include "server_version.h"
#include "layout_maker.h"
#include <algorithm>

using namespace teak;

namespace {

constexpr alter_table_operations kIndexAdditions = ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
constexpr alter_table_operations kIndexChanges =
    kIndexAdditions | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;
/* What comes with them and asks nothing of the engine. */
constexpr alter_table_operations kHarmless = ALTER_ADD_INDEX | ALTER_DROP_INDEX | ALTER_INDEX_ORDER;
/* Changes of the definition that leave rows and keys as they are, if their codecs agree. */
constexpr alter_table_operations kDefinitionChanges =
    ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_OPTION | ALTER_COLUMN_COLUMN_FORMAT |
    ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_COLUMN_INDEX_LENGTH | ALTER_VIRTUAL_GCOL_EXPR | ALTER_RENAME_INDEX |
    ALTER_INDEX_IGNORABILITY | ALTER_CHANGE_INDEX_COMMENT | ALTER_DROP_CHECK_CONSTRAINT | ALTER_CHANGE_CREATE_OPTION |
    ALTER_CONVERT_TO | ALTER_RENAME | ALTER_PARTITIONED;
/* Of stored columns: they make another layout of the rows that are written from then on. */
constexpr alter_table_operations kLayoutChanges =
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_NULLABLE;

constexpr alter_table_operations kInPlace =
    kIndexChanges | kHarmless | kDefinitionChanges | kVirtualColumns | kLayoutChanges | kConstraints | kRebuilds;

bool repacks(const TABLE* now, const TABLE* then) {
    const ha_table_option_struct *a = now->s->option_struct, *b = then->s->option_struct;
    return a && b &&
           (a->compression != b->compression || a->compression_level != b->compression_level ||
            a->recompress != b->recompress || a->similarity != b->similarity);
}

/* Why the server is not given an algorithm that the statement asks for, in the words that InnoDB has for it. */
const char* reason_for_copy(const Alter_inplace_info* info) {
    const alter_table_operations wanted = info->handler_flags;
    if (info->create_info->used_fields & HA_CREATE_USED_SEQUENCE) return "SEQUENCE";
    if (info->ignore && wanted & (ALTER_ADD_UNIQUE_INDEX | ALTER_ADD_PK_INDEX))
        return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE);
    if ((wanted & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX)
        return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK);
    if (wanted & kVirtualColumns && wanted & ~(kVirtualColumns | kDefinitionChanges | kHarmless | kLayoutChanges |
                                               (kIndexChanges & ~kIndexAdditions)))
        return "INPLACE ADD or DROP of virtual columns cannot be combined with other ALTER TABLE actions";
    if (wanted & ALTER_VIRTUAL_COLUMN_TYPE) return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    return nullptr;
}

/* Whether there is a CHECK of a column that rows were not held against. */
bool has_new_checks(const TABLE* altered, List<Create_field>& columns) {
    uint number = 0;
    for (const Create_field& column : columns) {
        Virtual_column_info* const now = altered->field[number++]->check_constraint;
        if (!now) continue;
        Virtual_column_info* const before = column.field ? column.field->check_constraint : nullptr;
        if (!before) return true;
        String a, b;
        before->print(&a);
        now->print(&b);
        if (a.length() != b.length() || memcmp(a.ptr(), b.ptr(), a.length()) != 0) return true;
    }
    return false;
}

bool is_plain_blob(const Type_handler* type) {
    return type == &type_handler_tiny_blob || type == &type_handler_blob || type == &type_handler_medium_blob ||
           type == &type_handler_long_blob;
}

} // namespace

namespace teak {

bool changes_form(const TABLE* now, const HA_CREATE_INFO* then) {
    if (then->used_fields & HA_CREATE_USED_ROW_FORMAT || now->s->row_type != then->row_type) return true;
    const ha_table_option_struct *a = now->s->option_struct, *b = then->option_struct;
    return a && b && (a->block_size != b->block_size || moves(a, b));
}

bool same_primary(const TABLE* a, const TABLE* b) {
    if (a->s->primary_key == MAX_KEY || b->s->primary_key == MAX_KEY) return a->s->primary_key == b->s->primary_key;
    return same_name(a->key_info[a->s->primary_key], b->key_info[b->s->primary_key]);
}

} // namespace teak

/* Which integer may become which: a wider one that can hold all its values, where neither an index nor a partition is
   told by its bytes. */
bool ha_teak::widens(const Field& field, const Column_definition& to) const {
    const enum_field_types type = to.type_handler()->field_type();
    if (!is_integer(field.type()) || !is_integer(type) || field.vcol_info || to.vcol_info) return false;
    const uint32 now = field.pack_length(), then = to.type_handler()->calc_pack_length(static_cast<uint32>(to.length));
    const bool was_unsigned = field.flags & UNSIGNED_FLAG, is_unsigned = to.flags & UNSIGNED_FLAG;
    if (then <= now || (is_unsigned && !was_unsigned)) return false;
    /* As texts, which generated columns may have, such integers are as long as their type says. */
    if ((field.flags | to.flags) & ZEROFILL_FLAG) return false;
    return !(field.flags & FIELD_IN_PART_FUNC_FLAG) && !is_in_index(table, &field);
}

/* Whether the column's bytes may mean what the new collation makes of them, which has them in another order perhaps:
   nothing that is stored was computed from that order. */
bool ha_teak::takes_collation(const Field& field, const CHARSET_INFO* to) const {
    if (field.charset() == to) return true;
    if (!keeps_bytes(field.charset(), to) || field.flags & FIELD_IN_PART_FUNC_FLAG) return false;
    if (is_in_index(table, &field) && !has_same_weights(field.charset(), to)) return false;
    for (uint i = 0; i < table->s->keys; i++)
        if (table->key_info[i].algorithm == HA_KEY_ALG_LONG_HASH) return false;
    for (Field** other = table->field; *other; other++)
        if ((*other)->vcol_info && ((*other)->stored_in_db() || is_in_index(table, *other))) return false;
    return true;
}

/* Which text may become which without a change of any row: a longer one, in a character set that has the same bytes for
   it. Where its length takes more bytes than before, rows have another layout, which entries of indexes have not. A
   generated one has other values then. */
bool ha_teak::can_convert_nocopy(const Field& field, const Column_definition& to) const {
    if (widens(field, to)) return true;
    if (field.vcol_info || to.vcol_info || to.compression_method()) return false;
    const enum_field_types type = field.real_type();
    if (type == MYSQL_TYPE_VARCHAR) {
        const auto& text = static_cast<const Field_varstring&>(field);
        if (field.type_handler() != to.type_handler() || text.compression_method() || to.length < text.field_length ||
            to.char_length < field.char_length() || !takes_collation(field, to.charset))
            return false;
        if (HA_VARCHAR_PACKLENGTH(to.length) != text.length_bytes && is_in_index(table, &field)) return false;
        /* Keys of before all weights were kept have as many as fit into the column. */
        return open_.meta.encoding != KeyEncoding::CutWeights || text.part_of_key.is_clear_all();
    }
    if (is_in_index(table, &field)) return false;
    if (type == MYSQL_TYPE_STRING) {
        /* Without its spaces in a row where a character may have several bytes. */
        const bool is_padded = field.charset()->mbmaxlen > 1 && to.length > field.field_length;
        return field.type_handler() == to.type_handler() && to.char_length >= field.char_length() &&
               (is_padded || to.length == field.field_length) && takes_collation(field, to.charset);
    }
    if (!is_plain_blob(field.type_handler()) || !is_plain_blob(to.type_handler())) return false;
    return !static_cast<const Field_blob&>(field).compression_method() && to.pack_length >= field.pack_length() &&
           takes_collation(field, to.charset);
}

/* The entries of an index stay what they are if a column in it grows and is in it whole, or by as much as before. */
Compare_keys ha_teak::compare_key_parts(const Field& field, const Column_definition& to, const KEY_PART_INFO& part,
                                        const KEY_PART_INFO& new_part) const {
    if (field.is_equal(to) || !can_convert_nocopy(field, to))
        return handler::compare_key_parts(field, to, part, new_part);
    const bool was_whole = part.length == field.key_length(), is_whole = new_part.length == to.length;
    if (was_whole != is_whole) return Compare_keys::NotEqual;
    if (part.length == new_part.length) return Compare_keys::Equal;
    return is_whole ? Compare_keys::EqualButKeyPartLength : Compare_keys::NotEqual;
}

/*
  The layouts that the table has by the altered definition: those of now if rows stay what they are, one more if they
  can be translated. False: the rows have to be written anew; `reason` may say why.
*/
bool ha_teak::next_layouts(const TABLE* altered, const Alter_inplace_info* info, RowLayouts* layouts,
                           const char** reason) const {
    PrimaryCodec primary;
    if (!primary.init(altered, altered_encoding(altered))) return false;
    RowCodec rows;
    if (!rows.init(altered, primary.restored_columns(), RowLayouts())) return false;
    const LayoutMaker maker{rows_, primary_.restored_columns(), rows, primary.restored_columns(), open_.meta.layouts};
    if (maker.leaves_rows(info->alter_info->create_list)) {
        *layouts = open_.meta.layouts;
        return true;
    }
    return maker.make(table, altered, info->alter_info->create_list, layouts, reason);
}

/* Whether the trees that the statement changes can be told apart by the names of their indexes, before and after. */
bool ha_teak::names_are_clear(const Alter_inplace_info* info) const {
    for (uint i = 0; i < info->index_add_count; i++)
        if (open_.meta.tree_of(added_key(info, i))) return false;
    for (const Alter_inplace_info::Rename_key_pair& pair : info->rename_keys)
        for (uint i = 0; i < info->index_drop_count; i++)
            if (same_name(*pair.new_key, *info->index_drop_buffer[i])) return false;
    return true;
}

enum_alter_inplace_result ha_teak::check_if_supported_inplace_alter(TABLE* altered, Alter_inplace_info* info) {
    /* What an ALTER had that was given up is not there any more: no statement has begun that would see to it. */
    if (int error = renew_table()) {
        print_error(error, MYF(0));
        return HA_ALTER_ERROR;
    }
    const enum_alter_inplace_result constraints = check_constraints_inplace(altered, info);
    if (constraints != HA_ALTER_INPLACE_INSTANT) return constraints;
    info->unsupported_reason = reason_for_copy(info);
    if (info->unsupported_reason) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* Should it be refused, or ask for less than a rebuild. */
    if (info->handler_flags & ALTER_STORED_COLUMN_TYPE)
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    if (info->handler_flags & ~kInPlace || info->create_info->sequence || temporary_)
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (altered->versioned(VERS_TIMESTAMP)) {
        info->unsupported_reason = "Not implemented for system-versioned timestamp tables";
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    /* A date that is not allowed is to be in each row, if there is one: the copy tells. */
    if (info->error_if_not_empty) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* A copy says what is wrong with it. */
    if (contradiction(altered->s->option_struct)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (!needs_rebuild(altered, info)) {
        const enum_alter_inplace_result result = check_without_rebuild(altered, info);
        if (result != HA_ALTER_INPLACE_NOT_SUPPORTED) return result;
    } else if (info->handler_flags & ALTER_CHANGE_CREATE_OPTION && changes_form(table, info->create_info))
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_TABLE_OPTIONS_NEED_REBUILD);
    return check_rebuild(altered, info);
}

/* Rows stay as they are, or are translated when they are read. */
enum_alter_inplace_result ha_teak::check_without_rebuild(TABLE* altered, Alter_inplace_info* info) {
    const alter_table_operations wanted = info->handler_flags;
    RowLayouts layouts;
    if (!names_are_clear(info) || !next_layouts(altered, info, &layouts, &info->unsupported_reason))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* InnoDB copies where values are of other types, and rows are held against all checks. */
    if (has_new_checks(altered, info->alter_info->create_list) && converts_some(altered, info->alter_info->create_list))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    const bool verifies = verifies_constraints();
    if (verifies && wanted & kLayoutChanges) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (!(wanted & kIndexChanges)) {
        info->unsupported_reason = verifies ? "ADD FOREIGN KEY" : nullptr; /* should the statement ask for INSTANT */
        return verifies ? HA_ALTER_INPLACE_NOCOPY_LOCK : HA_ALTER_INPLACE_NO_LOCK;
    }
    if (open_.disabled_indexes) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (!(wanted & kIndexAdditions)) {
        info->unsupported_reason = verifies ? "ADD FOREIGN KEY" : "DROP INDEX"; /* the same */
        return verifies ? HA_ALTER_INPLACE_NOCOPY_LOCK : HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
    }
    /* Rows are read by the present definition and keys made of them by the new one. */
    if (wanted & (ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | kLayoutChanges)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    for (uint i = 0; i < info->index_add_count; i++) {
        const KEY& key = added_key(info, i);
        if (is_special(key) || key.algorithm == HA_KEY_ALG_LONG_HASH) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    info->unsupported_reason = verifies ? "ADD FOREIGN KEY" : "ADD INDEX"; /* the same */
    return verifies ? HA_ALTER_INPLACE_NOCOPY_LOCK : HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
}

bool ha_teak::prepare_inplace_alter_table(TABLE* altered, Alter_inplace_info* info) {
    auto* context = new (ha_thd()->mem_root) AlteredTable(this, std::move(foreign_.change));
    info->handler_ctx = context;
    foreign_.change = {};
    if (!context) return true;
    if (info->handler_flags & ALTER_RECREATE_TABLE) {
        context->rebuild = std::make_unique<Rebuild>();
        const int error = begin_rebuild(altered, info, context->rebuild.get());
        if (error) print_error(error, MYF(0));
        return error != 0;
    }
    if (!(info->handler_flags & kIndexChanges)) return false;
    share_->altering = true;
    if (info->index_add_count == 0) return false;
    TableMeta meta = open_.meta;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    for (uint i = 0; i < info->index_add_count; i++) {
        layout.push_back(TEAK_NEW_TREE);
        meta.indexes.push_back({TableMeta::name_of(added_key(info, i)), true});
    }
    int error = alter_trees(layout, meta);
    std::vector<uint32_t> trees;
    if (!error && !(context->added = make_online(altered, info, &trees))) error = HA_ERR_UNSUPPORTED;
    if (!error) error = begin_online(context->added.get(), trees);
    if (error) print_error(error, MYF(0));
    return error != 0;
}

bool ha_teak::inplace_alter_table(TABLE* altered, Alter_inplace_info* info) {
    const AlteredTable* context = context_of(info->handler_ctx);
    if (context->rebuild) return run_rebuild(altered, context->rebuild.get()) != 0;
    int error = context->added ? build_online(altered, context->added.get()) : 0;
    const std::vector<ForeignKey>& added = context->constraints.added;
    if (!error && !added.empty() && are_checked(ha_thd())) {
        error = verify_constraints(altered, altered_meta(altered, info), added);
        if (error && !ha_thd()->is_error()) print_error(error, MYF(0));
    }
    return error != 0;
}

/* How the keys of the table are encoded once it is altered in place: by the newest rules, unless it has keys that are
   by others. */
KeyEncoding ha_teak::altered_encoding(const TABLE* altered) const {
    return has_cut_keys() || open_.meta.encoding == KeyEncoding::CutWeights ? open_.meta.encoding
                                                                            : TableMeta(altered).encoding;
}

/* The indexes that are added, and their trees; nullptr: they cannot be built. */
std::unique_ptr<OnlineIndexes> ha_teak::make_online(const TABLE* altered, const Alter_inplace_info* info,
                                                    std::vector<uint32_t>* trees) const {
    std::vector<uint> which;
    for (uint i = 0; i < info->index_add_count; i++) {
        uint index = 0;
        while (index < altered->s->keys && !same_name(altered->key_info[index], added_key(info, i)))
            index++;
        if (index == altered->s->keys) return nullptr;
        which.push_back(index);
        trees->push_back(open_.meta.tree_of(added_key(info, i)));
    }
    auto added = std::make_unique<OnlineIndexes>();
    return added->init(altered, which, altered_encoding(altered)) ? std::move(added) : nullptr;
}

bool ha_teak::commit_inplace_alter_table(TABLE* altered, Alter_inplace_info* info, bool commit) {
    if (!commit) {
        if (info->handler_flags & ALTER_RECREATE_TABLE) {
            if (info->handler_ctx) context_of(info->handler_ctx)->rebuild.reset();
            return false;
        }
        if (!(info->handler_flags & kIndexChanges)) return false;
        if (info->handler_ctx) context_of(info->handler_ctx)->added.reset();
        share_->altering = false;
        /* Opening it again lets go of the new trees. */
        close_table();
        share_->generation++;
        return open_table() != 0;
    }
    inplace_alter_handler_ctx* const only[] = {info->handler_ctx, nullptr};
    inplace_alter_handler_ctx* const* parts = info->group_commit_ctx ? info->group_commit_ctx : only;
    /* Says that no part is left to be committed. */
    info->group_commit_ctx = nullptr;
    int error = 0;
    if (info->handler_flags & ALTER_RECREATE_TABLE) {
        /* Locks of rows that stay as they were, or missing, are left behind in the old trees. */
        error = wait_for_holders(ha_thd(), bytes_of(name_.c_str()), TEAK_HOLDERS_LOOKS);
        if (!error) error = commit_rebuilt(altered, info, parts);
    } else
        error = commit_altered(altered, info, parts);
    if (error && !ha_thd()->is_error()) print_error(error, MYF(0));
    return error != 0;
}

/*
  What AUTO_INCREMENT=n makes of the counter: n, but not below what comes after the greatest value that is there, which
  is as far down as it can be set. `counter` stays 0 if the statement does not say. Nobody else has the table.
*/
int ha_teak::wanted_counter(const Alter_inplace_info* info, uint64_t* counter) {
    const HA_CREATE_INFO* create = info->create_info;
    if (!(create->used_fields & HA_CREATE_USED_AUTO) || !create->auto_increment_value) return 0;
    if (!table->found_next_number_field) return 0;
    *counter = create->auto_increment_value;
    teak_table_statistics now;
    teak_table_get_statistics(open_.table, &now);
    if (*counter >= now.next_counter) return 0;
    if (int error = ready()) return error;
    const uint index = table->s->next_number_index;
    const bool descends = (table->key_info[index].key_part[0].key_part_flag & HA_REVERSE_SORT) != 0;
    WholeRows whole(table, statement_.reads_latest);
    int error = ha_index_init(index, true);
    if (error) return error;
    error = descends ? index_first(table->record[0]) : index_last(table->record[0]);
    /* What comes after the greatest that there is: that one, and nothing is given out any more. */
    if (!error) *counter = std::max(*counter, std::max(counted_value(), counted_value() + 1));
    ha_index_end();
    return error == HA_ERR_END_OF_FILE || error == HA_ERR_KEY_NOT_FOUND ? 0 : error;
}

/* The metadata that the table is to have. */
TableMeta ha_teak::altered_meta(const TABLE* altered, const Alter_inplace_info* info) const {
    TableMeta meta = open_.meta;
    meta.set_definition(altered);
    meta.encoding = altered_encoding(altered);
    for (uint i = 0; i < info->index_add_count; i++)
        if (uint32_t tree = meta.tree_of(added_key(info, i))) meta.indexes[tree - 1].disabled = false;
    /* By the names of before: two may change places. */
    for (const Alter_inplace_info::Rename_key_pair& pair : info->rename_keys)
        if (uint32_t tree = open_.meta.tree_of(*pair.old_key))
            meta.indexes[tree - 1].name = TableMeta::name_of(*pair.new_key);
    return meta;
}

/* What commit writes of this table. */
bool ha_teak::altered_state(const TABLE* altered, const Alter_inplace_info* info, Altered* state) const {
    TableMeta meta = altered_meta(altered, info);
    const char* reason;
    /* What the defaults of new columns have to say was said when the statement was checked. */
    const Check_level_instant_set silent(ha_thd(), CHECK_FIELD_IGNORE);
    if (!next_layouts(altered, info, &meta.layouts, &reason)) return false;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    *state = {layout, meta.encode(), 0, meta.is_guarded()};
    return true;
}

/* Commits `parts`, a list that ends with nullptr, in one step. */
int ha_teak::commit_altered(TABLE* altered, const Alter_inplace_info* info, inplace_alter_handler_ctx* const* parts) {
    inplace_alter_handler_ctx* const* const all = parts;
    std::vector<ha_teak*> handlers;
    std::vector<Altered> states;
    Relinks relinks;
    /* A partitioned table has no constraints. */
    if (int error = relink(context_of(*parts)->constraints, &relinks)) return error;
    for (; *parts; parts++) {
        handlers.push_back(context_of(*parts)->handler);
        /* Once more: without a lock a transaction may have been prepared since the statement began. */
        if (int error = handlers.back()->prepare_change(ha_thd())) return error;
        if (OnlineIndexes* added = context_of(*parts)->added.get())
            if (int error = handlers.back()->finish_online(altered, added)) return error;
        states.emplace_back();
        if (!handlers.back()->altered_state(altered, info, &states.back())) return HA_ERR_UNSUPPORTED;
        if (int error = handlers.back()->wanted_counter(info, &states.back().counter)) return error;
    }
    const teak_tree_spec spec = tree_spec(altered->s->option_struct);
    const bool repacked = repacks(table, altered);
    std::vector<teak_alteration> alterations;
    for (size_t i = 0; i < handlers.size(); i++) {
        handlers[i]->close_table();
        alterations.push_back(handlers[i]->alteration(states[i].layout, states[i].meta, spec, repacked));
        alterations.back().counter = states[i].counter;
        alterations.back().guarded = states[i].is_guarded;
        alterations.back().limits_memory = lives_in_memory(altered->s->option_struct);
        if (alterations.back().limits_memory) alterations.back().memory_limit = altered->s->option_struct->memory_limit;
    }
    int error = fail(teak_tables_alter(plugin.engine, {alterations.data(), alterations.size()}, relinks.all()));
    for (parts = all; !error && *parts; parts++)
        context_of(*parts)->added.reset();
    for (ha_teak* handler : handlers) {
        handler->share_->generation++;
        /* The server is about to close what it has open by the old definition, whose indexes may have had other names,
           and whose rows another layout. */
        if (!error) continue;
        int reopened = handler->open_table();
        if (!error) error = reopened;
    }
    return error;
}
