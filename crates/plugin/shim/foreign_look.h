/*
  A foreign key at work: the look from a row of one of its tables at the rows of the other.

  Responsible for finding the indexes of both sides, and for the key by which a row of this side is looked for on the
  other. How looks lock, and why no two transactions pass each other, is in the row layer (crates/rows/src/foreign.rs).
*/
#ifndef TEAK_FOREIGN_LOOK_H
#define TEAK_FOREIGN_LOOK_H

#include "foreign_key.h"
#include "history.h"
#include <memory>

namespace teak {

/* The definition of a table that the statement has not opened, by the server's table definition cache. */
class OtherDefinition {
  public:
    OtherDefinition(THD* thd, const std::string& core_name);
    ~OtherDefinition();
    OtherDefinition(const OtherDefinition&) = delete;
    OtherDefinition& operator=(const OtherDefinition&) = delete;
    /* nullptr: there is none, or it is no table of Teak. */
    TABLE* table() { return open_ ? &table_ : nullptr; }
    /* There is a table, of another engine (or partitioned). */
    bool is_of_another_engine() const { return share_ && !open_; }

  private:
    TABLE_SHARE* share_ = nullptr;
    TABLE table_;
    bool open_ = false;
};

/*
  To the end of the statement nobody changes the definition of the table. Returns an HA_ERR_ code, the error is set.

  Not behind an ALTER that waits for readers to end: whoever looks at a row may have rows locked, and that wait is in
  nobody's search for deadlocks. Writers of the table are not kept out by it, nor those who keep them out.
*/
int hold_definition(THD* thd, const std::string& core_name);
int acquire_definition(THD* thd, MDL_request* request);

/* The index whose first columns these are, in this order and whole: the primary key, else a unique one, else any.
   MAX_KEY: none. `meta` tells which are disabled; nullptr: none is. */
uint index_on(const TABLE* table, const std::vector<std::string>& columns, const TableMeta* meta);

/* The first column whose values are not encoded alike in the two indexes; SIZE_MAX: all are. */
size_t differing_column(const TABLE* a, uint index_a, const TABLE* b, uint index_b, size_t columns);
size_t differing_column(const TABLE* a, const KEY* key_a, const TABLE* b, const KEY* key_b, size_t columns);

/* Whether values are numbers as they are stored, and compared as such: those of the members of an ENUM or SET, whatever
   the other side calls them, the years of a YEAR, and a float with all its digits. */
bool holds_number(const Field* field);

/* nullptr: there is none. */
inline Field* column_named(const TABLE* table, const std::string& name) {
    LEX_CSTRING text{name.data(), name.size()};
    return table->find_field_by_name(&text);
}

class ForeignLook {
  public:
    /* `at_parent`: from the child's rows at the parent's, else the other way. */
    ForeignLook(const ForeignKey& key, bool at_parent) : key_(key), at_parent_(at_parent) {}
    ~ForeignLook() { teak_target_free(other_); }
    ForeignLook(const ForeignLook&) = delete;
    ForeignLook& operator=(const ForeignLook&) = delete;

    const ForeignKey& key() const { return key_; }
    /* The index of this side; MAX_KEY until it is open, or if there is none. */
    uint index() const { return my_index_; }
    const std::string& other_name() const { return at_parent_ ? key_.parent : key_.child; }
    /* Finds out how to look; `mine` is the table of this side. Returns an HA_ERR_ code; if the other side is not there,
       or has no fitting index, that is no error, and nothing will be found. */
    int open(THD* thd, const TABLE* mine);
    /* To the end of the statement nobody changes the definition of the other table: by hold_definition(), or because
       who would, and has it locked for that, waits for this transaction. Returns an HA_ERR_ code, the error is set. */
    int hold(THD* thd, const teak_session* session) const;
    /* A column is NULL, or the row is history: such a row names none, and none names it. */
    bool names_none(const uchar* record) const;
    bool differs(const uchar* a, const uchar* b) const;
    /* Whether the constraint has a say when the row goes, or becomes `after`. */
    bool has_say(const uchar* record, const uchar* after) const {
        return !names_none(record) && (!after || differs(record, after));
    }
    /* Whether the other table has what the record asks for. TEAK_WOULD_BLOCK: another transaction's row is in the way,
       and it is not to be waited for. `is_open` false: it could not be looked for. `except`: the primary key of a row
       that does not count. */
    teak_status look(teak_session* session, const uchar* record, bool waits, teak_bytes except, bool* found);
    /* The keys of the next rows of that kind, at most so many, locked to be changed, behind the one with `entry`
       (empty: the first), which becomes that of the last. TEAK_NOT_FOUND: there is no more. */
    teak_status next(teak_session* session, const uchar* record, size_t most, std::vector<uchar>* entry,
                     std::vector<std::vector<uchar>>* rows);
    bool is_open() const { return other_ != nullptr; }

  private:
    /* How a part of the other index differs from the plain encoding of its value. */
    struct Shape {
        bool marked, descending;
    };
    int open_other(THD* thd, const TABLE* mine, const KEY* my_key, TABLE* theirs);
    uint32_t flags() const {
        return (is_row_ ? TEAK_LOOK_ROW : 0) | (at_parent_ ? TEAK_LOOK_COUNTS_ON : 0) |
               (at_parent_ || is_shared_ ? TEAK_LOOK_STAYS_MISSING : 0);
    }
    teak_bytes key_of(const uchar* record);

    const ForeignKey key_;
    const bool at_parent_;
    uint my_index_ = MAX_KEY;
    std::vector<KeyPartCodec> columns_; /* of this side */
    RowEnd end_;                        /* of its rows */
    std::vector<KeyCodec> plain_;       /* the same, each by itself, as if it could not be NULL and ascending */
    std::vector<Shape> shapes_;
    size_t max_size_ = 0;
    teak_target* other_ = nullptr;
    EntryOwner theirs_;
    uint32_t tree_ = 0;
    bool is_row_ = false; /* the key is a whole primary key */
    /* Rows of this side, the parent's, may have one key: a new child need not wait for the one that is looked from. */
    bool is_shared_ = false;
    Buffer key_bytes_;
};

/*
  All looks that the rows of one table need, as of one moment: all that a handler keeps of foreign keys from one
  statement to another, and compares before each row. A cascade goes on with those that it has begun with, whatever its
  rows find out meanwhile: so it shares them, and they do not change.
*/
struct Looks {
    uint64_t changes = UINT64_MAX; /* teak_link_changes when they were made */
    std::vector<std::unique_ptr<ForeignLook>> at_parents, at_children;

    bool are_of(uint64_t now) const { return changes == now; }
    bool empty() const { return at_parents.empty() && at_children.empty(); }
};

} // namespace teak
#endif
