#include "streams/handles.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <fcntl.h>
#include <unistd.h>

#include "device.hpp"
#include "device_memory/memory.hpp"

namespace longhaul::on_host {

void write_handle(char (&reserved)[64], const SharedFile& from) {
  std::memset(reserved, 0, sizeof reserved);
  std::memcpy(reserved, &from, sizeof from);
}

SharedFile read_handle(const char (&reserved)[64]) {
  SharedFile from;
  std::memcpy(&from, reserved, sizeof from);
  return from;
}

int open_shared(const SharedFile& from) {
  if (from.process == getpid()) return -1;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", from.process, from.file);
  return open(path, O_RDWR | O_CLOEXEC);
}

namespace {

using Name = std::tuple<pid_t, int, std::size_t>;
struct Opened {
  std::mutex mutex;
  std::map<Name, std::pair<std::byte*, int>> pieces;
};
Opened& opened() {
  static auto* const all = new Opened;
  return *all;
}

}  // namespace
}  // namespace longhaul::on_host

using namespace longhaul::on_host;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  return longhaul::on_host::call([&] {
    const auto piece = longhaul::on_host::find_allocation(memory);
    if (!piece || piece->kind != longhaul::on_host::Memory::device || piece->pooled ||
        piece->opened > 0)
      return longhaul::on_host::refuse(cudaErrorInvalidValue,
                                       "cudaIpcGetMemHandle takes what cudaMalloc has given");
    longhaul::on_host::write_handle(handle->reserved,
                                    {getpid(), piece->file, piece->mapped, piece->bytes});
    return cudaSuccess;
  });
}

/// A handle that is open already gives the same address again.
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  return longhaul::on_host::call([&] {
    if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    const longhaul::on_host::SharedFile from = longhaul::on_host::read_handle(handle.reserved);
    const std::scoped_lock lock{opened().mutex};
    auto& [data, count] = opened().pieces[Name{from.process, from.file, from.mapped}];
    if (count == 0) {
      const int file = longhaul::on_host::open_shared(from);
      if (file < 0) return cudaErrorMapBufferObjectFailed;
      longhaul::on_host::Allocation like;
      like.bytes = from.bytes;
      like.mapped = from.mapped;
      data = longhaul::on_host::map_shared(file, like);
      if (data == nullptr) return cudaErrorMapBufferObjectFailed;
    }
    ++count;
    *memory = data;
    return cudaSuccess;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return longhaul::on_host::call([&] {
    const std::scoped_lock lock{opened().mutex};
    for (auto at = opened().pieces.begin(); at != opened().pieces.end(); ++at) {
      if (at->second.first != memory || at->second.second == 0) continue;
      if (--at->second.second > 0) return cudaSuccess;
      opened().pieces.erase(at);
      longhaul::on_host::drain_device(longhaul::on_host::current_device());
      return longhaul::on_host::free_memory(static_cast<std::byte*>(memory));
    }
    return cudaErrorInvalidValue;
  });
}
