/*
  information_schema.TEAK_FOREIGN and TEAK_FOREIGN_COLS.
*/
#ifndef TEAK_FOREIGN_TABLES_H
#define TEAK_FOREIGN_TABLES_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema foreign_descriptor, foreign_columns_descriptor;

/* Init functions of the plugins. */
int init_foreign_table(void* schema_table);
int init_foreign_columns_table(void* schema_table);

} // namespace teak
#endif
