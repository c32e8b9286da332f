/*
  What Teak keeps with a table besides its trees: which tree belongs to which index, and whether the index counts.

    "Teak", version 2 (5 bytes) | for each tree but the first, which has the rows: hash of the index's name (8, little-endian) | flags (1)

  Indexes are known by name, not by place: after a crash in the middle of an ALTER the server may have the definition from before it
  while the engine has trees for what was to come, and the server orders its keys anew with each ALTER.
*/
#ifndef TEAK_TABLE_META_H
#define TEAK_TABLE_META_H

#include "server.h"
#include "teak_ffi.h"
#include <vector>

namespace teak {

class TableMeta {
  public:
    struct Index {
        ulonglong name; /* see name_of */
        bool disabled;  /* rows have no entries in it */
    };

    TableMeta() = default;
    /* Of a new table. */
    explicit TableMeta(const TABLE* table);
    /* False: these are no metadata that this build knows. */
    bool parse(teak_bytes bytes);
    std::vector<uchar> encode() const;

    static ulonglong name_of(const KEY& key);
    /* The tree of an index, from 1; 0: there is none. */
    uint32_t tree_of(const KEY& key) const;

    std::vector<Index> indexes; /* of the trees from 1 on */
};

} // namespace teak
#endif
