/*
  information_schema.TEAK_LOCK_WAITS.
*/
#ifndef TEAK_LOCK_WAITS_TABLE_H
#define TEAK_LOCK_WAITS_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema lock_waits_descriptor;

/* Init function of the plugin. */
int init_lock_waits_table(void* schema_table);

} // namespace teak
#endif
