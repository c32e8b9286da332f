/*
  information_schema.TEAK_TABLES.
*/
#ifndef TEAK_I_S_TABLES_H
#define TEAK_I_S_TABLES_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema tables_descriptor;

/* Init function of the plugin. */
int init_tables_table(void* schema_table);

} // namespace teak
#endif
