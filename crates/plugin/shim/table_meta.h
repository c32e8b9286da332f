/*
  What Teak keeps with a table besides its trees: which definition it has, which tree belongs to which index, and
  whether the index counts.

    "Teak", version 3 (5 bytes) | the definition's version (16) | the KeyEncoding (1) | for each tree but the first,
    which has the rows: hash of the index's name (8, little-endian) | flags (1)

  Version 4 is that of a table whose tablespace was discarded: the same otherwise. Version 5 is that of a table with row
  layouts: between the encoding and the indexes are the number of these (2, little-endian), and behind them are the
  layouts (row_layout.h). KeyEncoding::Prefixes is that of tables that were made with, or given, a key that has a prefix
  of a column that is no BLOB. So a build from before layouts refuses such a table, and reads all others. Version 2 had
  neither the definition's version nor the encoding, which is CutWeights there. The definition's version is the server's
  (TABLE_SHARE::tabledef_version), new with each CREATE and ALTER; zeros where none is known. By it the server's DDL
  recovery learns whether an ALTER in place was committed (check_version).

  Indexes are known by name, not by place: after a crash in the middle of an ALTER the server may have the definition
  from before it while the engine has trees for what was to come, and the server orders its keys anew with each ALTER.
*/
#ifndef TEAK_TABLE_META_H
#define TEAK_TABLE_META_H

#include "key_codec.h"
#include "row_layout.h"
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
    /* From now on the table has the definition of `table`. */
    void set_definition(const TABLE* table);
    bool has_definition(const LEX_CUSTRING& version) const;
    /* False: these are no metadata that this build knows. */
    bool parse(teak_bytes bytes);
    std::vector<uchar> encode() const;

    static ulonglong name_of(const KEY& key);
    /* Whether builds from before it was possible must not read the table: rows of layouts, keys with prefixes. */
    bool is_guarded() const { return !layouts.empty() || encoding == KeyEncoding::Prefixes; }
    /* The tree of an index, from 1; 0: there is none. */
    uint32_t tree_of(const KEY& key) const;

    std::vector<Index> indexes; /* of the trees from 1 on */
    uchar definition[MY_UUID_SIZE] = {};
    KeyEncoding encoding = KeyEncoding::AllWeights;
    bool discarded = false; /* DISCARD TABLESPACE, or an import that has not come to its end: no rows, no layouts */
    RowLayouts layouts;
};

} // namespace teak
#endif
