/*
  The engine's build of trees beside writers, step by step: indexes that an ALTER adds (online_indexes.h), or a whole
  table (rebuild.h). Knows neither: what is made of rows is given to it.
*/
#ifndef TEAK_ONLINE_BUILD_H
#define TEAK_ONLINE_BUILD_H

#include "errors.h"
#include "row_scan.h"

namespace teak {

/* What takes rows apart. */
struct RowReading {
    teak_row_reader functions;
    void* context;
    Progress* progress; /* the context's */
    bool by_session;    /* on the session's thread alone */
};

/* Computes the virtual columns of the row in the table's record: those of indexes, `keyed`, which ends with nullptr, as
   of a row that is written. False: the statement has an error, as such an INSERT would have it. */
bool compute_columns(TABLE* table, std::vector<Field*>* keyed);

class OnlineBuild {
  public:
    /* What SHOW PROCESSLIST says. */
    struct Stages {
        const PSI_stage_info &filling, &following;
    };

    OnlineBuild() = default;
    OnlineBuild(const OnlineBuild&) = delete;
    OnlineBuild& operator=(const OnlineBuild&) = delete;
    ~OnlineBuild() { end(); }

    /* Follows the rows from here on, to fill `trees` of `into`. Nobody else has the table. All return HA_ERR_ codes. */
    int begin(THD* thd, teak_table* rows, teak_table* into, const std::vector<uint32_t>& trees);
    /* Fills the trees, and goes on until few rows are left that were changed meanwhile; `rows`: about how many there
       are. HA_ERR_FOUND_DUPP_KEY: see duplicate(). */
    int run(THD* thd, teak_session* session, const RowReading& reading, ulonglong rows, const Stages& stages);
    /* What is left when nobody else has the table. */
    int finish(THD* thd, const RowReading& reading);
    /* What is read from now on was written meanwhile. */
    bool is_filled() const { return filled_; }
    /* Writes are not followed any more. */
    void end() {
        teak_online_free(handle_);
        handle_ = nullptr;
    }

    /* Two rows had one key in the `part`-th of the trees: the entry of one of them. */
    teak_entry_view duplicate(uint* part) const {
        *part = part_;
        return {bytes_of(key_.data(), key_.size()), bytes_of(value_.data(), value_.size())};
    }
    /* The row with this key in the snapshot in which they were met. */
    bool row(teak_bytes pk, teak_bytes* row) const { return teak_online_row(handle_, pk, row) == TEAK_OK; }

  private:
    int fill(THD* thd, teak_session* session, const RowReading& reading, ulonglong rows);
    int follow(THD* thd, const RowReading& reading);
    int catch_up(THD* thd, const RowReading& reading, uint64_t* changed);
    int note(THD* thd, teak_status status, const teak_build* build);

    teak_online* handle_ = nullptr;
    bool filled_ = false;
    uint32_t part_ = 0;
    std::vector<uchar> key_, value_;
};

} // namespace teak
#endif
