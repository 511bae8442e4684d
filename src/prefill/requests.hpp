#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace longhaul::prefill {

/// A prompt that asks for its prefill.
struct Request {
  std::int64_t id = 0;  ///< from 0 in the file's order; of a copy further on
  Duration arrival{};   ///< since the begin of an iteration
  std::int64_t tokens = 0;
  std::string model{};   ///< of [[prefill]]; empty: the first
  std::string region{};  ///< where it comes from: "azure:eastus"; empty: at hand everywhere
  std::vector<std::int64_t> hash_ids{};  ///< of its leading blocks of tokens
  std::optional<Duration> takes{};  ///< what its prefill really takes; nullopt: by the estimate
  friend bool operator==(const Request&, const Request&) = default;
};

/// The requests of a file, in its order; arrivals do not go back. Either Azure's traces as
/// published (a line of names with TIMESTAMP and ContextTokens; "2023-11-16 18:17:03.9799600", CRLF
/// or LF), which count from their first arrival, or JSON lines {"timestamp", "input_length", ...}
/// (as Mooncake publishes; ms from 0; "model" names a [[prefill]]), told apart by the first
/// character. `name` is the file's in messages. Throws Error "file:line: ..." that names the fault.
[[nodiscard]] std::vector<Request> parse_requests(std::string_view text, const std::string& name);

/// How a trace is offered; what is not set changes nothing. In this order:
struct LoadOptions {
  std::optional<Duration> window_from{},
      window_to{};  ///< arrivals in [from, to), which count from it
  int copies = 1;   ///< laid over each other, each shifted around the trace by a seeded time
  double rate = 1;  ///< time is so much shorter
  std::optional<double> poisson{};  ///< requests a second: seeded arrivals instead of the trace's
  std::uint64_t seed = 1;
};

/// The requests as they arrive: by arrival, then by id. Copies' ids follow those of the file.
/// Throws Error where one would arrive after more than 2^60 ns.
[[nodiscard]] std::vector<Request> offered_load(std::vector<Request> requests,
                                                const LoadOptions& options);

}  // namespace longhaul::prefill
