/*
  All rows of a table made into entries of its indexes: for builds (index_build.h) and for checks (table_check.h).
*/
#ifndef TEAK_ROW_SCAN_H
#define TEAK_ROW_SCAN_H

#include "entry_maker.h"
#include <new>

namespace teak {

/* What SHOW PROCESSLIST and performance_schema show of long work, and its KILL. */
struct Progress {
    THD* thd;
    ulonglong expected;

    static int report(void* context, uint64_t done) {
        const Progress* progress = static_cast<Progress*>(context);
        const ulonglong expected = std::max<ulonglong>(progress->expected, done);
        thd_progress_report(progress->thd, done, expected);
        mysql_stage_set_work_estimated(progress->thd->m_stage_progress_psi, expected);
        mysql_stage_set_work_completed(progress->thd->m_stage_progress_psi, done);
        return thd_kill_level(progress->thd) != THD_IS_NOT_KILLED;
    }
};

/* As long as it lives the handler reads all columns of rows, as `mode` says: whoever wrote them, or those of the
   snapshot. */
class WholeRows {
  public:
    WholeRows(TABLE* table, bool& mode)
        : table_(table), read_set_(tmp_use_all_columns(table, &table->read_set)), mode_(mode) {
        mode_ = true;
    }
    ~WholeRows() {
        mode_ = false;
        tmp_restore_column_map(&table_->read_set, read_set_);
    }
    WholeRows(const WholeRows&) = delete;
    WholeRows& operator=(const WholeRows&) = delete;

  private:
    TABLE* table_;
    MY_BITMAP* read_set_;
    bool& mode_;
};

/* Where the entries go: one of the two. */
struct EntryTarget {
    teak_build* build;
    teak_check* check;

    teak_status add(uint32_t part, teak_bytes key, teak_bytes value) const {
        return build ? teak_build_add(build, part, key, value) : teak_check_add(check, part, key, value);
    }
    teak_status feed(teak_session* session, const teak_row_reader* reader, void* context) const {
        return build ? teak_build_feed(session, build, reader, context)
                     : teak_check_feed(session, check, reader, context);
    }
};

/* A scan by several threads; its functions are called by the engine. */
struct RowScan {
    Progress progress;
    EntryPlan plan;

    static void* begin(void* context) {
        EntryMaker* maker = new (std::nothrow) EntryMaker(static_cast<RowScan*>(context)->plan);
        if (maker && !maker->ready()) {
            delete maker;
            return nullptr;
        }
        return maker;
    }
    static uint32_t row(void* maker, teak_feed* feed, teak_bytes pk, teak_bytes row) {
        return static_cast<EntryMaker*>(maker)->take(feed, pk, row);
    }
    static void end(void* maker) { delete static_cast<EntryMaker*>(maker); }
    static int watch(void* context, uint64_t rows) {
        return Progress::report(&static_cast<RowScan*>(context)->progress, rows);
    }
};

} // namespace teak
#endif
