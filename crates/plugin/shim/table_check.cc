/*
  See table_check.h.
*/
#include "table_check.h"
#include "ha_teak.h"
#include "index_build.h"
#include "orphan_search.h"

namespace teak {

constexpr uint kShownFindings = 20;

/* The messages of the statement's result, and whether there were bad ones. */
class CheckReport {
  public:
    CheckReport(THD* thd, const TABLE* table) : thd_(thd), table_(table) { teak_forget_error(); }

    __attribute__((format(printf, 2, 3))) void damage(const char* format, ...) {
        char text[MYSQL_ERRMSG_SIZE];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        if (found_++ == 0)
            sql_print_error("Teak: table `%s`.`%s` is damaged: %s", table_->s->db.str, table_->s->table_name.str, text);
        if (found_ <= kShownFindings) warn(Sql_condition::WARN_LEVEL_WARN, text);
    }
    /* What is no damage: a note, or a warning of what should not be. The table is not corrupt by it. */
    __attribute__((format(printf, 3, 4))) void tell(Sql_condition::enum_warning_level level, const char* format, ...) {
        char text[MYSQL_ERRMSG_SIZE];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        warn(level, text);
    }
    /* What the engine found. */
    void found(teak_bytes text) {
        damage("%.*s", static_cast<int>(std::min<size_t>(text.len, 400)), reinterpret_cast<const char*>(text.data));
    }
    bool any() const { return found_ != 0; }

  private:
    void warn(Sql_condition::enum_warning_level level, const char* text) {
        push_warning_printf(thd_, level, ER_GET_ERRMSG, "Teak: %s", text);
    }

    THD* thd_;
    const TABLE* table_;
    ulonglong found_ = 0;
};

namespace {

constexpr uint kShownDifferences = 5; /* of one index */
constexpr size_t kShownOrphans = 10;  /* of one constraint */

/* What is known of an error since the report was begun. */
std::string cause_of(int error) {
    char text[MYSQL_ERRMSG_SIZE] = "";
    return teak_last_error({text, sizeof text}) ? text : "error " + std::to_string(error);
}

enum Stages { kCheckStages = 1, kExtendedStages = 3 };

/* A check of structures: progress and findings go by one context. */
struct StructureCheck {
    Progress progress;
    CheckReport* report;

    static void note(void* context, teak_bytes text) { static_cast<StructureCheck*>(context)->report->found(text); }
    static int watch(void* context, uint64_t leaves) {
        return Progress::report(&static_cast<StructureCheck*>(context)->progress, leaves);
    }
};

/* Rows of older layouts in the newest one. */
struct Renewal {
    Progress progress;
    const RowCodec* rows;
    Buffer record, blobs, packed;

    static int row(void* context, teak_bytes, teak_bytes row, teak_bytes* to) {
        auto* renewal = static_cast<Renewal*>(context);
        const RowCodec& rows = *renewal->rows;
        if (rows.is_newest(row)) return 0;
        uchar* const record = renewal->record.data();
        if (!rows.unpack(row, record, &renewal->blobs, nullptr)) return -1;
        uchar* const packed = renewal->packed.room(rows.packed_size(record));
        /* It stays as it is, and the next statement tries again. */
        if (!packed) return 0;
        *to = {packed, rows.pack(packed, record)};
        return 1;
    }
    static int watch(void* context, uint64_t leaves) {
        return Progress::report(&static_cast<Renewal*>(context)->progress, leaves);
    }
};

/* A check of indexes, freed at the end. */
class IndexComparison {
  public:
    ~IndexComparison() { teak_check_free(handle); }
    teak_check* handle = nullptr;
};

} // namespace

/* Names the differences of some indexes. */
struct TableCheck::Differences {
    TableCheck* of;
    CheckReport* report;
    const std::vector<uint>* indexes;
    Progress progress;
    std::vector<uint> shown;
    Buffer wanted, found;
    std::vector<uchar> scratch; /* for a key of a row */

    static int watch(void* context, uint64_t done) {
        return Progress::report(&static_cast<Differences*>(context)->progress, done);
    }
    static int each(void* context, const teak_difference* difference) {
        return static_cast<Differences*>(context)->take(*difference);
    }

    int take(const teak_difference& difference) {
        TABLE* table = of->open_.table;
        const uint index = (*indexes)[difference.part];
        const IndexCodec& codec = of->open_.indexes[index];
        if (difference.kind == TEAK_ENTRY_OTHER) {
            uchar* a = wanted.room(table->s->rec_buff_length);
            uchar* b = found.room(table->s->rec_buff_length);
            if (a) memset(a, 0, table->s->rec_buff_length);
            if (b) memset(b, 0, table->s->rec_buff_length);
            /* An entry of an earlier build may say the same in other bytes. */
            if (a && b && codec.says_the_same(difference.key, difference.wanted, difference.found, a, b)) return 1;
        }
        const teak_bytes value = difference.kind == TEAK_ENTRY_MISSING ? difference.wanted : difference.found;
        const teak_bytes pk = codec.primary_of({difference.key, value}, scratch.data(), scratch.size());
        const char* name = table->key_info[index].name.str;
        const std::string row = of->readable_key(pk);
        if (difference.kind == TEAK_ENTRY_MISSING)
            report->damage("index '%s' has no entry for the row %s", name, row.c_str());
        else if (difference.kind == TEAK_ENTRY_UNEXPECTED)
            report->damage("index '%s' has an entry for the row %s, which does not make it", name, row.c_str());
        else
            report->damage("index '%s' has other columns than the row %s", name, row.c_str());
        return ++shown[difference.part] < kShownDifferences;
    }
};

/* The columns of an index in the record, as in messages about duplicates; of a long one the beginning. */
std::string TableCheck::key_in_record(uint index) const {
    char buffer[MAX_KEY_LENGTH];
    String text(buffer, sizeof buffer, system_charset_info);
    text.length(0);
    MY_BITMAP* before = tmp_use_all_columns(open_.table, &open_.table->read_set);
    key_unpack(&text, open_.table, &open_.table->key_info[index]);
    tmp_restore_column_map(&open_.table->read_set, before);
    return std::string(text.ptr(), std::min<size_t>(text.length(), 100));
}

/* A row's key for people: as in messages about duplicates, or as bytes. */
std::string TableCheck::readable_key(teak_bytes pk) const {
    const uint index = open_.table->s->primary_key;
    bool restores = index != MAX_KEY;
    if (restores)
        for (const KeyPartCodec& part : open_.primary.key().parts())
            restores &= part.restorable;
    if (restores && open_.primary.decode(pk, open_.table->record[0])) return "'" + key_in_record(index) + "'";
    std::string text = index == MAX_KEY ? "number 0x" : "with key 0x";
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < std::min<size_t>(pk.len, 40); i++) {
        text += digits[pk.data[i] >> 4];
        text += digits[pk.data[i] & 15];
    }
    return text;
}

int TableCheck::optimize(THD* thd, HA_CHECK_OPT* options) {
    if (open_.meta.discarded) {
        my_error(ER_TABLESPACE_DISCARDED, MYF(0), open_.table->s->table_name.str);
        return HA_ADMIN_CORRUPT;
    }
    if (open_.has_cut_keys() || open_.unbuilt_unique != MAX_KEY) return HA_ADMIN_TRY_ALTER;
    const bool renews = open_.rows.has_layouts();
    if (renews && (open_.temporary || lives_in_memory(open_.table->s->option_struct))) return HA_ADMIN_TRY_ALTER;
    CheckReport report(thd, open_.table);
    Stage stage(thd, stages::packing_table, renews ? 2 : 1);
    int error = use_.ready();
    if (!error && renews) {
        error = renew_rows(thd);
        thd_progress_next_stage(thd);
    }
    if (!error) {
        Progress progress{thd, std::max<ulonglong>(teak_table_packing_steps(open_.core), 1)};
        error = open_.fail(teak_table_pack(use_.session(), open_.core, Progress::report, &progress));
    }
    if (!error) return file_.analyze(thd, options);
    if (thd_kill_level(thd) != THD_IS_NOT_KILLED) {
        my_error(ER_QUERY_INTERRUPTED, MYF(0));
        return HA_ADMIN_FAILED;
    }
    const std::string cause = cause_of(error);
    if (error == HA_ERR_CRASHED_ON_USAGE) {
        report.damage("%.400s", cause.c_str());
        return HA_ADMIN_CORRUPT;
    }
    report.tell(Sql_condition::WARN_LEVEL_WARN, "the table could not be packed: %.400s", cause.c_str());
    return HA_ADMIN_FAILED;
}

/* Puts rows of older layouts into the newest one. The layouts stay: old snapshots see rows of theirs, and so may a
   recovery. */
int TableCheck::renew_rows(THD* thd) {
    teak_tree_statistics statistics{};
    teak_tree_get_statistics(open_.core, 0, &statistics);
    Renewal renewal{{thd, std::max<ulonglong>(statistics.leaves, 1)}, &open_.rows, {}, {}, {}};
    if (!renewal.record.room(open_.table->s->rec_buff_length)) return HA_ERR_OUT_OF_MEM;
    return open_.fail(teak_table_rewrite(use_.session(), open_.core, Renewal::row, Renewal::watch, &renewal));
}

/* Looks at `count` trees from `first` on; `entries`: of each. */
int TableCheck::check_trees(uint32_t first, size_t count, uint32_t depth, uint64_t* entries, CheckReport* report) {
    ulonglong leaves = 0;
    for (size_t tree = first; tree < first + count; tree++) {
        teak_tree_statistics statistics{};
        if (teak_tree_get_statistics(open_.core, static_cast<uint32_t>(tree), &statistics) == TEAK_OK)
            leaves += statistics.leaves;
    }
    StructureCheck check{{open_.thd(), std::max<ulonglong>(leaves, 1)}, report};
    teak_table_check_result result;
    return open_.fail(teak_table_check(use_.session(), open_.core, first, depth, StructureCheck::note,
                                       StructureCheck::watch, &check, {entries, count}, &result));
}

int TableCheck::check(THD* thd, HA_CHECK_OPT* options) {
    if (open_.meta.discarded) {
        my_error(ER_TABLESPACE_DISCARDED, MYF(0), open_.table->s->table_name.str);
        return HA_ADMIN_CORRUPT;
    }
    const bool quick = options->flags & T_QUICK;
    const bool extended = !quick && options->flags & T_EXTEND;
    CheckReport report(thd, open_.table);
    const size_t constraints = quick ? 0 : keeper_.keys().own.size();
    Stage stage(thd, stages::checking_table,
                (extended ? kExtendedStages : kCheckStages) + static_cast<uint>(constraints));
    int error = use_.ready();
    if (!error) error = open_.fail(teak_open_snapshot(use_.session()));
    std::vector<uint64_t> entries(teak_table_trees(open_.core), 0);
    const uint32_t depth = quick ? TEAK_CHECK_BLOCKS : TEAK_CHECK_STRUCTURE;
    if (!error) error = check_trees(0, entries.size(), depth, entries.data(), &report);
    if (open_.unbuilt_unique != MAX_KEY) report.damage("%.400s", open_.unbuilt_unique_text().c_str());
    std::vector<uint> indexes;
    for (uint i = 0; i < open_.table->s->keys && !error; i++) {
        if (i == open_.table->s->primary_key || i == open_.unbuilt_unique) continue;
        const char* name = open_.table->key_info[i].name.str;
        if (use_.is_idle(i)) {
            report.tell(
                Sql_condition::WARN_LEVEL_NOTE,
                "index '%s' is disabled and was not compared with the rows; ALTER TABLE ... ENABLE KEYS builds it",
                name);
            continue;
        }
        indexes.push_back(i);
        /* What damage hides is not counted. */
        if (!quick && !report.any() && entries[open_.tree_of(i)] != entries[0])
            report.damage("index '%s' has %llu entries, the table %llu rows", name,
                          static_cast<ulonglong>(entries[open_.tree_of(i)]), static_cast<ulonglong>(entries[0]));
    }
    if (!error && extended && !indexes.empty()) error = check_entries(indexes, &report);
    if (!error && !quick) error = check_parents(&report);
    if (error) {
        report.damage("the check could not be finished: %.400s", cause_of(error).c_str());
        return error == HA_ERR_CRASHED_ON_USAGE ? HA_ADMIN_CORRUPT : HA_ADMIN_FAILED;
    }
    if (report.any()) return HA_ADMIN_CORRUPT;
    return open_.has_cut_keys() ? HA_ADMIN_NEEDS_ALTER : HA_ADMIN_OK;
}

/* Compares every entry of `indexes` with the rows. */
int TableCheck::check_entries(const std::vector<uint>& indexes, CheckReport* report) {
    std::vector<uint> differing;
    {
        IndexComparison sums;
        thd_progress_next_stage(open_.thd());
        if (int error = begin_comparison(indexes, 0, &sums.handle)) return error;
        thd_progress_next_stage(open_.thd());
        Progress progress{open_.thd(), std::max<ulonglong>(file_.estimate_rows_upper_bound() * indexes.size(), 1)};
        std::vector<teak_index_count> counts(indexes.size());
        if (int error = open_.fail(teak_check_sums(use_.session(), sums.handle, Progress::report, &progress,
                                                   {counts.data(), counts.size()})))
            return error;
        for (size_t i = 0; i < indexes.size(); i++)
            if (!counts[i].equal) differing.push_back(indexes[i]);
    }
    if (differing.empty()) return 0;
    IndexComparison named;
    if (int error = begin_comparison(differing, sort_buffer_bytes(open_.thd()), &named.handle)) return error;
    Differences differences{this,
                            report,
                            &differing,
                            {open_.thd(), std::max<ulonglong>(file_.estimate_rows_upper_bound() * differing.size(), 1)},
                            std::vector<uint>(differing.size(), 0),
                            {},
                            {},
                            std::vector<uchar>(open_.primary.max_size())};
    return open_.fail(
        teak_check_differences(use_.session(), named.handle, Differences::each, Differences::watch, &differences));
}

/* Whether each row has the parents that foreign keys want: as of the snapshot, in which all transactions are whole. */
int TableCheck::check_parents(CheckReport* report) {
    THD* thd = open_.thd();
    if (int error = keeper_.know()) return error;
    for (const ForeignKey& key : keeper_.keys().own) {
        const std::string name = key.name();
        const uint index = index_on(open_.table, key.columns, nullptr);
        if (index == MAX_KEY || use_.is_idle(index)) {
            report->tell(Sql_condition::WARN_LEVEL_WARN,
                         "constraint '%s' cannot be checked: the table has no index of its columns", name.c_str());
            continue;
        }
        OrphanSearch search(key);
        if (int error = search.open(thd, open_.table, open_.core, open_.meta)) return error;
        if (!search.has_parent()) {
            const TableName parent(key.parent);
            report->tell(Sql_condition::WARN_LEVEL_WARN,
                         "constraint '%s' cannot be checked: there is no table `%s`.`%s` of Teak with an index of "
                         "the referenced columns",
                         name.c_str(), parent.db().str, parent.table().str);
            continue;
        }
        thd_progress_next_stage(thd);
        if (int error =
                search.run(use_.session(), OrphanSearch::Snapshot, kShownOrphans, file_.estimate_rows_upper_bound()))
            return error;
        for (const std::string& orphan : search.found())
            report->tell(Sql_condition::WARN_LEVEL_WARN, "constraint '%s' is not met: there is no parent of %.300s",
                         name.c_str(), orphan.c_str());
        if (search.found().size() == kShownOrphans)
            report->tell(Sql_condition::WARN_LEVEL_WARN, "there may be more rows that do not meet constraint '%s'",
                         name.c_str());
    }
    return 0;
}

/* A comparison that has all entries which the rows make. */
int TableCheck::begin_comparison(const std::vector<uint>& indexes, uint64_t sort_bytes, teak_check** out) {
    std::vector<const IndexCodec*> codecs;
    std::vector<uint32_t> trees;
    for (uint index : indexes) {
        codecs.push_back(&open_.indexes[index]);
        trees.push_back(open_.tree_of(index));
    }
    if (int error = open_.fail(teak_check_new(open_.core, {trees.data(), trees.size()}, sort_bytes, out))) return error;
    return IndexBuild(file_, open_, use_).feed({nullptr, *out}, codecs);
}

int TableCheck::repair(THD* thd) {
    CheckReport report(thd, open_.table);
    int error = use_.ready();
    {
        Stage stage(thd, stages::checking_table, kCheckStages);
        uint64_t rows = 0;
        if (!error) error = open_.fail(teak_open_snapshot(use_.session()));
        if (!error) error = check_trees(0, 1, TEAK_CHECK_STRUCTURE, &rows, &report);
    }
    if (!error && report.any()) {
        report.tell(Sql_condition::WARN_LEVEL_NOTE,
                    "rows are damaged, and REPAIR only builds indexes from rows: restore the table from a backup, or "
                    "save what can be "
                    "read of it; see \"When something fails\" in docs/operations.md");
        return HA_ADMIN_CORRUPT;
    }
    ulonglong renewed = 0;
    uint32_t duplicate = 0;
    for (uint i = 0; i < open_.table->s->keys; i++) {
        if (i == open_.table->s->primary_key) continue;
        if ((open_.disabled_indexes & 1ULL << i) && file_.may_be_disabled(i))
            report.tell(Sql_condition::WARN_LEVEL_NOTE, "index '%s' is disabled; ALTER TABLE ... ENABLE KEYS builds it",
                        open_.table->key_info[i].name.str);
        else
            renewed |= 1ULL << i;
    }
    if (!error && renewed) error = renew_indexes(renewed, &duplicate);
    if (!error) return HA_ADMIN_OK;
    if (error == HA_ERR_FOUND_DUPP_KEY) {
        const uint index = nth_index(renewed, duplicate);
        const std::string key = key_in_record(index);
        if (file_.inited == handler::RND) file_.ha_rnd_end();
        report.damage("rows have the entry '%s' of the unique index '%s' twice: delete or change all but one of "
                      "them, then repair again; "
                      "nothing was changed",
                      key.c_str(), open_.table->key_info[index].name.str);
        return HA_ADMIN_CORRUPT;
    }
    report.damage("the repair could not be finished, and nothing was changed: %.400s", cause_of(error).c_str());
    return HA_ADMIN_FAILED;
}

uint TableCheck::nth_index(ulonglong indexes, uint n) const {
    for (uint i = 0; i < open_.table->s->keys; i++)
        if (indexes & 1ULL << i && n-- == 0) return i;
    return MAX_KEY;
}

/* Builds new trees for `indexes`, and puts them in the place of the old ones. Nobody else uses the table.
   HA_ERR_FOUND_DUPP_KEY: `*duplicate` says in which of them. */
int TableCheck::renew_indexes(ulonglong indexes, uint32_t* duplicate) {
    const TableMeta before = open_.meta;
    const uint32_t old_trees = static_cast<uint32_t>(1 + before.indexes.size());
    std::vector<uint32_t> kept, with_new, trees;
    std::vector<const IndexCodec*> codecs;
    TableMeta more = before;
    for (uint32_t tree = 0; tree < old_trees; tree++)
        kept.push_back(tree);
    with_new = kept;
    std::vector<uint32_t> in_place = kept;
    TableMeta after = before;
    for (uint i = 0; i < open_.table->s->keys; i++) {
        if (!(indexes & 1ULL << i)) continue;
        const uint32_t tree = open_.tree_of(i), renewed = static_cast<uint32_t>(with_new.size());
        with_new.push_back(TEAK_NEW_TREE);
        /* A name that no index has: if the server dies, the next one to open the table lets go of it. */
        more.indexes.push_back({~before.indexes[tree - 1].name, true});
        in_place[tree] = renewed;
        after.indexes[tree - 1].disabled = false;
        codecs.push_back(&open_.indexes[i]);
        trees.push_back(renewed);
    }
    open_.share->altering = true;
    int error = open_.alter_trees(with_new, more);
    if (!error) error = use_.ready();
    if (!error) {
        IndexBuild build(file_, open_, use_);
        error = build.run(codecs, trees);
        *duplicate = build.duplicate_part();
        const int undone = error ? open_.alter_trees(kept, before) : open_.alter_trees(in_place, after);
        if (!error) error = undone;
    }
    open_.share->altering = false;
    return error ? error : file_.info(HA_STATUS_CONST | HA_STATUS_VARIABLE);
}

} // namespace teak
