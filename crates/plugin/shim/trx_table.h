/*
  information_schema.TEAK_TRX.
*/
#ifndef TEAK_TRX_TABLE_H
#define TEAK_TRX_TABLE_H

#include "server.h"
#include "teak_ffi.h"

namespace teak {

extern st_mysql_information_schema trx_descriptor;

/* Init function of the plugin. */
int init_trx_table(void* schema_table);

/* teak_callbacks::person. */
void tell_person(void* thd, teak_person* out);

} // namespace teak
#endif
