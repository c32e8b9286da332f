#include "orphan_search.h"
#include "errors.h"
#include "foreign_error.h"
#include "row_scan.h"
#include "session.h"

namespace teak {

OrphanSearch::~OrphanSearch() {
    if (owns_parent_) teak_table_close(parent_);
}

bool OrphanSearch::Side::open(const TABLE* table, const TableMeta& meta, const std::vector<std::string>& columns) {
    index = index_on(table, columns, nullptr);
    if (index == MAX_KEY) return false;
    const bool in_rows = index == table->s->primary_key;
    tree = in_rows ? 0 : meta.tree_of(table->key_info[index]);
    const uint count = static_cast<uint>(columns.size());
    return (in_rows || tree) && key.add_parts(table, &table->key_info[index], count, meta.encoding) &&
           owner.init(table, index, count, meta);
}

int OrphanSearch::open(THD* thd, const TABLE* child, teak_table* table, const TableMeta& meta) {
    thd_ = thd;
    child_ = child;
    child_table_ = table;
    if (!mine_.open(child, meta, key_.columns)) return HA_ERR_UNSUPPORTED;
    if (key_.is_of_itself()) {
        parent_ = table;
        return open_parent(child, meta);
    }
    if (int error = hold_definition(thd, key_.parent)) return error;
    OtherDefinition definition(thd, key_.parent);
    if (!definition.table()) return 0;
    const teak_status status = teak_table_open(plugin.engine, bytes_of(key_.parent.c_str()), &parent_);
    if (status == TEAK_NO_TABLE) return 0;
    if (status != TEAK_OK) return error_code(status, thd);
    owns_parent_ = true;
    TableMeta theirs;
    return theirs.parse(teak_table_meta(parent_)) ? open_parent(definition.table(), theirs) : HA_ERR_TABLE_DEF_CHANGED;
}

int OrphanSearch::open_parent(const TABLE* definition, const TableMeta& meta) {
    if (theirs_.open(definition, meta, key_.parent_columns) && meta.encoding != KeyEncoding::CutWeights &&
        differing_column(child_, mine_.index, definition, theirs_.index, key_.columns.size()) == SIZE_MAX)
        return 0;
    if (owns_parent_) teak_table_close(parent_);
    owns_parent_ = false;
    parent_ = nullptr;
    return 0;
}

int OrphanSearch::run(teak_session* session, View view, size_t wanted, ulonglong expected) {
    wanted_ = wanted;
    expected_ = expected;
    if (!parent_) return HA_ERR_NO_SUCH_TABLE;
    const teak_relatives functions{named, orphan, watch};
    const teak_reading of_child = mine_.owner.reading(true);
    const teak_reading of_parent = theirs_.owner.reading(theirs_.owner.behind().empty());
    return error_code(teak_find_orphans(session, child_table_, mine_.tree, &of_child, parent_, theirs_.tree, &of_parent,
                                        view == Latest, &functions, this),
                      thd_);
}

teak_named OrphanSearch::name_of(teak_bytes entry_key) {
    const uchar *at = entry_key.data, *const end = at + entry_key.len;
    bool is_none = false;
    named_.clear();
    for (size_t i = 0; i < mine_.key.parts().size(); i++) {
        const KeyPartCodec &mine = mine_.key.parts()[i], &theirs = theirs_.key.parts()[i];
        const uchar* const next = KeyCodec::skip_part(mine, at, end);
        if (!next) return {{nullptr, 0}, 0};
        const uchar flip = mine.descending == theirs.descending ? 0 : 0xff;
        if (mine.null_mask) {
            is_none |= *at == (mine.descending ? 0xff : 0);
            at++;
        }
        if (theirs.null_mask) named_.push_back(theirs.descending ? static_cast<uchar>(~1) : 1);
        for (; at < next; at++)
            named_.push_back(*at ^ flip);
    }
    named_.insert(named_.end(), theirs_.owner.behind().begin(), theirs_.owner.behind().end());
    const size_t bytes = static_cast<size_t>(at - entry_key.data);
    return {bytes_of(named_.data(), is_none ? 0 : named_.size()), bytes};
}

teak_named OrphanSearch::named(void* context, teak_bytes entry_key) {
    return static_cast<OrphanSearch*>(context)->name_of(entry_key);
}

int OrphanSearch::orphan(void* context, teak_entry_view entry) {
    auto* search = static_cast<OrphanSearch*>(context);
    search->found_.push_back(search->describe(entry));
    return search->found_.size() < search->wanted_;
}

int OrphanSearch::watch(void* context, uint64_t entries) {
    const auto* search = static_cast<OrphanSearch*>(context);
    Progress progress{search->thd_, search->expected_};
    return Progress::report(&progress, entries);
}

/* The columns of the key, and of the primary key, with their values. */
std::string OrphanSearch::describe(const teak_entry_view& entry) {
    uchar* const record = child_->record[0];
    memset(record, 0, child_->s->reclength);
    if (!mine_.owner.restore(entry, record)) return "a row that cannot be read";
    auto* const table = const_cast<TABLE*>(child_);
    MY_BITMAP* const before = tmp_use_all_columns(table, &table->read_set);
    std::string columns, values;
    for (const std::string& column : key_.columns) {
        Field* const field = column_named(child_, column);
        const std::string comma = columns.empty() ? "" : ", ";
        columns += comma + quoted(thd_, {column.data(), column.size()});
        if (field) values += comma + readable_value(field);
    }
    std::string text = "(" + columns + ") = (" + values + ")";
    if (child_->s->primary_key != MAX_KEY) {
        const KEY& key = child_->key_info[child_->s->primary_key];
        for (uint i = 0; i < key.user_defined_key_parts; i++) {
            Field* const field = child_->field[key.key_part[i].fieldnr - 1];
            text += (i ? ", " : " in the row ") + quoted(thd_, field->field_name) + " = " + readable_value(field);
        }
    }
    tmp_restore_column_map(&table->read_set, before);
    return text;
}

} // namespace teak
