#include <algorithm>
#include <bit>
#include <map>
#include <memory>

#include <hdf5.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/hdf5_file.hpp"

namespace longhaul::trace::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie");

template <ListedEnum Kind>
Handle kind_type() {
  Handle type{H5Tenum_create(H5T_STD_U8LE), H5Tclose};
  for (const Kind kind : every<Kind>()) {
    const auto value = static_cast<std::uint8_t>(kind);
    check(H5Tenum_insert(type.get(), longhaul::to_string(kind), &value));
  }
  return type;
}

void write_scalar(Id object, const char* name, Id type, const void* value) {
  const Handle space{H5Screate(H5S_SCALAR), H5Sclose};
  const Handle attribute{H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose};
  check(H5Awrite(attribute.get(), type, value));
}

/// Opens a scalar attribute; throws Error where there is none.
Handle open_scalar(Id object, const char* name) {
  if (check(H5Aexists(object, name)) == 0) fail("there is no attribute {}", name);
  Handle attribute{H5Aopen(object, name, H5P_DEFAULT), H5Aclose};
  const Handle space{H5Aget_space(attribute.get()), H5Sclose};
  if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR)
    fail("attribute {} is no single value", name);
  return attribute;
}

void read_number(Id object, const char* name, Id type, void* value) {
  const Handle attribute = open_scalar(object, name);
  const Handle stored{H5Aget_type(attribute.get()), H5Tclose};
  if (check(H5Tequal(stored.get(), type)) == 0)
    fail("attribute {} has another type than it should", name);
  check(H5Aread(attribute.get(), type, value));
}

}  // namespace

Handle column_type(ColumnType type) {
  switch (type) {
    case ColumnType::int32:
    case ColumnType::level:
    case ColumnType::outcome: return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case ColumnType::int64: return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
    case ColumnType::row_kind: return kind_type<RowKind>();
    case ColumnType::row_leg: return kind_type<MessageLeg>();
    case ColumnType::bound_kind: return kind_type<BoundKind>();
  }
  fail("column type {} is unknown", static_cast<int>(type));
}

std::map<std::string, std::uint8_t> members_of(Id enumeration) {
  std::map<std::string, std::uint8_t> numbers;
  const int members = H5Tget_nmembers(enumeration);
  for (int i = 0; i < members; ++i) {
    const std::unique_ptr<char, decltype(&H5free_memory)> name{
        H5Tget_member_name(enumeration, static_cast<unsigned>(i)), &H5free_memory};
    if (name == nullptr) fail("a kind has no name");
    check(H5Tget_member_value(enumeration, static_cast<unsigned>(i), &numbers[name.get()]));
  }
  return numbers;
}

bool is_readable_as(Id stored, Id wanted, NewKinds new_kinds) {
  if (check(H5Tequal(stored, wanted)) != 0) return true;
  if (H5Tget_class(stored) != H5T_ENUM || H5Tget_class(wanted) != H5T_ENUM) return false;
  if (H5Tget_size(stored) != 1 || H5Tget_size(wanted) != 1) return false;
  const auto theirs = members_of(stored);
  const auto ours = members_of(wanted);  // numbers from 0 on
  return !theirs.empty() && std::ranges::all_of(theirs, [&](const auto& kind) {
    const auto known = ours.find(kind.first);
    if (known != ours.end()) return known->second == kind.second;
    return new_kinds == NewKinds::allowed && kind.second >= ours.size();
  });
}

Handle string_type(std::size_t bytes) {
  Handle type{H5Tcopy(H5T_C_S1), H5Tclose};
  check(H5Tset_size(type.get(), std::max<std::size_t>(bytes, 1)));
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

void write_attribute(Id object, const char* name, const std::string& text) {
  write_scalar(object, name, string_type(text.size()).get(), text.c_str());
}

void write_attribute(Id object, const char* name, std::int64_t value) {
  write_scalar(object, name, H5T_STD_I64LE, &value);
}

void write_attribute(Id object, const char* name, double value) {
  write_scalar(object, name, H5T_IEEE_F64LE, &value);
}

std::string read_text_attribute(Id object, const char* name, std::size_t longest_bytes) {
  const Handle attribute = open_scalar(object, name);
  const Handle stored{H5Aget_type(attribute.get()), H5Tclose};
  // Text of variable length is refused: HDF5 would trust the lengths that the file states.
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) != 0)
    fail("attribute {} is no text of fixed length", name);
  const std::size_t size = H5Tget_size(stored.get());
  if (size > longest_bytes) fail("attribute {} claims {} bytes", name, size);
  std::string text(size, '\0');
  check(H5Aread(attribute.get(), stored.get(), text.data()));
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

std::int64_t read_int_attribute(Id object, const char* name) {
  std::int64_t value = 0;
  read_number(object, name, H5T_STD_I64LE, &value);
  return value;
}

double read_real_attribute(Id object, const char* name) {
  double value = 0;
  read_number(object, name, H5T_IEEE_F64LE, &value);
  return value;
}

void write_list(Id group, const char* name, const std::vector<std::int64_t>& values) {
  const hsize_t length = values.size();
  const Handle type = column_type(ColumnType::int64);
  const Handle space{H5Screate_simple(1, &length, nullptr), H5Sclose};
  Handle dataset{
      H5Dcreate2(group, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose};
  if (!values.empty())
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  dataset.close();
}

std::vector<std::int64_t> read_list(Id group, const char* name, std::uint64_t file_bytes) {
  const Handle dataset = open_dataset(group, name);
  const Handle type = column_type(ColumnType::int64);
  const Handle stored{H5Dget_type(dataset.get()), H5Tclose};
  if (check(H5Tequal(stored.get(), type.get())) == 0) fail("{} has another type", name);
  std::vector<std::int64_t> values(to_size(checked_length(dataset.get(), file_bytes)));
  if (!values.empty())
    check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  return values;
}

}  // namespace longhaul::trace::hdf5
