#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/hdf5/hdf5_types.hpp"

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
int H5Dclose(std::int64_t dataset);
}

namespace longhaul::testing {

/// An HDF5 file that is being spoilt.
class BrokenFile {
public:
  explicit BrokenFile(const std::filesystem::path& file)
      : file_{H5Fopen(file.c_str(), 1U /* read and write */, 0), H5Fclose} {}

  void remove(const char* name) { hdf5::check(H5Ldelete(file_.get(), name, 0)); }
  void remove_attribute(const char* name) { hdf5::check(H5Adelete(file_.get(), name)); }
  template <typename Value>
  void replace_attribute(const char* name, Value value) {
    remove_attribute(name);
    hdf5::write_attribute(file_.get(), name, value);
  }
  /// Puts one member in the place of another.
  void replace(const char* name, const char* by) {
    remove(name);
    hdf5::check(H5Lmove(file_.get(), by, file_.get(), name, 0, 0));
  }
  void replace_by_link(const char* name, const char* file, const char* object) {
    remove(name);
    hdf5::check(H5Lcreate_external(file, object, file_.get(), name, 0, 0));
  }
  /// A dataset that claims values it does not hold. `chunk` 0: in one piece.
  void replace_by_claim(const char* name, ColumnType type, std::vector<unsigned long long> dims,
                        unsigned long long chunk) {
    remove(name);
    const auto rank = static_cast<int>(dims.size());
    const hdf5::Handle space{H5Screate_simple(rank, dims.data(), nullptr), H5Sclose};
    const hdf5::Handle properties{H5Pcreate(H5P_CLS_DATASET_CREATE_ID_g), H5Pclose};
    if (chunk > 0) {
      const std::vector<unsigned long long> chunks(dims.size(), chunk);
      hdf5::check(H5Pset_chunk(properties.get(), rank, chunks.data()));
      hdf5::check(H5Pset_deflate(properties.get(), 1));
    }
    const hdf5::Handle kind = hdf5::column_type(type);
    const hdf5::Handle dataset{
        H5Dcreate2(file_.get(), name, kind.get(), space.get(), 0, properties.get(), 0), H5Dclose};
  }
  [[nodiscard]] std::int64_t get() const { return file_.get(); }

private:
  hdf5::Handle file_;
};

}  // namespace longhaul::testing
