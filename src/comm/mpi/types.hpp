#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <mpi.h>

#include "comm/transport.hpp"

namespace longhaul::comm::mpi {

/// The unit in which MPI counts in one call: some bytes, or, where an int cannot say how many, one
/// of a type that is as long.
class ByteCount {
public:
  /// More than `largest` bytes take a type of their own.
  explicit ByteCount(std::size_t bytes, std::size_t largest);
  ~ByteCount();
  ByteCount(const ByteCount&) = delete;
  ByteCount& operator=(const ByteCount&) = delete;

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

private:
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
};

/// Bytes of a received message, whatever type it was counted in.
[[nodiscard]] std::size_t bytes_of(const MPI_Status& status);

/// bf16, which MPI has not, is only moved as such: not summed.
[[nodiscard]] MPI_Datatype type_of(NumberType type);
/// bf16 on its way through sums in fp32: rounded once, when the sum is there.
class Widened {
public:
  explicit Widened(const Exchange& bf16);
  /// The handle that MPI takes.
  [[nodiscard]] Exchange exchange();
  /// The sum has come.
  void narrow() const;

private:
  std::vector<float> mine_, result_;
  std::span<std::byte> into_;
};

}  // namespace longhaul::comm::mpi
