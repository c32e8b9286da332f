/*
  Row layouts: in which forms the rows of a table lie in its tree.

  A table whose columns were changed without a change of its rows (ALTER TABLE ... ALGORITHM=INSTANT) has rows of
  several layouts. Each row says by which it was written (row_codec.h); what each is like stands in the table's
  metadata (table_meta.h), with what the columns that came later are in the rows from before. Rows are written in the
  newest layout, which the server's definition of the table describes, too; row_translation.h reads the others.

  A column keeps its number (id) through all layouts, whatever its name and place; a number is not given twice.
  Layout 0 is that of rows from before the first such change, which say how many columns the table had instead.

  As bytes, little-endian:

    columns of the table (2), of which before the tail (2), null bits of those (2), 1 if the tail may change (1):
      of layout 0, see row_codec.h
    number of layouts (2), for each: null bytes (2), number of columns (2), for each:
      id (2) | kind (1) | bytes of its length (1) | bytes (4) | place among the null bits (2; ffff: never NULL)
    number of defaults (2), for each: id (2) | 1 if it is NULL (1) | length (4) | the value as in a row of the first
      layout that has the column
*/
#ifndef TEAK_ROW_LAYOUT_H
#define TEAK_ROW_LAYOUT_H

#include "server.h"
#include <vector>

namespace teak {

/* How a column is packed; the numbers are in metadata. Integers are fixed, and told apart in layouts alone. */
enum class ColumnKind : uint8_t { Fixed = 0, Varchar = 1, Blob = 2, PaddedChar = 3, Signed = 4, Unsigned = 5 };

/* A stored column as the rows of a layout have it. */
struct LayoutColumn {
    static constexpr uint16_t kNeverNull = 0xffff;
    uint16_t id;
    ColumnKind kind;
    uint8_t length_bytes; /* before the value */
    uint32_t bytes;       /* Fixed and integers: of the value; PaddedChar: at most; else 0 */
    uint16_t null_bit;    /* its place in the row's null bytes */

    bool is_variable() const {
        return kind == ColumnKind::Varchar || kind == ColumnKind::Blob || kind == ColumnKind::PaddedChar;
    }
    bool may_be_null() const { return null_bit != kNeverNull; }
    bool is_null(const uchar* null_bytes) const {
        return may_be_null() && (null_bytes[null_bit / 8] >> null_bit % 8 & 1);
    }
    bool has_form_of(const LayoutColumn& other) const {
        return kind == other.kind && length_bytes == other.length_bytes && bytes == other.bytes &&
               null_bit == other.null_bit;
    }
    /* Whether values that are packed so can be read as those of `newer`. */
    bool reads_as(const LayoutColumn& newer) const;
};

/* The columns that rows have, in the table's order: those that a row's key restores are not among them. */
struct RowLayout {
    uint16_t null_bytes = 0;
    std::vector<LayoutColumn> columns;

    /* nullptr: rows of this layout do not have the column. */
    const LayoutColumn* find(uint16_t id) const;
    /* The same bytes for the same rows. */
    bool has_form_of(const RowLayout& other) const;
};

/* Which columns are behind all stored ones, in a table whose rows say how many columns there were: see row_codec.h. */
struct ColumnTail {
    uint16_t columns = 0;
    uint16_t base_columns = 0;   /* before the tail */
    uint16_t base_null_bits = 0; /* and the bits of the null bytes that are theirs */
    bool may_change = false;
    /* Bytes of the null bits of a row that was written when the table had `n` columns; SIZE_MAX: there are no such. */
    size_t null_bytes(uint n, size_t of_all) const {
        if (n == columns) return of_all;
        if (!may_change || n < base_columns) return SIZE_MAX;
        return (base_null_bits + n - base_columns + 7u) / 8;
    }
};

class RowLayouts {
  public:
    /* What a column is in rows that do not have it. */
    struct Default {
        uint16_t id;
        bool is_null;
        std::vector<uchar> value; /* packed, unless it is NULL */
    };
    /* Past these ALTER TABLE copies the table, which has one layout then. */
    static constexpr size_t kMost = 64;
    static constexpr size_t kMostBytes = 256 << 10;

    /* All rows are of layout 0, and there is nothing to be said about them. */
    bool empty() const { return layouts.empty(); }
    const RowLayout& newest() const { return layouts.back(); }
    const Default* default_of(uint16_t id) const;
    /* As if the column was packed in the first layout that has it. */
    const LayoutColumn& form_of_default(uint16_t id) const;
    /* The first number that no column had; 0: there is none left. */
    uint16_t next_id() const;
    void encode(std::vector<uchar>* to) const;
    /* False: these are no layouts. */
    bool parse(const uchar* at, const uchar* end);

    ColumnTail tail;
    std::vector<RowLayout> layouts; /* by number; those of the newest, if any, are the table's */
    std::vector<Default> defaults;  /* of columns that the newest has and the first has not */

  private:
    bool fit_together() const;
};

} // namespace teak
#endif
