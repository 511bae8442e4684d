// An error on a device names its block. Errors of kernels stay: each test ends its process.
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/accelerator.hpp"
#include "cuda/handles.hpp"
#include "device/cuda/cuda_devices.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

class DeviceErrorDeathTest : public ::testing::Test {
protected:
  void SetUp() override {
    const std::string why = cuda::why_no_accelerator();
    if (!why.empty()) GTEST_SKIP() << why;
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

/// Reads where nothing is, with block 1; has no memory for block 2.
class BrokenWork final : public engine::BlockWork {
public:
  explicit BrokenWork(cudaStream_t stream) : stream_{stream} {}
  void run(OpId block) override {
    constexpr std::uintptr_t kNowhere = 4096;
    if (block == OpId{1})
      cuda::stamp(reinterpret_cast<std::uint64_t*>(kNowhere), stream_);  // NOLINT: meant to fail
    if (block == OpId{2}) throw Error{"no memory for 512 bytes", ExitCode::run_failed};
  }
  void ended(OpId /*block*/) override {}

private:
  cudaStream_t stream_;
};

/// Ends with 42 where block `broken` is named, after blocks that end well.
[[noreturn]] void run_until(OpId broken) {
  try {
    cuda::use_device(0);
    const cuda::Stream stream;
    BrokenWork work{stream.get()};
    device::CudaLayerDevice device{0, work, stream.get()};
    device.start(OpId{0}, now(), 1ms);
    device.start(broken, now(), 1ms);
    for (const TimePoint give_up = now() + 60s; now() < give_up;) (void)device.finished(now());
  } catch (const engine::DeviceError& error) {
    fmt::print(stderr, "op {}: {}\n", index(error.op()), error.what());
    std::_Exit(error.op() == broken ? 42 : 1);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  std::_Exit(1);
}

TEST_F(DeviceErrorDeathTest, AFailingKernelNamesItsBlock) {
  EXPECT_EXIT(run_until(OpId{1}), ::testing::ExitedWithCode(42), "op 1: cudaError");
}

TEST_F(DeviceErrorDeathTest, ABlockThatCannotBeginIsNamed) {
  EXPECT_EXIT(run_until(OpId{2}), ::testing::ExitedWithCode(42), "op 2: no memory for 512 bytes");
}

}  // namespace
}  // namespace longhaul::testing
