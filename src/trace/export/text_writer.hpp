#pragma once

#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace longhaul::trace {

/// Formats into a buffer and hands it to a stream piece by piece: exports never lie in memory as a
/// whole. Throws Error when the stream fails or more than `most_bytes` are written.
class TextWriter {
public:
  TextWriter(std::ostream& out, std::int64_t most_bytes) : out_{out}, left_bytes_{most_bytes} {}

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kPiece) flush();
  }
  void flush() {
    left_bytes_ -= static_cast<std::int64_t>(buffer_.size());
    if (left_bytes_ < 0)
      fail(
          "the export grows beyond what viewers open (the selection is too large). "
          "Select one schedule and one iteration.");
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
    if (!out_) fail("the export cannot be written (the output fails). Check that there is space.");
  }

private:
  static constexpr std::size_t kPiece = 1 << 16;
  std::ostream& out_;
  std::int64_t left_bytes_;
  fmt::memory_buffer buffer_;
};

/// Prints in microseconds, exact to the nanosecond.
struct Microseconds {
  std::int64_t ns;
};

/// Text as a cell of a CSV file, quoted where RFC 4180 wants it.
inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out{'"'};
  for (const char c : text) out += c == '"' ? std::string{"\"\""} : std::string{c};
  return out + '"';
}

}  // namespace longhaul::trace

template <>
struct fmt::formatter<longhaul::trace::Microseconds> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const longhaul::trace::Microseconds& time, format_context& context) const {
    const std::int64_t ns = time.ns < 0 ? -time.ns : time.ns;
    return format_to(context.out(), "{}{}.{:03}", time.ns < 0 ? "-" : "", ns / 1000, ns % 1000);
  }
};
