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

extern "C" {

typedef struct teak_items {
    const uint8_t* bytes; /* all, one after the other */
    /* NULL: all have one length. u32 each, not aligned, one more than items; with bit 31 it is a large value's. */
    const uint8_t* starts;
    size_t length;
} teak_items;

typedef struct teak_window {
    size_t left;     /* entries that were not taken */
    size_t next;     /* number of the next one; set by who takes it, with `left` */
    uint64_t moment; /* of the session, in which it holds */
    ptrdiff_t step;  /* 1 or -1 */
    uint8_t* key;    /* begins with `prefix` bytes that all keys have, behind which are `room` more */
    size_t prefix, room;
    teak_items suffixes, values;
    size_t opened; /* the engine's */
} teak_window;

/* As long as the cursor. */
teak_window* teak_cursor_window(teak_cursor* cursor);
/* Where the session's moment is, as long as the session. */
const uint64_t* teak_session_moment(const teak_session* session);
}

static_assert(sizeof(teak_items) == 24 && sizeof(teak_window) == 112, "as in window.rs");

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

/*
  Takes the next entry; false if the engine has to be asked. What it takes is readable until the next call on the cursor
  or the next take.
*/
inline bool take(teak_window* window, uint64_t moment, ptrdiff_t step, teak_entry_view* out) {
    if (!window->left || window->moment != moment || window->step != step) return false;
    teak_bytes suffix;
    if (!item_of(window->values, window->next, &out->value) || !item_of(window->suffixes, window->next, &suffix) ||
        suffix.len > window->room)
        return false;
    copy_few(window->key + window->prefix, suffix.data, suffix.len);
    out->key = {window->key, window->prefix + suffix.len};
    window->next += static_cast<size_t>(step);
    window->left--;
    return true;
}

} // namespace teak
#endif
