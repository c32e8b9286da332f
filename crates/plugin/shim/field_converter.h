/*
  Values made into those of other types, as a copying ALTER TABLE makes them: by the server's fields, from the record of
  one TABLE to that of the other, and so on the statement's thread.

  A value that does not fit is an error in strict sql_mode, and another value with a warning without it; notes are
  given in both.
*/
#ifndef TEAK_FIELD_CONVERTER_H
#define TEAK_FIELD_CONVERTER_H

#include "server.h"
#include <deque>
#include <string>

namespace teak {

class FieldConverter {
  public:
    /* False: a copy does more with this column than convert its values. */
    bool add(Field* before, Field* after);
    /* Whether nothing else depends on the values that change, but what convert() looks at. */
    bool is_enough(const TABLE* now, TABLE* altered) const;
    bool empty() const { return fields_.empty(); }
    bool converts(const Field* before) const;
    /* Whether some values may not be what they were. */
    bool may_change_values() const { return may_change_values_; }

    /* Converts the columns of one row, whose other columns are in the altered table's record, and looks at the table's
       checks. False: the statement has an error. */
    bool convert(TABLE* altered);
    /* The same without a word to the statement, which may meet a row more than once: the error is kept. */
    bool try_convert(TABLE* altered);
    bool has_refused() const { return refusal_ != 0; }
    /* Gives the statement the error that was kept. */
    void tell_refusal() const { my_message(refusal_, message_.c_str(), MYF(0)); }

  private:
    bool computes_from_these(TABLE* altered) const;
    void apply(TABLE* altered);

    std::deque<Copy_field> fields_;
    bool may_change_values_ = false;
    uint refusal_ = 0; /* an error's number */
    std::string message_;
};

} // namespace teak
#endif
