/*
  Entries that indexes make of a table's records: of a row that was read, and of the same as it is to be written.
  Virtual columns among them are computed here, if the server has not.

  Has the memory of the entries of one row, for each index twice.
*/
#ifndef TEAK_ROW_ENTRIES_H
#define TEAK_ROW_ENTRIES_H

#include "open_table.h"
#include <memory>

namespace teak {

class RowEntries {
  public:
    enum class Image : uint8_t { Read, Written };

    explicit RowEntries(OpenTable& open) : open_(open) {}
    RowEntries(const RowEntries&) = delete;
    RowEntries& operator=(const RowEntries&) = delete;

    /* To be called when the table has been opened. */
    void make_room();
    /* Whether the server has computed the index's virtual columns in the records that it hands over. One who applies
       row events marks what they have, and takes values that another definition may have given; of a BLOB the server
       keeps one value for all records, which REPLACE of a row that leaves history takes for the old and the new one. */
    bool has_virtual_values(const IndexCodec& index) const;
    /* Computes the index's virtual columns in any record. The memory that a column has for a BLOB's value is that of
       one record; for one that was read there is another, which this puts back as it was. */
    void compute_virtual(const IndexCodec& index, uchar* record, Image image);
    /* The index's entry of a record, into memory that the next call for that index and image uses again. False: memory
       is out. */
    bool encode(uint index, const uchar* record, Image image, teak_bytes pk, teak_entry* out) {
        Buffers& own = buffers_[2 * index + (image == Image::Written)];
        return open_.indexes[index].encode(record, pk, &own.key, &own.value, out);
    }

    /* Room for those of all indexes. */
    std::vector<teak_entry> read, written;

  private:
    struct Buffers {
        Buffer key, value;
    };

    OpenTable& open_;
    std::unique_ptr<Buffers[]> buffers_; /* by index and image */
    std::vector<std::string> blobs_;     /* values of virtual columns, by the column's number */
};

} // namespace teak
#endif
