#include "profile/shape_law.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.hpp"

namespace longhaul::profile {
namespace {

constexpr std::size_t kNeighbours = 4;

/// Numbers of "m=64 n=192 k=64 nt" by name; words without a number stand with 0.
std::map<std::string, double> sides_of(std::string_view shape) {
  std::map<std::string, double> sides;
  while (!shape.empty()) {
    const std::size_t end = std::min(shape.find(' '), shape.size());
    const std::string_view word = shape.substr(0, end);
    shape.remove_prefix(std::min(end + 1, shape.size()));
    const std::size_t equals = word.find('=');
    double value = 0;
    if (equals != std::string_view::npos) {
      std::int64_t number = 0;
      (void)std::from_chars(word.data() + equals + 1, word.data() + word.size(), number);
      value = static_cast<double>(std::max<std::int64_t>(1, number));
    }
    if (!word.empty()) sides[std::string{word.substr(0, equals)}] = value;
  }
  return sides;
}

double side(const std::map<std::string, double>& sides, const char* name) {
  const auto found = sides.find(name);
  return found == sides.end() ? 1 : std::max(1.0, found->second);
}

double distance(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  double sum = 0;
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    const double apart = other == b.end() ? 1 : value - other->second;
    sum += apart * apart;
  }
  return sum;
}

}  // namespace

double work_of(std::string_view operation, std::string_view shape) {
  const auto sides = sides_of(shape);
  const auto product = [&](std::initializer_list<const char*> names) {
    double result = 1;
    for (const char* name : names) result *= side(sides, name);
    return result;
  };
  if (operation == "gemm" || operation == "batched_gemm")
    return 2 * product({"batch", "m", "n", "k"});
  if (operation.starts_with("attention"))
    return 2 * product({"batch", "sequence", "sequence", "heads", "head_size"});
  if (operation == "rotary") return product({"batch", "sequence", "heads", "head_size"});
  return product({"rows", "width", "count", "bytes"});
}

ShapeLaw::ShapeLaw(std::vector<scenario::ProfileRow> rows) {
  LONGHAUL_ASSERT(!rows.empty(), "a law of {} rows", rows.size());
  operation_ = rows.front().operation;
  for (const scenario::ProfileRow& row : rows) {
    if (!measured_.try_emplace(row.shape, row.median).second) continue;
    Known known{sides_of(row.shape), work_of(operation_, row.shape),
                std::max(1.0, static_cast<double>(row.median.count()))};
    for (auto& [name, value] : known.sides) value = value > 0 ? std::log(value) : 0;
    known_.push_back(std::move(known));
  }
  fit();
}

/// The least squares of relative errors with no term below 0.
void ShapeLaw::fit() {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const Known& each : known_) {
    const double a = 1 / each.ns, b = each.work / each.ns;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  launch_ns_ = determinant > 1e-9 * aa * bb ? (a1 * bb - b1 * ab) / determinant : 0;
  ns_per_work_ = determinant > 1e-9 * aa * bb ? (b1 * aa - a1 * ab) / determinant : b1 / bb;
  if (launch_ns_ < 0) {
    launch_ns_ = 0;
    ns_per_work_ = b1 / bb;
  } else if (ns_per_work_ < 0) {
    ns_per_work_ = 0;
    launch_ns_ = a1 / aa;
  }
}

double ShapeLaw::law_ns(double work) const { return launch_ns_ + ns_per_work_ * work; }

double ShapeLaw::corrected_ns(const Known& wanted) const {
  std::vector<std::pair<double, double>> nearest;  // distance, logarithm of measured over law
  for (const Known& each : known_)
    nearest.emplace_back(distance(wanted.sides, each.sides), std::log(each.ns / law_ns(each.work)));
  const std::size_t count = std::min(kNeighbours, nearest.size());
  std::ranges::partial_sort(nearest, nearest.begin() + static_cast<std::ptrdiff_t>(count));
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = 1 / (nearest[i].first + 1e-3);
    sum += weight * nearest[i].second;
    weights += weight;
  }
  return law_ns(wanted.work) * std::exp(sum / weights);
}

ShapeTime ShapeLaw::at(std::string_view shape) const {
  if (const auto known = measured_.find(std::string{shape}); known != measured_.end())
    return {known->second, TimeBasis::measured, 1};
  Known wanted{sides_of(shape), work_of(operation_, shape), 0};
  double beyond = 1;
  for (auto& [name, value] : wanted.sides) {
    if (value <= 0) continue;
    value = std::log(value);
    double low = INFINITY, high = -INFINITY;
    for (const Known& each : known_) {
      const auto side = each.sides.find(name);
      if (side == each.sides.end()) continue;
      low = std::min(low, side->second);
      high = std::max(high, side->second);
    }
    if (low > high) continue;  // no shape has such a side
    beyond = std::max(beyond, std::exp(std::max(low - value, value - high)));
  }
  constexpr double kLongest = 0x1p44;
  const double ns = std::min(kLongest, corrected_ns(wanted));
  const bool outside = beyond > 1 + 1e-9;
  return {Duration{std::llround(ns)}, outside ? TimeBasis::extrapolated : TimeBasis::interpolated,
          outside ? beyond : 1};
}

double ShapeLaw::left_out() const {
  if (known_.size() < 2) return 0;
  constexpr std::size_t kMostAsked = 200;
  const std::size_t step = (known_.size() + kMostAsked - 1) / kMostAsked;
  double sum = 0;
  std::size_t asked = 0;
  for (std::size_t left = 0; left < known_.size(); left += step, ++asked) {
    ShapeLaw without = *this;
    without.known_.erase(without.known_.begin() + static_cast<std::ptrdiff_t>(left));
    without.fit();
    sum += std::abs(without.corrected_ns(known_[left]) / known_[left].ns - 1);
  }
  return sum / static_cast<double>(asked);
}

ShapeLaws shape_laws(const scenario::ProfileTable& profile) {
  std::map<std::pair<std::string, std::string>, std::vector<scenario::ProfileRow>> rows;
  for (const scenario::ProfileRow& row : profile.rows)
    rows[{row.operation, row.type}].push_back(row);
  ShapeLaws laws;
  for (auto& [key, of_key] : rows) laws.emplace(key, ShapeLaw{std::move(of_key)});
  return laws;
}

}  // namespace longhaul::profile
