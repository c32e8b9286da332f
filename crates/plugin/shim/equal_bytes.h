/*
  Which bytes of a text LIKE takes for equal, under one collation.

  Found out once for each collation by asking its own `wildcmp` about each pair, and kept as long as the plugin is
  there. In character sets of one byte that is all there is to know. In the others it is known of ASCII only: texts with
  other bytes are matched in ways that nothing here tells, but for collations that compare the bytes themselves.
*/
#ifndef TEAK_EQUAL_BYTES_H
#define TEAK_EQUAL_BYTES_H

#include "server.h"
#include <vector>

namespace teak {

class EqualBytes {
  public:
    /* No byte that is known of. */
    static constexpr uint16_t kUnknown = 256;

    /* nullptr: nothing is known of the collation. Lasts as long as the plugin. */
    static const EqualBytes* of(CHARSET_INFO* collation);

    /* The least of the bytes that are equal to this one; kUnknown for one that is not ASCII, where it matters. */
    uint16_t least(uchar byte) const { return least_[byte]; }
    /* Whether a text is only known of if all its bytes are ASCII. */
    bool only_ascii() const { return only_ascii_; }

  private:
    /* False: what `wildcmp` says is no such equality. */
    bool find(CHARSET_INFO* collation);
    bool is_equality(const std::vector<bool>& equal, uint known);

    uint16_t least_[256];
    bool only_ascii_ = false;
};

} // namespace teak
#endif
