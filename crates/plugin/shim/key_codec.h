/*
  Index keys as bytes that memcmp orders.

  Responsible for the encoding of one index: from a record or from the server's key tuple to a key, and back for the
  parts that can be restored. Knows types and collations; knows nothing of rows, trees or transactions.

  A key is its parts one after the other. Each part delimits itself, so "begins with the encoded parts" means "equal in
  these parts":

    [marker 00 = NULL, 01 = value]   only for nullable columns; a NULL has nothing behind it
    body, by kind:
      integer   n bytes, big-endian, sign bit flipped if signed
      raw       n bytes as in the record (DECIMAL, DATETIME(n), TIMESTAMP(n), TIME(n), YEAR, BIT, BINARY(n), UUID, INET)
      float     big-endian IEEE with the sign bit flipped, negative ones complemented; -0 as 0
      binary    VARBINARY, BLOB prefix: bytes, 00 as 00 01, closed by 00 00
      string    for each level of the collation all its weights, in units of u bytes (u = length of the space's
                weight), space as below
      weights   in tables with KeyEncoding::CutWeights, collations of several levels: as many weights as the column has
                characters, fixed size

  A string under PAD SPACE loses its trailing spaces; the end is the space's weight and 02; a space inside is followed
  by 01 if what comes behind its run is smaller than a space, else by 03. So the end compares with any other weight like
  the endless spaces that the collation imagines. Under NOPAD the special unit is zero (followed by 01 inside and by 00
  at the end), as for binary; but of several levels only the first is compared without padding (and all of a CHAR). The
  two old Czech collations, whose levels follow each other without a gap, are written like NOPAD after the trailing
  spaces are gone.

  All bytes of a DESC part, its marker included, are complemented.
*/
#ifndef TEAK_KEY_CODEC_H
#define TEAK_KEY_CODEC_H

#include "server.h"
#include "teak_ffi.h"
#include <vector>

namespace teak {

/* What follows the special unit at the end of a part: of a binary one or one under NOPAD, and under PAD SPACE. */
constexpr uchar kEndZero = 0, kEndSpaces = 2;

/* How the keys of a table are encoded; stands in its metadata (table_meta.h). */
enum class KeyEncoding : uint8_t {
    CutWeights = 1, /* until 2026-11: what does not fit is cut, so that different texts may have one key */
    AllWeights = 2, /* until 2026-11: prefixes of columns that are no BLOBs are taken for the columns */
    Prefixes = 3    /* of tables with such keys; of others it would be the same */
};
/* Of new tables, where it makes a difference. */
constexpr KeyEncoding kNewestKeys = KeyEncoding::Prefixes;

enum class PartKind : uint8_t { Integer, Raw, Float, Binary, String, Weights };

/* One column of one key: where it is in a record and how it is encoded. */
struct KeyPartCodec {
    PartKind kind;
    bool is_signed; /* Integer */
    bool descending;
    bool prefix;     /* of a column: cannot give the column back; never of one that is taken for the column */
    bool restorable; /* the encoded bytes give the column back */
    bool is_blob;
    uint8_t length_bytes; /* VARCHAR 1 or 2, BLOB 1..4, else 0: what precedes the data in a record */
    struct Level {
        uint flags;         /* what strnxfrm is asked for */
        bool padded;        /* compared as if it went on with spaces */
        uint8_t special[4]; /* the unit that needs an escape */
    };
    uint8_t unit;   /* String: bytes of one weight */
    uint8_t levels; /* String: how many there are */
    Level level[MY_STRXFRM_NLEVELS];
    uint level_size; /* String: bytes of one level's weights at most */
    bool pad_space;  /* String: spaces at the end do not count */
    bool by_codes;   /* String: the weights are the text's bytes, but for characters of one byte */
    bool outdated;   /* an earlier KeyEncoding has less of it than the collation compares, or takes it for the column */
    uint fieldnr;    /* index into table->field */
    uint offset;     /* of the column in a record */
    uint null_offset;
    uint8_t null_mask; /* 0: NOT NULL */
    uint length;       /* bytes of data at most (the key part's length) */
    uint column_bytes; /* pack_length of the whole column */
    uint characters;   /* String: characters at most; 0 = no cut needed */
    uint fixed_size;   /* encoded size if it is always the same, else 0 (marker not included) */
    uint max_size;     /* encoded size at most, marker included */
    CHARSET_INFO* charset;

    bool is_null(const uchar* record) const { return null_mask != 0 && (record[null_offset] & null_mask) != 0; }
    /* The column's data in a record, without the record's own length bytes. */
    const uchar* data(const uchar* record, size_t* length_of_data) const;
    /* Whether the column differs between two records. */
    bool differs(const uchar* a, const uchar* b) const;
};

/* Of a String, of which the length and the collation are known: what its collation's levels are like. False: a
   collation with longer weights than keys can hold. */
bool set_levels(KeyPartCodec* part);

/* Of collations in which a text has the same bytes (keeps_bytes): whether it has the same weights, too. That is so
   where they are one, or have one name, for utf8mb3 and for utf8mb4; but not where weights are the characters' codes,
   of as many bytes as the greatest takes. */
bool has_same_weights(const CHARSET_INFO* from, const CHARSET_INFO* to);

/* Whether a key has a column whole. Not by the key's own field, which of a prefix is as short as that. */
inline bool is_whole(const TABLE* table, const KEY_PART_INFO& part) {
    const Field* const column = table->field[part.fieldnr - 1];
    return !(column->flags & BLOB_FLAG) && column->key_length() == part.length;
}

class KeyCodec {
  public:
    /* Adds the first `parts` parts of a key. False: a type that keys cannot hold. */
    bool add_parts(const TABLE* table, const KEY* key, uint parts, KeyEncoding encoding);
    /* Adds one part that is already described (of the primary key). */
    void add_part(const KeyPartCodec& part) { parts_.push_back(part); }
    /* To be called once, when all parts are there. */
    void finish();

    const std::vector<KeyPartCodec>& parts() const { return parts_; }
    size_t max_size() const { return max_size_; }
    /* Size of a key if it is always the same, else 0. */
    size_t fixed_size() const { return fixed_size_; }

    /* The first `count` parts of the record's key; `to` has room for max_size(). Returns the end. */
    uchar* encode_record(uchar* to, const uchar* record, uint count) const {
        return one_int_.is_it && count ? put_int(to, record + one_int_.offset) : encode_columns(to, record, count);
    }
    /* True if one of the first `count` columns is NULL. */
    bool has_null(const uchar* record, uint count) const;
    /* The key from the server's tuple of `tuple_length` bytes; `parts_done` counts the parts, `has_null` tells of a
       NULL among them. */
    uchar* encode_tuple(uchar* to, const uchar* tuple, uint tuple_length, uint* parts_done, bool* has_null) const {
        if (!one_int_.is_it || tuple_length < 4) return encode_values(to, tuple, tuple_length, parts_done, has_null);
        *parts_done = 1;
        *has_null = false;
        return put_int(to, tuple);
    }

    /* The record's columns as a tuple of the server's, in whose form all keys have tuple_size() bytes: texts are
       followed by zeros. Not for keys with prefixes of BLOBs, nor with columns that may be NULL. */
    void copy_columns(uchar* to, const uchar* record) const;
    size_t tuple_size() const;

    /* Whether the key is one INT, which `decode_int` restores. */
    bool is_int() const { return one_int_.is_it; }
    bool decode_int(teak_bytes key, uchar* record) const {
        if (key.len < 4) return false;
        int4store(record + one_int_.offset, __builtin_bswap32(uint4korr(key.data)) ^ one_int_.flip);
        return true;
    }

    /* Behind the part that begins at `from`; nullptr if the bytes are not an encoded part. */
    static const uchar* skip_part(const KeyPartCodec& part, const uchar* from, const uchar* end);
    /*
      Restores one part into the record: its NULL bit, and its value if it is restorable. Returns behind it, nullptr if
      malformed. `behind`: where the part ends unless it is NULL, if that is known: then it need not be looked for.
    */
    static const uchar* decode_part(const KeyPartCodec& part, const uchar* from, const uchar* end, uchar* record,
                                    const uchar* behind = nullptr);

  private:
    uchar* encode_body(const KeyPartCodec& part, uchar* to, const uchar* data, size_t length) const;
    uchar* encode_columns(uchar* to, const uchar* record, uint count) const;
    uchar* encode_values(uchar* to, const uchar* tuple, uint tuple_length, uint* parts_done, bool* has_null) const;
    uchar* put_int(uchar* to, const uchar* value) const {
        int4store(to, __builtin_bswap32(uint4korr(value) ^ one_int_.flip));
        return to + 4;
    }

    std::vector<KeyPartCodec> parts_;
    mutable std::vector<uchar> weights_; /* scratch: a codec belongs to one handler */
    size_t max_size_ = 0;
    size_t fixed_size_ = 0;
    /* The most frequent key by far: one INT that is never NULL, ascending. */
    struct OneInt {
        bool is_it = false;
        uint32_t flip = 0; /* the sign's bit, if it has one */
        uint offset = 0;   /* in a record */
    };
    OneInt one_int_;
};

} // namespace teak
#endif
