/*
  The variables are looked up by the first session and not at the plugin's start, when InnoDB need not have started yet.
  They stay where they are as long as InnoDB's plugin is locked, which is until Teak stops; without InnoDB there are
  none, and defaults stand in for them.
*/
#include "innodb_settings.h"
#include "server_contracts.h"

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
