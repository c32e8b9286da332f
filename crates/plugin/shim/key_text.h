/*
  Keys as people read them: (5, 'abc').

  Locks are known by the bytes of keys, and only who has a table open knows what these mean. So whoever opens a table
  first describes its keys in a few bytes, which the core keeps with the open table and hands back with each lock that
  is listed. What they say is enough to show a key without the table: which indexes there are, and the types of their
  columns. It never leaves the process.

  Numbers, times and binary strings are shown as they are, TIMESTAMP in the time zone of who asks, members of an ENUM or
  SET as the number that they are, values of UUID and INET6 in hexadecimal. Of a text a key has the weights that its
  collation gives it, and not the text: shown is the text in small letters that has these weights, or the weights in
  hexadecimal.
*/
#ifndef TEAK_KEY_TEXT_H
#define TEAK_KEY_TEXT_H

#include "key_codec.h"
#include <memory>
#include <string>

namespace teak {

class OpenTable;
struct ShownPart;
class Alphabets;

/* Describes the keys of the table to the core, if nobody has done so who had it open with this definition. */
void describe_keys(const OpenTable& open);

/* teak_callbacks::key_text. */
void tell_key(const teak_sought* sought, teak_key_text* out);

/* What describe_keys has said of one tree of a table. */
class KeyText {
  public:
    /* `description`: empty if there is none. It is to outlive this. */
    KeyText(teak_bytes description, uint64_t tree);
    ~KeyText();
    /* Empty: that of no index, or not known. */
    const std::string& index() const { return index_; }
    /* `(5, 'abc')` of a range that is one key; else `>= (5) AND < (9)`, or `ALL`. What does not fit the description is
       `raw X'...'`. */
    std::string of(const teak_sought& range, THD* thd) const;

  private:
    /* Whether the bytes are a key, or the first parts of one. */
    bool show(teak_bytes key, THD* thd, std::string* to) const;
    std::string end(const char* at, const char* behind, teak_bytes key, THD* thd) const;

    bool known_ = false;
    bool has_row_ids_ = false;
    std::vector<ShownPart> parts_;
    std::vector<ShownPart> primary_;
    std::string index_;
    std::unique_ptr<Alphabets> alphabets_;
};

} // namespace teak
#endif
