/*
  ALTER TABLE in place: adding indexes, dropping indexes, another compression, and what changes the server's definition
  alone. Everything else is done by copy.

    prepare    new empty trees, known by the names of the indexes and marked disabled      (exclusive lock)
    alter      built from the rows; a checkpoint makes them durable                        (shared lock: readers go on)
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
#include "ha_teak.h"
#include "layout_maker.h"
#include "row_scan.h"
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
/* Constraints come and go with the definition: ha_teak_constraints.cc. */
constexpr alter_table_operations kConstraints = ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;
/* Of virtual columns that no index has. */
constexpr alter_table_operations kVirtualColumns =
    ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN | ALTER_VIRTUAL_COLUMN_ORDER;

/* Of stored columns: they make another layout of the rows that are written from then on. */
constexpr alter_table_operations kLayoutChanges =
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_NULLABLE;

const KEY& added_key(const Alter_inplace_info* info, uint i) {
    return info->key_info_buffer[info->index_add_buffer[i]];
}

bool same_name(const KEY& a, const KEY& b) { return TableMeta::name_of(a) == TableMeta::name_of(b); }

bool repacks(const TABLE* now, const TABLE* then) {
    const ha_table_option_struct *a = now->s->option_struct, *b = then->s->option_struct;
    return a && b && (a->compression != b->compression || a->compression_level != b->compression_level);
}

/* Options that all blocks, or the null bits of all rows, depend on. */
bool rebuilds(const TABLE* now, const HA_CREATE_INFO* then) {
    if (then->used_fields & HA_CREATE_USED_ROW_FORMAT || now->s->row_type != then->row_type) return true;
    const ha_table_option_struct *a = now->s->option_struct, *b = then->option_struct;
    return a && b && a->block_size != b->block_size;
}

/* The key that rows are known by is the same before and after. */
bool same_primary(const TABLE* a, const TABLE* b) {
    if (a->s->primary_key == MAX_KEY || b->s->primary_key == MAX_KEY) return a->s->primary_key == b->s->primary_key;
    return same_name(a->key_info[a->s->primary_key], b->key_info[b->s->primary_key]);
}

/* What prepare leaves for commit: of a partitioned table only the first part is asked to commit, for all of them. */
struct AlteredTable : public inplace_alter_handler_ctx {
    AlteredTable(ha_teak* part, ConstraintChange change) : handler(part), constraints(std::move(change)) {}
    ha_teak* const handler;
    const ConstraintChange constraints;
};

/* Why the server is not given an algorithm that the statement asks for, in the words that InnoDB has for it. */
const char* reason_for_copy(const Alter_inplace_info* info, const TABLE* now) {
    const alter_table_operations wanted = info->handler_flags;
    if (info->create_info->used_fields & HA_CREATE_USED_SEQUENCE) return "SEQUENCE";
    if (info->ignore && wanted & ALTER_ADD_UNIQUE_INDEX)
        return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE);
    if ((wanted & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX)
        return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK);
    if (wanted & kVirtualColumns && wanted & ~(kVirtualColumns | kDefinitionChanges | kHarmless | kLayoutChanges |
                                               (kIndexChanges & ~kIndexAdditions)))
        return "INPLACE ADD or DROP of virtual columns cannot be combined with other ALTER TABLE actions";
    if (wanted & (ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE))
        return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    if (wanted & ALTER_CHANGE_CREATE_OPTION && rebuilds(now, info->create_info))
        return my_get_err_msg(ER_ALTER_OPERATION_TABLE_OPTIONS_NEED_REBUILD);
    return nullptr;
}

} // namespace

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

/* Which VARCHAR may become which without a change of any row: longer. Where its length takes two bytes in place of one,
   rows have another layout, which entries of indexes have not. A generated one has other values then. */
bool ha_teak::can_convert_nocopy(const Field& field, const Column_definition& to) const {
    if (widens(field, to)) return true;
    if (field.real_type() != MYSQL_TYPE_VARCHAR || field.type_handler() != to.type_handler() || field.vcol_info)
        return false;
    const auto& text = static_cast<const Field_varstring&>(field);
    if (text.compression_method() || to.compression_method() || text.charset() != to.charset) return false;
    if (to.length < text.field_length) return false;
    if (HA_VARCHAR_PACKLENGTH(to.length) != text.length_bytes && is_in_index(table, &field)) return false;
    /* Keys of before all weights were kept have as many as fit into the column. */
    return open_.meta.encoding == KeyEncoding::AllWeights || text.part_of_key.is_clear_all();
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
    if (!primary.init(altered, open_.meta.encoding)) return false;
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
    const alter_table_operations wanted = info->handler_flags;
    const enum_alter_inplace_result constraints = check_constraints_inplace(altered, info);
    if (constraints != HA_ALTER_INPLACE_INSTANT) return constraints;
    info->unsupported_reason = reason_for_copy(info, table);
    if (info->unsupported_reason ||
        wanted & ~(kIndexChanges | kHarmless | kDefinitionChanges | kVirtualColumns | kLayoutChanges | kConstraints) ||
        info->create_info->sequence || rebuilds(table, info->create_info) || temporary_ ||
        !same_primary(table, altered) || !names_are_clear(info))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (altered->versioned(VERS_TIMESTAMP)) {
        info->unsupported_reason = "Not implemented for system-versioned timestamp tables";
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    RowLayouts layouts;
    if (!next_layouts(altered, info, &layouts, &info->unsupported_reason)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* A date that is not allowed is to be in each row, if there is one: the copy tells. */
    if (info->error_if_not_empty) return HA_ALTER_INPLACE_NOT_SUPPORTED;
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
        if (key.flags & (HA_FULLTEXT | HA_SPATIAL) || key.algorithm == HA_KEY_ALG_LONG_HASH)
            return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    info->unsupported_reason = "ADD INDEX"; /* the same */
    return HA_ALTER_INPLACE_NOCOPY_LOCK;
}

bool ha_teak::prepare_inplace_alter_table(TABLE*, Alter_inplace_info* info) {
    info->handler_ctx = new (ha_thd()->mem_root) AlteredTable(this, std::move(foreign_.change));
    foreign_.change = {};
    if (!info->handler_ctx) return true;
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
    if (error) print_error(error, MYF(0));
    return error != 0;
}

bool ha_teak::inplace_alter_table(TABLE* altered, Alter_inplace_info* info) {
    const auto* context = static_cast<const AlteredTable*>(info->handler_ctx);
    int error = 0;
    if (info->handler_flags & kIndexChanges && info->index_add_count) error = build_added(altered, info);
    const std::vector<ForeignKey>& added = context->constraints.added;
    if (!error && !added.empty() && are_checked(ha_thd())) {
        error = verify_constraints(altered, altered_meta(altered, info), added);
        if (error && !ha_thd()->is_error()) print_error(error, MYF(0));
    }
    return error != 0;
}

/* Builds the indexes that are added; the error is set. */
int ha_teak::build_added(TABLE* altered, const Alter_inplace_info* info) {
    PrimaryCodec primary;
    std::vector<IndexCodec> codecs(info->index_add_count);
    std::vector<const IndexCodec*> indexes;
    std::vector<uint32_t> trees;
    std::vector<KEY*> keys;
    int error = ready();
    if (!error && !primary.init(altered, open_.meta.encoding)) error = HA_ERR_UNSUPPORTED;
    for (uint i = 0; i < info->index_add_count && !error; i++) {
        uint index = 0;
        while (index < altered->s->keys && !same_name(altered->key_info[index], added_key(info, i)))
            index++;
        if (index == altered->s->keys || !codecs[i].init(altered, index, &primary)) error = HA_ERR_UNSUPPORTED;
        keys.push_back(&altered->key_info[index]);
        indexes.push_back(&codecs[i]);
        trees.push_back(open_.meta.tree_of(added_key(info, i)));
    }
    if (!error) error = build(indexes, trees);
    if (error == HA_ERR_FOUND_DUPP_KEY) {
        memcpy(altered->record[0], table->record[0], altered->s->reclength);
        print_keydup_error(altered, keys[statement_.duplicate_part], MYF(0));
    } else if (error)
        print_error(error, MYF(0));
    if (inited == RND) ha_rnd_end();
    return error;
}

bool ha_teak::commit_inplace_alter_table(TABLE* altered, Alter_inplace_info* info, bool commit) {
    if (!commit) {
        if (!(info->handler_flags & kIndexChanges)) return false;
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
    int error = commit_altered(altered, info, parts);
    if (error) print_error(error, MYF(0));
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
    if (!next_layouts(altered, info, &meta.layouts, &reason)) return false;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    *state = {layout, meta.encode(), 0, !meta.layouts.empty()};
    return true;
}

/* Commits `parts`, a list that ends with nullptr, in one step. */
int ha_teak::commit_altered(const TABLE* altered, const Alter_inplace_info* info,
                            inplace_alter_handler_ctx* const* parts) {
    std::vector<ha_teak*> handlers;
    std::vector<Altered> states;
    Relinks relinks;
    /* A partitioned table has no constraints. */
    if (int error = relink(static_cast<const AlteredTable*>(*parts)->constraints, &relinks)) return error;
    for (; *parts; parts++) {
        handlers.push_back(static_cast<const AlteredTable*>(*parts)->handler);
        /* Once more: without a lock a transaction may have been prepared since the statement began. */
        if (int error = handlers.back()->prepare_change(ha_thd())) return error;
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
        alterations.back().guarded = states[i].has_layouts;
    }
    int error =
        fail(teak_tables_alter(plugin.engine, alterations.data(), alterations.size(), relinks.data(), relinks.size()));
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
