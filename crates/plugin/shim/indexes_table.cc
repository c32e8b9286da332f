/*
  information_schema.TEAK_INDEXES: a row for each tree of each table that is open, with its size and how it was used.

  Nothing is opened or read for it. The plugin lives in the engine's library but not by its grace: it may be asked
  before the engine is there, or after it could not start. Then the table is empty. It names all tables, so it is for
  those who have the PROCESS privilege.
*/
#include "indexes_table.h"
#include "errors.h"
#include "i_s_row.h"
#include "i_s_tables.h"
#include "key_text.h"
#include "session.h"

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO indexes[] = {Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NOT_NULL),
                           Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
                           Column("TREE", Show::ULonglong(), NOT_NULL),
                           Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
                           Column("ENTRIES", Show::ULonglong(), NOT_NULL),
                           Column("LEAVES", Show::ULonglong(), NOT_NULL),
                           Column("HEIGHT", Show::ULonglong(), NOT_NULL),
                           Column("RAW_BYTES", Show::ULonglong(), NOT_NULL),
                           Column("DISK_BYTES", Show::ULonglong(), NOT_NULL),
                           Column("FILL", Double(6), NULLABLE),
                           Column("RATIO", Double(6), NULLABLE),
                           Column("DICTIONARY_BYTES", Show::ULonglong(), NOT_NULL),
                           Column("LOOK_UPS", Show::ULonglong(), NOT_NULL),
                           Column("SCANS", Show::ULonglong(), NOT_NULL),
                           Column("INSERTS", Show::ULonglong(), NOT_NULL),
                           Column("LOCK_WAITS", Show::ULonglong(), NOT_NULL),
                           Column("LOCK_WAIT_SECONDS", Double(20), NOT_NULL),
                           Column("LAST_CHANGE", Show::Datetime(0), NULLABLE),
                           CEnd()};
} // namespace fields

void add_share(ListedRow* row, uint64_t part, uint64_t whole) {
    part&& whole ? row->maybe_share(static_cast<double>(part) / static_cast<double>(whole)) : row->null();
}

/* One row; 1 ends the listing. */
int store_index(void* context, const teak_index_report* index) {
    const auto& listing = *static_cast<const Listing*>(context);
    ListedRow row(listing.table);
    const auto [schema, name] = shown_names(index->table);
    row.text(schema);
    row.text(name);
    row.number(index->tree);
    row.unless_empty(KeyText(index->description, index->tree).index());
    for (uint64_t number : {index->entries, index->leaves, index->height, index->raw_bytes, index->disk_bytes})
        row.number(number);
    add_share(&row, index->raw_bytes, index->leaves * index->block_bytes);
    add_share(&row, index->disk_bytes, index->raw_bytes);
    for (uint64_t number : {index->dictionary_bytes, index->look_ups, index->scans, index->inserts, index->lock_waits})
        row.number(number);
    row.seconds(index->lock_wait_microseconds / 1000);
    index->changed_at ? row.maybe(listing.local_time(static_cast<my_time_t>(index->changed_at))) : row.null();
    return schema_table_store_record(listing.thd, listing.table) || thd_killed(listing.thd);
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    Asker asker = asker_of(thd, tables);
    if (!plugin.engine || !asker.sees_all) return 0;
    return end_of_fill(teak_indexes_report(plugin.engine, store_index, static_cast<Listing*>(&asker)), thd);
}

} // namespace

st_mysql_information_schema indexes_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_indexes_table(void* schema_table) { return has_columns(schema_table, fields::indexes, fill); }

} // namespace teak
