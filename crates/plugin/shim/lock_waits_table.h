/*
  information_schema.TEAK_LOCK_WAITS.
*/
#ifndef TEAK_LOCK_WAITS_TABLE_H
#define TEAK_LOCK_WAITS_TABLE_H

#include "i_s_row.h"
#include "server.h"

namespace teak {

/* So many characters of a key are shown. */
constexpr size_t kShownKey = 512;

/* The columns from TABLE_SCHEMA to TREE. */
void add_place(const teak_sought& sought, ListedRow* row);
/* The columns from TABLE_SCHEMA to LOCK_KEY. */
void add_sought(const teak_sought& sought, THD* thd, ListedRow* row);

extern st_mysql_information_schema lock_waits_descriptor;

/* Init function of the plugin. */
int init_lock_waits_table(void* schema_table);

} // namespace teak
#endif
