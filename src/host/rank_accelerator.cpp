#include "host/rank_accelerator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm/group/thread_group.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul::host {

int accelerator_of(const comm::HostRanks& host_ranks) {
  const int devices = static_cast<int>(cuda::accelerators().size());
  const auto at = std::ranges::find(host_ranks.local(), host_ranks.self());
  const int place = static_cast<int>(at - host_ranks.local().begin());
  const int ranks = host_ranks.local_ranks();
  if (devices == 0) return 0;
  return devices >= ranks ? place : place * devices / ranks;
}

std::filesystem::path mps_directory() {
  const char* const named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return named != nullptr && *named != '\0' ? named : "/tmp/nvidia-mps";
}

bool mps_listens(const std::filesystem::path& directory) {
  const std::string path = (directory / "control").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;  // no socket can have that name
  std::strcpy(address.sun_path, path.c_str());
  const int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (end < 0) return false;
  const int result = connect(end, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int problem = errno;
  close(end);
  // One of another type, or with many callers, is there all the same.
  return result == 0 || problem == EPROTOTYPE || problem == EAGAIN;
}

GpuSharing gpu_sharing() {
  if (comm::this_thread_rank() != nullptr) return GpuSharing::threads;
  return mps_listens(mps_directory()) ? GpuSharing::processes_with_mps : GpuSharing::processes;
}

}  // namespace longhaul::host
