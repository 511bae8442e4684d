#include "engine/watchdog/op_events.hpp"

#include "harness/profile/plan_builder.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using comm::OpEvent;

class OpEventsOfHosts : public OnRanks {};

// Two hosts of which each sends over one link: the one that leases it to the other knows who holds
// it; on the other the send has asked.
RANKS_TEST(OpEventsOfHosts, TellWhatHoldsALinkUp) {
  NEEDS_RANKS(4);
  const int half = ranks().count() / 2;
  const comm::HostRanks host_ranks{ranks().world(), half};
  harness::PlanBuilder b{"shared", ranks().count()};
  const auto home = b.message(0, 1, Duration{1}, {}, Bytes{1}, {"link"});
  const auto distant = b.message(half, half + 1, Duration{1}, {}, Bytes{1}, {"link"});
  const Plan plan = b.build();
  const engine::OpEvents events{plan, host_ranks};
  if (self() == 0) events.note(b.id(distant.send), OpEvent::started);  // it was granted that
  if (self() == 1) events.note(b.id(home.recv), OpEvent::posted);
  if (self() == half) events.note(b.id(distant.send), OpEvent::posted);
  if (self() == half + 1) events.note(b.id(distant.recv), OpEvent::posted);
  host_ranks.host().barrier();
  if (self() < half) {
    const auto found = engine::find_held_up(plan, events, host_ranks, b.id(home.recv));
    EXPECT_EQ(found.op, b.id(distant.send));
    EXPECT_STREQ(found.why, "on another host");
  } else if (self() < half + 2) {
    const auto found = engine::find_held_up(plan, events, host_ranks, b.id(distant.recv));
    EXPECT_EQ(found.op, b.id(distant.send));
    EXPECT_STREQ(found.why, "has asked for its link, which another host leases");
  }
  ranks().world().barrier();
}

// What a rank of another host was granted says nothing of a message that is waited for here.
RANKS_TEST(OpEventsOfHosts, FollowAReceiveToTheOtherHost) {
  NEEDS_RANKS(4);
  const int half = ranks().count() / 2;
  const comm::HostRanks host_ranks{ranks().world(), half};
  harness::PlanBuilder b{"across", ranks().count()};
  const auto message = b.message(half, 0, Duration{1}, {}, Bytes{1}, {"link"});
  const Plan plan = b.build();
  const engine::OpEvents events{plan, host_ranks};
  if (self() == 0) {
    events.note(b.id(message.recv), OpEvent::posted);
    events.note(b.id(message.send), OpEvent::started);
    const auto found = engine::find_held_up(plan, events, host_ranks, b.id(message.recv));
    EXPECT_EQ(found.op, b.id(message.send));
    EXPECT_STREQ(found.why, "on another host");
  }
  ranks().world().barrier();
}

}  // namespace
}  // namespace longhaul::testing
