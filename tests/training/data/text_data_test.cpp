// Bytes of a text as samples: which there are, in which order, and what is refused.
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "files.hpp"
#include "training/data/byte_source.hpp"

namespace longhaul::testing {
namespace {

using namespace training;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Tokens = std::vector<std::int32_t>;

constexpr nn::ModelShape kTextShape{.sequence = 4, .vocabulary = 300};

/// Bytes `first`, first + 1, ..
std::string counted(int count, int first = 0) {
  std::string text(static_cast<std::size_t>(count), '\0');
  std::iota(text.begin(), text.end(), static_cast<char>(first));
  return text;
}

class TextData : public DataFiles {
protected:
  /// 100 bytes that say where they are, or `count`: 90 to train on in 22 windows, 10 held out in 2.
  [[nodiscard]] std::shared_ptr<const TrainingData> open(std::uint64_t seed = 1, int count = 100,
                                                         nn::ModelShape shape = kTextShape) const {
    return open_data("text:" + write("text", counted(count)), shape, seed);
  }
};

TEST_F(TextData, SaysWhatItIs) {
  const std::string file = write("text", counted(100));
  const DataFacts facts = open_data("text:" + file, kTextShape, 1)->facts();
  EXPECT_EQ(facts.name, "text:" + file);
  EXPECT_EQ(facts.vocabulary, 256);
  EXPECT_EQ(facts.classes, 0);
  EXPECT_EQ(facts.train.bytes, 90);
  EXPECT_EQ(facts.held_out.bytes, 10);
  EXPECT_EQ(facts.train.samples, 22);
  EXPECT_EQ(facts.held_out.samples, 2);
  EXPECT_EQ(facts.train.sha256, sha256(counted(90)));
  EXPECT_EQ(facts.held_out.sha256, sha256(counted(10, 90)));
}

TEST_F(TextData, HasEachWindowOnceAnEpochAndItsTargetsOneByteOn) {
  const auto data = open();
  std::set<std::vector<Tokens>> epochs;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const nn::MicrobatchText all = data->samples(epoch * 22, 22);
    ASSERT_EQ(all.tokens.size(), 88U);
    ASSERT_EQ(all.targets.size(), 88U);
    std::set<std::int32_t> begins;
    for (std::size_t i = 0; i < 88; ++i) {
      EXPECT_EQ(all.targets[i], all.tokens[i] + 1);
      if (i % 4 == 0) {
        begins.insert(all.tokens[i]);
      } else {
        EXPECT_EQ(all.tokens[i], all.tokens[i - 1] + 1);
      }
    }
    EXPECT_EQ(begins.size(), 22U);
    for (const std::int32_t begin : begins) EXPECT_EQ(begin % 4, 0);
    EXPECT_EQ(*begins.rbegin(), 84);
    epochs.insert(each_sample(*data, epoch * 22, 22));
  }
  EXPECT_EQ(epochs.size(), 20U);
  EXPECT_NE(open(2)->samples(0, 22).tokens, data->samples(0, 22).tokens);
  EXPECT_EQ(open(1)->samples(0, 22).tokens, data->samples(0, 22).tokens);
}

TEST_F(TextData, IsTheSameHoweverItIsDivided) {
  const auto data = open();
  for (const std::uint64_t first : {0U, 18U, 20U, 1000U}) {  // 18 + 8 is in the next epoch
    const nn::MicrobatchText whole = data->samples(first, 8);
    nn::MicrobatchText parts = data->samples(first, 3);
    const nn::MicrobatchText rest = data->samples(first + 3, 5);
    parts.tokens.insert(parts.tokens.end(), rest.tokens.begin(), rest.tokens.end());
    parts.targets.insert(parts.targets.end(), rest.targets.begin(), rest.targets.end());
    EXPECT_EQ(whole.tokens, parts.tokens);
    EXPECT_EQ(whole.targets, parts.targets);
  }
}

TEST_F(TextData, NeverTrainsOnWhatIsHeldOut) {
  const std::string text = std::string(900, 'a') + std::string(100, 'z');
  for (const int sequence : {1, 3, 4, 7, 99}) {  // 7: 899 = 128 * 7 + 3
    const auto data =
        open_data("text:" + write("text", text), {.sequence = sequence, .vocabulary = 256}, 1);
    const auto count = static_cast<int>(data->facts().train.samples);
    EXPECT_EQ(count, 899 / sequence);
    const nn::MicrobatchText all = data->samples(0, 2 * count);
    EXPECT_THAT(all.tokens, Each('a'));
    EXPECT_THAT(all.targets, Each('a'));
    for (const nn::MicrobatchText& each : data->held_out(2, 1000)) {
      EXPECT_THAT(each.tokens, Each('z'));
      EXPECT_THAT(each.targets, Each('z'));
    }
  }
}

TEST_F(TextData, SpreadsHeldOutSamplesEvenly) {
  // 60 bytes held out, from 540 on: 14 windows.
  const auto data = open(1, 600);
  const auto begins = [&](int batch, int most) {
    std::vector<Tokens> all;
    for (const nn::MicrobatchText& each : data->held_out(batch, most)) {
      EXPECT_EQ(each.tokens.size(), each.targets.size());
      all.emplace_back();
      for (std::size_t i = 0; i < each.tokens.size(); i += 4)
        all.back().push_back((each.tokens[i] + 256 - 540 % 256) % 256 / 4);
    }
    return all;
  };
  EXPECT_THAT(begins(2, 5), ElementsAre(Tokens{0, 2}, Tokens{5, 8}, Tokens{11}));
  EXPECT_THAT(begins(20, 100), ElementsAre(Tokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_THAT(begins(3, 1), ElementsAre(Tokens{0}));
}

TEST_F(TextData, ReadsBytesAboveAsciiAsTheyAre) {
  const std::string text(1000, static_cast<char>(0xff));
  const auto data = open_data("text:" + write("text", text), kTextShape, 1);
  EXPECT_THAT(data->samples(0, 10).tokens, Each(255));
  EXPECT_THAT(data->samples(0, 10).targets, Each(255));
}

TEST_F(TextData, RefusesATextThatHasNoSample) {
  const std::string empty = write("empty", "");
  EXPECT_EQ(refusal("text:" + empty, 4),
            "text:" + empty + " is empty (there is nothing to learn in it). Name another text.");
  const std::string text = write("text", counted(49));
  EXPECT_THAT(refusal("text:" + text, 4),
              HasSubstr("is too short: 49 bytes (their last tenth is held out, 4 bytes, and a "
                        "sequence of 4 takes 5). Give 50 bytes or more"));
  EXPECT_EQ(open(1, 50)->facts().held_out.samples, 1);
  EXPECT_THAT(refusal("text:" + text, 2'000'000'000), HasSubstr("Give 20000000010 bytes or more"));
}

TEST_F(TextData, RefusesWhatIsNoFileAndAVocabularyThatIsTooSmall) {
  EXPECT_THAT(refusal("text:/nowhere/text", 4),
              StartsWith("/nowhere/text: cannot be read (No such file or directory)"));
  EXPECT_THAT(refusal("text:" + path("").string(), 4), HasSubstr("it is no regular file"));
  EXPECT_THAT(refusal("text:/dev/zero", 4), HasSubstr("it is no regular file"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal("text:" + path("pipe").string(), 4), HasSubstr("it is no regular file"));
  EXPECT_THAT(refusal("text:" + write("text", counted(100)), 4, 255),
              HasSubstr("does not fit a vocabulary of 255 (its tokens are 0 to 255). Set "
                        "model.vocabulary=256."));
}

TEST_F(TextData, SaysThatAFileBecameShorter) {
  const auto data = open();
  std::filesystem::resize_file(path("text"), 50);
  try {
    (void)data->samples(0, 22);
    FAIL() << "read what is not there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("it became shorter"), HasSubstr("Leave the file")));
    EXPECT_EQ(error.code(), ExitCode::run_failed);
  }
}

}  // namespace
}  // namespace longhaul::testing
