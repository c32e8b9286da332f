/*
  Foreign keys of an open table, kept: parents of rows that are written and children of rows that go are looked for, and
  children follow where a rule says so (constraint_keeper.cc, cascade.cc). What the server asks about constraints is in
  ha_teak_foreign.cc, what ALTER in place makes of them in altered_constraints.h.

  A row is written through the handler by whoever changes it; this one is asked before and after. Only a cascade writes
  by itself, to the rows of children, through their handlers.
*/
#ifndef TEAK_CONSTRAINT_KEEPER_H
#define TEAK_CONSTRAINT_KEEPER_H

#include "foreign_look.h"
#include "table_use.h"

class ha_teak;

namespace teak {

class ConstraintKeeper {
  public:
    ConstraintKeeper(ha_teak& file, OpenTable& open, TableUse& use) : file_(file), open_(open), use_(use) {}
    ConstraintKeeper(const ConstraintKeeper&) = delete;
    ConstraintKeeper& operator=(const ConstraintKeeper&) = delete;

    /* Those of the table, as they are now; of a temporary one there are none. After an error they are empty. */
    const ForeignKeys& keys() const;
    /* For those who must not take a catalog that cannot be read for a table without constraints: an HA_ERR_ code, the
       error is set. */
    int know() const;
    /* Whether a foreign key needs the index: then it is always kept up. */
    bool needs(uint index) const;

    /* To be called before each row that is changed, also in a cascade, whose handlers may have been idle for long:
       `*wanted` says whether foreign keys are to be looked after. Returns an HA_ERR_ code, as all that follows. */
    int prepare(bool* wanted);
    bool has_parents() const { return !looks_->at_parents.empty(); }
    /* What is written from here on belongs to one row, and to those that follow from it. */
    int mark_row() const { return open_.fail(teak_row_mark(use_.session(), use_.held.session->cascade.size())); }
    /* All that is undone because of `error`. */
    int undo_row(int error) const;
    /*
      The parents of a row that was written; `before`: what it was, nullptr if it is new. What has come of the row is
      undone if there is an error.

      Whoever has a parent locked may be about to change its children: he would meet the row, and wait for who waits for
      him. So the row is taken back before a parent is waited for, and `*again` says that it is to be written once more.
    */
    int look_at_parents(const uchar* record, const uchar* before, bool* again);
    /* The children of a row that is about to go, or to become `after`; those that a rule might change before are looked
       for when it has (cascade), as in InnoDB: it may leave none. */
    int look_at_children(const uchar* record, const uchar* after, teak_bytes pk);
    /* What a row is for its children once it has become `after`: nullptr if it goes. A versioned table's is kept as
       history then. */
    const uchar* follower_of(const uchar* before, const uchar* after) const {
        return open_.end.ends(before, after) ? nullptr : after;
    }
    /* Whether children have to follow when this row goes, or becomes `after`. */
    bool has_to_cascade(const uchar* record, const uchar* after) const;
    /* The row `record` has gone, or is `after` now, with the primary key `pk`: its children follow. What
       look_at_children has left is looked at in its turn: constraints that keep the row, behind the first that is
       carried out. */
    int cascade(const uchar* record, const uchar* after, teak_bytes pk);

    /* `error`, of which the text is about this constraint from now on; `record`: the row that breaks it, if there is
       one. */
    int break_constraint(const ForeignKey& key, int error, const uchar* record = nullptr);
    const std::string& broken() const { return broken_; }
    /* Where HA_ERR_FOREIGN_DUPLICATE_KEY has met the duplicate. */
    const std::string& duplicate_table() const { return duplicate_table_; }
    const std::string& duplicate_index() const { return duplicate_index_; }

  private:
    int make_looks();
    int hold_looks(const Looks& looks);
    int renew_looks();
    bool names_again(const ForeignLook& look, const uchar* before, const uchar* record) const;
    int refuse_children(ForeignLook& look, const uchar* record);
    std::string values_of(const std::vector<std::string>& columns, const uchar* record) const;

    /* cascade.cc */
    ConstraintKeeper* free_child(const std::string& core_name) const;
    std::vector<std::string> unmet_beside(const ForeignLook& look, const Looks& looks, const uchar* was,
                                          const uchar* becomes) const;
    bool takes_key_of_parent(const ForeignKey& key) const;
    teak_bytes unmet_parent(const ForeignKey& key) const;
    int check_chain(const ForeignKey& key, bool updated);
    int cascade_to(ForeignLook& look, const uchar* record, const uchar* after);
    bool ends_cascades() const;
    int tell_broken_below(const ConstraintKeeper& child, int error);
    int follow(const ForeignKey& key, TABLE* parent, const uchar* before, const uchar* after,
               const std::vector<uchar>& row);
    bool is_versioned(const ForeignKey& key) const;
    int end_row(const timeval& moment);
    int put_history(const timeval& moment);

    ha_teak& file_;
    OpenTable& open_;
    TableUse& use_;
    /* What was asked of the engine last. */
    mutable ForeignKeys keys_;
    std::shared_ptr<const Looks> looks_; /* nullptr: none are known */
    uint64_t held_in_ = 0;               /* the session's statement that keeps the definitions of what they look at */
    std::string broken_;                 /* which one the last error is about */
    std::string duplicate_table_, duplicate_index_;
};

} // namespace teak
#endif
