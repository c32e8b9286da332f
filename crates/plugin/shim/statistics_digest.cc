/*
  See statistics_digest.h.
*/
#include "statistics_digest.h"

namespace teak {

namespace {

constexpr uchar kVersion = 1;
constexpr size_t kHeadBytes = 9, kIndexBytes = 9, kFloatBytes = 4;
/* More rows have one key in no table; what is greater, or no number, would be no integer either. */
constexpr float kMostRows = 9e18F;

} // namespace

std::vector<uchar> StatisticsDigest::encode() const {
    std::vector<uchar> digest(kHeadBytes);
    digest[0] = kVersion;
    int8store(digest.data() + 1, rows);
    for (const Index& index : indexes) {
        uchar bytes[kIndexBytes];
        int8store(bytes, index.name);
        bytes[8] = static_cast<uchar>(index.rows_per_prefix.size());
        digest.insert(digest.end(), bytes, bytes + sizeof bytes);
        for (double each : index.rows_per_prefix) {
            const auto n = static_cast<float>(each);
            float4store(bytes, n);
            digest.insert(digest.end(), bytes, bytes + kFloatBytes);
        }
    }
    return digest;
}

bool StatisticsDigest::parse(teak_bytes bytes) {
    indexes.clear();
    if (bytes.len < kHeadBytes || bytes.data[0] != kVersion) return false;
    rows = uint8korr(bytes.data + 1);
    const uchar *at = bytes.data + kHeadBytes, *const end = bytes.data + bytes.len;
    while (static_cast<size_t>(end - at) >= kIndexBytes) {
        Index index{uint8korr(at), {}};
        const size_t parts = at[8];
        at += kIndexBytes;
        if (static_cast<size_t>(end - at) < parts * kFloatBytes) return false;
        for (size_t part = 0; part < parts; part++, at += kFloatBytes) {
            float n;
            float4get(n, at);
            if (!(n <= kMostRows)) return false;
            index.rows_per_prefix.push_back(n >= 1 ? n : 1);
        }
        indexes.push_back(std::move(index));
    }
    return at == end;
}

} // namespace teak
