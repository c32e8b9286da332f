#include "entry_maker.h"

namespace teak {

EntryMaker::EntryMaker(const EntryPlan& plan)
    : plan_(plan), thread_ready_(true), own_thread_(my_thread_var == nullptr) {
    if (own_thread_) thread_ready_ = my_thread_init() == 0;
    for (const IndexCodec* index : *plan.indexes)
        indexes_.push_back(*index);
}

EntryMaker::~EntryMaker() {
    if (own_thread_ && thread_ready_) my_thread_end();
}

teak_status EntryMaker::take(teak_feed* feed, teak_bytes pk, teak_bytes row) {
    uchar* record = record_.data();
    if (!plan_.rows->unpack(row, record, &blobs_, plan_.columns)) return TEAK_CORRUPT;
    if (pk.len > plan_.primary->max_size()) return TEAK_CORRUPT;
    if (!plan_.primary->hidden() && !plan_.primary->decode(pk, record)) return TEAK_CORRUPT;
    for (uint32_t part = 0; part < indexes_.size(); part++) {
        teak_entry entry;
        if (!indexes_[part].encode(record, pk, &key_, &value_, &entry)) return TEAK_OUT_OF_MEMORY;
        teak_status status = teak_feed_add(feed, part, entry.key, entry.value);
        if (status != TEAK_OK) return status;
    }
    return TEAK_OK;
}

} // namespace teak
