/*
  The decoders of what the plugin keeps with a table, as functions of any bytes.

  An input is the metadata of a table (shim/table_meta.h) behind its length (2, little-endian), and behind it what is
  taken for a row of each of its layouts but the newest (shim/row_translation.h). All of it is taken for the statistics
  of a table (shim/statistics_digest.h) as well.
*/
#ifndef TEAK_TESTS_METADATA_DECODER_H
#define TEAK_TESTS_METADATA_DECODER_H

#include <stddef.h>
#include <stdint.h>
#include <string>
#include <utility>
#include <vector>

/* As libFuzzer calls it. Ends the process where something does not hold. */
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length);

/* What the plugin writes today, by name. */
std::vector<std::pair<std::string, std::vector<uint8_t>>> samples();

#endif
