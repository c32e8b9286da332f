/*
  The foreign keys of a table that is created, or that ALTER makes a copy of or gives another definition.

  Takes them from the statement, keeps those that the altered table has, by the new names of columns, and refuses what
  cannot be held to: as InnoDB does, with its words where it has some.
*/
#ifndef TEAK_CONSTRAINT_MAKER_H
#define TEAK_CONSTRAINT_MAKER_H

#include "foreign_look.h"

namespace teak {

/* Whether ALTER drops the constraint, which the table has. */
bool is_dropped(Alter_info* alter, const ForeignKey& key);

/* Takes those away that the table which ALTER copies has as well. Returns an HA_ERR_ code. */
int leave_out_kept(THD* thd, std::vector<ForeignKey>* keys);

/* Gives columns of the altered table the names that they are to have; false: none has another. */
bool rename_columns(Alter_info* alter, std::vector<std::string>* columns);

class ConstraintMaker {
  public:
    /* `name`: the core's, of the table that is made, or that is altered in place; `form`: its definition. */
    ConstraintMaker(THD* thd, const std::string& name, TABLE* form, const HA_CREATE_INFO* info);
    /* Returns an HA_ERR_ code, with the error or a warning that says why. */
    int make();
    const std::vector<ForeignKey>& keys() const { return keys_; }
    /* Those among them that the statement adds. */
    std::vector<ForeignKey> added() const { return {keys_.begin() + static_cast<ptrdiff_t>(kept_), keys_.end()}; }
    /* Of an ALTER in place: constraints of other tables that lead to columns which get other names. */
    const std::vector<ForeignKey>& followers() const { return followers_; }
    /* Why make() said HA_ERR_FOUND_DUPP_KEY: the name, and whether it is this table's already. */
    const std::string& taken_name() const { return taken_name_; }
    bool name_is_own() const { return name_is_own_; }
    /* Says which names other tables' constraints have. */
    void warn_of_taken_names() const;

  private:
    int keep_old();
    int check_index(const std::vector<std::string>& columns, const std::vector<std::string>& old_columns) const;
    int take_new();
    int take(Foreign_key* from);
    int refuse_unkept(const Foreign_key* from) const;
    int check_name(const ForeignKey& key);
    int check_length(const ForeignKey& key) const;
    int check(ForeignKey* key, const std::string& called);
    int check_parent(ForeignKey* key, uint mine, TABLE* parent, const std::string& words) const;
    int check_nullable(const ForeignKey& key, const std::string& words) const;
    int check_cascade(const ForeignKey& key, const TABLE* parent, const std::string& words) const;
    int check_rename();
    int check_children();
    std::string refusal(const std::string& called, const std::string& why, const char* with = "with ") const;
    int fail(const std::string& called, const std::string& why, const char* with = "with ") const;
    /* The table that a constraint is to, or of, is the one that is made. */
    bool is_self(const std::string& table) const { return table == name_ || table == altered_; }
    /* What users know it as. */
    const std::string& called_name() const { return altered_.empty() ? name_ : altered_; }
    bool is_in_place() const { return name_ == altered_; }

    THD* const thd_;
    const std::string name_;
    TABLE* const form_;
    Alter_info* const alter_;
    std::string altered_; /* the core's name of the table that ALTER copies; empty: there is none */
    const bool temporary_;
    const bool in_memory_; /* as the table is to be */
    const bool checked_;
    std::vector<ForeignKey> keys_, followers_;
    std::string taken_name_;
    bool name_is_own_ = false;
    size_t kept_ = 0;     /* of the keys, which come first */
    uint32_t number_ = 0; /* the highest that a constraint without a name of its own has had */
};

} // namespace teak
#endif
