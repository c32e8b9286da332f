/*
  What calls of the server cost.
*/
#include "counted_call.h"

namespace teak {

namespace {

/* A call of this thread is counted already. */
thread_local bool counting = false;

} // namespace

void CountedCall::begin(ha_handler_stats* asked) {
    if (counting) return;
    counting = true;
    to_ = asked;
    teak_thread_counts(&before_);
}

void CountedCall::end() {
    counting = false;
    teak_counts now;
    teak_thread_counts(&now);
    to_->pages_accessed += now.pages_accessed - before_.pages_accessed;
    to_->pages_updated += now.pages_updated - before_.pages_updated;
    to_->pages_read_count += now.reads - before_.reads;
    if (const uint64_t nanoseconds = now.read_nanoseconds - before_.read_nanoseconds)
        to_->pages_read_time +=
            static_cast<ulonglong>(static_cast<double>(nanoseconds) * timer_tracker_frequency() / 1e9);
    to_->pages_prefetched += now.prefetched - before_.prefetched;
    to_->undo_records_read += now.old_versions - before_.old_versions;
}

} // namespace teak
