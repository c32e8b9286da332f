/*
  What InnoDB's variables say in a session: Teak's own follow them unless they are set.
*/
#ifndef TEAK_INNODB_SETTINGS_H
#define TEAK_INNODB_SETTINGS_H

#include "server.h"

namespace teak {

/* Looks the variables up, the first time. To be called before the others, by each thread. */
void find_innodb_settings();
/* Lets go of InnoDB. */
void forget_innodb_settings();

/* innodb_snapshot_isolation. Without InnoDB, or before it had the variable: its default in this series. */
bool innodb_snapshot_isolation(THD* thd);
/* innodb_lock_wait_timeout, in seconds. */
uint64_t innodb_lock_wait_timeout(THD* thd);

} // namespace teak
#endif
