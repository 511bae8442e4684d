#include "schedule/csv/csv_line.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace longhaul::schedule::csv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_plain(char c) { return c >= ' ' && c <= '~'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Actions of torch.distributed.pipelining that are no blocks.
constexpr std::array<std::string_view, 7> kOtherActions{
    "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};

}  // namespace

void Line::fail_at(std::size_t position, const std::string& message) const {
  fail("{}:{}:{}: {}", source_, number_, position + 1, message);
}

void Line::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++position_;
}

bool Line::take(char wanted) {
  if (at_end() || text_[position_] != wanted) return false;
  ++position_;
  return true;
}

bool Line::take(std::string_view wanted) {
  if (!text_.substr(position_).starts_with(wanted)) return false;
  position_ += wanted.size();
  return true;
}

std::string_view Line::take_word() {
  const std::size_t begin = position_;
  while (is_letter(peek())) ++position_;
  return text_.substr(begin, position_ - begin);
}

std::string_view Line::take_to_comma() {
  const std::size_t begin = position_;
  position_ = std::min(text_.find(',', begin), text_.size());
  return text_.substr(begin, position_ - begin);
}

int Line::take_number(std::int64_t most, std::string_view what) {
  const std::size_t begin = position_;
  std::int64_t value = 0;
  for (; is_digit(peek()); ++position_) {
    value = value * 10 + (peek() - '0');
    if (value > most) fail_at(begin, fmt::format("{} is too large (at most {}).", what, most));
  }
  if (position_ == begin) fail_at(begin, fmt::format("{} is missing (digits expected).", what));
  return static_cast<int>(value);
}

std::string Line::take_quoted() {
  const std::size_t begin = position_;
  if (!take('"')) fail_at(begin, "A text in double quotes is expected.");
  std::string value;
  while (!take('"')) {
    const std::size_t at = position_;
    if (at_end()) fail_at(begin, "The text has no closing quote.");
    const char c = text_[position_++];
    if (c != '\\') {
      value += c;
    } else if (peek() == '"' || peek() == '\\') {
      value += text_[position_++];
    } else if (text_.size() - position_ >= 3 && take('x') && hex_value(text_[position_]) >= 0 &&
               hex_value(text_[position_ + 1]) >= 0) {
      value +=
          static_cast<char>(hex_value(text_[position_]) * 16 + hex_value(text_[position_ + 1]));
      position_ += 2;
    } else {
      fail_at(at, "Unknown escape (known: \\\" \\\\ and \\xHH with lower-case digits).");
    }
  }
  return value;
}

std::string Line::cell_text(std::size_t begin) const {
  constexpr std::size_t kShown = 32;
  const std::string_view cell = text_.substr(begin, text_.find(',', begin) - begin);
  return quoted(cell.substr(0, kShown)) + (cell.size() > kShown ? "..." : "");
}

BlockKind Line::take_kind(std::size_t cell_begin) {
  const std::size_t begin = position_;
  const std::string_view kind = take_word();
  if (kind == "I") return BlockKind::D;
  if (const auto known = from_string<BlockKind>(kind)) return *known;
  if (std::ranges::find(kOtherActions, kind) != kOtherActions.end()) {
    fail_at(begin, fmt::format("Cell {} moves data (a schedule here is an order of blocks; the "
                               "plan adds communication). Export compute_only.",
                               cell_text(cell_begin)));
  }
  fail_at(begin, fmt::format("Cell {} names no block (kinds: F, B, I, W, R, as in 2F5).",
                             cell_text(cell_begin)));
}

Block Line::take_cell() {
  skip_blanks();
  const std::size_t begin = position_;
  if (peek() == '(') {
    fail_at(begin, fmt::format("Cell {} runs several blocks at once (a schedule here is an order "
                               "of single blocks). Write them as cells of their own.",
                               cell_text(begin)));
  }
  if (!is_digit(peek())) {
    fail_at(begin, fmt::format("Cell {} does not begin with a chunk's number (as in 2F5).",
                               cell_text(begin)));
  }
  Block block;
  block.chunk = ChunkId{take_number(kMostChunks - 1, "The chunk")};
  block.kind = take_kind(begin);
  block.microbatch = MicrobatchId{take_number(kMostMicrobatches - 1, "The microbatch")};
  if (take('.')) {
    const std::size_t part_begin = position_;
    const int part = take_number(kMostParts, "The part");
    if (!take('/')) fail_at(position_, "A part is written .k/n, as in 2F5.0/4.");
    const int parts = take_number(kMostParts, "The number of parts");
    if (part >= parts) {
      fail_at(part_begin,
              fmt::format("There is no part {} of {} (parts count from 0).", part, parts));
    }
    block.part = static_cast<std::uint8_t>(part);
    block.parts = static_cast<std::uint8_t>(parts);
  }
  skip_blanks();
  if (!at_end() && peek() != ',') {
    fail_at(position_,
            fmt::format("Cell {} goes on behind its end (a comma is expected).", cell_text(begin)));
  }
  return block;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (!is_plain(c)) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

}  // namespace longhaul::schedule::csv
