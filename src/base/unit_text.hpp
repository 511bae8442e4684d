#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace longhaul {

/// Readers of configuration values: a number, optional blanks, a unit. Each throws Error that names
/// the accepted units ("40" has no unit ...). Fractions are rounded to the nearest ns or byte.
/// Units: ns us ms s min h | B KiB MiB GiB TiB kB MB GB TB | bps kbps Mbps Gbps Tbps and
/// B/s kB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s.
[[nodiscard]] Duration parse_duration(std::string_view text);
[[nodiscard]] Bytes parse_bytes(std::string_view text);
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text);

/// For people, four significant digits: "38 ms", "1.209 s", "64 MiB", "5 Gbps", "unlimited".
[[nodiscard]] std::string to_text(Duration time);
[[nodiscard]] std::string to_text(Bytes size);
[[nodiscard]] std::string to_text(Bandwidth rate);

}  // namespace longhaul
