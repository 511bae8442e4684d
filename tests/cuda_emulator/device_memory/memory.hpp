#pragma once

#include <cstddef>
#include <optional>

#include "cuda_runtime_api.h"

namespace longhaul::on_host {

enum class Memory : unsigned char { device, pinned, registered };

/// A piece of memory that CUDA knows. Device memory begins as NaN (all bytes 0xff), ends in front
/// of a page that cannot be touched, and has bytes around it that free() looks at.
struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Memory kind = Memory::device;
  int device = 0;
  bool pooled = false;  ///< from cudaMallocAsync
  int opened = 0;       ///< times that it was opened here: another process's
  int file = -1;        ///< that holds it, where it may be shared
  std::byte* mapping = nullptr;
  std::size_t mapped = 0;  ///< without the guard page after it
};

/// The one that `address` lies in, or ends.
[[nodiscard]] std::optional<Allocation> find_allocation(const volatile void* address);
/// Does [address, address + bytes) lie in one piece?
[[nodiscard]] bool holds(const Allocation& piece, const volatile void* address, std::size_t bytes);
[[nodiscard]] std::size_t bytes_in_use(int device);

enum class Shareable : bool { no, yes };
/// nullptr where the device has not that much left.
[[nodiscard]] std::byte* allocate(std::size_t bytes, Memory kind, Shareable shareable, bool pooled);
/// Maps `file` of another process, `mapped` bytes of which the last `bytes` before the slack count.
[[nodiscard]] std::byte* map_shared(int file, const Allocation& like);
enum class Access : bool { none, whole };
/// Sets the access that is allowed to a piece.
void let(const Allocation& piece, Access access);
/// Gives memory back; cudaErrorIllegalAddress where a kernel or copy wrote beyond its ends.
[[nodiscard]] cudaError_t free_memory(std::byte* data);
/// The bytes no longer count: they will be given back when a stream gets there.
void forget_bytes(const Allocation& piece);

}  // namespace longhaul::on_host
