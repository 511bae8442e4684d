#include "trace/hdf5/hdf5_lists.hpp"

#include <hdf5.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/hdf5_checked.hpp"
#include "trace/hdf5/hdf5_types.hpp"

namespace longhaul::hdf5 {

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

}  // namespace longhaul::hdf5
