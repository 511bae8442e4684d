#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "plan/messages.hpp"

namespace longhaul {
namespace {

/// Plays grouped communication without times. A rank stands in front of block `at`: it has posted
/// the sends of the block before and the receives of this gap, and goes on when all of them are
/// done. A message is done when both sides are posted and its channel's earlier ones are done.
class Rendezvous {
public:
  Rendezvous(Messages& messages, const Schedule& schedule, int replica)
      : messages_{messages}, schedule_{schedule}, replica_{replica} {
    const auto devices = static_cast<std::size_t>(schedule.devices);
    out_.resize(devices);
    in_.resize(devices);
    at_.assign(devices, 0);
    for (std::size_t c = 0; c < messages.channels.size(); ++c) {
      out_[static_cast<std::size_t>(messages.channels[c].from)].push_back(c);
      in_[static_cast<std::size_t>(messages.channels[c].to)].push_back(c);
    }
    done_.assign(messages.channels.size(), 0);
  }

  void play() {
    for (;;) {
      while (step_all()) {
      }
      if (finished()) return;
      post_early();
    }
  }

private:
  /// First message of the channel that is not done; nullptr when all are.
  Message* head(std::size_t channel) {
    const auto& c = messages_.channels[channel];
    return done_[channel] < c.count ? &messages_.all[c.first + done_[channel]] : nullptr;
  }
  [[nodiscard]] bool sent(const Message& m) const {
    return at_[static_cast<std::size_t>(m.from)] > m.sent_after;
  }
  [[nodiscard]] bool posted(const Message& m) const {
    return at_[static_cast<std::size_t>(m.to)] >= m.posted_before;
  }
  [[nodiscard]] std::int32_t row_size(std::size_t device) const {
    return static_cast<std::int32_t>(schedule_.row(replica_, static_cast<int>(device)).size());
  }

  /// Is everything that the rank has posted done, so that it may run the block it stands before?
  bool free_to_go(std::size_t device) {
    if (at_[device] >= row_size(device)) return false;
    for (const std::size_t c : out_[device]) {
      const Message* m = head(c);
      if (m != nullptr && sent(*m)) return false;
    }
    return std::none_of(in_[device].begin(), in_[device].end(), [&](std::size_t c) {
      const Message* m = head(c);
      return m != nullptr && posted(*m);
    });
  }

  bool step_all() {
    bool moved = false;
    for (std::size_t c = 0; c < messages_.channels.size(); ++c) {
      for (Message* m = head(c); m != nullptr && sent(*m) && posted(*m); m = head(c)) {
        ++done_[c];
        moved = true;
      }
    }
    for (std::size_t device = 0; device < at_.size(); ++device) {
      if (!free_to_go(device)) continue;
      ++at_[device];
      moved = true;
    }
    return moved;
  }

  bool finished() {
    for (std::size_t c = 0; c < messages_.channels.size(); ++c)
      if (head(c) != nullptr) return false;
    return true;
  }

  /// Everyone waits: the first channel whose head is sent and not posted gets it posted now.
  void post_early() {
    for (std::size_t c = 0; c < messages_.channels.size(); ++c) {
      Message* m = head(c);
      if (m == nullptr || !sent(*m) || posted(*m)) continue;
      m->posted_before = at_[static_cast<std::size_t>(m->to)];
      return;
    }
    LONGHAUL_ASSERT(false, "schedule {} waits in a circle for blocks that nobody runs",
                    schedule_.name);
  }

  Messages& messages_;
  const Schedule& schedule_;
  int replica_;
  std::vector<std::vector<std::size_t>> out_, in_;  ///< channels of each device
  std::vector<std::int32_t> at_;                    ///< next block of each device
  std::vector<std::uint32_t> done_;                 ///< messages of each channel that are done
};

/// A receive behind another one of its channel cannot be posted later than... in the order of the
/// sends an earlier message must be posted no later than any behind it.
void keep_order_of_sends(Messages& messages) {
  for (const auto& channel : messages.channels) {
    std::int32_t latest = std::numeric_limits<std::int32_t>::max();
    for (std::uint32_t i = channel.count; i-- > 0;) {
      Message& m = messages.all[channel.first + i];
      latest = std::min(latest, m.posted_before);
      m.posted_before = latest;
    }
  }
}

}  // namespace

void arrange_groups(Messages& messages, const Schedule& schedule, int replica) {
  keep_order_of_sends(messages);
  Rendezvous{messages, schedule, replica}.play();
}

}  // namespace longhaul
