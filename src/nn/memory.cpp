#include "nn/memory.hpp"

#include <algorithm>
#include <utility>

namespace longhaul::nn {

DeviceMemory::DeviceMemory(TensorOps& math, std::size_t budget) : math_{math}, budget_{budget} {}

Buffer DeviceMemory::take(std::size_t count, NumberType type, const std::string& what) {
  LONGHAUL_ASSERT(count > 0, "{}: nothing is asked for", what);
  ArrayView view{nullptr, count, type};
  const std::lock_guard lock{mutex_};
  if (budget_ > 0 && view.bytes() > budget_ - std::min(budget_, held_)) {
    throw Error{
        fmt::format(
            "{}: {} B are more than is left of the device's memory ({} B held, "
            "budget {} B). Raise the budget (memory.capacity), recompute activations, or choose a "
            "schedule that keeps fewer microbatches.",
            what, view.bytes(), held_, budget_),
        ExitCode::run_failed};
  }
  view.data = math_.allocate(view.bytes());
  if (view.data == nullptr) {
    const std::string budget = budget_ > 0 ? fmt::format("budget {} B", budget_) : "no budget";
    throw Error{fmt::format("{}: the device has no {} B left ({} B held by this rank, {}). Take a "
                            "smaller model or microbatch, or put fewer ranks on the device.",
                            what, view.bytes(), held_, budget),
                ExitCode::run_failed};
  }
  held_ += view.bytes();
  peak_ = std::max(peak_, held_);
  return Buffer{*this, view};
}

void DeviceMemory::give_back(ArrayView view) {
  const std::lock_guard lock{mutex_};
  held_ -= view.bytes();
  math_.release(view.data);
}

DeviceMemory::Buffer::Buffer(Buffer&& other) noexcept
    : memory_{std::exchange(other.memory_, nullptr)},
      view_{std::exchange(other.view_, ArrayView{})} {}

DeviceMemory::Buffer& DeviceMemory::Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (view_.data != nullptr) memory_->give_back(view_);
  memory_ = std::exchange(other.memory_, nullptr);
  view_ = std::exchange(other.view_, ArrayView{});
  return *this;
}

DeviceMemory::Buffer::~Buffer() {
  if (view_.data != nullptr) memory_->give_back(view_);
}

}  // namespace longhaul::nn
