/*
  Columns of which an ALTER may change the definition alone: what is stored of them stays as it is.
*/
#ifndef TEAK_COLUMN_CHANGE_H
#define TEAK_COLUMN_CHANGE_H

#include "open_table.h"

namespace teak {

/*
  Whether a column may become what `to` says without a change of any row: a wider integer, or a longer text in a
  character set that has the same bytes for it. Where a text's length takes more bytes than before, rows have another
  layout, which entries of indexes have not. A generated column has other values then.
*/
bool converts_in_place(const OpenTable& open, const Field& field, const Column_definition& to);

} // namespace teak
#endif
