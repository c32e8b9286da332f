/*
  Tables: create, open, drop, rename, truncate, and what the optimizer asks about them.
*/
#include "ha_teak.h"
#include <algorithm>
#include <cmath>

using namespace teak;

namespace {

constexpr size_t kSampledLeaves = 20;
constexpr double kPageBytes = 16384;    /* what the optimizer's costs are calibrated for */
constexpr double kBlockBytes = 32768;   /* a leaf, unless the table says otherwise */
constexpr uint64_t kLeavesThatTell = 8; /* fewer say little about how large the rows are */
constexpr const char* kPartitionSeparator =
    "#P#";                          /* between a table's name and that of its partition, as the server writes it */
constexpr uint kHiddenKeyBytes = 6; /* of a hidden primary key, as the optimizer knows it from InnoDB */

uint secondary_keys(const TABLE* table) { return table->s->keys - (table->s->primary_key == MAX_KEY ? 0 : 1); }

/* Rows per distinct prefix of 1..n parts, from a sample of a tree's keys. */
std::vector<double> prefix_frequencies(const KeyCodec& codec, const teak_sample& sample, double rows, bool whole) {
    size_t parts = codec.parts().size();
    std::vector<double> distinct(parts, 0);
    double pairs = 0;
    size_t leaf = 0;
    for (size_t i = 0; i < sample.n_keys; i++) {
        bool first_of_leaf = i == 0;
        while (leaf < sample.n_leaves && i >= sample.leaf_ends[leaf]) {
            leaf++;
            first_of_leaf |= !whole;
        }
        if (first_of_leaf) continue;
        const teak_bytes &a = sample.keys[i - 1], &b = sample.keys[i];
        const uchar *p = a.data, *q = b.data;
        pairs++;
        size_t part = 0;
        for (; part < parts; part++) {
            const uchar* p_end = KeyCodec::skip_part(codec.parts()[part], p, a.data + a.len);
            const uchar* q_end = KeyCodec::skip_part(codec.parts()[part], q, b.data + b.len);
            if (!p_end || !q_end) break;
            if (p_end - p != q_end - q || memcmp(p, q, static_cast<size_t>(p_end - p)) != 0) break;
            p = p_end;
            q = q_end;
        }
        for (; part < parts; part++)
            distinct[part]++;
    }
    std::vector<double> result(parts, 1);
    for (size_t part = 0; part < parts; part++) {
        double n = rows;
        if (whole)
            n = rows / (distinct[part] + 1);
        else if (distinct[part] > 0)
            n = pairs / distinct[part];
        else /* each sampled leaf holds one value: at least the leaves' first keys may differ */
            n = rows / static_cast<double>(std::max<size_t>(sample.n_leaves, 1));
        result[part] = std::max(n, 1.0);
    }
    return result;
}

/* Options that would mean nothing here are refused where InnoDB refuses them (innodb_strict_mode, its default), with its messages. */
int check_create_options(THD* thd, const HA_CREATE_INFO* info) {
    const char* refused = nullptr;
    if ((info->used_fields & HA_CREATE_USED_ROW_FORMAT) &&
        (info->row_type == ROW_TYPE_FIXED || info->row_type == ROW_TYPE_PAGE))
        refused = "ROW_TYPE";
    else if (info->index_file_name)
        refused = "INDEX DIRECTORY";
    if (!refused) {
        /* Where a table's file is cannot be chosen. */
        if (info->data_file_name && thd)
            push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                                ER_THD(thd, WARN_OPTION_IGNORED), "DATA DIRECTORY");
        return 0;
    }
    if (thd && thd_sql_command(thd) == SQLCOM_ALTER_TABLE)
        my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", refused);
    else if (thd)
        push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                            ER_THD(thd, ER_ILLEGAL_HA_CREATE_OPTION), "Teak", refused);
    return HA_WRONG_CREATE_OPTION;
}

/* Made by CREATE TEMPORARY TABLE. Names of other tables are encoded and have no '#' of their own. */
bool is_temporary(const char* path) { return strstr(path, "#sql-temptable-") != nullptr; }

/* Foreign keys are not checked: who writes one should know. */
int check_foreign_keys(THD* thd, const HA_CREATE_INFO* info) {
    if (!thd || !info->alter_info) return 0;
    List_iterator_fast<Key> keys(info->alter_info->key_list);
    while (Key* key = keys++) {
        if (key->type != Key::FOREIGN_KEY || key->old) continue;
        if (refuses_foreign_keys(thd)) {
            my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", "FOREIGN KEY");
            return HA_WRONG_CREATE_OPTION;
        }
        push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                            ER_THD(thd, ER_ILLEGAL_HA_CREATE_OPTION), "Teak", "FOREIGN KEY");
    }
    return 0;
}

} // namespace

namespace teak {

teak_tree_spec tree_spec(const ha_table_option_struct* options) {
    static const uint16_t compressions[] = {TEAK_COMPRESSION_ZSTD, TEAK_COMPRESSION_LZ4, TEAK_COMPRESSION_NONE};
    if (!options) return {0, TEAK_COMPRESSION_ZSTD, 0};
    return {static_cast<uint32_t>(options->block_size), compressions[options->compression % 3],
            static_cast<uint16_t>(options->compression_level)};
}

handler* create_handler(handlerton* hton, TABLE_SHARE* share, MEM_ROOT* root) {
    return new (root) ha_teak(hton, share);
}

int drop_table_by_path(handlerton*, const char* path) {
    THD* thd = current_thd;
    const teak_bytes name = table_name(path);
    teak_status status;
    if (is_temporary(path))
        status = teak_table_discard(plugin.engine, name);
    else {
        if (thd)
            if (int error = wait_for_prepared(thd, name)) return error;
        status = teak_table_drop(plugin.engine, name);
    }
    if (status == TEAK_NO_TABLE) return ENOENT;
    return error_code(status, thd);
}

/*
  Asked by the server's DDL recovery whether an ALTER in place, which was to end with the definition `version`, was committed: 0 says yes.
  Of a partitioned table it knows the path only, and not the create_id that other engines go by.
*/
int check_version(handlerton*, const char* path, const LEX_CUSTRING* version, ulonglong) {
    struct Question {
        const LEX_CUSTRING* version;
        size_t tables, committed;
        static void look(void* context, teak_bytes bytes) {
            auto* question = static_cast<Question*>(context);
            TableMeta meta;
            question->tables++;
            question->committed += meta.parse(bytes) && meta.has_definition(*question->version);
        }
    } question{version, 0, 0};
    const std::string parts = std::string(path) + kPartitionSeparator;
    if (teak_tables_meta(plugin.engine, table_name(path), table_name(parts.c_str()), Question::look, &question) !=
        TEAK_OK) {
        log_last_error("asked whether an ALTER TABLE was committed");
        return 1;
    }
    return question.tables > 0 && question.committed == question.tables ? 0 : 1;
}

} // namespace teak

ha_teak::ha_teak(handlerton* hton, TABLE_SHARE* table_share) : handler(hton, table_share) {
    thr_lock_data_init(nullptr, &lock_, nullptr);
}

ha_teak::~ha_teak() { close_table(); }

handler::Table_flags ha_teak::table_flags() const {
    Table_flags flags = HA_PRIMARY_KEY_IN_READ_INDEX | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
                        HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_CAN_SQL_HANDLER |
                        HA_BINLOG_ROW_CAPABLE | HA_PARTIAL_COLUMN_READ | HA_TABLE_SCAN_ON_INDEX | HA_CAN_GEOMETRY |
                        HA_CAN_VIRTUAL_COLUMNS | HA_CAN_ONLINE_BACKUPS | HA_CRASH_SAFE | HA_ONLINE_ANALYZE |
                        HA_CONCURRENT_OPTIMIZE | HA_CAN_REPAIR | HA_CAN_SKIP_LOCKED | HA_CAN_TABLES_WITHOUT_ROLLBACK;
    THD* thd = ha_thd();
    if (thd && thd_tx_isolation(thd) > ISO_READ_COMMITTED) flags |= HA_BINLOG_STMT_CAPABLE;
    return flags;
}

ulong ha_teak::index_flags(uint index, uint, bool) const {
    ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_DO_INDEX_COND_PUSHDOWN |
                  HA_DO_RANGE_FILTER_PUSHDOWN | HA_KEYREAD_ONLY;
    /* Whether a column is whole in the index, and not a BLOB, the server checks itself. */
    return flags | (index == table_share->primary_key ? HA_CLUSTERED_INDEX : 0);
}

TableShare* ha_teak::shared() {
    lock_shared_ha_data();
    auto* share = static_cast<TableShare*>(get_ha_share_ptr());
    if (!share) {
        share = new (std::nothrow) TableShare;
        if (share) set_ha_share_ptr(share);
    }
    unlock_shared_ha_data();
    return share;
}

int ha_teak::open_core_table() {
    table_generation_ = share_->generation.load();
    teak_status status =
        teak_table_open(plugin.engine, bytes_of(reinterpret_cast<const uchar*>(name_.data()), name_.size()), &table_);
    if (status != TEAK_OK) return error_code(status, ha_thd());
    if (temporary_) teak_table_show_to_older_snapshots(table_);
    if (meta_.parse(teak_table_meta(table_)) && teak_table_trees(table_) == 1 + meta_.indexes.size()) return 0;
    close_table();
    return HA_ERR_TABLE_DEF_CHANGED;
}

int ha_teak::open_table() {
    int error = open_core_table();
    if (!error) error = map_trees();
    if (error) close_table();
    return error;
}

/* What is made of the table's definition: how its keys and rows are laid over trees. */
int ha_teak::make_codecs() {
    if (!primary_.init(table, meta_.encoding)) return HA_ERR_UNSUPPORTED;
    rows_.init(table, primary_.restored_columns());
    indexes_.clear();
    indexes_.resize(table->s->keys);
    entry_buffers_.clear();
    for (uint i = 0; i < table->s->keys; i++) {
        entry_buffers_.emplace_back(new EntryBuffers);
        if (i != table->s->primary_key && !indexes_[i].init(table, i, &primary_)) return HA_ERR_UNSUPPORTED;
    }
    old_entries_.resize(table->s->keys);
    new_entries_.resize(table->s->keys);
    current_pk_.resize(primary_.max_size());
    pk_scratch_.resize(primary_.max_size());
    return 0;
}

/* Finds each index's tree. Trees that no index has are left from an ALTER: of an index that was dropped, or that was to be added when the
   server was killed. */
int ha_teak::map_trees() {
    trees_.assign(table->s->keys, 0);
    disabled_indexes_ = 0;
    unbuilt_unique_ = MAX_KEY;
    TableMeta wanted = meta_;
    wanted.indexes.clear();
    std::vector<uint32_t> layout{0};
    for (uint i = 0; i < table->s->keys; i++) {
        if (i == table->s->primary_key) continue;
        uint32_t tree = meta_.tree_of(table->key_info[i]);
        if (!tree) return HA_ERR_TABLE_DEF_CHANGED;
        trees_[i] = tree;
        const TableMeta::Index& index = meta_.indexes[tree - 1];
        if (index.disabled) {
            disabled_indexes_ |= 1ULL << i;
            if (table->key_info[i].flags & HA_NOSAME) unbuilt_unique_ = i;
        }
        indexes_[i].set_tree(tree);
        layout.push_back(tree);
        wanted.indexes.push_back(index);
    }
    if (unbuilt_unique_ != MAX_KEY && !share_->unbuilt_unique_told.exchange(true))
        sql_print_error("Teak: %s", unbuilt_unique_text().c_str());
    cursors_.assign(1 + meta_.indexes.size(), nullptr);
    if (wanted.indexes.size() == meta_.indexes.size() || share_->altering.load()) return 0;
    return alter_trees(layout, wanted);
}

std::string ha_teak::unbuilt_unique_text() const {
    char text[512];
    my_snprintf(text, sizeof text, kUnbuiltUniqueText, table->key_info[unbuilt_unique_].name.str, name_.c_str());
    return text;
}

bool ha_teak::get_error_message(int error, String* text) {
    if (error != kUnbuiltUnique || unbuilt_unique_ == MAX_KEY) return own_error_text(error, text);
    const std::string told = unbuilt_unique_text();
    text->copy(told.data(), static_cast<uint32>(told.size()), system_charset_info);
    return false; /* trying again is of no use */
}

uint ha_teak::index_of(uint32_t tree) const {
    for (uint i = 0; i < trees_.size(); i++)
        if (i != table->s->primary_key && trees_[i] == tree) return i;
    return MAX_KEY;
}

void ha_teak::close_table() {
    free_cursors();
    teak_table_close(table_);
    table_ = nullptr;
}

int ha_teak::open(const char* name, int, uint) {
    if (!(share_ = shared())) return HA_ERR_OUT_OF_MEM;
    teak_bytes core_name = table_name(name);
    name_.assign(reinterpret_cast<const char*>(core_name.data), core_name.len);
    temporary_ = table->s->tmp_table != NO_TMP_TABLE;
    int error = open_core_table();
    if (!error) error = make_codecs();
    if (!error) error = map_trees();
    if (error) {
        close_table();
        return error;
    }
    key_used_on_scan = table->s->primary_key; /* an UPDATE of it must not meet its own rows again */
    ref_length = static_cast<uint>(primary_.max_size() + 2);
    info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
    return 0;
}

int ha_teak::close() {
    close_table();
    session_ = nullptr;
    return 0;
}

int ha_teak::create(const char* name, TABLE* form, HA_CREATE_INFO* info) {
    THD* thd = ha_thd();
    if (int error = check_create_options(thd, info)) return error;
    if (int error = check_foreign_keys(thd, info)) return error;
    PrimaryCodec primary;
    if (!primary.init(form, KeyEncoding::AllWeights)) return HA_ERR_UNSUPPORTED;
    for (uint i = 0; i < form->s->keys; i++) {
        IndexCodec index;
        if (i != form->s->primary_key && !index.init(form, i, &primary)) return HA_ERR_UNSUPPORTED;
    }
    std::vector<teak_tree_spec> trees(1 + secondary_keys(form), tree_spec(info->option_struct));
    teak_bytes core_name = table_name(name);
    const std::vector<uchar> meta = TableMeta(form).encode();
    teak_status status =
        teak_table_create(plugin.engine, core_name, trees.data(), trees.size(), bytes_of(meta.data(), meta.size()));
    if (status != TEAK_OK) return error_code(status, thd);
    if (Session* session = thd ? session_of(thd) : nullptr)
        session->makes(thd->query_id, {reinterpret_cast<const char*>(core_name.data), core_name.len});
    if (info->auto_increment_value > 1 && form->s->found_next_number_field) {
        teak_session* session = nullptr;
        teak_table* created = nullptr;
        status = teak_session_new(plugin.engine, thd, thd ? thd_get_thread_id(thd) : 0, &session);
        if (status == TEAK_OK) status = teak_txn_begin(session, TEAK_READ_COMMITTED, 0);
        if (status == TEAK_OK) status = teak_table_open(plugin.engine, core_name, &created);
        if (status == TEAK_OK) status = teak_counter_set(session, created, info->auto_increment_value);
        if (status == TEAK_OK) status = teak_commit(session);
        int error = error_code(status, thd);
        teak_table_close(created);
        if (session) teak_session_free(session);
        if (error) {
            teak_table_drop(plugin.engine, core_name);
            return error;
        }
    }
    return 0;
}

int ha_teak::delete_table(const char* name) { return drop_table_by_path(ht, name); }

int ha_teak::rename_table(const char* from, const char* to) {
    return error_code(teak_table_rename(plugin.engine, table_name(from), table_name(to)), ha_thd());
}

int ha_teak::truncate() {
    const teak_bytes name = bytes_of(reinterpret_cast<const uchar*>(name_.data()), name_.size());
    if (int error = wait_for_prepared(ha_thd(), name)) return error;
    close_table();
    teak_status status = teak_table_truncate(plugin.engine, name);
    int error = fail(status);
    share_->generation++;
    int reopened = open_table();
    return error ? error : reopened;
}

bool ha_teak::check_if_incompatible_data(HA_CREATE_INFO* info, uint changes) {
    if (changes != IS_EQUAL_YES) return COMPATIBLE_DATA_NO;
    if ((info->used_fields & HA_CREATE_USED_AUTO) && info->auto_increment_value != 0) return COMPATIBLE_DATA_NO;
    if (info->used_fields & HA_CREATE_USED_ROW_FORMAT) return COMPATIBLE_DATA_NO;
    const ha_table_option_struct *now = table->s->option_struct, *then = info->option_struct;
    /* Another compression is a change in place: see ha_teak_alter.cc. */
    if (now && then && now->block_size != then->block_size) return COMPATIBLE_DATA_NO;
    return COMPATIBLE_DATA_YES;
}

void ha_teak::update_create_info(HA_CREATE_INFO* info) {
    if (info->used_fields & HA_CREATE_USED_AUTO) return;
    this->info(HA_STATUS_AUTO);
    info->auto_increment_value = stats.auto_increment_value;
}

int ha_teak::info(uint flag) {
    if (!table_) return HA_ERR_NO_SUCH_TABLE;
    if (flag & HA_STATUS_ERRKEY) errkey = duplicate_index_;
    if (flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_AUTO)) {
        teak_table_statistics now;
        teak_table_get_statistics(table_, &now);
        if (flag & HA_STATUS_AUTO) stats.auto_increment_value = std::max<ulonglong>(now.next_counter, 1);
        if (flag & HA_STATUS_VARIABLE) {
            stats.records = now.rows;
            stats.deleted = 0;
            /* 0 or 1 would make the optimizer read the table at once, as a constant. */
            if (stats.records < 2 && !(flag & HA_STATUS_TIME)) stats.records = 2;
            stats.data_file_length = now.data_bytes;
            stats.index_file_length = now.index_bytes;
            if (flag & HA_STATUS_VARIABLE_EXTRA) stats.delete_length = teak_table_free_bytes(table_);
            /* What a row is to its reader: beside Data_length it shows what compression does. */
            stats.mean_rec_length = static_cast<ulong>(now.rows ? now.raw_bytes / now.rows : 0);
            stats.check_time = 0;
        }
        if (flag & HA_STATUS_CONST) {
            stats.block_size = static_cast<uint>(kPageBytes);
            stats.create_time = 0;
            publish_usable_indexes();
            refresh_statistics(false);
        }
        if (seen_statistics_ != share_->version.load()) publish_rec_per_key();
    }
    return 0;
}

/* Tells the server which indexes are not disabled. Others may be looking at the share: nothing is written that it has already. */
void ha_teak::publish_usable_indexes() {
    key_map usable;
    usable.set_prefix(table->s->keys);
    for (uint i = 0; i < table->s->keys; i++)
        if (disabled_indexes_ & 1ULL << i) usable.clear_bit(i);
    if (table->s->keys_in_use == usable) return;
    table->s->keys_in_use = usable;
    table->s->keys_for_keyread.intersect(usable);
}

void ha_teak::refresh_statistics(bool force) {
    teak_table_statistics now;
    teak_table_get_statistics(table_, &now);
    {
        std::lock_guard<std::mutex> hold(share_->latch);
        uint64_t seen = share_->sampled_rows;
        uint64_t change = seen == UINT64_MAX ? UINT64_MAX : now.rows > seen ? now.rows - seen : seen - now.rows;
        if (!force && change != UINT64_MAX && change <= seen / 10) return;
        share_->sampled_rows = now.rows;
    }
    std::vector<std::vector<double>> fresh(table->s->keys);
    for (uint i = 0; i < table->s->keys; i++) {
        teak_tree_statistics tree;
        teak_sample sample;
        if (teak_tree_get_statistics(table_, tree_of(i), &tree) != TEAK_OK ||
            teak_tree_sample(table_, tree_of(i), kSampledLeaves, &sample) != TEAK_OK)
            return;
        double rows = static_cast<double>(std::max<uint64_t>(tree.entries, sample.n_keys));
        fresh[i] = prefix_frequencies(key_codec(i), sample, rows, sample.n_leaves >= tree.leaves);
        teak_sample_free(&sample);
    }
    std::lock_guard<std::mutex> hold(share_->latch);
    share_->rec_per_key.swap(fresh);
    share_->version++;
}

void ha_teak::publish_rec_per_key() {
    std::lock_guard<std::mutex> hold(share_->latch);
    seen_statistics_ = share_->version.load();
    for (uint i = 0; i < table->s->keys && i < share_->rec_per_key.size(); i++) {
        KEY* key = &table->key_info[i];
        const std::vector<double>& frequencies = share_->rec_per_key[i];
        for (uint part = 0; part < key->ext_key_parts; part++) {
            double n = part < frequencies.size() ? frequencies[part] : 1;
            bool is_unique = (key->flags & HA_NOSAME) && part + 1 >= key->user_defined_key_parts;
            /* Half of it, as InnoDB says: the optimizer otherwise favours table scans too much. */
            key->rec_per_key[part] = is_unique ? 1 : std::max<ulong>(1, static_cast<ulong>(n / 2));
        }
    }
}

ha_rows ha_teak::estimate_rows_upper_bound() {
    teak_table_statistics now;
    teak_table_get_statistics(table_, &now);
    return now.rows + now.rows / 4 + 10;
}

teak_bound ha_teak::estimate_bound(uint index, const key_range* range, Buffer* buffer) {
    if (!range) return {{nullptr, 0}, TEAK_BOUND_NONE};
    const KeyCodec& codec = key_codec(index);
    uchar* to = buffer->room(codec.max_size());
    if (!to) return {{nullptr, 0}, TEAK_BOUND_NONE};
    uint done;
    bool has_null;
    uchar* end = codec.encode_tuple(to, range->key, range->length, &done, &has_null);
    return {{to, static_cast<size_t>(end - to)}, TEAK_BOUND_INCLUDE};
}

ha_rows ha_teak::records_in_range(uint index, const key_range* from, const key_range* to, page_range*) {
    teak_bound lower = estimate_bound(index, from, &seek_key_);
    teak_bound upper = estimate_bound(index, to, &end_key_);
    if (from && from->flag == HA_READ_AFTER_KEY) lower.kind = TEAK_BOUND_EXCLUDE;
    if (to && to->flag == HA_READ_BEFORE_KEY) upper.kind = TEAK_BOUND_EXCLUDE;
    uint64_t rows;
    if (teak_estimate_range(table_, tree_of(index), &lower, &upper, &rows) != TEAK_OK) return HA_POS_ERROR;
    return std::max<ha_rows>(rows, 1);
}

double ha_teak::scan_time() {
    /* As if rows were not compressed: the cost is that of looking at them. */
    teak_tree_statistics rows{};
    if (table_) teak_tree_get_statistics(table_, 0, &rows);
    if (rows.leaves >= kLeavesThatTell) {
        const ha_table_option_struct* options = table->s->option_struct;
        double block_bytes = options && options->block_size ? static_cast<double>(options->block_size) : kBlockBytes;
        return static_cast<double>(rows.leaves) * block_bytes / kPageBytes;
    }
    double row_bytes = std::min<double>(table->s->reclength, 400);
    return std::max(1.0, static_cast<double>(stats.records) * row_bytes / kPageBytes);
}

/* handler::keyread_time with the length that the primary key has in the server's form: ours has room for the longest weights. */
double ha_teak::keyread_time(uint index, uint ranges, ha_rows rows) {
    const uint primary = table->s->primary_key;
    double length = table->s->stored_rec_length;
    if (index != primary)
        length = table->key_info[index].key_length +
                 (primary == MAX_KEY ? kHiddenKeyBytes : table->key_info[primary].key_length);
    double cost = static_cast<double>(rows) * length / (stats.block_size + 1) * IDX_BLOCK_COPY_COST;
    if (ranges) cost += std::ceil(static_cast<double>(rows) / (std::floor(stats.block_size * 0.75 / length) + 1));
    return cost;
}

double ha_teak::read_time(uint index, uint ranges, ha_rows rows) {
    if (index != table->s->primary_key) return handler::read_time(index, ranges, rows);
    ha_rows total = estimate_rows_upper_bound();
    double scan = scan_time();
    if (total < rows) return scan;
    return ranges + static_cast<double>(rows) / static_cast<double>(total) * scan;
}

/* Keys from before all weights were kept: to be built anew. */
bool ha_teak::has_cut_keys() const {
    auto is_cut = [](const KeyCodec& key) {
        return std::any_of(key.parts().begin(), key.parts().end(),
                           [](const KeyPartCodec& part) { return part.outdated; });
    };
    return is_cut(primary_.key()) ||
           std::any_of(indexes_.begin(), indexes_.end(), [&](const IndexCodec& index) { return is_cut(index.key()); });
}

int ha_teak::analyze(THD*, HA_CHECK_OPT*) {
    refresh_statistics(true);
    return info(HA_STATUS_VARIABLE | HA_STATUS_CONST) ? HA_ADMIN_FAILED : HA_ADMIN_OK;
}
