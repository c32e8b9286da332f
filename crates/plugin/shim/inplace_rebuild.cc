/*
  ALTER TABLE that writes all rows anew while others write: FORCE, another primary key, columns of other types or that
  may not be NULL any more, other block sizes, and what comes with those.

    prepare    a new table, under a name of its own; writes to the old one are followed   (exclusive lock)
    alter      it is filled from a snapshot of the rows; then, until little is left,      (no lock)
               come the differences between that and the next
    commit     what is left; the new table takes the old one's place                      (exclusive lock)

  Each row is unpacked by the definition of before, converted (record_converter.h) and packed by the new one, with the
  entries of all indexes: to the engine the rows are entries of one more index.

  The commit is one transaction of the engine, over all partitions. After a crash before it the start drops the new
  table; after it the old one's file is gone. Which definition fits the server asks check_version, as after any ALTER in
  place.
*/
#include "ha_teak.h"
#include "server_version.h"
#include "inplace_alter.h"
#include <algorithm>

using namespace teak;

namespace {

const OnlineBuild::Stages kStages{stages::rebuilding_table, stages::applying_changes_to_table};

bool has_blob(const KEY& key) {
    for (uint part = 0; part < key.user_defined_key_parts; part++)
        if (key.key_part[part].field->flags & BLOB_FLAG) return true;
    return false;
}

/* Options that the copy refuses or warns of, with its words. */
bool has_odd_options(const HA_CREATE_INFO* create) {
    return create->data_file_name || create->index_file_name || create->row_type == ROW_TYPE_FIXED ||
           create->row_type == ROW_TYPE_PAGE;
}

/* What keeps the keys of the new table from being built, or a duplicate among them from being told. */
bool has_odd_keys(const TABLE* altered, const Alter_inplace_info* info) {
    for (uint i = 0; i < altered->s->keys; i++)
        if (is_special(altered->key_info[i])) return true;
    for (uint i = 0; i < info->index_add_count; i++) {
        const KEY& added = added_key(info, i);
        if (added.without_overlaps) return true;
        for (uint k = 0; k < altered->s->keys; k++) {
            const KEY& key = altered->key_info[k];
            if (k != altered->s->primary_key && same_name(key, added) && key.flags & HA_NOSAME && has_blob(key))
                return true;
        }
    }
    return false;
}

/* Whether a column that is to be AUTO_INCREMENT has no values yet. */
bool adds_counter(const TABLE* altered, const Alter_inplace_info* info) {
    uint number = 0;
    for (const Create_field& column : info->alter_info->create_list) {
        const Field* const field = altered->field[number++];
        if (!column.field && field->unireg_check == Field::NEXT_NUMBER) return true;
    }
    return false;
}

} // namespace

/* The statement asks for it, or blocks and rows cannot stay as they are. */
bool InplaceAlter::needs_rebuild(const TABLE* altered, const Alter_inplace_info* info) const {
    return info->handler_flags & kRebuilds || changes_form(open_.table, info->create_info) ||
           !same_primary(open_.table, altered);
}

enum_alter_inplace_result InplaceAlter::check_rebuild(TABLE* altered, Alter_inplace_info* info) {
    const alter_table_operations wanted = info->handler_flags;
    /* Rows cannot be looked at for their parents before they are written. */
    if (wanted & kVirtualColumns || constraints_.has_to_verify() || open_.disabled_indexes || open_.meta.discarded ||
        has_odd_options(info->create_info) || has_odd_keys(altered, info))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (info->ignore && wanted & (ALTER_ADD_PK_INDEX | ALTER_COLUMN_NOT_NULLABLE)) {
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE);
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    if (wanted & ALTER_COLUMN_NOT_NULLABLE && !open_.thd()->is_strict_mode()) {
        info->unsupported_reason = "without strict sql_mode a copy gives other values for NULL";
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    if (moves(open_.table->s->option_struct, info->create_info->option_struct)) {
        info->unsupported_reason = "IN_MEMORY says where all rows are";
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    if (adds_counter(altered, info)) {
        info->unsupported_reason = my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_AUTOINC);
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    if (altered->s->primary_key == MAX_KEY && !open_.primary.hidden()) {
        info->unsupported_reason = my_get_err_msg(ER_PRIMARY_CANT_HAVE_NULL);
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    Rebuild rebuild;
    if (!rebuild.init(open_.table, altered, info->alter_info->create_list)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* The server refuses some of these copies, with its words. */
    if (constraints_.changes_needed_values(rebuild.fields())) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    if (rebuild.fields().may_change_values() && (info->ignore || !open_.thd()->is_strict_mode())) {
        if (!info->ignore)
            info->unsupported_reason = "without strict sql_mode a copy gives other values for those that do not fit";
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
    if (wanted & ALTER_VIRTUAL_GCOL_EXPR && rebuild.computes()) return HA_ALTER_INPLACE_NOT_SUPPORTED;
    /* Says so to the later phases, and to other partitions. */
    info->handler_flags |= ALTER_RECREATE_TABLE;
    return HA_ALTER_INPLACE_COPY_NO_LOCK;
}

int InplaceAlter::begin_rebuild(TABLE* altered, const Alter_inplace_info* info, Rebuild* rebuild) {
    if (int error = use_.ready()) return error;
    if (!rebuild->init(open_.table, altered, info->alter_info->create_list)) return HA_ERR_UNSUPPORTED;
    return rebuild->begin(open_.thd(), open_.core);
}

/* Fills the new table, and goes on until few rows are left that were changed meanwhile. The error is set. */
int InplaceAlter::run_rebuild(TABLE* altered, Rebuild* rebuild) {
    int error = use_.ready();
    if (!error)
        error = rebuild->with_reading(open_.thd(), {open_.table, &open_.rows, &open_.primary},
                                      [&](const RowReading& reading) {
                                          return rebuild->build.run(open_.thd(), use_.session(), reading,
                                                                    file_.estimate_rows_upper_bound(), kStages);
                                      });
    if (error) tell_rebuild_error(altered, rebuild, error);
    return error;
}

/* What is left when nobody else has the table. The error is set. */
int InplaceAlter::finish_rebuild(TABLE* altered, Rebuild* rebuild) {
    int error =
        rebuild->with_reading(open_.thd(), {open_.table, &open_.rows, &open_.primary},
                              [&](const RowReading& reading) { return rebuild->build.finish(open_.thd(), reading); });
    if (error) tell_rebuild_error(altered, rebuild, error);
    return error;
}

/* Gives rows of now to `meets`, in the order of their keys, until it is true of one. */
template <typename Meets> void InplaceAlter::find_row(const Meets& meets) {
    WholeRows whole(open_.table, use_.statement.reads_snapshot);
    if (teak_open_snapshot(use_.session()) != TEAK_OK || file_.ha_rnd_init(true) != 0) return;
    while (!thd_kill_level(open_.thd()) && file_.ha_rnd_next(open_.table->record[0]) == 0 && !meets())
        ;
    file_.ha_rnd_end();
}

/* InnoDB's errors. Several threads have read the rows, so which is the first, and its number, takes a scan in the order
   of their keys; nobody's row may be it any more. */
void InplaceAlter::tell_of_null(const Rebuild* rebuild) {
    const Field* found = nullptr;
    ulong row = 0;
    find_row([&] {
        row++;
        found = rebuild->refused(open_.table->record[0]);
        return found != nullptr;
    });
    if (found) {
        open_.thd()->get_stmt_da()->reset_current_row_for_warning(static_cast<int>(row));
        my_printf_error(WARN_DATA_TRUNCATED, ER_THD(open_.thd(), WARN_DATA_TRUNCATED), MYF(0), found->field_name.str,
                        row);
    }
    my_error(ER_INVALID_USE_OF_NULL, MYF(0));
}

/* The copy's error, with the number of a row that was written meanwhile; if that is gone the number is wrong. */
void InplaceAlter::tell_of_value(Rebuild* rebuild) {
    THD* thd = open_.thd();
    const ulonglong options = thd->variables.option_bits;
    thd->variables.option_bits &= ~OPTION_SQL_NOTES; /* they were given */
    thd->get_stmt_da()->reset_current_row_for_warning(0);
    find_row([&] { return !rebuild->convert(open_.table->record[0]); });
    thd->variables.option_bits = options;
    if (!thd->is_error()) rebuild->tell_refused_value();
}

void InplaceAlter::tell_rebuild_error(TABLE* altered, Rebuild* rebuild, int error) {
    KEY* key;
    if (open_.thd()->is_error()) return;
    if (rebuild->has_met_null())
        tell_of_null(rebuild);
    else if (rebuild->has_refused_value())
        tell_of_value(rebuild);
    else if (error == HA_ERR_FOUND_DUPP_KEY && rebuild->restore_duplicate(altered, &key) && key)
        print_keydup_error(altered, key, MYF(0));
    else
        file_.print_error(error, MYF(0));
}

/* Puts the new tables of `parts`, a list that ends with nullptr, in place of the old ones, in one step. */
int InplaceAlter::commit_rebuilt(TABLE* altered, const Alter_inplace_info* info,
                                 inplace_alter_handler_ctx* const* parts) {
    std::vector<AlteredTable*> contexts;
    std::vector<teak_replacement> replacements;
    Relinks relinks;
    /* A partitioned table has no constraints. */
    if (int error = context_of(*parts)->alter->constraints_.relink(&relinks)) return error;
    for (; *parts; parts++) {
        AlteredTable* const context = context_of(*parts);
        InplaceAlter* const part = context->alter;
        /* Once more: without a lock a transaction may have been prepared since the statement began. */
        if (int error = part->use_.prepare_change(open_.thd())) return error;
        if (int error = part->finish_rebuild(altered, context->rebuild.get())) return error;
        teak_table_statistics now;
        teak_table_get_statistics(part->open_.core, &now);
        uint64_t counter = 0;
        if (int error = part->wanted_counter(info, &counter)) return error;
        const std::string& name = context->rebuild->name();
        replacements.push_back({bytes_of(part->open_.name), bytes_of(name.c_str()),
                                counter ? counter : static_cast<uint64_t>(now.next_counter)});
        contexts.push_back(context);
    }
    for (AlteredTable* context : contexts) {
        context->rebuild->close();
        context->alter->open_.close();
    }
    int error =
        open_.fail(teak_tables_replace(plugin.engine, {replacements.data(), replacements.size()}, relinks.all()));
    for (AlteredTable* context : contexts) {
        context->alter->open_.share->generation++;
        if (!error) {
            context->rebuild->note_replaced();
            continue;
        }
        int reopened = context->alter->open_.open();
        if (!error) error = reopened;
    }
    return error;
}
