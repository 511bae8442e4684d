#include <cmath>
#include <cstring>

#include "base/kept_share.hpp"
#include "compress/wire/values.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {
namespace {

template <typename Number>
void put(std::vector<std::byte>& to, Number number) {
  const std::size_t at = to.size();
  to.resize(at + sizeof number);
  std::memcpy(to.data() + at, &number, sizeof number);
}

void put_header(const SparseSet& set, IndexFormat index, ValueFormat values,
                std::vector<std::byte>& to) {
  to.push_back(std::byte{'L'});
  to.push_back(std::byte{'S'});
  to.push_back(
      static_cast<std::byte>(static_cast<unsigned>(index) | static_cast<unsigned>(values) << 4U));
  to.push_back(static_cast<std::byte>(set.block));
  put(to, static_cast<std::uint32_t>(set.count));
  put(to, static_cast<std::uint32_t>(set.blocks.size()));
}

void put_coo32(const SparseSet& set, std::vector<std::byte>& to) {
  std::size_t at = to.size();
  to.resize(at + 4 * set.values.size());
  each_block(set, [&](std::size_t place, std::size_t, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, at += 4) {
      const auto index = static_cast<std::uint32_t>(place + i);
      std::memcpy(to.data() + at, &index, sizeof index);
    }
  });
}

void put_coo16(const SparseSet& set, std::vector<std::byte>& to) {
  std::vector<std::uint32_t> kept(static_cast<std::size_t>((set.count + kStretch - 1) / kStretch));
  each_block(set, [&](std::size_t place, std::size_t, std::size_t size) {
    kept[place / kStretch] += static_cast<std::uint32_t>(size);
  });
  for (const std::uint32_t numbers : kept) put(to, numbers);
  std::size_t at = to.size();
  to.resize(at + 2 * set.values.size());
  each_block(set, [&](std::size_t place, std::size_t, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, at += 2) {
      const auto index = static_cast<std::uint16_t>((place + i) % kStretch);
      std::memcpy(to.data() + at, &index, sizeof index);
    }
  });
}

void put_gaps(const SparseSet& set, std::vector<std::byte>& to) {
  constexpr std::size_t kLongest = 5;
  std::size_t at = to.size();
  to.resize(at + kLongest * set.blocks.size());
  std::uint32_t next = 0;
  for (const std::uint32_t block : set.blocks) {
    std::uint32_t gap = block - next;
    for (; gap >= 0x80U; gap >>= 7U) to[at++] = static_cast<std::byte>(gap | 0x80U);
    to[at++] = static_cast<std::byte>(gap);
    next = block + 1;
  }
  to.resize(at);
}

}  // namespace

std::vector<std::byte> encode(const SparseSet& set, IndexFormat index, ValueFormat values) {
  LONGHAUL_ASSERT(set.count >= 0 && set.count <= kMostNumbers, "{} numbers", set.count);
  std::vector<std::byte> payload;
  payload.reserve(kPayloadHeader + 8 * set.values.size() + 64);
  put_header(set, index, values, payload);
  switch (index) {
    case IndexFormat::coo32: put_coo32(set, payload); break;
    case IndexFormat::coo16: put_coo16(set, payload); break;
    case IndexFormat::gaps: put_gaps(set, payload); break;
  }
  write_values(set.values, values, payload);
  return payload;
}

double expected_payload_bytes(std::int64_t count, const Settings& settings) {
  const auto blocks = static_cast<double>(blocks_to_keep(count, settings.keep, settings.block));
  const auto all = static_cast<double>(blocks_in(count, settings.block));
  const double numbers = std::min(blocks * settings.block, static_cast<double>(count));
  double bytes =
      static_cast<double>(kPayloadHeader) +
      static_cast<double>(bytes_of_values(static_cast<std::size_t>(numbers), settings.values));
  switch (settings.index) {
    case IndexFormat::coo32: return bytes + 4 * numbers;
    case IndexFormat::coo16:
      return bytes + 2 * numbers + 4 * std::ceil(static_cast<double>(count) / kStretch);
    case IndexFormat::gaps: break;
  }
  return all == 0 ? bytes : bytes + blocks * mean_gap_bytes(blocks / all);
}

}  // namespace longhaul::compress
