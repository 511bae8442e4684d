#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace longhaul {

/// Allocates from whole lines of a cache (64 bytes), and large memory in pages of 2 MiB where the
/// system gives them: numbers that are touched here and there then find their pages without a walk
/// of the tables, and a block of 16 floats is one line.
template <typename Value>
class LargePages {
public:
  using value_type = Value;
  LargePages() = default;
  template <typename Other>
  LargePages(const LargePages<Other>&) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] Value* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(Value);
    void* const memory = ::operator new(bytes, alignment(bytes));
#if defined(MADV_HUGEPAGE)
    if (bytes >= kPage) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
#endif
    return static_cast<Value*>(memory);
  }
  void deallocate(Value* memory, std::size_t count) {
    ::operator delete(memory, alignment(count * sizeof(Value)));
  }
  template <typename Other>
  friend bool operator==(const LargePages&, const LargePages<Other>&) {
    return true;
  }

private:
  static constexpr std::size_t kPage = std::size_t{2} << 20U, kLine = 64;
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kPage ? kPage : kLine};
  }
};

/// A vector in such memory.
template <typename Value>
using LargeVector = std::vector<Value, LargePages<Value>>;

}  // namespace longhaul
