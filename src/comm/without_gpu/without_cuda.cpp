#include "comm/cuda/device_ways.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul {

std::unique_ptr<PayloadWay> make_device_way(TransportKind /*kind*/, Transport& /*host*/,
                                            const mpi::Communicator& /*world*/,
                                            const Board& /*board*/, int /*index*/) {
  refuse_without_cuda();
}

}  // namespace longhaul
