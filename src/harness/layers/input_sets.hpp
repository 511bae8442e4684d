#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/memory.hpp"

namespace longhaul::harness {

/// Bytes that the inputs of a call have together: several times the cache of any device.
inline constexpr double kRotated = 256e6;

/// Tensors of one kernel, in as many sets as make the cache useless.
class InputSets {
public:
  InputSets(nn::TensorOps& math, nn::DeviceMemory& memory, double bytes_of_set)
      : math_{math},
        memory_{memory},
        count_{static_cast<int>(std::clamp(kRotated / bytes_of_set, 1.0, 16.0))} {}

  /// One tensor for each set; returns what hands out that of call number n.
  [[nodiscard]] std::function<nn::ArrayView(int)> random(std::size_t count, NumberType type) {
    std::vector<nn::ArrayView> views;
    for (int set = 0; set < count_; ++set) {
      buffers_.push_back(memory_.take(count, type, "a benchmark's tensors"));
      views.push_back(buffers_.back().view());
      math_.fill_random(++seed_, 1, views.back());
    }
    return [views](int call) { return views[static_cast<std::size_t>(call) % views.size()]; };
  }
  [[nodiscard]] std::function<nn::ArrayView(int)> integers(std::size_t count, int below) {
    buffers_.push_back(memory_.take(count, NumberType::i32, "a benchmark's tokens"));
    const nn::ArrayView view = buffers_.back().view();
    std::vector<std::int32_t> numbers(count);
    std::uint64_t state = 1;
    for (std::int32_t& number : numbers) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      number = static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(below));
    }
    math_.copy_in(std::span<const std::int32_t>{numbers}, view);
    return [view](int) { return view; };
  }

private:
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  int count_;
  std::uint64_t seed_ = 0;
  std::vector<nn::Buffer> buffers_;
};

}  // namespace longhaul::harness
