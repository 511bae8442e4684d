#include "trace/hdf5/hdf5_handle.hpp"

#include <cstdio>
#include <string>
#include <type_traits>

#include <hdf5.h>

#include "base/error.hpp"

namespace longhaul::trace::hdf5 {
namespace {

static_assert(std::is_same_v<Id, hid_t> && std::is_same_v<herr_t, int>);

/// The deepest message first: it is the one that says what happened.
herr_t collect(unsigned depth, const H5E_error2_t* error, void* text) {
  constexpr unsigned kMessages = 3;
  if (depth < kMessages && error->desc != nullptr) {
    auto& all = *static_cast<std::string*>(text);
    all += (all.empty() ? "" : "; ") + std::string{error->desc};
  }
  return 0;
}

std::recursive_mutex& users_of_hdf5() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::string take_errors() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "no reason given" : text;
}

}  // namespace

std::int64_t check(std::int64_t returned, std::source_location where) {
  if (returned >= 0) return returned;
  throw Error{fmt::format("HDF5: {} [{}:{}]", take_errors(), where.file_name(), where.line())};
}

Silence::Silence() : lock_{users_of_hdf5()} {
  // Files are closed by their owners. What HDF5 closes at exit are leftovers of damaged files that
  // it failed to open, and it complains about them.
  [[maybe_unused]] static const herr_t kNoCleanUp = H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Silence::~Silence() { H5Eset_auto2(H5E_DEFAULT, printer_, data_); }

Handle::~Handle() {
  if (id_ == kNoId) return;
  if (close_(id_) < 0) fmt::print(stderr, "longhaul: HDF5 could not close: {}\n", take_errors());
}

void Handle::close(std::source_location where) { check(close_(std::exchange(id_, kNoId)), where); }

}  // namespace longhaul::trace::hdf5
