/*
  information_schema.TEAK_METRICS.
*/
#ifndef TEAK_METRICS_TABLE_H
#define TEAK_METRICS_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema metrics_descriptor;

/* Init function of the plugin. */
int init_metrics_table(void* schema_table);

} // namespace teak
#endif
