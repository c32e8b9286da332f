/*
  The plugin's process-wide state, and what one connection keeps for Teak.

  plugin.cc fills `plugin`; handlerton.cc owns the sessions; the handler asks for the session of its THD.
*/
#ifndef TEAK_SESSION_H
#define TEAK_SESSION_H

#include "instruments.h"
#include "scan_window.h"
#include "server.h"
#include "teak_ffi.h"

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace teak {

struct ForeignKey;

struct Plugin {
    teak_engine* engine;
    handlerton* hton;
};
extern Plugin plugin;

/* A row that a cascade of foreign keys changes, or that it began with. */
struct CascadeStep {
    std::string table;
    bool updates;               /* else it is deleted */
    const ForeignKey* followed; /* the constraint by which children follow just now */
    /* Constraints of the children that follow just now which do not find its new keys yet, and its primary key. */
    std::vector<std::string> unmet;
    std::vector<unsigned char> row;
};

/* Rows that cascades have changed in a statement, by their keys. */
struct FollowedRows {
    uint64_t statement = 0;
    std::unordered_set<std::string> rows;
    /* False: the statement with this number has changed it before. */
    bool add(uint64_t number, const std::string& table, teak_bytes row) {
        if (number != statement) rows.clear();
        statement = number;
        std::string name(table);
        return rows.insert(name.append(1, '\0').append(reinterpret_cast<const char*>(row.data), row.len)).second;
    }
};

/* A row that a restart has taken, and that was delivered to who applies a change of it (ha_teak_memory.cc). */
struct LostRow {
    const TABLE* of = nullptr;
    handler* muted = nullptr; /* which would write to the binary log what was not done */
    void mute(handler* whole) {
        if (whole->row_logging) muted = whole;
        whole->row_logging = false;
    }
    void speak() {
        if (muted) muted->row_logging = true;
        muted = nullptr;
    }
};

/* Lives in the THD's engine slot from the first use of a Teak table to the end of the connection. */
struct Session {
    teak_session* handle = nullptr;
    const uint64_t* moment = nullptr; /* changes with what the session's own writes change */
    uint64_t rows_written = 0;        /* by any of its handlers; what was read before may be another row by now */
    uint64_t rows_settled = 0;        /* what that was when a transaction ended last */
    bool statement_open = false;      /* teak_statement_begin was called and no end yet */
    uint64_t statement = 0;           /* which: their number */
    /* The statement that the limits of waits are of, if they are set; within one that is open it may be another, of a
       function. */
    const LEX* waits_of = nullptr;
    bool fails_at_once = false;  /* NOWAIT */
    bool unlocks = false;        /* rows that do not match: READ COMMITTED */
    bool lenient = false;        /* writes may go over what was committed after the snapshot */
    bool forgotten = false;      /* its coordinator would not know after a crash that the transaction was committed */
    std::optional<Stage> wait;   /* as the process list has it, if it has lasted */
    bool overtook = false;       /* one did, in this transaction: its snapshot's entries are compared with their rows */
    teak_pause* pause = nullptr; /* teak_pause_checkpoints is ON */
    std::vector<CascadeStep> cascade; /* that is under way */
    FollowedRows followed;            /* in the statement of row events that is being applied */
    LostRow lost_row;
    /* Which index the last duplicate was about, and of what: the server asks another partition than it came from, where
       a row was to move. */
    struct {
        const TABLE* of = nullptr;
        uint index = UINT_MAX;
    } duplicate;
    /* Name of the partitioned table of which the query cache has a result that is not right any more. */
    std::string stale;
    /* Tables that a restart has emptied: the group that is applied says so when it is committed. */
    std::vector<std::string> telling;
    void note_told();

    /* The statement that is making tables, and which; what it writes to them is how they begin. */
    query_id_t making = 0;
    std::unordered_set<std::string> made;
    void makes(query_id_t statement, std::string name) {
        if (making != statement) made.clear();
        making = statement;
        made.insert(std::move(name));
    }
    bool has_made(query_id_t statement, const std::string& name) const {
        return making == statement && made.count(name) != 0;
    }
};

/* Ends the session's pause of checkpoints, if it has one. */
void resume_checkpoints(THD* thd, Session* session);
/* That a connection pauses checkpoints from now on, or not any more; the server's own statement has no THD. */
void note_pause(THD* thd, bool begins);
/* The connections that do, for people. */
std::string pausing();

/* Of this THD; nullptr: it has used no table of Teak yet. */
Session* existing_session(THD* thd);

/* Of this THD; made if there is none. nullptr: memory is out (an error is already set). */
Session* session_of(THD* thd);

/* Whether what `thd` does is committed by a statement of its own. */
bool in_transaction(THD* thd);

/* That transaction begins, if it has not, without a statement that uses a table. Returns an HA_ERR_ code. */
int begin_transaction(THD* thd, Session* session);

/* UNINSTALL: the query cache must not call the plugin any more. The server's shutdown has ended the cache before. */
void drop_all_results(); /* ha_teak_results.cc */

/* A statement of `thd` is about to use a Teak table: begins the transaction and the statement as needed, and registers
   with the server. `locks`: it may have to wait for others. Returns an HA_ERR_ code. */
int begin_statement(THD* thd, Session* session, bool locks);

/* A definition is about to change: waits until no transaction holds the table in one of these ways (TEAK_HOLDERS_), of
   which no metadata lock tells. Returns an HA_ERR_ code. */
int wait_for_holders(THD* thd, teak_bytes table, uint32_t holders);

/* Whether the statement that `thd` executes said NOWAIT. Cheap; also sets how long its session waits. */
bool fails_at_once(THD* thd, Session* session);

bool snapshot_isolation(THD* thd);
/* Memory for sorting when indexes are built. */
uint64_t sort_buffer_bytes(THD* thd);
uint64_t lock_wait_timeout_ms(THD* thd);
bool rollback_on_timeout();
/* Whether a commit is on disk before it is acknowledged. */
bool commits_are_durable();
/* What becomes of FOREIGN KEY in CREATE TABLE and ALTER TABLE. */
enum class ForeignKeysMode : uint8_t { Keep, Warn, Error };
/* Never Error for one who applies what another server has accepted. */
ForeignKeysMode foreign_keys_mode(THD* thd);

/* Whether BACKUP STAGE START warns that Teak's tables are not in what is copied then. */
bool warns_of_backups(THD* thd);

/* handlerton.cc */
int init_handlerton(handlerton* hton);
/* ha_teak_costs.cc: what single rows and entries cost, for servers that ask. */
void set_costs(handlerton* hton);

/* ha_teak_ddl.cc */
handler* create_handler(handlerton* hton, TABLE_SHARE* share, MEM_ROOT* root);
int drop_table_by_path(handlerton* hton, const char* path);
int check_version(handlerton* hton, const char* path, const LEX_CUSTRING* version, ulonglong create_id);

} // namespace teak

struct ha_table_option_struct {
    ulonglong block_size;
    uint compression;
    ulonglong compression_level;
    /* Large values that are deflate streams are inflated before they are compressed. */
    bool recompress;
    /* Large values that are alike are put together, in the background. */
    bool similarity;
    /* The rows are in memory alone, and gone with the server. */
    bool in_memory;
    /* What such a table may take, in bytes; 0: what all of them may. */
    ulonglong memory_limit;
};
namespace teak {
extern ha_create_table_option table_options[];
/* Whether a table with these options has no file. */
bool lives_in_memory(const ha_table_option_struct* options);
/* What is wrong with them, if they contradict each other. */
const char* contradiction(const ha_table_option_struct* options);
/* Whether other options want the rows elsewhere. */
bool moves(const ha_table_option_struct* now, const ha_table_option_struct* then);
} // namespace teak
#endif
