#include "comm/registry/transports.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "comm/cuda/device_backends.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "comm/threads/thread_transport.hpp"

namespace longhaul::comm {
namespace {

bool are_on_one_host(const std::vector<PayloadPlace>& ranks) {
  return std::ranges::all_of(
      ranks, [&](const PayloadPlace& place) { return place.host == ranks.front().host; });
}

/// "ranks 0 and 1 share GPU-5c1f... on host a"; empty where no two ranks share one.
std::vector<std::string> shared_gpus(const std::vector<PayloadPlace>& ranks) {
  std::map<std::string, std::vector<std::size_t>> users;
  std::vector<std::string> order;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string& gpu = ranks[rank].gpu;
    if (users[gpu].empty()) order.push_back(gpu);
    users[gpu].push_back(rank);
  }
  std::vector<std::string> texts;
  for (const std::string& gpu : order) {
    std::vector<std::size_t> of_gpu = users[gpu];
    if (of_gpu.size() < 2) continue;
    const std::size_t last = of_gpu.back();
    const std::string& host = ranks[last].host_name;
    of_gpu.pop_back();
    texts.push_back(
        fmt::format("ranks {} and {} share {} on {}", fmt::join(of_gpu, ", "), last, gpu, host));
  }
  return texts;
}

void require_gpus(TransportKind asked, const std::vector<PayloadPlace>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].gpu.empty())
      fail(
          "--transport {} carries what lies in GPUs' memory (rank {} on {} computes on the CPU). "
          "Use --device cuda with it, or --transport mpi.",
          to_string(asked), rank, ranks[rank].host_name);
}

void require_nccl(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  const bool one_host = are_on_one_host(ranks);
  const char* const instead = one_host ? "--transport cuda-ipc or mpi" : "--transport mpi";
  if (!with_nccl)
    fail(
        "--transport nccl is not in this program (it was built without NCCL). Configure with "
        "-DLONGHAUL_WITH_NCCL=ON where nccl.h is, or use {}.",
        instead);
  const std::vector<std::string> shared = shared_gpus(ranks);
  if (shared.empty()) return;
  fail(
      "--transport nccl needs a GPU for each rank ({}). Use {}{}, or give each rank a GPU of its "
      "own.",
      fmt::join(shared, "; "), instead,
      one_host ? " (with --ranks-per-process, so that they share the GPU at the same time)" : "");
}

/// "GPU-5c1f... of rank 0 cannot read the memory of GPU-77d0..., rank 2's, on a"; empty where all
/// of a host can.
std::string unreached(const std::vector<PayloadPlace>& ranks) {
  for (std::size_t reader = 0; reader < ranks.size(); ++reader)
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks[reader].host == ranks[rank].host &&
          std::ranges::find(ranks[reader].beyond_reach, ranks[rank].gpu) !=
              ranks[reader].beyond_reach.end())
        return fmt::format("{} of rank {} cannot read the memory of {}, rank {}'s, on {}",
                           ranks[reader].gpu, reader, ranks[rank].gpu, rank, ranks[rank].host_name);
  return "";
}

void require_reach(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  const std::string why = unreached(ranks);
  if (why.empty()) return;
  fail(
      "--transport cuda-ipc needs GPUs that copy from each other ({}). Use --transport {}; "
      "nvidia-smi topo -p2p r shows which can.",
      why, with_nccl && shared_gpus(ranks).empty() ? "nccl or mpi" : "mpi");
}

void require_one_host(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].host == ranks.front().host) continue;
    fail(
        "--transport cuda-ipc is for ranks of one host (rank 0 is on {}, rank {} on {}). Use "
        "--transport {}.",
        ranks.front().host_name, rank, ranks[rank].host_name,
        with_nccl && shared_gpus(ranks).empty() ? "nccl or mpi" : "mpi");
  }
}

TransportChoice automatic(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  if (std::ranges::any_of(ranks, [](const PayloadPlace& place) { return place.gpu.empty(); }))
    return {TransportKind::mpi, "payloads lie in the hosts' memory"};
  const std::vector<std::string> shared = shared_gpus(ranks);
  if (with_nccl && shared.empty()) return {TransportKind::nccl, "every rank has a GPU to itself"};
  const std::string no_nccl = shared.empty() ? "built without NCCL" : shared.front();
  if (const std::string why = unreached(ranks); are_on_one_host(ranks) && !why.empty())
    return {TransportKind::mpi, fmt::format("{}, and {}", no_nccl, why)};
  if (are_on_one_host(ranks))
    return {TransportKind::cuda_ipc, fmt::format("all ranks are on one host, and {}", no_nccl)};
  return {TransportKind::mpi, fmt::format("ranks are on several hosts, and {}", no_nccl)};
}

void require_nothing(const std::vector<PayloadPlace>& /*ranks*/, bool /*with_nccl*/) {}

void require_for_nccl(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  require_gpus(TransportKind::nccl, ranks);
  require_nccl(ranks, with_nccl);
}

void require_for_ipc(const std::vector<PayloadPlace>& ranks, bool with_nccl) {
  require_gpus(TransportKind::cuda_ipc, ranks);
  require_one_host(ranks, with_nccl);
  require_reach(ranks, with_nccl);
}

/// A transport of payloads: a value of --transport.
struct PayloadEntry {
  TransportKind kind;
  void (*require)(const std::vector<PayloadPlace>&, bool with_nccl);  ///< throws Error
  std::unique_ptr<PayloadBackend> (*make)(const BackendPlace&);       ///< none: is only asked for
};

constexpr std::array kPayloads{
    PayloadEntry{TransportKind::automatic, require_nothing, nullptr},
    PayloadEntry{TransportKind::mpi, require_nothing, make_staged_backend},
    PayloadEntry{TransportKind::nccl, require_for_nccl, make_nccl_backend},
    PayloadEntry{TransportKind::cuda_ipc, require_for_ipc, make_ipc_backend}};

static_assert(static_cast<int>(kPayloads.size()) == kCountOf<TransportKind>);

const PayloadEntry& entry_of(TransportKind kind) {
  const auto found = std::ranges::find(kPayloads, kind, &PayloadEntry::kind);
  LONGHAUL_ASSERT(found != kPayloads.end(), "transport {}", to_string(kind));
  return *found;
}

template <typename Made>
std::unique_ptr<Transport> make(const Communicator& world, const HostRanks& host_ranks) {
  return std::make_unique<Made>(world, host_ranks);
}

/// A transport of messages in the hosts' memory. The first that serves the ranks is taken.
struct HostEntry {
  bool (*serves)(const Communicator& world);
  std::unique_ptr<Transport> (*make)(const Communicator& world, const HostRanks& host_ranks);
};

constexpr std::array kHosts{
    HostEntry{[](const Communicator& world) { return world.is_of_threads(); },
              make<ThreadTransport>},
    HostEntry{[](const Communicator&) { return true; }, make<MpiTransport>}};

}  // namespace

std::string transport_names(const char* word) {
  std::string names;
  const std::vector<std::string> all = every_name<TransportKind>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) names += i + 1 < all.size() ? ", " : fmt::format(" {} ", word);
    names += all[i];
  }
  return names;
}

TransportKind transport_kind_of(const std::string& text) {
  if (const auto kind = from_string<TransportKind>(text)) return *kind;
  fail("--transport {} is unknown (there are {}). Write --transport auto.", text,
       transport_names("and"));
}

TransportChoice choose_transport(TransportKind asked, const std::vector<PayloadPlace>& ranks,
                                 bool with_nccl) {
  if (asked == TransportKind::automatic) return automatic(ranks, with_nccl);
  entry_of(asked).require(ranks, with_nccl);
  return {asked, "asked for"};
}

std::unique_ptr<PayloadBackend> make_device_backend(TransportKind kind, Transport& host,
                                                    const Communicator& world,
                                                    const HostRanks& host_ranks, int index) {
  const PayloadEntry& entry = entry_of(kind);
  LONGHAUL_ASSERT(entry.make != nullptr, "transport {} was not chosen", to_string(kind));
  return entry.make({host, world, host_ranks, index});
}

std::unique_ptr<Transport> make_host_transport(const Communicator& world,
                                               const HostRanks& host_ranks) {
  const auto serves = [&](const HostEntry& entry) { return entry.serves(world); };
  return std::ranges::find_if(kHosts, serves)->make(world, host_ranks);
}

}  // namespace longhaul::comm
