/*
  How one table's keys and rows are laid over its trees: the primary key, and for each index the key and value of an
  entry.

  Puts KeyCodec and ColumnCodec together as teak_ffi.h describes the trees:

    non-unique entry    key = index columns, then those primary key columns that the index does not have
                        value = images
    unique entry        key = index columns; if one is NULL, then the primary key
                        value = length (2, LE), primary key, images
    images              columns of the index and of the primary key that the key bytes do not give back (collated text,
                        floats), each as in a row, NULLs left out. Before them a byte whose bit i is set if column i of
                        them, of the first eight, is text that can be guessed from the key (plain_text.h) and left out,
                        too. If letters of such texts are capital, all of them have a bit for each character behind the
                        images. Nothing at all if no image is left and no letter is capital.
*/
#ifndef TEAK_INDEX_CODEC_H
#define TEAK_INDEX_CODEC_H

#include "key_codec.h"
#include "plain_text.h"
#include "row_codec.h"

namespace teak {

constexpr size_t kRowIdBytes = 8;

/* The key of the row tree: the declared primary key or a hidden row id. */
class PrimaryCodec {
  public:
    bool init(const TABLE* table, KeyEncoding encoding);
    KeyEncoding encoding() const { return encoding_; }
    bool hidden() const { return hidden_; }
    size_t max_size() const { return hidden_ ? kRowIdBytes : key_.max_size(); }
    const KeyCodec& key() const { return key_; }
    /* Not for a hidden key. */
    size_t encode(uchar* to, const uchar* record) const {
        return static_cast<size_t>(key_.encode_record(to, record, parts()) - to);
    }
    uint parts() const { return static_cast<uint>(key_.parts().size()); }
    /* A row's id for the server, which takes it for so many bytes, whatever there are. It is the key behind its length
       (2, LE) and followed by zeros; the key alone where all have the same size; or the key's columns, where those are
       shorter than their weights may be. Vector indexes keep ids on disk (since MariaDB 11.8). */
    size_t id_size() const;
    /* The size of all keys if it is the same. */
    size_t fixed_size() const { return hidden_ ? kRowIdBytes : key_.fixed_size(); }
    bool ids_are_columns() const { return ids_are_columns_; }
    /* Whether they are ordered as the keys are. */
    bool ids_are_keys() const { return !ids_are_columns_ && fixed_size(); }
    void make_id(uchar* to, teak_bytes pk) const;
    void make_id(uchar* to, const uchar* record) const;
    /* The key that an id stands for, which may be encoded to `scratch` of max_size() bytes. */
    teak_bytes of_id(const uchar* id, uchar* scratch) const;
    /* Fills the columns that the key restores; false if malformed. */
    bool decode(teak_bytes pk, uchar* record) const {
        return key_.is_int() ? key_.decode_int(pk, record) : decode_parts(pk, record);
    }
    const std::vector<bool>& restored_columns() const { return restored_; }
    /* Whether rows lose what their keys have only a prefix of: KeyEncoding::AllWeights, of VARBINARY and BINARY. */
    bool cuts_columns() const { return cuts_columns_; }
    bool changed(const uchar* old_record, const uchar* new_record) const;

  private:
    bool decode_parts(teak_bytes pk, uchar* record) const;
    KeyCodec key_;
    std::vector<bool> restored_;
    KeyEncoding encoding_ = KeyEncoding::AllWeights;
    bool hidden_ = true;
    bool decodes_ = false;
    bool cuts_columns_ = false;
    bool ids_are_columns_ = false;
};

class IndexCodec {
  public:
    bool init(const TABLE* table, uint index, const PrimaryCodec* primary);
    /* Which tree of the table has the entries; known when the table is open. */
    void set_tree(uint32_t tree) { tree_ = tree; }
    bool unique() const { return unique_; }
    uint user_parts() const { return user_parts_; }
    const KeyCodec& key() const { return key_; }
    /* Whether restored columns are what rows have: not if an earlier encoding took their prefixes for them. */
    bool gives_back() const { return gives_back_; }
    /* Whether one of these columns is known by a prefix only. */
    bool lacks_any(const MY_BITMAP* columns) const { return !unknown_.empty() && has_unknown(columns); }
    /* Columns of the key that no row has: the server computes them. */
    const std::vector<uint>& virtual_columns() const { return virtual_columns_; }
    size_t max_key_size() const { return key_.max_size() + primary_->max_size(); }

    /* Builds the entry of a record; `pk` is its row's key. False: memory is out. */
    bool encode(const uchar* record, teak_bytes pk, Buffer* key, Buffer* value, teak_entry* out) const;
    /* Whether any column of the entry differs. */
    bool changed(const uchar* old_record, const uchar* new_record) const;
    /* The row's key. May point into the entry or into `scratch`. len 0: malformed, or more than `room`. */
    teak_bytes primary_of(const teak_entry_view& entry, uchar* scratch, size_t room) const {
        if (unique_ || !tail_size_) return find_primary(entry, scratch, room);
        if (entry.key.len < tail_size_) return {nullptr, 0};
        return {entry.key.data + entry.key.len - tail_size_, tail_size_};
    }
    /* Fills all columns of the key. Of one whose prefix it is the entry knows nothing: it is given no text, so that who
       compares whole keys does not follow the pointer of a BLOB that nobody has set. */
    bool restore(const teak_entry_view& entry, uchar* record) const {
        return numbers_.empty() ? restore_parts(entry, record) : restore_numbers(entry, record);
    }
    /* Whether two values of one entry say the same, if in other bytes. The records are scratch memory, all zeros. */
    bool says_the_same(teak_bytes key, teak_bytes a, teak_bytes b, uchar* record_a, uchar* record_b) const;
    /* Where the first `count` parts of a key end; nullptr if malformed. */
    const uchar* end_of_parts(teak_bytes key, uint count) const;

  private:
    struct Source { /* where a primary key part is within the key */
        uint part;
        bool flip; /* ascending there, descending here */
    };
    struct Image { /* a column that the key's bytes do not give back */
        ColumnCodec column;
        uint part; /* of the key, where its text may be guessed from; UINT_MAX: none */
        PlainText text;
    };
    /* What an entry's images are. */
    struct Guesses {
        uchar left_out = 0;       /* a bit for each image that can be guessed */
        bool others = false;      /* there are images that cannot */
        size_t capitals_size = 0; /* of all that say which letters are capital; 0 if none is */
    };
    struct Number { /* an integer of the key */
        uint offset, null_offset;
        uint8_t null_mask, length;
        uint8_t flip, sign; /* of all its bytes, and then of the first: what the key has the other way round */
    };
    void find_numbers();
    bool has_unknown(const MY_BITMAP* columns) const;
    teak_bytes find_primary(const teak_entry_view& entry, uchar* scratch, size_t room) const;
    bool restore_numbers(const teak_entry_view& entry, uchar* record) const;
    bool restore_parts(const teak_entry_view& entry, uchar* record) const;
    Guesses guesses(const uchar* record) const;
    bool restore_images(const uchar* v, const uchar* v_end, const uchar* const* starts, const uchar* end,
                        uchar* record) const;

    static constexpr size_t kUnknown = SIZE_MAX;

    const PrimaryCodec* primary_ = nullptr;
    KeyCodec key_;
    bool gives_back_ = true;
    std::vector<Image> images_;
    std::vector<uint> virtual_columns_;
    std::vector<KeyPartCodec> unknown_; /* prefixes of columns that the entry does not give back */
    std::vector<Number> numbers_;       /* if entries have nothing but such */
    std::vector<Source> pk_sources_;
    std::vector<size_t> behind_; /* for each part: bytes of the key behind it; kUnknown if that differs */
    uint32_t tree_ = 0;
    uint user_parts_ = 0;
    size_t tail_size_ = 0;    /* primary key as the fixed-size end of the key; 0 = look for its parts */
    bool tail_is_pk_ = false; /* the tail parts are exactly the primary key */
    bool unique_ = false;
};

} // namespace teak
#endif
