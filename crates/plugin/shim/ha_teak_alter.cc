/*
  ALTER TABLE in place: adding indexes, dropping indexes, another compression, and what changes the server's definition
  alone. Everything else is done by copy.

    prepare    new empty trees, known by the names of the indexes and marked disabled      (exclusive lock)
    alter      built from the rows; a checkpoint makes them durable                        (shared lock: readers go on)
    commit     no longer disabled, the new definition's version, another compression       (exclusive lock)

  The commit is one transaction of the engine, over all partitions of a table. Then the server puts its new definition
  in place. After a crash it asks which version the engine has (check_version) and takes the definition that fits. Trees
  of indexes that a definition does not have go when a table is opened by it (map_trees): so dropping an index does
  nothing here, and whichever definition a crash leaves finds its trees.

  Another compression holds for blocks that are written from the commit on; the engine rewrites those that are there at
  its next checkpoints.
*/
#include "ha_teak.h"

using namespace teak;

namespace {

constexpr alter_table_operations kIndexChanges = ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX |
                                                 ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;
/* What comes with them and asks nothing of the engine. */
constexpr alter_table_operations kHarmless = ALTER_ADD_INDEX | ALTER_DROP_INDEX | ALTER_INDEX_ORDER;

const KEY& added_key(const Alter_inplace_info* info, uint i) {
    return info->key_info_buffer[info->index_add_buffer[i]];
}

bool same_name(const KEY& a, const KEY& b) { return TableMeta::name_of(a) == TableMeta::name_of(b); }

bool repacks(const TABLE* now, const TABLE* then) {
    const ha_table_option_struct *a = now->s->option_struct, *b = then->s->option_struct;
    return a && b && (a->compression != b->compression || a->compression_level != b->compression_level);
}

/* The key that rows are known by is the same before and after. */
bool same_primary(const TABLE* a, const TABLE* b) {
    if (a->s->primary_key == MAX_KEY || b->s->primary_key == MAX_KEY) return a->s->primary_key == b->s->primary_key;
    return same_name(a->key_info[a->s->primary_key], b->key_info[b->s->primary_key]);
}

/* What prepare leaves for commit: of a partitioned table only the first part is asked to commit, for all of them. */
struct AlteredTable : public inplace_alter_handler_ctx {
    explicit AlteredTable(ha_teak* part) : handler(part) {}
    ha_teak* const handler;
};

} // namespace

enum_alter_inplace_result ha_teak::check_if_supported_inplace_alter(TABLE* altered, Alter_inplace_info* info) {
    const alter_table_operations wanted = info->handler_flags;
    if (!(wanted & kIndexChanges)) {
        /* Trees are known by the names of their indexes. */
        if (wanted & ALTER_RENAME_INDEX) return HA_ALTER_INPLACE_NOT_SUPPORTED;
        return handler::check_if_supported_inplace_alter(altered, info);
    }
    /* ALTER IGNORE drops rows. */
    if ((wanted & ~(kIndexChanges | kHarmless)) || info->ignore || temporary_ || open_.disabled_indexes ||
        !same_primary(table, altered))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    for (uint i = 0; i < info->index_add_count; i++) {
        const KEY& key = added_key(info, i);
        if (key.flags & (HA_FULLTEXT | HA_SPATIAL) || key.algorithm == HA_KEY_ALG_LONG_HASH || open_.meta.tree_of(key))
            return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    return HA_ALTER_INPLACE_NOCOPY_LOCK;
}

bool ha_teak::prepare_inplace_alter_table(TABLE*, Alter_inplace_info* info) {
    info->handler_ctx = new (ha_thd()->mem_root) AlteredTable(this);
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
    if (!(info->handler_flags & kIndexChanges) || info->index_add_count == 0) return false;
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
    return error != 0;
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

/* What commit writes of this table. */
ha_teak::Altered ha_teak::altered_state(const TABLE* altered, const Alter_inplace_info* info) const {
    TableMeta meta = open_.meta;
    meta.set_definition(altered);
    if (info->handler_flags & kIndexChanges)
        for (uint i = 0; i < info->index_add_count; i++)
            if (uint32_t tree = meta.tree_of(added_key(info, i))) meta.indexes[tree - 1].disabled = false;
    std::vector<uint32_t> layout;
    for (uint32_t tree = 0; tree <= meta.indexes.size(); tree++)
        layout.push_back(tree);
    return {layout, meta.encode()};
}

/* Commits `parts`, a list that ends with nullptr, in one step. */
int ha_teak::commit_altered(const TABLE* altered, const Alter_inplace_info* info,
                            inplace_alter_handler_ctx* const* parts) {
    std::vector<ha_teak*> handlers;
    std::vector<Altered> states;
    for (; *parts; parts++) {
        handlers.push_back(static_cast<const AlteredTable*>(*parts)->handler);
        states.push_back(handlers.back()->altered_state(altered, info));
    }
    const teak_tree_spec spec = tree_spec(altered->s->option_struct);
    const bool repacked = repacks(table, altered);
    std::vector<teak_alteration> alterations;
    for (size_t i = 0; i < handlers.size(); i++) {
        handlers[i]->close_table();
        alterations.push_back(handlers[i]->alteration(states[i].layout, states[i].meta, spec, repacked));
    }
    int error = fail(teak_tables_alter(plugin.engine, alterations.data(), alterations.size()));
    for (ha_teak* handler : handlers) {
        handler->share_->generation++;
        int reopened = handler->open_table();
        if (!error) error = reopened;
    }
    return error;
}
