#include "trace/hdf5/hdf5_handle.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include <hdf5.h>

#include "base/error.hpp"

namespace longhaul::trace::hdf5 {
namespace {

static_assert(std::is_same_v<Id, hid_t> && std::is_same_v<herr_t, int>);

/// The deepest error: it says what happened. Those above it say who asked.
struct Deepest {
  hid_t what = -1;
  int of_system = 0;  ///< errno; 0: the system has no part in it
};

/// HDF5 has errno in the text alone.
int errno_in(const char* text) {
  constexpr const char* kBefore = "errno = ";
  const char* const found = text != nullptr ? std::strstr(text, kBefore) : nullptr;
  return found != nullptr ? std::atoi(found + std::strlen(kBefore)) : 0;
}

herr_t collect(unsigned depth, const H5E_error2_t* error, void* into) {
  auto& deepest = *static_cast<Deepest*>(into);
  if (depth == 0) deepest.what = error->min_num;
  if (deepest.of_system == 0) deepest.of_system = errno_in(error->desc);
  return 0;
}

std::recursive_mutex& users_of_hdf5() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// Our words for HDF5's: its own name its functions and the places in its source where they ended.
std::string words_of(const Deepest& deepest) {
  if (deepest.of_system != 0) return std::strerror(deepest.of_system);
  if (deepest.what == H5E_NOTHDF5) return "it is no HDF5 file";
  if (deepest.what == H5E_TRUNCATED) return "it is cut short";
  if (deepest.what == H5E_CANTOPENFILE || deepest.what == H5E_OPENERROR)
    return "it cannot be opened";
  if (deepest.what == H5E_WRITEERROR || deepest.what == H5E_CANTFLUSH)
    return "it cannot be written";
  return "it is damaged";
}

std::string take_errors() {
  Deepest deepest;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &deepest);
  H5Eclear2(H5E_DEFAULT);
  return words_of(deepest);
}

}  // namespace

std::int64_t check(std::int64_t returned) {
  if (returned >= 0) return returned;
  throw Error{take_errors()};
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
  if (close_(id_) >= 0) return;
  // No stream may throw here: where a disk is full, so may be the one of the log.
  std::fputs(fmt::format("longhaul: a trace was not closed ({})\n", take_errors()).c_str(), stderr);
}

void Handle::close() { check(close_(std::exchange(id_, kNoId))); }

}  // namespace longhaul::trace::hdf5
