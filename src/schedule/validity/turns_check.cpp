// Turns on the WAN: do they name messages of their cell, and can cells run in their order?
#include <algorithm>
#include <charconv>

#include "base/index.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule::checks {
namespace {

constexpr std::string_view kTurns = "turns ";

struct PairOfTurns {
  int cell = 0;
  DeviceId from{}, to{};
};

/// The cell and its devices in "turns 0/1>2"; nullopt where the name is another one.
std::optional<PairOfTurns> pair_of(std::string_view name) {
  int cell = 0, from = 0, to = 0;
  const char* next = name.data() + std::min(kTurns.size(), name.size());
  const char* const end = name.data() + name.size();
  const auto number = [&](int& value, char end_mark) {
    const auto [stop, error] = std::from_chars(next, end, value);
    if (error != std::errc{}) return false;
    const bool last = end_mark == '\0';
    if (last ? stop != end : (stop == end || *stop != end_mark)) return false;
    next = last ? stop : stop + 1;
    return true;
  };
  if (number(cell, '/') && number(from, '>') && number(to, '\0'))
    return PairOfTurns{cell, DeviceId{from}, DeviceId{to}};
  return std::nullopt;
}

/// The identity of a message.
struct Key {
  ReplicaId replica{};
  bool gradient = false;
  ChunkId chunk{};  ///< of its producer
  MicrobatchId microbatch{};
  friend bool operator==(const Key&, const Key&) = default;
};

Key key_of(ReplicaId replica, const Block& block) {
  return {replica, is_backward(block.kind), block.chunk, block.microbatch};
}
Key key_of(const OrderedMessage& message) { return key_of(message.replica, message.producer); }

/// Runs all rows of a schedule without times, each message when its turn has come.
class TurnsRun {
public:
  /// How many messages there may be; the run keeps a few bytes for each.
  static std::size_t messages(const Schedule& schedule) {
    return 2 * at(schedule.replicas) * at(schedule.chunks) * at(schedule.microbatches);
  }

  explicit TurnsRun(const Schedule& schedule)
      : schedule_{schedule},
        next_(at(schedule.replicas) * at(schedule.devices)),
        passed_(schedule.link_orders.size()),
        turns_of_(messages(schedule), kNoTurns),
        states_(turns_of_.size(), State::missing) {
    for (std::size_t t = 0; t < schedule.link_orders.size(); ++t) {
      if (schedule.link_orders[t].kind != LinkOrderKind::turns) continue;
      for (const OrderedMessage& message : schedule.link_orders[t].messages)
        turns_of_[index_of(key_of(message))] = static_cast<std::uint32_t>(t);
    }
  }

  /// The rows that wait for each other, if any do.
  [[nodiscard]] std::vector<std::size_t> run() {
    for (std::size_t row = 0; row < next_.size(); ++row) ready_.push_back(row);
    while (!ready_.empty()) {
      const std::size_t row = ready_.back();
      ready_.pop_back();
      advance(row);
    }
    for (std::size_t row = 0; row < next_.size(); ++row)
      if (!finished(row)) return cycle_from(row);
    return {};
  }

  [[nodiscard]] std::string explain(std::size_t row) const {
    const Key input = *input_of(row, blocks(row)[next_[row]]);
    const Key wanted = blocker(input);
    std::string text =
        fmt::format("\n  device {} of replica {} waits at position {}, {}, for {}", device_of(row),
                    replica_of(row), next_[row], to_text(blocks(row)[next_[row]]), text_of(input));
    if (wanted != input)
      text += fmt::format(", whose turn comes behind that of {} (\"{}\")", text_of(wanted),
                          schedule_.link_orders[turns_of_[index_of(input)]].resource);
    return text;
  }

private:
  enum class State : std::uint8_t { missing, made, sent };
  static constexpr std::uint32_t kNoTurns = ~std::uint32_t{0};

  [[nodiscard]] std::size_t index_of(const Key& key) const {
    const std::size_t chunk = index(key.replica) * at(schedule_.chunks) + at(key.chunk);
    return (chunk * at(schedule_.microbatches) + at(key.microbatch)) * 2 + (key.gradient ? 1 : 0);
  }
  [[nodiscard]] State state(const Key& key) const { return states_[index_of(key)]; }
  [[nodiscard]] std::span<const Block> blocks(std::size_t row) const {
    return schedule_.row(replica_of(row), device_of(row));
  }
  [[nodiscard]] DeviceId device_of(std::size_t row) const {
    return DeviceId{static_cast<std::int32_t>(row % at(schedule_.devices))};
  }
  [[nodiscard]] ReplicaId replica_of(std::size_t row) const {
    return ReplicaId{static_cast<std::int32_t>(row / at(schedule_.devices))};
  }
  [[nodiscard]] bool finished(std::size_t row) const { return next_[row] == blocks(row).size(); }
  [[nodiscard]] std::size_t row_of(ReplicaId replica, ChunkId chunk) const {
    return index(replica) * at(schedule_.devices) + index(schedule_.device_of_chunk[chunk]);
  }
  static std::string text_of(const Key& key) {
    const BlockKind kind = key.gradient ? BlockKind::B : BlockKind::F;
    const Block producer{.kind = kind, .chunk = key.chunk, .microbatch = key.microbatch};
    return fmt::format("{} of replica {}", to_text(producer), key.replica);
  }

  [[nodiscard]] std::optional<Key> input_of(std::size_t row, const Block& block) const {
    const ReplicaId replica = replica_of(row);
    if (block.kind == BlockKind::F && !schedule_.is_first(block.chunk))
      return Key{replica, false, previous(block.chunk), block.microbatch};
    const bool takes_gradient =
        is_backward(block.kind) ||
        (block.kind == BlockKind::R && schedule_.recompute_timing == RecomputeTiming::on_arrival);
    if (takes_gradient && !schedule_.is_last(block.chunk))
      return Key{replica, true, next(block.chunk), block.microbatch};
    return std::nullopt;
  }

  /// The blocker of a message that is not sent: itself, or the first of its turns that is not made.
  [[nodiscard]] Key blocker(const Key& key) const {
    if (state(key) == State::missing) return key;
    const std::uint32_t turns = turns_of_[index_of(key)];
    return key_of(schedule_.link_orders[turns].messages[passed_[turns]]);
  }

  void advance(std::size_t row) {
    for (std::size_t& next = next_[row]; !finished(row); ++next) {
      const Block& block = blocks(row)[next];
      const auto input = input_of(row, block);
      if (input && state(*input) != State::sent) return;
      const bool passes_on = block.kind == BlockKind::F || is_backward(block.kind);
      if (passes_on && block.part + 1 == block.parts) make(key_of(replica_of(row), block));
    }
  }

  void make(const Key& key) {
    const std::uint32_t turns = turns_of_[index_of(key)];
    if (turns == kNoTurns) return send(key);
    states_[index_of(key)] = State::made;
    const std::vector<OrderedMessage>& order = schedule_.link_orders[turns].messages;
    std::size_t& passed = passed_[turns];
    for (; passed < order.size(); ++passed) {
      const Key next = key_of(order[passed]);
      if (state(next) == State::missing) return;
      send(next);
    }
  }

  /// Precondition: all that go before it have been sent.
  void send(const Key& key) {
    states_[index_of(key)] = State::sent;
    if (key.gradient ? schedule_.is_first(key.chunk) : schedule_.is_last(key.chunk)) return;
    ready_.push_back(row_of(key.replica, key.gradient ? previous(key.chunk) : next(key.chunk)));
  }

  [[nodiscard]] std::vector<std::size_t> cycle_from(std::size_t row) const {
    std::vector<std::size_t> path;
    do {
      path.push_back(row);
      const Key wanted = blocker(*input_of(row, blocks(row)[next_[row]]));
      row = row_of(wanted.replica, wanted.chunk);
    } while (std::ranges::find(path, row) == path.end());
    return {std::ranges::find(path, row), path.end()};
  }

  const Schedule& schedule_;
  std::vector<std::size_t> next_;        ///< index: row; its first block that has not run
  std::vector<std::size_t> passed_;      ///< index: link order; how many of its messages were sent
  std::vector<std::uint32_t> turns_of_;  ///< index: message; its link order
  std::vector<State> states_;            ///< index: message
  std::vector<std::size_t> ready_;
};

/// Why a message has no business in these turns; empty where it has.
std::string violation(const Schedule& schedule, const PairOfTurns& pair,
                      const OrderedMessage& message) {
  const Block& block = message.producer;
  const CellReplicas members = cell_replicas(schedule, pair.cell);
  if (!members.contains(message.replica)) return "the replica is in another cell";
  if (block.chunk < 0 || block.chunk >= schedule.chunks) return "there is no such chunk";
  if (block.microbatch < 0 || block.microbatch >= schedule.microbatches)
    return "there is no such microbatch";
  const bool gradient = is_backward(block.kind);
  const bool ends = gradient ? schedule.is_first(block.chunk) : schedule.is_last(block.chunk);
  if (ends || (!gradient && block.kind != BlockKind::F)) return "it sends nothing on";
  const ChunkId taker = gradient ? previous(block.chunk) : next(block.chunk);
  if (schedule.device_of_chunk[block.chunk] != pair.from ||
      schedule.device_of_chunk[taker] != pair.to)
    return "its message goes another way";
  return {};
}

}  // namespace

std::optional<Violation> turns_violation(const Schedule& schedule) {
  const int cells = (schedule.replicas + schedule.cell - 1) / schedule.cell;
  for (const LinkOrder& order : schedule.link_orders) {
    if (order.kind != LinkOrderKind::turns) continue;
    const auto pair = pair_of(order.resource);
    if (!pair || pair->cell < 0 || pair->cell >= cells)
      return violation(ViolationKind::shape,
                       "\"{}\" names no turns (\"turns CELL/FROM>TO\" is expected, with cells 0 to "
                       "{}).",
                       order.resource, cells - 1);
    for (const OrderedMessage& message : order.messages) {
      const std::string why = violation(schedule, *pair, message);
      if (!why.empty())
        return violation(ViolationKind::shape,
                         "\"{}\" has {} of replica {} ({}). Leave it out of these turns.",
                         order.resource, to_text(message.producer), message.replica, why);
    }
  }
  return std::nullopt;
}

std::optional<Violation> turns_deadlock(const Schedule& schedule) {
  // Replicas that follow one order may be claimed in any number.
  constexpr double kMostMessages = 1 << 28;
  const double messages = 2.0 * schedule.replicas * schedule.chunks * schedule.microbatches;
  if (schedule.cell == 1 || messages > kMostMessages) return std::nullopt;
  TurnsRun run{schedule};
  const std::vector<std::size_t> cycle = run.run();
  if (cycle.empty()) return std::nullopt;
  std::string text =
      "The schedule deadlocks over its turns on the WAN (each of these waits for the next). "
      "Reorder "
      "the turns or one of the rows:";
  for (const std::size_t row : cycle) text += run.explain(row);
  return Violation{ViolationKind::deadlock, text};
}

}  // namespace longhaul::schedule::checks
