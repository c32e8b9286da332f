/*
  What Teak relies on that the server promises nobody: how statements leave their traces in a LEX, what the coordinator
  of commits leaves out, which function applies row events. Another release of the server may change any of it without
  a word from the compiler, so all of it is in this file and server_contracts.cc; each says where in MariaDB 10.11.18
  it is read off.
*/
#ifndef TEAK_SERVER_CONTRACTS_H
#define TEAK_SERVER_CONTRACTS_H

#include "server.h"
#include <string>

/* A function of the server that no header declares for plugins; so two more in server_contracts.cc. */
void ignore_db_dirs_append(const char* name);

namespace teak {

/* ---- what a statement says ------------------------------------------------------------------------- */

/*
  The limit that the statement's NOWAIT or WAIT n sets, in seconds; false: it has neither. All that is left of these
  clauses are settings of lock_wait_timeout and innodb_lock_wait_timeout for the statement, as SET STATEMENT makes them,
  to numbers without a sign and without the name that a written number has (set_statement_var_if_exists in sql_lex.cc).
*/
bool clause_limit(const LEX* lex, uint64_t* seconds);

/* Whether it is FLUSH TABLES ... FOR EXPORT (LEX::type, of which sql_yacc.yy makes use for its options). */
bool is_export(THD* thd);

/* The name in the core of the table that an ALTER TABLE names first: what is altered; empty if it is none.
   (mysql_alter_table in sql_table.cc leaves LEX::query_tables as it was parsed, to its end.) */
std::string altered_table(THD* thd);

/* Whether it may add partitions to a table with a hidden hash: one of UNIQUE USING HASH that a build from before
   2026-11-23 may have made. The partitions that stay have it, so new ones need it, too. */
bool keeps_hidden_hashes(THD* thd);
/* Whether a UNIQUE USING HASH of a table that is to be created leaves columns out that its partitions are chosen by, as
   only a hidden hash may. System versioning puts its column into each key. (Both: mysql_prepare_create_table in
   sql_table.cc asks handler::table_flags for HA_CAN_HASH_KEYS, while the table is known to the LEX alone.) */
bool needs_hidden_hashes(THD* thd);

/* How many rows of a table of information_schema the SELECT needs that it is filled for, which has this condition on
   the table: as many as its LIMIT says if it looks at nothing else (get_schema_tables_result in sql_show.cc fills the
   whole table before the LIMIT is looked at; SELECT_LEX_UNIT::set_limit in sql_lex.cc has it by then). */
uint64_t wanted_rows(const TABLE_LIST* table, const Item* condition);

/* ---- two engines, and the binary log --------------------------------------------------------------- */

/*
  Whether this has to see to it that a replica's worker commits after those before it. For a transaction over several
  engines the coordinator does; that of the binary log leaves it out, however, where it has nothing to write, which is
  so without log_slave_updates (TC_LOG_BINLOG::log_and_order, binlog_flush_cache in log.cc). Without this the rows of
  two engines stay as an earlier transaction wrote them over a later one.
*/
bool commits_out_of_order(THD* thd);

/*
  Whether the coordinator of a transaction, which has more than one engine, forgets in a crash that it was committed.
  Without a binary log it notes that in a file of its own, tc.log. But the recovery of MariaDB 10.11 reads that file and
  then rolls back all that is prepared, whether or not it is noted there (xarecover_handlerton in handler.cc does not
  look at the list).
*/
bool coordinator_forgets(THD* thd);

/* TRUNCATE TABLE, as the server writes it for MEMORY (open_table_entry_fini in sql_base.cc). It is the server that has
   lost the rows, so a session that does not log its own changes writes it, too. True: it could not be written. */
bool log_emptying(THD* thd, const TABLE_SHARE* share);

/* ---- row events ------------------------------------------------------------------------------------ */

/* Whether `thd` applies row events: of a primary, or of BINLOG statements (rgi_fake, sql_binlog.cc). */
bool applies_row_events(const THD* thd);
/* Whether the time of what `thd` does is that of a row event, which has seconds only. */
bool knows_seconds_only(const THD* thd);
/* Whether row events of one group, whose tables are all open, are applied right now (slave.cc, sql_binlog.cc). */
bool has_tables_of_group(const THD* thd);
/* Whether `thd` applies row events of another server, and what is missing will not come any more
   (rpl_group_info::speculation, rpl_parallel.cc). */
bool misses_for_good(THD* thd);

/* ---- deadlocks with replication -------------------------------------------------------------------- */

/* teak_callbacks::report_wait and reports_made. */
int report_wait(void* waiter, void* holder);
void reports_made();

/* ---- variables of other plugins -------------------------------------------------------------------- */

/* A session variable by its name (intern_find_sys_var in set_var.cc); nullptr if there is none. Whose it is, must be
   locked as long as the variable is used. */
sys_var* session_variable(const char* name);
/* The value of `variable` in the session of `thd`, which is this thread's; of nullptr, or of one that is no number,
   `otherwise`. */
uint64_t value_of(const sys_var* variable, THD* thd, uint64_t otherwise);

} // namespace teak
#endif
