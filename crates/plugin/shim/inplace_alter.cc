/*
  ALTER TABLE in place: adding indexes, dropping indexes, another compression, and what changes the server's definition
  alone. What has all rows written anew is done by inplace_rebuild.cc if it can, and everything else by copy.

    prepare    new empty trees, known by the names of the indexes and marked disabled      (exclusive lock)
    alter      built from the rows; the log names their blocks (inplace_indexes.cc)        (others read and write)
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
#include "ha_teak.h"
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

/*
  The layouts that the table has by the altered definition: those of now if rows stay what they are, one more if they
  can be translated. False: the rows have to be written anew; `reason` may say why.
*/
bool InplaceAlter::next_layouts(const TABLE* altered, const Alter_inplace_info* info, RowLayouts* layouts,
                                const char** reason) const {
    PrimaryCodec primary;
    if (!primary.init(altered, altered_encoding(altered))) return false;
    RowCodec rows;
    if (!rows.init(altered, primary.restored_columns(), RowLayouts())) return false;
    const LayoutMaker maker{open_.rows, open_.primary.restored_columns(), rows, primary.restored_columns(),
                            open_.meta.layouts};
    if (maker.leaves_rows(info->alter_info->create_list)) {
        *layouts = open_.meta.layouts;
        return true;
    }
    return maker.make(open_.table, altered, info->alter_info->create_list, layouts, reason);
}

/* Whether the trees that the statement changes can be told apart by the names of their indexes, before and after. */
bool InplaceAlter::names_are_clear(const Alter_inplace_info* info) const {
    for (uint i = 0; i < info->index_add_count; i++)
        if (open_.meta.tree_of(added_key(info, i))) return false;
    for (const Alter_inplace_info::Rename_key_pair& pair : info->rename_keys)
        for (uint i = 0; i < info->index_drop_count; i++)
            if (same_name(*pair.new_key, *info->index_drop_buffer[i])) return false;
    return true;
}

enum_alter_inplace_result InplaceAlter::check(TABLE* altered, Alter_inplace_info* info) {
    /* What an ALTER had that was given up is not there any more: no statement has begun that would see to it. */
    if (int error = open_.renew()) {
        file_.print_error(error, MYF(0));
        return HA_ALTER_ERROR;
    }
    const enum_alter_inplace_result constraints = constraints_.check(altered, info);
    if (constraints != HA_ALTER_INPLACE_INSTANT) return constraints;
    info->unsupported_reason = reason_for_copy(info);
    if (info->unsupported_reason) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* Should it be refused, or ask for less than a rebuild. */
    if (info->handler_flags & ALTER_STORED_COLUMN_TYPE)
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    if (info->handler_flags & ~kInPlace || info->create_info->sequence || open_.temporary)
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
    } else if (info->handler_flags & ALTER_CHANGE_CREATE_OPTION && changes_form(open_.table, info->create_info))
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_TABLE_OPTIONS_NEED_REBUILD);
    return check_rebuild(altered, info);
}

/* Rows stay as they are, or are translated when they are read. */
enum_alter_inplace_result InplaceAlter::check_without_rebuild(TABLE* altered, Alter_inplace_info* info) {
    const alter_table_operations wanted = info->handler_flags;
    RowLayouts layouts;
    if (!names_are_clear(info) || !next_layouts(altered, info, &layouts, &info->unsupported_reason))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* InnoDB copies where values are of other types, and rows are held against all checks. */
    if (has_new_checks(altered, info->alter_info->create_list) && converts_some(altered, info->alter_info->create_list))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    const bool verifies = constraints_.has_to_verify();
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

bool InplaceAlter::prepare(TABLE* altered, Alter_inplace_info* info) {
    auto* context = new (open_.thd()->mem_root) AlteredTable(this);
    info->handler_ctx = context;
    if (!context) return true;
    if (info->handler_flags & ALTER_RECREATE_TABLE) {
        context->rebuild = std::make_unique<Rebuild>();
        const int error = begin_rebuild(altered, info, context->rebuild.get());
        if (error) file_.print_error(error, MYF(0));
        return error != 0;
    }
    if (!(info->handler_flags & kIndexChanges)) return false;
    open_.share->altering = true;
    if (info->index_add_count == 0) return false;
    TableMeta meta = open_.meta;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    for (uint i = 0; i < info->index_add_count; i++) {
        layout.push_back(TEAK_NEW_TREE);
        meta.indexes.push_back({TableMeta::name_of(added_key(info, i)), true});
    }
    int error = open_.alter_trees(layout, meta);
    std::vector<uint32_t> trees;
    if (!error && !(context->added = make_online(altered, info, &trees))) error = HA_ERR_UNSUPPORTED;
    if (!error) error = begin_online(context->added.get(), trees);
    if (error) file_.print_error(error, MYF(0));
    return error != 0;
}

bool InplaceAlter::run(TABLE* altered, Alter_inplace_info* info) {
    const AlteredTable* context = context_of(info->handler_ctx);
    if (context->rebuild) return run_rebuild(altered, context->rebuild.get()) != 0;
    int error = context->added ? build_online(altered, context->added.get()) : 0;
    if (!error && constraints_.has_to_verify()) {
        error = constraints_.verify(altered, altered_meta(altered, info));
        if (error && !open_.thd()->is_error()) file_.print_error(error, MYF(0));
    }
    return error != 0;
}

/* How the keys of the table are encoded once it is altered in place: by the newest rules, unless it has keys that are
   by others. */
KeyEncoding InplaceAlter::altered_encoding(const TABLE* altered) const {
    return open_.has_cut_keys() || open_.meta.encoding == KeyEncoding::CutWeights ? open_.meta.encoding
                                                                                  : TableMeta(altered).encoding;
}

bool InplaceAlter::give_up(Alter_inplace_info* info) {
    if (info->handler_flags & ALTER_RECREATE_TABLE) {
        if (info->handler_ctx) context_of(info->handler_ctx)->rebuild.reset();
        return false;
    }
    if (!(info->handler_flags & kIndexChanges)) return false;
    if (info->handler_ctx) context_of(info->handler_ctx)->added.reset();
    open_.share->altering = false;
    /* Opening it again lets go of the new trees. */
    open_.close();
    open_.share->generation++;
    return open_.open() != 0;
}

bool InplaceAlter::commit(TABLE* altered, Alter_inplace_info* info) {
    inplace_alter_handler_ctx* const only[] = {info->handler_ctx, nullptr};
    inplace_alter_handler_ctx* const* parts = info->group_commit_ctx ? info->group_commit_ctx : only;
    /* Says that no part is left to be committed. */
    info->group_commit_ctx = nullptr;
    int error = 0;
    if (info->handler_flags & ALTER_RECREATE_TABLE) {
        /* Locks of rows that stay as they were, or missing, are left behind in the old trees. */
        error = wait_for_holders(open_.thd(), bytes_of(open_.name), TEAK_HOLDERS_LOOKS);
        if (!error) error = commit_rebuilt(altered, info, parts);
    } else
        error = commit_altered(altered, info, parts);
    if (error && !open_.thd()->is_error()) file_.print_error(error, MYF(0));
    return error != 0;
}

/*
  What AUTO_INCREMENT=n makes of the counter: n, but not below what comes after the greatest value that is there, which
  is as far down as it can be set. `counter` stays 0 if the statement does not say. Nobody else has the table.
*/
int InplaceAlter::wanted_counter(const Alter_inplace_info* info, uint64_t* counter) {
    const HA_CREATE_INFO* create = info->create_info;
    if (!(create->used_fields & HA_CREATE_USED_AUTO) || !create->auto_increment_value) return 0;
    if (!open_.table->found_next_number_field) return 0;
    *counter = create->auto_increment_value;
    teak_table_statistics now;
    teak_table_get_statistics(open_.core, &now);
    if (*counter >= now.next_counter) return 0;
    if (int error = use_.ready()) return error;
    const uint index = open_.table->s->next_number_index;
    const bool descends = (open_.table->key_info[index].key_part[0].key_part_flag & HA_REVERSE_SORT) != 0;
    WholeRows whole(open_.table, use_.statement.reads_latest);
    int error = file_.ha_index_init(index, true);
    if (error) return error;
    error = descends ? file_.index_first(open_.table->record[0]) : file_.index_last(open_.table->record[0]);
    /* What comes after the greatest that there is: that one, and nothing is given out any more. */
    if (!error) *counter = std::max(*counter, std::max(open_.counted_value(), open_.counted_value() + 1));
    file_.ha_index_end();
    return error == HA_ERR_END_OF_FILE || error == HA_ERR_KEY_NOT_FOUND ? 0 : error;
}

/* The metadata that the table is to have. */
TableMeta InplaceAlter::altered_meta(const TABLE* altered, const Alter_inplace_info* info) const {
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

bool InplaceAlter::altered_state(const TABLE* altered, const Alter_inplace_info* info, Altered* state) const {
    TableMeta meta = altered_meta(altered, info);
    const char* reason;
    /* What the defaults of new columns have to say was said when the statement was checked. */
    const Check_level_instant_set silent(open_.thd(), CHECK_FIELD_IGNORE);
    if (!next_layouts(altered, info, &meta.layouts, &reason)) return false;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    *state = {layout, meta.encode(), 0, meta.is_guarded()};
    return true;
}

/* Commits `parts`, a list that ends with nullptr, in one step. */
int InplaceAlter::commit_altered(TABLE* altered, const Alter_inplace_info* info,
                                 inplace_alter_handler_ctx* const* parts) {
    inplace_alter_handler_ctx* const* const first = parts;
    std::vector<InplaceAlter*> all;
    std::vector<Altered> states;
    Relinks relinks;
    /* A partitioned table has no constraints. */
    if (int error = context_of(*parts)->alter->constraints_.relink(&relinks)) return error;
    for (; *parts; parts++) {
        InplaceAlter* const part = context_of(*parts)->alter;
        all.push_back(part);
        /* Once more: without a lock a transaction may have been prepared since the statement began. */
        if (int error = part->use_.prepare_change(open_.thd())) return error;
        if (OnlineIndexes* added = context_of(*parts)->added.get())
            if (int error = part->finish_online(altered, added)) return error;
        states.emplace_back();
        if (!part->altered_state(altered, info, &states.back())) return HA_ERR_UNSUPPORTED;
        if (int error = part->wanted_counter(info, &states.back().counter)) return error;
    }
    const teak_tree_spec spec = tree_spec(altered->s->option_struct);
    const bool repacked = repacks(open_.table, altered);
    std::vector<teak_alteration> alterations;
    for (size_t i = 0; i < all.size(); i++) {
        all[i]->open_.close();
        alterations.push_back(all[i]->open_.alteration(states[i].layout, states[i].meta, spec, repacked));
        alterations.back().counter = states[i].counter;
        alterations.back().guarded = states[i].is_guarded;
        alterations.back().limits_memory = lives_in_memory(altered->s->option_struct);
        if (alterations.back().limits_memory) alterations.back().memory_limit = altered->s->option_struct->memory_limit;
    }
    int error = open_.fail(teak_tables_alter(plugin.engine, {alterations.data(), alterations.size()}, relinks.all()));
    for (parts = first; !error && *parts; parts++)
        context_of(*parts)->added.reset();
    for (InplaceAlter* part : all) {
        part->open_.share->generation++;
        /* The server is about to close what it has open by the old definition, whose indexes may have had other names,
           and whose rows another layout. */
        if (!error) continue;
        int reopened = part->open_.open();
        if (!error) error = reopened;
    }
    return error;
}
