/*
  What of a table's statistics is kept with it (teak_table_keep_digest), so that neither a restart nor an opening that
  finds the server's share of the table gone reads a leaf:

    version 1 (1 byte) | rows when the sample was taken (8) | for each index: hash of its name (8, TableMeta::name_of) |
    number of parts (1) | rows per distinct prefix of 1..n parts (4 each, float)

  Integers and floats are little-endian.
*/
#ifndef TEAK_STATISTICS_DIGEST_H
#define TEAK_STATISTICS_DIGEST_H

#include "server.h"
#include "teak_ffi.h"
#include <vector>

namespace teak {

struct StatisticsDigest {
    struct Index {
        ulonglong name;
        std::vector<double> rows_per_prefix; /* each at least 1 */
    };

    std::vector<uchar> encode() const;
    /* False: these are none that this build knows. */
    bool parse(teak_bytes bytes);

    uint64_t rows = 0;
    std::vector<Index> indexes;
};

} // namespace teak
#endif
