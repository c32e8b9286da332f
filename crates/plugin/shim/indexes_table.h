/*
  information_schema.TEAK_INDEXES.
*/
#ifndef TEAK_INDEXES_TABLE_H
#define TEAK_INDEXES_TABLE_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema indexes_descriptor;

/* Init function of the plugin. */
int init_indexes_table(void* schema_table);

} // namespace teak
#endif
