#include "schedule/csv/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

using enum BlockKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Schedule read(std::string_view text) { return read_csv(text, "x.csv", "x"); }

std::string error_of(std::string_view text) {
  try {
    (void)read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string pytorch_error_of(const Schedule& schedule) {
  try {
    (void)write_csv(schedule, CsvFormat::pytorch);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WriteCsv, HasAHeaderAndARowForEachDevice) {
  EXPECT_EQ(write_csv(generate("zb-h1", uniform_scenario(2, 2))),
            "# longhaul schedule 1\n"
            "# name = \"zb-h1\"\n"
            "# devices = 2\n"
            "# chunks = 2\n"
            "# microbatches = 2\n"
            "# replicas = 1\n"
            "# device_of_chunk = 0,1\n"
            "0F0,0F1,0I0,0W0,0I1,0W1\n"
            "1F0,1I0,1F1,1I1,1W0,1W1\n");
}

TEST(WriteCsv, WritesWhatPyTorchReads) {
  const Schedule schedule = generate("interleaved-1f1b", uniform_scenario(2, 2));
  EXPECT_EQ(write_csv(schedule, CsvFormat::pytorch),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
}

TEST(WriteCsv, RefusesWhatPyTorchHasNoWordsFor) {
  Scenario scenario = uniform_scenario(2, 2);
  const Schedule plain = generate("1f1b", scenario);
  EXPECT_EQ(pytorch_error_of(plain), "no error");
  scenario.memory.recompute = true;
  EXPECT_THAT(pytorch_error_of(generate("1f1b", scenario)),
              HasSubstr("device 0 has R(chunk 0, microbatch 0), a recompute"));
  Schedule schedule = plain;
  schedule.rows[1][0].parts = 2;
  EXPECT_THAT(pytorch_error_of(schedule),
              HasSubstr("device 1 has F(chunk 1, microbatch 0) part 0/2, part of a split block"));
  schedule = plain;
  schedule.link_orders.push_back({"link a>b", {}});
  EXPECT_THAT(pytorch_error_of(schedule), HasSubstr("it orders the messages of a link"));
  schedule = plain;
  schedule.replicas = 2;
  EXPECT_EQ(pytorch_error_of(schedule), "no error");
  schedule.rows.insert(schedule.rows.end(), {plain.rows[0], plain.rows[1]});
  EXPECT_THAT(pytorch_error_of(schedule), HasSubstr("its replicas follow different orders"));
}

TEST(WriteCsv, RefusesCellsInPyTorchsFormat) {
  Schedule schedule = generate("1f1b", uniform_scenario(2, 2));
  schedule.replicas = 2;
  schedule.cell = 2;
  EXPECT_THAT(pytorch_error_of(schedule),
              HasSubstr("its pipelines take turns on the WAN in cells of 2"));
}

TEST(WriteCsv, RefusesABrokenShape) {
  EXPECT_THROW((void)write_csv(Schedule{}), Error);
  Schedule schedule = generate("1f1b", uniform_scenario(2, 2));
  schedule.rows[0][0].chunk = ChunkId{-1};
  EXPECT_THROW((void)write_csv(schedule), Error);
}

TEST(ReadCsv, GivesBackWhatWasWritten) {
  for (const std::string& name : static_schedule_names()) {
    Scenario scenario = uniform_scenario(3, 6);
    scenario.memory.recompute = name == "zb-h2";
    const Schedule schedule = generate(name, scenario);
    EXPECT_EQ(read(write_csv(schedule)), schedule) << name;
  }
}

TEST(ReadCsv, GivesBackPartsReplicasLinkOrdersAndOddNames) {
  Schedule schedule = generate("1f1b", uniform_scenario(2, 1));
  schedule.name = "a \"b\" \\ c,\nd\x01\xc3\xa9 #";
  schedule.replicas = 2;
  schedule.rows = {{{F, 0, 2, ChunkId{0}, MicrobatchId{0}},
                    {F, 1, 2, ChunkId{0}, MicrobatchId{0}},
                    {B, 0, 1, ChunkId{0}, MicrobatchId{0}}},
                   {{F, 0, 1, ChunkId{1}, MicrobatchId{0}},
                    {D, 0, 255, ChunkId{1}, MicrobatchId{0}},
                    {W, 254, 255, ChunkId{1}, MicrobatchId{0}}},
                   {},
                   {{R, 0, 1, ChunkId{1}, MicrobatchId{0}}}};
  schedule.link_orders = {{"link west>east",
                           {{ReplicaId{0}, {F, 1, 2, ChunkId{0}, MicrobatchId{0}}},
                            {ReplicaId{1}, {D, 0, 1, ChunkId{1}, MicrobatchId{0}}}}},
                          {"egress \"a\"/0", {}}};
  schedule.recompute_timing = RecomputeTiming::ahead;
  EXPECT_EQ(read(write_csv(schedule)), schedule);
}

TEST(ReadCsv, GivesBackCellsAndTheirTurns) {
  Schedule schedule = generate("1f1b", uniform_scenario(2, 2));
  schedule.replicas = 3;
  schedule.cell = 2;
  schedule.link_orders = {
      {turns_name(0, DeviceId{0}, DeviceId{1}),
       {{ReplicaId{1}, {F, 0, 1, ChunkId{0}, MicrobatchId{0}}},
        {ReplicaId{0}, {F, 0, 1, ChunkId{0}, MicrobatchId{0}}}},
       LinkOrderKind::turns},
      {turns_name(1, DeviceId{1}, DeviceId{0}),
       {{ReplicaId{2}, {B, 0, 1, ChunkId{1}, MicrobatchId{1}}}},
       LinkOrderKind::turns},
  };
  const std::string text = write_csv(schedule);
  EXPECT_THAT(text, HasSubstr("# cell = 2\n"));
  EXPECT_THAT(text, HasSubstr("# link_order \"turns 0/0>1\" = 1:0F0,0:0F0\n"));
  EXPECT_EQ(read(text), schedule);
}

TEST(ReadCsv, InfersWhatAFileOfPyTorchDoesNotSay) {
  const Schedule schedule = read("0F0,0F1,, 3F0 ,3I0,3W0,\r\n\r\n1F0,1F1,2F0,,2B0");
  EXPECT_EQ(schedule.name, "x");
  EXPECT_EQ(schedule.devices, 2);
  EXPECT_EQ(schedule.chunks, 4);
  EXPECT_EQ(schedule.microbatches, 2);
  EXPECT_EQ(schedule.replicas, 1);
  EXPECT_THAT(numbers(schedule.device_of_chunk.items()), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(schedule.rows[0], ElementsAre(Block{F, 0, 1, ChunkId{0}, MicrobatchId{0}},
                                            Block{F, 0, 1, ChunkId{0}, MicrobatchId{1}},
                                            Block{F, 0, 1, ChunkId{3}, MicrobatchId{0}},
                                            Block{D, 0, 1, ChunkId{3}, MicrobatchId{0}},
                                            Block{W, 0, 1, ChunkId{3}, MicrobatchId{0}}));
}

TEST(ReadCsv, PyTorchFilesOfTheGeneratorsAreTheSameOrders) {
  const Scenario scenario = uniform_scenario(4, 8);
  for (const std::string& name : static_schedule_names()) {
    const Schedule schedule = generate(name, scenario);
    EXPECT_EQ(read_csv(write_csv(schedule, CsvFormat::pytorch), "x.csv", name), schedule) << name;
  }
}

TEST(ReadCsv, OneMisplacedBlockDoesNotMoveItsChunk) {
  const Schedule schedule = read("0F0,1B1,0B0,0F1,0B1\n1F0,1B0,1F1\n");
  EXPECT_THAT(numbers(schedule.device_of_chunk.items()), ElementsAre(0, 1));
  const auto found = first_violation(schedule);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->text, HasSubstr("device 0 has B(chunk 1, microbatch 1) at position 1"));
}

TEST(ReadCsv, LeavesFreeCommentsAlone) {
  EXPECT_EQ(read("# devices = many\n0F0,0B0\n").devices, 1);
  EXPECT_EQ(read("# longhaul schedule 1\n# made by hand: a = b\n#\n0F0,0B0\n").devices, 1);
}

TEST(ReadCsv, NamesTheLineAndColumnOfABadCell) {
  EXPECT_THAT(error_of("0F0,0F1\n0F0,0X1\n"),
              StartsWith("x.csv:2:6: Cell \"0X1\" names no block (kinds: F, B, I, W, R"));
  EXPECT_THAT(error_of("0F0,F1"), StartsWith("x.csv:1:5: Cell \"F1\" does not begin with a chunk"));
  EXPECT_THAT(error_of("0F"), StartsWith("x.csv:1:3: The microbatch is missing"));
  EXPECT_THAT(error_of("0F0 0F1"),
              StartsWith("x.csv:1:5: Cell \"0F0 0F1\" goes on behind its end"));
  EXPECT_THAT(error_of("0F0.4/4"), StartsWith("x.csv:1:5: There is no part 4 of 4"));
  EXPECT_THAT(error_of("0F0.1"), HasSubstr("A part is written .k/n"));
  EXPECT_THAT(error_of("0F0.0/256"), HasSubstr("The number of parts is too large (at most 255)"));
  EXPECT_THAT(error_of("-1F0"), StartsWith("x.csv:1:1:"));
}

TEST(ReadCsv, RefusesOverlapAndCommunicationWithTheReason) {
  EXPECT_THAT(error_of("0F0,(0F3;7B1)OVERLAP_F_B,0F1"),
              AllOf(StartsWith("x.csv:1:5: Cell \"(0F3;7B1)OVERLAP_F_B\" runs several blocks"),
                    HasSubstr("Write them as cells of their own.")));
  EXPECT_THAT(error_of("0F0\n1F0,1SEND_F0"),
              AllOf(StartsWith("x.csv:2:6: Cell \"1SEND_F0\" moves data"),
                    HasSubstr("Export compute_only.")));
  EXPECT_THAT(error_of("0UNSHARD,0F0"), StartsWith("x.csv:1:2: Cell \"0UNSHARD\" moves data"));
}

TEST(ReadCsv, RefusesABadHeader) {
  const std::string begin = "# longhaul schedule 1\n";
  EXPECT_THAT(error_of("# longhaul schedule 2\n0F0,0B0"),
              StartsWith("x.csv:1:21: The file has format version 2"));
  EXPECT_THAT(error_of(begin + "# replica = 2\n0F0"),
              StartsWith("x.csv:2:3: Unknown key \"replica\". Did you mean \"replicas\"?"));
  EXPECT_THAT(error_of(begin + "# devices = 1\n# devices = 1\n0F0"), HasSubstr("there twice"));
  EXPECT_THAT(error_of(begin + "# devices = 1 2\n0F0"), HasSubstr("Nothing more is expected"));
  EXPECT_THAT(error_of(begin + "# recompute = later\n0F0"),
              StartsWith("x.csv:2:15: Known: on_arrival, ahead."));
  EXPECT_THAT(error_of(begin + "# name = \"a\n0F0"), HasSubstr("no closing quote"));
  EXPECT_THAT(error_of(begin + "# name = \"a\\q\"\n0F0"), StartsWith("x.csv:2:12: Unknown escape"));
  EXPECT_THAT(error_of(begin + "# link_order \"l\" = 0F0\n0F0"), HasSubstr("replica:cell"));
  EXPECT_THAT(error_of(begin + "# link_order \"l\" = 0:0F0\n# link_order \"l\" = 0:0F0\n0F0"),
              StartsWith("x.csv:3:14: The messages of this resource are ordered twice"));
  EXPECT_THAT(error_of(begin + "# devices = 2\n0F0,0B0"), HasSubstr("has 1 rows"));
  EXPECT_THAT(error_of(begin + "# device_of_chunk = 0,1\n0F0,0B0"),
              HasSubstr("1 chunks but says where 2 of them lie"));
  EXPECT_THAT(error_of(begin + "# chunks = 3\n0F0\n1F0"), HasSubstr("No row holds chunk 2"));
}

TEST(ReadCsv, RefusesFilesWithoutContent) {
  EXPECT_THAT(error_of(""), StartsWith("x.csv:1:1: The file holds no rows"));
  EXPECT_THAT(error_of("\n\n# only words\n"), StartsWith("x.csv:3:1: The file holds no rows"));
  EXPECT_THAT(error_of(",,,\n"), HasSubstr("0 microbatches"));
}

TEST(ReadCsv, BoundsWhatAFileCanMakeItAllocate) {
  EXPECT_THAT(error_of("999999999999999999999F0"),
              StartsWith("x.csv:1:1: The chunk is too large (at most 1048575)"));
  EXPECT_THAT(error_of("0F4294967296"), HasSubstr("The microbatch is too large"));
  EXPECT_THAT(error_of("1048575F0"), HasSubstr("No row holds chunk 0"));
  std::string rows;
  for (int i = 0; i < 70'000; ++i) rows += ",\n";
  EXPECT_THAT(error_of(rows), StartsWith("x.csv:65537:1: There are more than 65536 rows"));
}

TEST(ReadCsv, SurvivesGarbage) {
  constexpr std::size_t kSize = 10'000'000;
  Random random{7};
  std::string noise(kSize, '\0');
  EXPECT_THAT(error_of(noise), StartsWith("x.csv:1:1: Cell \"\\x00\\x00"));
  EXPECT_LT(error_of(noise).size(), 400U);
  for (char& c : noise) c = static_cast<char>(random.next());
  EXPECT_THAT(error_of(noise), StartsWith("x.csv:"));
  EXPECT_THAT(error_of(std::string(kSize, ',')), HasSubstr("0 microbatches"));
  EXPECT_THAT(error_of(std::string(kSize, '7')), HasSubstr("The chunk is too large"));
  EXPECT_THAT(error_of(std::string(kSize, '\n')), HasSubstr("no rows"));
}

TEST(ReadCsv, MutatedFilesReadOrGiveOneError) {
  const std::string good = write_csv(generate("zb-h1", uniform_scenario(3, 3)));
  constexpr std::string_view kInserts = "0F,.:/\"\\#=\n\r \0(";
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Random random{seed};
    std::string text = good;
    for (int i = 0; i < 3; ++i) {
      const auto at =
          static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
      const auto c = static_cast<std::size_t>(random.between(0, kInserts.size() - 1));
      if (random.next() % 2 == 0)
        text[at] = kInserts[c];
      else
        text.insert(at, 1, kInserts[c]);
    }
    const std::string error = error_of(text);
    if (error != "no error") {
      ASSERT_THAT(error, StartsWith("x.csv:")) << "seed " << seed;
    } else {
      const Schedule schedule = read(text);
      (void)first_violation(schedule);  // whatever it is, it is explained, not a crash
      ASSERT_EQ(read(write_csv(schedule)), schedule) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace longhaul::schedule
