// What a part's method remembers, for every method: steps after a checkpoint are of the same bits.
#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "training/parts/espresso.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kNumbers = 300;
constexpr int kReplicas = 2, kBefore = 5, kAfter = 5;

struct Named {
  std::string name;
  MakePartMethod make;
};

void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }

/// Ramps and warm-ups last beyond the checkpoint, or end before it.
std::vector<Named> all_methods() {
  const StepSettings sgd = rule(compress::OptimizerRule::sgd, 0.01F);
  const StepSettings adamw = rule(compress::OptimizerRule::adamw, 0.01F);
  std::vector<Named> all;
  for (const CompressMethod each : every<CompressMethod>()) {
    GradientCompression compress;
    compress.method = each;
    compress.keep = 0.1;
    compress.block = 4;
    all.push_back({fmt::format("compress_{}", static_cast<int>(each)), [=](const PartPlace& place) {
                     return make_part_method(compress, place, adamw);
                   }});
  }
  for (const Rival each : every<Rival>()) {
    if (each == Rival::powersgd) continue;  // of matrices: low_rank_method_test.cpp
    RivalSettings settings{.rival = each, .keep = 0.1, .momentum = 0.9F, .decay = 0.9F};
    settings.bits = each == Rival::streaming_diloco ? kFourBits : kAllBits;
    settings.feedback = each == Rival::streaming_diloco;
    for (const int warm_up : {1, 3, 8}) {
      settings.warm_up = warm_up;
      std::string name = fmt::format("{}_{}", to_string(each), warm_up);
      std::ranges::replace(name, '-', '_');
      all.push_back({name, rival(settings, sgd)});
      if (each != Rival::onebit && each != Rival::dgc) break;
    }
  }
  // Of one piece, and of one of each kind.
  for (const std::int64_t cut : {0, 30}) {
    std::vector<PartPiece> pieces{{0, 0, CompressMethod::block}};
    if (cut > 0)
      pieces = {{0, cut, CompressMethod::none},
                {cut, cut, CompressMethod::topk},
                {2 * cut, 0, CompressMethod::none}};
    all.push_back({fmt::format("espresso_{}", cut), [=](const PartPlace& place) {
                     std::vector<PartPiece> own = pieces;
                     own.back().numbers = place.numbers - own.back().first;
                     return make_espresso(own, {}, place, adamw);
                   }});
  }
  return all;
}

std::vector<std::byte> state_of(const PartMethod& method) {
  StateWriter writer;
  method.save(writer);
  return writer.bytes();
}

class Checkpoints : public ::testing::TestWithParam<Named> {
protected:
  [[nodiscard]] std::unique_ptr<PartMethod> make(std::int64_t numbers) const {
    return GetParam().make({numbers, kReplicas, 1, 0});
  }
};

TEST_P(Checkpoints, GoOnWithTheSameBits) {
  Replicas whole{GetParam().make, kReplicas, kNumbers}, again{GetParam().make, kReplicas, kNumbers};
  std::vector<std::vector<std::byte>> sent;  // by both, one after the other
  for (Replicas* const each : {&whole, &again})
    each->on_the_way = [&](int, std::size_t, std::vector<std::byte>& set) { sent.push_back(set); };
  for (int i = 0; i < kBefore; ++i) whole.play(i, gradients_of(kReplicas, i, kNumbers));
  again.weights = whole.weights;
  for (std::size_t r = 0; r < kReplicas; ++r) {
    const std::vector<std::byte> state = state_of(whole.of(r));
    StateReader reader{state};
    again.of(r).load(reader);
    EXPECT_TRUE(reader.is_over());
    EXPECT_EQ(state_of(again.of(r)), state);
  }
  for (int i = kBefore; i < kBefore + kAfter; ++i) {
    sent.clear();
    whole.play(i, gradients_of(kReplicas, i, kNumbers));
    again.play(i, gradients_of(kReplicas, i, kNumbers));
    for (std::size_t r = 0; r < kReplicas; ++r) {
      EXPECT_EQ(sent[r], sent[kReplicas + r]) << "replica " << r << ", iteration " << i;
      EXPECT_EQ(state_of(again.of(r)), state_of(whole.of(r))) << i;
    }
    EXPECT_EQ(again.weights, whole.weights) << i;
  }
  const bool accounts = !whole.first().gradients_seen().empty();
  EXPECT_EQ(accounts ? again.lost() : 0, accounts ? whole.lost() : 0);
}

/// Of one that was cut short not the least is taken.
TEST_P(Checkpoints, ThatAreCutShortAreRefused) {
  Replicas replicas{GetParam().make, kReplicas, kNumbers};
  for (int i = 0; i < 2; ++i) replicas.play(i, gradients_of(kReplicas, i, kNumbers));
  const std::vector<std::byte> state = state_of(replicas.first());
  for (std::size_t size = 0; size < state.size(); size += 37) {
    StateReader reader{std::span{state}.first(size)};
    EXPECT_THROW(make(kNumbers)->load(reader), Error) << size << " of " << state.size();
  }
  StateReader reader{std::span{state}.first(state.size() - 1)};
  EXPECT_THROW(make(kNumbers)->load(reader), Error);
}

INSTANTIATE_TEST_SUITE_P(Of, Checkpoints, ::testing::ValuesIn(all_methods()),
                         [](const auto& each) { return each.param.name; });

/// Of a part of another size.
TEST(CheckpointsOfOthers, AreRefused) {
  for (const Rival each : {Rival::dgc, Rival::demo, Rival::onebit, Rival::sparseloco}) {
    RivalSettings settings{.rival = each, .keep = 0.1};
    settings.warm_up = 1;
    const auto of = [&](std::int64_t numbers) {
      return make_rival(settings, {numbers, kReplicas, 1, 0}, {});
    };
    const std::vector<std::byte> state = state_of(*of(128));
    StateReader reader{state};
    EXPECT_THROW(of(300)->load(reader), Error) << to_string(each);
    StateReader own{state};
    EXPECT_NO_THROW(of(128)->load(own)) << to_string(each);
  }
}

}  // namespace
}  // namespace longhaul::training
