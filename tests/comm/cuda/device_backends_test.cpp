// The transports of GPUs' memory, and of the host's over them.
#include "comm/cuda/device_backends.hpp"

#include <fmt/format.h>

#include "comm/mpi/mpi_transport.hpp"
#include "comm/payload_transport.hpp"
#include "comm/registry/transports.hpp"
#include "comm/threads/thread_transport.hpp"
#include "cuda/accelerator.hpp"
#include "cuda/handles.hpp"
#include "host/rank_accelerator.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {

class HostMemory;

/// Payloads in the memory of this rank's GPU.
class GpuMemory {
public:
  explicit GpuMemory(std::size_t size) : memory_{size} {}
  [[nodiscard]] std::span<std::byte> span() { return {memory_.data(), memory_.bytes()}; }
  void write(const std::vector<std::uint8_t>& bytes) {
    cuda::check(cudaMemcpy(memory_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  [[nodiscard]] std::vector<std::uint8_t> read() const {
    std::vector<std::uint8_t> bytes(memory_.bytes());
    cuda::check(cudaMemcpy(bytes.data(), memory_.data(), bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }

private:
  cuda::DeviceBuffer memory_;
};

template <comm::TransportKind kKind, typename Where>
struct OverDevice {
  using Memory = Where;
  static std::string why_not() {
    if (const std::string why = cuda::why_no_accelerator();
        !why.empty() || kKind != comm::TransportKind::nccl)
      return why;
    // NCCL takes one rank for each GPU. The emulator can be told to take several, of processes:
    // threads on one would wait for each other's streams wherever memory is freed.
    const int ranks = thread_ranks() > 0 ? thread_ranks() : OnRanks::ranks().count();
    if (comm::nccl_version().empty()) return "built without NCCL";
    const std::size_t gpus = cuda::accelerators().size();
    const bool may_share =
        thread_ranks() == 0 && std::getenv("LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE") != nullptr;
    if (may_share || static_cast<int>(gpus) >= ranks) return "";
    return fmt::format("NCCL takes a GPU for each rank: {} for {}", gpus, ranks);
  }
  static std::unique_ptr<comm::Transport> make(std::unique_ptr<comm::Transport>& below) {
    engine::Ranks& ranks = OnRanks::ranks();
    if (thread_ranks() > 0) {
      below = std::make_unique<comm::ThreadTransport>(ranks.world(), ranks.host_ranks());
    } else {
      below = std::make_unique<comm::MpiTransport>(ranks.world(), ranks.host_ranks());
    }
    comm::Transport& host = *below;
    return std::make_unique<comm::PayloadTransport>(
        host, comm::make_device_backend(kKind, host, ranks.world(), ranks.host_ranks(),
                                        host::accelerator_of(ranks.host_ranks())));
  }
};

namespace {
using TransportKinds = ::testing::Types<OverDevice<comm::TransportKind::mpi, GpuMemory>,
                                        OverDevice<comm::TransportKind::mpi, HostMemory>,
                                        OverDevice<comm::TransportKind::cuda_ipc, GpuMemory>,
                                        OverDevice<comm::TransportKind::cuda_ipc, HostMemory>,
                                        OverDevice<comm::TransportKind::nccl, GpuMemory>,
                                        OverDevice<comm::TransportKind::nccl, HostMemory>>;
}  // namespace

}  // namespace longhaul::testing

#include "support/ranks/transport_suite.inc"
