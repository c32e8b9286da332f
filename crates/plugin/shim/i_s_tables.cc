/*
  information_schema.TEAK_TABLES: a row for each tree of each table, with its size before and after compression.

  Tree 0 has the rows, the others one index each. The plugin lives in the engine's library but not by its grace: it may
  be asked before the engine is there, or after it could not start. Then the table is empty. It names all tables, so it
  is for those who have the PROCESS privilege.
*/
#include "i_s_tables.h"
#include "errors.h"
#include "i_s_row.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "sql_table.h"
#include <string>

namespace teak {
namespace {

namespace fields {
using namespace Show;
ST_FIELD_INFO tables[] = {Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NOT_NULL),
                          Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
                          Column("TREE", Show::ULonglong(), NOT_NULL),
                          Column("ENTRIES", Show::ULonglong(), NOT_NULL),
                          Column("LEAVES", Show::ULonglong(), NOT_NULL),
                          Column("RAW_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("DISK_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("DICTIONARY_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("RATIO", Double(6), NULLABLE),
                          Column("COMPRESSION", Varchar(8), NOT_NULL),
                          Column("COMPRESSION_LEVEL", Show::ULonglong(), NOT_NULL),
                          Column("BUNDLED_VALUES", Show::ULonglong(), NOT_NULL),
                          Column("BUNDLED_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("BUNDLED_DISK_BYTES", Show::ULonglong(), NOT_NULL),
                          Column("LARGEST_BUNDLE", Show::ULonglong(), NOT_NULL),
                          CEnd()};
} // namespace fields

struct Output {
    THD* thd;
    TABLE* table;
};

/* A name as SQL has it, piece by piece: of partitions and of vector indexes there are #P#, #SP# or #i# between them.
   What the server has of its own (#sql...) stays as it is. */
std::string shown_name(const std::string& encoded) {
    std::string shown;
    size_t from = 0;
    for (size_t mark; from < encoded.size(); from = mark) {
        char piece[NAME_LEN * 5 + 1];
        mark = std::min(encoded.find('#', from), encoded.size());
        const std::string name = encoded.substr(from, mark - from);
        shown.append(piece, filename_to_tablename(name.c_str(), piece, sizeof piece, true));
        const size_t end = mark ? encoded.find('#', mark + 1) : std::string::npos;
        const size_t behind = end == std::string::npos ? encoded.size() : end + 1;
        shown += encoded.substr(mark, behind - mark);
        mark = behind;
    }
    return shown;
}

void store_name(Field* field, const std::string& name) { field->store(name.data(), name.size(), system_charset_info); }

/* One row; 1 ends the listing. */
int store_tree(void* context, const teak_tree_report* tree) {
    const auto* output = static_cast<const Output*>(context);
    static const char* const compressions[] = {"none", "lz4", "zstd", "zstd"};
    Field** field = output->table->field;
    const auto [schema, name] = shown_names(tree->table);
    store_name(*field++, schema);
    store_name(*field++, name);
    for (uint64_t number : {tree->tree, tree->entries, tree->leaves, tree->raw_bytes, tree->disk_bytes,
                            tree->dictionary_bytes, tree->memory_bytes})
        (*field++)->store(static_cast<longlong>(number), true);
    if (tree->raw_bytes) {
        (*field)->set_notnull();
        (*field)->store(static_cast<double>(tree->disk_bytes) / static_cast<double>(tree->raw_bytes));
    } else
        (*field)->set_null();
    field++;
    const char* compression = tree->compression < 4 ? compressions[tree->compression] : "";
    (*field++)->store(compression, strlen(compression), system_charset_info);
    for (uint64_t number : {uint64_t(tree->level), tree->bundled_values, tree->bundled_bytes, tree->bundled_disk_bytes,
                            tree->largest_bundle})
        (*field++)->store(static_cast<longlong>(number), true);
    return schema_table_store_record(output->thd, output->table) || thd_killed(output->thd);
}

int fill(THD* thd, TABLE_LIST* tables, Item*) {
    if (!plugin.engine || check_global_access(thd, PROCESS_ACL, true)) return 0;
    Output output{thd, tables->table};
    return end_of_fill(teak_trees_report(plugin.engine, store_tree, &output), thd);
}

} // namespace

std::pair<std::string, std::string> shown_names(teak_bytes table) {
    const std::string path(reinterpret_cast<const char*>(table.data), table.len);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {std::string(), shown_name(path)};
    return {shown_name(path.substr(0, slash)), shown_name(path.substr(slash + 1))};
}

st_mysql_information_schema tables_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_tables_table(void* schema_table) { return has_columns(schema_table, fields::tables, fill); }

} // namespace teak
