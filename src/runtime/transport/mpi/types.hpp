#pragma once

#include <cstddef>

#include <mpi.h>

#include "runtime/cargo.hpp"

namespace longhaul::mpi {

/// What MPI counts in one call: some bytes, or, where an int cannot say how many, one of a type
/// that is as long.
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

/// Of a received message, whatever type it was counted in.
[[nodiscard]] std::size_t bytes_of(const MPI_Status& status);

[[nodiscard]] MPI_Datatype type_of(ExchangeType type);
/// Sums of that type. bf16, which MPI has not, is added in fp32 and rounded in every step.
class Sum {
public:
  Sum();
  ~Sum();
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  [[nodiscard]] MPI_Op of(ExchangeType type) const {
    return type == ExchangeType::bf16 ? bf16_ : MPI_SUM;
  }

private:
  MPI_Op bf16_ = MPI_OP_NULL;
};

}  // namespace longhaul::mpi
