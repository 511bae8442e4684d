#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "plan/lowering/messages.hpp"

namespace longhaul::plan {
namespace {

/// By device and row position: does the block send something to another device?
std::vector<std::vector<bool>> find_senders(const Messages& messages) {
  std::vector<std::vector<bool>> sends;
  for (const auto& row : messages.input_of) sends.emplace_back(row.size(), false);
  for (const Message& m : messages.all) sends[index(m.from)][at(m.sent_after)] = true;
  return sends;
}

/// Position before which the receive for the block at `needed_before` is posted.
std::int32_t paired_position(const std::vector<bool>& sends,
                             const std::vector<std::int32_t>& input_of,
                             std::int32_t needed_before) {
  for (std::int32_t at = needed_before; at > 0; --at) {
    const auto previous = to_size(at - 1);
    if (sends[previous]) return at;
    if (input_of[previous] >= 0) break;
  }
  return needed_before;
}

/// Where a later message of a channel is needed first, the earlier ones are posted with it.
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

void arrange_groups(Messages& messages) {
  const auto sends = find_senders(messages);
  for (Message& m : messages.all) {
    const auto to = index(m.to);
    m.posted_before = paired_position(sends[to], messages.input_of[to], m.needed_before);
  }
  keep_order_of_sends(messages);
}

}  // namespace longhaul::plan
