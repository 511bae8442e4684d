#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "comm/transport.hpp"
#include "engine/links/link_table.hpp"

namespace longhaul::engine {

/// A word on the lease of a link between a rank and the home of the lease, on another host: that a
/// send asks for it, lets it go, or has it. Times are ages, so that clocks are not compared; the
/// stamp of the word itself says how long it was on its way, where offsets of clocks are known.
struct LeaseWord {
  enum class Kind : std::uint32_t { asks, lets_go, granted };
  Kind kind{};
  std::uint32_t send = 0;    ///< op id
  std::uint32_t holder = 0;  ///< granted: who let go of it last
  std::uint32_t was_held = 0;
  std::int64_t sent_ns = 0;                  ///< on rank 0's clock
  std::int64_t age_ns = 0;                   ///< since when the send is ready, or the link free
  std::int64_t seen_age_ns = 0, lag_ns = 0;  ///< of the release, as it was seen
  std::int64_t kept_ns = 0;                  ///< granted: how long the home had the request
};

/// Sends and receives such words. No call waits.
class LeaseWords {
public:
  /// Tags of words to a home and from it, that nothing else has: their receives are posted ahead.
  struct Tags {
    int to_home = 0, from_home = 0;
  };
  /// `clock_offset`: of this host's clock from rank 0's, known on all ranks or on none. Unknown, a
  /// word counts as sent when it is seen.
  LeaseWords(comm::Transport& transport, const Tags& tags, std::optional<Duration> clock_offset)
      : transport_{transport}, tags_{tags}, clock_offset_{clock_offset} {}

  void send(Rank to, LeaseWord word, TimePoint at);
  /// One word of a client will come, or one of a home.
  void expect_of_client(Rank client) { expect(client, tags_.to_home); }
  void expect_of_home(Rank home) { expect(home, tags_.from_home); }

  struct Came {
    Rank from{};
    LeaseWord word;
    TimePoint sent{};  ///< by this host's clock
  };
  /// True where a completion is of a word; `came` is that which came thereby.
  [[nodiscard]] bool take(const comm::Completion& completion, TimePoint at,
                          std::optional<Came>& came);
  /// All have left, and none is expected.
  [[nodiscard]] bool idle() const { return leaving_.empty() && coming_.empty(); }
  /// Some are expected.
  [[nodiscard]] bool awaits() const { return !coming_.empty(); }

private:
  struct Coming {
    Rank from{};
    LeaseWord word;
  };
  void expect(Rank from, int tag);

  comm::Transport& transport_;
  Tags tags_;
  std::optional<Duration> clock_offset_;
  std::unordered_map<comm::RequestId, std::unique_ptr<LeaseWord>> leaving_;
  std::unordered_map<comm::RequestId, std::unique_ptr<Coming>> coming_;
};

/// The release of a link, or its grant, in ages from `at`.
[[nodiscard]] LeaseWord word_of(LeaseWord::Kind kind, OpId send, const LinkTable::Grant& grant,
                                TimePoint at);
/// The same by the clock of who got the word.
[[nodiscard]] LinkTable::Grant grant_of(const LeaseWords::Came& came);

}  // namespace longhaul::engine
