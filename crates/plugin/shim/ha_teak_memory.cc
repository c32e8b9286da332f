/*
  Tables in memory: what a restart of the server means, which has emptied them; and MAX_ROWS.

  The binary log is told once, by TRUNCATE TABLE, before anybody has the table open: other servers have its rows still.
  (handler::implicit_emptied, of which MEMORY makes use, is looked at when the table is open, so that another could
  write rows to the log before; and what sql_log_bin = 0 opens first, as mariadb-upgrade does, would never be told.)

  On a replica, the row events of its primary have rows that this server has lost. The server asks for each before it
  changes or deletes it (Rows_log_event::find_row), and replication ends where there is none. So what is asked for is
  delivered, as the event has it, and then neither changed nor deleted, nor written to this server's own log. That is
  done for tables which a restart of this server has emptied, and which have not been truncated since: in others a row
  that is missing ends replication, as ever. A transaction that runs ahead of those before it (optimistic parallel
  replication) may miss rows which these are still to write: it is told so, and the server repeats it behind them.
*/
#include "ha_teak.h"
#include "ha_partition.h"
#include "server_contracts.h"
#include "rpl_mi.h"
#include "rpl_rli.h"
#include "slave.h"
#include <algorithm>
#include <condition_variable>
#include <set>

using namespace teak;

extern my_bool opt_gtid_strict_mode;

namespace {

/* How long the second one to open a table waits for the first. It is not for ever, as that one may have to wait for a
   lock that this one has: of FLUSH TABLES WITH READ LOCK. */
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kLook{50}; /* whether it was killed */

/* Those who tell the binary log, by the names of their tables. */
struct Tellers {
    std::mutex latch; /* guards what follows */
    std::set<std::string> tables;
    std::condition_variable done;
} tellers;

/* The name of a table and how those of its parts begin, of which the name of one may be given. */
struct WholeTable {
    std::string name, parts;
    explicit WholeTable(const std::string& core_name)
        : name(core_name.substr(0, core_name.find(kPartitionSeparator))), parts(name + kPartitionSeparator) {}
};

bool is_replica() { return active_mi && active_mi->host[0]; }

/* Where the log of a replica is to have the GTIDs of its primary alone, an event of its own would end replication. */
bool may_tell(const TABLE_SHARE* share) {
    if (!opt_gtid_strict_mode || !is_replica()) return true;
    sql_print_warning("Teak: a restart has emptied table `%s`.`%s`, and gtid_strict_mode keeps this replica from "
                      "writing that to its binary log: replicas of it keep the table's rows",
                      share->db.str, share->table_name.str);
    return false;
}

int note_told(const WholeTable& whole) {
    const teak_status status =
        teak_tables_note_told(plugin.engine, bytes_of(whole.name.c_str()), bytes_of(whole.parts.c_str()));
    return status == TEAK_OK ? 0 : HA_ERR_RBR_LOGGING_FAILED;
}

/*
  tell_emptied by who applies the events of a primary: within the group of them that is applied, so that it needs no
  GTID of its own. It is told when that is committed. What comes later in the primary's order waits until then; and it
  could have what comes before it in the log not emptied but without its rows.
*/
int tell_in_group(THD* thd, const OpenTable& open, const std::string& name) {
    const ulonglong needed = OPTION_GTID_BEGIN | OPTION_BIN_LOG;
    if (!mysql_bin_log.is_open() || (thd->variables.option_bits & needed) != needed) return 0;
    Session* session = session_of(thd);
    if (!session) return HA_ERR_OUT_OF_MEM;
    if (std::find(session->telling.begin(), session->telling.end(), name) != session->telling.end()) return 0;
    /* It has told the error. */
    if (thd->wait_for_prior_commit()) return HA_ERR_GENERIC;
    if (!teak_table_is_untold(open.core)) return 0;
    if (int error = begin_statement(thd, session, true)) return error;
    if (log_emptying(thd, open.table->s)) return HA_ERR_RBR_LOGGING_FAILED;
    session->telling.push_back(name);
    return 0;
}

} // namespace

void Session::note_told() {
    for (const std::string& name : telling)
        ::note_told(WholeTable(name));
    telling.clear();
}

int teak::tell_emptied(const OpenTable& open) {
    THD* thd = open.thd();
    if (!thd || !teak_table_is_untold(open.core)) return 0;
    const WholeTable whole(open.name);
    std::unique_lock<std::mutex> latched(tellers.latch);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (tellers.tables.count(whole.name)) {
        if (thd_killed(thd) || std::chrono::steady_clock::now() > until) return 0;
        tellers.done.wait_for(latched, kLook);
    }
    if (!teak_table_is_untold(open.core)) return 0;
    if (thd->rgi_slave) {
        latched.unlock();
        return tell_in_group(thd, open, whole.name);
    }
    tellers.tables.insert(whole.name);
    latched.unlock();
    const bool tells = mysql_bin_log.is_open() && may_tell(open.table->s);
    const int error = tells && log_emptying(thd, open.table->s) ? HA_ERR_RBR_LOGGING_FAILED : note_told(whole);
    latched.lock();
    tellers.tables.erase(whole.name);
    tellers.done.notify_all();
    return error;
}

/* The table that is made by the statement of `thd` gets the rows of another, which may have lost some. */
int ha_teak::inherit_losses(THD* thd, teak_bytes name) {
    const TABLE_LIST* tables = thd ? thd->lex->query_tables : nullptr;
    const int command = thd ? thd_sql_command(thd) : SQLCOM_END;
    if (command != SQLCOM_ALTER_TABLE && command != SQLCOM_CREATE_INDEX && command != SQLCOM_DROP_INDEX &&
        command != SQLCOM_OPTIMIZE)
        return 0;
    if (!tables || !tables->table) return 0;
    const teak_bytes source = table_name(tables->table->s->normalized_path.str);
    const WholeTable whole({reinterpret_cast<const char*>(source.data), source.len});
    return fail(
        teak_table_inherit_losses(plugin.engine, name, bytes_of(whole.name.c_str()), bytes_of(whole.parts.c_str())));
}

/* Whether the row in record[1] would be in this partition, if it is one: each of them is asked for the row. */
bool ha_teak::would_have_row() const {
    if (table->file == this || !table->part_info) return true;
    uint32 part;
    return !get_part_for_buf(table->record[1], table->record[0], table->part_info, &part) &&
           static_cast<ha_partition*>(table->file)->get_child_handlers()[part] == this;
}

/*
  What becomes of `error`, with which a look-up into `buf` or a step of a scan has ended, in a table that may have lost
  rows. The server has the row that it asks for in record[1], and keeps record[1] for itself where it looks for another
  one (a duplicate). What it does not take for the row that was meant is not delivered twice.
*/
int ha_teak::or_lost_row(uchar* buf, int error, Asked asked) {
    LostRow& lost = use_.held.session->lost_row;
    const bool again = asked == Asked::ByStep && lost.of == table;
    lost.speak();
    lost.of = nullptr;
    if (error != HA_ERR_KEY_NOT_FOUND && error != HA_ERR_END_OF_FILE) return error;
    if (again || buf == table->record[1] || !misses_for_good(ha_thd())) return error;
    if (asked != Asked::ByRecord) {
        if (!would_have_row()) return error;
        memcpy(buf, table->record[1], table->s->reclength);
    }
    lost.of = table;
    return 0;
}

/* Whether what is to be done with the row that was delivered is to be left out, as that is a lost one. */
bool ha_teak::passes_over(Change change) {
    LostRow& lost = use_.held.session->lost_row;
    lost.speak();
    if (lost.of != table) return false;
    /* A row that passes to another partition is written there before it is deleted here. */
    if (change == Change::Insert) return true;
    lost.of = nullptr;
    lost.mute(table->file);
    teak_count_lost_row(plugin.engine);
    if (!open_.share->losses_told.exchange(true))
        sql_print_information("Teak: table %s has lost rows by a restart, and changes of these from the primary are "
                              "passed over; Teak_memory_rows_lost counts them",
                              open_.name.c_str());
    return true;
}

int ha_teak::rnd_pos_by_record(uchar* record) {
    const int error = handler::rnd_pos_by_record(record);
    return use_.held.may_miss ? or_lost_row(record, error, Asked::ByRecord) : error;
}
