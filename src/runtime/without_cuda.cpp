#include "base/error.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/transport/device_ways.hpp"

namespace longhaul {
namespace {

constexpr const char* kReason = "built without CUDA";

[[noreturn]] void refuse() {
  fail(
      "no CUDA device can be used ({}). Configure with -DLONGHAUL_WITH_CUDA=ON where nvcc is, or "
      "use --device cpu.",
      kReason);
}

}  // namespace

bool built_with_cuda() { return false; }

std::vector<AcceleratorInfo> accelerators() { return {}; }

std::string why_no_accelerator() { return kReason; }

std::unique_ptr<Math> make_cuda_math(int /*index*/) { refuse(); }

std::string accelerator_notes(const Math& /*math*/) { return {}; }

std::unique_ptr<Device> make_cuda_timed_device(int /*index*/, Duration /*credit*/) { refuse(); }

std::unique_ptr<Device> make_cuda_real_device(int /*index*/, Math& /*math*/, BlockWork& /*work*/) {
  refuse();
}

std::unique_ptr<Cargo> make_cuda_cargo(int /*index*/, const Plan& /*plan*/, Rank /*self*/,
                                       std::uint64_t /*seed*/, Bytes /*largest*/) {
  refuse();
}

AcceleratorClock accelerator_clock(int /*index*/) { refuse(); }

Mark begin_mark(const std::string& /*name*/) { return {}; }

void end_mark(Mark /*mark*/) {}

std::unique_ptr<PayloadWay> make_device_way(TransportKind /*kind*/, Transport& /*host*/,
                                            const mpi::Communicator& /*world*/,
                                            const Board& /*board*/, int /*index*/) {
  refuse();
}

}  // namespace longhaul
