#include "device_memory/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

#include "device.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#endif

namespace longhaul::on_host {
namespace {

constexpr std::size_t kPage = 4096, kAlign = 256;
constexpr int kAround = 0xa5;

struct Known {
  std::mutex mutex;
  std::map<const std::byte*, Allocation> pieces;
  std::map<int, std::size_t> in_use;
};

Known& known() {
  static auto* const all = new Known;
  return *all;
}

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

/// A mapping of `mapped` bytes of `file` (or of nothing) followed by a page that cannot be touched.
std::byte* map_guarded(std::size_t mapped, int file) {
  void* const place =
      mmap(nullptr, mapped + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  const int flags = file >= 0 ? MAP_SHARED | MAP_FIXED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* const memory = mmap(place, mapped, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
  munmap(place, mapped + kPage);
  return nullptr;
}

/// f(first byte, bytes) for what lies around a piece in its mapping.
template <typename F>
void around(const Allocation& piece, F&& f) {
  const auto before = static_cast<std::size_t>(piece.data - piece.mapping);
  f(piece.mapping, before);
  f(piece.data + piece.bytes, piece.mapped - before - piece.bytes);
}

void poison_around(const Allocation& piece) {
  around(piece, [](std::byte* first, std::size_t bytes) {
    ASAN_POISON_MEMORY_REGION(first, bytes);
    static_cast<void>(first);
    static_cast<void>(bytes);
  });
}

/// Writes beyond the ends; with the address sanitizer they were found when they were done.
bool damaged(const Allocation& piece) {
  bool found = false;
  around(piece, [&](std::byte* first, std::size_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(first, bytes);
    found |= std::any_of(first, first + bytes, [](std::byte b) { return b != std::byte{kAround}; });
  });
  return found;
}

}  // namespace

std::optional<Allocation> find_allocation(const volatile void* address) {
  const auto* const at = static_cast<const std::byte*>(const_cast<const void*>(address));
  Known& all = known();
  const std::scoped_lock lock{all.mutex};
  auto next = all.pieces.upper_bound(at);
  if (next == all.pieces.begin()) return std::nullopt;
  const Allocation& piece = std::prev(next)->second;
  if (at > piece.data + piece.bytes) return std::nullopt;
  return piece;
}

bool holds(const Allocation& piece, const volatile void* address, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(const_cast<const void*>(address));
  return at >= piece.data && bytes <= piece.bytes &&
         at - piece.data <= static_cast<std::ptrdiff_t>(piece.bytes - bytes);
}

std::size_t bytes_in_use(int device) {
  const std::scoped_lock lock{known().mutex};
  return known().in_use[device];
}

std::byte* allocate(std::size_t bytes, Memory kind, Shareable shareable, bool pooled) {
  Allocation piece;
  piece.bytes = bytes;
  piece.kind = kind;
  piece.device = current_device();
  piece.pooled = pooled;
  piece.mapped = round_up(bytes, kPage);
  {
    const std::scoped_lock lock{known().mutex};
    std::size_t& used = known().in_use[piece.device];
    if (kind == Memory::device && bytes > device_memory() - used) return nullptr;
    if (kind == Memory::device) used += bytes;
  }
  if (shareable == Shareable::yes) {
    piece.file = memfd_create("longhaul-cuda-on-host", MFD_CLOEXEC);
    if (piece.file < 0 || ftruncate(piece.file, static_cast<off_t>(piece.mapped)) != 0) {
      std::perror("cuda_on_host: memory that processes can share");
      std::abort();
    }
  }
  piece.mapping = map_guarded(piece.mapped, piece.file);
  if (piece.mapping == nullptr) return nullptr;
  piece.data = piece.mapping + (piece.mapped - round_up(bytes, kAlign));
  around(piece, [](std::byte* first, std::size_t count) { std::memset(first, kAround, count); });
  std::memset(piece.data, 0xff, bytes);
  poison_around(piece);
  const std::scoped_lock lock{known().mutex};
  known().pieces[piece.data] = piece;
  return piece.data;
}

std::byte* map_shared(int file, const Allocation& like) {
  Allocation piece = like;
  piece.file = file;
  piece.opened = 1;
  piece.device = current_device();
  piece.mapping = map_guarded(piece.mapped, file);
  if (piece.mapping == nullptr) return nullptr;
  piece.data = piece.mapping + (piece.mapped - round_up(piece.bytes, kAlign));
  poison_around(piece);
  const std::scoped_lock lock{known().mutex};
  known().pieces[piece.data] = piece;
  return piece.data;
}

void forget_bytes(const Allocation& piece) {
  const std::scoped_lock lock{known().mutex};
  if (piece.kind == Memory::device && piece.opened == 0)
    known().in_use[piece.device] -= piece.bytes;
}

void let(const Allocation& piece, Access access) {
  mprotect(piece.mapping, piece.mapped,
           access == Access::whole ? PROT_READ | PROT_WRITE : PROT_NONE);
}

cudaError_t free_memory(std::byte* data) {
  Allocation piece;
  {
    const std::scoped_lock lock{known().mutex};
    const auto at = known().pieces.find(data);
    if (at == known().pieces.end()) return cudaErrorInvalidValue;
    piece = at->second;
    known().pieces.erase(at);
  }
  let(piece, Access::whole);
  const bool wrong = piece.opened == 0 && damaged(piece);
  ASAN_UNPOISON_MEMORY_REGION(piece.mapping, piece.mapped);
  munmap(piece.mapping, piece.mapped + kPage);
  if (piece.file >= 0) close(piece.file);
  if (!wrong) return cudaSuccess;
  set_sticky_error(cudaErrorIllegalAddress);
  return refuse(cudaErrorIllegalAddress,
                "something wrote beyond the ends of memory that is now freed");
}

}  // namespace longhaul::on_host
