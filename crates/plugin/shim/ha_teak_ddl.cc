/*
  Tables: create, open, drop, rename, truncate.
*/
#include "ha_teak.h"
#include "inplace_alter.h"
#include "server_version.h"
#include "constraint_maker.h"
#include "server_contracts.h"
#include <algorithm>

using namespace teak;

namespace {

uint secondary_keys(const TABLE* table) { return table->s->keys - (table->s->primary_key == MAX_KEY ? 0 : 1); }

/* Options that would mean nothing here are refused where InnoDB refuses them (innodb_strict_mode, its default), with
   its messages. */
int check_create_options(THD* thd, const HA_CREATE_INFO* info, uint keys) {
    const char* refused = nullptr;
    if ((info->used_fields & HA_CREATE_USED_ROW_FORMAT) &&
        (info->row_type == ROW_TYPE_FIXED || info->row_type == ROW_TYPE_PAGE))
        refused = "ROW_TYPE";
    else if (info->index_file_name && !kIgnoresIndexDirectory)
        refused = "INDEX DIRECTORY";
    /* Its one row would be gone with a restart, and it could not be used any more. */
    if (info->sequence && !info->tmp_table() && lives_in_memory(info->option_struct)) {
        my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", "IN_MEMORY=YES for a SEQUENCE");
        return HA_WRONG_CREATE_OPTION;
    }
    if (const char* wrong = contradiction(info->option_struct)) {
        my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", wrong);
        return HA_WRONG_CREATE_OPTION;
    }
    if (!refused) {
        /* Where a table's file is cannot be chosen. */
        if (info->data_file_name && thd)
            push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                                ER_THD(thd, WARN_OPTION_IGNORED), "DATA DIRECTORY");
        if (info->index_file_name && keys && thd)
            push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, WARN_OPTION_IGNORED,
                                ER_THD(thd, WARN_OPTION_IGNORED), "INDEX DIRECTORY");
        return 0;
    }
    if (thd && thd_sql_command(thd) == SQLCOM_ALTER_TABLE)
        my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "Teak", refused);
    else if (thd)
        push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                            ER_THD(thd, ER_ILLEGAL_HA_CREATE_OPTION), "Teak", refused);
    return HA_WRONG_CREATE_OPTION;
}

/* Made by CREATE TEMPORARY TABLE, or by an ALTER of such a table. Names of other tables are encoded and have no '#' of
   their own. */
bool is_temporary(const std::string& path) { return path.find("#sql-temptable-") != std::string::npos; }

/* One of TEAK_RESIDENCE_; 0: the table is like any other. */
uint16_t residence(const ha_table_option_struct* options, teak_bytes name) {
    const bool temporary = is_temporary({reinterpret_cast<const char*>(name.data), name.len});
    if (lives_in_memory(options)) return temporary ? TEAK_RESIDENCE_TEMPORARY_MEMORY : TEAK_RESIDENCE_MEMORY;
    return temporary ? TEAK_RESIDENCE_TEMPORARY : 0;
}

/* Whether a foreign key of another table keeps this one from being dropped. */
int check_children(THD* thd, const std::string& name) {
    /* What the server's recovery drops was dropped before. */
    if (!thd || !mysqld_server_started || thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS) || is_passing_name(name))
        return 0;
    ForeignKeys keys;
    if (int error = keys.load(name, thd)) return error;
    const std::string db = name.substr(0, name.find('/') + 1);
    const bool drops_db = thd_sql_command(thd) == SQLCOM_DROP_DB;
    if (std::all_of(keys.of_others.begin(), keys.of_others.end(), [&](const ForeignKey& key) {
            return key.is_of_itself() || (drops_db && key.child.compare(0, db.size(), db) == 0);
        }))
        return 0;
    /* They may have been waiting for it: then there is nothing to drop. */
    auto ignore = [](void*, teak_link) {};
    const teak_status status = teak_links_of(plugin.engine, bytes_of(name.c_str()), ignore, nullptr);
    return status == TEAK_NO_TABLE ? 0 : status == TEAK_OK ? HA_ERR_ROW_IS_REFERENCED : error_code(status, thd);
}

/* The definition of a table as its file has it, apart from the server's cache: the table is about to be renamed. */
class FileDefinition {
  public:
    FileDefinition(THD* thd, const std::string& core_name) : name_(core_name) {
        const LEX_CSTRING db = name_.db(), table = name_.table();
        build_table_filename(path_, sizeof path_ - 1, db.str, table.str, "", 0);
        init_share(thd, &share_, db.str, table.str, path_);
        Dummy_error_handler silent;
        thd->push_internal_handler(&silent);
        open_ = !open_table_def(thd, &share_, GTS_TABLE) && share_.db_type() == plugin.hton &&
                open_table_from_share(thd, &share_, &table, 0, 0, 0, &table_, false) == OPEN_FRM_OK;
        thd->pop_internal_handler();
    }
    ~FileDefinition() {
        if (open_) closefrm(&table_);
        free_table_share(&share_);
    }
    FileDefinition(const FileDefinition&) = delete;
    FileDefinition& operator=(const FileDefinition&) = delete;
    /* nullptr: it cannot be read. */
    TABLE* table() { return open_ ? &table_ : nullptr; }

  private:
    const TableName name_;
    char path_[FN_REFLEN + 1];
    TABLE_SHARE share_;
    TABLE table_;
    bool open_;
};

/* Who is waited for when a table's rows go. */
constexpr uint32_t kRowHolders = TEAK_HOLDERS_PREPARED | TEAK_HOLDERS_LOOKS;

/* Whether the constraints that wait for a table called `to` can lead to this one; as in InnoDB also without checks. */
int check_waiting_children(THD* thd, const std::string& from, const std::string& to) {
    if (!thd || !mysqld_server_started) return 0;
    ForeignKeys keys;
    if (int error = keys.load(to, thd)) return error;
    if (keys.of_others.empty()) return 0;
    FileDefinition parent(thd, from);
    if (!parent.table()) return 0;
    for (const ForeignKey& key : keys.of_others) {
        if (key.child == from) continue;
        if (int error = hold_definition(thd, key.child)) return error;
        OtherDefinition child(thd, key.child);
        const uint theirs = child.table() ? index_on(child.table(), key.columns, nullptr) : MAX_KEY;
        if (theirs == MAX_KEY) continue;
        const uint mine = index_on(parent.table(), key.parent_columns, nullptr);
        if (mine == MAX_KEY ||
            differing_column(parent.table(), mine, child.table(), theirs, key.columns.size()) != SIZE_MAX)
            return HA_ERR_CANNOT_ADD_FOREIGN;
    }
    return 0;
}

} // namespace

namespace teak {

teak_tree_spec tree_spec(const ha_table_option_struct* options) {
    static const uint16_t compressions[] = {TEAK_COMPRESSION_ZSTD, TEAK_COMPRESSION_LZ4, TEAK_COMPRESSION_NONE};
    if (!options) return {0, TEAK_COMPRESSION_ZSTD, 0, 0};
    const uint16_t compression =
        options->recompress ? TEAK_COMPRESSION_RECOMPRESS : compressions[options->compression % 3];
    return {static_cast<uint32_t>(options->block_size), compression, static_cast<uint16_t>(options->compression_level),
            options->similarity};
}

const char* contradiction(const ha_table_option_struct* options) {
    return options && options->recompress && options->compression ? "RECOMPRESS=YES without COMPRESSION=zstd" : nullptr;
}

bool lives_in_memory(const ha_table_option_struct* options) { return options && options->in_memory; }

bool moves(const ha_table_option_struct* now, const ha_table_option_struct* then) {
    return now->in_memory != then->in_memory;
}

/* One in memory, or temporary, has no links: there are no foreign keys of such tables. */
teak_status create_table(const ha_table_option_struct* options, teak_bytes name, size_t trees, teak_bytes meta,
                         teak_array<teak_link> links) {
    const std::vector<teak_tree_spec> specs(trees, tree_spec(options));
    if (const uint16_t where = residence(options, name))
        return teak_table_create_resident(plugin.engine, name, {specs.data(), specs.size()}, meta, where,
                                          options ? options->memory_limit : 0);
    return teak_table_create_linked(plugin.engine, name, {specs.data(), specs.size()}, meta, links);
}

handler* create_handler(handlerton* hton, TABLE_SHARE* share, MEM_ROOT* root) {
    return new (root) ha_teak(hton, share);
}

int drop_table_by_path(handlerton*, const char* path) {
    THD* thd = current_thd;
    const teak_bytes name = table_name(path);
    if (!is_temporary(path))
        if (int error = check_children(thd, {reinterpret_cast<const char*>(name.data), name.len})) return error;
    teak_status status;
    if (is_temporary(path))
        status = teak_table_discard(plugin.engine, name);
    else {
        if (thd)
            if (int error = wait_for_holders(thd, name, kRowHolders)) return error;
        status = teak_table_drop(plugin.engine, name);
    }
    if (status == TEAK_NO_TABLE) return ENOENT;
    /* An export that a crash has left, or that was not imported, goes with its table, as its database may. */
    if (status == TEAK_OK && !is_temporary(path))
        my_delete(export_path({reinterpret_cast<const char*>(name.data), name.len}).c_str(), MYF(0));
    return error_code(status, thd);
}

/*
  Asked by the server's DDL recovery whether an ALTER in place, which was to end with the definition `version`, was
  committed: 0 says yes. Of a partitioned table it knows the path only, and not the create_id that other engines go by.
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

ha_teak::~ha_teak() = default;

handler::Table_flags ha_teak::table_flags() const {
    Table_flags flags = HA_PRIMARY_KEY_IN_READ_INDEX | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
                        HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_CAN_SQL_HANDLER |
                        HA_BINLOG_ROW_CAPABLE | HA_PARTIAL_COLUMN_READ | HA_TABLE_SCAN_ON_INDEX | HA_CAN_GEOMETRY |
                        HA_CAN_VIRTUAL_COLUMNS | HA_CAN_ONLINE_BACKUPS | HA_CRASH_SAFE | HA_ONLINE_ANALYZE |
                        HA_CONCURRENT_OPTIMIZE | HA_CAN_REPAIR | HA_CAN_SKIP_LOCKED | HA_CAN_TABLES_WITHOUT_ROLLBACK |
                        HA_CAN_EXPORT;
    THD* thd = ha_thd();
    /* USING HASH gives an ordered index. Of a unique one the server would otherwise make an index of a hash of its own,
       in a column that nobody sees, as in InnoDB: ranges could not use that. */
    if (!thd || !(keeps_hidden_hashes(thd) || needs_hidden_hashes(thd))) flags |= HA_CAN_HASH_KEYS;
    if (thd && thd_tx_isolation(thd) > ISO_READ_COMMITTED) flags |= HA_BINLOG_STMT_CAPABLE;
    /* Of partitions before a scan begins, since their handler has cached what they said: see rnd_init. */
    if (table && table->part_info) flags |= HA_CAN_TABLE_CONDITION_PUSHDOWN;
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

bool ha_teak::get_error_message(int error, String* text) {
    if (error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_FK_DEPTH_EXCEEDED) {
        const std::string& broken = constraints_.broken();
        text->copy(broken.data(), static_cast<uint32>(broken.size()), system_charset_info);
        return false;
    }
    if (error != kUnbuiltUnique || open_.unbuilt_unique == MAX_KEY) return own_error_text(error, text);
    const std::string told = open_.unbuilt_unique_text();
    text->copy(told.data(), static_cast<uint32>(told.size()), system_charset_info);
    return false; /* trying again is of no use */
}

int ha_teak::open(const char* name, int, uint) {
    TableShare* const share = shared();
    if (!share) return HA_ERR_OUT_OF_MEM;
    int error = open_.init(table, share, table_name(name));
    if (!error) error = tell_emptied(open_);
    if (error) {
        open_.close();
        return error;
    }
    make_buffers();
    key_used_on_scan = table->s->primary_key; /* an UPDATE of it must not meet its own rows again */
    ref_length = static_cast<uint>(open_.primary.id_size());
    info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
    return 0;
}

/* Memory for rows and entries. */
void ha_teak::make_buffers() {
    entries_.make_room();
    current_pk_.resize(open_.primary.max_size());
    pk_scratch_.resize(open_.primary.max_size());
}

int ha_teak::close() {
    if (open_.core) statistics_.tell_changed_keys();
    open_.close();
    use_.held = {};
    return 0;
}

int ha_teak::create(const char* name, TABLE* form, HA_CREATE_INFO* info) {
    THD* thd = ha_thd();
    if (int error = check_create_options(thd, info, form->s->keys)) return error;
    PrimaryCodec primary;
    if (!primary.init(form, kNewestKeys)) return HA_ERR_UNSUPPORTED;
    for (uint i = 0; i < form->s->keys; i++) {
        IndexCodec index;
        if (i != form->s->primary_key && !index.init(form, i, &primary)) return HA_ERR_UNSUPPORTED;
    }
    teak_bytes core_name = table_name(name);
    ConstraintMaker constraints(thd, {reinterpret_cast<const char*>(core_name.data), core_name.len}, form, info);
    if (int error = constraints.make()) return error;
    const LinkList links(constraints.keys());
    const std::vector<uchar> meta = TableMeta(form).encode();
    teak_status status = create_table(info->option_struct, core_name, 1 + secondary_keys(form),
                                      bytes_of(meta.data(), meta.size()), links.all());
    if (status == TEAK_LINK_EXISTS && thd) constraints.warn_of_taken_names();
    if (status != TEAK_OK) return error_code(status, thd);
    if (lives_in_memory(info->option_struct))
        if (int error = inherit_losses(thd, core_name)) return error;
    if (Session* session = thd ? session_of(thd) : nullptr)
        session->makes(thd->query_id, {reinterpret_cast<const char*>(core_name.data), core_name.len});
    if (info->auto_increment_value > 1 && form->s->found_next_number_field) {
        teak_session* session = nullptr;
        teak_table* created = nullptr;
        status = teak_session_new(plugin.engine, thd, thd ? thd_get_thread_id(thd) : 0, &session);
        if (status == TEAK_OK) status = teak_txn_begin(session, TEAK_READ_COMMITTED, 1, microsecond_interval_timer());
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
    const teak_bytes old_name = table_name(from), new_name = table_name(to);
    /* Foreign keys of others follow a table, but not into the names that it has on the way through an ALTER. */
    const bool passing = is_passing_name(from) || is_passing_name(to);
    const std::string core_from(reinterpret_cast<const char*>(old_name.data), old_name.len);
    const std::string core_to(reinterpret_cast<const char*>(new_name.data), new_name.len);
    if (!passing)
        if (int error = check_waiting_children(ha_thd(), core_from, core_to)) return error;
    /* Another table takes its place, or none. */
    if (ha_thd() && !is_passing_name(from))
        if (int error = wait_for_holders(ha_thd(), old_name, TEAK_HOLDERS_LOOKS)) {
            /* Rather than that the rename has failed, which is what the server would say. */
            if (error == HA_ERR_LOCK_WAIT_TIMEOUT) my_error(ER_LOCK_WAIT_TIMEOUT, MYF(0));
            return error;
        }
    return rename_with_constraints(ha_thd(), core_from, core_to, !passing);
}

int ha_teak::truncate() {
    if (open_.meta.discarded) {
        /* As with InnoDB it may be used again. */
        push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, ER_TABLESPACE_DISCARDED,
                            ER_THD(ha_thd(), ER_TABLESPACE_DISCARDED), table->s->table_name.str);
        TableMeta meta = open_.meta;
        meta.discarded = false;
        return open_.empty(meta);
    }
    const teak_bytes name = bytes_of(open_.name);
    if (int error = wait_for_holders(ha_thd(), name, kRowHolders)) return error;
    if (!open_.meta.layouts.empty()) {
        /* The new rows are all of one layout. */
        TableMeta meta = open_.meta;
        meta.layouts = RowLayouts();
        return open_.empty(meta);
    }
    open_.close();
    teak_status status = teak_table_truncate(plugin.engine, name);
    int error = fail(status);
    open_.share->generation++;
    int reopened = open_.open();
    return error ? error : reopened;
}

bool ha_teak::check_if_incompatible_data(HA_CREATE_INFO* info, uint changes) {
    if (changes != IS_EQUAL_YES) return COMPATIBLE_DATA_NO;
    if ((info->used_fields & HA_CREATE_USED_AUTO) && info->auto_increment_value != 0) return COMPATIBLE_DATA_NO;
    if (info->used_fields & HA_CREATE_USED_ROW_FORMAT) return COMPATIBLE_DATA_NO;
    const ha_table_option_struct *now = table->s->option_struct, *then = info->option_struct;
    /* Another compression is a change in place: see inplace_alter.h. */
    if (now && then && (now->block_size != then->block_size || moves(now, then))) return COMPATIBLE_DATA_NO;
    return COMPATIBLE_DATA_YES;
}

void ha_teak::update_create_info(HA_CREATE_INFO* info) {
    if (info->used_fields & HA_CREATE_USED_AUTO) return;
    this->info(HA_STATUS_AUTO);
    /* A column that does not count any more has left the counter where it was. */
    info->auto_increment_value = table->found_next_number_field ? stats.auto_increment_value : 0;
}
