#include "foreign_error.h"
#include <mutex>

namespace teak {
namespace {

constexpr size_t kShownValueBytes = 200;
constexpr size_t kShownStatementBytes = 1000;

struct Latest {
    std::mutex latch; /* guards the text */
    std::string text;
};
Latest latest;

void note(THD* thd, const std::string& what) {
    char when[32];
    const time_t now = time(nullptr);
    struct tm local;
    localtime_r(&now, &local);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    std::string text = std::string(when) + " connection " + std::to_string(thd_get_thread_id(thd)) + "\n";
    if (const char* statement = thd->query())
        text += std::string(statement, std::min<size_t>(thd->query_length(), kShownStatementBytes)) + "\n";
    text += what;
    const std::lock_guard<std::mutex> guard(latest.latch);
    latest.text = std::move(text);
}

} // namespace

void note_broken_constraint(THD* thd, const ForeignKey& key, bool lacks_parent, const std::string& values) {
    const TableName own(key.child);
    note(thd, "Foreign key constraint fails for table " + quoted(thd, own.db()) + "." + quoted(thd, own.table()) +
                  ",\n  " + key.text(thd) + "\n" +
                  (lacks_parent ? "There is no parent of " : "There are children of ") + values);
}

void note_refused_constraint(THD* thd, const std::string& why) { note(thd, why); }

std::string latest_foreign_error() {
    const std::lock_guard<std::mutex> guard(latest.latch);
    return latest.text.empty() ? "" : "\nLATEST FOREIGN KEY ERROR\n" + latest.text + "\n";
}

std::string readable_value(Field* field) {
    if (field->is_null()) return "NULL";
    StringBuffer<MAX_FIELD_WIDTH> value, text(system_charset_info);
    uint errors;
    field->val_str(&value);
    text.copy(value.ptr(), value.length(), value.charset(), system_charset_info, &errors);
    return "'" + std::string(text.ptr(), std::min<size_t>(text.length(), kShownValueBytes)) + "'";
}

} // namespace teak
