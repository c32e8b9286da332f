/*
  Single tables, as users of InnoDB know it:

    FLUSH TABLES t FOR EXPORT             writes db/t.teak, which has all of the table; UNLOCK TABLES removes it
    ALTER TABLE t DISCARD TABLESPACE      the table has no rows any more, and may not be used
    ALTER TABLE t IMPORT TABLESPACE       takes what is in db/t.teak, which goes with it

  The file is the engine's ([docs/format.md]); what is decided here is whether its table fits (table_definition.cc), and
  what a statement may do with a table that was discarded.
*/
#include "ha_teak.h"
#include "table_definition.h"
#include <sys/stat.h>

using namespace teak;

namespace {

constexpr mode_t kExportMode = 0640;

int is_killed(void* thd, uint64_t) { return thd_killed(static_cast<THD*>(thd)); }

/* How a file fits the table that it is to be imported into. */
struct Admission {
    THD* thd;
    const TABLE* table;
    KeyEncoding encoding; /* that the table's codecs are made for */
    std::string refusal;
    std::vector<uchar> pending, complete;
    bool is_guarded = false;

    static int watch(void* admission, uint64_t bytes) {
        return is_killed(static_cast<Admission*>(admission)->thd, bytes);
    }

    static int admit(void* context, teak_bytes definition, teak_bytes bytes, uint64_t trees, teak_admission* answer) {
        auto* admission = static_cast<Admission*>(context);
        const bool fits = admission->look(definition, bytes, trees);
        answer->pending = bytes_of(admission->pending.data(), admission->pending.size());
        answer->meta = bytes_of(admission->complete.data(), admission->complete.size());
        answer->guarded = admission->is_guarded;
        answer->spec = tree_spec(admission->table->s->option_struct);
        answer->refusal = bytes_of(admission->refusal);
        return !fits;
    }

    bool look(teak_bytes definition, teak_bytes bytes, uint64_t trees) {
        const std::string theirs(reinterpret_cast<const char*>(definition.data), definition.len);
        refusal = definition_difference(definition_text(table), theirs);
        if (!refusal.empty()) return false;
        TableMeta meta;
        if (!meta.parse(bytes) || trees != 1 + meta.indexes.size())
            refusal = "the file has metadata that this version does not know";
        for (uint i = 0; refusal.empty() && i < table->s->keys; i++)
            if (i != table->s->primary_key && !meta.tree_of(table->key_info[i]))
                refusal = "the file has no tree for key " + std::string(table->key_info[i].name.str);
        /* Without prefixes of columns the newest two are the same. */
        const bool differs = TableMeta(table).encoding == KeyEncoding::Prefixes
                                 ? meta.encoding != encoding
                                 : (meta.encoding == KeyEncoding::CutWeights) != (encoding == KeyEncoding::CutWeights);
        if (refusal.empty() && differs)
            refusal =
                "the file has keys of an earlier format: ALTER TABLE ... FORCE where it comes from makes them anew";
        PrimaryCodec primary;
        if (refusal.empty() &&
            (!primary.init(table, encoding) || !RowCodec().init(table, primary.restored_columns(), meta.layouts)))
            refusal = "the file has rows of layouts that are not the table's";
        if (!refusal.empty()) return false;
        /* By which definition rows are read is known here. */
        meta.set_definition(table);
        meta.discarded = true;
        pending = meta.encode();
        meta.discarded = false;
        complete = meta.encode();
        is_guarded = meta.is_guarded();
        return true;
    }
};

} // namespace

namespace teak {

std::string export_path(const std::string& name) { return "./" + name + ".teak"; }

} // namespace teak

/* Rows that are in memory alone are in no file that could be copied. */
int ha_teak::check_has_file() const {
    if (!lives_in_memory(table->s->option_struct)) return 0;
    my_error(ER_ILLEGAL_HA, MYF(0), "Teak", table->s->db.str, table->s->table_name.str);
    return HA_ERR_WRONG_COMMAND;
}

/* The server keeps writers out, and the table has no undecided rows. */
int ha_teak::export_table(THD* thd) {
    if (int error = check_has_file()) return error;
    const std::string path = export_path(open_.name);
    std::optional<Stage> stage(std::in_place, thd, stages::exporting_table);
    const teak_status status = teak_table_export(plugin.engine, bytes_of(open_.name), bytes_of(definition_text(table)),
                                                 bytes_of(path), is_killed, thd);
    stage.reset();
    if (status == TEAK_CORRUPT || status == TEAK_IO || status == TEAK_DISK_FULL) return raise_error(status, thd);
    if (status != TEAK_OK) return fail(status);
    use_.held.exported = true;
    /* For who copies it; the engine's own files are nobody's. */
    if (chmod(path.c_str(), kExportMode)) sql_print_warning("Teak: the mode of %s could not be set", path.c_str());
    return 0;
}

void ha_teak::end_export() {
    if (use_.held.exported) my_delete(export_path(open_.name).c_str(), MYF(0));
    use_.held.exported = false;
}

int ha_teak::discard_or_import_tablespace(my_bool discard) {
    THD* thd = ha_thd();
    if (open_.temporary) {
        my_error(ER_CANNOT_DISCARD_TEMPORARY_TABLE, MYF(0));
        return HA_ERR_TABLE_NEEDS_UPGRADE;
    }
    if (int error = check_has_file()) return error;
    if (int error = use_.ready()) return error;
    if (discard) return discard_rows(thd);
    if (!open_.meta.discarded) {
        my_error(ER_TABLESPACE_EXISTS, MYF(0), open_.name.c_str());
        return HA_ERR_TABLE_EXIST;
    }
    return import_rows(thd);
}

int ha_teak::discard_rows(THD* thd) {
    if (referenced_by_foreign_key() && !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS))
        return constraints_.break_constraint(constraints_.keys().of_others.front(), HA_ERR_ROW_IS_REFERENCED);
    if (open_.meta.discarded)
        push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_TABLESPACE_MISSING,
                            ER_THD(thd, ER_TABLESPACE_MISSING), open_.name.c_str());
    TableMeta meta = open_.meta;
    meta.discarded = true;
    return open_.empty(meta);
}

int ha_teak::import_rows(THD* thd) {
    const std::string path = export_path(open_.name);
    if (access(path.c_str(), F_OK)) {
        my_error(ER_TABLESPACE_MISSING, MYF(0), open_.name.c_str());
        return HA_ERR_TABLESPACE_MISSING;
    }
    Admission admission{thd, table, open_.meta.encoding, {}, {}, {}, false};
    open_.close();
    std::optional<Stage> stage(std::in_place, thd, stages::importing_table);
    const teak_status status = teak_table_import(plugin.engine, bytes_of(open_.name), bytes_of(path), Admission::admit,
                                                 Admission::watch, &admission);
    stage.reset();
    int error = 0;
    if (status == TEAK_OTHER_DEFINITION) {
        my_error(ER_TABLE_SCHEMA_MISMATCH, MYF(0), admission.refusal.c_str());
        error = HA_ERR_GENERIC;
    } else if (status == TEAK_CORRUPT || status == TEAK_UNKNOWN_VERSION || status == TEAK_IO) {
        char text[MYSQL_ERRMSG_SIZE];
        teak_last_error({text, sizeof text});
        my_printf_error(ER_INTERNAL_ERROR, "Cannot import table %s: %s", MYF(0), open_.name.c_str(), text);
        error = HA_ERR_GENERIC;
    } else
        error = status == TEAK_DISK_FULL ? raise_error(status, thd) : fail(status);
    open_.share->generation++;
    const int reopened = open_.open();
    if (error || reopened) return error ? error : reopened;
    /* It is a second copy of what the table has now. */
    if (my_delete(path.c_str(), MYF(0)))
        push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_CANT_DELETE_FILE, ER_THD(thd, ER_CANT_DELETE_FILE),
                            path.c_str(), my_errno);
    info(HA_STATUS_TIME | HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_AUTO);
    return 0;
}
