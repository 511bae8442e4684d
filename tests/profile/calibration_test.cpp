#include "profile/calibration.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/row_memory.hpp"

namespace longhaul::profile {
namespace {

TEST(Calibration, ReadsBackWhatItWrote) {
  MachineCalibration machine;
  machine.low = 0.9;
  machine.high = 1.25;
  machine.values[Parameter::matmul_rate] = 0.875;
  machine.fitted[static_cast<std::size_t>(Parameter::matmul_rate)] = true;
  const Calibration calibration{{"selene", machine}};
  const Calibration back = read_calibration(to_text(calibration), "cal.toml");
  ASSERT_TRUE(back.contains("selene"));
  EXPECT_EQ(back.at("selene").values, machine.values);
  EXPECT_EQ(back.at("selene").fitted, machine.fitted);
  EXPECT_EQ(back.at("selene").high, 1.25);
}

TEST(Calibration, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW((void)read_calibration("[selen]\nlow = 0.9\nhigh = 1.1\n", "c"), Error);
  EXPECT_THROW((void)read_calibration("[selene]\nlow = 0.9\n", "c"), Error);
  EXPECT_THROW((void)read_calibration("[selene]\nlow = 0.9\nhigh = 1.1\n[selene.parameters]\n"
                                      "matmul_rate = 7\n",
                                      "c"),
               Error);
}

TEST(RowMemory, CountsSixteenBytesAWeightAndDividesWhatIsSharded) {
  TrainingRow row;
  row.hidden = 1024;
  row.intermediate = 4096;
  row.heads = row.kv_heads = 16;
  row.layers = 24;
  row.vocabulary = 50257;
  row.sequence = 1024;
  row.data = 8;
  row.global_batch = 8;
  const double weights = 24 * row.layer_weights() + 50257.0 * 1024;
  const RowMemory plain = memory_of(row);
  EXPECT_NEAR(plain.weights + plain.optimizer, 16 * weights, 1);
  EXPECT_NEAR(plain.activations, 24.0 * 1024 * 1024 * (34 + 5.0 * 16 * 1024 / 1024), 1);
  row.sharding = ShardingKind::zero3;
  EXPECT_NEAR(memory_of(row).weights + memory_of(row).optimizer, 2 * weights, 1);
  row.recompute = RecomputeKind::full;
  EXPECT_NEAR(memory_of(row).activations, 24.0 * 1024 * 1024 * 2, 1);
}

}  // namespace
}  // namespace longhaul::profile
