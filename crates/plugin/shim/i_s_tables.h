/*
  information_schema.TEAK_TABLES.
*/
#ifndef TEAK_I_S_TABLES_H
#define TEAK_I_S_TABLES_H

#include "server.h"
#include "teak_ffi.h"

#include <string>
#include <utility>

namespace teak {

/* Schema and name, as SQL has them, of a table that the engine calls "db/table". */
std::pair<std::string, std::string> shown_names(teak_bytes table);

extern st_mysql_information_schema tables_descriptor;

/* Init function of the plugin. */
int init_tables_table(void* schema_table);

} // namespace teak
#endif
