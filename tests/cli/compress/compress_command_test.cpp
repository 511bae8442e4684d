#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

class CompressCommand : public ::testing::Test {
protected:
  std::string write(const std::string& name, const std::vector<float>& numbers) {
    std::string bytes(numbers.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return dir_.write(name, bytes);
  }
  static std::vector<float> read(const std::string& file) {
    const std::string bytes = file_text(file);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  static Outcome compress(std::vector<std::string> words) {
    words.insert(words.begin(), "compress");
    words.push_back("--json");
    return longhaul_run(words);
  }

  TempDir dir_;
  std::string gradient_ = write("gradient.f32", {3, -1, 0.5F, 0.5F, -2, 2, 0, 1});
};

TEST_F(CompressCommand, KeepsTheBlocksOfTheIssue) {
  const Outcome run =
      compress({gradient_, "--method", "block", "--keep", "50%", "--block", "2", "--residual-out",
                dir_.path("left.f32"), "--out", dir_.path("payload"), "--list"});
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json record = run.json();
  EXPECT_EQ(record["count"], 8);
  EXPECT_EQ(record["kept"], 4);
  EXPECT_EQ(record["kept_blocks"], 2);
  EXPECT_EQ(record["indices"], (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(record["threshold"], 2);
  EXPECT_NEAR(record["energy_kept"].get<double>(), 18 / 19.5, 1e-12);
  EXPECT_EQ(record["bytes"], file_text(dir_.path("payload")).size());
  EXPECT_DOUBLE_EQ(record["bytes_per_kept"].get<double>(), record["bytes"].get<double>() / 4);
  EXPECT_EQ(read(dir_.path("left.f32")), (std::vector<float>{0, 0, 0.5F, 0.5F, 0, 0, 0, 1}));

  const Outcome decoded = compress({"--decode", dir_.path("payload"), dir_.path("out.f32")});
  ASSERT_EQ(decoded.code, 0) << decoded.err;
  EXPECT_EQ(decoded.json()["kept"], 4);
  EXPECT_EQ(read(dir_.path("out.f32")), (std::vector<float>{3, -1, 0, 0, -2, 2, 0, 0}));
}

TEST_F(CompressCommand, FeedsTheResidualBack) {
  const std::string gradient = write("two.f32", {1, 0.6F});
  const std::string left = dir_.path("left.f32");
  std::vector<int> sent;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::string> words{gradient, "--method",       "topk", "--keep",
                                   "50%",    "--residual-out", left,   "--list"};
    if (i > 0) words.insert(words.end(), {"--residual", left});
    const Outcome run = compress(words);
    ASSERT_EQ(run.code, 0) << run.err;
    sent.push_back(run.json()["indices"][0]);
  }
  EXPECT_EQ(sent, (std::vector<int>{0, 1, 0, 1}));
}

TEST_F(CompressCommand, ReadsTheStateWhereThereIsOneAndAlwaysWritesIt) {
  const std::string state = dir_.path("state.json");
  const auto run = [&] {
    return compress(
        {gradient_, "--method", "threshold", "--keep", "25%", "--block", "1", "--state", state});
  };
  ASSERT_EQ(run().code, 0);
  nlohmann::json written = nlohmann::json::parse(file_text(state));
  EXPECT_EQ(written["calls"], 1);
  written["threshold"] = written["first_threshold"] = 1;
  dir_.write("state.json", written.dump());
  const Outcome many = run();
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_EQ(many.json()["threshold"], 1);
  EXPECT_EQ(many.json()["kept"], 2);
  EXPECT_FLOAT_EQ(many.json()["next_threshold"].get<float>(), 1.01F);
  EXPECT_EQ(nlohmann::json::parse(file_text(state))["calls"], 2);
  const Outcome other = compress({gradient_, "--state", state});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("the state of 8 numbers under threshold"));
  dir_.write("state.json", "{}");
  EXPECT_THAT(run().err, HasSubstr("no state of `longhaul compress`"));
}

TEST_F(CompressCommand, RefusesWhatIsNoGradient) {
  const std::string bad = write("bad.f32", {1, 2, std::nanf(""), std::nanf("")});
  const Outcome nan = compress({bad, "--block", "1", "--keep", "50%"});
  EXPECT_EQ(nan.code, 2);
  EXPECT_THAT(nan.err, HasSubstr("bad.f32: number 2 is nan"));
  const std::string left = write("left.f32", {0, 0, 0, HUGE_VALF, 0, 0, 0, 0});
  EXPECT_THAT(compress({gradient_, "--residual", left}).err,
              HasSubstr("left.f32: number 3 is inf"));
  const std::string large = write("large.f32", {0, 3e38F});
  EXPECT_THAT(compress({large, "--residual", large}).err,
              HasSubstr("number 1 of their sum is inf"));
  EXPECT_THAT(compress({dir_.write("odd.f32", "12345")}).err, HasSubstr("5 bytes are no whole"));
  EXPECT_THAT(compress({dir_.write("empty.f32", "")}).err, HasSubstr("there is no number"));
  EXPECT_THAT(compress({dir_.path("none.f32")}).err, HasSubstr("it is missing"));
  const std::string short_one = write("short.f32", {1});
  EXPECT_THAT(compress({gradient_, "--residual", short_one}).err, HasSubstr("1 numbers"));
}

TEST_F(CompressCommand, RefusesWhatIsNoSetting) {
  for (const char* keep : {"0", "0%", "101%", "much"}) {
    const Outcome run = compress({gradient_, "--keep", keep});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("--keep: ")) << keep;
  }
  EXPECT_THAT(compress({gradient_, "--method", "blok"}).err, HasSubstr("Did you mean \"block\"?"));
  EXPECT_THAT(compress({gradient_, "--block", "3"}).err, HasSubstr("block is 3"));
  EXPECT_THAT(compress({gradient_, "--method", "topk", "--block", "16"}).err,
              HasSubstr("topk keeps single numbers"));
  EXPECT_EQ(compress({gradient_, "--out", gradient_}).code, 2);
}

TEST_F(CompressCommand, RefusesAForeignPayload) {
  const std::string payload = dir_.write("payload", "LS\x02 and more");
  const Outcome run = compress({"--decode", payload, dir_.path("out.f32")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("payload: "));
}

TEST_F(CompressCommand, SendsTheLargestNumbersAsFiniteOnes) {
  const std::string gradient = write("largest.f32", std::vector<float>(64, 3.4e38F));
  for (const char* values : {"bf16", "int8"}) {
    const std::string payload = dir_.path(values), left = payload + ".left";
    ASSERT_EQ(compress({gradient, "--keep", "25%", "--values", values, "--out", payload,
                        "--residual-out", left})
                  .code,
              0);
    const Outcome run = compress({"--decode", payload, payload + ".f32"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(read(payload + ".f32")[0] + read(left)[0], 3.4e38F);
  }
}

TEST_F(CompressCommand, SaysNothingOfANumberWhereNoneIsKept) {
  const std::string state = dir_.path("state.json"), quiet = write("quiet.f32", {1, 0, 0, 0});
  const std::vector<std::string> words{"compress", quiet, "--method", "threshold",
                                       "--block",  "1",   "--state",  state};
  ASSERT_EQ(longhaul_run(words).code, 0);
  write("quiet.f32", {0, 0, 0, 0});
  const Outcome run = longhaul_run(words);
  EXPECT_THAT(run.out, HasSubstr("0 of 4 numbers"));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("inf")));
}

TEST_F(CompressCommand, DecodesAcrossLongStretchesOfZeros) {
  std::vector<float> numbers(100'000);
  for (const std::size_t at : {3U, 60'000U, 60'005U, 99'998U}) numbers[at] = static_cast<float>(at);
  const std::string gradient = write("long.f32", numbers);
  ASSERT_EQ(
      compress({gradient, "--method", "topk", "--keep", "0.004%", "--out", dir_.path("long")}).code,
      0);
  ASSERT_EQ(compress({"--decode", dir_.path("long"), dir_.path("out.f32")}).code, 0);
  EXPECT_EQ(read(dir_.path("out.f32")), numbers);
}

TEST_F(CompressCommand, DecodesAFewBytesWithoutRoomForAllNumbers) {
  const std::string few = dir_.write("few", std::string{"LS\x02\x10\0\0\xff\xff\0\0\0\0", 12});
  const Outcome run = compress({"--decode", few, dir_.path("out.f32")});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(std::filesystem::file_size(dir_.path("out.f32")), 4ULL * 0xffff'0000U);
  struct stat kept {};
  ASSERT_EQ(stat(dir_.path("out.f32").c_str(), &kept), 0);
  EXPECT_LT(kept.st_blocks, 1000);  // of 512 bytes: on a disk that stores holes as such
  rusage use{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &use), 0);
  EXPECT_LT(use.ru_maxrss, 2'000'000);  // KiB
}

TEST_F(CompressCommand, RefusesWhatDoesNothingBesideDecode) {
  for (const char* option : {"--method", "--keep", "--block", "--values", "--index", "--seed",
                             "--residual", "--residual-out", "--state", "--out"})
    EXPECT_THAT(compress({"--decode", gradient_, dir_.path("out.f32"), option, "1"}).err,
                HasSubstr(std::string{option} + ": it has no effect with --decode"));
  EXPECT_EQ(compress({"--decode", gradient_, dir_.path("out.f32"), "--list"}).code, 2);
}

TEST_F(CompressCommand, RoundsToTheValuesThatTravel) {
  const std::string gradient = write("many.f32", std::vector<float>(640, 1.001F));
  for (const char* values : {"bf16", "int8"}) {
    const std::string left = dir_.path(std::string{values} + ".f32");
    const Outcome run = compress({gradient, "--keep", "10%", "--values", values, "--index", "coo16",
                                  "--residual-out", left});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.json()["kept"], 64);
    const std::vector<float> residual = read(left);
    EXPECT_LT(std::fabs(residual[0]), 0.01F);
    EXPECT_EQ(residual[639], 1.001F);
  }
}

}  // namespace
}  // namespace longhaul::test
