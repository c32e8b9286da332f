#include "rebuild.h"
#include "errors.h"
#include "ha_teak.h"
#include "layout_maker.h"

namespace teak {
namespace {

/* A name for a table that nobody sees. teak_tables_drop_temporary knows what it begins with. */
std::string passing_name(THD* thd) {
    static std::atomic<uint64_t> number{0};
    return "#rebuild/#sql-" + std::to_string(thd_get_thread_id(thd)) + "-" + std::to_string(++number);
}

bool has_virtual(const KEY& key) {
    for (uint part = 0; part < key.user_defined_key_parts; part++)
        if (!key.key_part[part].field->stored_in_db()) return true;
    return false;
}

} // namespace

Rebuild::~Rebuild() {
    close();
    if (!name_.empty() && teak_table_discard(plugin.engine, bytes_of(name_.c_str())) != TEAK_OK)
        log_last_error("gave up a table that an ALTER TABLE was filling");
}

bool Rebuild::init(const TABLE* now, TABLE* altered, List<Create_field>& columns) {
    altered_ = altered;
    const uint primary_key = altered->s->primary_key;
    if (!primary_.init(altered, kNewestKeys) || !rows_.init(altered, primary_.restored_columns(), RowLayouts()))
        return false;
    keys_.push_back(primary_.hidden() ? nullptr : &altered->key_info[primary_key]);
    indexes_.reserve(altered->s->keys);
    for (uint i = 0; i < altered->s->keys; i++) {
        if (i == primary_key) continue;
        computes_ |= has_virtual(altered->key_info[i]);
        keys_.push_back(&altered->key_info[i]);
        indexes_.emplace_back();
        if (!indexes_.back().init(altered, i, &primary_)) return false;
    }
    uint number = 0;
    for (const Create_field& column : columns)
        if (const Field* const after = altered->field[number++];
            column.field && !column.field->stored_in_db() && is_in_index(altered, after))
            keyed_.push_back(column.field);
    keyed_.push_back(nullptr);
    metadata_ = TableMeta(altered).encode();
    return converter_.init(now, altered, columns, computes_, &fields_);
}

int Rebuild::begin(THD* thd, teak_table* table) {
    const std::string name = passing_name(thd);
    std::vector<uint32_t> trees;
    for (uint32_t tree = 0; tree < keys_.size(); tree++)
        trees.push_back(tree);
    teak_status status = create_table(altered_->s->option_struct, bytes_of(name.c_str()), keys_.size(),
                                      bytes_of(metadata_.data(), metadata_.size()), {});
    if (status == TEAK_OK) {
        name_ = name;
        status = teak_table_open(plugin.engine, bytes_of(name_.c_str()), &into_);
    }
    return status == TEAK_OK ? build.begin(thd, table, into_, trees) : error_code(status, thd);
}

void Rebuild::close() {
    build.end();
    teak_table_close(into_);
    into_ = nullptr;
}

bool Rebuild::convert(const uchar* record) {
    return converter_.convert(record, altered_->record[0]) && fields_.convert(altered_);
}

bool Rebuild::restore_duplicate(const TABLE* altered, KEY** key) {
    uint part;
    const teak_entry_view entry = build.duplicate(&part);
    uchar* const record = altered->record[0];
    memset(record, 0, altered->s->reclength);
    *key = keys_[part];
    if (part) return indexes_[part - 1].restore(entry, record);
    return rows_.unpack(entry.value, record, &blobs_, nullptr) && primary_.decode(entry.key, record);
}

RowMaker::RowMaker(Rebuild* rebuild, const RowSource& source)
    : rebuild_(rebuild), source_(source), primary_(rebuild->primary_), indexes_(rebuild->indexes_), thread_ready_(true),
      own_thread_(my_thread_var == nullptr) {
    if (own_thread_) thread_ready_ = my_thread_init() == 0;
}

RowMaker::~RowMaker() {
    if (own_thread_ && thread_ready_) my_thread_end();
}

bool RowMaker::ready() {
    return thread_ready_ && before_.room(source_.table->s->rec_buff_length) &&
           after_.room(rebuild_->altered_->s->rec_buff_length) && pk_.room(primary_.max_size());
}

teak_status RowMaker::take(teak_feed* feed, teak_bytes pk, teak_bytes row) {
    TABLE* const table = source_.table;
    uchar* const before = rebuild_->is_by_session() ? table->record[0] : before_.data();
    if (!source_.rows->unpack(row, before, &blobs_, nullptr)) return TEAK_CORRUPT;
    if (pk.len > source_.primary->max_size()) return TEAK_CORRUPT;
    if (!source_.primary->hidden() && !source_.primary->decode(pk, before)) return TEAK_CORRUPT;
    if (rebuild_->computes_ && !compute_columns(table, &rebuild_->keyed_)) return TEAK_INTERRUPTED;
    FieldConverter& fields = rebuild_->fields_;
    uchar* const after = fields.empty() ? after_.data() : rebuild_->altered_->record[0];
    if (!rebuild_->converter_.convert(before, after)) {
        rebuild_->met_null_.store(true);
        return TEAK_INTERRUPTED;
    }
    /* Rows of the first snapshot come once, in the order of their keys, as to a copy. */
    if (!fields.empty() &&
        !(rebuild_->build.is_filled() ? fields.try_convert(rebuild_->altered_) : fields.convert(rebuild_->altered_)))
        return TEAK_INTERRUPTED;
    if (!primary_.hidden()) pk = {pk_.data(), primary_.encode(pk_.data(), after)};
    return add(feed, pk, after);
}

teak_status RowMaker::add(teak_feed* feed, teak_bytes pk, const uchar* record) {
    const RowCodec& rows = rebuild_->rows_;
    uchar* const to = row_.room(rows.packed_size(record));
    if (!to) return TEAK_OUT_OF_MEMORY;
    if (teak_status status = teak_feed_add(feed, 0, pk, {to, rows.pack(to, record)})) return status;
    for (uint32_t i = 0; i < indexes_.size(); i++) {
        teak_entry entry;
        if (!indexes_[i].encode(record, pk, &key_, &value_, &entry)) return TEAK_OUT_OF_MEMORY;
        if (teak_status status = teak_feed_add(feed, 1 + i, entry.key, entry.value)) return status;
    }
    return TEAK_OK;
}

void* RebuildScan::begin(void* context) {
    const auto* scan = static_cast<const RebuildScan*>(context);
    auto* maker = new (std::nothrow) RowMaker(scan->rebuild, scan->source);
    if (maker && !maker->ready()) {
        delete maker;
        return nullptr;
    }
    return maker;
}

} // namespace teak
