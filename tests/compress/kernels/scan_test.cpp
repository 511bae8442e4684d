#include "compress/kernels/scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "compress/kernels/cpu_level.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

struct Scan {
  std::vector<float> numbers, scores;
  std::vector<std::uint32_t> blocks;
  bool finite = false;
  bool operator==(const Scan&) const = default;
};

Scan scan_at(CpuLevel level, int block, std::vector<float> numbers, const float* addend,
             float limit) {
  const LimitedCpuLevel limited{level};
  Scan result{std::move(numbers), std::vector<float>(kBlocksAtOnce),
              std::vector<std::uint32_t>(kBlocksAtOnce), false};
  Found found{result.scores.data(), result.blocks.data()};
  result.finite = scan(block,
                       {result.numbers.data(), addend,
                        result.numbers.size() / static_cast<std::size_t>(block), 1000},
                       limit, found);
  result.scores.resize(found.size);
  result.blocks.resize(found.size);
  return result;
}

TEST(Scan, FindsBlocksAboveTheLimit) {
  const Scan found = scan_at(CpuLevel::plain, 2, {3, -1, 0.5, 0.5, -2, 2, 0, 1}, nullptr, 1);
  EXPECT_EQ(found.blocks, (std::vector<std::uint32_t>{1000, 1002}));
  EXPECT_EQ(found.scores, (std::vector<float>{4, 4}));
}

/// Every level that this machine has, with equal bits: scores, sums and what is found.
TEST(Scan, GivesEqualBitsAtEveryLevel) {
  for (const int block : {1, 2, 4, 8, 16})
    for (const std::size_t blocks : {0U, 1U, 7U, 8U, 9U, 64U, 511U, 2048U})
      for (const bool adds : {false, true}) {
        const std::size_t count = blocks * static_cast<std::size_t>(block);
        const std::vector<float> numbers = gradient_of(count, blocks + 1);
        const std::vector<float> addend = gradient_of(count, blocks + 2);
        const float* const added = adds ? addend.data() : nullptr;
        for (const float limit : {static_cast<float>(block), -1.0F}) {  // some, and all of them
          const Scan plain = scan_at(CpuLevel::plain, block, numbers, added, limit);
          EXPECT_TRUE(plain.finite);
          for (const CpuLevel level : {CpuLevel::avx2, CpuLevel::avx512})
            EXPECT_EQ(scan_at(level, block, numbers, added, limit), plain)
                << to_string(level) << ", " << blocks << " blocks of " << block;
        }
      }
}

TEST(Scan, SeesWhatIsNoFiniteNumber) {
  for (const CpuLevel level : every<CpuLevel>())
    for (const int block : {1, 2, 4, 8, 16})
      for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()})
        for (const std::size_t place : {0U, 77U, 159U}) {
          std::vector<float> numbers(160, 1);
          numbers[place] = bad;
          EXPECT_FALSE(scan_at(level, block, numbers, nullptr, 1e9F).finite)
              << to_string(level) << " " << block << " " << place;
        }
}

TEST(ShortBlock, IsScaledUpToAWholeOne) {
  const std::vector<float> numbers{1, -3};
  EXPECT_EQ(short_block_score(numbers.data(), 2, 16), 32);
  EXPECT_EQ(short_block_score(numbers.data(), 1, 4), 4);
  EXPECT_EQ(short_block_score(numbers.data(), 2, 2), 4);
}

}  // namespace
}  // namespace longhaul::compress::test
