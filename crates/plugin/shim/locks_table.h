/*
  information_schema.TEAK_LOCKS.
*/
#ifndef TEAK_LOCKS_TABLE_H
#define TEAK_LOCKS_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema locks_descriptor;

/* Init function of the plugin. */
int init_locks_table(void* schema_table);

} // namespace teak
#endif
