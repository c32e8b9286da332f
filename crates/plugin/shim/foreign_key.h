/*
  Foreign keys as they are kept: links of the child's table to the parent's in the engine's catalog.

  Knows names, rules and the words for them; knows nothing of rows, locks or open tables. What a link's body has:

    version (1) = 1 | rule of DELETE (1) | rule of UPDATE (1) | number (4, LE) | columns (1) |
    for each column: length (1) and name in the child, length (1) and name in the parent

  The number is that of a constraint without a name of its own, which is called `<table>_ibfk_<number>` whatever the
  table is called; 0: it has a name, the link's.
*/
#ifndef TEAK_FOREIGN_KEY_H
#define TEAK_FOREIGN_KEY_H

#include "server.h"
#include "teak_ffi.h"
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
    bool has_name(const char* name) const;
    bool is_of_itself() const { return child == parent; }
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
    /* Asks the engine, if they may have changed. Returns an HA_ERR_ code. */
    int load(const std::string& core_name, THD* thd);
};

/* Whether the rule changes children, rather than keeping their parent as it is. */
inline bool is_carried_out(enum_fk_option rule) { return rule == FK_OPTION_CASCADE || rule == FK_OPTION_SET_NULL; }

std::string quoted(THD* thd, const LEX_CSTRING& name);

} // namespace teak
#endif
