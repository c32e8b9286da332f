/*
  The latest error about a foreign key, of whatever connection: a part of SHOW ENGINE TEAK STATUS, as of InnoDB's.
*/
#ifndef TEAK_FOREIGN_ERROR_H
#define TEAK_FOREIGN_ERROR_H

#include "foreign_key.h"

namespace teak {

/* A constraint refused a row: `values` are those of its columns, for people. */
void note_broken_constraint(THD* thd, const ForeignKey& key, bool lacks_parent, const std::string& values);
/* A constraint was not made. */
void note_refused_constraint(THD* thd, const std::string& why);
/* The part of the status, empty if there was none. */
std::string latest_foreign_error();

/* A column's value for people, in quotes. */
std::string readable_value(Field* field);

} // namespace teak
#endif
