/*
  information_schema.TEAK_HEAP: live objects by call site, session and statement. TEAK_HEAP_ALLOCATOR: the allocator, in
  one row.

  TEAK_HEAP has others' statements, and addresses of the server's memory in its stacks: it is for those with SUPER, as
  the functions are, and empty for others.
*/
#include "tables.h"
#include "i_s_row.h"
#include "thread_state.h"

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO heap[] = {Column("FUNCTION", Varchar(1024), NOT_NULL),
                        Column("MODULE", Varchar(512), NOT_NULL),
                        Column("FILE", Varchar(512), NULLABLE),
                        Column("LINE", Show::ULonglong(), NULLABLE),
                        Column("LIVE_OBJECTS", Show::ULonglong(), NOT_NULL),
                        Column("LIVE_BYTES", Show::ULonglong(), NOT_NULL),
                        Column("NEW_OBJECTS", Show::ULonglong(), NULLABLE),
                        Column("NEW_BYTES", Show::ULonglong(), NULLABLE),
                        Column("SESSION", Show::ULonglong(), NULLABLE),
                        Column("DIGEST", Varchar(16), NULLABLE),
                        Column("DIGEST_TEXT", Varchar(240), NULLABLE),
                        Column("KEPT_BY", Varchar(64), NULLABLE),
                        Column("WALK", Varchar(5), NOT_NULL),
                        Column("STACK", Longtext(MAX_FIELD_VARCHARLENGTH), NOT_NULL),
                        CEnd()};
ST_FIELD_INFO allocator[] = {Column("NAME", Varchar(16), NOT_NULL),
                             Column("VERSION", Varchar(32), NOT_NULL),
                             Column("LIBRARY", Varchar(512), NOT_NULL),
                             Column("ALLOCATED", Show::ULonglong(), NULLABLE),
                             Column("ACTIVE", Show::ULonglong(), NULLABLE),
                             Column("RESIDENT", Show::ULonglong(), NULLABLE),
                             Column("RETAINED", Show::ULonglong(), NULLABLE),
                             Column("RECORDING", Varchar(3), NOT_NULL),
                             Column("SAMPLE_BYTES", Show::ULonglong(), NULLABLE),
                             Column("SESSIONS", Show::ULonglong(), NOT_NULL),
                             Column("RECORDED_OBJECTS", Show::ULonglong(), NOT_NULL),
                             Column("LOST_OBJECTS", Show::ULonglong(), NOT_NULL),
                             Column("RECORDER_BYTES", Show::ULonglong(), NOT_NULL),
                             Column("REFUSAL", Varchar(512), NULLABLE),
                             CEnd()};
} // namespace fields

/* As much of a text as a column has room for. */
std::string cut(teak_bytes bytes, size_t room) {
    std::string text = text_of(bytes);
    if (text.size() > room) text.resize(room);
    return text;
}

int store_site(void* context, const teak_site* site) {
    const auto* listing = static_cast<const Listing*>(context);
    ListedRow row(listing->table);
    row.text(cut(site->function, 1024));
    row.text(cut(site->module, 512));
    row.unless_empty(cut(site->file, 512));
    row.unless_zero(site->line);
    row.number(site->live_objects);
    row.number(site->live_bytes);
    site->has_mark ? row.maybe(site->new_objects) : row.null();
    site->has_mark ? row.maybe(site->new_bytes) : row.null();
    row.unless_zero(site->session);
    row.unless_empty(text_of(site->digest));
    row.unless_empty(text_of(site->statement));
    row.unless_empty(cut(site->kept_by, 64));
    row.text(text_of(site->walk));
    row.text(text_of(site->stack));
    return schema_table_store_record(listing->thd, listing->table) || thd_killed(listing->thd);
}

int store_allocator(void* context, const teak_allocator* allocator) {
    const auto* listing = static_cast<const Listing*>(context);
    ListedRow row(listing->table);
    row.text(text_of(allocator->name));
    row.text(cut(allocator->version, 32));
    row.text(cut(allocator->library, 512));
    for (uint64_t bytes : {allocator->allocated, allocator->active, allocator->resident, allocator->retained})
        bytes == TEAK_HEAP_UNKNOWN ? row.null() : row.maybe(bytes);
    row.text(allocator->is_watched ? "YES" : "NO");
    row.unless_zero(allocator->period);
    for (uint64_t number : {allocator->sessions, allocator->recorded, allocator->lost, allocator->recorder_bytes})
        row.number(number);
    row.unless_empty(cut(allocator->refusal, 512));
    return schema_table_store_record(listing->thd, listing->table);
}

int fill_heap(THD* thd, TABLE_LIST* tables, Item*) {
    if (check_global_access(thd, SUPER_ACL, true)) return 0;
    Listing listing{thd, tables->table};
    return teak_heap_sites(own_thread(), store_site, &listing) ? 0 : 1;
}

int fill_allocator(THD* thd, TABLE_LIST* tables, Item*) {
    if (check_global_access(thd, PROCESS_ACL, true)) return 0;
    Listing listing{thd, tables->table};
    return teak_heap_allocator(own_thread(), store_allocator, &listing) ? 0 : 1;
}

} // namespace

st_mysql_information_schema heap_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_heap_table(void* schema_table) { return has_columns(schema_table, fields::heap, fill_heap); }

int init_allocator_table(void* schema_table) { return has_columns(schema_table, fields::allocator, fill_allocator); }

} // namespace teak
