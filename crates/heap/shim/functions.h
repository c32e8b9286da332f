/*
  The functions of SQL.
*/
#ifndef TEAK_HEAP_FUNCTIONS_H
#define TEAK_HEAP_FUNCTIONS_H

#include "server.h"
#include <mysql/plugin_function.h>

namespace teak {

/* teak_heap_directory; empty: the data directory. */
extern char* heap_directory;

extern Plugin_function start_function, stop_function, dump_function, session_function, mark_function, leaks_function;

} // namespace teak
#endif
