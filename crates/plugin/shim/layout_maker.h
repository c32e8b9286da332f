/*
  What ALTER TABLE makes of a table's row layouts: whether the rows may stay as they are, and by which layout new ones
  are written then.

  Columns are followed by the server's list of what each was before, never by name or place: a column that goes and
  another of its type that comes in its place are two.
*/
#ifndef TEAK_LAYOUT_MAKER_H
#define TEAK_LAYOUT_MAKER_H

#include "row_codec.h"

namespace teak {

/* Whether entries of an index have the column, or a part of it. */
bool is_in_index(const TABLE* table, const Field* field);

/* The value that all rows have in a new column: in the altered table's record. False: they may have different ones. */
bool evaluate_default(Field* field);

struct LayoutMaker {
    /* Of the table as it is and as it is to be: how rows are packed, and which columns their keys restore. */
    const RowCodec& now;
    const std::vector<bool>& in_key_now;
    const RowCodec& then;
    const std::vector<bool>& in_key_then;
    const RowLayouts& layouts; /* as they are */

    /* Rows that are packed as now and as then are the same bytes. */
    bool leaves_rows(List<Create_field>& columns) const;
    /*
      The layouts with the altered definition's behind them. The defaults of new columns are evaluated here, once for
      all rows. False: rows of before could not be read, and have to be written anew; `reason` may say why.
    */
    bool make(const TABLE* table, const TABLE* altered, List<Create_field>& columns, RowLayouts* out,
              const char** reason) const;

  private:
    /* Where among the stored columns of now the column is; SIZE_MAX: nowhere. */
    size_t place_of(const Field* field) const;
    bool keep(const TABLE* table, const Field* field, const LayoutColumn& before, LayoutColumn* mine) const;
    bool has_room(const RowLayouts& made, const char** reason) const;
};

} // namespace teak
#endif
