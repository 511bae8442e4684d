#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// One activation or gradient that goes from one device of a replica to another.
struct Message {
  Block producer;  ///< last part: the message leaves after it
  DeviceId from{}, to{};
  std::int32_t sent_after = 0;     ///< position of the producer in the row of `from`
  std::int32_t needed_before = 0;  ///< position of the consumer in the row of `to`
  /// Position of the block in the row of `to` before which the receive is posted when
  /// communication is grouped; set by arrange_groups().
  std::int32_t posted_before = 0;
};

/// All messages of one replica.
struct Messages {
  std::vector<Message> all;  ///< by (from, to), then in the order of sending
  /// Index into `all` of the message that block (row position) waits for; -1: none. One row each.
  std::vector<std::vector<std::int32_t>> input_of;

  struct Channel {
    DeviceId from{}, to{};
    std::uint32_t first = 0, count = 0;  ///< range of `all`
  };
  std::vector<Channel> channels;  ///< ordered by (from, to)
};

/// Collects the messages of `replica`. The schedule must be valid.
[[nodiscard]] Messages find_messages(const Schedule& schedule, ReplicaId replica);

/// Chooses where each receive is posted when communication is grouped: together with the send of
/// the block before the one that needs it. Blocks in between that neither send nor receive (W)
/// are passed over, so that a D's send is paired with the receive of the next F. A channel's
/// receives are posted in the order of its sends. Sets Message::posted_before.
void arrange_groups(Messages& messages);

}  // namespace longhaul::plan
