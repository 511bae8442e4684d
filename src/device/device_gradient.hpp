#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compress/sparse_set.hpp"

namespace longhaul::device {

/// Where what is not sent stays: in the gradient itself, or in numbers of their own, to which the
/// gradient is added.
enum class ResidualPlace : std::uint8_t { in_gradient, apart };

/// What is taken of a gradient: blocks whose mean magnitude is above the threshold.
struct GradientChoice {
  int block = 16;       ///< numbers: 1, 2, 4, 8 or 16
  float threshold = 0;  ///< below 0: all blocks are above it
  ResidualPlace residual = ResidualPlace::apart;
};

/// What a selection found.
struct TakenBlocks {
  std::int64_t above = 0;  ///< blocks above the threshold
  /// Empty where there was no room for these: all of them then stay in the residual.
  compress::SparseSet set{};
};

/// A gradient in the memory of a GPU, pinned memory of the host beside it, and what training over
/// thin links does with both (docs/training.md), on a stream of its own, of the least priority.
///
/// `load` makes two gradients, the second of them the first's negative; calls that read one take
/// them in turn, so that a residual apart stays as small as one gradient however often they come.
/// Calls give their work to the stream and return, but for those that hand something out. One
/// thread uses it at a time, any.
class DeviceGradient {
public:
  DeviceGradient() = default;
  virtual ~DeviceGradient() = default;
  DeviceGradient(const DeviceGradient&) = delete;
  DeviceGradient& operator=(const DeviceGradient&) = delete;

  /// A gradient of as many numbers as there are; then restart().
  virtual void load(std::span<const float> gradient) = 0;
  /// The residual is zero, the copy is the first gradient's, and the turn is its.
  virtual void restart() = 0;
  /// Takes blocks of the next gradient, or of the copy that copy_within() has made last.
  virtual void select(const GradientChoice& choice) = 0;
  /// The first gradient to a copy in the device's memory.
  virtual void copy_within() = 0;
  /// The next gradient to pinned memory.
  virtual void copy_out() = 0;
  /// Other pinned memory to the copy.
  virtual void copy_in() = 0;

  virtual void finish() = 0;
  /// Seconds from the begin to the end of the work that is given meanwhile, by the device's events.
  [[nodiscard]] virtual double seconds_of(const std::function<void()>& work) = 0;

  /// Of the last select(). Throws compress::NotFinite: what was taken is then of no use.
  [[nodiscard]] virtual TakenBlocks taken() = 0;
  /// What that has left: the residual, or the copy.
  [[nodiscard]] virtual std::vector<float> left() = 0;
  /// The gradient that copy_out() has brought, after finish().
  [[nodiscard]] virtual std::span<float> pinned() = 0;
};

}  // namespace longhaul::device
