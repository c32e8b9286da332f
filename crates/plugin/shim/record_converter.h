/*
  Records of a table made into records of the one that ALTER TABLE makes of it.

  For columns that keep their bytes: those that stay, go, come, change places, or may be NULL no longer, or may from now
  on. Each is followed by the server's list of what it was before, as in layout_maker.h. Others are left to the server
  (field_converter.h).
*/
#ifndef TEAK_RECORD_CONVERTER_H
#define TEAK_RECORD_CONVERTER_H

#include "field_converter.h"
#include "row_codec.h"

namespace teak {

/* Whether some values are converted. Then all is told as a copy tells it: NULL where it may not be any more, dates that
   sql_mode does not allow, CHECK constraints that are not met. */
bool converts_some(TABLE* altered, List<Create_field>& columns);

class RecordConverter {
  public:
    /* False: some column cannot be converted. The defaults of new columns are evaluated here, once for all rows.
       Virtual columns are taken over only if `computed`, else they are nobody's. Columns that do not keep their bytes
       are added to `others`. */
    bool init(const TABLE* now, TABLE* altered, List<Create_field>& columns, bool computed, FieldConverter* others);
    /* BLOBs are not copied: the two have the same. False: a column is NULL that may not be. */
    bool convert(const uchar* from, uchar* to) const;
    /* The first column of the altered table that may not be NULL, and is in this record; nullptr: there is none. */
    const Field* refused(const uchar* from) const;

  private:
    struct Run {
        uint from, to, bytes;
    };
    struct Null {
        uint from_offset, to_offset;
        uchar from_mask, to_mask; /* 0: never NULL */
        const Field* to;
        uint instead, instead_bytes; /* what the blank record has for NULL; 0: nothing */
        bool is_refused() const { return !to_mask && !instead_bytes; }
        bool is_set(const uchar* from) const { return from_mask && from[from_offset] & from_mask; }
    };
    void keep(const TABLE* now, const Field* before, const TABLE* altered, const Field* after);

    std::vector<uchar> blank_; /* a record of defaults, and of what is to be there for NULL */
    std::vector<Run> runs_;
    std::vector<Null> nulls_;
};

} // namespace teak
#endif
