/*
  ON DELETE and ON UPDATE of foreign keys: what follows for a row's children when it has gone or has another key.

  The server has opened and locked the children's tables for the statement (get_parent_foreign_key_list), one TABLE
  each that the statement itself does not use. Rows are changed through their handlers, below the server: no triggers,
  no row events. Each change looks after the constraints of its own table, and so goes on to the next.

  A row of a system-versioned child that goes, or changes in a column that is versioned, leaves history, as in InnoDB:
  with the statement's time, and without the triggers and row events that the server's own has.

  A row is written before its children are followed: so a cascade that comes round finds nothing left to do. If anything
  fails, the row's mark (teak_row_mark, by depth) takes back all that has come of it.
*/
#include "constraint_keeper.h"
#include "ha_teak.h"
#include "server_version.h"
#include "server_contracts.h"
#include "rpl_rli.h"
#include <algorithm>

namespace teak {

namespace {

/* As InnoDB: rows that follow from each other, the first one included. */
constexpr size_t kMostDepth = 15;
/* Children that are found before the first of them is changed: so their index entries are written together. */
constexpr size_t kMostAhead = 4096;

/* Whether the column has members by this number. */
bool has_members(const Field* field, ulonglong number) {
    const enum_field_types type = field->real_type();
    if (type != MYSQL_TYPE_ENUM && type != MYSQL_TYPE_SET) return true;
    const uint members = members_of(static_cast<const Field_enum*>(field))->count;
    return type == MYSQL_TYPE_ENUM ? number <= members : members >= 64 || number >> members == 0;
}

/* Gives a child's column the parent's new value. False: it does not fit. */
bool copy_value(Field* to, Field* from) {
    if (from->is_null()) {
        if (!to->real_maybe_null()) return false;
        to->set_null();
        return true;
    }
    to->set_notnull();
    if (holds_number(to) && holds_number(from) && to->pack_length() == from->pack_length()) {
        if (!has_members(to, static_cast<ulonglong>(from->val_int()))) return false;
        memcpy(to->ptr, from->ptr, to->pack_length());
        return true;
    }
    if (field_conv(to, from)) return false;
    StringBuffer<MAX_FIELD_WIDTH> wanted, stored;
    from->val_str(&wanted);
    to->val_str(&stored);
    return sortcmp(&wanted, &stored, to->charset()) == 0;
}

/*
  When what follows happens to the versioned row in the table's first record: at the time of the statement. Who applies
  row events knows that in seconds only; what the server gives as the rest differs between events that one thread
  applies one after the other, but not between two threads, nor before and after a restart. Versions of a row would end
  in the same moment, or before they began: so one lasts a microsecond at least, unless it began in this statement.
*/
timeval moment_of(TABLE* table, const std::string& name, Session& session, teak_bytes row) {
    THD* const thd = table->in_use;
    const timeval now = {thd->query_start(), static_cast<suseconds_t>(thd->query_start_sec_part())};
    if (!knows_seconds_only(thd)) return now;
    Field* const field = table->vers_start_field();
    ulong fraction = 0;
    timeval start = {field->get_timestamp(field->ptr, &fraction), 0};
    start.tv_usec = static_cast<suseconds_t>(fraction);
    if (!session.followed.add(session.statement, name, row)) return start;
    if (timercmp(&start, &now, <)) return now;
    const timeval least = {0, 1};
    timeval next;
    timeradd(&start, &least, &next);
    return next;
}

void put_time(Field* to, const timeval& moment) {
    to->store_timestamp(moment.tv_sec, static_cast<ulong>(moment.tv_usec));
}

/* All columns of a table are read and written. */
class AllColumns {
  public:
    explicit AllColumns(TABLE* table) : table_(table), read_(table->read_set), write_(table->write_set) {
        table->column_bitmaps_set_no_signal(&table->s->all_set, &table->s->all_set);
    }
    ~AllColumns() { table_->column_bitmaps_set_no_signal(read_, write_); }

  private:
    TABLE* const table_;
    MY_BITMAP *const read_, *const write_;
};

} // namespace

/*
  The constraints of a TABLE that was opened for cascades to this table; nullptr: there is none. It is locked for
  writing, and free for reuse (query_id 0): what the statement, or one within it, uses itself is not. Only who applies
  row events has the tables of a whole group open, and the server opens others for the first event alone: there a table
  that events are about will do, since one event's is used at a time.
*/
ConstraintKeeper* ConstraintKeeper::free_child(const std::string& core_name) const {
    THD* thd = open_.thd();
    const bool applies_events = has_tables_of_group(thd);
    ConstraintKeeper* second_best = nullptr;
    for (TABLE* table = thd->open_tables; table; table = table->next) {
        if (table->file->ht != plugin.hton) continue;
        auto* const handler = static_cast<ha_teak*>(table->file);
        ConstraintKeeper& theirs = handler->constraints();
        if (theirs.open_.name != core_name || !theirs.use_.held.by_server ||
            theirs.use_.held.rows_of_all != RowLock::Exclusive)
            continue;
        if (!table->query_id) return &theirs;
        if (applies_events && &theirs != this && !handler->inited) second_best = &theirs;
    }
    return second_best;
}

bool ConstraintKeeper::has_to_cascade(const uchar* record, const uchar* after) const {
    const auto& looks = looks_->at_children;
    return std::any_of(looks.begin(), looks.end(),
                       [&](const auto& look) { return look->key().cascades(!after) && look->has_say(record, after); });
}

int ConstraintKeeper::cascade(const uchar* record, const uchar* after, teak_bytes pk) {
    std::vector<CascadeStep>& chain = use_.held.session->cascade;
    /* The buffers are used again further down. */
    const std::vector<uchar> was(record, record + open_.table->s->reclength);
    std::vector<uchar> is;
    if (after) is.assign(after, after + open_.table->s->reclength);
    const uchar* const becomes = after ? is.data() : nullptr;
    /* A cascade that comes round to this handler may find others. */
    const std::shared_ptr<const Looks> looks = looks_;
    chain.push_back({open_.name, after != nullptr, nullptr, {}, {}});
    if (after) chain.back().row.assign(pk.data, pk.data + pk.len);
    int error = 0;
    bool follow = false;
    for (size_t i = 0; i < looks->at_children.size() && !error; i++) {
        ForeignLook& look = *looks->at_children[i];
        if (!look.has_say(was.data(), becomes)) continue;
        const bool cascades = look.key().cascades(!after);
        if (cascades) {
            chain.back().followed = &look.key();
            if (after) chain.back().unmet = unmet_beside(look, *looks, was.data(), becomes);
            error = cascade_to(look, was.data(), becomes);
        } else if (follow)
            error = refuse_children(look, was.data());
        follow |= cascades;
    }
    chain.pop_back();
    return error;
}

/*
  While children follow by one constraint the others that they have to the same parent. InnoDB brings the new keys of a
  row to its indexes one by one, and children follow before each: so one by the same index, or a later one, finds the
  old key and not the new one.
*/
std::vector<std::string> ConstraintKeeper::unmet_beside(const ForeignLook& look, const Looks& looks, const uchar* was,
                                                        const uchar* becomes) const {
    std::vector<std::string> names;
    for (const auto& other : looks.at_children)
        if (other.get() != &look && other->key().child == look.key().child && other->index() >= look.index() &&
            other->has_say(was, becomes))
            names.push_back(other->key().name());
    return names;
}

/* Whether this row is getting the new key of the parent from which it follows by the constraint: then that is there,
   written and locked by this transaction. */
bool ConstraintKeeper::takes_key_of_parent(const ForeignKey& key) const {
    const std::vector<CascadeStep>& chain = use_.held.session->cascade;
    return !chain.empty() && chain.back().updates && chain.back().followed && chain.back().followed->is(key);
}

/* The primary key of the parent from which this row follows, if the constraint does not find its new keys yet. */
teak_bytes ConstraintKeeper::unmet_parent(const ForeignKey& key) const {
    const std::vector<CascadeStep>& chain = use_.held.session->cascade;
    if (chain.empty() || chain.back().unmet.empty() || chain.back().table != key.parent) return {nullptr, 0};
    const CascadeStep& step = chain.back();
    const bool unmet = std::find(step.unmet.begin(), step.unmet.end(), key.name()) != step.unmet.end();
    return unmet ? bytes_of(step.row.data(), step.row.size()) : teak_bytes{nullptr, 0};
}

/* Whether the cascade may go on by this constraint. */
int ConstraintKeeper::check_chain(const ForeignKey& key, bool updated) {
    const std::vector<CascadeStep>& chain = use_.held.session->cascade;
    /* Rows of a table that is being updated are not updated again by what follows from that: as InnoDB has it. */
    if ((updated || key.on_delete != FK_OPTION_CASCADE) &&
        std::any_of(chain.begin(), chain.end(),
                    [&](const CascadeStep& step) { return step.updates && step.table == key.child; }))
        return break_constraint(key, HA_ERR_ROW_IS_REFERENCED);
    if (chain.size() < kMostDepth) return 0;
    push_warning_printf(open_.thd(), Sql_condition::WARN_LEVEL_WARN, HA_ERR_ROW_IS_REFERENCED,
                        "Teak: Cannot delete/update rows with cascading foreign key constraints that exceed max depth "
                        "of %u. Please drop extra constraints and try again",
                        static_cast<uint>(kMostDepth));
    return break_constraint(key, HA_ERR_FK_DEPTH_EXCEEDED);
}

int ConstraintKeeper::cascade_to(ForeignLook& look, const uchar* record, const uchar* after) {
    const ForeignKey& key = look.key();
    ConstraintKeeper* const child = free_child(key.child);
    if (!child || !look.is_open()) return break_constraint(key, HA_ERR_ROW_IS_REFERENCED);
    const size_t most = child->ends_cascades() ? kMostAhead : 1;
    std::vector<uchar> entry;
    std::vector<std::vector<uchar>> rows;
    int error = 0;
    while (!error) {
        const teak_status status = look.next(use_.session(), record, most, &entry, &rows);
        if (status == TEAK_NOT_FOUND) break;
        error = status == TEAK_OK ? check_chain(key, after) : open_.fail(status);
        for (size_t i = 0; i < rows.size() && !error; i++)
            error = tell_broken_below(*child, child->follow(key, open_.table, record, after, rows[i]));
    }
    /* reset() does not come to tables that the statement has not used, under LOCK TABLES. */
    child->open_.reset_cursors();
    return error;
}

/* Whether no row of another table follows when one of this is changed: then several may be found before the first of
   them is changed, and what was found of the others stays as it is. */
bool ConstraintKeeper::ends_cascades() const {
    const ForeignKeys& all = keys();
    return all.are_known() && std::none_of(all.of_others.begin(), all.of_others.end(), [](const ForeignKey& key) {
               return is_carried_out(key.on_delete) || is_carried_out(key.on_update);
           });
}

/* What `child` has met is told as this table's. */
int ConstraintKeeper::tell_broken_below(const ConstraintKeeper& child, int error) {
    if (error == HA_ERR_FOUND_DUPP_KEY) {
        duplicate_table_ = child.open_.table->s->table_name.str;
        duplicate_index_ = child.open_.table->key_info[child.file_.errkey].name.str;
        return HA_ERR_FOREIGN_DUPLICATE_KEY;
    }
    if (error == HA_ERR_FOREIGN_DUPLICATE_KEY) {
        duplicate_table_ = child.duplicate_table_;
        duplicate_index_ = child.duplicate_index_;
    }
    if (error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_FK_DEPTH_EXCEEDED)
        broken_ = child.broken_;
    return error;
}

/* Whether a change of the constraint's columns leaves history. */
bool ConstraintKeeper::is_versioned(const ForeignKey& key) const {
    return open_.end.exists() && std::any_of(key.columns.begin(), key.columns.end(), [&](const std::string& column) {
               const Field* const field = column_named(open_.table, column);
               return field && !field->vers_update_unversioned();
           });
}

/* The row in both records of the table goes, and is history from this moment on. */
int ConstraintKeeper::end_row(const timeval& moment) {
    TABLE* const table = open_.table;
    put_time(table->vers_end_field(), moment);
    const int error = file_.update_row(table->record[1], table->record[0]);
    /* One with this key has ended in the same moment: as the server does then. */
    return error == HA_ERR_FOUND_DUPP_KEY ? file_.delete_row(table->record[1]) : error;
}

/* The row was what the table's second record has, until this moment. If it came in the same one, it leaves nothing. */
int ConstraintKeeper::put_history(const timeval& moment) {
    TABLE* const table = open_.table;
    memcpy(table->record[0], table->record[1], table->s->reclength);
    Field *const start = table->vers_start_field(), *const end = table->vers_end_field();
    put_time(end, moment);
    if (start->cmp(start->ptr, end->ptr) == 0) return 0;
    if (table->vfield && table->update_virtual_fields(&file_, VCOL_UPDATE_FOR_READ)) return HA_ERR_INTERNAL_ERROR;
    const int error = file_.write_row(table->record[0]);
    return error == HA_ERR_FOUND_DUPP_KEY ? 0 : error;
}

/* Of a child: changes its row with this key as its parent, which was `before` and is `after` now (nullptr: which has
   gone), demands. */
int ConstraintKeeper::follow(const ForeignKey& key, TABLE* parent, const uchar* before, const uchar* after,
                             const std::vector<uchar>& row) {
    TABLE* const table = open_.table;
    const AllColumns all(table);
    int error = file_.read_held_row(table->record[0], bytes_of(row.data(), row.size()));
    /* It went by another way of the cascade. */
    if (error == HA_ERR_KEY_NOT_FOUND) return 0;
    if (error) return error;
    const bool goes = !after && key.on_delete == FK_OPTION_CASCADE;
    if (goes && !open_.end.exists()) return file_.delete_row(table->record[0]);
    memcpy(table->record[1], table->record[0], table->s->reclength);
    const bool leaves_history = goes || is_versioned(key);
    Session& session = *use_.held.session;
    const timeval moment =
        leaves_history ? moment_of(table, open_.name, session, bytes_of(row.data(), row.size())) : timeval();
    if (goes) return end_row(moment);
    const enum_fk_option rule = after ? key.on_update : key.on_delete;
    /* No value is cut, and nobody is warned. */
    const Check_level_instant_set silently(open_.thd(), CHECK_FIELD_IGNORE);
    const my_ptrdiff_t offset = after ? after - parent->record[0] : 0;
    for (size_t i = 0; i < key.columns.size(); i++) {
        Field* const mine = column_named(table, key.columns[i]);
        Field* const theirs = column_named(parent, key.parent_columns[i]);
        /* A generated column has no other value than its own; an ALTER can make one of a column with a rule. */
        if (!mine || !theirs || mine->vcol_info) return break_constraint(key, HA_ERR_ROW_IS_REFERENCED);
        if (rule == FK_OPTION_SET_NULL) {
            /* Builds from before 2026-11-26 let an ALTER make it NOT NULL. */
            if (!mine->real_maybe_null()) return break_constraint(key, HA_ERR_ROW_IS_REFERENCED);
            mine->set_null();
            continue;
        }
        /* What the parent keeps the child does, too, though it may write it in other letters. */
        if (theirs->is_null_in_record(before) == theirs->is_null_in_record(after) &&
            theirs->cmp_binary(theirs->ptr_in_record(before), theirs->ptr_in_record(after)) == 0)
            continue;
        theirs->move_field_offset(offset);
        const bool fits = copy_value(mine, theirs);
        theirs->move_field_offset(-offset);
        if (!fits) return break_constraint(key, HA_ERR_ROW_IS_REFERENCED);
    }
    if (leaves_history) put_time(table->vers_start_field(), moment);
    if (table->vfield && table->update_virtual_fields(&file_, VCOL_UPDATE_FOR_WRITE)) return HA_ERR_INTERNAL_ERROR;
    error = file_.update_row(table->record[1], table->record[0]);
    if (error == HA_ERR_RECORD_IS_THE_SAME) return 0;
    if (error || !leaves_history) return error;
    if (knows_seconds_only(open_.thd()) && open_.primary.changed(table->record[1], table->record[0])) {
        std::vector<uchar> key(open_.primary.max_size());
        const size_t size = open_.primary.encode(key.data(), table->record[0]);
        session.followed.add(session.statement, open_.name, bytes_of(key.data(), size));
    }
    return put_history(moment);
}

} // namespace teak
