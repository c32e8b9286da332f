/*
  See cardinality.h.
*/
#include "cardinality.h"
#include "errors.h"
#include <algorithm>

namespace teak {

namespace {

/* Leaves that are read for each number of columns: more of small ones. */
constexpr double kReadKeys = 20000;
constexpr size_t kLeastLeaves = 20, kMostLeaves = 64;

/* Keys, as long as they are looked at. */
class Keys {
  public:
    ~Keys() { teak_sample_free(&sample); }
    std::string at(size_t i) const {
        return std::string(reinterpret_cast<const char*>(sample.keys[i].data), sample.keys[i].len);
    }
    teak_sample sample{nullptr, 0, 0, nullptr};
};

} // namespace

Cardinality::Cardinality(const OpenTable& open, uint index)
    : open_(open), codec_(open.key_codec(index)), tree_(open.tree_of(index)),
      is_unique_(open.table->key_info[index].flags & HA_NOSAME) {}

/* In how many columns, from the first on, two keys have the same. */
size_t Cardinality::equal_columns(const std::string& a, const std::string& b) const {
    const auto *p = reinterpret_cast<const uchar*>(a.data()), *p_end = p + a.size();
    const auto *q = reinterpret_cast<const uchar*>(b.data()), *q_end = q + b.size();
    size_t column = 0;
    for (; column < codec_.parts().size(); column++) {
        /* What is too short, as the beginning of a key may be, is not the same. */
        const uchar* p_next = p < p_end ? KeyCodec::skip_part(codec_.parts()[column], p, p_end) : nullptr;
        const uchar* q_next = q < q_end ? KeyCodec::skip_part(codec_.parts()[column], q, q_end) : nullptr;
        if (!p_next || !q_next || p_next - p != q_next - q || memcmp(p, q, static_cast<size_t>(p_next - p))) break;
        p = p_next;
        q = q_next;
    }
    return column;
}

/* Adds the parts between two keys, which have that share of the tree. */
teak_status Cardinality::add_parts(const std::string& low, const std::string& high, double share,
                                   std::vector<Part>* to) const {
    Keys keys;
    const teak_status status = teak_tree_outline(open_.core, tree_, bytes_of(low), bytes_of(high), &keys.sample);
    if (status != TEAK_OK) return status;
    const double each = share / static_cast<double>(std::max<size_t>(keys.sample.n_keys, 1));
    for (size_t i = 0; i < keys.sample.n_keys; i++) {
        Part part{keys.at(i), i + 1 < keys.sample.n_keys ? keys.at(i + 1) : high, each, 0, keys.sample.are_leaves != 0};
        if (!part.next.empty()) part.equal = equal_columns(part.first, part.next);
        to->push_back(std::move(part));
    }
    return TEAK_OK;
}

/* All parts that have more than one value in the first columns, or may have: leaves, or larger parts if those are more
   than are read. */
teak_status Cardinality::find_varied(size_t columns, std::vector<Part>* varied) const {
    const auto is_uniform = [columns](const Part& part) { return part.equal >= columns; };
    const auto is_leaf = [](const Part& part) { return part.is_leaf; };
    teak_status status = TEAK_OK;
    *varied = parts_;
    for (;;) {
        varied->erase(std::remove_if(varied->begin(), varied->end(), is_uniform), varied->end());
        if (status != TEAK_OK || varied->size() > leaves_to_read_ ||
            std::all_of(varied->begin(), varied->end(), is_leaf))
            return status;
        std::vector<Part> below;
        for (size_t i = 0; i < varied->size() && status == TEAK_OK; i++) {
            Part& part = (*varied)[i];
            if (part.is_leaf)
                below.push_back(std::move(part));
            else
                status = add_parts(part.first, part.next, part.share, &below);
        }
        varied->swap(below);
    }
}

/* The leaf in which a key is or would be. */
teak_status Cardinality::read(const std::string& key, const Leaf** leaf) {
    const auto [found, is_new] = leaves_.try_emplace(key);
    *leaf = &found->second;
    if (!is_new) return TEAK_OK;
    Keys keys;
    const teak_status status = teak_tree_sample(open_.core, tree_, bytes_of(key), &keys.sample);
    if (status != TEAK_OK) return status;
    Leaf& read = found->second;
    read.keys = keys.sample.n_keys;
    read.changes.assign(codec_.parts().size(), 0);
    for (size_t i = 0; i < read.keys; i++) {
        std::string next = keys.at(i);
        if (i)
            for (size_t column = equal_columns(read.last, next); column < read.changes.size(); column++)
                read.changes[column]++;
        read.last = std::move(next);
    }
    return TEAK_OK;
}

teak_status Cardinality::rows_per_value(size_t columns, double* rows) {
    std::vector<Part> varied;
    teak_status status = find_varied(columns, &varied);
    const bool reads_all = varied.size() <= leaves_to_read_;
    const size_t count = std::min(varied.size(), leaves_to_read_);
    double changes = 0, keys = 0, share = 0;
    for (const Part& part : varied)
        share += part.share;
    for (size_t i = 0; i < count && status == TEAK_OK; i++) {
        const Part& part = varied[(2 * i + 1) * varied.size() / (2 * count)];
        const Leaf* leaf;
        status = read(part.first, &leaf);
        if (status != TEAK_OK || !leaf->keys) continue;
        changes += static_cast<double>(leaf->changes[columns - 1]);
        /* Where a larger part goes on behind the leaf nobody knows. */
        keys += static_cast<double>(leaf->keys - !part.is_leaf);
        if (part.is_leaf && !part.next.empty() && equal_columns(leaf->last, part.next) < columns) changes++;
    }
    if (status != TEAK_OK) return status;
    /* Of nearly the whole tree, or larger parts, it is known how many rows make a change; of few leaves how many these
       have, whose rows need not be as many as others have. */
    double values = changes * static_cast<double>(varied.size()) / static_cast<double>(std::max<size_t>(count, 1)) + 1;
    if (!reads_all && keys && (share > 0.9 || !varied[0].is_leaf)) values = rows_ * share * changes / keys;
    *rows = std::max(rows_ / std::max(values, 1.0), 1.0);
    return TEAK_OK;
}

teak_status Cardinality::estimate(std::vector<double>* rows_per_prefix) {
    teak_tree_statistics tree;
    if (const teak_status status = teak_tree_get_statistics(open_.core, tree_, &tree); status != TEAK_OK) return status;
    rows_ = static_cast<double>(tree.entries);
    const double keys_of_leaf = std::max(rows_ / static_cast<double>(std::max<uint64_t>(tree.leaves, 1)), 1.0);
    leaves_to_read_ = std::clamp(static_cast<size_t>(kReadKeys / keys_of_leaf), kLeastLeaves, kMostLeaves);
    rows_per_prefix->assign(codec_.parts().size(), 1);
    if (const teak_status status = add_parts({}, {}, 1, &parts_); status != TEAK_OK) return status;
    /* From all columns on: what is read for them mostly serves for fewer. All of a unique index are never the same. */
    for (size_t columns = rows_per_prefix->size() - is_unique_; columns > 0; columns--)
        if (const teak_status status = rows_per_value(columns, &(*rows_per_prefix)[columns - 1]); status != TEAK_OK)
            return status;
    /* Fewer columns have no more values. */
    for (size_t i = rows_per_prefix->size(); i-- > 1;)
        (*rows_per_prefix)[i - 1] = std::max((*rows_per_prefix)[i - 1], (*rows_per_prefix)[i]);
    return TEAK_OK;
}

} // namespace teak
