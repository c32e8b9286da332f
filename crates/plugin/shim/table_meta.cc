#include "table_meta.h"
#include "server_version.h"
#include <algorithm>

namespace teak {

namespace {

constexpr uchar kName[] = {'T', 'e', 'a', 'k'};
constexpr uchar kVersion = 3;
constexpr uchar kVersionOfDiscarded = 4;
constexpr uchar kVersionWithLayouts = 5;
constexpr uchar kVersionWithoutDefinition = 2;
constexpr size_t kHeadBytes = sizeof kName + 1;
constexpr size_t kIndexBytes = 9;
constexpr uchar kDisabled = 1;
constexpr ulonglong kFnvStart = 0xcbf29ce484222325ULL, kFnvPrime = 0x100000001b3ULL;

} // namespace

/* Whether a key has a prefix of a column that is no BLOB. */
static bool has_short_part(const TABLE* table, const KEY& key) {
    return std::any_of(key.key_part, key.key_part + key.user_defined_key_parts, [table](const KEY_PART_INFO& part) {
        return !(part.field->flags & BLOB_FLAG) && !is_whole(table, part);
    });
}

/* FNV-1a of the name in lower case: index names are compared without regard to case. */
ulonglong TableMeta::name_of(const KEY& key) {
    ulonglong hash = kFnvStart;
    for (const char each : lower_case(key.name.str, std::min<size_t>(key.name.length, NAME_LEN)))
        hash = (hash ^ static_cast<uchar>(each)) * kFnvPrime;
    return hash;
}

TableMeta::TableMeta(const TABLE* table) {
    set_definition(table);
    for (uint i = 0; i < table->s->keys; i++)
        if (has_short_part(table, table->key_info[i])) encoding = KeyEncoding::Prefixes;
    for (uint i = 0; i < table->s->keys; i++)
        if (i != table->s->primary_key) indexes.push_back({name_of(table->key_info[i]), false});
}

void TableMeta::set_definition(const TABLE* table) {
    const LEX_CUSTRING& version = table->s->tabledef_version;
    if (version.length == sizeof definition)
        memcpy(definition, version.str, sizeof definition);
    else
        memset(definition, 0, sizeof definition);
}

bool TableMeta::has_definition(const LEX_CUSTRING& version) const {
    return version.length == sizeof definition && memcmp(definition, version.str, sizeof definition) == 0;
}

bool TableMeta::parse(teak_bytes bytes) {
    indexes.clear();
    if (bytes.len < kHeadBytes || memcmp(bytes.data, kName, sizeof kName) != 0) return false;
    const uchar version = bytes.data[sizeof kName];
    const uchar* at = bytes.data + kHeadBytes;
    const uchar* end = bytes.data + bytes.len;
    memset(definition, 0, sizeof definition);
    encoding = KeyEncoding::CutWeights;
    discarded = version == kVersionOfDiscarded;
    layouts = RowLayouts();
    if (version == kVersion || version == kVersionWithLayouts || discarded) {
        if (static_cast<size_t>(end - at) < sizeof definition + 1) return false;
        memcpy(definition, at, sizeof definition);
        at += sizeof definition;
        if (*at < static_cast<uchar>(KeyEncoding::CutWeights) || *at > static_cast<uchar>(kNewestKeys)) return false;
        encoding = static_cast<KeyEncoding>(*at++);
    } else if (version != kVersionWithoutDefinition)
        return false;
    if (version == kVersionWithLayouts) {
        if (end - at < 2) return false;
        const size_t index_bytes = uint2korr(at) * kIndexBytes;
        at += 2;
        if (static_cast<size_t>(end - at) < index_bytes || !layouts.parse(at + index_bytes, end)) return false;
        end = at + index_bytes;
    }
    if (static_cast<size_t>(end - at) % kIndexBytes) return false;
    for (; at < end; at += kIndexBytes)
        indexes.push_back({uint8korr(at), (at[8] & kDisabled) != 0});
    return true;
}

std::vector<uchar> TableMeta::encode() const {
    std::vector<uchar> bytes(kName, kName + sizeof kName);
    const bool has_layouts = !discarded && !layouts.empty();
    bytes.push_back(discarded ? kVersionOfDiscarded : has_layouts ? kVersionWithLayouts : kVersion);
    bytes.insert(bytes.end(), definition, definition + sizeof definition);
    bytes.push_back(static_cast<uchar>(encoding));
    if (has_layouts) {
        uchar count[2];
        int2store(count, indexes.size());
        bytes.insert(bytes.end(), count, count + sizeof count);
    }
    for (const Index& index : indexes) {
        uchar entry[kIndexBytes];
        int8store(entry, index.name);
        entry[8] = index.disabled ? kDisabled : 0;
        bytes.insert(bytes.end(), entry, entry + kIndexBytes);
    }
    if (has_layouts) layouts.encode(&bytes);
    return bytes;
}

uint32_t TableMeta::tree_of(const KEY& key) const {
    ulonglong name = name_of(key);
    for (size_t i = 0; i < indexes.size(); i++)
        if (indexes[i].name == name) return static_cast<uint32_t>(i + 1);
    return 0;
}

} // namespace teak
