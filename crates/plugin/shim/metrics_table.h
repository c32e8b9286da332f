/*
  information_schema.TEAK_METRICS and TEAK_MEMORY.
*/
#ifndef TEAK_METRICS_TABLE_H
#define TEAK_METRICS_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema metrics_descriptor;
extern st_mysql_information_schema memory_descriptor;

/* Init functions of the plugins. */
int init_metrics_table(void* schema_table);
int init_memory_table(void* schema_table);

} // namespace teak
#endif
