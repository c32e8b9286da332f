/*
  What each thread knows of itself, and the functions that allocators call.
*/
#ifndef TEAK_HEAP_THREAD_STATE_H
#define TEAK_HEAP_THREAD_STATE_H

#include "teak_ffi.h"

namespace teak {

/* The calling thread's. */
teak_thread* own_thread();

/* What Rust hands to the allocator. */
extern const teak_hooks hooks;

} // namespace teak
#endif
