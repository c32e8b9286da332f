/*
  Indexes built from all rows there are, in one pass over these: for ENABLE KEYS, for a table that ALTER has copied
  into, for REPAIR TABLE. CHECK TABLE has the same entries made, and compared.

  Nobody writes to the rows meanwhile; what is built beside writers is another matter (online_build.h).
*/
#ifndef TEAK_INDEX_BUILD_H
#define TEAK_INDEX_BUILD_H

#include "row_scan.h"
#include "table_use.h"

class ha_teak;

namespace teak {

class IndexBuild {
  public:
    /* `file` is known as the server knows it: where it alone can compute columns, it reads the rows. */
    IndexBuild(ha_teak& file, OpenTable& open, TableUse& use) : file_(file), open_(open), use_(use) {}
    IndexBuild(const IndexBuild&) = delete;
    IndexBuild& operator=(const IndexBuild&) = delete;

    /* Fills `trees` with the entries that `indexes` make of the rows. Returns an HA_ERR_ code: with
       HA_ERR_FOUND_DUPP_KEY the table's record has one of two rows with a key in the index `duplicate_part`, and the
       scan that has read it is left open, for its BLOBs. */
    int run(const std::vector<const IndexCodec*>& indexes, const std::vector<uint32_t>& trees);
    /* Its place in `indexes`. */
    uint32_t duplicate_part() const { return duplicate_part_; }
    /* Gives the entries that `indexes` make of all rows to a build, or to a check. */
    int feed(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes);

  private:
    int feed_by_threads(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes);
    int feed_record_by_record(const EntryTarget& target, const std::vector<const IndexCodec*>& indexes);
    int read_duplicate(teak_bytes pk);

    ha_teak& file_;
    OpenTable& open_;
    TableUse& use_;
    uint32_t duplicate_part_ = 0;
};

} // namespace teak
#endif
