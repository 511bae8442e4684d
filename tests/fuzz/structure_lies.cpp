#include <string>
#include <vector>

#include <hdf5.h>  // the one place outside src/trace: only HDF5 itself writes files that lie well

#include "base/error.hpp"
#include "fuzz/lies.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::fuzz {
namespace {

using trace::hdf5::check;
using trace::hdf5::Handle;

constexpr std::size_t kMostWritten = std::size_t{1} << 16;  // bytes that a dataset really holds

std::string member(Input& input) {
  std::string name = input.below(2) == 0 ? "measured" : "predicted";
  const auto columns = trace::timeline_columns();
  const auto tables = trace::name_columns();
  const std::size_t which = input.below(columns.size() + tables.size() + 1);
  if (which < columns.size()) return name + '/' + columns[which].name;
  if (which < columns.size() + tables.size())
    return name + '/' + tables[which - columns.size()].name;
  return name;
}

/// The kinds of rows of a program that has one more.
trace::hdf5::Handle newer_kinds() {
  trace::hdf5::Handle type = trace::hdf5::column_type(trace::ColumnType::row_kind);
  const std::uint8_t number = kCountOf<RowKind>;
  check(H5Tenum_insert(type.get(), "newer", &number));
  return type;
}

trace::hdf5::Handle type_of(Input& input) {
  switch (input.below(13)) {
    case 0: return trace::hdf5::column_type(trace::ColumnType::int32);
    case 1: return trace::hdf5::column_type(trace::ColumnType::int64);
    case 2: return trace::hdf5::column_type(trace::ColumnType::row_kind);
    case 3: return trace::hdf5::column_type(trace::ColumnType::row_leg);
    case 4: return trace::hdf5::column_type(trace::ColumnType::bound_kind);
    case 5: return {H5Tcopy(H5T_STD_I64BE), H5Tclose};
    case 6: return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
    case 7: return trace::hdf5::string_type(static_cast<std::size_t>(input.number()) % (1U << 20));
    case 8: return trace::hdf5::string_type(H5T_VARIABLE);
    case 9: return {H5Tvlen_create(H5T_STD_I32LE), H5Tclose};
    case 10: return {H5Tcreate(H5T_OPAQUE, 1 + input.below(64)), H5Tclose};
    case 12: return newer_kinds();
    default: {
      const hsize_t length = 1 + input.below(4);
      return {H5Tarray_create2(H5T_STD_I32LE, 1, &length), H5Tclose};
    }
  }
}

trace::hdf5::Handle space_of(Input& input) {
  const std::size_t dimensions = input.below(5);
  if (dimensions == 3) return {H5Screate(H5S_SCALAR), H5Sclose};
  if (dimensions == 4) return {H5Screate(H5S_NULL), H5Sclose};
  std::vector<hsize_t> lengths(dimensions == 2 ? 2 : 1);
  for (hsize_t& length : lengths) length = static_cast<hsize_t>(input.number());
  const std::vector<hsize_t> unlimited(lengths.size(), H5S_UNLIMITED);
  const bool may_grow = input.below(2) == 1;
  return {H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(),
                           may_grow ? unlimited.data() : nullptr),
          H5Sclose};
}

void add_filter(trace::hdf5::Id properties, Input& input) {
  switch (input.below(6)) {
    case 0:
      trace::hdf5::check(H5Pset_deflate(properties, static_cast<unsigned>(input.below(10))));
      break;
    case 1: trace::hdf5::check(H5Pset_shuffle(properties)); break;
    case 2: trace::hdf5::check(H5Pset_fletcher32(properties)); break;
    case 3: {
      // By itself: HDF5 crashes when it packs with the same one twice.
      trace::hdf5::check(H5Premove_filter(properties, H5Z_FILTER_ALL));
      trace::hdf5::check(H5Pset_scaleoffset(properties, H5Z_SO_INT, 0));
      break;
    }
    default: break;
  }
}

trace::hdf5::Handle storage_of(Input& input) {
  trace::hdf5::Handle properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  switch (input.below(8)) {
    case 0: trace::hdf5::check(H5Pset_layout(properties.get(), H5D_COMPACT)); break;
    case 1:
      trace::hdf5::check(H5Pset_external(properties.get(), "/etc/hostname", 0, H5F_UNLIMITED));
      break;
    case 2: {
      const trace::hdf5::Handle space{H5Screate(H5S_SCALAR), H5Sclose};
      trace::hdf5::check(
          H5Pset_virtual(properties.get(), space.get(), "other.h5", "/x", space.get()));
      break;
    }
    case 3: break;
    default: {
      const auto chunk = static_cast<hsize_t>(input.number());
      trace::hdf5::check(H5Pset_chunk(properties.get(), 1, &chunk));
      for (std::size_t filters = input.below(4); filters > 0; --filters)
        add_filter(properties.get(), input);
    }
  }
  return properties;
}

/// Writes the first values of a dataset, where it is a list; the rest is only claimed.
void write_some(trace::hdf5::Id dataset, Input& input) {
  const trace::hdf5::Handle type{H5Dget_type(dataset), H5Tclose};
  const std::size_t size = H5Tget_size(type.get());
  const trace::hdf5::Handle space{H5Dget_space(dataset), H5Sclose};
  const hssize_t points = H5Sget_simple_extent_npoints(space.get());
  if (H5Tdetect_class(type.get(), H5T_VLEN) != 0 || H5Tis_variable_str(type.get()) != 0) return;
  if (points < 1 || H5Sget_simple_extent_ndims(space.get()) != 1) return;
  const hsize_t first = 0;
  const hsize_t count =
      std::min<hsize_t>({static_cast<hsize_t>(points), 1 + input.below(256) * input.below(256),
                         std::max<std::size_t>(kMostWritten / size, 1)});
  const trace::hdf5::Handle memory{H5Screate_simple(1, &count, nullptr), H5Sclose};
  trace::hdf5::check(
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr));
  const std::string values(static_cast<std::size_t>(count) * size, static_cast<char>(input.byte()));
  trace::hdf5::check(
      H5Dwrite(dataset, type.get(), memory.get(), space.get(), H5P_DEFAULT, values.data()));
}

void remove(trace::hdf5::Id file, const std::string& name) {
  trace::hdf5::check(H5Ldelete(file, name.c_str(), H5P_DEFAULT));
}

void replace_dataset(trace::hdf5::Id file, Input& input) {
  const std::string name = member(input);
  const trace::hdf5::Handle type = type_of(input);
  const trace::hdf5::Handle space = space_of(input);
  const trace::hdf5::Handle storage = storage_of(input);
  remove(file, name);
  const trace::hdf5::Handle dataset{H5Dcreate2(file, name.c_str(), type.get(), space.get(),
                                               H5P_DEFAULT, storage.get(), H5P_DEFAULT),
                                    H5Dclose};
  write_some(dataset.get(), input);
}

/// Claims more, or fewer, values of a dataset that can grow.
void resize(trace::hdf5::Id file, Input& input) {
  const std::string name = member(input);
  const auto length = static_cast<hsize_t>(input.number());
  const trace::hdf5::Handle dataset{H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose};
  trace::hdf5::check(H5Dset_extent(dataset.get(), &length));
}

void replace_link(trace::hdf5::Id file, Input& input) {
  const std::string name = member(input);
  const std::string other = member(input);
  const std::size_t sort = input.below(6);
  remove(file, name);
  switch (sort) {
    case 0:
      trace::hdf5::check(H5Lcreate_soft(("/" + other).c_str(), file, name.c_str(), 0, 0));
      break;
    case 1:
      trace::hdf5::check(H5Lcreate_soft(("/" + name).c_str(), file, name.c_str(), 0, 0));
      break;
    case 2:
      trace::hdf5::check(H5Lcreate_external("other.h5", "/x", file, name.c_str(), 0, 0));
      break;
    case 3: trace::hdf5::check(H5Lcreate_hard(file, "/", file, name.c_str(), 0, 0)); break;
    case 4: {
      const trace::hdf5::Handle group{H5Gcreate2(file, name.c_str(), 0, 0, 0), H5Gclose};
      break;
    }
    default:
      trace::hdf5::check(H5Lcreate_hard(file, other.c_str(), file, name.c_str(), 0, 0));
      break;
  }
}

void replace_attribute(trace::hdf5::Id file, Input& input) {
  constexpr std::array kNames{
      "schema_version", "creator",     "git_commit", "command_line",
      "scenario",       "environment", "time_scale", "activation_budget_bytes",
      "ranks"};
  const char* const name = kNames[input.below(kNames.size())];
  const std::size_t sort = input.below(5);
  if (trace::hdf5::check(H5Aexists(file, name)) > 0) trace::hdf5::check(H5Adelete(file, name));
  switch (sort) {
    case 0: return;
    case 1: return trace::hdf5::write_attribute(file, name, input.number());
    case 2:
      return trace::hdf5::write_attribute(file, name, static_cast<double>(input.number()) / 3);
    case 3: return trace::hdf5::write_attribute(file, name, std::string{input.text(64)});
    default: {
      const trace::hdf5::Handle type = type_of(input);
      const trace::hdf5::Handle space = space_of(input);
      const auto points = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
      if (points > kMostWritten / H5Tget_size(type.get())) return;  // attributes hold their values
      const trace::hdf5::Handle attribute{
          H5Acreate2(file, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
    }
  }
}

}  // namespace

void lie_in_structure(trace::hdf5::Id file, Input& input) {
  try {
    switch (input.below(4)) {
      case 0: return replace_dataset(file, input);
      case 1: return resize(file, input);
      case 2: return replace_link(file, input);
      default: return replace_attribute(file, input);
    }
  } catch (const Error&) {
    // HDF5 does not write such a thing: there is no such file.
  }
}

}  // namespace longhaul::fuzz
