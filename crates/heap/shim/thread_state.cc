/*
  What each thread knows of itself, and the functions that allocators call.

  The storage is in the thread's static block (initial-exec), which is there before the thread runs: reaching it any
  other way may call malloc the first time, which would call the hook, which would reach for it.
*/
#include "thread_state.h"

namespace teak {
namespace {

__thread teak_thread state __attribute__((tls_model("initial-exec")));

/* Kinds of allocations, as enum hook_alloc_e of jemalloc's hook.h has them; each has its function's arguments. */
enum { kMalloc, kPosixMemalign, kAlignedAlloc, kCalloc, kMemalign, kValloc, kMallocx, kRealloc, kRallocx };

size_t asked_for(int kind, const size_t* arguments) {
    switch (kind) {
    case kPosixMemalign:
        return arguments[2];
    case kCalloc:
        return arguments[0] * arguments[1];
    case kMalloc:
    case kValloc:
    case kMallocx:
        return arguments[0];
    default: /* aligned_alloc, memalign, realloc, rallocx */
        return arguments[1];
    }
}

void jemalloc_alloc(void*, int kind, void* result, size_t, const size_t* arguments) {
    if (result) teak_heap_allocated(&state, reinterpret_cast<size_t>(result), asked_for(kind, arguments));
}

void jemalloc_dalloc(void*, int, void* address, const size_t*) {
    teak_heap_freed(&state, reinterpret_cast<size_t>(address));
}

/* Of realloc, rallocx and xallocx, in place; the second argument is what was asked for. */
void jemalloc_expand(void*, int, void* address, size_t, size_t, size_t, const size_t* arguments) {
    teak_heap_resized(&state, reinterpret_cast<size_t>(address), arguments[1]);
}

void tcmalloc_new(const void* address, size_t bytes) {
    if (address) teak_heap_allocated(&state, reinterpret_cast<size_t>(address), bytes);
}

void tcmalloc_delete(const void* address) {
    if (address) teak_heap_freed(&state, reinterpret_cast<size_t>(address));
}

} // namespace

teak_thread* own_thread() { return &state; }

const teak_hooks hooks = {jemalloc_alloc, jemalloc_dalloc, jemalloc_expand, tcmalloc_new, tcmalloc_delete};

} // namespace teak
