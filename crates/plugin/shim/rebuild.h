/*
  A table whose rows an ALTER writes anew while others write: the table that is to take its place, by what its rows are
  made of those that there are, and the engine's build of it. See inplace_rebuild.cc.

  Has codecs of both definitions. The new table is one of the engine's, under a name of its own; if it does not take the
  other's place it goes with this.
*/
#ifndef TEAK_REBUILD_H
#define TEAK_REBUILD_H

#include "field_converter.h"
#include "index_codec.h"
#include "online_build.h"
#include "record_converter.h"
#include <atomic>

namespace teak {

/* How the rows that there are are read. */
struct RowSource {
    TABLE* table;
    const RowCodec* rows;
    const PrimaryCodec* primary;
};

class Rebuild {
  public:
    Rebuild() = default;
    Rebuild(const Rebuild&) = delete;
    Rebuild& operator=(const Rebuild&) = delete;
    ~Rebuild();

    /* False: rows of `now` cannot be made into rows of `altered`, which outlives this. */
    bool init(const TABLE* now, TABLE* altered, List<Create_field>& columns);
    /* Makes the new table, and follows the rows of `table`, which nobody else has. Returns an HA_ERR_ code. */
    int begin(THD* thd, teak_table* table);
    /* Reads what the trees are filled with; `action` is given a RowReading. */
    template <typename Action> int with_reading(THD* thd, const RowSource& source, const Action& action);
    /* The server computes columns of indexes. */
    bool computes() const { return computes_; }
    /* What it converts. */
    const FieldConverter& fields() const { return fields_; }
    /* Why reading has ended: a column is NULL that may not be, or */
    bool has_met_null() const { return met_null_.load(); }
    /* what was written meanwhile does not fit into a column, */
    bool has_refused_value() const { return fields_.has_refused(); }
    /* which the statement is told by converting this record of the table, or at last by what was kept of it. */
    bool convert(const uchar* record);
    void tell_refused_value() const { fields_.tell_refusal(); }
    /* Which one, in this record of the table as it is. */
    const Field* refused(const uchar* record) const { return converter_.refused(record); }
    /* Two entries have one key: the columns of the key in the altered table's record. False: not to be restored. */
    bool restore_duplicate(const TABLE* altered, KEY** key);

    /* The new table is not used any more, before it is put in place. */
    void close();
    const std::string& name() const { return name_; }
    void note_replaced() { name_.clear(); }

    OnlineBuild build;

  private:
    friend class RowMaker;
    /* Reading is the session's thread's alone: records are those of the two TABLEs. */
    bool is_by_session() const { return computes_ || !fields_.empty(); }

    TABLE* altered_ = nullptr;
    std::string name_; /* empty: there is none */
    teak_table* into_ = nullptr;
    RecordConverter converter_;
    FieldConverter fields_;
    PrimaryCodec primary_;
    RowCodec rows_;
    std::vector<IndexCodec> indexes_;
    std::vector<KEY*> keys_; /* of all trees */
    std::vector<uchar> metadata_;
    Buffer blobs_;              /* of a duplicate row */
    bool computes_ = false;     /* an index has columns that the server computes, in its TABLE */
    std::vector<Field*> keyed_; /* these columns there, and nullptr */
    std::atomic<bool> met_null_{false};
};

/* Makes entries of rows: of the new table's rows, the first of its trees, and of its indexes. For one thread. */
class RowMaker {
  public:
    RowMaker(Rebuild* rebuild, const RowSource& source);
    ~RowMaker();
    RowMaker(const RowMaker&) = delete;
    RowMaker& operator=(const RowMaker&) = delete;
    bool ready();
    teak_status take(teak_feed* feed, teak_bytes pk, teak_bytes row);

  private:
    teak_status add(teak_feed* feed, teak_bytes pk, const uchar* record);

    Rebuild* const rebuild_;
    const RowSource source_;
    PrimaryCodec primary_; /* its scratch memory is this thread's, as that of the indexes */
    std::vector<IndexCodec> indexes_;
    Buffer before_, after_, blobs_, pk_, row_, key_, value_;
    bool thread_ready_, own_thread_;
};

/* What is given to the engine for a build; its functions are called by several threads. */
struct RebuildScan {
    Progress progress;
    Rebuild* rebuild;
    RowSource source;

    static void* begin(void* context);
    static uint32_t row(void* maker, teak_feed* feed, teak_bytes pk, teak_bytes row) {
        return static_cast<RowMaker*>(maker)->take(feed, pk, row);
    }
    static void end(void* maker) { delete static_cast<RowMaker*>(maker); }
    static int watch(void* context, uint64_t rows) {
        return Progress::report(&static_cast<RebuildScan*>(context)->progress, rows);
    }
};

template <typename Action> int Rebuild::with_reading(THD* thd, const RowSource& source, const Action& action) {
    RebuildScan scan{{thd, 1}, this, source};
    bool whole_rows;
    const WholeRows whole(source.table, whole_rows);
    return action(RowReading{{RebuildScan::begin, RebuildScan::row, RebuildScan::end, RebuildScan::watch},
                             &scan,
                             &scan.progress,
                             is_by_session()});
}

} // namespace teak
#endif
