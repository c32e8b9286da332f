/*
  information_schema.TEAK_SNAPSHOTS: a row for each open snapshot, oldest first.

  The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there, or after it
  could not start. Then the table is empty. As with the process list, other people's sessions are shown only to those
  who have the PROCESS privilege.
*/
#include "snapshots_table.h"
#include "i_s_row.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include <vector>

namespace teak {
namespace {

/* Show's ULonglong; another class has that name as well. */
Show::Column number(const char* name) { return Show::Column(name, Show::ULonglong(), NOT_NULL); }

ST_FIELD_INFO fields[] = {number("CONNECTION_ID"),
                          number("SNAPSHOT_TIMESTAMP"),
                          number("AGE_SECONDS"),
                          number("VERSIONS"),
                          number("MEMORY_BYTES"),
                          number("SPILLED_BYTES"),
                          Show::Column("STATE", Show::Varchar(16), NOT_NULL),
                          Show::CEnd()};

/* Those that open meanwhile find room as well, as a rule. */
constexpr size_t kSpare = 64;

std::vector<teak_snapshot> open_snapshots() {
    std::vector<teak_snapshot> all(teak_engine_snapshots(plugin.engine, {}) + kSpare);
    size_t n = teak_engine_snapshots(plugin.engine, {all.data(), all.size()});
    all.resize(std::min(n, all.size()));
    return all;
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine || check_global_access(thd, PROCESS_ACL, true)) return 0;
    TABLE* table = tables->table;
    for (const teak_snapshot& snapshot : open_snapshots()) {
        const uint64_t numbers[] = {snapshot.session,  snapshot.timestamp,    snapshot.age_seconds,
                                    snapshot.versions, snapshot.memory_bytes, snapshot.spilled_bytes};
        uint column = 0;
        for (uint64_t number : numbers)
            table->field[column++]->store(static_cast<longlong>(number), true);
        const char* state = snapshot.too_old ? "TOO OLD" : "ACTIVE";
        table->field[column]->store(state, strlen(state), system_charset_info);
        if (schema_table_store_record(thd, table)) return 1;
    }
    return 0;
}

} // namespace

st_mysql_information_schema snapshots_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_snapshots_table(void* schema_table) { return has_columns(schema_table, fields, fill); }

} // namespace teak
