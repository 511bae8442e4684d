#include "training/parts/espresso.hpp"

#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/shipped.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Single numbers of each replica, 8 bytes each.
GradientCompression numbers_of(double keep) {
  GradientCompression sparse;
  sparse.method = CompressMethod::topk;
  sparse.keep = keep;
  sparse.share = KeptShare::each;
  return sparse;
}

TEST(Espresso, ChoosesBySizeAsIfOn25Gbps) {
  const GradientCompression sparse = numbers_of(0.01);
  // 4n / 3.125 GB/s against half of it and 30 us and 4n / 100 GB/s: halves from 50,000 numbers on.
  EXPECT_EQ(espresso_choice(sparse, 49'000, 2), CompressMethod::none);
  EXPECT_EQ(espresso_choice(sparse, 51'000, 2), CompressMethod::fp16);
  // Halves take 30 us and 0.68 ns a number, a choice 670 us and 0.1256 ns: from 1,154,401 on.
  EXPECT_EQ(espresso_choice(sparse, 1'150'000, 2), CompressMethod::fp16);
  EXPECT_EQ(espresso_choice(sparse, 1'160'000, 2), CompressMethod::topk);
  // Of 10% it is 0.356 ns: from 1,975,309 on.
  EXPECT_EQ(espresso_choice(numbers_of(0.1), 1'970'000, 2), CompressMethod::fp16);
  EXPECT_EQ(espresso_choice(numbers_of(0.1), 1'980'000, 2), CompressMethod::topk);
  EspressoCosts slow;
  slow.bytes_per_second = 1e6;
  EXPECT_EQ(espresso_choice(sparse, 49'000, 2, slow), CompressMethod::topk);
}

struct TensorsOfModel {
  std::string model;
  std::int64_t numbers = 0;
  int tensors = 0;
  std::vector<std::string> choices;  ///< as 1, 5 and 10% are kept
};

/// What figures 8, 9 and 11 read.
std::vector<TensorsOfModel> tensors_of_models() {
  std::ifstream file{longhaul::testing::in_checkout("results/papers/stella-tensors.csv")};
  std::vector<TensorsOfModel> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("model")) continue;
    std::istringstream words{line};
    std::vector<std::string> fields;
    for (std::string word; std::getline(words, word, ',');) fields.push_back(word);
    all.push_back({fields.at(0),
                   std::stoll(fields.at(1)),
                   std::stoi(fields.at(2)),
                   {fields.begin() + 3, fields.end()}});
  }
  return all;
}

/// StellaTrain, section 5.1: Espresso compresses 7 of 330 layers of Swin-B.
TEST(Espresso, CompressesSevenTensorsOfSwinB) {
  const double rates[] = {0.01, 0.05, 0.1};
  std::map<std::string, int> tensors;
  int compressed[3] = {};
  for (const TensorsOfModel& each : tensors_of_models()) {
    tensors[each.model] += each.tensors;
    ASSERT_EQ(each.choices.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const CompressMethod chosen = espresso_choice(numbers_of(rates[i]), each.numbers, 8);
      EXPECT_EQ(each.choices[i], to_string(chosen)) << each.model << ", " << each.numbers;
      if (each.model == "swin-b" && is_sparse(chosen)) compressed[i] += each.tensors;
    }
  }
  EXPECT_THAT(tensors,
              ElementsAre(Pair("resnet152", 467), Pair("swin-b", 329), Pair("vit-b-16", 152)));
  EXPECT_THAT(compressed, ElementsAre(7, 7, 7));
}

nn::ParameterPlaces three_tensors() {
  return {{{"a", 0, 10}, {"b", 16, 20, 5}, {"c", 116, 7}}, 124};
}

/// Sizes are of what a tensor stands for; zeros after one are with it.
TEST(Espresso, CutsAPartAtItsTensors) {
  const PartChoice alone = choose_for_part(three_tensors(), numbers_of(0.01), 2);
  EXPECT_THAT(alone.pieces, ElementsAre(PartPiece{0, 124, CompressMethod::none}));
  EXPECT_DOUBLE_EQ(alone.bits, 32);
  // Times 20,000: 320,000, 2,000,000 and 160,000 numbers.
  const PartChoice whole = choose_for_part(three_tensors(), numbers_of(0.01), 2, 20'000);
  EXPECT_THAT(whole.pieces, ElementsAre(PartPiece{0, 16, CompressMethod::fp16},
                                        PartPiece{16, 100, CompressMethod::topk},
                                        PartPiece{116, 8, CompressMethod::fp16}));
  EXPECT_DOUBLE_EQ(whole.bits, 8 * (640'000 + 8 * 20'000 + 320'000) / 2'480'000.0);
}

/// Each piece is as a part by itself: what it sends, keeps and steps with.
TEST(Espresso, TreatsPiecesAsPartsOfTheirOwn) {
  const StepSettings step = rule(compress::OptimizerRule::adamw, 0.01F);
  const std::vector<PartPiece> pieces{{0, 40, CompressMethod::fp16},
                                      {40, 100, CompressMethod::topk},
                                      {140, 60, CompressMethod::none}};
  Replicas whole{
      [&](const PartPlace& place) { return make_espresso(pieces, numbers_of(0.1), place, step); },
      2, 200};
  std::vector<std::vector<float>> apart(3);
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    GradientCompression own = numbers_of(0.1);
    own.method = pieces[k].method;
    const auto count = to_size(pieces[k].numbers), first = to_size(pieces[k].first);
    const auto cut = [&](const std::vector<float>& all) {
      const std::span<const float> piece = std::span{all}.subspan(first, count);
      return std::vector<float>(piece.begin(), piece.end());
    };
    Replicas alone{[&](const PartPlace& place) { return make_part_method(own, place, step); }, 2,
                   count};
    for (std::vector<float>& weights : alone.weights) weights = cut(drawn(200, 1));
    for (int i = 0; i < 4; ++i) {
      std::vector<std::vector<float>> gradients;
      for (const auto& each : gradients_of(2, i, 200)) gradients.push_back(cut(each));
      alone.play(i, gradients);
    }
    apart[k] = alone.weights[0];
    if (k == 1)
      apart.emplace_back(alone.first().residual().begin(), alone.first().residual().end());
  }
  for (int i = 0; i < 4; ++i) whole.play(i, gradients_of(2, i, 200));
  std::vector<float> joined = apart[0];
  for (const std::size_t k : {1, 2}) joined.insert(joined.end(), apart[k].begin(), apart[k].end());
  EXPECT_EQ(whole.weights[0], joined);
  const std::span<const float> waits = whole.first().residual();
  EXPECT_THAT(waits.subspan(40, 100), ElementsAreArray(apart[3]));
  EXPECT_THAT(waits.first(40), Each(0)) << "of a dense piece nothing waits";
  EXPECT_TRUE(whole.first().gradients_seen().empty()) << "halves forget";
}

/// Pieces that forget nothing are accounted together.
TEST(Espresso, LosesNothingOfItsPieces) {
  const std::vector<PartPiece> pieces{{0, 50, CompressMethod::none},
                                      {50, 100, CompressMethod::topk},
                                      {150, 50, CompressMethod::topk}};
  Replicas replicas{
      [&](const PartPlace& place) { return make_espresso(pieces, numbers_of(0.1), place, {}); }, 3,
      200};
  for (int i = 0; i < 5; ++i) replicas.play(i, gradients_of(3, i, 200));
  EXPECT_LE(replicas.lost(), 1e-6);
}

TEST(Espresso, RefusesPayloadsThatAreNone) {
  const std::vector<PartPiece> pieces{{0, 50, CompressMethod::none},
                                      {50, 100, CompressMethod::topk}};
  const PartPlace place{150, 2, 1, 0};
  const auto method = make_espresso(pieces, numbers_of(0.1), place, {});
  const std::vector<std::byte> set = method->own_set(0, drawn(150, 2));
  const auto said = [&](std::span<const std::byte> payload) -> std::string {
    const SetPayload sets[] = {{"rank 1, part 0", payload}};
    try {
      method->merge(0, sets);
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(said(set), "taken");
  for (std::size_t size = 0; size < set.size(); size += 7)
    EXPECT_THAT(said(std::span{set}.first(size)), HasSubstr("rank 1, part 0")) << size;
  std::vector<std::byte> longer = set;
  longer.emplace_back();
  EXPECT_THAT(said(longer), HasSubstr("goes on for 1"));
  longer = set;
  longer[3] = std::byte{255};
  EXPECT_THAT(said(longer), HasSubstr("is cut short"));
  EXPECT_THROW((void)make_espresso({{0, 149, CompressMethod::none}}, {}, place, {}), Error);
  EXPECT_THROW((void)make_espresso({{0, 50, CompressMethod::none}, {60, 90, CompressMethod::none}},
                                   {}, place, {}),
               Error);
}

}  // namespace
}  // namespace longhaul::training
