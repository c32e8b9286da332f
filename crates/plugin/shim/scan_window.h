/*
  A cursor's window: entries that a scan, or a look-up, takes out of the engine's block without a call for each. When
  it is opened, what its numbers are and who writes them is told, with a drawing, on top of ffi/window.rs.

  The shim takes from it what it can and asks the engine otherwise: for large values, when the window is used up, and
  when the session has changed something since, which is told by its moment. Every call on the cursor closes it, after
  it has let the cursor catch up.
*/
#ifndef TEAK_SCAN_WINDOW_H
#define TEAK_SCAN_WINDOW_H

#include "copy_few.h"
#include "teak_ffi.h"
#include <stddef.h>
#include <string.h>

namespace teak {

/* Item `i`; false if it is a large value. */
inline bool item_of(const teak_items& items, size_t i, teak_bytes* out) {
    constexpr uint32_t kLarge = 1U << 31;
    if (!items.starts) {
        *out = {items.bytes + i * items.length, items.length};
        return true;
    }
    const uint32_t start = uint4korr(items.starts + 4 * i), end = uint4korr(items.starts + 4 * i + 4);
    *out = {items.bytes + start, (end & ~kLarge) - start};
    return !(start & kLarge);
}

/* The key of an entry of a listing, `whole` or without the prefix. */
inline void listed_key(const teak_listed& entry, teak_bytes* key, bool* whole) {
    constexpr uint32_t kSuffix = 1U << 31;
    *key = {entry.key, entry.key_length & ~kSuffix};
    *whole = !(entry.key_length & kSuffix);
}

/* Finds the next entry's value and its key, `whole` or without the prefix; false: the engine has to be asked. */
inline bool find(const teak_window& window, teak_bytes* key, teak_bytes* value, bool* whole) {
    if (!window.listed) {
        *whole = false;
        return item_of(window.values, window.next, value) && item_of(window.suffixes, window.next, key);
    }
    const teak_listed& entry = window.listed[window.next];
    *value = {entry.value, entry.value_length};
    listed_key(entry, key, whole);
    return true;
}

/*
  Takes the next entry; false if the engine has to be asked. What it takes is readable until the next call on the cursor
  or the next take.
*/
inline bool take(teak_window* window, uint64_t moment, ptrdiff_t step, teak_entry_view* out) {
    if (!window->left || window->moment != moment || window->step != step) return false;
    bool whole;
    if (!find(*window, &out->key, &out->value, &whole)) return false;
    if (!whole) {
        if (out->key.len > window->room) return false;
        copy_few(window->key + window->prefix, out->key.data, out->key.len);
        out->key = {window->key, window->prefix + out->key.len};
    }
    window->next += static_cast<size_t>(step);
    window->left--;
    return true;
}

/* Whether the scan that was just placed has no further entry. */
inline bool is_last(const teak_window* window, uint64_t moment) {
    return window && window->ends && window->moment == moment;
}

/* Whether a few bytes are the same; without the call that memcmp is. */
inline bool same_few(const uchar* a, const uchar* b, size_t n) {
    if (n > 16) return memcmp(a, b, n) == 0;
    if (n >= 8) return uint8korr(a) == uint8korr(b) && uint8korr(a + n - 8) == uint8korr(b + n - 8);
    if (n >= 4) return uint4korr(a) == uint4korr(b) && uint4korr(a + n - 4) == uint4korr(b + n - 4);
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* Whether entry `i` has `key`, which begins with the window's prefix if `has_prefix`. */
inline bool has_key(const teak_window& window, size_t i, teak_bytes key, bool has_prefix) {
    teak_bytes found;
    bool whole = false;
    if (window.listed)
        listed_key(window.listed[i], &found, &whole);
    else
        item_of(window.suffixes, i, &found);
    const size_t skipped = whole ? 0 : window.prefix;
    return (whole || has_prefix) && found.len == key.len - skipped &&
           same_few(found.data, key.data + skipped, found.len);
}

/*
  Takes the entry with `key`, if it is one of the next few of a window for look-ups in a snapshot; false if the engine
  has to be asked. Readable as long as what `take` gives.
*/
inline bool take_equal(teak_window* window, uint64_t moment, teak_bytes key, teak_entry_view* out) {
    constexpr size_t kFew = 8;
    if (!window->left || !window->looks_up || window->moment != moment) return false;
    const bool has_prefix = key.len >= window->prefix && same_few(window->key, key.data, window->prefix);
    const size_t few = window->left < kFew ? window->left : kFew;
    for (size_t passed = 0; passed < few; passed++) {
        const size_t at = window->next + passed;
        if (!has_key(*window, at, key, has_prefix)) continue;
        if (window->listed)
            out->value = {window->listed[at].value, window->listed[at].value_length};
        else if (!item_of(window->values, at, &out->value))
            return false;
        out->key = key;
        window->next = at + 1;
        window->left -= passed + 1;
        /* What it has passed over counts as if it had not been there. */
        window->opened -= passed;
        return true;
    }
    return false;
}

} // namespace teak
#endif
