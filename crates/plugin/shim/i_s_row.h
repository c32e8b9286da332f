/*
  A row of a table of information_schema, column after column.
*/
#ifndef TEAK_I_S_ROW_H
#define TEAK_I_S_ROW_H

#include "server_version.h"
#include "teak_ffi.h"

#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "tztime.h"

#include <string>

namespace teak {

inline std::string text_of(teak_bytes bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data), bytes.len);
}

/* Where rows of a table go, for functions that are called for each. */
struct Listing {
    THD* thd;
    TABLE* table;

    /* Seconds since 1970, as who asks reads them. */
    MYSQL_TIME local_time(my_time_t seconds) const {
        MYSQL_TIME time{};
        thd->variables.time_zone->gmt_sec_to_TIME(&time, seconds);
        return time;
    }
};

/* Who asks, and what of others he may see. */
struct Asker : Listing {
    bool sees_all; /* has the PROCESS privilege */

    /* What belongs to these. */
    bool may_see(teak_bytes user, teak_bytes host) const {
        const Security_context& own = thd->main_security_ctx;
        return sees_all || ((user.len || host.len) && text_of(user) == c_name(own.priv_user) &&
                            text_of(host) == c_name(own.priv_host));
    }
};

inline Asker asker_of(THD* thd, TABLE_LIST* tables) {
    return {{thd, tables->table}, !check_global_access(thd, PROCESS_ACL, true)};
}

/* What the init function of a table of the schema says: its columns, and who fills it. */
inline int has_columns(void* schema_table, ST_FIELD_INFO* columns, int (*fill)(THD*, TABLE_LIST*, Item*)) {
    auto* schema = static_cast<ST_SCHEMA_TABLE*>(schema_table);
    schema->fields_info = columns;
    schema->fill_table = fill;
    return 0;
}

/* The next fields of a row, one after the other. */
class ListedRow {
  public:
    explicit ListedRow(TABLE* table) : field(table->field) {}

    void number(uint64_t value) { (*field++)->store(static_cast<longlong>(value), true); }
    void text(const std::string& value) { (*field++)->store(value.data(), value.size(), system_charset_info); }
    void seconds(uint64_t milliseconds) { (*field++)->store(static_cast<double>(milliseconds) / 1000); }
    void time(const MYSQL_TIME& value) { (*field++)->store_time(&value); }
    void null() { (*field++)->set_null(); }
    /* The same of columns that may be NULL. */
    void maybe(uint64_t value) {
        (*field)->set_notnull();
        number(value);
    }
    void maybe(const std::string& value) {
        (*field)->set_notnull();
        text(value);
    }
    void maybe_seconds(uint64_t milliseconds) {
        (*field)->set_notnull();
        seconds(milliseconds);
    }
    void maybe_share(double value) {
        (*field)->set_notnull();
        (*field++)->store(value);
    }
    void maybe(const MYSQL_TIME& time) {
        (*field)->set_notnull();
        this->time(time);
    }
    /* NULL if there is none. */
    void unless_zero(uint64_t value) { value ? maybe(value) : null(); }
    void unless_empty(const std::string& value) { value.empty() ? null() : maybe(value); }

  private:
    Field** field;
};

} // namespace teak
#endif
