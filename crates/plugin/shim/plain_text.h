/*
  Text that its collation's weights give back.

  An index holds the weights of a text, from which the text itself does not follow: 'a' and 'A' have the same. Most texts are the one that
  one would guess: small letters only. This class knows, for one part of a key, what is guessed for each weight, tells whether a column is
  what would be guessed, and guesses it. An entry whose texts are all so needs no images of them (index_codec.h).

  Only text in ASCII, and only under collations that give each of its characters one weight, of one byte or of two with a leading zero: those
  of 8 bits, and utf8mb3_general_ci and utf8mb4_general_ci. Nothing else is guessed.
*/
#ifndef TEAK_PLAIN_TEXT_H
#define TEAK_PLAIN_TEXT_H

#include "key_codec.h"

namespace teak {

class PlainText {
  public:
    PlainText() = default;
    explicit PlainText(const KeyPartCodec& part);

    /* Whether the column of the record, which is not NULL, is what restore() would make of its key. */
    bool is(const uchar* record) const;
    /* Sets the column from the part that begins at `from`; false if malformed. Not for a NULL. */
    bool restore(const uchar* from, const uchar* end, uchar* record) const;

  private:
    bool guessable_ = false;
    KeyPartCodec part_{};
    bool plain_[256] = {};  /* bytes of text that are guessed right */
    uchar guess_[256] = {}; /* by the last byte of the weight */
};

} // namespace teak
#endif
