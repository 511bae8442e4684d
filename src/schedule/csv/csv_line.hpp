#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedule/block.hpp"

/// Reading one line of a schedule's CSV file; shared by rows and header lines.
namespace longhaul::schedule::csv {

/// Larger numbers in a file are refused: what is inferred from them is allocated.
inline constexpr std::int64_t kMostChunks = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostMicrobatches = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 16;
inline constexpr std::int64_t kMostParts = 255;

/// A cursor on a line. Positions count bytes from 0, columns in messages from 1.
class Line {
public:
  Line(std::string_view text, std::size_t number, const std::string& source)
      : text_{text}, number_{number}, source_{source} {}

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] std::size_t number() const { return number_; }
  /// The next character; NUL at the end (a NUL in the text is no part of any token either).
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[position_]; }
  void skip_blanks();
  /// Takes `wanted` if it comes next.
  bool take(char wanted);
  bool take(std::string_view wanted);
  /// The longest run of characters of a class, possibly empty.
  [[nodiscard]] std::string_view take_word();      ///< A-Z a-z _
  [[nodiscard]] std::string_view take_to_comma();  ///< up to the next comma or the end
  /// A number from 0 to `most`. `what` names it in messages.
  [[nodiscard]] int take_number(std::int64_t most, std::string_view what);
  /// A text in double quotes, as quoted() writes it.
  [[nodiscard]] std::string take_quoted();
  /// `<chunk><kind><microbatch>[.part/parts]`, blanks around it taken too.
  [[nodiscard]] Block take_cell();

  /// Throws Error "source:line:column: message" for the column of `position`.
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const;

private:
  [[nodiscard]] BlockKind take_kind(std::size_t cell_begin);
  [[nodiscard]] std::string cell_text(std::size_t begin) const;

  std::string_view text_;
  std::size_t number_;
  std::size_t position_ = 0;
  const std::string& source_;
};

/// In double quotes, with \" \\ and \xHH for quotes, backslashes and all but printable ASCII.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace longhaul::schedule::csv
