#include "chunk_suite.hpp"
#include "nn/cuda/tensor_ops_fixture.hpp"

/// All that every TensorOps and the layers on it have to pass, on a GPU or on the emulator for one.
namespace longhaul::nn {
namespace {

const TensorOpsUnderTest kCuda{"cuda", [] { return make_cuda_tensor_ops(0); },
                               cuda::why_no_accelerator};

std::string name_of_test(const ::testing::TestParamInfo<TensorOpsUnderTest>& test) {
  return test.param.name;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, TensorOpsSuite, ::testing::Values(kCuda), name_of_test);
INSTANTIATE_TEST_SUITE_P(Cuda, ChunkSuite, ::testing::Values(kCuda), name_of_test);

}  // namespace longhaul::nn
