/*
  Rows that LIKE turns down, told from their packed bytes.

  A condition `column LIKE 'pattern'` can be true of a row only if the column's text begins as the pattern does, up to
  its first wildcard, and has the longest run of characters that comes behind that. A scan passes over rows whose text
  has not, before anything of them is unpacked; the server looks at all others, with the whole condition. Only what is
  proven is passed over: NULL, rows of older layouts, and texts of which nothing is known (equal_bytes.h) are the
  server's.

  What the server would have found out before it came to the LIKE, in the order of the condition, must have no other
  effect than its result: no warning, no error, no variable set. Behind the first part that may have one nothing counts.
*/
#ifndef TEAK_LIKE_FILTER_H
#define TEAK_LIKE_FILTER_H

#include "equal_bytes.h"
#include "row_codec.h"

namespace teak {

/* What texts have if a pattern matches them: how it begins, and the longest run of characters behind a wildcard. */
class TextSearch {
  public:
    /* False: nothing can be said about texts by it. `padded`: texts may have lost spaces at their end. */
    bool init(CHARSET_INFO* collation, const char* pattern, size_t length, int escape, bool padded);
    /* Whether the pattern cannot match the text. */
    bool rules_out(teak_bytes text) const;

  private:
    static constexpr size_t kPlaces = 16;
    /* A character of the run, and the bytes that it may be. */
    struct Anchor {
        size_t at;
        uchar byte, other;
    };
    void plan_shifts();
    void choose_anchors();
    bool is_run(const uchar* text, size_t at) const;
    bool finds_by_shifts(teak_bytes text) const;
    bool finds_by_anchors(teak_bytes text) const;
    bool finds(teak_bytes text) const;
    bool begins_otherwise(teak_bytes text) const;

    const EqualBytes* equal_ = nullptr;
    std::vector<uint16_t> start_, run_; /* least equal bytes */
    bool has_anchors_ = false;
    Anchor anchors_[2];
    uchar shift_[256]; /* by a text's byte where the run's last would be: how far on to go; 0: it is that */
    uchar again_ = 1;  /* how far if it is that, but the rest differs */
};

class LikeFilter {
  public:
    /* What `condition`, which the server looks at for each row of the table, says of rows of this codec. */
    void set(const Item* condition, const TABLE* table, const RowCodec& rows);
    void clear() { columns_.clear(); }
    bool is_set() const { return !columns_.empty(); }
    /* Whether the condition is not true of the row. */
    bool rules_out(const RowCodec& rows, teak_bytes row) const {
        for (const Column& column : columns_) {
            teak_bytes text;
            if (rows.text_of(row, column.place, &text) && column.search.rules_out(text)) return true;
        }
        return false;
    }

  private:
    struct Column {
        RowCodec::Place place;
        TextSearch search;
    };
    void add(Item_func_like* like, const TABLE* table, const RowCodec& rows);

    std::vector<Column> columns_;
};

} // namespace teak
#endif
