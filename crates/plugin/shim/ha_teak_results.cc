/*
  The server's query cache: whether it may keep the result of a SELECT, and serve one that it has.

  It asks for each table, before the SELECT reads a row (register_query_cache_table) and before it serves the result
  (may_serve). Both are under the cache's mutex, for which all other sessions wait: nothing here waits or reads a file.
  What the answers rely on is in docs/design/query-cache.md.
*/
#include "ha_teak.h"
#include "sql_cache.h"
#include <atomic>

using namespace teak;

namespace {

/* Whether the cache may have results that it asks may_serve for. */
std::atomic<bool> are_registered{false};

/* Plain reads are not locking reads. */
bool reads_freely(THD* thd) { return thd_tx_isolation(thd) != ISO_SERIALIZABLE; }

teak_status fate_in_transaction(THD* thd, teak_bytes name, ulonglong version) {
    Session* session = session_of(thd);
    if (!session || teak_txn_is_prepared(session->handle)) return TEAK_NOT_FOUND;
    const bool repeats = thd_tx_isolation(thd) == ISO_REPEATABLE_READ;
    if (repeats && begin_transaction(thd, session)) return TEAK_NOT_FOUND;
    return teak_result_fate_in(session->handle, name, version, repeats);
}

/* The cache has partitions in no hash, so it cannot drop what it has of one, and what stays keeps others out. */
void note_stale(THD* thd, teak_bytes name) {
    std::string table(reinterpret_cast<const char*>(name.data), name.len);
    const size_t end = table.find(kPartitionSeparator);
    if (end == std::string::npos) return;
    if (Session* session = session_of(thd)) session->stale = table.substr(0, end);
}

/* `key` is "/db/table" in the file system's characters. Another version than the cache has, with FALSE, drops all
   results of the table. */
my_bool may_serve(THD* thd, const char* key, uint key_length, ulonglong* version) {
    if (!reads_freely(thd)) return FALSE;
    const teak_bytes name = bytes_of(reinterpret_cast<const uchar*>(key) + 1, key_length - 1);
    teak_status status = teak_result_fate(plugin.engine, name, *version);
    if (status == TEAK_OK && in_transaction(thd)) status = fate_in_transaction(thd, name, *version);
    if (status == TEAK_TABLE_CHANGED) {
        *version = TEAK_NO_VERSION;
        note_stale(thd, name);
    }
    return status == TEAK_OK;
}

} // namespace

my_bool ha_teak::register_query_cache_table(THD* thd, const char*, uint, qc_engine_callback* callback,
                                            ulonglong* version) {
    /* A partition that the statement does not use may have been opened before it was emptied. */
    if (!open_.core || open_.generation != open_.share->generation.load() || !reads_freely(thd)) return FALSE;
    Session* session = session_of(thd);
    if (!session || !session->statement_open) return FALSE;
    uint64_t read = TEAK_NO_VERSION;
    if (teak_result_version(session->handle, open_.core, &read) != TEAK_OK || read == TEAK_NO_VERSION) return FALSE;
    are_registered.store(true);
    *callback = may_serve;
    *version = read;
    return TRUE;
}

void ha_teak::drop_stale_results(THD* thd) {
    Session* session = use_.held.session;
    if (open_.name.compare(0, open_.name.find(kPartitionSeparator), session->stale) != 0) return;
    session->stale.clear();
    const LEX_CSTRING& key = table->s->table_cache_key;
    mysql_query_cache_invalidate4(thd, key.str, static_cast<unsigned>(key.length), 0);
}

void teak::drop_all_results() {
    if (are_registered.exchange(false) && !abort_loop) query_cache.flush();
}
