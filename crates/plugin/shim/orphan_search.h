/*
  Rows of a child without a parent: all of a table's, for one foreign key.

  Makes of an entry's key in the child's index what the parent's begins with, without a record in between: parts are
  encoded alike but for their marker of NULL and their direction. The merge is the row layer's
  (crates/rows/src/orphans.rs).
*/
#ifndef TEAK_ORPHAN_SEARCH_H
#define TEAK_ORPHAN_SEARCH_H

#include "foreign_look.h"

namespace teak {

class OrphanSearch {
  public:
    enum View { Snapshot, Latest };

    explicit OrphanSearch(const ForeignKey& key) : key_(key) {}
    ~OrphanSearch();
    OrphanSearch(const OrphanSearch&) = delete;
    OrphanSearch& operator=(const OrphanSearch&) = delete;

    /* `child`: the definition by which `table` is read, which has the indexes that `meta` says. Returns an HA_ERR_
       code. The other table's definition is held. */
    int open(THD* thd, const TABLE* child, teak_table* table, const TableMeta& meta);
    /* There is no such parent, or it has no index that fits: then every row that names one is an orphan. */
    bool has_parent() const { return parent_ != nullptr; }
    /* Searches for the first `wanted`; `expected` rows are there, about. Returns an HA_ERR_ code. */
    int run(teak_session* session, View view, size_t wanted, ulonglong expected);
    /* What was found, for people: the key, and which row it is. */
    const std::vector<std::string>& found() const { return found_; }

  private:
    /* One side: which tree has the keys, and how they are made and read. */
    struct Side {
        KeyCodec key;
        EntryOwner owner;
        uint index = MAX_KEY;
        uint32_t tree = 0;
        bool open(const TABLE* table, const TableMeta& meta, const std::vector<std::string>& columns);
    };
    int open_parent(const TABLE* definition, const TableMeta& meta);
    static teak_named named(void* context, teak_bytes entry_key);
    static int orphan(void* context, teak_entry_view entry);
    static int watch(void* context, uint64_t entries);
    teak_named name_of(teak_bytes entry_key);
    std::string describe(const teak_entry_view& entry);

    const ForeignKey key_;
    THD* thd_ = nullptr;
    const TABLE* child_ = nullptr;
    teak_table *child_table_ = nullptr, *parent_ = nullptr;
    bool owns_parent_ = false;
    Side mine_, theirs_;
    std::vector<uchar> named_;
    std::vector<std::string> found_;
    size_t wanted_ = 0;
    ulonglong expected_ = 0;
};

} // namespace teak
#endif
