#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/columns.hpp"

// hdf5.h stays inside src/trace: these are the few calls that break a file on purpose.
extern "C" {
std::int64_t H5Fopen(const char* name, unsigned flags, std::int64_t access);
int H5Fclose(std::int64_t file);
int H5Ldelete(std::int64_t location, const char* name, std::int64_t access);
int H5Lmove(std::int64_t from, const char* old_name, std::int64_t to, const char* new_name,
            std::int64_t create, std::int64_t access);
int H5Lcreate_external(const char* file, const char* object, std::int64_t location,
                       const char* name, std::int64_t create, std::int64_t access);
int H5Adelete(std::int64_t object, const char* name);
std::int64_t H5Screate_simple(int rank, const unsigned long long* dims,
                              const unsigned long long* most);
int H5Sclose(std::int64_t space);
extern std::int64_t H5P_CLS_DATASET_CREATE_ID_g;  // NOLINT: HDF5's name
std::int64_t H5Pcreate(std::int64_t property_class);
int H5Pset_chunk(std::int64_t properties, int rank, const unsigned long long* dims);
int H5Pset_deflate(std::int64_t properties, unsigned level);
int H5Pclose(std::int64_t properties);
std::int64_t H5Dcreate2(std::int64_t location, const char* name, std::int64_t type,
                        std::int64_t space, std::int64_t links, std::int64_t properties,
                        std::int64_t access);
std::int64_t H5Dopen2(std::int64_t location, const char* name, std::int64_t access);
std::int64_t H5Dget_space(std::int64_t dataset);
std::int64_t H5Dget_type(std::int64_t dataset);
int H5Dread(std::int64_t dataset, std::int64_t type, std::int64_t memory, std::int64_t space,
            std::int64_t transfer, void* values);
int H5Dwrite(std::int64_t dataset, std::int64_t type, std::int64_t memory, std::int64_t space,
             std::int64_t transfer, const void* values);
int H5Dclose(std::int64_t dataset);
unsigned long long H5Dget_storage_size(std::int64_t dataset);
std::int64_t H5Sget_simple_extent_npoints(std::int64_t space);
extern std::int64_t H5T_STD_U8LE_g;  // NOLINT: HDF5's name
std::int64_t H5Tenum_create(std::int64_t base);
int H5Tenum_insert(std::int64_t type, const char* name, const void* value);
int H5Tclose(std::int64_t type);
}

namespace longhaul::testing {

/// What a dataset takes of its file, without its name and type.
inline std::uint64_t stored_bytes(std::int64_t file, const char* dataset) {
  const trace::hdf5::Handle opened{H5Dopen2(file, dataset, 0), H5Dclose};
  return H5Dget_storage_size(opened.get());
}

/// An HDF5 file that is being spoilt.
class BrokenFile {
public:
  explicit BrokenFile(const std::filesystem::path& file)
      : file_{H5Fopen(file.c_str(), 1U /* read and write */, 0), H5Fclose} {}

  void remove(const char* name) { trace::hdf5::check(H5Ldelete(file_.get(), name, 0)); }
  void remove_attribute(const char* name) { trace::hdf5::check(H5Adelete(file_.get(), name)); }
  template <typename Value>
  void replace_attribute(const char* name, Value value) {
    remove_attribute(name);
    trace::hdf5::write_attribute(file_.get(), name, value);
  }
  /// Puts one member in the place of another.
  void replace(const char* name, const char* by) {
    remove(name);
    trace::hdf5::check(H5Lmove(file_.get(), by, file_.get(), name, 0, 0));
  }
  /// Takes everything away that later schemas brought, from each group that is there.
  void make_schema_2() {
    for (const std::string group : {"measured/", "predicted/"}) {
      if (!trace::hdf5::has_member(file_.get(), group.substr(0, group.size() - 1).c_str()))
        continue;
      for (const trace::Column& column : trace::timeline_columns())
        if (trace::may_be_empty(column) &&
            trace::hdf5::has_member(file_.get(), (group + column.name).c_str()))
          remove((group + column.name).c_str());
      for (const trace::NameColumn& table : trace::name_columns())
        if (table.since == 3 && trace::hdf5::has_member(file_.get(), (group + table.name).c_str()))
          remove((group + table.name).c_str());
    }
    replace_attribute("schema_version", std::int64_t{2});
  }
  void replace_by_link(const char* name, const char* file, const char* object) {
    remove(name);
    trace::hdf5::check(H5Lcreate_external(file, object, file_.get(), name, 0, 0));
  }
  /// A dataset that claims values it does not hold. `chunk` 0: in one piece.
  void replace_by_claim(const char* name, trace::ColumnType type,
                        std::vector<unsigned long long> dims, unsigned long long chunk) {
    remove(name);
    const auto rank = static_cast<int>(dims.size());
    const trace::hdf5::Handle space{H5Screate_simple(rank, dims.data(), nullptr), H5Sclose};
    const trace::hdf5::Handle properties{H5Pcreate(H5P_CLS_DATASET_CREATE_ID_g), H5Pclose};
    if (chunk > 0) {
      const std::vector<unsigned long long> chunks(dims.size(), chunk);
      trace::hdf5::check(H5Pset_chunk(properties.get(), rank, chunks.data()));
      trace::hdf5::check(H5Pset_deflate(properties.get(), 1));
    }
    const trace::hdf5::Handle kind = trace::hdf5::column_type(type);
    const trace::hdf5::Handle dataset{
        H5Dcreate2(file_.get(), name, kind.get(), space.get(), 0, properties.get(), 0), H5Dclose};
  }
  /// Keeps the numbers of a column of kinds, under other names for them.
  void rename_kinds(const char* name,
                    const std::vector<std::pair<const char*, std::uint8_t>>& kinds) {
    std::vector<std::uint8_t> numbers;
    {
      const trace::hdf5::Handle before{H5Dopen2(file_.get(), name, 0), H5Dclose};
      const trace::hdf5::Handle space{H5Dget_space(before.get()), H5Sclose};
      const trace::hdf5::Handle stored{H5Dget_type(before.get()), H5Tclose};
      numbers.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
      trace::hdf5::check(H5Dread(before.get(), stored.get(), 0, 0, 0, numbers.data()));
    }
    replace_kinds(name, kinds, numbers);
  }
  /// A column of kinds with these names and numbers.
  void replace_kinds(const char* name,
                     const std::vector<std::pair<const char*, std::uint8_t>>& kinds,
                     const std::vector<std::uint8_t>& numbers) {
    const trace::hdf5::Handle type{H5Tenum_create(H5T_STD_U8LE_g), H5Tclose};
    for (const auto& [kind, number] : kinds)
      trace::hdf5::check(H5Tenum_insert(type.get(), kind, &number));
    remove(name);
    const unsigned long long length = numbers.size();
    const trace::hdf5::Handle space{H5Screate_simple(1, &length, nullptr), H5Sclose};
    const trace::hdf5::Handle after{H5Dcreate2(file_.get(), name, type.get(), space.get(), 0, 0, 0),
                                    H5Dclose};
    trace::hdf5::check(H5Dwrite(after.get(), type.get(), 0, 0, 0, numbers.data()));
  }
  [[nodiscard]] std::int64_t get() const { return file_.get(); }

private:
  trace::hdf5::Handle file_;
};

}  // namespace longhaul::testing
