#include "device/cuda/cuda_gradient.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"
#include "compress/kernels/scan.hpp"
#include "compress/select/candidates.hpp"
#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using compress::SparseSet;
using device::ResidualPlace;

/// Gradients have few large numbers; here also zeros of both signs, equal scores and tiny numbers.
std::vector<float> some_gradient(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const auto x = static_cast<float>(random.between(-1000, 1000)) / 1000;
    number = x * x * x;
    const std::int64_t kind = random.between(0, 9);
    if (kind == 0) number = x < 0 ? -0.0F : 0.0F;
    if (kind == 1) number = std::copysign(0.25F, x);
    if (kind == 2) number *= 1e-42F;
  }
  return numbers;
}

/// What a host's kernel takes of residual + gradient (or of the gradient itself), and leaves.
struct OnHost {
  std::vector<float> left;
  SparseSet taken;

  OnHost(std::vector<float> residual, const std::vector<float>* gradient, int block,
         float threshold)
      : left{std::move(residual)} {
    const auto count = static_cast<std::int64_t>(left.size());
    const std::int64_t all = (count + block - 1) / block;
    compress::Candidates candidates;
    candidates.start(all, all);
    candidates.scan({left.data(), gradient ? gradient->data() : nullptr, count}, block,
                    threshold * static_cast<float>(block));
    taken = {count, block, candidates.best(), {}};
    for (const std::uint32_t at : taken.blocks)
      for (std::size_t i = 0; i < taken.size_of(at); ++i) {
        float& number = left[static_cast<std::size_t>(at) * static_cast<std::size_t>(block) + i];
        taken.values.push_back(std::exchange(number, 0.0F));
      }
  }
};

::testing::AssertionResult equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0)
      return ::testing::AssertionFailure() << "number " << i << " is " << a[i] << " and " << b[i];
  return ::testing::AssertionSuccess();
}

class CudaGradientTest : public OnDevice {
protected:
  static void expect_host(device::DeviceGradient& on_device, const OnHost& host) {
    const device::TakenBlocks found = on_device.taken();
    EXPECT_EQ(found.above, std::ssize(host.taken.blocks));
    EXPECT_EQ(found.set.blocks, host.taken.blocks);
    EXPECT_TRUE(equal_bits(found.set.values, host.taken.values));
    EXPECT_TRUE(equal_bits(on_device.left(), host.left));
  }
};

constexpr int kBlocks[] = {1, 2, 4, 8, 16};
/// None, few, some, most; all but zeros; all.
constexpr float kThresholds[] = {10, 0.7F, 0.25F, 0.1F, 0, -1};

TEST_F(CudaGradientTest, TakesWhatAHostTakesOfAGradientAlone) {
  for (const std::size_t count : {1, 3, 5, 15, 16, 17, 511, 4093, 4096, 4097, 21'001}) {
    const auto gradient = some_gradient(count, 10 + count);
    device::CudaGradient on_device{0, static_cast<std::int64_t>(count),
                                   static_cast<std::int64_t>(count)};
    on_device.load(gradient);
    for (const int block : kBlocks)
      for (const float threshold : kThresholds) {
        SCOPED_TRACE(::testing::Message()
                     << count << " numbers, blocks of " << block << " above " << threshold);
        on_device.copy_within();
        on_device.select({block, threshold, ResidualPlace::in_gradient});
        expect_host(on_device, {gradient, nullptr, block, threshold});
      }
  }
}

/// A threshold that is a block's own mean: the last bit of its score decides.
TEST_F(CudaGradientTest, ScoresHaveTheBitsOfAHosts) {
  constexpr std::size_t kBlocksOfEach = 40;
  for (const int block : {2, 4, 8, 16}) {
    const auto width = static_cast<std::size_t>(block);
    const auto count = static_cast<std::int64_t>(kBlocksOfEach * width);
    const auto gradient = some_gradient(kBlocksOfEach * width, 30 + width);
    device::CudaGradient on_device{0, count, count};
    on_device.load(gradient);
    for (std::size_t i = 0; i < kBlocksOfEach; ++i) {
      SCOPED_TRACE(::testing::Message() << "block " << i << " of " << block << " numbers");
      const float score = compress::short_block_score(&gradient[i * width], width, block);
      const float threshold = score / static_cast<float>(block);
      on_device.copy_within();
      on_device.select({block, threshold, ResidualPlace::in_gradient});
      expect_host(on_device, {gradient, nullptr, block, threshold});
    }
  }
}

/// Steps on one residual: what was not sent is there in the next one.
TEST_F(CudaGradientTest, AddsTheGradientToTheResidualAsAHostDoes) {
  for (const std::size_t count : {7, 16, 4099, 13'000}) {
    const auto gradient = some_gradient(count, count);
    std::vector<float> opposite;
    for (const float number : gradient) opposite.push_back(-number);
    device::CudaGradient on_device{0, static_cast<std::int64_t>(count),
                                   static_cast<std::int64_t>(count)};
    on_device.load(gradient);
    for (const int block : kBlocks) {
      on_device.restart();
      std::vector<float> residual(count);
      for (const float threshold : {0.3F, 0.2F, 0.4F, -1.0F}) {
        SCOPED_TRACE(::testing::Message()
                     << count << " numbers, blocks of " << block << " above " << threshold);
        const bool first = threshold == 0.3F || threshold == 0.4F;
        const OnHost host{residual, first ? &gradient : &opposite, block, threshold};
        on_device.select({block, threshold});
        expect_host(on_device, host);
        residual = host.left;
      }
    }
  }
}

/// More tiles than one run of those that are put in order; on the emulator once from the first tile
/// on, once from the last.
TEST_F(CudaGradientTest, KeepsTheOrderOfManyTiles) {
  constexpr std::int64_t kCount = 300 * 4096 + 77;
  const auto gradient = some_gradient(kCount, 3);
  const OnHost host{std::vector<float>(gradient.size()), &gradient, 16, 0.25F};
  device::CudaGradient on_device{0, kCount, kCount};
  for (int time = 0; time < 2; ++time) {
    on_device.load(gradient);
    on_device.select({16, 0.25F});
    expect_host(on_device, host);
  }
}

TEST_F(CudaGradientTest, NothingGetsLostWhereThereIsNoRoom) {
  constexpr std::int64_t kCount = 20'000;
  const auto gradient = some_gradient(kCount, 5);
  for (const auto place : {ResidualPlace::apart, ResidualPlace::in_gradient})
    for (const int block : kBlocks) {
      SCOPED_TRACE(block);
      const OnHost host{gradient, nullptr, block, 0.2F};
      device::CudaGradient on_device{0, kCount, std::ssize(host.taken.values) / 2};
      on_device.load(gradient);
      on_device.select({block, 0.2F, place});
      const device::TakenBlocks found = on_device.taken();
      EXPECT_EQ(found.above, std::ssize(host.taken.blocks));
      EXPECT_TRUE(found.set.blocks.empty());
      const OnHost sum{std::vector<float>(gradient.size()), &gradient, block, 1e9F};
      EXPECT_TRUE(
          equal_bits(on_device.left(), place == ResidualPlace::apart ? sum.left : gradient));
    }
}

TEST_F(CudaGradientTest, RefusesTheFirstNumberThatIsNotFinite) {
  constexpr std::int64_t kCount = 9'003;
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       -std::numeric_limits<float>::infinity()};
  device::CudaGradient on_device{0, kCount, kCount};
  for (const int block : kBlocks)
    for (const std::size_t at : {0, 4'097, 9'002}) {
      auto gradient = some_gradient(kCount, 8);
      gradient[at] = bad[at % 2];
      gradient.back() = bad[0];
      on_device.load(gradient);
      on_device.select({block, 0.3F});
      try {
        static_cast<void>(on_device.taken());
        ADD_FAILURE() << "blocks of " << block << ", number " << at;
      } catch (const compress::NotFinite& refused) {
        EXPECT_EQ(refused.index(), at) << "blocks of " << block;
      }
    }
}

/// As on a host: a sum that is too large is no mistake, and above every limit.
TEST_F(CudaGradientTest, TakesBlocksWhoseSumsOverflow) {
  std::vector<float> gradient(100, 0.1F);
  for (std::size_t i = 32; i < 48; ++i) gradient[i] = 3e38F;
  device::CudaGradient on_device{0, 100, 100};
  on_device.load(gradient);
  on_device.select({16, 1.0F});
  const OnHost host{std::vector<float>(100), &gradient, 16, 1.0F};
  ASSERT_EQ(host.taken.blocks, std::vector<std::uint32_t>{2});
  expect_host(on_device, host);
}

TEST_F(CudaGradientTest, CopiesThroughPinnedMemoryInTurn) {
  const auto gradient = some_gradient(5'000, 2);
  device::CudaGradient on_device{0, 5'000, 16};
  on_device.load(gradient);
  EXPECT_GE(on_device.seconds_of([&] { on_device.copy_out(); }), 0);
  EXPECT_TRUE(equal_bits({on_device.pinned().begin(), on_device.pinned().end()}, gradient));
  on_device.copy_out();
  on_device.finish();
  EXPECT_EQ(on_device.pinned()[7], -gradient[7]);
  on_device.select({1, 10, ResidualPlace::in_gradient});
  static_cast<void>(on_device.taken());
  on_device.copy_in();
  EXPECT_TRUE(equal_bits(on_device.left(), gradient));
}

}  // namespace
}  // namespace longhaul::testing
