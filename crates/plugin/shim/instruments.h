/*
  What performance_schema hears of Teak: threads, files, and the stages of what takes long.
*/
#ifndef TEAK_INSTRUMENTS_H
#define TEAK_INSTRUMENTS_H

#include "server.h"
#include "teak_ffi.h"

namespace teak {

/* Makes names of threads and files known. Returns by what functions the engine is to tell of them, if the server lists
   them. Before the engine starts. */
teak_instruments register_instruments();

/* Makes names of stages known, once. There is room for few beside the server's own, and InnoDB registers its own after
   plugins were loaded: when the server has started, or at the first stage. */
void register_stages();

/* Stages by the names that process lists and `stage/teak/...` have. */
namespace stages {
extern PSI_stage_info applying_changes_to_indexes, applying_changes_to_table, awaiting_range, awaiting_row,
    building_indexes, checking_foreign_keys, checking_table, exporting_table, importing_table, packing_table,
    rebuilding_table;
}

/* What a session does while this lives: for the process list, and for performance_schema, which learns how far it is
   where there are parts (THD::m_stage_progress_psi, see Progress). Then it does again what it did. */
class Stage {
  public:
    /* In so many parts, of which progress is told; 0: none is, or somebody else's is under way. */
    Stage(THD* thd, const PSI_stage_info& what, uint parts = 0);
    /* With a text of its own, which stays for ever. */
    Stage(THD* thd, const PSI_stage_info& what, const char* text);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    void next_part();
    void next_part(const PSI_stage_info& what);

  private:
    void begin(const PSI_stage_info& what, const char* text);

    THD* thd_;
    PSI_stage_info before_;
    bool has_parts_;
};

} // namespace teak
#endif
