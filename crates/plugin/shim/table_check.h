/*
  CHECK TABLE, REPAIR TABLE and OPTIMIZE TABLE.

    QUICK       every block on disk
    default     and how the trees fit together, and whether each index has as many entries as there are rows
    EXTENDED    and every entry of every index against the rows, both ways: what the rows make is summed up as what
                there is is, in one pass over each; only for an index that differs are the entries sorted and compared
                one by one, to name the first of them

  A check sees the table at one snapshot and holds nobody up. REPAIR builds new indexes beside the old ones and then
  puts them in their place in one step: a crash, or rows that a unique index must not have, leave everything as it was.

  OPTIMIZE packs the table's trees in place, beside readers and writers, and refreshes its statistics; rows of older
  layouts are put into the newest one before. What only another copy of the rows gives back is rebuilt by an ALTER: keys
  of earlier builds that are cut, a unique index that could not be built, and rows of older layouts where nothing is
  logged.
*/
#ifndef TEAK_TABLE_CHECK_H
#define TEAK_TABLE_CHECK_H

#include "constraint_keeper.h"

namespace teak {

class CheckReport; /* table_check.cc */

class TableCheck {
  public:
    TableCheck(ha_teak& file, OpenTable& open, TableUse& use, ConstraintKeeper& keeper)
        : file_(file), open_(open), use_(use), keeper_(keeper) {}
    TableCheck(const TableCheck&) = delete;
    TableCheck& operator=(const TableCheck&) = delete;

    /* The statements, as the server has them: they return an HA_ADMIN_ code. */
    int check(THD* thd, HA_CHECK_OPT* options);
    /* Builds all indexes anew from the rows, but those that DISABLE KEYS has disabled. A damaged row is lost: what is
       left of the rows is for the user to save, and nothing is changed. */
    int repair(THD* thd);
    int optimize(THD* thd, HA_CHECK_OPT* options);

  private:
    struct Differences;
    int check_trees(uint32_t first, size_t count, uint32_t depth, uint64_t* entries, CheckReport* report);
    int check_entries(const std::vector<uint>& indexes, CheckReport* report);
    int check_parents(CheckReport* report);
    int begin_comparison(const std::vector<uint>& indexes, uint64_t sort_bytes, teak_check** out);
    int renew_rows(THD* thd);
    int renew_indexes(ulonglong indexes, uint32_t* duplicate);
    uint nth_index(ulonglong indexes, uint n) const;
    std::string key_in_record(uint index) const;
    std::string readable_key(teak_bytes pk) const;

    ha_teak& file_;
    OpenTable& open_;
    TableUse& use_;
    ConstraintKeeper& keeper_;
};

} // namespace teak
#endif
