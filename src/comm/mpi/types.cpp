#include "comm/mpi/types.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bf16.hpp"
#include "base/index.hpp"
#include "comm/group/session.hpp"

namespace longhaul::comm::mpi {
/// Blocks of `largest`, and after them the rest.
ByteCount::ByteCount(std::size_t bytes, std::size_t largest) {
  if (bytes <= largest) {
    count_ = static_cast<int>(bytes);
    return;
  }
  const std::size_t blocks = bytes / largest;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(largest), MPI_BYTE, &block));
  const std::array<int, 2> lengths{static_cast<int>(blocks),
                                   static_cast<int>(bytes - blocks * largest)};
  const std::array<MPI_Aint, 2> begins{0, static_cast<MPI_Aint>(blocks * largest)};
  const std::array<MPI_Datatype, 2> types{block, MPI_BYTE};
  check(MPI_Type_create_struct(2, lengths.data(), begins.data(), types.data(), &type_));
  check(MPI_Type_commit(&type_));
  check(MPI_Type_free(&block));
}

/// Messages under way keep the type.
ByteCount::~ByteCount() {
  if (type_ != MPI_BYTE) MPI_Type_free(&type_);
}

std::size_t bytes_of(const MPI_Status& status) {
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
  return to_size(bytes);
}

MPI_Datatype type_of(NumberType type) {
  switch (type) {
    case NumberType::i64: return MPI_INT64_T;
    case NumberType::f32: return MPI_FLOAT;
    case NumberType::bf16: return MPI_UINT16_T;
    case NumberType::i32: return MPI_INT32_T;
  }
  return MPI_BYTE;
}

Widened::Widened(const Exchange& bf16)
    : mine_(bf16.mine.size() / sizeof(std::uint16_t)),
      result_(bf16.result.size() / sizeof(std::uint16_t)),
      into_{bf16.result} {
  for (std::size_t i = 0; i < mine_.size(); ++i) {
    std::uint16_t number = 0;
    std::memcpy(&number, bf16.mine.data() + i * sizeof number, sizeof number);
    mine_[i] = from_bf16(number);
  }
}

Exchange Widened::exchange() {
  return {NumberType::f32, std::as_bytes(std::span{mine_}),
          std::as_writable_bytes(std::span{result_})};
}

void Widened::narrow() const {
  for (std::size_t i = 0; i < result_.size(); ++i) {
    const std::uint16_t number = to_bf16(result_[i]);
    std::memcpy(into_.data() + i * sizeof number, &number, sizeof number);
  }
}

}  // namespace longhaul::comm::mpi
