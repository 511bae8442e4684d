#include "scenario/training/read_train.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "scenario/training/training_presets.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Training train_with(const std::string& lines, const std::vector<std::string>& set = {}) {
  return parse_scenario(joined(kLines) + "[train]\n" + lines, "s.toml", set).train;
}

TEST(ReadTrain, HasThePapersDefaults) {
  const Training train = parse_scenario(joined(kLines), "s.toml").train;
  EXPECT_EQ(train.parts, 1);
  EXPECT_TRUE(train.batch.empty());
  EXPECT_EQ(train.staleness, 0);
  EXPECT_EQ(train.serve, Serve::deadline);
  EXPECT_EQ(train.host_threads, 1);
  EXPECT_EQ(train.buffers, 2);
  EXPECT_EQ(train.local_steps, 1);
  EXPECT_EQ(train.gather, GradientGather::none);
  EXPECT_EQ(train.message, std::nullopt);
  EXPECT_EQ(train.lambda, 0);
  EXPECT_EQ(train.compress, GradientCompression{});
  EXPECT_EQ(train.costs, PartCosts{});
  EXPECT_EQ(train.adapt.every, 0);
}

TEST(ReadTrain, ReadsEachKey) {
  const Training train = train_with(
      "parts = 3\nbatch = 20\nstaleness = 1\nserve = \"arrival\"\nhost_threads = 16\n"
      "buffers = 1\nlocal_steps = 20\nmessage = \"2MB\"\npreset = \"ViT_B_16\"\n"
      "stands_for = \"swin-b\"\ntarget = \"loss=2.3\"\nlambda = 5\n"
      "[train.compress]\nmethod = \"topk\"\nkeep = \"0.5%\"\nblock = 8\nfeedback = false\n"
      "values = \"bf16\"\nindex = \"gaps\"\nexchange = \"sites\"\nshare = \"each\"\n"
      "[train.costs]\ncopy_out = \"1ms\"\ncompress = [\"1ms\", \"2ms\", \"3ms\"]\n"
      "[train.adapt]\nevery = 50\nestimate = \"links\"\nlambda = 2\nscale = 50\n"
      "probes = \"probes.csv\"\nchanges = \"rate\"\nmost_batch = 64\n");
  EXPECT_EQ(train.parts, 3);
  EXPECT_THAT(train.batch, ElementsAre(20));
  EXPECT_EQ(train.staleness, 1);
  EXPECT_EQ(train.serve, Serve::arrival);
  EXPECT_EQ(train.host_threads, 16);
  EXPECT_EQ(train.buffers, 1);
  EXPECT_EQ(train.local_steps, 20);
  EXPECT_EQ(train.message, Bytes{2'000'000});
  EXPECT_EQ(train.preset, "vit-b-16");
  EXPECT_EQ(train.stands_for, "swin-b");
  EXPECT_EQ(train.target, (TrainingTarget{TargetKind::loss, 2.3}));
  EXPECT_EQ(train.compress.method, CompressMethod::topk);
  EXPECT_EQ(train.compress.keep, 0.005);
  EXPECT_EQ(train.compress.block, 8);
  EXPECT_FALSE(train.compress.feedback);
  EXPECT_EQ(train.compress.values, SetValues::bf16);
  EXPECT_EQ(train.compress.index, SetIndex::gaps);
  EXPECT_EQ(train.compress.exchange, SetExchange::sites);
  EXPECT_EQ(train.compress.share, KeptShare::each);
  EXPECT_THAT(train.costs.copy_out, ElementsAre(1ms));
  EXPECT_THAT(train.costs.compress, ElementsAre(1ms, 2ms, 3ms));
  EXPECT_TRUE(train.costs.merge.empty());
  EXPECT_EQ(train.adapt.every, 50);
  EXPECT_EQ(train.adapt.estimate, BandwidthEstimate::links);
  EXPECT_EQ(train.adapt.lambda, 2);
  EXPECT_EQ(train.adapt.scale, 50);
  EXPECT_EQ(train.adapt.probes, "probes.csv");
  EXPECT_EQ(train.adapt.changes, AdaptedSettings::rate);
  EXPECT_EQ(train.adapt.most_batch, 64);
}

TEST(ReadTrain, FindsProbesBesideTheScenario) {
  const std::string text = joined(kLines) + "[train.adapt]\nprobes = \"p.csv\"\n";
  EXPECT_EQ(parse_scenario(text, "there/s.toml").train.adapt.probes, "there/p.csv");
  const std::string whole = joined(kLines) + "[train.adapt]\nprobes = \"/tmp/p.csv\"\n";
  EXPECT_EQ(parse_scenario(whole, "there/s.toml").train.adapt.probes, "/tmp/p.csv");
}

TEST(ReadTrain, TakesOverrides) {
  const std::vector<std::string> set{"train.staleness=1", "train.compress.keep=2%",
                                     "train.costs.merge=4ms", "train.target=error=5%"};
  const Training train = train_with("", set);
  EXPECT_EQ(train.staleness, 1);
  EXPECT_EQ(train.compress.keep, 0.02);
  EXPECT_THAT(train.costs.merge, ElementsAre(4ms));
  EXPECT_EQ(train.target, (TrainingTarget{TargetKind::error, 0.05}));
}

TEST(ReadTrain, IsScaledAsItIsPlayed) {
  const Scenario scenario = parse_scenario(
      joined(kLines) + "[train.costs]\nmerge = \"4ms\"\n[run]\ntime_scale = 0.5\n", "s.toml");
  EXPECT_THAT(scenario.as_played().train.costs.merge, ElementsAre(2ms));
}

TEST(ReadTrain, ReadsMeasuredCosts) {
  const std::string held = joined(kLines) +
                           "[train]\nparts = 2\n[train.costs]\nfile = \"c.toml\"\nmerge = \"9ms\"\n"
                           "[profiles]\n\"c.toml\" = \"\"\"merge = \"1ms\"\n"
                           "compress = [\"2ms\", \"3ms\"]\"\"\"\n";
  const Training train = parse_scenario(held, "s.toml").train;
  EXPECT_THAT(train.costs.merge, ElementsAre(9ms));
  EXPECT_THAT(train.costs.compress, ElementsAre(2ms, 3ms));
  EXPECT_THAT(complaint(joined(kLines) + "[train.costs]\nfile = \"none.toml\"\n"),
              HasSubstr("none.toml"));
}

TEST(ReadTrain, RefusesInOneLine) {
  const auto said = [](const std::string& lines) {
    return complaint(joined(kLines) + "[train]\n" + lines);
  };
  EXPECT_THAT(said("parts = 0"), StartsWith("s.toml:17:9: train.parts = 0 is out of range"));
  EXPECT_THAT(said("parts = 256"), HasSubstr("1 to 255"));
  EXPECT_THAT(said("staleness = -1"), HasSubstr("out of range"));
  EXPECT_THAT(said("buffers = 3"), HasSubstr("out of range"));
  EXPECT_THAT(said("serve = \"order\""), HasSubstr("arrival"));
  EXPECT_THAT(said("preset = \"vit-b\""), HasSubstr("vit-b-16"));
  EXPECT_THAT(said("batch = [1, 2]"),
              HasSubstr("train.batch has 2 counts (parallel.replicas = 1)"));
  EXPECT_THAT(said("message = \"0B\""), HasSubstr("train.message holds nothing"));
  EXPECT_THAT(said("part = 3"), HasSubstr("Did you mean \"parts\"?"));
  for (const char* target : {"loss", "loss=", "los=2", "loss=-1", "loss=2x", "=2", "error=0"})
    EXPECT_THAT(said("target = \"" + std::string{target} + "\""), HasSubstr("is no target"));
}

TEST(ReadTrain, RefusesBelowItsTables) {
  const auto said = [](const std::string& lines) { return complaint(joined(kLines) + lines); };
  const auto keep = [&](const std::string& value) {
    return said("[train.compress]\nkeep = " + value);
  };
  for (const char* value : {"0", "1.01", "-0.5", "\"0%\"", "\"101%\""})
    EXPECT_THAT(keep(value), HasSubstr("at most all")) << value;
  for (const char* value : {"\"%\"", "\"one%\"", "\"1 %\"", "\" 1%\"", "\"nan%\"", "\"0x1%\""})
    EXPECT_THAT(keep(value), HasSubstr("is no share")) << value;
  for (const char* value : {"1", "\"100%\"", "\"0.25\"", "\"1e-3\""})
    EXPECT_EQ(keep(value), "accepted") << value;
  EXPECT_THAT(said("[train.compress]\nblock = 3"), HasSubstr("Use 1, 2, 4, 8 or 16."));
  for (const char* block : {"1", "2", "4", "8", "16"})
    EXPECT_EQ(said("[train.compress]\nblock = " + std::string{block}), "accepted");
  EXPECT_THAT(said("[train.compress]\nmethod = \"top-k\""), HasSubstr("Did you mean \"topk\"?"));
  EXPECT_THAT(said("[train.compress]\nfeed = 2"), HasSubstr("(in train.compress)"));
  EXPECT_THAT(said("[train.costs]\nmerge = [\"1ms\", \"2ms\"]"),
              HasSubstr("train.costs.merge has 2 values (train.parts = 1)"));
  EXPECT_THAT(said("[train.costs]\nmerge = 3"), HasSubstr("it has no unit"));
  EXPECT_THAT(said("[train.adapt]\nestimate = \"link\""), HasSubstr("Did you mean \"links\"?"));
  EXPECT_THAT(said("[train.adapt]\nevery = -1"), HasSubstr("train.adapt.every = -1"));
  EXPECT_THAT(said("[train.adapt]\nlambda = -0.5"), HasSubstr("train.adapt.lambda = -0.5"));
  EXPECT_THAT(said("[train.adapt]\nmost_batch = 0"), HasSubstr("train.adapt.most_batch = 0"));
  EXPECT_THAT(said("[train.adapt]\nscale = -1"), HasSubstr("train.adapt.scale = -1"));
  EXPECT_THAT(said("[train.adapt]\nchanges = \"batch\""), HasSubstr("both"));
  EXPECT_THAT(said("[train.adapt]\nprobes = \"\""), HasSubstr("names no file"));
}

/// Two nodes of two GPUs in one datacenter and one GPU in another.
std::string on_gpus(const std::string& train, const std::string& costs = "") {
  return "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 5\n"
         "gradient_sync = \"compressed\"\n[train]\n" +
         train + costs +
         "[[datacenter]]\nname = \"lab\"\nreplicas = \"0-3\"\ngpus_per_node = 2\n"
         "gpu = [\"RTX 4090\", \"rtx-2080-ti\"]\n"
         "[[datacenter]]\nname = \"cloud\"\nreplicas = [4]\ngpu = \"v100\"\n"
         "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\n";
}

std::string pipeline_with(const std::string& lines) {
  return R"([model]
layers = 4
hidden = 64
intermediate = 172
heads = 4
vocabulary = 256
sequence_length = 64
microbatch_size = 2
[parallel]
stages = 2
replicas = 2
microbatches = 4
gradient_sync = "compressed"
[[datacenter]]
name = "west"
stages = "0"
[[datacenter]]
name = "east"
stages = "1"
[[link]]
between = ["west", "east"]
latency = "5ms"
transfer_ratio = 2.0
)" + lines;
}

/// Messages are as long as what travels; links keep the rates that they have of messages as they
/// are.
TEST(ReadTrain, MessagesBetweenStagesAreAsLongAsWhatTravels) {
  const Scenario plain = parse_scenario(pipeline_with(""), "s.toml");
  const auto message = [&](const std::string& lines) {
    const Scenario scenario = parse_scenario(pipeline_with("[train]\n" + lines), "s.toml");
    EXPECT_EQ(scenario.links.front().bandwidth, plain.links.front().bandwidth);
    return scenario.costs.message.front().count();
  };
  const std::int64_t numbers = 64 * 2 * 64;
  EXPECT_EQ(plain.costs.message.front().count(), 2 * numbers);
  EXPECT_EQ(message("activations = \"f32\"\n"), 4 * numbers);
  EXPECT_EQ(message("activations = \"bf16\"\n"), 2 * numbers);
  EXPECT_EQ(message("activations = \"int8\"\n"), numbers + 4 * numbers / 128);
  EXPECT_EQ(message("activations = \"topk\"\n"), 12 + 3 * (numbers / 10)) << "a tenth, by default";
  EXPECT_EQ(message("activations = \"topk\"\nactivations_keep = \"25%\"\n"), 12 + 3 * numbers / 4);
  EXPECT_EQ(message("activations = \"topk\"\nbatch = 8\n"), 12 + 3 * (4 * numbers / 10));
  const auto activations = parse_scenario(pipeline_with("[train]\nactivations = \"topk\"\n"
                                                        "activations_feedback = \"residual\"\n"),
                                          "s.toml")
                               .train.activations;
  EXPECT_EQ(activations,
            (ActivationCompression{ActivationFormat::topk, 0.1, ActivationFeedback::residual}));
}

TEST(ReadTrain, RefusesActivationsThatCannotBe) {
  const auto refused = [](const std::string& text, const char* why) {
    EXPECT_THAT([&] { (void)parse_scenario(text, "s.toml"); },
                ::testing::ThrowsMessage<Error>(HasSubstr(why)));
  };
  refused(pipeline_with("[train]\nactivations = \"int4\"\n"), "int4");
  refused(pipeline_with("[train]\nactivations = \"topk\"\nactivations_keep = 0\n"),
          "activations_keep = 0 is out of range");
  refused(pipeline_with("[train]\nactivations = \"int8\"\nactivations_keep = 0.1\n"),
          "activations_keep changes nothing without train.activations = \"topk\"");
  refused(pipeline_with("[train]\nactivations_feedback = \"none\"\n"),
          "activations_feedback changes nothing");
  refused(pipeline_with("[train]\nactivations = \"topk\"\nactivations_feedback = \"sum\"\n"),
          "sum");
  refused(pipeline_with("[train]\nactivations = \"topk\"\n[costs]\nmessage = \"1MB\"\n"),
          "both say how long messages between stages are");
  refused(joined(kLines) + "[train]\nactivations = \"topk\"\n", "without a [model]");
  std::string other = pipeline_with("[train]\nactivations = \"topk\"\n");
  other.replace(other.find("\"compressed\""), 12, "\"all-reduce\"");
  refused(other, "gradient_sync = \"compressed\" alone");
}

TEST(ReadTrain, APresetSaysWhatBatchesTakeOnGpus) {
  const Scenario scenario =
      parse_scenario(on_gpus("preset = \"vit-b-16\"\nbatch = [30, 28, 20, 10, 40]\n"), "s.toml");
  EXPECT_THAT(scenario.gpus_of_ranks(),
              ElementsAre("rtx4090", "rtx4090", "rtx2080ti", "rtx2080ti", "v100"));
  const auto forward = [&](int replica) {
    return scenario.costs_of(ReplicaId{replica}).forward[0];
  };
  EXPECT_EQ(forward(0), 33'333'333ns);  // a third of 30 / 300 s
  EXPECT_EQ(forward(1), 31'111'111ns);
  EXPECT_EQ(forward(2), 67'340'067ns);  // a third of 20 / 99 s
  EXPECT_EQ(forward(3), forward(2)) << "below alpha a batch takes as long as alpha";
  EXPECT_EQ(forward(4), 149'644'594ns) << "a third of 40 / 89.1 s";
  const Costs& first = scenario.costs_of(ReplicaId{0});
  EXPECT_EQ(first.forward[0] + first.backward[0], 100ms);
  EXPECT_EQ(first.dgrad[0], 33'333'334ns) << "half of 66'666'667 ns, and the odd one";
  EXPECT_EQ(first.wgrad[0], 33'333'333ns);
  EXPECT_EQ(first.weights[0], Bytes{352'000'000});
  EXPECT_EQ(gradient_numbers(scenario, first.weights[0]), 88'000'000);
}

/// Layers that are computed for real beside GPUs whose pace they keep.
TEST(ReadTrain, TakesTimesOfGpusBesideAModelThatStatesNoRate) {
  const std::string model =
      "[model]\nlayers = 4\nhidden = 16\nintermediate = 32\nheads = 2\nvocabulary = 32\n"
      "sequence_length = 8\nmicrobatch_size = 1\n";
  const std::string preset = "preset = \"vit-b-16\"\nbatch = [30, 28, 20, 10, 40]\n";
  const Scenario alone = parse_scenario(on_gpus(preset), "s.toml");
  const Scenario beside = parse_scenario(on_gpus(preset, model), "s.toml");
  ASSERT_TRUE(beside.model.has_value());
  for (const ReplicaId replica : alone.replica_ids()) {
    EXPECT_EQ(beside.costs_of(replica).forward, alone.costs_of(replica).forward);
    EXPECT_EQ(beside.costs_of(replica).backward, alone.costs_of(replica).backward);
  }
  EXPECT_NE(beside.costs.weights, alone.costs.weights) << "sizes are the model's";
  const Scenario stated =
      parse_scenario(on_gpus(preset, model + "achieved_flops = 1e9\n"), "s.toml");
  EXPECT_NE(stated.costs_of(ReplicaId{0}).forward, alone.costs_of(ReplicaId{0}).forward);
}

TEST(ReadTrain, WithoutABatchAGpuTakesItsOwn) {
  const Scenario scenario = parse_scenario(on_gpus("preset = \"vit-b-16\"\n"), "s.toml");
  EXPECT_EQ(scenario.costs_of(ReplicaId{0}).forward[0], 31'111'111ns);  // 28 / 300 s
  EXPECT_EQ(scenario.costs_of(ReplicaId{2}).forward[0], 67'340'067ns);
}

/// StellaTrain 4.1: in proportion to the speed of GPUs, as many samples in all.
TEST(ReadTrain, DividesBatchesByThroughput) {
  const std::string equal = "preset = \"vit-b-16\"\nbatch = 20\n";
  const Scenario hetero = parse_scenario(on_gpus(equal + "hetero = true\n"), "s.toml");
  EXPECT_THAT(hetero.train.batch, ElementsAre(34, 34, 11, 11, 10));
  EXPECT_EQ(hetero.costs_of(ReplicaId{0}).forward[0], 37'777'777ns) << "a third of 34 / 300 s";
  EXPECT_EQ(parse_scenario(hetero.text, "s.toml").train.batch, hetero.train.batch);
  const Scenario listed = parse_scenario(
      on_gpus("preset = \"vit-b-16\"\nbatch = [96, 1, 1, 1, 1]\nhetero = true\n"), "s.toml");
  EXPECT_EQ(listed.train.batch, hetero.train.batch) << "their sum alone counts";
  EXPECT_THAT(parse_scenario(on_gpus(equal + "hetero = false\n"), "s.toml").train.batch,
              ElementsAre(20, 20, 20, 20, 20));
  // Stated times are of equal batches; those of the slower site grow as its batch does.
  const std::string stated = on_gpus(equal + "hetero = true\n", "[costs]\nforward = \"10ms\"\n");
  const std::vector<std::string> slow{"datacenter.cloud.speed=0.25"};
  const Scenario timed = parse_scenario(stated, "s.toml", slow);
  EXPECT_THAT(timed.train.batch, ElementsAre(24, 24, 23, 23, 6));
  EXPECT_EQ(timed.costs_of(ReplicaId{0}).forward[0], 12ms);
  EXPECT_EQ(timed.costs_of(ReplicaId{4}).forward[0], 12ms) << "40 ms for 20 samples";
}

TEST(ReadTrain, DividesAllSamplesAndGivesEachOne) {
  const std::vector<double> speeds{1000, 1, 1}, equal{2, 2, 2};
  EXPECT_THAT(divided_by_throughput(5, speeds), ElementsAre(3, 1, 1));
  EXPECT_THAT(divided_by_throughput(3, speeds), ElementsAre(1, 1, 1));
  EXPECT_THAT(divided_by_throughput(8, equal), ElementsAre(3, 3, 2));
  EXPECT_THROW((void)divided_by_throughput(2, speeds), Error);
  EXPECT_THAT(complaint(on_gpus("preset = \"vit-b-16\"\nhetero = true\n")),
              HasSubstr("train.hetero = true without train.batch"));
  EXPECT_THAT(complaint(on_gpus("preset = \"vit-b-16\"\nbatch = [1, 1, 1, 1, 1]\nhetero = true\n"
                                "[train.adapt]\nevery = 5\n")),
              HasSubstr("the controller chooses the batches"));
}

TEST(ReadTrain, CostsReplaceAPresetsTimes) {
  const Scenario scenario =
      parse_scenario(on_gpus("preset = \"vit-b-16\"\n", "[costs]\nforward = \"10ms\"\n"), "s.toml");
  EXPECT_FALSE(scenario.has_uneven_replicas());
  EXPECT_EQ(scenario.costs.forward[0], 10ms);
  EXPECT_EQ(scenario.costs.backward[0], 20ms);
  EXPECT_EQ(scenario.costs.weights[0], Bytes{352'000'000});
}

TEST(ReadTrain, RefusesGpusThatItDoesNotKnow) {
  std::string text = on_gpus("preset = \"vit-b-16\"\n");
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    return complaint(changed);
  };
  EXPECT_EQ(complaint(text), "accepted");
  EXPECT_THAT(with("\"v100\"", "\"v10\""), HasSubstr("Did you mean \"v100\"?"));
  EXPECT_THAT(with("\"v100\"", "[]"), HasSubstr("names no GPU"));
  EXPECT_THAT(with("[\"RTX 4090\", \"rtx-2080-ti\"]", "[\"rtx4090\"]"),
              AllOf(HasSubstr("names 1 GPUs"), HasSubstr("has 2 nodes")));
  EXPECT_THAT(with("gpu = \"v100\"\n", ""), HasSubstr("what a block costs is unknown"))
      << "a datacenter without gpu leaves the times open";
}

// 2^62 ns are 146 years.
TEST(ReadTrain, CountsInTheLongestIteration) {
  const auto with = [](const std::string& train, const std::vector<std::string>& set = {}) {
    return complaint(on_gpus("preset = \"vit-b-16\"\nparts = 100\n" + train), set);
  };
  EXPECT_EQ(with(""), "accepted");
  // 125 B/s: 100 parts of 10 MB between 25 pairs take 6 years, of 1 GB 634.
  const std::vector<std::string> slow{"link.bandwidth=1kbps"};
  EXPECT_EQ(with("message = \"10MB\"\n", slow), "accepted");
  EXPECT_THAT(with("message = \"1GB\"\n", slow), HasSubstr("146 is the limit"));
  EXPECT_THAT(with("[train.costs]\nmerge = \"10000h\"\n"), HasSubstr("146 is the limit"));
}

// StellaTrain, table 2 and section 5.
TEST(TrainingPresets, AreThePapers) {
  EXPECT_EQ(find_training_preset("resnet152")->parameters, 58'000'000);
  EXPECT_EQ(find_training_preset("SWIN_B")->parameters, 139'000'000);
  EXPECT_EQ(find_training_preset("gpt2")->parameters, 123'600'000);
  EXPECT_EQ(find_training_preset("gpt3"), nullptr);
  const GpuThroughput slow = throughput_of(*find_training_preset("resnet152"), "rtx2080ti");
  EXPECT_EQ(slow.time_of(16), Duration{271'186'441}) << "16 images take 32/118 s: 59 a second";
  EXPECT_EQ(throughput_of(*find_training_preset("vit-b-16"), "rtx3090").beta, 148);
}

}  // namespace
}  // namespace longhaul::scenario
