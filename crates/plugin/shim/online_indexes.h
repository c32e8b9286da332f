/*
  Indexes that an ALTER adds while others write: how their entries are made, and the engine's build of them. See
  inplace_indexes.cc.
*/
#ifndef TEAK_ONLINE_INDEXES_H
#define TEAK_ONLINE_INDEXES_H

#include "index_codec.h"
#include "online_build.h"

namespace teak {

class OnlineIndexes {
  public:
    OnlineIndexes() = default;
    OnlineIndexes(const OnlineIndexes&) = delete;
    OnlineIndexes& operator=(const OnlineIndexes&) = delete;

    /* `which`: the numbers of the indexes in `altered`, which outlives this. False: they cannot be built. */
    bool init(const TABLE* altered, const std::vector<uint>& which, KeyEncoding encoding);
    const std::vector<const IndexCodec*>& indexes() const { return indexes_; }
    KEY* key(uint part) const { return keys_[part]; }

    OnlineBuild build;

  private:
    PrimaryCodec primary_;
    std::vector<IndexCodec> codecs_;
    std::vector<const IndexCodec*> indexes_;
    std::vector<KEY*> keys_;
};

} // namespace teak
#endif
