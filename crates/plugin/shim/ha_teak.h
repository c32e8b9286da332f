/*
  The handler: one open table of one connection.

  Turns the server's calls into one call each over the border (teak_ffi.h). Owns the codecs of its table, the buffers
  that rows are built in, and the cursors. Transactions are the handlerton's (handlerton.cc).

  ha_teak_ddl.cc         create, open, truncate         ha_teak_write.cc   rows, AUTO_INCREMENT, locks
  ha_teak_statistics.cc  rows and keys, counted         ha_teak_keys.cc    disabled indexes, building indexes
  ha_teak_read.cc        scans and look-ups             ha_teak_alter.cc   ALTER in place
  ha_teak_mrr.cc         many ranges, sorted            ha_teak_check.cc   CHECK TABLE, REPAIR TABLE
  ha_teak_exports.cc     single tables, out and in      ha_teak_foreign.cc foreign keys (constraint_maker.cc: new ones)
  ha_teak_cascade.cc     what follows from their rules  ha_teak_constraints.cc what ALTER in place makes of them
  ha_teak_online.cc      indexes beside writers         ha_teak_rebuild.cc a whole table beside writers
  ha_teak_memory.cc      what a restart has taken        ha_teak_entries.cc entries to be looked at closer
  ha_teak_costs.cc       what the optimizer counts with  ha_teak_filter.cc rows that scans pass over
*/
#ifndef HA_TEAK_H
#define HA_TEAK_H

#include "session.h"
#include "errors.h"
#include "constraint_maker.h"
#include "foreign_look.h"
#include "index_codec.h"
#include "like_filter.h"
#include "table_meta.h"
#include <atomic>
#include <mutex>
#include <string>

namespace teak {

/* The trees of a table with these options (nullptr: none). */
teak_tree_spec tree_spec(const ha_table_option_struct* options);
/* A table of the engine with so many trees, where the options say. */
teak_status create_table(const ha_table_option_struct* options, teak_bytes name, size_t trees, teak_bytes meta,
                         teak_array<teak_link> links);

/* Between a table's name and that of its partition, as the server writes it. */
constexpr const char* kPartitionSeparator = "#P#";
/* A page, as the optimizer knows it from InnoDB: what its costs are calibrated for. */
constexpr uint kPageBytes = 16384;

/* ha_teak_filter.cc: rows that scans have passed over, since the start. */
extern std::atomic<uint64_t> passed_rows;

/* ha_teak_exports.cc: where FLUSH TABLES ... FOR EXPORT puts a table. */
std::string export_path(const std::string& name);

class CheckReport;    /* ha_teak_check.cc */
struct EntryTarget;   /* row_scan.h */
class FieldConverter; /* field_converter.h */
class OnlineIndexes;  /* online_indexes.h */
class Rebuild;        /* rebuild.h */

/* What all handlers of a table share. */
class TableShare : public Handler_share {
  public:
    /* Grows when open table handles are stale (TRUNCATE, trees that were added). */
    std::atomic<uint64_t> generation{0};
    /* The error log has been told of a unique index without entries. */
    std::atomic<bool> unbuilt_unique_told{false};
    /* And of rows that a restart has taken. */
    std::atomic<bool> losses_told{false};
    /* An ALTER in place is under way: the table may have trees that the server's definition does not know yet. */
    std::atomic<bool> altering{false};
    /* Had by the one handler that drops trees which no index has, with what it does to the table. */
    std::mutex dropping;

    std::mutex latch;                             /* guards what follows */
    std::vector<std::vector<double>> rec_per_key; /* of each index, rows per distinct prefix of n+1 parts */
    uint64_t sampled_rows = UINT64_MAX;           /* rows when they were sampled; UINT64_MAX = never */
    std::atomic<uint64_t> version{0};             /* of rec_per_key */
    uint64_t changed_keys = 0;                    /* rows whose keys have changed since then, about */
    bool aged = false;                            /* by that: the next opening takes them anew */
};

} // namespace teak

class ha_teak final : public handler {
  public:
    ha_teak(handlerton* hton, TABLE_SHARE* table_share);
    ~ha_teak() override;

    /* ---- what the table can do */
    const char* index_type(uint) override { return "BTREE"; }
    Table_flags table_flags() const override;
    ulong index_flags(uint index, uint part, bool all_parts) const override;
    uint max_supported_keys() const override { return MAX_KEY; }
    uint max_supported_key_parts() const override { return 16; }
    uint max_supported_key_length() const override { return 3500; }
    uint max_supported_key_part_length() const override { return 3072; }
    uint8 table_cache_type() override { return HA_CACHE_TBL_ASKTRANSACT; }
    my_bool register_query_cache_table(THD* thd, const char* key, uint key_length, qc_engine_callback* callback,
                                       ulonglong* version) override; /* ha_teak_results.cc */
    const key_map* keys_to_use_for_scanning() override { return &key_map_full; }

    /* ---- DDL (ha_teak_ddl.cc) */
    int open(const char* name, int mode, uint test_if_locked) override;
    int close() override;
    int create(const char* name, TABLE* form, HA_CREATE_INFO* info) override;
    int delete_table(const char* name) override;
    int rename_table(const char* from, const char* to) override;
    int truncate() override;
    int discard_or_import_tablespace(my_bool discard) override;
    int delete_all_rows() override { return HA_ERR_WRONG_COMMAND; }
    int info(uint flag) override;
    int analyze(THD* thd, HA_CHECK_OPT* options) override;
    int optimize(THD* thd, HA_CHECK_OPT* options) override;
    bool check_if_incompatible_data(HA_CREATE_INFO* info, uint changes) override;
    void update_create_info(HA_CREATE_INFO* info) override;
    ha_rows estimate_rows_upper_bound() override;
    ha_rows records_in_range(uint index, const key_range* from, const key_range* to, page_range* pages) override;

    /* ---- what the optimizer counts with (ha_teak_costs.cc) */
#ifdef MARIADB_NEW_COST_MODEL
    IO_AND_CPU_COST scan_time() override;
    IO_AND_CPU_COST keyread_time(uint index, ulong ranges, ha_rows rows, ulonglong blocks) override;
    ulonglong row_blocks() override;
    ulonglong index_blocks(uint index, uint ranges, ha_rows rows) override;
    ha_rows multi_range_read_info_const(uint index, RANGE_SEQ_IF* ranges, void* ranges_arg, uint count,
                                        uint* buffer_bytes, uint* flags, ha_rows limit, Cost_estimate* cost) override;
#else
    double scan_time() override;
    double read_time(uint index, uint ranges, ha_rows rows) override;
    double keyread_time(uint index, uint ranges, ha_rows rows) override;
    ha_rows multi_range_read_info_const(uint index, RANGE_SEQ_IF* ranges, void* ranges_arg, uint count,
                                        uint* buffer_bytes, uint* flags, Cost_estimate* cost) override;
#endif

    /* ---- reading (ha_teak_read.cc) */
    int index_init(uint index, bool sorted) override;
    int index_end() override;
    int index_read_map(uchar* buf, const uchar* key, key_part_map parts, enum ha_rkey_function flag) override;
    int index_read_last_map(uchar* buf, const uchar* key, key_part_map parts) override {
        return index_read_map(buf, key, parts, HA_READ_PREFIX_LAST);
    }
    int index_next(uchar* buf) override;
    int index_prev(uchar* buf) override;
    int index_first(uchar* buf) override;
    int index_last(uchar* buf) override;
    int index_next_same(uchar* buf, const uchar* key, uint key_length) override;
    int read_range_first(const key_range* start, const key_range* end, bool eq_range, bool sorted) override;
    int read_range_next() override;
    int rnd_init(bool scan) override;
    int rnd_end() override;
    int rnd_next(uchar* buf) override;
    int rnd_pos(uchar* buf, uchar* pos) override;
    int rnd_pos_by_record(uchar* record) override;
    void position(const uchar* record) override;
    int cmp_ref(const uchar* a, const uchar* b) override;
    Item* idx_cond_push(uint index, Item* condition) override;
    bool rowid_filter_push(Rowid_filter* filter) override;
    const COND* cond_push(const COND* condition) override;
    void cond_pop() override { likes_.clear(); }
    int reset() override;
    void unlock_row() override;
    void try_semi_consistent_read(bool yes) override { statement_.semi_consistent = yes; }
    bool was_semi_consistent_read() override;

    /* ---- many ranges at once, sorted (ha_teak_mrr.cc) */
    ha_rows multi_range_read_info(uint index, uint ranges, uint rows, uint parts, uint* buffer_bytes, uint* flags,
                                  Cost_estimate* cost) override;
    int multi_range_read_init(RANGE_SEQ_IF* ranges, void* ranges_arg, uint count, uint mode,
                              HANDLER_BUFFER* buffer) override;
    int multi_range_read_next(range_id_t* range) override;
    int multi_range_read_explain_info(uint mode, char* text, size_t size) override;

    /* ---- writing and locking (ha_teak_write.cc) */
    int write_row(const uchar* buf) override;
    int update_row(const uchar* old_record, const uchar* new_record) override;
    int delete_row(const uchar* buf) override;
    void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                            ulonglong* reserved) override;
    int reset_auto_increment(ulonglong value) override;
    int extra(enum ha_extra_function operation) override;
    THR_LOCK_DATA** store_lock(THD* thd, THR_LOCK_DATA** to, enum thr_lock_type lock_type) override;
    int external_lock(THD* thd, int lock_type) override;
    int start_stmt(THD* thd, thr_lock_type lock_type) override;
    uint lock_count() const override { return 0; }
    bool get_error_message(int error, String* text) override;
    bool get_foreign_dup_key(char* child, uint child_size, char* index, uint index_size) override;
    handler* clone(const char* name, MEM_ROOT* root) override;

    /* ---- ALTER in place (ha_teak_alter.cc) */
    bool can_convert_nocopy(const Field& field, const Column_definition& to) const override;
    Compare_keys compare_key_parts(const Field& field, const Column_definition& to, const KEY_PART_INFO& part,
                                   const KEY_PART_INFO& new_part) const override;
    enum_alter_inplace_result check_if_supported_inplace_alter(TABLE* altered, Alter_inplace_info* info) override;
    bool prepare_inplace_alter_table(TABLE* altered, Alter_inplace_info* info) override;
    bool inplace_alter_table(TABLE* altered, Alter_inplace_info* info) override;
    bool commit_inplace_alter_table(TABLE* altered, Alter_inplace_info* info, bool commit) override;

    /* ---- foreign keys (ha_teak_foreign.cc) */
    bool referenced_by_foreign_key() const noexcept override;
    bool can_switch_engines() override;
    int get_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) override;
    int get_parent_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) override;
    char* get_foreign_key_create_info() override;
    void free_foreign_key_create_info(char* text) override;

    /* ---- CHECK TABLE, REPAIR TABLE (ha_teak_check.cc) */
    int check(THD* thd, HA_CHECK_OPT* options) override;
    int repair(THD* thd, HA_CHECK_OPT* options) override;

    /* ---- disabled indexes, building indexes (ha_teak_keys.cc) */
    int disable_indexes(key_map map, bool persist) override;
    int enable_indexes(key_map map, bool persist) override;
    int indexes_are_disabled() override;
    void start_bulk_insert(ha_rows rows, uint flags) override;
    int end_bulk_insert() override;

  private:
    double row_pages() const;
    double entry_bytes(uint index) const;
    /* Before the server is told what its sorted ranges would cost. */
    void prepare_sorted_ranges(uint* flags);
    teak_session* session() const { return held_.session->handle; }
    int fail(teak_status status) { return teak::error_code(status, ha_thd()); }
    /* Opens the core's table, again if another handler truncated it. */
    int open_table();
    int open_core_table();
    /* The same if trees have come or gone since. */
    int renew_table();
    bool has_cut_keys() const;
    int check_discarded(THD* thd);
    int check_has_file() const;
    int export_table(THD* thd);
    void end_export();
    int discard_rows(THD* thd);
    int import_rows(THD* thd);
    int empty_table(const teak::TableMeta& meta);
    int make_codecs();
    int make_row_codec();
    void close_table();
    /* Session, transaction, statement and table handle are there; to be called at the start of each statement. `locks`:
       it locks rows. */
    int prepare_statement(THD* thd, bool locks);
    /* The statement changes the table's definition: it waits for prepared transactions that have written to it. */
    int prepare_change(THD* thd);
    /* The same for calls that can come without external_lock (temporary tables under LOCK TABLES). */
    int ready() { return is_begun() ? 0 : prepare_statement(ha_thd(), true); }
    bool is_begun() const { return held_.session && held_.session->statement_open && held_.by_server; }
    teak::TableShare* shared();
    uint32_t tree_of(uint index) const { return index < open_.trees.size() ? open_.trees[index] : 0; }
    uint index_of(uint32_t tree) const;
    int map_trees();
    int drop_other_trees(const std::vector<uint32_t>& layout, const teak::TableMeta& wanted);
    const teak::IndexCodec* index_codec(uint index) const;
    const teak::KeyCodec& key_codec(uint index) const {
        return index == table->s->primary_key ? primary_.key() : indexes_[index].key();
    }
    /* A sequence's row is what everybody has taken from it: read and written apart from transactions. */
    bool is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }
    /* Whether rows have no entry in this index for now. */
    bool is_idle(uint index) const { return (open_.disabled_indexes | statement_.deferred_indexes) & 1ULL << index; }
    bool may_sort() const;
    bool may_be_disabled(uint index) const;
    std::vector<uint32_t> trees_of(ulonglong indexes) const;
    int alter_trees(const std::vector<uint32_t>& layout, const teak::TableMeta& meta);
    struct Altered {
        std::vector<uint32_t> layout;
        std::vector<uchar> meta;
        uint64_t counter;
        bool is_guarded;
    };
    bool widens(const Field& field, const Column_definition& to) const;
    bool takes_collation(const Field& field, const CHARSET_INFO* to) const;
    bool next_layouts(const TABLE* altered, const Alter_inplace_info* info, teak::RowLayouts* layouts,
                      const char** reason) const;
    bool names_are_clear(const Alter_inplace_info* info) const;
    int wanted_counter(const Alter_inplace_info* info, uint64_t* counter);
    teak::TableMeta altered_meta(const TABLE* altered, const Alter_inplace_info* info) const;
    teak::KeyEncoding altered_encoding(const TABLE* altered) const;
    std::unique_ptr<teak::OnlineIndexes> make_online(const TABLE* altered, const Alter_inplace_info* info,
                                                     std::vector<uint32_t>* trees) const;
    int begin_online(teak::OnlineIndexes* added, const std::vector<uint32_t>& trees);
    int build_online(TABLE* altered, teak::OnlineIndexes* added);
    int finish_online(TABLE* altered, teak::OnlineIndexes* added);
    template <typename Action> int with_entries(const teak::OnlineIndexes& added, const Action& action);
    void tell_online_error(TABLE* altered, const teak::OnlineIndexes& added, int error);
    bool needs_rebuild(const TABLE* altered, const Alter_inplace_info* info) const;
    enum_alter_inplace_result check_without_rebuild(TABLE* altered, Alter_inplace_info* info);
    enum_alter_inplace_result check_rebuild(TABLE* altered, Alter_inplace_info* info);
    int begin_rebuild(TABLE* altered, const Alter_inplace_info* info, teak::Rebuild* rebuild);
    int run_rebuild(TABLE* altered, teak::Rebuild* rebuild);
    int finish_rebuild(TABLE* altered, teak::Rebuild* rebuild);
    void tell_rebuild_error(TABLE* altered, teak::Rebuild* rebuild, int error);
    template <typename Meets> void find_row(const Meets& meets);
    void tell_of_null(const teak::Rebuild* rebuild);
    void tell_of_value(teak::Rebuild* rebuild);
    int commit_rebuilt(TABLE* altered, const Alter_inplace_info* info, inplace_alter_handler_ctx* const* parts);
    void note_columns(const std::vector<const teak::IndexCodec*>& indexes, MY_BITMAP* columns) const;
    bool altered_state(const TABLE* altered, const Alter_inplace_info* info, Altered* state) const;
    int commit_altered(TABLE* altered, const Alter_inplace_info* info, inplace_alter_handler_ctx* const* parts);
    teak_alteration alteration(const std::vector<uint32_t>& layout, const std::vector<uchar>& meta, teak_tree_spec spec,
                               bool repacks) const;
    std::string unbuilt_unique_text() const;
    int alter_indexes(ulonglong disabled, ulonglong renewed);
    int build_indexes(ulonglong indexes);
    int build(const std::vector<const teak::IndexCodec*>& indexes, const std::vector<uint32_t>& trees);
    int end_append();
    int read_duplicate(teak_bytes pk);
    void show_duplicate(const teak_duplicate& duplicate);
    bool show_row(teak_bytes pk, teak_bytes row);
    int feed(const teak::EntryTarget& target, const std::vector<const teak::IndexCodec*>& indexes);
    int feed_by_threads(const teak::EntryTarget& target, const std::vector<const teak::IndexCodec*>& indexes);
    int feed_record_by_record(const teak::EntryTarget& target, const std::vector<const teak::IndexCodec*>& indexes);
    int renew_rows(THD* thd);
    int check_trees(uint32_t first, size_t count, uint32_t depth, uint64_t* entries, teak::CheckReport* report);
    int check_entries(const std::vector<uint>& indexes, teak::CheckReport* report);
    int begin_comparison(const std::vector<uint>& indexes, uint64_t sort_bytes, teak_check** out);
    int renew_indexes(ulonglong indexes);
    uint nth_index(ulonglong indexes, uint n) const;
    std::string readable_key(teak_bytes pk);
    struct Differences;
    void defer_indexes();
    int set_counter(THD* thd, ulonglong value);
    std::vector<uchar> statistics_digest() const;
    void recall_statistics(teak_bytes digest);
    bool has_aged(uint64_t changes) const;
    bool begin_sampling(uint64_t rows, bool force);
    void refresh_statistics(bool force);
    void note_changed_keys();
    void tell_changed_keys();
    void publish_rec_per_key();
    void publish_usable_indexes();
    void publish_space();
    teak_bound estimate_bound(uint index, const key_range* range, teak::Buffer* buffer);

    /* foreign keys */
    const teak::ForeignKeys& foreign_keys() const;
    int know_foreign_keys();
    bool is_needed_by_foreign_key(uint index) const;
    int renew_looks();
    int make_looks();
    int hold_looks(const teak::Looks& looks);
    int prepare_looks(bool* wanted);
    int insert_row(const uchar* record, teak_bytes pk, teak_bytes row, size_t entries, uint32_t flags,
                   bool constrained);
    int change_row(const uchar* before, const uchar* after, teak_bytes old_pk, teak_bytes new_pk, size_t entries,
                   bool rewrites, bool constrained);
    int look_at_parents(const uchar* record, const uchar* before, bool* again);
    bool names_again(const teak::ForeignLook& look, const uchar* before, const uchar* record) const;
    int look_at_children(const uchar* record, const uchar* after, teak_bytes pk);
    int refuse_children(teak::ForeignLook& look, const uchar* record);
    int break_constraint(const teak::ForeignKey& key, int error, const uchar* record = nullptr);
    std::string values_of(const std::vector<std::string>& columns, const uchar* record) const;
    ha_teak* free_for_cascade(const std::string& core_name);
    bool has_to_cascade(const uchar* record, const uchar* after) const;
    int cascade(const uchar* record, const uchar* after, teak_bytes pk);
    std::vector<std::string> unmet_beside(const teak::ForeignLook& look, const teak::Looks& looks, const uchar* was,
                                          const uchar* becomes) const;
    bool takes_key_of_parent(const teak::ForeignKey& key) const;
    teak_bytes unmet_parent(const teak::ForeignKey& key) const;
    int check_chain(const teak::ForeignKey& key, bool updated);
    int cascade_to(teak::ForeignLook& look, const uchar* record, const uchar* after);
    bool ends_cascades();
    int tell_broken_below(ha_teak* child, int error);
    int follow(const teak::ForeignKey& key, TABLE* parent, const uchar* before, const uchar* after,
               const std::vector<uchar>& row);
    bool is_versioned(const teak::ForeignKey& key) const;
    const uchar* follower_of(const uchar* before, const uchar* after) const;
    int end_row();
    int put_history();
    int mark_row();
    enum_alter_inplace_result check_constraints_inplace(TABLE* altered, const Alter_inplace_info* info);
    enum_alter_inplace_result plan_constraints(TABLE* altered, const Alter_inplace_info* info);
    bool loses_needed_index(const TABLE* altered, const Alter_inplace_info* info, uint* index) const;
    bool loses_needed_column(const TABLE* altered, const Alter_inplace_info* info) const;
    bool verifies_constraints() const;
    int relink(const teak::ConstraintChange& change, teak::Relinks* out) const;
    bool lets_null_follow(const TABLE* altered, const Alter_inplace_info* info) const;
    bool changes_needed_values(const teak::FieldConverter& fields) const;
    bool changes_needed_type(const TABLE* altered, const Alter_inplace_info* info) const;
    int verify_constraints(const TABLE* altered, const teak::TableMeta& meta,
                           const std::vector<teak::ForeignKey>& added);
    int check_parents(teak::CheckReport* report);

    /* reading */
    enum class Direction : uint8_t { Forward, Backward };
    uint32_t read_mode() const {
        if (statement_.reads_snapshot) return TEAK_READ_SNAPSHOT;
        if (temporary_ || statement_.copies || statement_.reads_latest || is_sequence()) return TEAK_READ_LATEST;
        return held_.rows == RowLock::None ? TEAK_READ_SNAPSHOT : locking_mode();
    }
    uint32_t locking_mode() const;
    teak_cursor* cursor_of(uint32_t tree);
    void free_cursors();
    void reset_cursors();
    int seek(uchar* buf, uint32_t where, teak_bytes key, const teak_bound* end);
    int seek_prefix(uchar* buf, uint32_t where, teak_bytes key);
    int deliver(uchar* buf, teak_status status, teak_entry_view entry, Direction direction, int at_end);
    int deliver_row(uchar* buf, const teak_entry_view& row);
    enum class Found : uint8_t { Delivered, Unwanted, Gone };
    int restore_entry(const teak::IndexCodec& codec, const teak_entry_view& entry, uchar* buf);
    int deliver_entry(uchar* buf, teak_cursor* cursor, const teak_entry_view& entry, Found* found);
    int deliver_own_entry(uchar* buf, teak_cursor* cursor, const teak_entry_view& entry, Found* found);
    int check_entry(const teak::IndexCodec& codec, const teak_entry_view& entry, teak_bytes pk, bool* matches);
    /* The row's key from an entry, in memory that the next call uses again. False: the entry is malformed. */
    bool primary_of(const teak_entry_view& entry, teak_bytes* pk) {
        *pk = indexes_[active_index].primary_of(entry, pk_scratch_.data(), pk_scratch_.size());
        return pk->len != 0 && pk->len <= current_pk_.size();
    }
    int check_committed(const teak::IndexCodec& codec, teak_cursor* cursor, bool* matches);
    teak_status step(uint32_t tree, Direction direction, teak_entry_view* entry);
    teak_window* open_window(uint32_t tree) const;
    bool take_row(uchar* buf, Direction direction, int* error);
    bool take_entry(uchar* buf, Direction direction, int* error);
    teak_status look_up(uint32_t tree, teak_bytes key, uint32_t mode, teak_entry_view* entry);
    int find_key(uchar* buf, const uchar* key, key_part_map parts, enum ha_rkey_function flag);
    int next_row(uchar* buf);
    int next_row_filtered(uchar* buf);
    int next_entry(teak_entry_view* row);
    bool reads_virtual() const;
    void count_passed(ulonglong rows);
    void end_filter();
    int read_row(uchar* buf, teak_bytes pk);
    int read_held_row(uchar* buf, teak_bytes pk);
    int deliver_whole(uchar* buf, teak_status status, const teak_entry_view& row);
    bool fills_record(const teak::IndexCodec& codec);
    int move(uchar* buf, Direction direction);
    int move_on(uchar* buf, Direction direction);
    bool range_end(teak_bound* out);
    void expect(std::vector<uchar>* keys, uint32_t tree);
    void note_wanted(const key_range& range);
    friend struct WantedRanges; /* ha_teak_mrr.cc */
    bool on_primary() const { return active_index == table->s->primary_key; }
    void remember(teak_bytes pk) {
        teak::copy_few(current_pk_.data(), pk.data, pk.len);
        current_pk_length_ = pk.len;
        read_as_of_ = held_.session->rows_written;
    }

    void drop_stale_results(THD* thd); /* ha_teak_results.cc */

    /* what a restart has taken (ha_teak_memory.cc) */
    enum class Asked : uint8_t { ByRecord, ByKey, ByStep };
    enum class Change : uint8_t { Insert, Other };
    int tell_emptied();
    int tell_in_group(THD* thd, const std::string& name);
    int inherit_losses(THD* thd, teak_bytes name);
    bool would_have_row() const;
    int or_lost_row(uchar* buf, int error, Asked asked);
    bool passes_over(Change change);
    ulonglong max_rows(THD* thd) const;

    /* writing */
    teak_bytes primary_key_of(const uchar* record, teak::Buffer* to);
    teak_bytes pack_row(const uchar* record);
    int note_overtaking(teak_bytes pk, bool* overtakes);
    int find_own_changes(teak_bytes pk, const uchar** old_record, const uchar** new_record);
    bool has_virtual_values(const teak::IndexCodec& index) const;
    enum class Image : uint8_t { Read, Written };
    void compute_virtual(const teak::IndexCodec& index, uchar* record, Image image);
    bool encode_entry(uint index, const uchar* record, Image image, teak_bytes pk, teak_entry* out);
    int undo_row(int error);
    int note_duplicate(teak_status status, const teak_duplicate& duplicate);
    uint64_t counted_value() const;
    void raise_counter();
    uint32_t row_flags() const;
    uint32_t row_flags_of(teak_bytes pk) const;

    /* What lasts as long as the handler is open. */
    THR_LOCK_DATA lock_;
    teak::TableShare* share_ = nullptr;
    std::string name_;
    bool temporary_ = false;
    uint32_t changed_keys_ = 0; /* that the share was not told of */
    teak::PrimaryCodec primary_;
    teak::RowCodec rows_;
    teak::ChosenColumns chosen_;            /* of the rows that were read last */
    teak::RowEnd end_;                      /* of a system-versioned table */
    std::vector<teak::IndexCodec> indexes_; /* by the server's index number; that of the primary key is unused */

    /* Foreign keys: what was asked of the engine last. */
    struct Foreign {
        mutable teak::ForeignKeys keys;
        std::shared_ptr<const teak::Looks> looks; /* nullptr: none are known */
        uint64_t held_in = 0; /* the session's statement that keeps the definitions of what they look at */
        std::string broken;   /* which one the last error is about */
        /* Where HA_ERR_FOREIGN_DUPLICATE_KEY has met the duplicate. */
        std::string duplicate_table, duplicate_index;
        teak::ConstraintChange change; /* what an ALTER in place is about to make of them */
    };
    Foreign foreign_;

    /* As long as the core's table is open: from open_table to close_table. */
    struct OpenTable {
        teak_table* table = nullptr;
        uint64_t generation = 0;
        uint64_t seen_statistics = 0;
        teak::TableMeta meta;
        std::vector<uint32_t> trees;       /* by the server's index number */
        std::vector<teak_cursor*> cursors; /* by tree; made when needed */
        std::vector<teak_window*> windows; /* theirs */
        ulonglong disabled_indexes = 0;    /* as the table's metadata says */
        uint unbuilt_unique = MAX_KEY;     /* one among them, which nothing enforces: no row is written */
    };
    OpenTable open_;

    /* As long as the server has the table locked: from store_lock and external_lock(F_*LCK) to F_UNLCK. Under LOCK
       TABLES, and within functions and triggers, those are several statements, each of which begins with start_stmt. */
    enum class RowLock : uint8_t { None, Shared, Exclusive };
    struct Held {
        teak::Session* session = nullptr;
        RowLock rows = RowLock::None;        /* for the present statement */
        RowLock rows_of_all = RowLock::None; /* for any of them */
        bool skips_locked = false;
        ulonglong max_rows = 0; /* that inserts leave in it; 0: any number */
        bool may_miss = false;  /* rows that are looked for to apply changes of another server */
        bool writes = false;    /* by the server's lock, which is not that of a copy's source */
        bool by_server = false; /* external_lock was called, not only store_lock */
        bool exported = false;  /* its export goes with the lock */
    };
    Held held_;

    /* As long as a statement: to reset(). */
    struct Statement {
        bool copies = false;             /* a copying ALTER, into this table */
        bool replaces = false;           /* REPLACE, ON DUPLICATE KEY UPDATE */
        bool ignores_duplicates = false; /* those, and IGNORE: the statement goes on after a duplicate */
        bool entries_only = false;       /* of an index the columns that it has are enough (HA_EXTRA_KEYREAD) */
        bool has_many_rows = false;      /* between start_bulk_insert and end_bulk_insert */
        bool appends = false;            /* so many that they may go past the log */
        bool sorts = false;              /* and be sorted before */
        bool reads_latest = false;       /* rows whoever wrote them */
        bool reads_snapshot = false;     /* rows as of the snapshot, whatever the statement would read */
        bool semi_consistent = false;    /* a scan looks at rows that others have locked before it waits for them */
        ulonglong deferred_indexes = 0;  /* to be built at the end of the bulk insert */
        uint32_t duplicate_part = 0;     /* of a build: which index two rows have one key of */
    };
    Statement statement_;

    /* As long as a scan: from index_init or rnd_init to index_end or rnd_end. */
    enum class Placed : uint8_t {
        Anywhere,
        ByPrefix, /* the cursor ends with the key it was placed by (HA_READ_KEY_EXACT, _PREFIX_LAST) */
        Missed,   /* so it was, and there is nothing with that key */
        ByPoint,  /* it was placed by a whole unique key: nothing else has that key, */
        Passed    /* which index_next_same was told: the cursor is behind its entry */
    };
    struct Scan {
        bool started = false; /* rnd_next was called */
        uint64_t passed = 0;  /* rows for which the condition is not true */
        bool sorted = false;  /* index_init was told that the order matters */
        Placed placed = Placed::Anywhere;
        const key_range* range_end = nullptr;               /* while read_range_first places the cursor */
        bool owes_move = false;                             /* an end was told that the cursor has not gone to */
        size_t exact_key_length = 0, sought_key_length = 0; /* of what exact_key_ and seek_key_ have */
    };
    Scan scan_;
    teak::LikeFilter likes_; /* of a full scan: from cond_push to rnd_end */

    /* Sorted reads of many ranges (ha_teak_mrr.cc): begun anew by each multi_range_read_init. */
    struct SortedRanges {
        RANGE_SEQ_IF server{}; /* the server's ranges, which are passed on by ours */
        void* server_arg = nullptr;
        range_seq_t server_at = nullptr;
        uint index = MAX_KEY;
        bool makes_reader = false; /* a clone that is made now reads the index */
        /* What is going to be looked up in the index, and of rows: each key behind two bytes of length. */
        std::vector<uchar> coming_entries, coming_rows;
    };
    SortedRanges wanted_;
    ha_teak* rows_reader_ = nullptr; /* this one reads the index, that one the rows */

    /* Memory that is used again. */
    std::vector<uchar> current_pk_; /* key of the row delivered last, also by a scan that has ended */
    size_t current_pk_length_ = 0;
    uint64_t read_as_of_ = 0; /* Session::rows_written when it was delivered */
    /* A row that the session has changed since it was read, as it is and as it is to be. */
    teak::Buffer own_old_, own_new_, own_blobs_;
    std::vector<std::string> virtual_blobs_; /* values of virtual columns, by the column's number */
    teak::Buffer exact_key_; /* Placed::ByPrefix: key of the entry delivered last, to go on from there */
    teak::Buffer seek_key_, end_key_, blobs_;
    std::vector<uchar> pk_scratch_;

    DsMrr_impl sorted_ranges_;

    teak::Buffer pk_buffer_, new_pk_buffer_, row_buffer_;
    struct EntryBuffers {
        teak::Buffer old_key, old_value, new_key, new_value;
    };
    std::vector<std::unique_ptr<EntryBuffers>> entry_buffers_;
    std::vector<teak_entry> old_entries_, new_entries_;
};

#endif
