/*
  See open_table.h.
*/
#include "open_table.h"
#include "foreign_key.h"
#include "key_text.h"
#include "row_scan.h"
#include "session.h"
#include <algorithm>

namespace teak {

int OpenTable::init(TABLE* of, TableShare* shared, teak_bytes core_name) {
    table = of;
    share = shared;
    name.assign(reinterpret_cast<const char*>(core_name.data), core_name.len);
    /* The table of a vector index (since MariaDB 11.7) says that it were one, though sessions share it. */
    temporary = table->s->tmp_table != NO_TMP_TABLE && is_passing_name(name);
    int error = open_core();
    if (!error) error = make_codecs();
    if (!error) error = map_trees();
    if (error) close();
    return error;
}

/* Where definition and metadata do not fit, the error is HA_ERR_INCOMPATIBLE_DEFINITION: with _TABLE_DEF_CHANGED the
   server would remove its definition, to look for another one. */
int OpenTable::open_core() {
    generation = share->generation.load();
    teak_status status = teak_table_open(plugin.engine, bytes_of(name), &core);
    if (status != TEAK_OK) return error_code(status, thd());
    if (temporary) teak_table_show_to_older_snapshots(core);
    if (meta.parse(teak_table_meta(core)) && teak_table_trees(core) == 1 + meta.indexes.size()) return 0;
    close();
    return HA_ERR_INCOMPATIBLE_DEFINITION;
}

int OpenTable::open() {
    int error = open_core();
    /* TRUNCATE and IMPORT leave other layouts than there were. */
    if (!error && (rows.has_layouts() || !meta.layouts.empty())) error = make_row_codec();
    if (!error) error = map_trees();
    if (error) close();
    return error;
}

int OpenTable::renew() {
    if (core && generation == share->generation.load()) return 0;
    close();
    return open();
}

void OpenTable::close() {
    free_cursors();
    teak_table_close(core);
    static_cast<CoreTable&>(*this) = {};
}

int OpenTable::make_row_codec() {
    rows = RowCodec();
    chosen = ChosenColumns();
    return rows.init(table, primary.restored_columns(), meta.layouts) ? 0 : HA_ERR_INCOMPATIBLE_DEFINITION;
}

int OpenTable::make_codecs() {
    if (!primary.init(table, meta.encoding) || !end.init(table)) return HA_ERR_UNSUPPORTED;
    if (int error = make_row_codec()) return error;
    indexes.clear();
    indexes.resize(table->s->keys);
    for (uint i = 0; i < table->s->keys; i++) {
        if (i != table->s->primary_key && !indexes[i].init(table, i, &primary)) return HA_ERR_UNSUPPORTED;
    }
    return 0;
}

/* Finds each index's tree. Trees that no index has are left from an ALTER: of an index that was dropped, or that was to
   be added when the server was killed. */
int OpenTable::map_trees() {
    trees.assign(table->s->keys, 0);
    TableMeta wanted = meta;
    wanted.indexes.clear();
    std::vector<uint32_t> layout{0};
    for (uint i = 0; i < table->s->keys; i++) {
        if (i == table->s->primary_key) continue;
        uint32_t tree = meta.tree_of(table->key_info[i]);
        if (!tree) return HA_ERR_INCOMPATIBLE_DEFINITION;
        trees[i] = tree;
        const TableMeta::Index& index = meta.indexes[tree - 1];
        if (index.disabled) {
            disabled_indexes |= 1ULL << i;
            if (table->key_info[i].flags & HA_NOSAME) unbuilt_unique = i;
        }
        indexes[i].set_tree(tree);
        layout.push_back(tree);
        wanted.indexes.push_back(index);
    }
    if (unbuilt_unique != MAX_KEY && !share->unbuilt_unique_told.exchange(true))
        sql_print_error("Teak: %s", unbuilt_unique_text().c_str());
    cursors.assign(1 + meta.indexes.size(), nullptr);
    windows.assign(cursors.size(), nullptr);
    describe_keys(*this);
    if (wanted.indexes.size() == meta.indexes.size() || share->altering.load()) return 0;
    return drop_other_trees(layout, wanted);
}

/* The table keeps the trees in `layout`, which are places among those that it had when it was opened: unless another
   handler has dropped the others since. */
int OpenTable::drop_other_trees(const std::vector<uint32_t>& layout, const TableMeta& wanted) {
    {
        const std::lock_guard<std::mutex> alone(share->dropping);
        if (generation == share->generation.load()) return alter_trees(layout, wanted);
    }
    close();
    return open();
}

teak_alteration OpenTable::alteration(const std::vector<uint32_t>& layout, const std::vector<uchar>& metadata,
                                      teak_tree_spec spec, bool repacks) const {
    return {bytes_of(name),
            {layout.data(), layout.size()},
            bytes_of(metadata.data(), metadata.size()),
            spec,
            repacks,
            0,
            0,
            0,
            0};
}

int OpenTable::alter_trees(const std::vector<uint32_t>& layout, const TableMeta& then) {
    const std::vector<uchar> bytes = then.encode();
    teak_alteration wanted = alteration(layout, bytes, tree_spec(table->s->option_struct), false);
    wanted.guarded = then.is_guarded();
    close();
    int error = fail(teak_tables_alter(plugin.engine, {&wanted, 1}, {}));
    share->generation++;
    int reopened = open();
    return error ? error : reopened;
}

int OpenTable::empty(const TableMeta& wanted) {
    const std::vector<uchar> bytes = wanted.encode();
    close();
    const int error = fail(teak_table_empty(plugin.engine, bytes_of(name), bytes_of(bytes.data(), bytes.size())));
    share->generation++;
    const int reopened = open();
    return error ? error : reopened;
}

uint OpenTable::index_of(uint32_t tree) const {
    for (uint i = 0; i < trees.size(); i++)
        if (i != table->s->primary_key && trees[i] == tree) return i;
    return MAX_KEY;
}

std::vector<uint32_t> OpenTable::trees_of(ulonglong of) const {
    std::vector<uint32_t> wanted;
    for (uint i = 0; i < table->s->keys; i++)
        if (of & 1ULL << i) wanted.push_back(tree_of(i));
    return wanted;
}

void OpenTable::note_columns(const std::vector<const IndexCodec*>& of, MY_BITMAP* columns) const {
    auto need = [&](const KeyCodec& key) {
        for (const KeyPartCodec& part : key.parts())
            bitmap_set_bit(columns, part.fieldnr);
    };
    need(primary.key());
    for (const IndexCodec* index : of)
        need(index->key());
}

bool OpenTable::has_cut_keys() const {
    auto is_cut = [](const KeyCodec& key) {
        return std::any_of(key.parts().begin(), key.parts().end(),
                           [](const KeyPartCodec& part) { return part.outdated; });
    };
    return is_cut(primary.key()) ||
           std::any_of(indexes.begin(), indexes.end(), [&](const IndexCodec& index) { return is_cut(index.key()); });
}

std::string OpenTable::unbuilt_unique_text() const {
    char text[512];
    my_snprintf(text, sizeof text, kUnbuiltUniqueText, table->key_info[unbuilt_unique].name.str, name.c_str());
    return text;
}

bool OpenTable::show_row(teak_bytes pk, teak_bytes row, handler* file, Buffer* blobs) {
    bool whole_rows;
    WholeRows whole(table, whole_rows);
    if (!rows.unpack(row, table->record[0], blobs, nullptr)) return false;
    if (!primary.hidden() && !primary.decode(pk, table->record[0])) return false;
    if (table->vfield) table->update_virtual_fields(file, VCOL_UPDATE_FOR_READ);
    return true;
}

teak_cursor* OpenTable::make_cursor(uint32_t tree) {
    const uint index = tree ? index_of(tree) : MAX_KEY;
    const bool unique = index != MAX_KEY && indexes[index].unique();
    teak_cursor* cursor;
    if (teak_cursor_new(core, tree, unique, &cursor) != TEAK_OK) return nullptr;
    cursors[tree] = cursor;
    windows[tree] = teak_cursor_window(cursor);
    return cursor;
}

void OpenTable::free_cursors() {
    for (teak_cursor*& cursor : cursors) {
        if (cursor) teak_cursor_free(cursor);
        cursor = nullptr;
    }
    std::fill(windows.begin(), windows.end(), nullptr);
}

} // namespace teak
