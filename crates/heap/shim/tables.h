/*
  information_schema.TEAK_HEAP and TEAK_HEAP_ALLOCATOR.
*/
#ifndef TEAK_HEAP_TABLES_H
#define TEAK_HEAP_TABLES_H

#include "server.h"

namespace teak {

extern st_mysql_information_schema heap_descriptor;

/* Init functions of the plugins. */
int init_heap_table(void* schema_table);
int init_allocator_table(void* schema_table);

} // namespace teak
#endif
