#include "profile/matmul_law.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::profile {
namespace {

constexpr double kNear = 0.02;  ///< squared distance below which neighbours count the same
constexpr double kFade = 1.0;   ///< weight of "the law is right", a neighbour one power of two off
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

double weight(double squared_distance) {
  const double softened = kNear + squared_distance;
  return 1 / (softened * softened);
}

}  // namespace

MatmulLaw::MatmulLaw(const Constants& constants, std::vector<Measured> table)
    : constants_{constants}, table_{std::move(table)} {
  if (table_.empty()) return;
  low_ = std::numeric_limits<double>::max();
  high_ = 0;
  for (const Measured& each : table_) {
    const auto& [m, n, k] = each.shape;
    const double net = std::max(each.ns - constants_.launch_ns, each.ns / 4);
    points_.push_back(
        {std::log2(m), std::log2(n), std::log2(k), std::log(net / law_ns(each.shape))});
    low_ = std::min({low_, m, n, k});
    high_ = std::max({high_, m, n, k});
  }
}

double MatmulLaw::law_ns(const MatmulShape& shape) const {
  return shape.flops() / constants_.flops_per_ns * (1 + constants_.pad_m / shape.m) *
         (1 + constants_.pad_n / shape.n) * (1 + constants_.pad_k / shape.k);
}

double MatmulLaw::correction(const MatmulShape& shape, std::size_t without) const {
  const double m = std::log2(shape.m), n = std::log2(shape.n), k = std::log2(shape.k);
  double sum = 0, weights = kFade;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (i == without) continue;
    const Point& point = points_[i];
    const double dm = point.m - m, dn = point.n - n, dk = point.k - k;
    const double own = weight(dm * dm + dn * dn + dk * dk);
    sum += own * point.residual;
    weights += own;
  }
  return sum / weights;
}

MatmulTime MatmulLaw::time(const MatmulShape& shape) const {
  MatmulTime time{law_ns(shape) * std::exp(correction(shape, kNone)), TimeBasis::interpolated, 1};
  const double shortest = std::min({shape.m, shape.n, shape.k});
  const double longest = std::max({shape.m, shape.n, shape.k});
  time.beyond = std::max({1.0, longest / high_, low_ / shortest});
  if (time.beyond > 1) {
    time.basis = TimeBasis::extrapolated;
    return time;
  }
  const auto same = [&](const Measured& each) {
    return each.shape.m == shape.m && each.shape.n == shape.n && each.shape.k == shape.k;
  };
  if (std::ranges::any_of(table_, same)) time.basis = TimeBasis::measured;
  return time;
}

double MatmulLaw::leave_one_out_error() const {
  double sum = 0;
  for (std::size_t i = 0; i < points_.size(); ++i)
    sum += std::abs(std::exp(correction(table_[i].shape, i) - points_[i].residual) - 1);
  return points_.empty() ? 0 : sum / static_cast<double>(points_.size());
}

std::vector<MatmulLaw::Measured> read_matmul_table(std::string_view csv,
                                                   const std::string& source) {
  std::vector<MatmulLaw::Measured> table;
  bool header = true;
  scenario::each_csv_line(csv, source, [&](const scenario::CsvLine& line) {
    if (std::exchange(header, false)) return;
    std::array<double, 4> values{};
    if (line.words.size() != values.size())
      line.refuse("{} values (m, n, k and ns are 4). Correct the line.", line.words.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view word = line.words[i];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), values[i]);
      if (error != std::errc{} || end != word.data() + word.size() || !(values[i] >= 1) ||
          values[i] > 1e15)
        line.refuse("\"{}\" is no number from 1 on. Correct it.", scenario::shown(word));
    }
    table.push_back({{values[0], values[1], values[2]}, values[3]});
  });
  return table;
}

}  // namespace longhaul::profile
