#include <array>
#include <cmath>
#include <cstring>

#include "base/kept_share.hpp"
#include "compress/wire/values.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {
namespace {

/// Reads one payload from front to back.
class PayloadReader {
public:
  PayloadReader(std::span<const std::byte> payload, const Expected& expected)
      : all_{payload.size()}, left_{payload}, expected_{expected} {}

  SparseSet read() && {
    read_header();
    switch (index_) {
      case IndexFormat::coo32: read_coo32(); break;
      case IndexFormat::coo16: read_coo16(); break;
      case IndexFormat::gaps: read_gaps(); break;
    }
    const std::size_t numbers = kept_numbers();
    const std::size_t bytes = bytes_of_values(numbers, values_);
    if (left_.size() != bytes)
      refuse("{} bytes are left for {} values, which take {}", left_.size(), numbers, bytes);
    set_.values = read_values(left_, numbers, values_);
    for (std::size_t i = 0; i < numbers; ++i)
      if (!std::isfinite(set_.values[i])) refuse("value {} is no finite number", i);
    return std::move(set_);
  }

private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error{fmt::format("{}: {} (a payload of {} bytes). Look at what sent it.",
                            expected_.source, fmt::format(format, std::forward<Args>(args)...),
                            all_)};
  }

  [[nodiscard]] const std::byte* take(std::size_t bytes, const char* what) {
    if (left_.size() < bytes) refuse("{} end early, at byte {}", what, all_ - left_.size());
    const std::byte* const at = left_.data();
    left_ = left_.subspan(bytes);
    return at;
  }

  template <typename Number>
  static Number number_at(const std::byte* at) {
    Number number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }

  void read_header() {
    const std::byte* const header = take(kPayloadHeader, "its first words");
    if (header[0] != std::byte{'L'} || header[1] != std::byte{'S'})
      refuse("it does not begin with LS");
    const auto formats = std::to_integer<unsigned>(header[2]);
    index_ = static_cast<IndexFormat>(formats & 15U);
    values_ = static_cast<ValueFormat>(formats >> 4U);
    if (!is_listed(index_) || !is_listed(values_)) refuse("there is no format {}", formats);
    set_.block = std::to_integer<int>(header[3]);
    set_.count = number_at<std::uint32_t>(header + 4);
    kept_ = number_at<std::uint32_t>(header + 8);
    if (!is_kept_block(set_.block)) refuse("there are no blocks of {}", set_.block);
    if (set_.count > kMostNumbers) refuse("it is of {} numbers", set_.count);
    if (expected_.count >= 0 && set_.count != expected_.count)
      refuse("it is of {} numbers instead of {}", set_.count, expected_.count);
    if (expected_.block >= 0 && set_.block != expected_.block)
      refuse("it has blocks of {} instead of {}", set_.block, expected_.block);
    blocks_ = blocks_in(set_.count, set_.block);
    if (kept_ > blocks_) refuse("it keeps {} of {} blocks", kept_, blocks_);
    // A block takes at least one byte: no more room than the payload has for them.
    if (kept_ > static_cast<std::int64_t>(left_.size()))
      refuse("{} blocks are more than its bytes hold", kept_);
    set_.blocks.reserve(static_cast<std::size_t>(kept_));
  }

  /// Of the blocks read; only the last can be short.
  [[nodiscard]] std::size_t kept_numbers() const {
    if (set_.blocks.empty()) return 0;
    return (set_.blocks.size() - 1) * static_cast<std::size_t>(set_.block) +
           set_.size_of(set_.blocks.back());
  }

  void add_block(std::int64_t block) {
    if (block < 0 || block >= blocks_)
      refuse("block {} is out of range (there are {})", block, blocks_);
    if (!set_.blocks.empty()) {
      const std::int64_t before = set_.blocks.back();
      if (block == before) refuse("block {} stands there twice", block);
      if (block < before) refuse("block {} stands after block {}", block, before);
    }
    set_.blocks.push_back(static_cast<std::uint32_t>(block));
  }

  /// The block that begins at `place`, whose first number that is.
  std::size_t begin_block(std::int64_t place) {
    if (place >= set_.count) refuse("place {} is out of range (there are {})", place, set_.count);
    if (place % set_.block != 0) refuse("place {} begins no block of {}", place, set_.block);
    add_block(place / set_.block);
    return set_.size_of(set_.blocks.back());
  }

  void read_coo32() {
    for (std::int64_t i = 0; i < kept_; ++i) {
      const std::int64_t first = number_at<std::uint32_t>(take(4, "its places"));
      const std::size_t size = begin_block(first);
      const std::byte* const rest = take(4 * (size - 1), "its places");
      for (std::size_t j = 1; j < size; ++j) {
        const std::int64_t place = number_at<std::uint32_t>(rest + 4 * (j - 1));
        require_next(place, first + static_cast<std::int64_t>(j));
      }
    }
  }

  void require_next(std::int64_t place, std::int64_t wanted) const {
    if (place != wanted)
      refuse("place {} stands where {} must, in a block of {}", place, wanted, set_.block);
  }

  void read_coo16() {
    const std::int64_t stretches = (set_.count + kStretch - 1) / kStretch;
    const std::byte* const counts = take(4 * static_cast<std::size_t>(stretches), "its counts");
    for (std::int64_t stretch = 0; stretch < stretches; ++stretch) {
      std::int64_t numbers = number_at<std::uint32_t>(counts + 4 * stretch);
      while (numbers > 0) {
        const std::int64_t first =
            stretch * kStretch + number_at<std::uint16_t>(take(2, "its places"));
        const std::size_t size = begin_block(first);
        if (static_cast<std::int64_t>(size) > numbers)
          refuse("stretch {} ends inside a block", stretch);
        const std::byte* const rest = take(2 * (size - 1), "its places");
        for (std::size_t j = 1; j < size; ++j) {
          const std::int64_t place =
              stretch * kStretch + number_at<std::uint16_t>(rest + 2 * (j - 1));
          require_next(place, first + static_cast<std::int64_t>(j));
        }
        numbers -= static_cast<std::int64_t>(size);
      }
    }
    if (static_cast<std::int64_t>(set_.blocks.size()) != kept_)
      refuse("it has {} blocks and says {}", set_.blocks.size(), kept_);
  }

  void read_gaps() {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < kept_; ++i) {
      std::uint64_t gap = 0;
      for (unsigned shift = 0;; shift += 7) {
        if (shift > 28) refuse("gap {} has more than 5 bytes", i);
        const auto byte = std::to_integer<unsigned>(*take(1, "its gaps"));
        gap |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
        if (byte < 0x80U) break;
      }
      add_block(next + static_cast<std::int64_t>(gap));
      next = static_cast<std::int64_t>(set_.blocks.back()) + 1;
    }
  }

  std::size_t all_;
  std::span<const std::byte> left_;
  const Expected& expected_;
  IndexFormat index_{};
  ValueFormat values_{};
  std::int64_t kept_ = 0, blocks_ = 0;
  SparseSet set_;
};

}  // namespace

SparseSet decode(std::span<const std::byte> payload, const Expected& expected) {
  return PayloadReader{payload, expected}.read();
}

}  // namespace longhaul::compress
