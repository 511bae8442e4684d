#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace longhaul::trace::hdf5 {

/// HDF5's own id type (asserted in the source), so that hdf5.h stays out of headers.
using Id = std::int64_t;

/// Passes on what an HDF5 call returned. If it is negative, throws Error with the reason in our
/// words (HDF5's are about itself): "it is no HDF5 file", or what the system says, as "No space
/// left on device".
std::int64_t check(std::int64_t returned);

/// Around all that we do with HDF5. Keeps it from printing to stderr: an Error tells instead. And
/// keeps other threads of this process out, for which serial HDF5 is not made.
class Silence {
public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int (*printer_)(Id, void*) = nullptr;
  void* data_ = nullptr;
};

/// Owns one HDF5 id. Move-only; a moved-from Handle holds none.
class Handle {
public:
  using Close = int (*)(Id);

  /// Throws Error if `id` says that the call failed.
  Handle(Id id, Close closer) : id_{check(id)}, close_{closer} {}
  Handle(Handle&& other) noexcept : id_{std::exchange(other.id_, kNoId)}, close_{other.close_} {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle();

  [[nodiscard]] Id get() const { return id_; }
  /// Closes now and throws Error where the destructor could only report.
  void close();

private:
  static constexpr Id kNoId = -1;
  Id id_;
  Close close_;
};

}  // namespace longhaul::trace::hdf5
