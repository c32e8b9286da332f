/*
  What the optimizer asks about a table: how many rows there are (table_statistics.h), and how much there is to read.
  Until MariaDB 10.11 it asks for costs whose unit is a random read of a page; since 11.0 for reads of IO_SIZE and for
  milliseconds, apart, to which it adds what the engine says of single rows (update_optimizer_costs).

  Rows count as if they were not compressed: the cost is that of looking at them.
*/
#include "ha_teak.h"
#include <algorithm>
#include <cmath>

using namespace teak;

namespace {

constexpr double kBlockBytes = 32768;   /* a leaf, unless the table says otherwise */
constexpr uint64_t kLeavesThatTell = 8; /* fewer say little about how large the rows are */
constexpr uint kHiddenKeyBytes = 6;     /* of a hidden primary key, as the optimizer knows it from InnoDB */

} // namespace

int ha_teak::info(uint flag) {
    if (!open_.core) return HA_ERR_NO_SUCH_TABLE;
    if (flag & HA_STATUS_ERRKEY) {
        const Session* session = session_of(ha_thd());
        errkey = session && session->duplicate.of == table ? session->duplicate.index : UINT_MAX;
    }
    statistics_.tell(flag, &stats);
    return 0;
}

ha_rows ha_teak::estimate_rows_upper_bound() { return statistics_.upper_bound(); }

ha_rows ha_teak::records_in_range(uint index, const key_range* from, const key_range* to, page_range*) {
    CountedCall call(handler_stats);
    return statistics_.in_range(index, from, to, stats.records);
}

int ha_teak::analyze(THD*, HA_CHECK_OPT*) {
    statistics_.refresh(true);
    return info(HA_STATUS_VARIABLE | HA_STATUS_CONST) ? HA_ADMIN_FAILED : HA_ADMIN_OK;
}

/* Pages that a scan of all rows looks at. */
double ha_teak::row_pages() const {
    teak_tree_statistics rows{};
    if (open_.core) teak_tree_get_statistics(open_.core, 0, &rows);
    if (rows.leaves >= kLeavesThatTell) {
        const ha_table_option_struct* options = table->s->option_struct;
        double block_bytes = options && options->block_size ? static_cast<double>(options->block_size) : kBlockBytes;
        return static_cast<double>(rows.leaves) * block_bytes / kPageBytes;
    }
    double row_bytes = std::min<double>(table->s->reclength, 400);
    return std::max(1.0, static_cast<double>(stats.records) * row_bytes / kPageBytes);
}

/* Bytes of an entry of an index with the length that the primary key has in the server's form: ours, which the server
   would take (ref_length), has room for the longest weights. */
double ha_teak::entry_bytes(uint index) const {
    const uint primary = table->s->primary_key;
    if (index == primary) return table->s->stored_rec_length;
    return table->key_info[index].key_length +
           (primary == MAX_KEY ? kHiddenKeyBytes : table->key_info[primary].key_length);
}

#ifdef MARIADB_NEW_COST_MODEL
/* handler.h: virtual IO_AND_CPU_COST scan_time(), and so the others; handler::keyread_time and index_blocks are the
   same but for the length of an entry. */

namespace {

constexpr double kReadsOfPage = static_cast<double>(kPageBytes) / IO_SIZE;
constexpr double kFilled = 0.75; /* of a page of an index */

/* In milliseconds: InnoDB's (ha_innodb.cc), which were measured on another machine, times what Teak takes of InnoDB's
   processor time for each here (docs/design/server-versions.md). */
void take_measured_costs(OPTIMIZER_COSTS* each) {
    each->row_next_find_cost = 0.28 * 0.00007013;
    each->row_lookup_cost = 0.40 * 0.00076597;
    each->key_next_find_cost = 0.28 * 0.00009900;
    each->key_lookup_cost = 0.33 * 0.00079112;
    each->row_copy_cost = 0.28 * 0.00006087;
    /* The server's 0.0000027 is that of a memcmp; ids are sorted for filters through three calls by pointers. */
    each->rowid_cmp_cost = 0.000010;
}

} // namespace

void teak::set_costs(handlerton* hton) { hton->update_optimizer_costs = take_measured_costs; }

IO_AND_CPU_COST ha_teak::scan_time() {
    const double pages = row_pages();
    return {pages * kReadsOfPage, pages * INDEX_BLOCK_COPY_COST};
}

ulonglong ha_teak::row_blocks() { return static_cast<ulonglong>(std::ceil(row_pages() * kReadsOfPage)); }

IO_AND_CPU_COST ha_teak::keyread_time(uint index, ulong ranges, ha_rows rows, ulonglong blocks) {
    auto pages = static_cast<double>(blocks);
    if (!blocks)
        pages = rows <= 1 ? 1
                          : std::ceil(static_cast<double>(rows) * entry_bytes(index) / kFilled / kPageBytes) +
                                static_cast<double>(ranges - 1);
    return {pages * kReadsOfPage, pages * INDEX_BLOCK_COPY_COST};
}

ulonglong ha_teak::index_blocks(uint index, uint ranges, ha_rows rows) {
    const double pages = std::floor(static_cast<double>(rows) * entry_bytes(index) / kFilled / kPageBytes) + ranges;
    return static_cast<ulonglong>(pages * kReadsOfPage);
}

ha_rows ha_teak::multi_range_read_info_const(uint index, RANGE_SEQ_IF* ranges, void* ranges_arg, uint count,
                                             uint* buffer_bytes, uint* flags, ha_rows limit, Cost_estimate* cost) {
    prepare_sorted_ranges(flags);
    return sorted_ranges_.dsmrr_info_const(index, ranges, ranges_arg, count, buffer_bytes, flags, limit, cost);
}

#else

void teak::set_costs(handlerton*) {}

double ha_teak::scan_time() { return row_pages(); }

/* handler::keyread_time, with another length of an entry. */
double ha_teak::keyread_time(uint index, uint ranges, ha_rows rows) {
    const double length = entry_bytes(index);
    double cost = static_cast<double>(rows) * length / (stats.block_size + 1) * IDX_BLOCK_COPY_COST;
    if (ranges) cost += std::ceil(static_cast<double>(rows) / (std::floor(stats.block_size * 0.75 / length) + 1));
    return cost;
}

double ha_teak::read_time(uint index, uint ranges, ha_rows rows) {
    if (index != table->s->primary_key) return handler::read_time(index, ranges, rows);
    ha_rows total = estimate_rows_upper_bound();
    double scan = scan_time();
    if (total < rows) return scan;
    return ranges + static_cast<double>(rows) / static_cast<double>(total) * scan;
}

ha_rows ha_teak::multi_range_read_info_const(uint index, RANGE_SEQ_IF* ranges, void* ranges_arg, uint count,
                                             uint* buffer_bytes, uint* flags, Cost_estimate* cost) {
    prepare_sorted_ranges(flags);
    return sorted_ranges_.dsmrr_info_const(index, ranges, ranges_arg, count, buffer_bytes, flags, cost);
}

#endif
