/*
  Which rows of a system-versioned table are history. A foreign key does not see those: they are neither parents nor
  children, and a row that becomes history is deleted for those above and below it.

  Knows where the end of a row is in a record, in a key and in a row. The server puts it into the primary key and into
  each unique index; a table without either has it in its rows alone.
*/
#ifndef TEAK_HISTORY_H
#define TEAK_HISTORY_H

#include "index_codec.h"
#include "table_meta.h"

namespace teak {

/* Where a row of a table says when it ended. */
class RowEnd {
  public:
    /* False: of a kind that is not known. */
    bool init(const TABLE* table);
    bool exists() const { return bytes_ != 0; }
    bool is_history(const uchar* record) const { return bytes_ && memcmp(record + offset_, now_, bytes_) != 0; }
    /* Whether the row, which is `before`, becomes history by becoming `after`. */
    bool ends(const uchar* before, const uchar* after) const { return !is_history(before) && is_history(after); }
    /* Makes the record one of a row that has not ended. */
    void set_now(uchar* record) const { memcpy(record + offset_, now_, bytes_); }

  private:
    static constexpr uint kBytes = 7; /* TIMESTAMP(6) */
    uint offset_ = 0, bytes_ = 0;
    uchar now_[kBytes] = {};
};

/* Whether what follows the first columns of the key is the row's end. */
bool has_end_behind(const TABLE* table, const KEY& key, size_t columns);

/* Of which rows the entries of an index are, or keys of rows, as constraints read a table that they look at. */
class EntryOwner {
  public:
    /* `index`: of the definition `table`; `columns`: so many of its first ones are the constraint's. False: it cannot
       be read. */
    bool init(const TABLE* table, uint index, size_t columns, const TableMeta& meta);
    /* What follows the constraint's columns in the key of each row that is no history; empty if that is not always the
       same: then entries have to be looked at. */
    const std::vector<uchar>& behind() const { return behind_; }
    /* For the engine, as long as this lives where it is; `asks`: history is to be told from other rows. */
    teak_reading reading(bool asks);
    /* Fills all columns that an entry knows. */
    bool restore(const teak_entry_view& entry, uchar* record) const;

  private:
    static teak_bytes primary_of(void* context, teak_entry_view entry);
    static int is_history(void* context, teak_bytes row);

    PrimaryCodec primary_;
    IndexCodec index_;
    RowEnd end_;
    RowCodec rows_; /* if keys do not say it */
    bool by_row_ = false, in_rows_ = false;
    std::vector<uchar> scratch_, record_, behind_;
    Buffer blobs_;
};

} // namespace teak
#endif
