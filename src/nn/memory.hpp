#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// A rank's use of its device's memory, counted in real bytes against a budget. Any thread may
/// take and give back: blocks run on one, messages come and go on another.
class DeviceMemory {
public:
  /// `budget` in bytes; 0: as much as there is. `math` outlives this.
  DeviceMemory(TensorOps& math, std::size_t budget);

  /// Owns a stretch of device memory; gives it back at its end.
  class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();
    [[nodiscard]] ArrayView view() const { return view_; }
    [[nodiscard]] explicit operator bool() const { return view_.data != nullptr; }

  private:
    friend class DeviceMemory;
    Buffer(DeviceMemory& memory, ArrayView view) : memory_{&memory}, view_{view} {}
    DeviceMemory* memory_ = nullptr;
    ArrayView view_;
  };

  /// Not zeroed. Throws Error (exit code 3) that names `what` ("F(chunk 3, microbatch 5): gate and
  /// up"), the bytes asked, those held and the budget.
  [[nodiscard]] Buffer take(std::size_t count, NumberType type, const std::string& what);
  /// `count` numbers of the working type.
  [[nodiscard]] Buffer take(std::size_t count, const std::string& what) {
    return take(count, math_.working_type(), what);
  }

  [[nodiscard]] std::size_t held() const {
    return locked([&] { return held_; });
  }
  [[nodiscard]] std::size_t peak() const {
    return locked([&] { return peak_; });
  }
  [[nodiscard]] std::size_t budget() const { return budget_; }
  /// The peak counts from here on.
  void reset_peak() {
    locked([&] { return peak_ = held_; });
  }

private:
  void give_back(ArrayView view);
  template <typename Read>
  std::size_t locked(Read&& read) const {
    const std::lock_guard lock{mutex_};
    return read();
  }
  TensorOps& math_;
  mutable std::mutex mutex_;
  std::size_t budget_, held_ = 0, peak_ = 0;
};

using Buffer = DeviceMemory::Buffer;

}  // namespace longhaul::nn
