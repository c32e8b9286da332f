/*
  What a table has to be like for the rows of another one: the part of its definition that decides how rows and index
  entries are laid out, as text. It goes with an exported table, and is compared where that is imported.
*/
#ifndef TEAK_TABLE_DEFINITION_H
#define TEAK_TABLE_DEFINITION_H

#include "server.h"
#include <string>

namespace teak {

/* A line for the block size, for each column, and for each key, in the order of their names. */
std::string definition_text(const TABLE* table);

/* Where two of them differ, for the user; empty: nowhere. */
std::string definition_difference(const std::string& here, const std::string& in_file);

} // namespace teak
#endif
