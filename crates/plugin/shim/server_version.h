/*
  What differs between the releases of the server that Teak is built for: MariaDB 10.11 and 11.8. What both have under
  one name is no matter of this file; what only one has is hidden behind a name of ours here, or, where a whole function
  differs, stands between #if and #endif where it belongs. scripts/style.py counts these islands. Each has the line of
  the newer server (11.8.6) that made it.
*/
#ifndef TEAK_SERVER_VERSION_H
#define TEAK_SERVER_VERSION_H

#include "server.h"
#include <cstring>
#include <string>

namespace teak {

/* Hooks are not given the handlerton any more. handler.h: int (*commit)(THD *thd, bool all); */
#if MYSQL_VERSION_ID >= 110800
template <auto function> constexpr auto hook = function;
#else
template <auto function> struct Hook;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)> struct Hook<function> {
    static Result with_engine(handlerton*, Arguments... arguments) { return function(arguments...); }
};
template <auto function> constexpr auto hook = &Hook<function>::with_engine;
#endif

/* Whether two names are the same column, index or constraint. Names have a collation now.
   lex_ident.h: return &my_charset_utf8mb3_general1400_as_ci; */
inline bool is_same_name(const char* a, const char* b) {
#if MYSQL_VERSION_ID >= 110800
    return Lex_ident_ci::streq({a, strlen(a)}, {b, strlen(b)});
#else
    return my_strcasecmp(system_charset_info, a, b) == 0;
#endif
}

/* Kinds of indexes are algorithms, no flags any more. my_base.h: HA_KEY_ALG_VECTOR= 7, HA_FULLTEXT_legacy 128U */
#if MYSQL_VERSION_ID >= 110800
inline bool is_fulltext(const KEY& key) { return key.algorithm == HA_KEY_ALG_FULLTEXT; }
inline bool is_spatial(const KEY& key) { return key.algorithm == HA_KEY_ALG_RTREE; }
inline bool is_vector(const KEY& key) { return key.algorithm == HA_KEY_ALG_VECTOR; }
#else
inline bool is_fulltext(const KEY& key) { return key.flags & HA_FULLTEXT; }
inline bool is_spatial(const KEY& key) { return key.flags & HA_SPATIAL; }
inline bool is_vector(const KEY&) { return false; }
#endif
/* Whether Teak has no entries in order for it. */
inline bool is_special(const KEY& key) { return is_fulltext(key) || is_spatial(key) || is_vector(key); }

/* The members of an ENUM or SET. sql_type.h: const TYPELIB *typelib() const { return m_typelib; } */
inline const TYPELIB* members_of(const Field_enum* field) {
#if MYSQL_VERSION_ID >= 110800
    return field->typelib();
#else
    return field->typelib;
#endif
}

/* Whether the share belongs to one thread has to be told. table.h: const char *path, bool thread_specific); */
inline void init_share(THD* thd, TABLE_SHARE* share, const char* db, const char* table, const char* path) {
#if MYSQL_VERSION_ID >= 110800
    init_tmp_table_share(thd, share, db, 0, table, path, false);
#else
    init_tmp_table_share(thd, share, db, 0, table, path);
#endif
}

/* InnoDB refuses INDEX DIRECTORY, or ignores it with a note. ha_innodb.cc: WARN_OPTION_IGNORED, ME_NOTE */
constexpr bool kIgnoresIndexDirectory = MYSQL_VERSION_ID >= 110800;

/* A name in small letters: by the one function for that which both have. */
inline std::string lower_case(const char* name, size_t length) {
    std::string small(length * system_charset_info->casedn_multiply(), '\0');
    small.resize(system_charset_info->casedn(name, length, small.data(), small.size()));
    return small;
}

/* Text that is a name in one release, and a pointer in another. */
inline const char* c_name(const char* name) { return name; }
inline const char* c_name(const LEX_CSTRING& name) { return name.str; }

} // namespace teak
#endif
