/*
  What an ALTER in place makes of a table's foreign keys: whether it may, and what changes in the catalog.

  Found out when the server asks whether the ALTER can be done in place, and kept until it is committed.
*/
#ifndef TEAK_ALTERED_CONSTRAINTS_H
#define TEAK_ALTERED_CONSTRAINTS_H

#include "constraint_keeper.h"
#include "constraint_maker.h"

namespace teak {

class FieldConverter;

class AlteredConstraints {
  public:
    AlteredConstraints(ha_teak& file, OpenTable& open, TableUse& use, ConstraintKeeper& keeper)
        : file_(file), open_(open), use_(use), keeper_(keeper) {}
    AlteredConstraints(const AlteredConstraints&) = delete;
    AlteredConstraints& operator=(const AlteredConstraints&) = delete;

    /* HA_ALTER_INPLACE_INSTANT says that foreign keys have nothing against it. */
    enum_alter_inplace_result check(TABLE* altered, const Alter_inplace_info* info);
    /* Whether a column of a constraint gets other values: the server has a word to say of the copy. */
    bool changes_needed_values(const FieldConverter& fields) const;
    /* Whether the ALTER has to look at rows: then nobody may write to the table meanwhile. */
    bool has_to_verify() const { return !change_.added.empty() && are_checked(open_.thd()); }
    /* Whether each row has the parents that new constraints want. No writer comes between this and the commit. Returns
       an HA_ERR_ code; the error may be set. */
    int verify(const TABLE* altered, const TableMeta& meta);
    /* What changes in the catalog. */
    int relink(Relinks* out) const;

  private:
    enum_alter_inplace_result plan(TABLE* altered, const Alter_inplace_info* info);
    bool loses_needed_index(const TABLE* altered, const Alter_inplace_info* info, uint* index) const;
    bool loses_needed_column(const TABLE* altered, const Alter_inplace_info* info) const;
    bool changes_needed_type(const TABLE* altered, const Alter_inplace_info* info) const;
    bool lets_null_follow(const TABLE* altered, const Alter_inplace_info* info) const;

    ha_teak& file_;
    OpenTable& open_;
    TableUse& use_;
    ConstraintKeeper& keeper_;
    struct Change {
        bool any = false;
        std::vector<ForeignKey> own;       /* all that the table is to have */
        std::vector<ForeignKey> added;     /* those that it has not had */
        std::vector<ForeignKey> followers; /* of other tables, with columns that have other names */
    };
    Change change_;
};

} // namespace teak
#endif
