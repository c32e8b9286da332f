/*
  Foreign keys as they are kept: links of the child's table to the parent's in the engine's catalog.

  Knows names, rules and the words for them; knows nothing of rows, locks or open tables. What a link's body has:

    version (1) = 1 | rule of DELETE (1) | rule of UPDATE (1) | number (4, LE) | columns (1) | length (1) and name |
    for each column: length (1) and name in the child, length (1) and name in the parent

  The number is that of a constraint without a name of its own, which is called `<table>_ibfk_<number>` whatever the
  table is called; 0: it has a name.

  The link's name is the database's and the constraint's in small letters, so that no two constraints of a database have
  one. A table with a passing name leaves the names to the one that it is a copy of: its links have none.
*/
#ifndef TEAK_FOREIGN_KEY_H
#define TEAK_FOREIGN_KEY_H

#include "server.h"
#include "teak_ffi.h"
#include <deque>
#include <string>
#include <vector>

namespace teak {

/* A table's name as the server knows it, from one of the core's ("db/table", encoded as file names are). */
struct TableName {
    explicit TableName(const std::string& core_name);
    /* The core's name of a table. */
    static std::string core(const char* db, const char* table);
    LEX_CSTRING db() const { return {db_, strlen(db_)}; }
    LEX_CSTRING table() const { return {table_, strlen(table_)}; }

  private:
    char db_[NAME_LEN + 1], table_[NAME_LEN + 1];
};

/* One that the server makes on its way and gives another name later. */
bool is_passing_name(const std::string& core_name);

struct ForeignKey {
    std::string child, parent; /* the core's names */
    std::string given_name;
    uint32_t number = 0;
    std::vector<std::string> columns, parent_columns;
    enum_fk_option on_delete = FK_OPTION_RESTRICT, on_update = FK_OPTION_RESTRICT;

    /* Takes a name as it was given; one of the form that generated names have is one. */
    void set_name(const char* name, const std::string& table);
    std::string name() const;
    /* Of the link. */
    std::string link_name() const;
    bool has_name(const char* name) const;
    /* Whether the server would take the name; an HA_ERR_ code, the error is set. */
    int check_length() const;
    bool is_of_itself() const { return child == parent; }
    /* Whether it is the same constraint, however each was come by. */
    bool is(const ForeignKey& other) const {
        return number == other.number && given_name == other.given_name && child == other.child &&
               parent == other.parent;
    }
    /* Whether children follow when a row goes, or (not `deleted`) has another key. */
    bool cascades(bool deleted) const;
    /* False: no link that this build knows. */
    bool parse(const teak_link& link);
    std::vector<uchar> body() const;
    /* As SHOW CREATE TABLE has it, from CONSTRAINT on. */
    std::string text(THD* thd) const;
    /* As errors have it: the child's name, then the same. */
    std::string error_text(THD* thd) const;
};

/* All foreign keys that a table is in, as of one moment. */
struct ForeignKeys {
    uint64_t changes = UINT64_MAX; /* teak_link_changes when they were asked for */
    /* Both sorted by database and name. */
    std::vector<ForeignKey> own;       /* it is the child */
    std::vector<ForeignKey> of_others; /* it is the parent; also those to itself */

    bool empty() const { return own.empty() && of_others.empty(); }
    bool are_known() const { return changes != UINT64_MAX; }
    /* Asks the engine, if they may have changed. Returns an HA_ERR_ code. */
    int load(const std::string& core_name, THD* thd);
};

/* Those of all tables, for a table of information_schema; 1: they cannot be read, as the statement's error says. */
int load_all(THD* thd, std::vector<ForeignKey>* keys);

/* Constraints of one table as the engine takes them. */
class LinkList {
  public:
    explicit LinkList(const std::vector<ForeignKey>& keys);
    LinkList(const LinkList&) = delete;
    LinkList& operator=(const LinkList&) = delete;
    teak_array<teak_link> all() const { return {links_.data(), links_.size()}; }

  private:
    std::deque<std::string> names_;
    std::deque<std::vector<uchar>> bodies_;
    std::vector<teak_link> links_;
};

/* What becomes of the constraints of some tables, as the engine takes it. */
class Relinks {
  public:
    /* These are all that the table has from now on. */
    void add(const std::string& table, const std::vector<ForeignKey>& keys);
    teak_array<teak_relink> all() const { return {relinks_.data(), relinks_.size()}; }

  private:
    std::deque<std::string> tables_;
    std::deque<LinkList> lists_;
    std::vector<teak_relink> relinks_;
};

/* Whether the statement looks after constraints (foreign_key_checks). */
inline bool are_checked(THD* thd) { return !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS); }

/* Gives a table another name, and its constraints theirs. `carries`: those of others that lead to it follow. Returns an
   HA_ERR_ code. */
int rename_with_constraints(THD* thd, const std::string& from, const std::string& to, bool carries);

/* Whether a table other than `but_for` has a constraint of this name in this database. */
bool is_name_taken(const ForeignKey& key, const std::string& but_for);

/* Warns, as InnoDB, of a constraint whose name another one of the database has. */
void warn_of_duplicate_name(THD* thd, const std::string& table, const ForeignKey& key);

/* Whether the rule changes children, rather than keeping their parent as it is. */
inline bool is_carried_out(enum_fk_option rule) { return rule == FK_OPTION_CASCADE || rule == FK_OPTION_SET_NULL; }

std::string quoted(THD* thd, const LEX_CSTRING& name);

} // namespace teak
#endif
