#include "harness/session/send_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "harness/profile/plan_builder.hpp"

namespace longhaul::harness {
namespace {

using engine::Emulation;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Bytes kRoom{std::int64_t{8} << 30};

/// Ten messages of that size from rank 0 to rank 1: rank 0 takes room for ten of them.
Plan ten_messages(Bytes size) {
  PlanBuilder builder{"ten", 2};
  for (int i = 0; i < 10; ++i) (void)builder.message(0, 1, Duration{1}, {}, size);
  return builder.build();
}

TEST(SendChoice, CapsMessagesWhereLinksAreEmulated) {
  const Plan plan = ten_messages(64_MiB);
  const SendChoice choice = choose_caps({&plan}, {}, Emulation::on, kRoom);
  EXPECT_EQ(choice.caps.message, 64_KiB);
  EXPECT_EQ(choice.caps.vector, 16_MiB);
  EXPECT_EQ(sent_text(choice.sizes), "sent 64 KiB of 64 MiB");
  EXPECT_EQ(choice.why, "");
  const nlohmann::ordered_json json = sent_json(choice);
  EXPECT_EQ(json["messages"]["sent_bytes"], 64 << 10);
  EXPECT_EQ(json["messages"]["nominal_bytes"], 64 << 20);
  EXPECT_EQ(json["whole"], false);
}

TEST(SendChoice, SendsAllOverTheNetworkAsItIs) {
  const Plan small = ten_messages(1_MiB), large = ten_messages(64_MiB);
  const SendChoice choice = choose_caps({&small, &large}, {}, Emulation::off, kRoom);
  EXPECT_EQ(choice.caps.message, 64_MiB);
  EXPECT_EQ(sent_text(choice.sizes), "64 MiB sent whole");
  EXPECT_EQ(sent_json(choice)["whole"], true);
  EXPECT_EQ(choice.why, "");
}

// Ten messages of 64 MiB do not fit into half of 640 MiB, those of half the size do.
TEST(SendChoice, SaysWhyItSendsLess) {
  const Plan plan = ten_messages(64_MiB);
  EXPECT_EQ(sent_text(choose_caps({&plan}, {}, Emulation::off, 640_MiB).sizes),
            "64 MiB sent whole");
  const SendChoice choice = choose_caps({&plan}, {}, Emulation::off, 639_MiB);
  EXPECT_EQ(sent_text(choice.sizes), "sent 32 MiB of 64 MiB");
  EXPECT_EQ(choice.why,
            "whole messages take 640 MiB of memory on a rank, and half of the host's is 639 MiB "
            "for each");
  EXPECT_EQ(sent_json(choice)["why"], choice.why);
}

TEST(SendChoice, SendsNoMessageOfMoreThanAMessageHolds) {
  const Plan plan = ten_messages(Bytes{std::int64_t{3} << 30});
  const SendChoice choice = choose_caps({&plan}, {}, Emulation::off, kRoom * 8);
  EXPECT_EQ(sent_text(choice.sizes), "sent 1 GiB of 3 GiB");
  EXPECT_THAT(choice.why, HasSubstr("no message of more than 1 GiB"));
}

TEST(SendChoice, ObeysWhatIsAskedForOrRefusesIt) {
  const Plan plan = ten_messages(64_MiB);
  for (const Emulation emulation : {Emulation::on, Emulation::off}) {
    EXPECT_EQ(sent_text(choose_caps({&plan}, 1_MiB, emulation, kRoom).sizes),
              "sent 1 MiB of 64 MiB");
    try {
      (void)choose_caps({&plan}, 64_MiB, emulation, 639_MiB);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("--payload 64 MiB: messages take 640 MiB"),
                                      HasSubstr("639 MiB for each"), HasSubstr("Give less")));
    }
  }
}

TEST(SendChoice, NamesCollectivesBesideMessages) {
  PlanBuilder builder{"both", 2};
  (void)builder.message(0, 1, Duration{1}, {}, 1_MiB);
  (void)builder.collective(CollectiveKind::all_reduce, {0, 1}, Duration{1}, 4_MiB);
  const Plan plan = builder.build();
  EXPECT_EQ(sent_text(choose_caps({&plan}, {}, Emulation::on, kRoom).sizes),
            "sent 64 KiB of 1 MiB; collectives: sent 64 KiB of 4 MiB");
  EXPECT_EQ(sent_text(choose_caps({&plan}, {}, Emulation::off, kRoom).sizes),
            "1 MiB sent whole; collectives: 4 MiB sent whole");
  EXPECT_EQ(sent_text(engine::SentSizes{}), "no messages");
}

}  // namespace
}  // namespace longhaul::harness
