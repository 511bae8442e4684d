#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/units.hpp"
#include "scenario/text/csv_lines.hpp"

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

/// No request arrives later: 36 years.
inline constexpr Duration kLatestArrival{std::int64_t{1} << 60};

/// parse_requests() line by line, which keeps none of them.
class RequestParser {
public:
  explicit RequestParser(std::string name);
  RequestParser(const RequestParser&) = delete;  // lines refer to the name
  RequestParser& operator=(const RequestParser&) = delete;

  /// The request of the next line, without its end; nullopt: it asks for nothing.
  [[nodiscard]] std::optional<Request> take(std::string_view text);
  /// After the last line: throws Error where there was no request.
  void finish() const;
  [[nodiscard]] std::int64_t count() const { return count_; }

private:
  enum class Format : std::uint8_t { unknown, azure_names, azure, json_lines };
  [[nodiscard]] std::optional<Request> of_azure(std::string_view text);
  [[nodiscard]] Request of_json(std::string_view text);
  [[nodiscard]] Request checked(std::int64_t arrival, std::int64_t tokens);

  std::string name_;
  scenario::CsvLine line_;
  Format format_ = Format::unknown;
  std::size_t columns_ = 0, time_column_ = 0, tokens_column_ = 0;
  std::optional<std::int64_t> first_{};  ///< ns since 1970
  Duration last_{};
  std::int64_t count_ = 0;
};

/// The requests of a file of any length, one after the other, in constant memory. Throws Error as
/// parse_requests() does, and where a line has more than `longest` bytes.
class RequestFile {
public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20U;
  explicit RequestFile(const std::filesystem::path& file);
  /// `name` is the file's in messages.
  RequestFile(std::unique_ptr<std::istream> stream, const std::string& name,
              std::size_t longest = kLongestLine);
  [[nodiscard]] std::optional<Request> next();

private:
  [[nodiscard]] std::optional<std::string_view> line();

  std::string name_;
  RequestParser parser_;
  std::unique_ptr<std::istream> stream_;
  std::vector<char> buffer_;         ///< a line and its end
  std::size_t begin_ = 0, end_ = 0;  ///< what of the buffer was read and not yet taken
  std::size_t seen_ = 0;             ///< of that: no end of a line is in it
  bool is_over_ = false;             ///< nothing more is to be read
};

/// How a trace is offered; what is not set changes nothing. In this order:
struct LoadOptions {
  std::optional<Duration> window_from{},
      window_to{};  ///< arrivals in [from, to), which count from it
  int copies = 1;   ///< laid over each other, each shifted around the trace by a seeded time
  double rate = 1;  ///< time is so much shorter
  std::optional<double> poisson{};  ///< requests a second: seeded arrivals instead of the trace's
  std::uint64_t seed = 1;
};
/// Sets the window that --window FROM,TO gives; either may be left out. Throws Error that names the
/// option.
void set_window(const std::string& text, LoadOptions& load);
inline constexpr int kMostCopies = 100'000;

/// The requests as they arrive: by arrival, then by id. Copies' ids follow those of the file.
/// Throws Error where one would arrive after more than 2^60 ns.
[[nodiscard]] std::vector<Request> offered_load(std::vector<Request> requests,
                                                const LoadOptions& options);

/// Exponential times between arrivals.
class PoissonArrivals {
public:
  PoissonArrivals(double rate, std::uint64_t seed);  ///< requests a second
  [[nodiscard]] Request next(Request request);

private:
  double rate_, seconds_ = 0;
  Random random_;
};

/// offered_load() one after the other; copies must be 1. `file` lives as long.
class OfferedStream {
public:
  OfferedStream(RequestFile& file, const LoadOptions& options);
  [[nodiscard]] std::optional<Request> next();

private:
  RequestFile& file_;
  LoadOptions options_;
  std::optional<PoissonArrivals> poisson_{};
};

}  // namespace longhaul::prefill
