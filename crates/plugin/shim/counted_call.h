/*
  A call of the server that is looked at: what it cost the engine is added to the statistics of its table
  (ha_handler_stats.h) or statement, which ANALYZE FORMAT=JSON, the slow log (log_slow_verbosity=engine) and userstat
  have the server keep. Nothing is done, but to look whether there are any, where nobody asks.

  The engine counts for each thread what that does, and a call of the server is on one thread from its beginning to its
  end, whatever way it takes out of here: so what it cost is the difference. Within a call others of the same thread are
  a part of it, also where they are of another table (children of a row that is changed).
*/
#ifndef TEAK_COUNTED_CALL_H
#define TEAK_COUNTED_CALL_H

#include "server.h"
#include "teak_ffi.h"

namespace teak {

class CountedCall {
  public:
    explicit CountedCall(ha_handler_stats* asked)
        : to_(unlikely(asked != nullptr) && asked->active ? begin(asked, &before_) : nullptr) {}
    ~CountedCall() {
        if (unlikely(to_ != nullptr)) end(to_, before_);
    }
    CountedCall(const CountedCall&) = delete;
    CountedCall& operator=(const CountedCall&) = delete;

  private:
    /* Not of the object, which so need not be in memory where nobody asks. Returns nullptr within another call. */
    static ha_handler_stats* begin(ha_handler_stats* asked, teak_counts* before);
    static void end(ha_handler_stats* to, const teak_counts& before);

    teak_counts before_;
    ha_handler_stats* const to_;
};

} // namespace teak
#endif
