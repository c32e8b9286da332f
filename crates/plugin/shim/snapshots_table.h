/*
  information_schema.TEAK_SNAPSHOTS.
*/
#ifndef TEAK_SNAPSHOTS_TABLE_H
#define TEAK_SNAPSHOTS_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema snapshots_descriptor;

/* Init function of the plugin. */
int init_snapshots_table(void* schema_table);

} // namespace teak
#endif
