/*
  Reading rows of an older layout: into a record of the table as it is now.

  Made once for each older layout when a table is opened. Knows where each column is in such a row and in a record;
  columns that the table no longer has are passed by, those that came later have the value that the statement gave them
  which added them.
*/
#ifndef TEAK_ROW_TRANSLATION_H
#define TEAK_ROW_TRANSLATION_H

#include "row_layout.h"
#include "teak_ffi.h"

namespace teak {

struct ColumnCodec;

class RowTranslation {
  public:
    RowTranslation() = default;
    RowTranslation(RowTranslation&&) = default;
    /* Points into itself. */
    RowTranslation(const RowTranslation&) = delete;
    /* `columns` are the table's, in the order of the newest layout, and live longer; `null_bytes` those of a record
       without any row's values. False: rows of the layout cannot be read so. */
    bool init(const RowLayouts& layouts, const RowLayout& from, const std::vector<ColumnCodec>& columns,
              const std::vector<uchar>& null_bytes);
    /*
      `row` without its head; its null bits take so many bytes. `blobs`: room for the row's large values, as long as the
      record is. Only variable columns in `wanted` are filled (nullptr: all). False if the row is malformed. The record
      may point into this.
    */
    bool unpack(teak_bytes row, size_t null_bytes, uchar* record, uchar* blobs, const MY_BITMAP* wanted) const;
    /* Bytes of the null bits, if all rows of the layout have as many. */
    size_t null_bytes() const { return null_bytes_; }

  private:
    /* Fixed columns that are side by side in the row and in the record. One that is gone is by itself, and so is an
       integer that has become wider. */
    struct Run {
        enum Kind : uint8_t { Copied, Gone, Signed, Unsigned } kind;
        uint8_t wider; /* bytes in the record */
        uint length, offset;
    };
    struct Variable {
        LayoutColumn from;
        const ColumnCodec* to; /* nullptr: gone */
    };
    struct NullBit {
        uint16_t from;
        uchar mask;
        uint offset;
    };
    struct Default {
        uint offset;
        std::vector<uchar> bytes; /* as in a record */
    };
    void add_fixed(const LayoutColumn& from, const ColumnCodec* to);
    bool add_default(const RowLayouts& layouts, const LayoutColumn& column, const ColumnCodec& to);

    std::vector<Run> runs_;
    std::vector<Variable> variable_;
    std::vector<NullBit> nulls_;
    std::vector<Default> defaults_;
    std::vector<std::vector<uchar>> large_defaults_; /* what BLOBs among them point to */
    std::vector<uchar> record_nulls_;
    size_t null_bytes_ = 0, runs_length_ = 0;
};

} // namespace teak
#endif
