#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace::hdf5 {

/// The type of a column in the file and in memory: little-endian integers; kinds are enumerations
/// over uint8 that carry their names.
[[nodiscard]] Handle column_type(ColumnType type);
/// Can a column of type `stored` be read as `wanted`, number by number? So it is where both are one
/// type, and where a file names fewer kinds than this program, each with the same number.
[[nodiscard]] bool is_readable_as(Id stored, Id wanted);
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

}  // namespace longhaul::trace::hdf5
