/*
  The handler: one open table of one connection, as the server calls it.

  Turns the server's calls into one call each over the border (teak_ffi.h). It is made of parts, which know each other
  in this order only (docs/design/border.md):

    open_table.h         the table: the engine's and the server's, codecs, trees, cursors
    table_use.h          how the session uses it: locks, what the statement is like
    table_statistics.h   what the optimizer is told of it
    constraint_keeper.h  its foreign keys
    inplace_alter.h      an ALTER in place
    row_entries.h        what its indexes make of a row
    index_build.h        indexes, from all rows
    table_check.h        CHECK TABLE, REPAIR TABLE, OPTIMIZE TABLE

  What remains here are the scans and the changes of single rows, whose state is the server's own (`handler`), and its
  questions. Transactions are the handlerton's (handlerton.cc).

  ha_teak_ddl.cc         create, open, truncate         ha_teak_write.cc   rows, AUTO_INCREMENT, locks
  ha_teak_read.cc        scans and look-ups             ha_teak_keys.cc    disabled indexes, many rows at once
  ha_teak_mrr.cc         many ranges, sorted            ha_teak_filter.cc  rows that scans pass over
  ha_teak_entries.cc     entries to be looked at closer ha_teak_costs.cc   what the optimizer asks
  ha_teak_foreign.cc     questions about foreign keys   ha_teak_alter.cc   ALTER TABLE, handed on
  ha_teak_exports.cc     single tables, out and in      ha_teak_memory.cc  what a restart has taken
  ha_teak_results.cc     the query cache
*/
#ifndef HA_TEAK_H
#define HA_TEAK_H

#include "constraint_keeper.h"
#include "counted_call.h"
#include "like_filter.h"
#include "row_entries.h"
#include "table_statistics.h"

namespace teak {

/* A table of the engine with so many trees, where the options say. */
teak_status create_table(const ha_table_option_struct* options, teak_bytes name, size_t trees, teak_bytes meta,
                         teak_array<teak_link> links);

/* ha_teak_exports.cc: where FLUSH TABLES ... FOR EXPORT puts a table. */
std::string export_path(const std::string& name);

class InplaceAlter; /* inplace_alter.h */

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
    void change_table_ptr(TABLE* to, TABLE_SHARE* share) override {
        handler::change_table_ptr(to, share);
        open_.table = to;
    }
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
    void try_semi_consistent_read(bool yes) override { use_.statement.semi_consistent = yes; }
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

    /* ---- for its parts */
    teak::ConstraintKeeper& constraints() { return constraints_; }
    /* What ha_rnd_pos does, for those here who know a row by its key. Returns an HA_ERR_ code. */
    int read_row(uchar* buf, teak_bytes pk);
    /* The same of a row that a look has found and locked to be changed: as it is now, however old the snapshot is. */
    int read_held_row(uchar* buf, teak_bytes pk);
    /* Of the row delivered last, also by a scan that has ended. */
    teak_bytes current_key() const { return teak::bytes_of(current_pk_.data(), current_pk_length_); }
    /* DISABLE KEYS leaves alone an index that keeps rows apart, or that AUTO_INCREMENT or a foreign key needs. */
    bool may_be_disabled(uint index) const;

    /* ---- CHECK TABLE, REPAIR TABLE (table_check.h) */
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
    int fail(teak_status status) const { return open_.fail(status); }
    int check_has_file() const;
    int export_table(THD* thd);
    void end_export();
    int discard_rows(THD* thd);
    int import_rows(THD* thd);
    teak::TableShare* shared();
    void make_buffers();
    bool is_sequence() const { return open_.is_sequence(); }
    bool may_sort() const;
    teak::InplaceAlter& alter();
    int alter_indexes(ulonglong disabled, ulonglong renewed);
    int build_indexes(ulonglong indexes);
    int end_append();
    void show_duplicate(const teak_duplicate& duplicate);
    void defer_indexes();
    int set_counter(THD* thd, ulonglong value);
    int insert_row(const uchar* record, teak_bytes pk, teak_bytes row, size_t entries, uint32_t flags,
                   bool constrained);
    int change_row(const uchar* before, const uchar* after, teak_bytes old_pk, teak_bytes new_pk, size_t entries,
                   bool rewrites, bool constrained);

    /* reading */
    enum class Direction : uint8_t { Forward, Backward };
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
        *pk = open_.indexes[active_index].primary_of(entry, pk_scratch_.data(), pk_scratch_.size());
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
        read_as_of_ = use_.held.session->rows_written;
    }

    void drop_stale_results(THD* thd); /* ha_teak_results.cc */

    /* what a restart has taken (ha_teak_memory.cc) */
    enum class Asked : uint8_t { ByRecord, ByKey, ByStep };
    enum class Change : uint8_t { Insert, Other };
    int inherit_losses(THD* thd, teak_bytes name);
    bool would_have_row() const;
    int or_lost_row(uchar* buf, int error, Asked asked);
    bool passes_over(Change change);

    /* writing */
    teak_bytes primary_key_of(const uchar* record, teak::Buffer* to);
    teak_bytes pack_row(const uchar* record);
    int note_overtaking(teak_bytes pk, bool* overtakes);
    int find_own_changes(teak_bytes pk, const uchar** old_record, const uchar** new_record);
    int note_duplicate(teak_status status, const teak_duplicate& duplicate);
    void raise_counter();
    uint32_t row_flags() const;
    uint32_t row_flags_of(teak_bytes pk) const;

    /* What lasts as long as the handler is open. */
    THR_LOCK_DATA lock_;
    teak::OpenTable open_;
    teak::TableStatistics statistics_{open_};
    teak::TableUse use_{open_};
    teak::ConstraintKeeper constraints_{*this, open_, use_};
    std::unique_ptr<teak::InplaceAlter> alter_; /* the last that the server has asked about */

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
    teak::Buffer exact_key_; /* Placed::ByPrefix: key of the entry delivered last, to go on from there */
    teak::Buffer seek_key_, end_key_, blobs_;
    std::vector<uchar> pk_scratch_;

    DsMrr_impl sorted_ranges_;

    teak::Buffer pk_buffer_, new_pk_buffer_, row_buffer_;
    teak::RowEntries entries_{open_};
};

#endif
