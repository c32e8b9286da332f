/*
  The variables are looked up by the first session and not at the plugin's start, when InnoDB need not have started yet.
  They stay where they are as long as InnoDB's plugin is locked, which is until Teak stops; without InnoDB there are
  none, and defaults stand in for them.
*/
#include "innodb_settings.h"
#include "sys_vars_shared.h"

#include <mutex>

namespace teak {

namespace {

/* The first release whose innodb_snapshot_isolation is ON unless it is set. */
constexpr unsigned long kFirstStrictVersion = 110602;
constexpr bool kDefaultSnapshotIsolation = MYSQL_VERSION_ID >= kFirstStrictVersion;
constexpr uint64_t kDefaultLockWaitTimeout = 50;

/* Written once, under the mutex, which each session takes before it reads. */
struct Settings {
    std::mutex mutex;
    bool looked_up = false;
    plugin_ref innodb = nullptr;
    sys_var* snapshot_isolation = nullptr;
    sys_var* lock_wait_timeout = nullptr;
} settings;

sys_var* session_variable(const char* name) {
    mysql_prlock_rdlock(&LOCK_system_variables_hash);
    sys_var* variable = intern_find_sys_var(name, strlen(name));
    mysql_prlock_unlock(&LOCK_system_variables_hash);
    return variable && variable->scope() == sys_var::SESSION ? variable : nullptr;
}

/* The value of `variable` in the session of `thd`, which is this thread's. */
uint64_t value_of(const sys_var* variable, THD* thd, uint64_t otherwise) {
    static const LEX_CSTRING no_component = {nullptr, 0};
    if (!variable) return otherwise;
    const uchar* value = variable->value_ptr(thd, OPT_SESSION, &no_component);
    switch (variable->option.var_type & GET_TYPE_MASK) {
    case GET_BOOL:
        return *reinterpret_cast<const my_bool*>(value);
    case GET_UINT:
        return *reinterpret_cast<const uint*>(value);
    case GET_ULONG:
        return *reinterpret_cast<const ulong*>(value);
    default:
        return otherwise;
    }
}

} // namespace

void find_innodb_settings() {
    std::lock_guard<std::mutex> latch(settings.mutex);
    if (settings.looked_up) return;
    settings.looked_up = true;
    static const LEX_CSTRING name = {STRING_WITH_LEN("InnoDB")};
    settings.innodb = plugin_lock_by_name(nullptr, &name, MYSQL_STORAGE_ENGINE_PLUGIN);
    if (!settings.innodb) return;
    settings.snapshot_isolation = session_variable("innodb_snapshot_isolation");
    settings.lock_wait_timeout = session_variable("innodb_lock_wait_timeout");
}

void forget_innodb_settings() {
    std::lock_guard<std::mutex> latch(settings.mutex);
    if (settings.innodb) plugin_unlock(nullptr, settings.innodb);
    settings.looked_up = false;
    settings.innodb = nullptr;
    settings.snapshot_isolation = settings.lock_wait_timeout = nullptr;
}

bool innodb_snapshot_isolation(THD* thd) {
    return value_of(settings.snapshot_isolation, thd, kDefaultSnapshotIsolation) != 0;
}

uint64_t innodb_lock_wait_timeout(THD* thd) {
    return value_of(settings.lock_wait_timeout, thd, kDefaultLockWaitTimeout);
}

} // namespace teak
