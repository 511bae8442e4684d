#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace::hdf5 {

/// How a new file is written: piece by piece, or put together in memory and at once.
enum class Writing { piecewise, at_once };
/// Creates `file` with what `fill` puts into it, complete or not at all. Throws Error if it exists
/// or cannot be written.
void write_new_file(const std::filesystem::path& file, Writing writing,
                    const std::function<void(Id file)>& fill);
/// For reading. Throws Error on anything but a regular HDF5 file.
[[nodiscard]] Handle open_file(const std::filesystem::path& file);
[[nodiscard]] std::uint64_t size_of_file(const std::filesystem::path& file);

/// The type of a column in the file and in memory: little-endian integers; kinds are enumerations
/// over uint8 that carry their names.
[[nodiscard]] Handle column_type(ColumnType type);
/// May a file name kinds that this program does not know?
enum class NewKinds { refused, allowed };
/// Can a column of type `stored` be read as `wanted`, number by number? So it is where both are one
/// type, and where those kinds that both know have the same numbers, and all others new ones.
[[nodiscard]] bool is_readable_as(Id stored, Id wanted, NewKinds new_kinds = NewKinds::refused);
/// Names and numbers of an enumeration over uint8.
[[nodiscard]] std::map<std::string, std::uint8_t> members_of(Id enumeration);
/// UTF-8 of a fixed length, padded with zeros. At least one byte: HDF5 knows no empty strings.
[[nodiscard]] Handle string_type(std::size_t bytes);

/// Attributes of an open object. The readers throw Error on another type or shape.
void write_attribute(Id object, const char* name, const std::string& text);
void write_attribute(Id object, const char* name, std::int64_t value);
void write_attribute(Id object, const char* name, double value);
[[nodiscard]] std::string read_text_attribute(Id object, const char* name,
                                              std::size_t longest_bytes);
[[nodiscard]] std::int64_t read_int_attribute(Id object, const char* name);
[[nodiscard]] double read_real_attribute(Id object, const char* name);

/// A short list of numbers: a dataset of its own.
void write_list(Id group, const char* name, const std::vector<std::int64_t>& values);
/// Throws Error where there is none. Takes no more memory than the file's bytes account for.
[[nodiscard]] std::vector<std::int64_t> read_list(Id group, const char* name,
                                                  std::uint64_t file_bytes);

// Reading of foreign files: every function throws Error on contents that make HDF5 open other
// files, load plugins, or take memory that the bytes of the file cannot account for.

[[nodiscard]] bool has_member(Id group, const char* name);
/// Opens a member that lies in this very file: links out of it are not followed.
[[nodiscard]] Handle open_member(Id group, const char* name);
[[nodiscard]] Handle open_dataset(Id group, const char* name);
/// Does a dataset have to be stored as long as it is, or may parts of it hold its fill value?
enum class Stored { all_of_it, where_it_differs };
/// Length of a one-dimensional dataset that the file is large enough to hold; of one that need not
/// be stored any length, which the caller is to hold against another dataset's.
[[nodiscard]] std::uint64_t checked_length(Id dataset, std::uint64_t file_bytes,
                                           Stored stored = Stored::all_of_it);
/// Memory of one of its chunks, in bytes; 0 where there are none.
[[nodiscard]] std::size_t chunk_bytes(Id dataset);
/// A table of names.
[[nodiscard]] std::vector<std::string> read_names(Id group, const char* name,
                                                  std::uint64_t file_bytes);

}  // namespace longhaul::trace::hdf5
