#include "nccl/nccl_world.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace longhaul::on_host {
namespace {

struct Files {
  std::mutex mutex;
  std::uint64_t made = 0;
  std::set<std::uint64_t> open;  ///< by the number of their id
};
Files& files() {
  static auto* const all = new Files;
  return *all;
}

}  // namespace

SharedWorld::Id SharedWorld::make_id() {
  const int file = memfd_create("longhaul-nccl-on-host", MFD_CLOEXEC);
  const std::scoped_lock lock{files().mutex};
  const std::uint64_t number = ++files().made;
  files().open.insert(number);
  return {getpid(), file, number};
}

/// Every rank says so; only the first closes, for the file's number may be another one's by then.
void SharedWorld::close_id(const Id& id) {
  if (id.process != getpid()) return;
  const std::scoped_lock lock{files().mutex};
  if (files().open.erase(id.number) > 0) close(id.file);
}

SharedWorld::SharedWorld(const Id& id, int ranks)
    : ranks_{ranks},
      bytes_{sizeof(World) +
             sizeof(Box) * (static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks))} {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", id.process, id.file);
  const int file = open(path.data(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) world_ = static_cast<World*>(memory);
  }
  close(file);
}

SharedWorld::~SharedWorld() {
  if (world_ != nullptr) munmap(world_, bytes_);
}

bool SharedWorld::is_gone(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (world_->gone[at] != 0) return true;
  const pid_t process = world_->process[at];
  return process != 0 && kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace longhaul::on_host
