/*
  From the core's status to the server's error codes.
*/
#ifndef TEAK_ERRORS_H
#define TEAK_ERRORS_H

#include "server.h"
#include "teak_ffi.h"
#include <string>

namespace teak {

/* What no HA_ERR_ code says; the server shows own_error_text() as error 1296 (ER_GET_ERRMSG). */
constexpr int kSnapshotTooOld = HA_ERR_LAST + 300;

/* A unique index has no entries, so it would take duplicates unnoticed: no row is written. */
constexpr int kUnbuiltUnique = HA_ERR_LAST + 301;
/* Index, table. */
constexpr const char* kUnbuiltUniqueText =
    "unique index '%s' of table '%s' was never built, so nothing enforces it and rows cannot be written: "
    "ALTER TABLE ... ENABLE KEYS builds it, ALTER TABLE ... DROP INDEX gives it up";

/* For handler::get_error_message. */
bool own_error_text(int error, String* text);

/* The HA_ERR_ code of a status. Marks the transaction for rollback where the status demands it, and leaves the core's
   text as a warning where the code alone would say too little. `thd` may be nullptr. */
int error_code(teak_status status, THD* thd);

/* As error_code, for where the server has no words of its own for a code: the core's text becomes the statement's
   error. */
int raise_error(teak_status status, THD* thd);

/* What the filling of a table of information_schema ends with: the core's text is the statement's error, unless there
   is one, or it was killed. */
int end_of_fill(teak_status status, THD* thd);

/* This thread's last error text to the server's error log. */
void log_last_error(const char* what);

inline teak_bytes bytes_of(const char* text) { return {reinterpret_cast<const uint8_t*>(text), strlen(text)}; }
inline teak_bytes bytes_of(const uchar* data, size_t length) { return {data, length}; }
inline teak_bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/* "./db/table" as the server writes it, to the core's "db/table". */
inline teak_bytes table_name(const char* path) {
    if (path[0] == '.' && path[1] == '/') path += 2;
    return bytes_of(path);
}

} // namespace teak
#endif
