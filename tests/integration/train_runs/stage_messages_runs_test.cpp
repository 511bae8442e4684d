// Whole runs of bench_train whose stages send each other activations in formats of their own.
#include "integration/train_runs/train_runs_fixture.hpp"

namespace longhaul::testing {
namespace {

/// Two stages, whose activations and gradients travel as bytes: a number takes 4, 2, or a little
/// more than 1; losses stay near, and bits of f32 the same.
TEST_F(TrainRuns, SendActivationsInFewerBytes) {
  ASSERT_EQ(run(0, words("none,none:activations=f32,none:activations=bf16,none:activations=int8",
                         {"--schedule", "1f1b", "--set", "parallel.stages=2", "--ranks-per-process",
                          "6"})),
            0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 4U);
  const auto bytes = [&](int i) {
    return all[i]["sent"]["between_stages_bytes"].get<std::int64_t>();
  };
  EXPECT_GT(bytes(0), 0);
  EXPECT_EQ(bytes(1), bytes(0));
  EXPECT_EQ(bytes(2), bytes(0) / 2);
  EXPECT_LT(bytes(3), bytes(0) / 4 * 33 / 32 + 1);
  EXPECT_EQ(all[1]["losses"], all[0]["losses"]);
  for (const nlohmann::json& curve : all) {
    EXPECT_EQ(curve["wan"]["between_stages_bytes"], 0) << "each replica is in one site";
    EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>()) << curve["method"];
    EXPECT_EQ(curve["replay"]["largest_difference"].get<double>(), 0) << curve["method"];
  }
  for (const int i : {2, 3}) {
    EXPECT_NE(all[i]["losses"], all[0]["losses"]) << "they are rounded";
    EXPECT_TRUE(all[i]["replicas_equal"].get<bool>());
    EXPECT_NEAR(all[i]["points"].back()[3].get<double>(), all[0]["points"].back()[3].get<double>(),
                0.01 * all[0]["points"].back()[3].get<double>());
  }
}

/// The largest numbers alone, with each feedback and at staleness 0 and 1: other code has the same
/// bits, plans the bytes that travel.
TEST_F(TrainRuns, SendTheLargestActivations) {
  const std::string topk = ":activations=topk:activations_keep=25%";
  ASSERT_EQ(run(0, words(fmt::format("none,none{0}:activations_feedback=none,none{0},"
                                     "none{0}:activations_feedback=residual,stella{0}",
                                     topk),
                         {"--schedule", "1f1b", "--set", "parallel.stages=2", "--ranks-per-process",
                          "6"})),
            0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 5U);
  const auto bytes = [&](std::size_t i) {
    return all[i]["sent"]["between_stages_bytes"].get<double>();
  };
  for (std::size_t i = 1; i < all.size(); ++i) {
    SCOPED_TRACE(all[i]["method"].get<std::string>());
    EXPECT_LT(bytes(i), bytes(0) * 3 / 16 * 1.1) << "3 bytes each of a quarter, and headers";
    EXPECT_TRUE(all[i]["replay"]["losses_equal"].get<bool>());
    EXPECT_TRUE(all[i]["replicas_equal"].get<bool>());
    EXPECT_NE(all[i]["losses"], all[0]["losses"]);
    for (std::size_t j = 1; j < i; ++j) EXPECT_NE(all[i]["losses"], all[j]["losses"]);
  }
  EXPECT_EQ(all[1]["settings"]["activations_feedback"], "none");
  EXPECT_EQ(all[2]["settings"]["activations_keep"], 0.25);
}

/// Activations of other formats under any method: chunks that one rank has after each other hand
/// on what they make as it is, all others round it.
TEST_F(TrainRuns, GetTheNumbersOfOtherCodeOfRoundedActivations) {
  for (const char* const schedule : {"cross-wave", "interleaved-1f1b"}) {
    SCOPED_TRACE(schedule);
    ASSERT_EQ(run(0, words("stella:activations=int8,block:exchange=sites:activations=bf16,"
                           "block:activations=topk:activations_keep=30%,"
                           "powersgd:2:activations=int8,dgc:keep=10%:activations=int8,"
                           "none+hetero",
                           {"--schedule", schedule, "--set", "parallel.stages=2",
                            "--ranks-per-process", "6"})),
              0)
        << output();
    for (const nlohmann::json& curve : curves()) {
      EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>()) << curve["method"];
      EXPECT_TRUE(curve["replicas_equal"].get<bool>()) << curve["method"];
    }
    std::filesystem::remove_all(out());
  }
}

/// What waits of messages between stages, and what their receivers have.
TEST_F(TrainRuns, OfTheLargestActivationsThatWereKilledGoOnToo) {
  const std::string topk = ":activations=topk:activations_keep=25%:activations_feedback=";
  const std::string methods = "none" + topk + "residual,none" + topk + "difference";
  const std::vector<std::string> kept{"--schedule",         "1f1b", "--set", "parallel.stages=2",
                                      "--checkpoint-every", "5"};
  ASSERT_EQ(run(6, words(methods, kept)), 0) << output();
  const nlohmann::json whole = curves();
  std::filesystem::remove_all(out());
  std::vector<std::string> killed = kept;
  killed.insert(killed.end(), {"--fault", "kill@1:3:8"});
  EXPECT_NE(run(6, words(methods, killed)), 0);
  EXPECT_TRUE(std::filesystem::exists(out() + "/5.5.state"));
  std::vector<std::string> resumed = kept;
  resumed.emplace_back("--resume");
  ASSERT_EQ(run(6, words(methods, resumed)), 0) << output();
  const nlohmann::json again = curves();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(again[i]["losses"], whole[i]["losses"]) << whole[i]["method"];
    EXPECT_TRUE(again[i]["replay"]["losses_equal"].get<bool>());
  }
}

}  // namespace
}  // namespace longhaul::testing
