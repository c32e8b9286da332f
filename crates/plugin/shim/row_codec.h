/*
  Rows as bytes: which columns are stored, and how a record becomes a packed row and back.

  Knows the layout of the server's records; knows nothing of keys' order or of trees. Computed once when a table is
  opened.

  A packed row:

    version (1) | columns of the table when it was written (2, LE) | the record's null bytes |
    fixed runs | variable columns

  Version 2 has the number of the row's layout (2, LE) in place of that of columns, and is written once the table has
  layouts (row_layout.h); rows of another than the newest are read by row_translation.h.

  A fixed run is a stretch of fixed-length stored columns that lie side by side in the record: one memcpy. Variable
  columns follow in the table's order, those that are NULL left out:
    VARCHAR        the record's own 1 or 2 length bytes, then that many bytes
    BLOB           the record's own 1 to 4 length bytes, then the bytes
    CHAR(n), multi-byte   2 length bytes (LE), then the text without trailing spaces
  Left out altogether: virtual columns, and columns that the row's key restores.

  The null bytes have a bit for each column that may be NULL, in the table's order, behind the bit that the server keeps
  for itself in tables of fixed length. Virtual columns behind all others (the tail) come and go without a change of any
  row: one that has another number of columns than the table has so many bits more or fewer at the end of its null
  bytes, and those tell nothing.
*/
#ifndef TEAK_ROW_CODEC_H
#define TEAK_ROW_CODEC_H

#include "copy_few.h"
#include "row_translation.h"
#include "server.h"
#include "teak_ffi.h"
#include <vector>

namespace teak {

/* In builds with assertions, bytes that a reader need not fill are such as no row has: whoever looks at them finds out.
 */
#if defined(DBUG_OFF) && !defined(TEAK_POISON)
constexpr bool kPoisons = false;
#else
constexpr bool kPoisons = true;
#endif

/* A buffer that keeps its memory from row to row. */
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { my_free(data_); }
    /* Room for at least n bytes; what was there is lost. nullptr when memory is out. */
    uchar* room(size_t n) {
        if (n > capacity_ || !data_) {
            my_free(data_);
            /* Some more, so that rows of growing size do not allocate each; not half of a huge one. */
            capacity_ = std::max<size_t>(n + std::min<size_t>(n / 2, KEPT_BYTES), 64);
            data_ = static_cast<uchar*>(my_malloc(PSI_NOT_INSTRUMENTED, capacity_, MYF(0)));
            if (!data_) capacity_ = 0;
        }
        return data_;
    }
    /* Gives up what an unusually large row took: a handler lives as long as the server keeps its table open. */
    void give_back_large() {
        if (capacity_ <= 2 * KEPT_BYTES) return;
        my_free(data_);
        data_ = nullptr;
        capacity_ = 0;
    }
    uchar* data() { return data_; }
    size_t capacity() const { return capacity_; }

  private:
    static constexpr size_t KEPT_BYTES = 256 << 10;
    uchar* data_ = nullptr;
    size_t capacity_ = 0;
};

/* A column whose packed length varies, or one that is packed by itself. */
struct ColumnCodec {
    ColumnKind kind;
    ColumnKind kind_in_layout;
    uint8_t length_bytes;
    uint8_t null_mask;
    uint null_offset;
    uint fieldnr;
    uint offset;
    uint bytes; /* pack_length */
    CHARSET_INFO* charset;

    static ColumnCodec of(const TABLE* table, const Field* field);
    bool is_null(const uchar* record) const { return null_mask && (record[null_offset] & null_mask); }
    /* Packed size of a column that is not NULL. */
    size_t packed_size(const uchar* record) const;
    uchar* pack(uchar* to, const uchar* record) const;
    /* Behind the column, nullptr if the bytes are malformed. Blob data is copied to *blobs, which advances. */
    const uchar* unpack(const uchar* from, const uchar* end, uchar* record, uchar** blobs) const;
    const uchar* skip(const uchar* from, const uchar* end) const;
    /* Whether two records have the same bytes in the column, which is not NULL. */
    bool same(const uchar* a, const uchar* b) const;
    /* Whether what `other` has packed can be unpacked. */
    bool reads(const ColumnCodec& other) const;
    LayoutColumn in_layout(uint16_t id) const;
};

/* Whether every text in `from` is the same bytes in `to`: the same character set, or utf8mb3 in utf8mb4. InnoDB's rule,
   and for its reasons not ascii in latin1 (its bytes above 7f) nor ucs2 in utf16 (surrogates). */
bool keeps_bytes(const CHARSET_INFO* from, const CHARSET_INFO* to);

/* Whether this is one of the types TINYINT to BIGINT. */
bool is_integer(enum_field_types type);

/* The length before a packed value. */
inline size_t packed_length(const uchar* p, uint bytes) {
    if (bytes == 2) return uint2korr(p);
    size_t n = 0;
    for (uint i = 0; i < bytes; i++)
        n |= static_cast<size_t>(p[i]) << (8 * i);
    return n;
}

/* Which columns of a row are asked for, and where these are in it: worked out once, by RowCodec::choose, for all rows
   that are read with the same set of columns. */
class ChosenColumns {
    friend class RowCodec;
    struct Copy {
        uint from, to, length; /* from: behind the null bytes of a row */
    };
    struct Variable {
        const ColumnCodec* column;
        bool wanted; /* else it is passed over on the way to one that is */
    };
    bool is_of(const MY_BITMAP* wanted) const {
        const size_t words = wanted ? no_words_in_map(wanted) : 0;
        return known_ && words_.size() == words &&
               (words == 1 ? words_[0] == wanted->bitmap[0]
                           : words == 0 || !memcmp(words_.data(), wanted->bitmap, words * sizeof words_[0]));
    }
    bool known_ = false;
    bool blobs_ = false;               /* one is wanted */
    std::vector<my_bitmap_map> words_; /* of the set; none: all columns */
    std::vector<Copy> copies_;
    std::vector<Variable> variable_;
};

class RowCodec {
  public:
    /* `in_key[i]`: column i is restored from the row's key. False: these are not the table's layouts. */
    bool init(const TABLE* table, const std::vector<bool>& in_key, const RowLayouts& layouts);
    size_t packed_size(const uchar* record) const;
    size_t pack(uchar* to, const uchar* record) const;
    /* Only variable columns in `wanted` are filled (nullptr: all). False if the row is malformed. If all are wanted the
       record can be compared with another: where a column is NULL the server compares bytes nevertheless, and finds
       those of its default, as in InnoDB. */
    bool unpack(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const;
    /* What `chosen` is to be for unpack_chosen. It holds as long as the codec is not made anew. */
    void choose(const MY_BITMAP* wanted, ChosenColumns* chosen) const {
        if (!chosen->is_of(wanted)) choose_anew(wanted, chosen);
    }
    /* `unpack`, for many rows: of columns that are not wanted nothing is filled, whatever their kind, and nothing is
       looked at behind the last that is wanted. */
    bool unpack_chosen(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted,
                       const ChosenColumns& chosen) const {
        if (kPoisons) poison(record);
        if (!is_newest(row)) return unpack(row, record, blobs, wanted);
        const size_t fixed = kHeader + null_bytes_ + runs_length_;
        if (row.len < fixed) return false;
        const uchar* const p = row.data + kHeader;
        copy_few(record, p, null_bytes_);
        if (has_virtual_nulls_) hide_virtual(record);
        for (const ChosenColumns::Copy& copy : chosen.copies_)
            copy_few(record + copy.to, p + null_bytes_ + copy.from, copy.length);
        if (!chosen.variable_.empty() && !unpack_variable(row.data + fixed, row.data + row.len, record, blobs, chosen))
            return false;
        if (!wanted) fill_nulls(record);
        return true;
    }
    /* Has the record say of each column that is stored in the row what no row says. */
    void poison(uchar* record) const;
    /* Whether two records have the same in all columns that are stored in the row. */
    bool same(const uchar* a, const uchar* b) const;
    /* Columns that are the same in `old_record` and in `record` become those of `is`. */
    void take_unchanged(const uchar* old_record, const uchar* is, uchar* record) const;
    /* Whether rows that `other` has packed can be unpacked: ALTER TABLE may leave them as they are. */
    bool reads(const RowCodec& other) const;
    /* Where a column is in the rows of the newest layout. */
    struct Place {
        const ColumnCodec* column;
        size_t at; /* among the variable columns; of a fixed one behind the row's null bytes */
    };
    /* False: rows do not have the column, which is virtual or restored from the key. As long as the codec is not made
       anew. */
    bool find_place(uint fieldnr, Place* place) const;
    /* The bytes of a column in a row, without their length. False: it is NULL, or the row is of an older layout. */
    bool text_of(teak_bytes row, const Place& place, teak_bytes* text) const;
    /* The stored columns, in the table's order. */
    const std::vector<ColumnCodec>& stored() const { return stored_; }
    bool has_layouts() const { return !older_.empty(); }
    /* Whether the row is of the layout that rows are written in. */
    bool is_newest(teak_bytes row) const {
        return row.len >= kHeader && row.data[0] == version_ && uint2korr(row.data + 1) == number_;
    }
    /* The layout that rows are written in, its columns numbered from 1 on. */
    RowLayout layout() const;
    const ColumnTail& tail() const { return tail_; }

  private:
    struct Run {
        uint offset, length;
    };
    static constexpr size_t kHeader = 3;
    void find_tail(const TABLE* table);
    bool find_older(const TABLE* table, const RowLayouts& layouts);
    bool unpack_columns(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const;
    void choose_anew(const MY_BITMAP* wanted, ChosenColumns* chosen) const;
    bool unpack_variable(const uchar* from, const uchar* end, uchar* record, Buffer* blobs,
                         const ChosenColumns& chosen) const;
    void fill_nulls(uchar* record) const;
    /* Virtual columns are NULL until they are computed, as in InnoDB: CHECKSUM TABLE sees those bits. Rows from before
       2026-11-23 have whatever was in the record when they were written. */
    void hide_virtual(uchar* record) const {
        for (uint i = 0; i < null_bytes_; i++)
            record[i] |= static_cast<uchar>(~stored_nulls_[i]);
    }
    const uchar* unpack_other_nulls(teak_bytes row, uchar* record) const;
    bool unpack_older(teak_bytes row, uchar* record, Buffer* blobs, const MY_BITMAP* wanted) const;
    std::vector<Run> runs_;
    std::vector<ColumnCodec> variable_;
    std::vector<ColumnCodec> stored_;   /* all, in the table's order */
    std::vector<ColumnCodec> nullable_; /* those that may be NULL, but for BLOBs */
    const uchar* defaults_ = nullptr;   /* the table's record of them */
    std::vector<uchar> stored_nulls_;   /* of a record's null bytes, what is about them */
    std::vector<RowTranslation> older_; /* by the number of the layout, the newest one's excepted */
    ColumnTail tail_;                   /* of layout 0 */
    uint null_bytes_ = 0, runs_length_ = 0;
    uchar version_ = 0;   /* of rows of the newest layout, */
    uint16_t number_ = 0; /* and what they have behind it */
    bool has_blobs_ = false;
    bool has_virtual_nulls_ = false; /* there are virtual columns that may be NULL */
};

} // namespace teak
#endif
