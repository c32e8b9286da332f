/*
  The foreign keys of a table that is created, or that ALTER makes a copy of.

  Takes them from the statement, keeps those that the altered table has, and refuses what cannot be held to: as InnoDB
  does, with its words where it has some.
*/
#ifndef TEAK_CONSTRAINT_MAKER_H
#define TEAK_CONSTRAINT_MAKER_H

#include "foreign_look.h"

namespace teak {

class ConstraintMaker {
  public:
    /* `name`: the core's, of the table that is made; `form`: its definition. */
    ConstraintMaker(THD* thd, const std::string& name, TABLE* form, const HA_CREATE_INFO* info);
    /* Returns an HA_ERR_ code, with the error or a warning that says why. */
    int make();
    const std::vector<ForeignKey>& keys() const { return keys_; }

  private:
    int keep_old();
    int take_new();
    int take(Foreign_key* from);
    int refuse_unkept(const Foreign_key* from) const;
    int check(const ForeignKey& key, const std::string& called);
    int check_nullable(const ForeignKey& key, const std::string& words) const;
    int check_rename();
    int check_children();
    int fail(const std::string& called, const std::string& why, const char* with = "with ") const;
    /* The table that a constraint is to, or of, is the one that is made. */
    bool is_self(const std::string& table) const { return table == name_ || table == altered_; }

    THD* const thd_;
    const std::string name_;
    TABLE* const form_;
    Alter_info* const alter_;
    std::string altered_; /* the core's name of the table that ALTER copies; empty: there is none */
    const bool temporary_;
    const bool checked_;
    std::vector<ForeignKey> keys_;
    uint32_t number_ = 0; /* the highest that a constraint without a name of its own has */
};

} // namespace teak
#endif
