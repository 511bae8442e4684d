#include "profile/training_row.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/row_memory.hpp"

namespace longhaul::profile {
namespace {

using ::testing::HasSubstr;

const std::string kHeader =
    "row,machine,model,gpus,global_batch,micro_batch,sequence,hidden,intermediate,heads,kv_heads,"
    "layers,vocabulary,mlp,positions,tensor,data,pipeline,chunks,schedule,recompute,sharding,"
    "sequence_parallel,attention,precision,iteration_ms\n";
const std::string kLine =
    "7,selene,gpt,64,512,2,2048,3072,12288,32,32,30,50257,gelu,learned,2,16,2,1,1f1b,full,none,no,"
    "plain,fp16,3566.5\n";

std::string refusal(const std::string& csv) {
  try {
    (void)read_training_rows(csv, "rows.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string with(const std::string& what, const std::string& instead) {
  std::string line = kLine;
  line.replace(line.find(what), what.size(), instead);
  return kHeader + line;
}

TEST(TrainingRow, IsReadByItsColumns) {
  const std::vector<TrainingRow> rows = read_training_rows(kHeader + kLine, "rows.csv");
  ASSERT_EQ(rows.size(), 1U);
  const TrainingRow& row = rows.front();
  EXPECT_EQ(row.row, "7");
  EXPECT_EQ(row.microbatches(), 16);
  EXPECT_EQ(row.schedule, RowSchedule::one_f_one_b);
  EXPECT_EQ(row.recompute, RecomputeKind::full);
  EXPECT_EQ(row.measured, Duration{3'566'500'000});
  EXPECT_NEAR(row.weights(), 30 * 12.0 * 3072 * 3072 + 50257.0 * 3072, 2e7);
}

TEST(TrainingRow, NeedsNoMeasuredTimeAndLeavesOtherColumnsAlone) {
  std::string csv = kHeader + kLine;
  csv.replace(csv.find("iteration_ms"), 12, "some_remark!");
  EXPECT_FALSE(read_training_rows(csv, "rows.csv").front().measured);
}

TEST(TrainingRow, MayHaveABucket) {
  const auto read = [](const std::string& bucket, const std::string& sharding) {
    std::string header = kHeader, line = kLine;
    header.insert(0, "bucket,");
    line.insert(0, bucket + ",");
    line.replace(line.find(",full,none"), 10, ",full," + sharding);
    return header + line;
  };
  const auto bucket_of = [](const std::string& csv) {
    return read_training_rows(csv, "rows.csv").front().bucket;
  };
  EXPECT_FALSE(bucket_of(kHeader + kLine));
  EXPECT_FALSE(bucket_of(read("none", "zero1")));
  EXPECT_EQ(bucket_of(read("25MiB", "zero1")), 25_MiB);
  EXPECT_THAT(refusal(read("25 apples", "none")), HasSubstr("rows.csv:2: bucket: "));
  EXPECT_EQ(bucket_of(read("25MiB", "zero2")), 25_MiB);  // between stages
  std::string alone = read("25MiB", "zero2");
  alone.replace(alone.find("2,16,2,1,1f1b"), 13, "2,32,1,1,accumulate");
  EXPECT_THAT(refusal(alone), HasSubstr("zero2 here, which sums layer by layer"));
}

TEST(TrainingRow, NamesTheLineOfWhatIsWrong) {
  std::string missing = kHeader + kLine;
  missing.replace(missing.find("hidden"), 6, "hiden!");
  EXPECT_THAT(refusal(missing), HasSubstr("rows.csv:2: the column \"hidden\" is missing"));
  EXPECT_THAT(refusal(with("7,selene", "7")), HasSubstr("rows.csv:2: "));
  EXPECT_THAT(refusal(with("3072,", "3O72,")), HasSubstr("hidden is \"3O72\""));
  EXPECT_THAT(refusal(with("gelu", "gelo")), HasSubstr("Did you mean \"gelu\"?"));
  EXPECT_THAT(refusal(with("fp16", "bf61")),
              HasSubstr("precision is \"bf61\". Did you mean \"bf16\""));
  EXPECT_THAT(refusal(with(",64,512", ",64,500")), HasSubstr("Take 480 or 512."));
  EXPECT_THAT(refusal(with(",64,512", ",128,512")), HasSubstr("are not 128 GPUs"));
  EXPECT_THAT(refusal(with("12288,32,32", "12288,31,31")), HasSubstr("does not divide by 31"));
  EXPECT_THAT(refusal(kHeader + kLine + kLine), HasSubstr("rows.csv:3: row 7 stands in line 2"));
  EXPECT_THAT(refusal(""), HasSubstr("the table is empty"));
}

// Interleaved, p (1 + (p - 1) / (p v)) microbatches' worth (Korthikanti et al. 2022,
// section 4.2.3).
TEST(InFlight, CountsMicrobatchesOfTheFirstStage) {
  EXPECT_EQ(in_flight(RowSchedule::gpipe, 4, 1, 100), 100);
  EXPECT_EQ(in_flight(RowSchedule::one_f_one_b, 4, 1, 100), 4);
  EXPECT_EQ(in_flight(RowSchedule::interleaved, 4, 2, 100), 5.5);
  EXPECT_EQ(in_flight(RowSchedule::interleaved, 4, 3, 100), 5);
  EXPECT_EQ(in_flight(RowSchedule::interleaved, 4, 2, 5), 5);
}

}  // namespace
}  // namespace longhaul::profile
