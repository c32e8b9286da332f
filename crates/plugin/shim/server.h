/*
  The server's headers, in the order they demand. Everything in shim/ that needs the server includes this first.
*/
#ifndef TEAK_SERVER_H
#define TEAK_SERVER_H

#include <my_global.h>
#include <my_sys.h>
#include <m_ctype.h>
#include <m_string.h>
#include <mysql/plugin.h>
#include "sql_class.h"
#include "set_var.h"
#include "sql_parse.h"
#include "sql_show.h"
#include "sql_table.h"
#include "sql_partition.h"
#include "handler.h"
#include "key.h"
#include "field.h"
#include "table.h"
#include "table_cache.h"
#include "log.h"

#endif
