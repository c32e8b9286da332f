/*
  The declaration of teak_heap.so: functions, tables, a variable, and the ends of statements.

  The library is never unloaded (-z nodelete): a thread may be within a hook when the last plugin of it goes.
*/
#include "functions.h"
#include "tables.h"
#include "thread_state.h"

#include <mysql/plugin_audit.h>

namespace teak {
namespace {

/* ---- where statements begin and end ---------------------------------------------------------------- */

/*
  The server tells of a statement (LOG) before it parses it, and of its end (STATUS) when its answer is on the way, both
  on the thread that works on it: under a thread pool too. Statements of a stored routine come between these, and belong
  to the CALL. Of several statements in one packet the server tells where each ends, but not that the next begins.
*/
void general_event(THD* thd, const mysql_event_general* event) {
    if (event->event_subclass == MYSQL_AUDIT_GENERAL_LOG) {
        /* What is not the session's query is a text on somebody's stack. */
        const bool is_query = event->general_query && event->general_query == thd->query();
        const size_t length = is_query ? event->general_query_length : 0;
        teak_heap_statement_begins(own_thread(), thd->thread_id,
                                   {reinterpret_cast<const uint8_t*>(event->general_query), length});
    } else if (event->event_subclass == MYSQL_AUDIT_GENERAL_STATUS) {
        teak_heap_statement_ends(own_thread());
        if (thd->server_status & SERVER_MORE_RESULTS_EXISTS)
            teak_heap_statement_begins(own_thread(), thd->thread_id, {nullptr, 0});
    }
}

void notify(THD* thd, unsigned int event_class, const void* event) {
    if (event_class == MYSQL_AUDIT_GENERAL_CLASS) {
        general_event(thd, static_cast<const mysql_event_general*>(event));
    } else if (event_class == MYSQL_AUDIT_CONNECTION_CLASS) {
        const auto* connection = static_cast<const mysql_event_connection*>(event);
        if (connection->event_subclass == MYSQL_AUDIT_CONNECTION_DISCONNECT)
            teak_heap_connection_ends(own_thread(), connection->thread_id);
    }
}

st_mysql_audit statements_descriptor = {
    MYSQL_AUDIT_INTERFACE_VERSION, nullptr, notify, {MYSQL_AUDIT_GENERAL_CLASSMASK | MYSQL_AUDIT_CONNECTION_CLASSMASK}};

int start(void*) {
    teak_heap_begin(&hooks);
    return 0;
}

/* Without the ends of statements nothing can be followed any more. */
int stop(void*) {
    teak_heap_end(own_thread());
    return 0;
}

/* ---- variables ------------------------------------------------------------------------------------- */

MYSQL_SYSVAR_STR(directory, heap_directory, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                 "Where teak_heap_dump() writes; by itself the data directory", nullptr, nullptr, "");

st_mysql_sys_var* variables[] = {MYSQL_SYSVAR(directory), nullptr};

/* ---- plugins --------------------------------------------------------------------------------------- */

constexpr st_maria_plugin plugin(int type, void* descriptor, const char* name, const char* description,
                                 int (*init)(void*) = nullptr, int (*deinit)(void*) = nullptr,
                                 st_mysql_sys_var** variables = nullptr) {
    /* Of what is not stable the server says so in the error log: one of them does. */
    const auto maturity = type == MYSQL_AUDIT_PLUGIN ? MariaDB_PLUGIN_MATURITY_GAMMA : MariaDB_PLUGIN_MATURITY_STABLE;
    return {type,
            descriptor,
            name,
            "Teak",
            description,
            PLUGIN_LICENSE_GPL,
            init,
            deinit,
            0x0001,
            nullptr,
            variables,
            "0.1",
            static_cast<unsigned int>(maturity)};
}

} // namespace
} // namespace teak

maria_declare_plugin(teak_heap) teak::plugin(MYSQL_AUDIT_PLUGIN, &teak::statements_descriptor, "teak_heap_statements",
                                             "Where statements begin and end, for the other parts of teak_heap",
                                             teak::start, teak::stop),
    teak::plugin(MYSQL_INFORMATION_SCHEMA_PLUGIN, &teak::heap_descriptor, "TEAK_HEAP",
                 "What is allocated, by call site, session and statement", teak::init_heap_table, nullptr,
                 teak::variables),
    teak::plugin(MYSQL_INFORMATION_SCHEMA_PLUGIN, &teak::heap_descriptor, "TEAK_HEAP_ALLOCATOR",
                 "The server's allocator, and what is recorded of it", teak::init_allocator_table),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::start_function, "teak_heap_start",
                 "Function TEAK_HEAP_START([bytes]): samples what all threads allocate"),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::stop_function, "teak_heap_stop",
                 "Function TEAK_HEAP_STOP(): ends that"),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::dump_function, "teak_heap_dump",
                 "Function TEAK_HEAP_DUMP(file): writes a profile"),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::session_function, "teak_heap_session",
                 "Function TEAK_HEAP_SESSION(on): records all that the session's statements allocate"),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::mark_function, "teak_heap_mark",
                 "Function TEAK_HEAP_MARK(name): from here on"),
    teak::plugin(MariaDB_FUNCTION_PLUGIN, &teak::leaks_function, "teak_heap_leaks",
                 "Function TEAK_HEAP_LEAKS(name): what was allocated since and not freed") maria_declare_plugin_end;
