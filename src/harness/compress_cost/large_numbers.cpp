#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "harness/compress_cost/compress_cost.hpp"

namespace longhaul::harness {

LargeNumbers::LargeNumbers(std::int64_t count) : size_{static_cast<std::size_t>(count)} {
  void* const memory = mmap(nullptr, size_ * sizeof(float), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error{fmt::format("no memory for {} numbers ({}). Give fewer with --count.", count,
                            std::strerror(errno)),
                ExitCode::run_failed};
#ifdef MADV_HUGEPAGE
  static_cast<void>(madvise(memory, size_ * sizeof(float), MADV_HUGEPAGE));
#endif
  data_ = static_cast<float*>(memory);
  clear();
}

LargeNumbers::~LargeNumbers() { munmap(data_, size_ * sizeof(float)); }

void LargeNumbers::clear() { std::fill_n(data_, size_, 0.0F); }

/// The cube of a difference of two uniform numbers: two numbers a draw.
void LargeNumbers::fill(std::uint64_t seed) {
  Random random{seed};
  const auto number = [](std::uint64_t bits) {
    const auto difference =
        static_cast<float>(bits & 0xffffU) - static_cast<float>((bits >> 16U) & 0xffffU);
    const float x = difference / 65'536.0F;
    return x * x * x;
  };
  for (std::size_t i = 0; i < size_; i += 2) {
    const std::uint64_t drawn = random.next();
    data_[i] = number(drawn);
    if (i + 1 < size_) data_[i + 1] = number(drawn >> 32U);
  }
}

}  // namespace longhaul::harness
