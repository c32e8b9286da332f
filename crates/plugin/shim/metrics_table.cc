/*
  information_schema.TEAK_METRICS: what the engine counts, with its meaning, and how often what took how long; and
  TEAK_MEMORY, those of its numbers that say what the memory is for.

  As SHOW GLOBAL STATUS, which has the same numbers, it is for everybody: they are the server's, and nobody's in
  particular. The plugins live in the engine's library but not by its grace: they may be asked before the engine is
  there, or after it could not start. Then the tables are empty.
*/
#include "metrics_table.h"
#include "i_s_row.h"
#include "session.h"

#include <string_view>
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

ST_FIELD_INFO memory_fields[] = {Show::Column("PURPOSE", Show::Varchar(32), NOT_NULL),
                                 Show::Column("BYTES", Show::ULonglong(), NOT_NULL),
                                 Show::Column("HELP", Show::Varchar(128), NOT_NULL), Show::CEnd()};

/* All numbers, with the ranges of histograms if they are asked for. */
std::vector<teak_metric> all_metrics(uint8_t ranges) {
    if (!plugin.engine) return {};
    std::vector<teak_metric> metrics(teak_engine_metrics(plugin.engine, ranges, {}));
    size_t n = teak_engine_metrics(plugin.engine, ranges, {metrics.data(), metrics.size()});
    metrics.resize(std::min(n, metrics.size()));
    return metrics;
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    for (const teak_metric& metric : all_metrics(1)) {
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

int fill_memory(THD* thd, TABLE_LIST* tables, Item*) {
    constexpr std::string_view kPrefix = "memory_of_";
    for (const teak_metric& metric : all_metrics(0)) {
        std::string_view name = metric.name;
        if (name.substr(0, kPrefix.size()) != kPrefix) continue;
        ListedRow row(tables->table);
        row.text(std::string(name.substr(kPrefix.size())));
        row.number(metric.value);
        row.text(text_of(metric.help));
        if (schema_table_store_record(thd, tables->table)) return 1;
    }
    return 0;
}

} // namespace

st_mysql_information_schema metrics_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};
st_mysql_information_schema memory_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_metrics_table(void* schema_table) { return has_columns(schema_table, fields, fill); }

int init_memory_table(void* schema_table) { return has_columns(schema_table, memory_fields, fill_memory); }

} // namespace teak
