#include "field_converter.h"
#include "layout_maker.h"
#include "row_codec.h"
#include <algorithm>

namespace teak {
namespace {

bool holds_all_integers(const Field* before, const Field* after) {
    const uint32 now = before->pack_length(), then = after->pack_length();
    const bool was_unsigned = before->flags & UNSIGNED_FLAG, is_unsigned = after->flags & UNSIGNED_FLAG;
    return was_unsigned == is_unsigned ? now <= then : was_unsigned && now < then;
}

/* Whether each value of one is the same in the other, without a word. */
bool holds_all(const Field* before, const Field* after) {
    if (before->real_maybe_null() && !after->real_maybe_null()) return false;
    if (is_integer(before->type()) && is_integer(after->type())) return holds_all_integers(before, after);
    if (before->type_handler() != after->type_handler() || !keeps_bytes(before->charset(), after->charset()))
        return false;
    const enum_field_types type = before->real_type();
    return (type == MYSQL_TYPE_VARCHAR || type == MYSQL_TYPE_STRING || type == MYSQL_TYPE_BLOB) &&
           before->pack_length() <= after->pack_length() && before->char_length() <= after->char_length();
}

/* Whether the server assigns such values at all: Field::check_assignability_from, which has an error or a warning to
   tell besides, rows or none. */
bool is_assignable(const Field* before, const Field* after) {
    Type_handler_hybrid_field_type both(after->type_handler()->type_handler_for_item_field());
    return !both.aggregate_for_result(before->type_handler()->type_handler_for_item_field());
}

/* Keeps what conversions say from the statement, but for the first error. */
class Silence : public Internal_error_handler {
  public:
    Silence(uint* error, std::string* message) : error_(error), message_(message) {}
    bool handle_condition(THD*, uint error, const char*, Sql_condition::enum_warning_level* level, const char* message,
                          Sql_condition**) override {
        if (*level == Sql_condition::WARN_LEVEL_ERROR && !*error_) {
            *error_ = error;
            *message_ = message;
        }
        return true;
    }

  private:
    uint* const error_;
    std::string* const message_;
};

} // namespace

bool FieldConverter::add(Field* before, Field* after) {
    if (before->vcol_info || after->vcol_info) return false;
    if (!is_assignable(before, after)) return false;
    /* Rows are in the partitions that values chose. */
    if (before->flags & FIELD_IN_PART_FUNC_FLAG) return false;
    /* Of NULL a copy makes the time of the statement. */
    if (before->real_maybe_null() && !after->real_maybe_null() && after->type() == MYSQL_TYPE_TIMESTAMP) return false;
    /* It gives new numbers to rows of a column that begins to count, and the counter has to fit. */
    if (after->unireg_check == Field::NEXT_NUMBER &&
        (before->unireg_check != Field::NEXT_NUMBER || !is_integer(before->type()) || !is_integer(after->type()) ||
         before->get_max_int_value() > after->get_max_int_value()))
        return false;
    fields_.emplace_back();
    fields_.back().set(after, before, false);
    may_change_values_ |= !holds_all(before, after);
    return true;
}

bool FieldConverter::is_enough(const TABLE* now, TABLE* altered) const {
    if (fields_.empty()) return true;
    auto computes = [](const TABLE* table) {
        for (Field** field = table->field; *field; field++)
            if ((*field)->vcol_info && ((*field)->stored_in_db() || is_in_index(table, *field))) return true;
        return false;
    };
    if (computes(now) || computes(altered) || computes_from_these(altered)) return false;
    return !altered->check_constraints || !altered->vfield;
}

/* Whether a virtual column is computed from one of these, itself or through another: a copy computes it, and tells of
   what it cannot compute. */
bool FieldConverter::computes_from_these(TABLE* altered) const {
    MY_BITMAP* const before = altered->read_set;
    altered->read_set = &altered->tmp_set;
    bitmap_clear_all(altered->read_set);
    for (Field** field = altered->field; *field; field++)
        if ((*field)->vcol_info) (*field)->vcol_info->expr->walk(&Item::register_field_in_read_map, true, altered);
    altered->read_set = before;
    return std::any_of(fields_.begin(), fields_.end(), [&](const Copy_field& field) {
        return bitmap_is_set(&altered->tmp_set, field.to_field->field_index);
    });
}

bool FieldConverter::converts(const Field* before) const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const Copy_field& field) { return field.from_field->field_index == before->field_index; });
}

void FieldConverter::apply(TABLE* altered) {
    THD* thd = altered->in_use;
    const Check_level_instant_set level(thd, CHECK_FIELD_WARN);
    const Abort_on_warning_instant_set strict(thd, thd->is_strict_mode());
    for (Copy_field& field : fields_)
        field.do_copy(&field);
    if (!thd->is_error()) altered->verify_constraints(false);
    /* So errors that were warnings end a statement; this one has others to tell. */
    if (thd->killed == KILL_BAD_DATA) thd->reset_killed();
}

bool FieldConverter::convert(TABLE* altered) {
    /* The row's number in what is said of it; the rows of further partitions are numbered on. */
    altered->in_use->get_stmt_da()->inc_current_row_for_warning();
    apply(altered);
    return !altered->in_use->is_error();
}

bool FieldConverter::try_convert(TABLE* altered) {
    Silence silence(&refusal_, &message_);
    altered->in_use->push_internal_handler(&silence);
    apply(altered);
    altered->in_use->pop_internal_handler();
    return !has_refused();
}

} // namespace teak
