#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/group/host_ranks.hpp"

namespace longhaul::comm {
namespace {

int create(const std::string& name, std::size_t bytes) {
  const int file = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0) return -1;
  // Room that is missing is found here, not by a signal at the first touch.
  if ((errno = posix_fallocate(file, 0, static_cast<off_t>(bytes))) == 0) return file;
  close(file);
  shm_unlink(name.c_str());
  return -1;
}

/// On lines of its own, as memory from the system is.
std::shared_ptr<void> zeroed(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t whole = (bytes + kLine - 1) / kLine * kLine;
  std::shared_ptr<void> memory{std::aligned_alloc(kLine, whole), &std::free};
  if (!memory) throw std::bad_alloc{};
  std::memset(memory.get(), 0, whole);
  return memory;
}

}  // namespace

SharedMemory::SharedMemory(const Communicator& host, std::size_t bytes) : bytes_{bytes} {
  if (host.is_of_threads()) {
    of_threads_ = host.share(host.rank() == 0 ? zeroed(bytes) : nullptr);
    data_ = static_cast<std::byte*>(of_threads_.get());
    return;
  }
  const bool owner = host.rank() == 0;
  const std::string name =
      host.broadcast(owner ? fmt::format("/longhaul-{}-{}", getpid(), now().count()) : "");
  int file = owner ? create(name, bytes) : -1;
  host.barrier();
  if (!owner) file = shm_open(name.c_str(), O_RDWR, 0600);
  void* const at =
      file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int problem = errno;
  if (file >= 0) close(file);
  const bool everyone = host.minimum(at == MAP_FAILED ? 0 : 1) == 1;
  if (owner) shm_unlink(name.c_str());
  host.barrier();
  if (everyone) {
    data_ = static_cast<std::byte*>(at);
    return;
  }
  if (at != MAP_FAILED) munmap(at, bytes);
  throw Error{fmt::format("the ranks of this host cannot share {} bytes of memory ({}). Make room "
                          "in /dev/shm.",
                          bytes, std::strerror(problem)),
              ExitCode::run_failed};
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr && !of_threads_) munmap(data_, bytes_);
}

}  // namespace longhaul::comm
