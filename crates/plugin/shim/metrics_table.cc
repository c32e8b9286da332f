/*
  information_schema.TEAK_METRICS: what the engine counts, with its meaning, and how often what took how long.

  As SHOW GLOBAL STATUS, which has the same numbers, it is for everybody: they are the server's, and nobody's in
  particular. The plugin lives in the engine's library but not by its grace: it may be asked before the engine is there,
  or after it could not start. Then the table is empty.
*/
#include "metrics_table.h"
#include "i_s_row.h"
#include "session.h"

#include <vector>

namespace teak {
namespace {

ST_FIELD_INFO fields[] = {Show::Column("NAME", Show::Varchar(64), NOT_NULL),
                          Show::Column("KIND", Show::Varchar(9), NOT_NULL),
                          Show::Column("UNIT", Show::Varchar(12), NULLABLE),
                          Show::Column("UP_TO", Show::ULonglong(), NULLABLE),
                          Show::Column("VALUE", Show::ULonglong(), NOT_NULL),
                          Show::Column("HELP", Show::Varchar(128), NOT_NULL),
                          Show::CEnd()};

const char* const kKinds[] = {"COUNTER", "GAUGE", "HISTOGRAM"};
static_assert(TEAK_METRIC_COUNTER == 0 && TEAK_METRIC_GAUGE == 1 && TEAK_METRIC_HISTOGRAM == 2);
const char* const kUnits[] = {"", "BYTES", "SECONDS", "MILLISECONDS", "MICROSECONDS"};
static_assert(std::size(kUnits) == TEAK_METRIC_UNITS);

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine) return 0;
    std::vector<teak_metric> metrics(teak_engine_metrics(plugin.engine, 1, {}));
    metrics.resize(std::min(teak_engine_metrics(plugin.engine, 1, {metrics.data(), metrics.size()}), metrics.size()));
    for (const teak_metric& metric : metrics) {
        ListedRow row(tables->table);
        row.text(metric.name);
        row.text(kKinds[metric.kind]);
        row.unless_empty(kUnits[metric.unit]);
        row.unless_zero(metric.up_to);
        row.number(metric.value);
        row.text(text_of(metric.help));
        if (schema_table_store_record(thd, tables->table)) return 1;
    }
    return 0;
}

} // namespace

st_mysql_information_schema metrics_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_metrics_table(void* schema_table) { return has_columns(schema_table, fields, fill); }

} // namespace teak
