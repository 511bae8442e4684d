#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/block.hpp"

namespace longhaul {

/// A message as a schedule names it: what `producer` of `replica` sends on.
struct OrderedMessage {
  int replica = 0;
  Block producer;
  friend bool operator==(const OrderedMessage&, const OrderedMessage&) = default;
};

/// The order in which messages take a shared resource, where a generator decided one.
struct LinkOrder {
  std::string resource;  ///< name of the plan's resource: "link west>east", "egress west/0"
  std::vector<OrderedMessage> messages;
  friend bool operator==(const LinkOrder&, const LinkOrder&) = default;
};

/// When an R may run. Frameworks recompute inside the backward pass, so when the gradient is there
/// (CrossPipe's case 2); Varuna and Atlas recompute ahead, while they wait for it.
enum class RecomputeTiming : std::uint8_t { on_arrival, ahead };

/// An order, with no times and no ranks: per (replica, device), an ordered list of blocks.
struct Schedule {
  std::string name;
  int devices = 0;       ///< P
  int chunks = 0;        ///< of the whole model: v * P for schedules of v chunks a device
  int microbatches = 0;  ///< M
  int replicas = 1;
  std::vector<int> device_of_chunk;  ///< index: chunk
  /// Either `devices` rows, which every replica follows, or `replicas * devices`, replica-major.
  std::vector<std::vector<Block>> rows;
  std::vector<LinkOrder> link_orders;
  RecomputeTiming recompute_timing = RecomputeTiming::on_arrival;

  [[nodiscard]] bool replicas_alike() const {
    return rows.size() == static_cast<std::size_t>(devices);
  }
  [[nodiscard]] std::span<const Block> row(int replica, int device) const {
    return rows[static_cast<std::size_t>(replicas_alike() ? device : replica * devices + device)];
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Chunks of `device`, ascending.
[[nodiscard]] std::vector<int> chunks_on(const Schedule& schedule, int device);

}  // namespace longhaul
