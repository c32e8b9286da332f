/*
  A cursor's window: entries that a scan takes out of the engine's block without a call for each.

  teak_cursor_next and teak_cursor_prev open it when a scan that reads a snapshot has made some moves; every call on the
  cursor closes it, after it has let the cursor catch up. So the shim takes from it what it can and asks the engine
  otherwise: for large values, when the window is used up, and when the session has changed something since, which is
  told by its moment.
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

/* Finds the next entry's value and its key, `whole` or without the prefix; false: the engine has to be asked. */
inline bool find(const teak_window& window, teak_bytes* key, teak_bytes* value, bool* whole) {
    constexpr uint32_t kSuffix = 1U << 31;
    if (!window.listed) {
        *whole = false;
        return item_of(window.values, window.next, value) && item_of(window.suffixes, window.next, key);
    }
    const teak_listed& entry = window.listed[window.next];
    *value = {entry.value, entry.value_length};
    *key = {entry.key, entry.key_length & ~kSuffix};
    *whole = !(entry.key_length & kSuffix);
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

} // namespace teak
#endif
