/*
  A table that a handler has open: the engine's table and the server's, and what is made of both, which is how rows and
  keys are laid over trees.

  All parts of a handler are made of one, and share it; it knows none of them. It is closed and opened again whenever
  the table has got other trees, by whichever handler: the share counts how often (`generation`).
*/
#ifndef TEAK_OPEN_TABLE_H
#define TEAK_OPEN_TABLE_H

#include "errors.h"
#include "history.h"
#include "index_codec.h"
#include "table_meta.h"
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace teak {

/* Between a table's name and that of its partition, as the server writes it. */
constexpr const char* kPartitionSeparator = "#P#";

/* The trees of a table with these options (nullptr: none). */
teak_tree_spec tree_spec(const ha_table_option_struct* options);

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

/* As long as the engine's table is open: from OpenTable::open to close. */
struct CoreTable {
    teak_table* core = nullptr;
    uint64_t generation = 0;
    uint64_t seen_statistics = 0;
    TableMeta meta;
    std::vector<uint32_t> trees;       /* by the server's index number */
    std::vector<teak_cursor*> cursors; /* by tree; made when needed */
    std::vector<teak_window*> windows; /* theirs */
    bool cursors_are_reset = true;
    ulonglong disabled_indexes = 0; /* as the table's metadata says */
    uint unbuilt_unique = MAX_KEY;  /* one among them, which nothing enforces: no row is written */
};

class OpenTable : public CoreTable {
  public:
    OpenTable() = default;
    OpenTable(const OpenTable&) = delete;
    OpenTable& operator=(const OpenTable&) = delete;
    ~OpenTable() { close(); }

    /* All that return an int return an HA_ERR_ code, and leave the table closed where it could not be opened. */
    int init(TABLE* of, TableShare* shared, teak_bytes core_name);
    int open();
    void close();
    /* Opens it again if trees have come or gone since. */
    int renew();
    /* Changes trees and metadata of the table, and opens it again; see teak_tables_alter. */
    int alter_trees(const std::vector<uint32_t>& layout, const TableMeta& wanted);
    /* The same, but for the call: several tables may be altered in one. Points into its arguments. */
    teak_alteration alteration(const std::vector<uint32_t>& layout, const std::vector<uchar>& metadata,
                               teak_tree_spec spec, bool repacks) const;
    /* New trees without rows, under this metadata. */
    int empty(const TableMeta& wanted);

    THD* thd() const { return table && table->in_use ? table->in_use : current_thd; }
    int fail(teak_status status) const { return status == TEAK_OK ? 0 : error_code(status, thd()); }

    uint32_t tree_of(uint index) const { return index < trees.size() ? trees[index] : 0; }
    /* MAX_KEY: it is no index's. */
    uint index_of(uint32_t tree) const;
    /* `of`: a set of indexes. */
    std::vector<uint32_t> trees_of(ulonglong of) const;
    const KeyCodec& key_codec(uint index) const {
        return index == table->s->primary_key ? primary.key() : indexes[index].key();
    }
    /* Sets the columns that entries of `of` are made of. */
    void note_columns(const std::vector<const IndexCodec*>& of, MY_BITMAP* columns) const;
    /* Keys from before all weights were kept: to be built anew. */
    bool has_cut_keys() const;
    /* A sequence's row is what everybody has taken from it: read and written apart from transactions. */
    bool is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }
    std::string unbuilt_unique_text() const;
    /* What the record has in the AUTO_INCREMENT column; 0 if it is nothing that is counted. */
    uint64_t counted_value() const {
        Field* field = table->found_next_number_field;
        if (!field || field->is_null()) return 0;
        const longlong value = field->val_int();
        return value > 0 || field->flags & UNSIGNED_FLAG ? static_cast<uint64_t>(value) : 0;
    }
    /* The table's record becomes this row, virtual columns and all, and points into `blobs`; false: it cannot be
       read. */
    bool show_row(teak_bytes pk, teak_bytes row, handler* file, Buffer* blobs);

    /* nullptr: memory is out. Whoever places a cursor asks here for it. */
    teak_cursor* cursor_of(uint32_t tree) {
        cursors_are_reset = false;
        return cursors[tree] ? cursors[tree] : make_cursor(tree);
    }
    /* The server ends a scan, and then the statement. */
    void reset_cursors() {
        if (std::exchange(cursors_are_reset, true)) return;
        for (teak_cursor* cursor : cursors)
            if (cursor) teak_cursor_reset(cursor);
    }

    /* As long as the handler is open. */
    TABLE* table = nullptr;
    TableShare* share = nullptr;
    std::string name; /* the engine's */
    bool temporary = false;
    PrimaryCodec primary;
    RowCodec rows;
    ChosenColumns chosen;            /* of the rows that were read last */
    RowEnd end;                      /* of a system-versioned table */
    std::vector<IndexCodec> indexes; /* by the server's index number; that of the primary key is unused */

  private:
    int open_core();
    int make_codecs();
    int make_row_codec();
    int map_trees();
    int drop_other_trees(const std::vector<uint32_t>& layout, const TableMeta& wanted);
    teak_cursor* make_cursor(uint32_t tree);
    void free_cursors();
};

} // namespace teak
#endif
