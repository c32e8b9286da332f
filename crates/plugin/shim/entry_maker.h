/*
  Entries of several indexes from a stored row, for the threads of a build.

  Has codecs and buffers of its own, so that each thread can have one. Knows the layout of the server's records, but
  neither handler nor THD: virtual columns, which the server computes in a TABLE, are beyond it.
*/
#ifndef TEAK_ENTRY_MAKER_H
#define TEAK_ENTRY_MAKER_H

#include "index_codec.h"

namespace teak {

/* What the entries of a table's rows are made with; outlives the makers, which only read it. */
struct EntryPlan {
    const RowCodec* rows;
    const PrimaryCodec* primary;
    const std::vector<const IndexCodec*>* indexes;
    const MY_BITMAP* columns; /* those that the indexes need */
    size_t record_bytes;
};

class EntryMaker {
  public:
    /* To be destroyed on the thread that made it: the server's string functions get their thread-local state here. */
    explicit EntryMaker(const EntryPlan& plan);
    ~EntryMaker();
    EntryMaker(const EntryMaker&) = delete;
    EntryMaker& operator=(const EntryMaker&) = delete;
    /* False: memory is out. */
    bool ready() { return thread_ready_ && record_.room(plan_.record_bytes); }
    /* Adds the entries of one row to `feed`. TEAK_CORRUPT if it is not one of the table. */
    teak_status take(teak_feed* feed, teak_bytes pk, teak_bytes row);

  private:
    const EntryPlan plan_;
    std::vector<IndexCodec> indexes_; /* their scratch memory is this thread's */
    Buffer record_, blobs_, key_, value_;
    bool thread_ready_, own_thread_;
};

} // namespace teak
#endif
