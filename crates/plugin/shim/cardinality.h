/*
  How many rows have the same value in the first columns of an index, for the optimizer.

  The outline of the tree (teak_tree_outline) comes first: a part that begins with the same value as the next has no
  other, so only the parts in between are looked into, down to leaves, of which 20 to 64 are read. The values of a
  skewed index are so found where they are: most rows have few of them. Of others these leaves are spread evenly.
*/
#ifndef TEAK_CARDINALITY_H
#define TEAK_CARDINALITY_H

#include "open_table.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace teak {

class Cardinality {
  public:
    Cardinality(const OpenTable& open, uint index);
    Cardinality(const Cardinality&) = delete;
    Cardinality& operator=(const Cardinality&) = delete;

    /* Rows per distinct prefix of 1..n columns, each at least 1. */
    teak_status estimate(std::vector<double>* rows_per_prefix);

  private:
    /* A part of the tree, up to where the next begins; empty: nothing does. */
    struct Part {
        std::string first, next;
        double share; /* of the tree */
        size_t equal; /* the first columns in which both are the same, and so is all in between */
        bool is_leaf;
    };
    /* A leaf that was read. */
    struct Leaf {
        size_t keys = 0;
        std::vector<size_t> changes; /* for each prefix, keys in which it is another than in the key before */
        std::string last;
    };

    teak_status add_parts(const std::string& low, const std::string& high, double share, std::vector<Part>* to) const;
    teak_status find_varied(size_t columns, std::vector<Part>* varied) const;
    teak_status read(const std::string& key, const Leaf** leaf);
    teak_status rows_per_value(size_t columns, double* rows);
    size_t equal_columns(const std::string& a, const std::string& b) const;

    const OpenTable& open_;
    const KeyCodec& codec_;
    const uint32_t tree_;
    const bool is_unique_;
    double rows_ = 0;
    size_t leaves_to_read_ = 0;                    /* for each number of columns */
    std::vector<Part> parts_;                      /* of the whole tree */
    std::unordered_map<std::string, Leaf> leaves_; /* by a key in each */
};

} // namespace teak
#endif
