#include "scenario/files/operators_table.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// d = 4, MLP 6, 2 heads of which 1 has keys (so 8 for Q, K and V), 10 words; 3 tokens.
Model model_of(int layers) {
  Model model;
  model.layers = layers;
  model.hidden = 4;
  model.intermediate = 6;
  model.heads = 2;
  model.kv_heads = 1;
  model.vocabulary = 10;
  model.sequence_length = 3;
  return model;
}

const std::string kHeader =
    "part,block,operator,shape,type,calls,n,median_ns,low_ns,high_ns,min_ns,flops,bytes\n";

std::string call(const std::string& part, const std::string& block, const std::string& operation,
                 const std::string& shape, int calls, int median) {
  return part + "," + block + "," + operation + "," + shape + ",f32," + std::to_string(calls) +
         ",9," + std::to_string(median) + ",,,1,0,0\n";
}

/// What bench_profile writes for three layers; in block D of the layer two products have one size.
std::string table() {
  std::string text = kHeader;
  text += call("embedding", "F", "embed", "rows=3 width=4", 1, 7);
  text += call("embedding", "W", "embed_gradient", "rows=3 width=4", 1, 9);
  text += call("layer", "F", "rms_norm", "rows=3 width=4", 2, 10);
  text += call("layer", "F", "gemm", "m=3 n=8 k=4 nt", 1, 100);
  text += call("layer", "F", "rotary", "batch=1 heads=2", 1, 3);
  text += call("layer", "F", "attention", "batch=1 heads=2", 1, 50);
  text += call("layer", "F", "copy", "count=12", 2, 4);
  text += call("layer", "F", "gemm", "m=3 n=4 k=4 nt add", 1, 60);
  text += call("layer", "F", "gemm", "m=3 n=12 k=4 nt", 1, 120);
  text += call("layer", "F", "swiglu", "rows=3 width=6", 1, 11);
  text += call("layer", "F", "gemm", "m=3 n=4 k=6 nt add", 1, 70);
  text += call("layer", "D", "gemm", "m=3 n=6 k=4 nn", 1, 71);
  text += call("layer", "D", "swiglu_gradient", "rows=3 width=6", 1, 13);
  text += call("layer", "D", "gemm", "m=3 n=4 k=12 nn", 1, 121);
  text += call("layer", "D", "rms_norm_input_gradient", "rows=3 width=4", 2, 5);
  text += call("layer", "D", "rms_norm_weight_gradient", "rows=3 width=4", 2, 6);
  text += call("layer", "D", "gemm", "m=3 n=4 k=4 nn", 1, 61);
  text += call("layer", "D", "attention_gradient", "batch=1 heads=2", 1, 90);
  text += call("layer", "D", "gemm", "m=3 n=4 k=8 nn", 1, 101);
  for (const char* size :
       {"m=4 n=6 k=3 tn add", "m=12 n=4 k=3 tn add", "m=4 n=4 k=3 tn add", "m=8 n=4 k=3 tn add"})
    text += call("layer", "W", "gemm", size, 1, 40);
  text += call("layer", "update", "adamw", "count=9", 1, 1000);
  text += call("head", "F", "rms_norm", "rows=3 width=4", 1, 10);
  text += call("head", "F", "gemm", "m=3 n=10 k=4 nt", 1, 200);
  text += call("head", "F", "cross_entropy", "rows=3 width=10", 1, 21);
  text += call("head", "D", "gemm", "m=3 n=4 k=10 nn", 1, 201);
  text += call("head", "D", "rms_norm_input_gradient", "rows=3 width=4", 1, 12);
  text += call("head", "W", "gemm", "m=10 n=4 k=3 tn add", 1, 202);
  return text;
}

std::vector<std::string> times(const std::vector<Operator>& operators, Duration Operator::*which) {
  std::vector<std::string> text;
  for (const Operator& each : operators)
    text.push_back(each.name + " " + std::to_string((each.*which).count()));
  return text;
}

TEST(OperatorsTable, GivesTheOperatorsOfAModelTheirMeasuredTimes) {
  const auto all = read_operators_table(table(), "operators.csv", model_of(3));
  EXPECT_THAT(times(all, &Operator::forward),
              ElementsAre("embedding 7", "attention_norm 10", "qkv 100", "attention 53",
                          "output 60", "feedforward_norm 10", "gate_up 120", "swiglu 11", "down 70",
                          "rest 8", "head_norm 10", "head 200", "loss 21"));
  EXPECT_THAT(times(all, &Operator::dgrad),
              ElementsAre("embedding 0", "attention_norm 11", "qkv 101", "attention 90",
                          "output 61", "feedforward_norm 11", "gate_up 121", "swiglu 13", "down 71",
                          "rest 0", "head_norm 12", "head 201", "loss 0"));
  EXPECT_THAT(times(all, &Operator::wgrad),
              ElementsAre("embedding 9", "attention_norm 0", "qkv 40", "attention 0", "output 40",
                          "feedforward_norm 0", "gate_up 40", "swiglu 0", "down 40", "rest 0",
                          "head_norm 0", "head 202", "loss 0"));
  EXPECT_EQ(all[2].recompute, all[2].forward);
  EXPECT_EQ(all.back().layer, 2);
}

TEST(OperatorsTable, OneLayerOfAKindStandsForAll) {
  const auto all = read_operators_table(table(), "operators.csv", model_of(6));
  ASSERT_EQ(all.size(), 1U + 4 * 9 + 3);
  EXPECT_EQ(all[1 + 3 * 9].layer, 4);
  EXPECT_EQ(all[1 + 3 * 9 + 1].forward, 100ns);
}

TEST(OperatorsTable, RefusesAnotherModelsAndOtherTexts) {
  const auto refusal = [](const std::string& text, const Model& model) -> std::string {
    try {
      (void)read_operators_table(text, "operators.csv", model);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  Model wider = model_of(3);
  wider.intermediate = 7;
  EXPECT_THAT(refusal(table(), wider),
              HasSubstr("operators.csv: there is no gemm of m=3 n=14 k=4 in block F of part layer "
                        "(\"gate_up\" of the scenario's model takes one)"));
  EXPECT_THAT(refusal("a,b\n", model_of(3)), HasSubstr("operators.csv:1: 2 columns"));
  EXPECT_THAT(refusal("a,b,c,d,e,f,g,h\n", model_of(3)), HasSubstr("are not those of"));
  EXPECT_THAT(refusal(kHeader, model_of(3)), HasSubstr("no block F of part embedding"));
  EXPECT_THAT(refusal(kHeader + "layer,F,copy,count=1,f32,x,1,1\n", model_of(3)),
              HasSubstr("operators.csv:2: calls \"x\" is no whole number"));
}

/// Of 3 layers on one stage each.
std::string scenario_with(const std::string& costs) {
  return "[parallel]\nstages = 3\nmicrobatches = 2\n[model]\nlayers = 3\nhidden = 4\n"
         "intermediate = 6\nheads = 2\nkv_heads = 1\nvocabulary = 10\nsequence_length = 3\n"
         "[costs]\noperators = \"ops.csv\"\n" +
         costs + "[profiles]\n\"ops.csv\" = '''\n" + table() + "'''\n";
}

TEST(OperatorsTable, IsTheCostOfBlocksUnlessTheseAreGiven) {
  const Scenario measured = parse_scenario(scenario_with(""), "s.toml");
  EXPECT_TRUE(measured.operators.are_costs);
  EXPECT_THAT(measured.costs.forward, ElementsAre(7ns, 442ns, 231ns));
  EXPECT_THAT(measured.costs.backward, ElementsAre(9ns, 479ns + 160ns, 213ns + 202ns));
  const Scenario given = parse_scenario(scenario_with("forward = \"1us\"\n"), "s.toml");
  EXPECT_FALSE(given.operators.are_costs);
  EXPECT_THAT(given.costs.forward, ElementsAre(1us, 1us, 1us));
}

TEST(OperatorsTable, ScenariosHoldTheTablesThatTheyName) {
  std::optional<testing::ScratchDirectory> scratch{std::in_place};
  const std::filesystem::path folder = scratch->path();
  std::ofstream{folder / "ops.csv"} << "# measured by no one\n" + table();
  std::string text = scenario_with("");
  text.erase(text.find("[profiles]"));
  const Scenario read = parse_scenario(text, (folder / "s.toml").string());
  scratch.reset();
  const Scenario again = parse_scenario(read.text, "elsewhere.toml");
  EXPECT_EQ(again.costs.forward, read.costs.forward);
  EXPECT_EQ(again.operators.all->size(), read.operators.all->size());
}

TEST(OperatorsTable, HasNoScoresForSelectiveRecomputation) {
  const std::string selective = scenario_with("") + "[memory]\nrecompute = \"selective\"\n";
  EXPECT_EQ(complaint(selective), "accepted");  // flash
  EXPECT_THAT(complaint(selective, {"model.attention=plain"}),
              HasSubstr("memory.recompute = \"selective\" beside costs.operators"));
}

TEST(OperatorsTable, NeedsAModel) {
  EXPECT_THAT(complaint(with_line(2, "forward = \"40ms\"\noperators = \"ops.csv\"")),
              HasSubstr("costs.operators needs [model]"));
}

}  // namespace
}  // namespace longhaul::scenario
