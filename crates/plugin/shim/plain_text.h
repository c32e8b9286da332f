/*
  Text that its collation's weights give back.

  An index holds the weights of a text, from which the text itself does not follow: 'a' and 'A' have the same. Most
  texts are the one that one would guess, small letters only, or that one with some capitals. This class knows, for one
  part of a key, what is guessed for each weight, tells whether a column is what would be guessed but for capitals, says
  which letters these are, and makes the text again. An entry whose texts are all so needs no images of them
  (index_codec.h).

  Only text in ASCII, and only under collations that give each of its characters one weight, of one byte or of two with
  a leading zero: those of 8 bits, and utf8mb3_general_ci and utf8mb4_general_ci. Nothing else is guessed.
*/
#ifndef TEAK_PLAIN_TEXT_H
#define TEAK_PLAIN_TEXT_H

#include "key_codec.h"

namespace teak {

class PlainText {
  public:
    PlainText() = default;
    explicit PlainText(const KeyPartCodec& part);

    enum class Form {
        Other,   /* not to be guessed */
        Guessed, /* what restore() makes of its key */
        Capitals /* that, but for letters that are capital */
    };

    /* What the column of the record is, which is not NULL. */
    Form form(const uchar* record) const;
    /* Size of what pack_capitals() writes: a bit for each character up to the last that is no space. */
    size_t capitals_size(const uchar* record) const;
    /* Says which letters of the column are capital; returns the end. */
    uchar* pack_capitals(uchar* to, const uchar* record) const;
    /*
      Sets the column from the part that begins at `from`. `*capitals`, if not NULL, says which letters are capital and
      is set to the end of that. False if malformed. Not for a NULL.
    */
    bool restore(const uchar* from, const uchar* end, const uchar** capitals, const uchar* capitals_end,
                 uchar* record) const;

  private:
    /* What was restored last: entries that follow each other in an index often have the same text. */
    struct Memory {
        std::vector<uchar> part, capitals, column;
        size_t length = 0; /* of the text without spaces at its end */
    };

    /* The column's text without spaces at its end. */
    const uchar* trimmed(const uchar* record, size_t* n) const;
    bool is_remembered(const uchar* from, const uchar* end, const uchar* capitals, const uchar* capitals_end) const;
    /* Writes the text of the part whose body begins at `from`, in small letters; nullptr if malformed, else the end. */
    const uchar* guess(const uchar* from, const uchar* end, uchar* text, size_t* n) const;

    bool guessable_ = false;
    KeyPartCodec part_{};
    Form forms_[256] = {};    /* of each byte of text */
    uchar guess_[256] = {};   /* by the last byte of the weight */
    uchar capital_[256] = {}; /* likewise; what is guessed, where there is no capital */
    uchar upper_[256] = {};   /* of each byte that is guessed, the capital */
    mutable Memory last_;     /* a codec belongs to one handler */
};

} // namespace teak
#endif
