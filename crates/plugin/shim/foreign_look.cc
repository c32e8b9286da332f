#include "foreign_look.h"
#include "server_version.h"
#include "errors.h"
#include "session.h"
#include <algorithm>

namespace teak {
namespace {

bool is_fit(const TABLE* table, const KEY& key, const std::vector<std::string>& columns) {
    if (is_special(key) || key.algorithm == HA_KEY_ALG_LONG_HASH || key.user_defined_key_parts < columns.size())
        return false;
    for (size_t i = 0; i < columns.size(); i++) {
        const KEY_PART_INFO& part = key.key_part[i];
        const char* const name = table->field[part.fieldnr - 1]->field_name.str;
        if (!is_whole(table, part) || !is_same_name(name, columns[i].c_str())) return false;
    }
    return true;
}

/* Whether no two rows that have not ended have the same values in the first columns of the key. */
bool is_unique(const TABLE* table, const KEY& key, size_t columns) {
    return key.flags & HA_NOSAME && key.user_defined_key_parts == columns + has_end_behind(table, key, columns);
}

/* Whether the plain encodings of equal values are equal. */
bool same_encoding(const KeyPartCodec& a, const Field* field_a, const KeyPartCodec& b, const Field* field_b) {
    if (a.kind != b.kind || a.outdated || b.outdated) return false;
    switch (a.kind) {
    case PartKind::Integer:
    case PartKind::Float:
        return a.is_signed == b.is_signed && a.length == b.length &&
               (field_a->real_type() == field_b->real_type() || (holds_number(field_a) && holds_number(field_b)));
    case PartKind::Raw:
        if (a.length == b.length && holds_number(field_a) && holds_number(field_b)) return true;
        return a.length == b.length && field_a->real_type() == field_b->real_type() &&
               field_a->type_handler() == field_b->type_handler() && field_a->decimals() == field_b->decimals();
    case PartKind::Binary:
        return true;
    case PartKind::String:
        if (a.charset != b.charset || a.unit != b.unit || a.levels != b.levels || a.pad_space != b.pad_space)
            return false;
        for (uint i = 0; i < a.levels; i++)
            if (a.level[i].padded != b.level[i].padded || a.level[i].flags != b.level[i].flags) return false;
        return true;
    case PartKind::Weights:
        return false;
    }
    return false;
}

/* The key that the columns would make, of a table that has no index of them. */
class MadeKey {
  public:
    /* nullptr: there are no such columns. */
    const KEY* of(const TABLE* table, const std::vector<std::string>& columns) {
        for (const std::string& name : columns) {
            Field* const field = column_named(table, name);
            if (!field || field->flags & BLOB_FLAG) return nullptr;
            KEY_PART_INFO part{};
            part.field = field;
            part.fieldnr = static_cast<uint16>(field->field_index + 1);
            part.length = static_cast<uint16>(field->key_length());
            parts_.push_back(part);
        }
        key_.key_part = parts_.data();
        key_.user_defined_key_parts = static_cast<uint>(parts_.size());
        return &key_;
    }

  private:
    KEY key_{};
    std::vector<KEY_PART_INFO> parts_;
};

/* The lock of hold_definition(). */
struct DefinitionHold {
    explicit DefinitionHold(const std::string& core_name) : name(core_name) {
        MDL_REQUEST_INIT(&request, MDL_key::TABLE, name.db().str, name.table().str, MDL_SHARED_HIGH_PRIO,
                         MDL_STATEMENT);
    }
    const TableName name;
    MDL_request request;
};

} // namespace

bool holds_number(const Field* field) {
    switch (field->real_type()) {
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        return true;
    default:
        return is_integer(field->real_type());
    }
}

OtherDefinition::OtherDefinition(THD* thd, const std::string& core_name) {
    const TableName name(core_name);
    const LEX_CSTRING db = name.db(), table = name.table();
    TABLE_LIST list;
    list.init_one_table(&db, &table, nullptr, TL_READ);
    Dummy_error_handler silent;
    thd->push_internal_handler(&silent);
    share_ = tdc_acquire_share(thd, &list, GTS_TABLE);
    if (share_ && share_->db_type() == plugin.hton)
        open_ = open_table_from_share(thd, share_, &table, 0, 0, 0, &table_, false) == OPEN_FRM_OK;
    thd->pop_internal_handler();
}

OtherDefinition::~OtherDefinition() {
    if (open_) closefrm(&table_);
    if (share_) tdc_release_share(share_);
}

int hold_definition(THD* thd, const std::string& core_name) {
    DefinitionHold hold(core_name);
    return acquire_definition(thd, &hold.request);
}

int acquire_definition(THD* thd, MDL_request* request) {
    if (!thd->mdl_context.acquire_lock(request, static_cast<double>(thd->variables.lock_wait_timeout))) return 0;
    if (thd->killed) return HA_ERR_ABORTED_BY_USER;
    if (!thd->is_error() || thd->get_stmt_da()->sql_errno() != ER_LOCK_DEADLOCK) return HA_ERR_LOCK_WAIT_TIMEOUT;
    thd->mark_transaction_to_rollback(true);
    return HA_ERR_LOCK_DEADLOCK;
}

uint index_on(const TABLE* table, const std::vector<std::string>& columns, const TableMeta* meta) {
    uint found = MAX_KEY;
    bool found_unique = false;
    for (uint i = 0; i < table->s->keys; i++) {
        const KEY& key = table->key_info[i];
        if (!is_fit(table, key, columns)) continue;
        if (i == table->s->primary_key) return i;
        const uint32_t tree = meta ? meta->tree_of(key) : 0;
        if (meta && (!tree || meta->indexes[tree - 1].disabled)) continue;
        const bool unique = key.flags & HA_NOSAME && key.user_defined_key_parts == columns.size();
        if (found != MAX_KEY && (found_unique || !unique)) continue;
        found = i;
        found_unique = unique;
    }
    return found;
}

size_t differing_column(const TABLE* a, uint index_a, const TABLE* b, uint index_b, size_t columns) {
    return differing_column(a, &a->key_info[index_a], b, &b->key_info[index_b], columns);
}

size_t differing_column(const TABLE* a, const KEY* key_a, const TABLE* b, const KEY* key_b, size_t columns) {
    KeyCodec codec_a, codec_b;
    const uint count = static_cast<uint>(columns);
    if (!codec_a.add_parts(a, key_a, count, kNewestKeys) || !codec_b.add_parts(b, key_b, count, kNewestKeys)) return 0;
    for (uint i = 0; i < count; i++)
        if (!same_encoding(codec_a.parts()[i], key_a->key_part[i].field, codec_b.parts()[i], key_b->key_part[i].field))
            return i;
    return SIZE_MAX;
}

int ForeignLook::open(THD* thd, const TABLE* mine) {
    const std::vector<std::string>& my_columns = at_parent_ ? key_.columns : key_.parent_columns;
    my_index_ = index_on(mine, my_columns, nullptr);
    /* A child that has lost its index (without checks) has its parents all the same. */
    MadeKey made;
    const KEY* key = my_index_ != MAX_KEY ? &mine->key_info[my_index_] : nullptr;
    if (!key && at_parent_) key = made.of(mine, my_columns);
    if (!key) return 0;
    KeyCodec own_key;
    if (!own_key.add_parts(mine, key, static_cast<uint>(my_columns.size()), kNewestKeys) || !end_.init(mine))
        return HA_ERR_UNSUPPORTED;
    columns_ = own_key.parts();
    is_shared_ = !at_parent_ && !is_unique(mine, *key, my_columns.size());
    OtherDefinition definition(thd, other_name());
    return definition.table() ? open_other(thd, mine, key, definition.table()) : 0;
}

int ForeignLook::open_other(THD* thd, const TABLE* mine, const KEY* my_key, TABLE* theirs) {
    const std::vector<std::string>& their_columns = at_parent_ ? key_.parent_columns : key_.columns;
    teak_table* opened = nullptr;
    const teak_status status = teak_table_open(plugin.engine, bytes_of(other_name().c_str()), &opened);
    if (status == TEAK_NO_TABLE) return 0;
    if (status != TEAK_OK) return error_code(status, thd);
    const std::unique_ptr<teak_table, void (*)(teak_table*)> closed(opened, teak_table_close);
    const teak_table* const other = opened;
    TableMeta meta;
    const bool readable = meta.parse(teak_table_meta(other)) && teak_table_trees(other) == 1 + meta.indexes.size();
    const uint their_index = readable ? index_on(theirs, their_columns, &meta) : MAX_KEY;
    if (their_index == MAX_KEY || meta.encoding == KeyEncoding::CutWeights ||
        differing_column(mine, my_key, theirs, &theirs->key_info[their_index], their_columns.size()) != SIZE_MAX)
        return 0;
    const uint count = static_cast<uint>(their_columns.size());
    const bool in_rows = their_index == theirs->s->primary_key;
    KeyCodec their_key;
    if (!their_key.add_parts(theirs, &theirs->key_info[their_index], count, meta.encoding) ||
        !theirs_.init(theirs, their_index, count, meta))
        return HA_ERR_UNSUPPORTED;
    for (uint i = 0; i < count; i++) {
        KeyPartCodec part = columns_[i];
        part.max_size -= part.null_mask ? 1 : 0;
        part.null_mask = 0;
        part.descending = false;
        plain_.emplace_back();
        plain_.back().add_part(part);
        plain_.back().finish();
        shapes_.push_back({their_key.parts()[i].null_mask != 0, their_key.parts()[i].descending});
        max_size_ += 1 + part.max_size;
    }
    max_size_ += theirs_.behind().size();
    tree_ = in_rows ? 0 : meta.tree_of(theirs->key_info[their_index]);
    const uint known = count + (theirs_.behind().empty() ? 0 : 1);
    is_row_ = in_rows && known == theirs->key_info[their_index].user_defined_key_parts;
    other_ = teak_target_new(other);
    return other_ ? 0 : HA_ERR_INTERNAL_ERROR;
}

int ForeignLook::hold(THD* thd, const teak_session* session) const {
    DefinitionHold hold(other_name());
    if (is_open() && thd->mdl_context.try_acquire_lock(&hold.request)) return HA_ERR_OUT_OF_MEM;
    if (hold.request.ticket || teak_txn_is_awaited(session, other_)) return 0;
    return acquire_definition(thd, &hold.request);
}

bool ForeignLook::names_none(const uchar* record) const {
    if (end_.is_history(record)) return true;
    for (const KeyPartCodec& part : columns_)
        if (part.is_null(record)) return true;
    return false;
}

bool ForeignLook::differs(const uchar* a, const uchar* b) const {
    for (const KeyPartCodec& part : columns_)
        if (part.differs(a, b)) return true;
    return false;
}

teak_bytes ForeignLook::key_of(const uchar* record) {
    uchar* const key = key_bytes_.room(max_size_);
    if (!key) return {nullptr, 0};
    uchar* at = key;
    for (size_t i = 0; i < plain_.size(); i++) {
        uchar* const from = at;
        if (shapes_[i].marked) *at++ = 1; /* a value, not NULL */
        at = plain_[i].encode_record(at, record, 1);
        if (!shapes_[i].descending) continue;
        for (uchar* byte = from; byte < at; byte++)
            *byte = static_cast<uchar>(~*byte);
    }
    at = std::copy(theirs_.behind().begin(), theirs_.behind().end(), at);
    return bytes_of(key, static_cast<size_t>(at - key));
}

teak_status ForeignLook::look(teak_session* session, const uchar* record, bool waits, teak_bytes except, bool* found) {
    const teak_bytes key = key_of(record);
    if (!key.data) return TEAK_OUT_OF_MEMORY;
    teak_found there{};
    const teak_reading reading = theirs_.reading(theirs_.behind().empty());
    /* New children have to wait for the row that is looked from, if it is the only one with its key; a missing parent
       waits for nobody. */
    const uint32_t how = flags() | (waits ? 0 : TEAK_LOOK_NO_WAIT);
    const teak_status status = teak_look(session, other_, tree_, key, {nullptr, 0}, except, how, 1, &reading, &there);
    *found = there.entry.len != 0;
    return status;
}

teak_status ForeignLook::next(teak_session* session, const uchar* record, size_t most, std::vector<uchar>* entry,
                              std::vector<std::vector<uchar>>* rows) {
    rows->clear();
    const teak_bytes key = key_of(record);
    if (!key.data) return TEAK_OUT_OF_MEMORY;
    teak_found there{};
    const teak_reading reading = theirs_.reading(theirs_.behind().empty());
    teak_status status = teak_look(session, other_, tree_, key, bytes_of(entry->data(), entry->size()), {nullptr, 0},
                                   flags() | TEAK_LOOK_TO_CHANGE, most, &reading, &there);
    for (size_t i = 0; status == TEAK_OK && i < there.count; i++) {
        status = teak_look_found(session, i, &there);
        rows->emplace_back(there.row.data, there.row.data + there.row.len);
    }
    if (status != TEAK_OK) return status;
    if (rows->empty()) return TEAK_NOT_FOUND;
    entry->assign(there.entry.data, there.entry.data + there.entry.len);
    return TEAK_OK;
}

} // namespace teak
