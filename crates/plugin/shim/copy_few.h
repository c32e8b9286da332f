/*
  Copies of some bytes, without the call that memcpy is when their number is not known.
*/
#ifndef TEAK_COPY_FEW_H
#define TEAK_COPY_FEW_H

#include "server.h"
#include <string.h>

namespace teak {

/* memcpy for a few bytes whose number is not known when this is compiled. */
inline void copy_few(uchar* to, const uchar* from, size_t n) {
    if (n > 16) {
        memcpy(to, from, n);
    } else if (n >= 8) {
        memcpy(to + n - 8, from + n - 8, 8);
        memcpy(to, from, 8);
    } else if (n >= 4) {
        memcpy(to + n - 4, from + n - 4, 4);
        memcpy(to, from, 4);
    } else if (n) {
        to[n - 1] = from[n - 1];
        to[n / 2] = from[n / 2];
        to[0] = from[0];
    }
}

} // namespace teak
#endif
