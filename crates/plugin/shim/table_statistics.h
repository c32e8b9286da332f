/*
  What the optimizer is told of an open table: how many rows there are, how many have the same key, how many lie in a
  range. What it costs to read them is in ha_teak_costs.cc.

  Rows per distinct prefix of each index come from a look at its tree (cardinality.h), which is kept with the table
  (statistics_digest.h). It is taken anew when an opening finds a tenth of the rows more or fewer, or that as many have
  got other keys, and by ANALYZE TABLE.
*/
#ifndef TEAK_TABLE_STATISTICS_H
#define TEAK_TABLE_STATISTICS_H

#include "open_table.h"
#include "session.h"
#include "statistics_digest.h"

namespace teak {

/* A page, as the optimizer knows it from InnoDB: what its costs are calibrated for. */
constexpr uint kPageBytes = 16384;

/* Where a range of an index begins or ends: at its first key, and with its last, unless `kind` is changed. In
   `buffer`; TEAK_BOUND_NONE: there is no such end. */
teak_bound bound_of(const KeyCodec& codec, const key_range* range, Buffer* buffer);

class TableStatistics {
  public:
    explicit TableStatistics(OpenTable& open) : open_(open) {}
    TableStatistics(const TableStatistics&) = delete;
    TableStatistics& operator=(const TableStatistics&) = delete;

    /* What handler::info is asked for: HA_STATUS_ in `flag`, but for HA_STATUS_ERRKEY. */
    void tell(uint flag, ha_statistics* to);
    /* Takes the sample anew, if it has aged or `force` says so. */
    void refresh(bool force);
    /* More rows than there are. */
    ha_rows upper_bound() const;
    /* How many rows a range of an index has, about; `rows`: what the table was last said to have. */
    ha_rows in_range(uint index, const key_range* from, const key_range* to, ha_rows rows);

    /* Keys of a row have changed: the sample ages. The share is told of many at a time, as all sessions write to it. */
    void note_changed_keys() {
        if (++changed_keys_ >= kToldAtOnce) tell_changed_keys();
    }
    void tell_changed_keys();

  private:
    static constexpr uint32_t kToldAtOnce = 64;

    void tell_space(ha_statistics* to) const;
    void tell_usable_indexes() const;
    void tell_rec_per_key();
    StatisticsDigest digest() const;
    void recall(teak_bytes kept);
    bool has_aged(uint64_t changes) const { return changes > open_.share->sampled_rows / 10; }
    bool begin_sampling(uint64_t rows, bool force);

    OpenTable& open_;
    uint32_t changed_keys_ = 0; /* that the share was not told of */
    Buffer from_, to_;
};

} // namespace teak
#endif
