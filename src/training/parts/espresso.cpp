#include "training/parts/espresso.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/parts/set_size.hpp"
#include "training/parts/rival_methods.hpp"

namespace longhaul::training {

CompressMethod espresso_choice(const GradientCompression& sparse, std::int64_t numbers, int sets,
                               const EspressoCosts& costs) {
  const double bytes = 4 * static_cast<double>(numbers);
  const auto sent = [&](double size) { return size / costs.bytes_per_second; };
  const double sparse_bytes = static_cast<double>(plan::set_size(sparse, numbers, sets).count());
  const std::pair<double, CompressMethod> choices[] = {
      {sent(bytes), CompressMethod::none},
      {sent(bytes / 2) + costs.start_seconds + bytes / costs.halves_per_second,
       CompressMethod::fp16},
      {sent(sparse_bytes) +
           costs.passes_of_choice * (costs.start_seconds + bytes / costs.choices_per_second),
       sparse.method}};
  return std::ranges::min_element(choices, {}, &std::pair<double, CompressMethod>::first)->second;
}

std::vector<CompressMethod> choose_for_parts(Plan& plan, const GradientCompression& sparse,
                                             int sets) {
  constexpr std::int64_t kFloat = sizeof(float);
  std::vector<CompressMethod> chosen;
  std::vector<double> bits;
  for (const plan::OpPriority& each : plan.extras.priorities) {
    const auto part = to_size(each.priority - 1);
    if (part >= chosen.size()) chosen.resize(part + 1, CompressMethod::none);
    bits.resize(chosen.size(), 8 * kFloat);
    const Op& op = plan.op(each.op);
    if (op.kind != OpKind::send) continue;
    const std::int64_t numbers = std::max<std::int64_t>(1, op.size.count() / kFloat);
    GradientCompression own = sparse;
    own.method = chosen[part] = espresso_choice(sparse, numbers, sets);
    bits[part] = 8 * static_cast<double>(plan::set_size(own, numbers, sets).count()) /
                 static_cast<double>(numbers);
  }
  resize_sets(plan, [&](int part) { return bits[to_size(part)]; });
  return chosen;
}

std::unique_ptr<PartMethod> make_espresso(const std::vector<CompressMethod>& chosen,
                                          GradientCompression sparse, const PartPlace& place,
                                          const StepSettings& step) {
  LONGHAUL_ASSERT(place.number >= 0 && to_size(place.number) < chosen.size(), "part {} of {}",
                  place.number, chosen.size());
  sparse.method = chosen[to_size(place.number)];
  return make_part_method(sparse, place, step);
}

}  // namespace longhaul::training
