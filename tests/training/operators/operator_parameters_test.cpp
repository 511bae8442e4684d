#include "training/operators/operator_parameters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::training {
namespace {

/// Four heads of two numbers, two of keys and values.
constexpr nn::ModelShape kShape{.batch = 1,
                                .sequence = 6,
                                .hidden = 8,
                                .intermediate = 6,
                                .heads = 4,
                                .kv_heads = 2,
                                .vocabulary = 5,
                                .layers = 3};

OperatorParameter parameter(const char* name, int place) {
  Operator each;
  each.name = name;
  each.layer = 1;
  return parameter_of(each, kShape, {2, place, false});
}

std::vector<std::size_t> numbers_of(const OperatorParameter& parameter) {
  std::vector<std::size_t> numbers;
  for (const ShardRange& range : parameter.ranges)
    for (std::size_t i = 0; i < range.count; ++i) numbers.push_back(range.first + i);
  return numbers;
}

// Queries 0-63, keys 64-95, values 96-127, 8 numbers a row: heads 2 and 3, key head 1.
TEST(OperatorParameters, HeadsAreRows) {
  const OperatorParameter own = parameter("qkv", 1);
  EXPECT_EQ(own.name, "layer 1 attention.qkv");
  EXPECT_EQ(own.whole, 128U);
  ASSERT_EQ(own.ranges.size(), 3U);
  EXPECT_EQ(own.ranges[0].first, 32U);
  EXPECT_EQ(own.ranges[1].first, 80U);
  EXPECT_EQ(own.ranges[2].first, 112U);
  EXPECT_EQ(own.count(), 64U);
}

TEST(OperatorParameters, TheRanksHoldEachNumberOnce) {
  for (const char* name : {"qkv", "output", "gate_up", "down"}) {
    std::vector<std::size_t> all = numbers_of(parameter(name, 0));
    const std::vector<std::size_t> others = numbers_of(parameter(name, 1));
    all.insert(all.end(), others.begin(), others.end());
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), parameter(name, 0).whole) << name;
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i) << name;
  }
}

TEST(OperatorParameters, EndsAndNormalizationsAreWhole) {
  for (const char* name : {"embedding", "attention_norm", "feedforward_norm", "head_norm", "head"})
    EXPECT_TRUE(parameter(name, 1).is_whole()) << name;
  EXPECT_EQ(parameter("swiglu", 0).count(), 0U);
}

TEST(OperatorParameters, WhatDoesNotDivideIsRefused) {
  Parallel parallel;
  parallel.tensor = 4;
  try {
    check_tensor_ranks(kShape, parallel);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("does not divide 2 key and value heads"));
  }
}

}  // namespace
}  // namespace longhaul::training
