/*
  ALTER TABLE, as the server asks for it, and what it says of whole tables beside: inplace_alter.h and table_check.h do
  it.
*/
#include "ha_teak.h"
#include "column_change.h"
#include "inplace_alter.h"
#include "table_check.h"

using namespace teak;

bool ha_teak::can_convert_nocopy(const Field& field, const Column_definition& to) const {
    return converts_in_place(open_, field, to);
}

/* The entries of an index stay what they are if a column in it grows and is in it whole, or by as much as before. */
Compare_keys ha_teak::compare_key_parts(const Field& field, const Column_definition& to, const KEY_PART_INFO& part,
                                        const KEY_PART_INFO& new_part) const {
    if (field.is_equal(to) || !can_convert_nocopy(field, to))
        return handler::compare_key_parts(field, to, part, new_part);
    const bool was_whole = part.length == field.key_length(), is_whole = new_part.length == to.length;
    if (was_whole != is_whole) return Compare_keys::NotEqual;
    if (part.length == new_part.length) return Compare_keys::Equal;
    return is_whole ? Compare_keys::EqualButKeyPartLength : Compare_keys::NotEqual;
}

enum_alter_inplace_result ha_teak::check_if_supported_inplace_alter(TABLE* altered, Alter_inplace_info* info) {
    alter_.reset();
    return alter().check(altered, info);
}

/* What the server asked about; of a partitioned table there are ALTERs of which it does not ask the parts. */
InplaceAlter& ha_teak::alter() {
    if (!alter_) alter_ = std::make_unique<InplaceAlter>(*this, open_, use_, constraints_);
    return *alter_;
}

bool ha_teak::prepare_inplace_alter_table(TABLE* altered, Alter_inplace_info* info) {
    return alter().prepare(altered, info);
}

bool ha_teak::inplace_alter_table(TABLE* altered, Alter_inplace_info* info) { return alter().run(altered, info); }

bool ha_teak::commit_inplace_alter_table(TABLE* altered, Alter_inplace_info* info, bool commit) {
    return commit ? alter().commit(altered, info) : alter().give_up(info);
}

int ha_teak::check(THD* thd, HA_CHECK_OPT* options) {
    return TableCheck(*this, open_, use_, constraints_).check(thd, options);
}

int ha_teak::repair(THD* thd, HA_CHECK_OPT*) { return TableCheck(*this, open_, use_, constraints_).repair(thd); }

int ha_teak::optimize(THD* thd, HA_CHECK_OPT* options) {
    return TableCheck(*this, open_, use_, constraints_).optimize(thd, options);
}
