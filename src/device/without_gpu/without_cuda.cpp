#include "cuda/accelerator.hpp"
#include "device/cuda/factories.hpp"

namespace longhaul {

std::unique_ptr<Device> make_cuda_timed_device(int /*index*/, Duration /*credit*/) {
  refuse_without_cuda();
}

std::unique_ptr<Device> make_cuda_real_device(int /*index*/, Math& /*math*/, BlockWork& /*work*/) {
  refuse_without_cuda();
}

std::unique_ptr<Cargo> make_cuda_cargo(int /*index*/, const Plan& /*plan*/, Rank /*self*/,
                                       std::uint64_t /*seed*/, Bytes /*largest*/) {
  refuse_without_cuda();
}

AcceleratorClock accelerator_clock(int /*index*/) { refuse_without_cuda(); }

}  // namespace longhaul
