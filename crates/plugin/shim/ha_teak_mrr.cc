/*
  Reading many ranges at once, sorted: the server's DS-MRR (sql/multi_range_read.h), on which BKA joins are built.

  The server sorts the keys that are to be looked up, or the rows' keys that an index gave, and asks for the rows in
  that order. It needs two handlers for the second: this one reads the rows, a clone the index.
*/
#include "ha_teak.h"

using namespace teak;

ha_rows ha_teak::multi_range_read_info_const(uint index, RANGE_SEQ_IF* ranges, void* ranges_arg, uint count,
                                             uint* buffer_bytes, uint* flags, Cost_estimate* cost) {
    sorted_ranges_.init(this, table);
    /* Rows are locked in the order in which their index has them. */
    if (held_.rows != RowLock::None) *flags |= HA_MRR_USE_DEFAULT_IMPL;
    return sorted_ranges_.dsmrr_info_const(index, ranges, ranges_arg, count, buffer_bytes, flags, cost);
}

ha_rows ha_teak::multi_range_read_info(uint index, uint ranges, uint rows, uint parts, uint* buffer_bytes, uint* flags,
                                       Cost_estimate* cost) {
    sorted_ranges_.init(this, table);
    if (held_.rows != RowLock::None) *flags |= HA_MRR_USE_DEFAULT_IMPL;
    return sorted_ranges_.dsmrr_info(index, ranges, rows, parts, buffer_bytes, flags, cost);
}

int ha_teak::multi_range_read_init(RANGE_SEQ_IF* ranges, void* ranges_arg, uint count, uint mode,
                                   HANDLER_BUFFER* buffer) {
    sorted_ranges_.init(this, table);
    return sorted_ranges_.dsmrr_init(this, ranges, ranges_arg, count, mode, buffer);
}

int ha_teak::multi_range_read_next(range_id_t* range) { return sorted_ranges_.dsmrr_next(range); }

int ha_teak::multi_range_read_explain_info(uint mode, char* text, size_t size) {
    return sorted_ranges_.dsmrr_explain_info(mode, text, size);
}
