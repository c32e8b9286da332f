/*
  A function of SQL by which benches/small.py switches callgrind's counting in the server: counting(0) off, counting(1)
  on, with empty caches; counting(2) writes what was counted so far of the thread that calls it.
*/
#include <mysql.h>
#include <valgrind/callgrind.h>

my_bool counting_init(UDF_INIT *init, UDF_ARGS *args, char *message);
long long counting(UDF_INIT *init, UDF_ARGS *args, char *is_null, char *error);

my_bool counting_init(UDF_INIT *init, UDF_ARGS *args, char *message)
{
  (void) message;
  /* What is constant is carried out more than once. */
  init->const_item= 0;
  return args->arg_count != 1 || args->arg_type[0] != INT_RESULT;
}

long long counting(UDF_INIT *init, UDF_ARGS *args, char *is_null, char *error)
{
  long long what= *(long long *) args->args[0];
  (void) init;
  (void) is_null;
  (void) error;
  if (what == 0)
    CALLGRIND_STOP_INSTRUMENTATION;
  else if (what == 1)
    CALLGRIND_START_INSTRUMENTATION;
  else
    CALLGRIND_DUMP_STATS;
  return what;
}
