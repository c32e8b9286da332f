#include "table_meta.h"

namespace teak {

namespace {

constexpr uchar kHead[] = {'T', 'e', 'a', 'k', 2};
constexpr size_t kIndexBytes = 9;
constexpr uchar kDisabled = 1;
constexpr ulonglong kFnvStart = 0xcbf29ce484222325ULL, kFnvPrime = 0x100000001b3ULL;

} // namespace

/* FNV-1a of the name in lower case: index names are compared without regard to case. */
ulonglong TableMeta::name_of(const KEY& key) {
    char name[NAME_LEN + 1];
    strmake(name, key.name.str, std::min<size_t>(key.name.length, NAME_LEN));
    my_casedn_str(system_charset_info, name);
    ulonglong hash = kFnvStart;
    for (const char* at = name; *at; at++)
        hash = (hash ^ static_cast<uchar>(*at)) * kFnvPrime;
    return hash;
}

TableMeta::TableMeta(const TABLE* table) {
    for (uint i = 0; i < table->s->keys; i++)
        if (i != table->s->primary_key) indexes.push_back({name_of(table->key_info[i]), false});
}

bool TableMeta::parse(teak_bytes bytes) {
    indexes.clear();
    if (bytes.len < sizeof kHead || memcmp(bytes.data, kHead, sizeof kHead) != 0) return false;
    size_t rest = bytes.len - sizeof kHead;
    if (rest % kIndexBytes) return false;
    for (const uchar* at = bytes.data + sizeof kHead; rest; at += kIndexBytes, rest -= kIndexBytes)
        indexes.push_back({uint8korr(at), (at[8] & kDisabled) != 0});
    return true;
}

std::vector<uchar> TableMeta::encode() const {
    std::vector<uchar> bytes(kHead, kHead + sizeof kHead);
    for (const Index& index : indexes) {
        uchar entry[kIndexBytes];
        int8store(entry, index.name);
        entry[8] = index.disabled ? kDisabled : 0;
        bytes.insert(bytes.end(), entry, entry + kIndexBytes);
    }
    return bytes;
}

uint32_t TableMeta::tree_of(const KEY& key) const {
    ulonglong name = name_of(key);
    for (size_t i = 0; i < indexes.size(); i++)
        if (indexes[i].name == name) return static_cast<uint32_t>(i + 1);
    return 0;
}

} // namespace teak
