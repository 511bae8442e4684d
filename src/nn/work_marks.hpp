#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// Instants in the work of one TensorOps: what lies between two of them is timed without waiting
/// for the device. For example, of blocks given one after the other:
///     marks->mark(); f(); marks->mark(); b(); marks->mark();
///     const std::vector<double> at = marks->seconds_since(*marks);  // B took at[2] - at[1]
class WorkMarks {
public:
  WorkMarks() = default;
  virtual ~WorkMarks() = default;
  WorkMarks(const WorkMarks&) = delete;
  WorkMarks& operator=(const WorkMarks&) = delete;

  /// The calling thread works for this device from now on.
  virtual void enter() = 0;
  /// When all is done that the TensorOps was given so far.
  virtual void mark() = 0;
  [[nodiscard]] virtual std::size_t count() const = 0;
  /// Until mark `number` is reached.
  virtual void wait_for(std::size_t number) = 0;
  /// Seconds from `origin`'s first mark to each; waits for all. `origin` is of the same device, and
  /// its first mark is not later than these.
  [[nodiscard]] virtual std::vector<double> seconds_since(const WorkMarks& origin) = 0;
  /// Begins anew.
  virtual void clear() = 0;
};

/// By the host's clock, for a TensorOps whose calls have taken effect when they return. It outlives
/// this.
[[nodiscard]] std::unique_ptr<WorkMarks> make_host_marks(TensorOps& math);

}  // namespace longhaul::nn
