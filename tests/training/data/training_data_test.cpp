// Data by name, and what follows from a seed alone.
#include "training/data/training_data.hpp"

#include <gmock/gmock.h>

#include "files.hpp"

namespace longhaul::testing {
namespace {

using namespace training;
using ::testing::HasSubstr;

class NamedData : public DataFiles {};

TEST_F(NamedData, RefusesNamesOfNothing) {
  EXPECT_THAT(refusal("txt:python", 8),
              HasSubstr("there is no data \"txt:python\". Did you mean \"text:python\"?"));
  EXPECT_THAT(refusal("digit", 64), HasSubstr("Did you mean \"digits\"?"));
  EXPECT_THAT(refusal("", 8), HasSubstr("Known: text:PATH, text:python, digits, synthetic."));
  EXPECT_THAT(refusal("synthetic:3", 8), HasSubstr("there is no data \"synthetic:3\""));
  EXPECT_EQ(refusal("text:", 8),
            "data \"text:\" names no file (nothing follows the colon). Write text or text:PATH.");
  EXPECT_THAT(refusal("digits:", 64), HasSubstr("Write digits or digits:PATH."));
}

/// A colon in a path is part of it.
TEST_F(NamedData, TakesAPathAsItIs) {
  const std::string file = write("a:python", std::string(100, 'a'));
  EXPECT_EQ(open_data("text:" + file, {.sequence = 4, .vocabulary = 256}, 1)->facts().name,
            "text:" + file);
}

class Synthetic : public ::testing::Test {
protected:
  static constexpr nn::ModelShape kShape{.batch = 3, .sequence = 6, .vocabulary = 11};
  std::shared_ptr<const TrainingData> data_ = open_data("synthetic", kShape, 5);
};

TEST_F(Synthetic, SaysThatItFollowsFromASeed) {
  const DataFacts& facts = data_->facts();
  EXPECT_EQ(facts.name, "synthetic, seed 5");
  EXPECT_EQ(facts.vocabulary, 11);
  EXPECT_EQ(facts.classes, 0);
  for (const DataPart& part : {facts.train, facts.held_out}) {
    EXPECT_EQ(part.bytes, 0);
    EXPECT_EQ(part.sha256, "");
    EXPECT_EQ(part.samples, 0);
  }
}

TEST_F(Synthetic, IsTheSequenceOfEachIteration) {
  nn::ModelShape one = kShape;
  one.batch = 1;
  const nn::SyntheticText text{one, 5};
  for (const int iteration : {0, 1, 77, 2'147'483'647}) {
    const nn::MicrobatchText expected = text(iteration, ReplicaId{0}, MicrobatchId{0});
    const nn::MicrobatchText got = data_->samples(static_cast<std::uint64_t>(iteration), 1);
    EXPECT_EQ(got.tokens, expected.tokens);
    EXPECT_EQ(got.targets, expected.targets);
  }
  EXPECT_NE(open_data("synthetic", kShape, 6)->samples(0, 4).tokens, data_->samples(0, 4).tokens);
}

TEST_F(Synthetic, IsTheSameHoweverItIsDividedAndHasNoEnd) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{2'147'483'644}}) {
    nn::MicrobatchText parts = data_->samples(first, 3);
    const nn::MicrobatchText rest = data_->samples(first + 3, 5);
    parts.tokens.insert(parts.tokens.end(), rest.tokens.begin(), rest.tokens.end());
    EXPECT_EQ(data_->samples(first, 8).tokens, parts.tokens);
    EXPECT_EQ(parts.tokens.size(), 48U);
  }
  EXPECT_NE(data_->samples(0, 1).tokens, data_->samples(std::uint64_t{1} << 31U, 1).tokens);
}

/// The same chain, or training could not lower the loss of what is held out: half of all tokens are
/// the one that usually follows.
TEST_F(Synthetic, HoldsOutOtherSequencesOfTheSameChain) {
  const auto held_out = data_->held_out(4, 10);
  ASSERT_EQ(held_out.size(), 3U);
  EXPECT_EQ(held_out[2].tokens.size(), 12U);
  EXPECT_NE(held_out[0].tokens, data_->samples(0, 4).tokens);
  EXPECT_EQ(held_out[1].tokens, data_->held_out(4, 10)[1].tokens);
  const auto followers = [](const nn::MicrobatchText& text) {
    std::vector<std::vector<int>> counts(11, std::vector<int>(11));
    for (std::size_t i = 0; i < text.tokens.size(); ++i)
      ++counts[static_cast<std::size_t>(text.tokens[i])][static_cast<std::size_t>(text.targets[i])];
    std::vector<std::ptrdiff_t> most;
    for (const std::vector<int>& of : counts)
      most.push_back(std::max_element(of.begin(), of.end()) - of.begin());
    return most;
  };
  EXPECT_EQ(followers(data_->samples(0, 5000)), followers(data_->held_out(5000, 5000)[0]));
}

}  // namespace
}  // namespace longhaul::testing
