#include "harness/options/compute_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "harness/options/pipeline_options.hpp"

namespace longhaul::testing {
namespace {

using harness::ComputeOptions;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ComputeOptions, BecomeSettings) {
  harness::ComputeOptions options;
  EXPECT_FALSE(harness::compute_settings_of(options).real);
  options = {"real", "cpu", "sgd", 0.25, "first"};
  const harness::ComputeSettings settings = harness::compute_settings_of(options);
  EXPECT_TRUE(settings.real);
  EXPECT_EQ(settings.optimizer.kind, nn::OptimizerKind::sgd);
  EXPECT_EQ(settings.optimizer.learning_rate, 0.25F);
  EXPECT_EQ(settings.checks, harness::GradientChecks::first);
}

TEST(ComputeOptions, RefuseWhatIsNoChoice) {
  const auto refused = [](const harness::ComputeOptions& options, const char* says) {
    EXPECT_THAT([&] { (void)harness::compute_settings_of(options); },
                ThrowsMessage<Error>(HasSubstr(says)));
  };
  refused({"maybe", "cpu", "sgd", 0.1, ""}, "--compute maybe is neither timed nor real");
  refused({"real", "tpu", "sgd", 0.1, ""}, "--device tpu is neither cpu nor cuda");
  refused({"real", "cpu", "lion", 0.1, ""}, "--optimizer lion is neither sgd nor adamw");
  refused({"real", "cpu", "sgd", 0, ""}, "--learning-rate 0 is not positive");
  refused({"real", "cpu", "sgd", 1e39, ""}, "--learning-rate 1e+39 is no number of fp32");
  refused({"real", "cpu", "sgd", 1e-50, ""}, "--learning-rate 1e-50 is no number of fp32");
  refused({"real", "cpu", "sgd", 0.1, "some"}, "--check-gradients some is neither all, first nor");
}

TEST(ComputeOptions, DoNotGoOnWithWeightsThatAreGone) {
  harness::PipelineOptions options;
  options.compute.compute = "real";
  options.resume = true;
  options.out = "out";
  EXPECT_THAT([&] { (void)harness::settings_of(options); },
              ThrowsMessage<Error>(HasSubstr("--resume cannot go on with --compute real")));
}

TEST(ComputeOptions, HaveNoWeightToChangeWhereBlocksAreTimed) {
  harness::PipelineOptions options;
  options.fault = "perturb@1:0:2";
  EXPECT_THAT([&] { (void)harness::settings_of(options); },
              ThrowsMessage<Error>(HasSubstr("timed blocks have no weights")));
  options.compute.compute = "real";
  EXPECT_EQ(harness::settings_of(options).engine.fault->kind, engine::FaultKind::perturb);
}

}  // namespace
}  // namespace longhaul::testing
