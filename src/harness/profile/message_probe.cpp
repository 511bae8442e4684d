#include "harness/profile/message_probe.hpp"

#include <algorithm>
#include <thread>

#include "base/unit_text.hpp"
#include "harness/profile/stage_probe.hpp"

namespace longhaul::harness {
namespace {

constexpr int kTag = 0;
constexpr int kWarmUpMessages = 3;

class PingPong {
public:
  PingPong(engine::Ranks& ranks, Rank partner, Duration patience)
      : ranks_{ranks}, partner_{partner}, patience_{patience} {}

  void send(nn::ArrayView what) {
    const comm::RequestId request =
        ranks_.transport().send_payload(partner_, kTag, {what.data, what.bytes()}, {LaneId{0}});
    ranks_.transport().ring_doorbell(partner_);
    wait(request);
  }
  void receive(nn::ArrayView room) {
    wait(
        ranks_.transport().receive_payload(partner_, kTag, {room.data, room.bytes()}, {LaneId{1}}));
  }

private:
  void wait(comm::RequestId request) {
    const TimePoint until = now() + patience_;
    while (std::ranges::find(done_, request, &comm::Completion::request) == done_.end()) {
      ranks_.transport().advance(done_);
      if (now() > until)
        throw Error{fmt::format("rank {} waited {} for a message of rank {} (it may have ended). "
                                "Give more time with --deadline.",
                                index(ranks_.self()), to_text(patience_), index(partner_)),
                    ExitCode::run_failed};
      std::this_thread::yield();
    }
    done_.clear();
  }

  engine::Ranks& ranks_;
  Rank partner_;
  Duration patience_;
  std::vector<comm::Completion> done_;
};

std::vector<double> copy_times(nn::TensorOps& math, nn::ArrayView from, nn::ArrayView to,
                               int samples) {
  std::vector<double> times;
  for (int i = 0; i < kWarmUpMessages + samples; ++i)
    times.push_back(timed(math, [&] { math.copy(from, to); }));
  times.erase(times.begin(), times.begin() + kWarmUpMessages);
  return times;
}

}  // namespace

std::vector<double> message_times(engine::Ranks& ranks, nn::TensorOps& math, std::size_t count,
                                  int samples, Duration patience) {
  nn::DeviceMemory memory{math, 0};
  const nn::Buffer mine = memory.take(count, "bench_profile: message");
  const nn::Buffer theirs = memory.take(count, "bench_profile: message of another rank");
  math.fill_random(1, 1, mine.view());
  math.finish();
  const auto self = static_cast<int>(index(ranks.self()));
  const int partner = self ^ 1;
  ranks.world().barrier();
  if (ranks.count() == 1) return copy_times(math, mine.view(), theirs.view(), samples);
  std::vector<double> times;
  if (partner < ranks.count()) {
    PingPong with{ranks, Rank{partner}, patience};
    for (int i = 0; i < kWarmUpMessages + samples; ++i) {
      const double both = timed(math, [&] {
        if (self < partner) with.send(mine.view());
        with.receive(theirs.view());
        if (self > partner) with.send(mine.view());
      });
      if (i >= kWarmUpMessages) times.push_back(both / 2);
    }
  }
  ranks.world().barrier();
  return ranks.is_first() ? times : std::vector<double>{};
}

}  // namespace longhaul::harness
