/*
  What calls of the server cost.
*/
#include "counted_call.h"

namespace teak {

namespace {

/* A call of this thread is counted already. */
thread_local bool counting = false;

} // namespace

ha_handler_stats* CountedCall::begin(ha_handler_stats* asked, teak_counts* before) {
    if (counting) return nullptr;
    counting = true;
    teak_thread_counts(before);
    return asked;
}

void CountedCall::end(ha_handler_stats* to, const teak_counts& before) {
    counting = false;
    teak_counts now;
    teak_thread_counts(&now);
    to->pages_accessed += now.pages_accessed - before.pages_accessed;
    to->pages_updated += now.pages_updated - before.pages_updated;
    to->pages_read_count += now.reads - before.reads;
    if (const uint64_t nanoseconds = now.read_nanoseconds - before.read_nanoseconds)
        to->pages_read_time +=
            static_cast<ulonglong>(static_cast<double>(nanoseconds) * timer_tracker_frequency() / 1e9);
    to->pages_prefetched += now.prefetched - before.prefetched;
    to->undo_records_read += now.old_versions - before.old_versions;
}

} // namespace teak
