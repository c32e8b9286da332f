/*
  information_schema.TEAK_FOREIGN, a row for each foreign key, and TEAK_FOREIGN_COLS, one for each of its columns: as
  InnoDB's INNODB_SYS_FOREIGN and INNODB_SYS_FOREIGN_COLS, with the names by which the engine knows databases and
  tables.

  They name all tables, so they are for those who have the PROCESS privilege. Before the engine is there they are empty.
*/
#include "foreign_tables.h"
#include "i_s_row.h"
#include "foreign_key.h"
#include "session.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"

namespace teak {
namespace {

/* Database and name, encoded as names of files are. */
constexpr uint kNameChars = NAME_LEN + 1;

namespace fields {
using namespace Show;
ST_FIELD_INFO keys[] = {Column("ID", Varchar(kNameChars), NOT_NULL),
                        Column("FOR_NAME", Varchar(kNameChars), NOT_NULL),
                        Column("REF_NAME", Varchar(kNameChars), NOT_NULL),
                        Column("N_COLS", ULong(), NOT_NULL),
                        Column("TYPE", ULong(), NOT_NULL),
                        CEnd()};
ST_FIELD_INFO columns[] = {
    Column("ID", Varchar(kNameChars), NOT_NULL), Column("FOR_COL_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("REF_COL_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL), Column("POS", ULong(), NOT_NULL), CEnd()};
} // namespace fields

void store(Field* field, const std::string& text) { field->store(text.data(), text.size(), system_charset_info); }

std::string id_of(const ForeignKey& key) { return key.child.substr(0, key.child.find('/') + 1) + key.name(); }

/* InnoDB's bits for the rules; RESTRICT has none. */
ulonglong type_of(const ForeignKey& key) {
    auto bits = [](enum_fk_option rule, uint cascade, uint set_null, uint no_action) {
        switch (rule) {
        case FK_OPTION_CASCADE:
            return cascade;
        case FK_OPTION_SET_NULL:
            return set_null;
        case FK_OPTION_NO_ACTION:
            return no_action;
        default:
            return 0U;
        }
    };
    return bits(key.on_delete, 1, 2, 16) | bits(key.on_update, 4, 8, 32);
}

bool put_key(THD* thd, TABLE* table, const ForeignKey& key) {
    Field** const field = table->field;
    store(field[0], id_of(key));
    store(field[1], key.child);
    store(field[2], key.parent);
    field[3]->store(static_cast<longlong>(key.columns.size()), true);
    field[4]->store(static_cast<longlong>(type_of(key)), true);
    return schema_table_store_record(thd, table);
}

bool put_columns(THD* thd, TABLE* table, const ForeignKey& key) {
    Field** const field = table->field;
    for (size_t i = 0; i < key.columns.size(); i++) {
        store(field[0], id_of(key));
        store(field[1], key.columns[i]);
        store(field[2], key.parent_columns[i]);
        field[3]->store(static_cast<longlong>(i + 1), true);
        if (schema_table_store_record(thd, table)) return true;
    }
    return false;
}

/* All that the engine has; copies that an ALTER is making are none. */
int fill(THD* thd, TABLE_LIST* tables, bool (*put)(THD*, TABLE*, const ForeignKey&)) {
    if (!plugin.engine || check_global_access(thd, PROCESS_ACL, true)) return 0;
    std::vector<ForeignKey> keys;
    if (load_all(thd, &keys)) return 1;
    for (const ForeignKey& key : keys)
        if (!is_passing_name(key.child) && (put(thd, tables->table, key) || thd_killed(thd))) return 1;
    return 0;
}

int fill_keys(THD* thd, TABLE_LIST* tables, Item*) { return fill(thd, tables, put_key); }
int fill_columns(THD* thd, TABLE_LIST* tables, Item*) { return fill(thd, tables, put_columns); }

} // namespace

st_mysql_information_schema foreign_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};
st_mysql_information_schema foreign_columns_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int init_foreign_table(void* schema_table) { return has_columns(schema_table, fields::keys, fill_keys); }

int init_foreign_columns_table(void* schema_table) { return has_columns(schema_table, fields::columns, fill_columns); }

} // namespace teak
