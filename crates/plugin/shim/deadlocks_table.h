/*
  information_schema.TEAK_DEADLOCKS.
*/
#ifndef TEAK_DEADLOCKS_TABLE_H
#define TEAK_DEADLOCKS_TABLE_H

#include "server.h"
#include "teak_ffi.h"

namespace teak {

extern st_mysql_information_schema deadlocks_descriptor;

/* Init function of the plugin. */
int init_deadlocks_table(void* schema_table);

} // namespace teak
#endif
