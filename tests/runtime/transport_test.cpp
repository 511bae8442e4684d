// The transports of the host, of ranks that are processes and of ranks that are threads.
#include "ranks_fixture.hpp"
#include "runtime/threads/thread_transport.hpp"
#include "runtime/transport/mpi/mpi_transport.hpp"
#include "runtime/transport/payload_transport.hpp"

namespace longhaul::testing {

class HostMemory;

struct OverMpi {
  static bool is_here() { return thread_ranks() == 0; }
  static std::unique_ptr<Transport> make(std::unique_ptr<Transport>& /*below*/) {
    return std::make_unique<MpiTransport>(OnRanks::ranks().world(), OnRanks::ranks().board());
  }
  using Memory = HostMemory;
};
/// As if MPI could count no further than this: what messages of more than 1 GiB go through.
struct OverMpiInBlocks : OverMpi {
  static std::unique_ptr<Transport> make(std::unique_ptr<Transport>& /*below*/) {
    return std::make_unique<MpiTransport>(OnRanks::ranks().world(), OnRanks::ranks().board(), 1000);
  }
};
struct OverThreads {
  static bool is_here() { return thread_ranks() > 0; }
  static std::unique_ptr<Transport> make(std::unique_ptr<Transport>& /*below*/) {
    return std::make_unique<ThreadTransport>(OnRanks::ranks().world(), OnRanks::ranks().board());
  }
  using Memory = HostMemory;
};

using TransportKinds = ::testing::Types<OverMpi, OverMpiInBlocks, OverThreads>;

}  // namespace longhaul::testing

#include "transport_suite.hpp"
