// The transports of the host, of ranks that are processes and of ranks that are threads.
#include "comm/mpi/mpi_transport.hpp"
#include "comm/payload_transport.hpp"
#include "comm/piece_transport.hpp"
#include "comm/threads/thread_transport.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {

class HostMemory;

struct OverMpi {
  static std::string why_not() {
    return thread_ranks() == 0 ? "" : "the ranks are threads of one process";
  }
  static std::unique_ptr<comm::Transport> make(std::unique_ptr<comm::Transport>& /*below*/) {
    return std::make_unique<comm::MpiTransport>(OnRanks::ranks().world(),
                                                OnRanks::ranks().host_ranks());
  }
  using Memory = HostMemory;
};
/// As if MPI could count no further than this: what messages of more than 1 GiB go through.
struct OverMpiInBlocks : OverMpi {
  static std::unique_ptr<comm::Transport> make(std::unique_ptr<comm::Transport>& /*below*/) {
    return std::make_unique<comm::MpiTransport>(OnRanks::ranks().world(),
                                                OnRanks::ranks().host_ranks(), 1000);
  }
};
struct OverThreads {
  static std::string why_not() {
    return thread_ranks() > 0 ? "" : "the ranks are processes (--ranks-per-process makes threads)";
  }
  static std::unique_ptr<comm::Transport> make(std::unique_ptr<comm::Transport>& /*below*/) {
    return std::make_unique<comm::ThreadTransport>(OnRanks::ranks().world(),
                                                   OnRanks::ranks().host_ranks());
  }
  using Memory = HostMemory;
};

/// Payloads in pieces, some of which they fill exactly, over processes and over threads.
struct InPieces {
  static std::string why_not() { return ""; }
  static std::unique_ptr<comm::Transport> make(std::unique_ptr<comm::Transport>& below) {
    below = thread_ranks() == 0 ? OverMpi::make(below) : OverThreads::make(below);
    return std::make_unique<comm::PieceTransport>(*below, 16 << 10U);
  }
  using Memory = HostMemory;
};

namespace {
using TransportKinds = ::testing::Types<OverMpi, OverMpiInBlocks, OverThreads, InPieces>;
}  // namespace

}  // namespace longhaul::testing

#include "support/ranks/transport_suite.inc"

namespace longhaul::testing {

// Sums of the host's transports add in fp32: 256 + 3 * 0.75 is 258 in bf16, and 256 where each step
// is rounded.
RANKS_TYPED_TEST(TransportTest, SumsOfBf16AreRoundedOnce) {
  if (this->ranks().count() < 4) return;
  const auto me = static_cast<std::size_t>(this->self());
  const std::size_t n = this->everyone().size();
  const std::vector<std::uint16_t> mine(n, to_bf16(me == 0 ? 256.0F : me < 4 ? 0.75F : 0.0F));
  std::vector<std::uint16_t> all(n), part(1);
  const auto sum = [&](CollectiveKind kind, std::vector<std::uint16_t>& result) {
    this->finish({this->transport_->collective(
        kind, this->everyone(),
        {NumberType::bf16, std::as_bytes(std::span{mine}), this->writable(result)})});
    EXPECT_THAT(result, ::testing::Each(to_bf16(258.0F)));
  };
  sum(CollectiveKind::all_reduce, all);
  sum(CollectiveKind::reduce_scatter, part);
}

}  // namespace longhaul::testing
