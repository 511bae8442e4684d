#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "profile/import/imported_profile.hpp"

namespace longhaul::profile {
namespace {

using nlohmann::json;
using Sizes = std::vector<std::vector<std::int64_t>>;

/// Time stamps may count from 1970; in nanoseconds a stamp and a length stay within 63 bits.
constexpr double kLastStamp = 0x1p53, kLongestSpan = 0x1p46;
constexpr std::size_t kMostEvents = 20'000'000;

/// A span of a thread of the host.
struct HostSpan {
  std::string name;
  std::int64_t thread = 0;
  Duration start{}, end{};
};

/// Spans, to find one around another. Sorted once, by start.
class EnclosingSpans {
public:
  void add(const HostSpan& span) { by_thread_[span.thread].push_back({span, 0}); }

  void sort() {
    for (auto& [thread, spans] : by_thread_) {
      std::ranges::stable_sort(spans, {}, [](const Entry& each) { return each.span.start; });
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const std::size_t before = i == 0 ? 0 : spans[i - 1].last;
        spans[i].last = spans[before].span.end < spans[i].span.end ? i : before;
      }
    }
  }

  /// The one that ends last of those that begin no later, on its thread; nullptr: it ends before.
  [[nodiscard]] const HostSpan* around(const HostSpan& span) const {
    const auto found = by_thread_.find(span.thread);
    if (found == by_thread_.end()) return nullptr;
    const std::vector<Entry>& spans = found->second;
    const auto after = std::ranges::upper_bound(spans, span.start, {},
                                                [](const Entry& each) { return each.span.start; });
    if (after == spans.begin()) return nullptr;
    const HostSpan& outermost = spans[std::prev(after)->last].span;
    return outermost.end >= span.end ? &outermost : nullptr;
  }

private:
  struct Entry {
    HostSpan span;
    std::size_t last = 0;  ///< of this one and those before: which ends last
  };
  std::map<std::int64_t, std::vector<Entry>> by_thread_;
};

struct HostOperator {
  HostSpan span;
  std::string shape, type;
};

/// -1: it is no number.
double number_in(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return -1;
  const std::string& text = value.get_ref<const std::string&>();
  double number = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size() ? number : -1;
}

/// In microseconds, less than `end`.
Duration time_of(const json& event, const char* key, double end, const std::string& source) {
  const auto found = event.find(key);
  if (found == event.end()) return {};
  const double us = number_in(*found);
  if (!(us >= 0 && us < end))
    fail(
        "{}: an event has {} = {} (microseconds from 0 to {:g}). Take what torch.profiler "
        "exported.",
        source, key, cell_of(found->dump().substr(0, 40)), end);
  const double whole = std::floor(us);  // apart: a product would round stamps since 1970 to 256 ns
  return Duration{std::llround(whole) * 1000 + std::llround((us - whole) * 1000)};
}

Duration start_of(const json& event, const std::string& source) {
  return time_of(event, "ts", kLastStamp, source);
}

Duration length_of(const json& event, const std::string& source) {
  return time_of(event, "dur", kLongestSpan, source);
}

std::string text_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

/// Of an event's `args`; nullopt: it has none of that name.
std::optional<std::int64_t> number_of(const json& event, const char* key) {
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) return std::nullopt;
  const auto found = arguments->find(key);
  if (found == arguments->end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

Sizes sizes_of(const json& event) {
  Sizes sizes;
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) return sizes;
  const auto found = arguments->find("Input Dims");
  if (found == arguments->end() || !found->is_array()) return sizes;
  for (const json& input : *found) {
    std::vector<std::int64_t> sides;
    if (input.is_array())
      for (const json& side : input)
        if (side.is_number_integer()) sides.push_back(side.get<std::int64_t>());
    sizes.push_back(std::move(sides));
    if (sizes.size() == 8) break;
  }
  return sizes;
}

std::string type_of(const json& event) {
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) return "f32";
  const auto found = arguments->find("Input type");
  const std::string all = found == arguments->end() ? "" : found->dump();
  if (all.find("BFloat16") != std::string::npos) return "bf16";
  return all.find("Half") != std::string::npos ? "f16" : "f32";
}

std::string sides_text(const Sizes& sizes) {
  std::string text;
  for (const auto& sides : sizes) {
    if (sides.empty()) continue;
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < sides.size(); ++i)
      text += fmt::format("{}{}", i > 0 ? "x" : "", sides[i]);
  }
  return text;
}

std::string operation_of(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  for (const char* product : {"mm", "addmm", "linear", "matmul"})
    if (name == product) return "gemm";
  if (name == "bmm" || name == "baddbmm") return "batched_gemm";
  constexpr std::array<std::pair<std::string_view, const char*>, 22> kNames{
      {{"native_layer_norm", "layer_norm"},
       {"native_layer_norm_backward", "layer_norm_input_gradient"},
       {"rms_norm", "rms_norm"},
       {"gelu_backward", "gelu_gradient"},
       {"_softmax", "softmax"},
       {"_softmax_backward_data", "softmax_gradient"},
       {"_scaled_dot_product_flash_attention", "attention"},
       {"_scaled_dot_product_efficient_attention", "attention"},
       {"_scaled_dot_product_cudnn_attention", "attention"},
       {"_flash_attention_forward", "attention"},
       {"_efficient_attention_forward", "attention"},
       {"_scaled_dot_product_flash_attention_backward", "attention_gradient"},
       {"_scaled_dot_product_efficient_attention_backward", "attention_gradient"},
       {"_flash_attention_backward", "attention_gradient"},
       {"_efficient_attention_backward", "attention_gradient"},
       {"embedding", "embed"},
       {"index_select", "embed"},
       {"embedding_dense_backward", "embed_gradient"},
       {"nll_loss_forward", "cross_entropy"},
       {"_fused_adamw_", "adamw"},
       {"_fused_adam_", "adamw"},
       {"copy_", "copy"}}};
  for (const auto& [theirs, ours] : kNames)
    if (name == theirs) return ours;
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"})
    if (name == fmt::format("nccl:{}", collective)) return collective;
  if (name.starts_with("c10d::allreduce")) return "all_reduce";
  return cell_of(name);
}

class TraceReader {
public:
  explicit TraceReader(const std::string& source) : source_{source} {}

  [[nodiscard]] KinetoTrace run(const json& events) {
    if (events.size() > kMostEvents)
      fail("{}: there are {} events ({} are the limit). Profile fewer iterations.", source_,
           events.size(), kMostEvents);
    for (const json& event : events)
      if (event.is_object()) take_host(event);
    for (const json& event : events)
      if (event.is_object() && text_of(event, "cat") == "kernel") take_kernel(event);
    return finished();
  }

private:
  void take_host(const json& event) {
    const std::string category = text_of(event, "cat");
    if (category == "cuda_runtime" || category == "cuda_driver") {
      const auto correlation = number_of(event, "correlation");
      const auto external = number_of(event, "External id");
      if (correlation && external) operator_of_launch_[*correlation] = *external;
      return;
    }
    const bool annotation = category == "user_annotation";
    if (category != "cpu_op" && !annotation) return;
    const Duration start = start_of(event, source_);
    HostSpan span{text_of(event, "name"), thread_of(event), start,
                  start + length_of(event, source_)};
    if (annotation && span.name.starts_with("ProfilerStep#")) ++steps_;
    if (annotation || span.name.starts_with("autograd::engine::")) note_span(span);
    if (annotation) return;
    const auto external = number_of(event, "External id");
    if (!external) return;
    const Sizes sizes = sizes_of(event);
    const auto product = product_shape(span.name, sizes);
    operators_.insert_or_assign(
        *external,
        HostOperator{std::move(span), product ? *product : sides_text(sizes), type_of(event)});
  }
  static std::int64_t thread_of(const json& event) {
    const auto found = event.find("tid");
    return found != event.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  }

  void take_kernel(const json& event) {
    const Duration start = start_of(event, source_);
    const KernelRun kernel{text_of(event, "name"), start, length_of(event, source_)};
    std::optional<std::int64_t> external = number_of(event, "External id");
    if (const auto correlation = number_of(event, "correlation"))
      if (const auto launch = operator_of_launch_.find(*correlation);
          launch != operator_of_launch_.end())
        external = launch->second;
    if (trace_.end == Duration{} && trace_.begin == Duration{}) trace_.begin = start;
    trace_.begin = std::min(trace_.begin, start);
    trace_.end = std::max(trace_.end, start + kernel.length);
    if (!external || !operators_.contains(*external)) {
      ++trace_.orphans;
      return;
    }
    kernels_[*external].push_back(kernel);
  }

  [[nodiscard]] KinetoTrace finished() {
    for (EnclosingSpans* const spans : {&parts_, &updates_, &backwards_}) spans->sort();
    for (auto& [external, kernels] : kernels_) {
      const HostOperator& from = operators_.at(external);
      std::ranges::stable_sort(kernels, {}, &KernelRun::start);
      trace_.runs.push_back({part_of(from.span), block_of(from.span), operation_of(from.span.name),
                             from.shape, from.type, std::move(kernels)});
    }
    if (trace_.runs.empty())
      fail(
          "{}: no kernel in it belongs to an operator (kernels and cpu_ops are needed). Profile "
          "with "
          "activities CPU and CUDA.",
          source_);
    std::ranges::stable_sort(trace_.runs, {},
                             [](const OperatorRun& run) { return run.kernels.front().start; });
    trace_.iterations = std::max<std::size_t>(1, steps_);
    return std::move(trace_);
  }
  void note_span(const HostSpan& span) {
    if (span.name == "embedding" || span.name == "layer" || span.name == "head") parts_.add(span);
    if (span.name.starts_with("Optimizer.step")) updates_.add(span);
    if (span.name.starts_with("autograd::engine::")) backwards_.add(span);
  }
  [[nodiscard]] std::string part_of(const HostSpan& span) const {
    const HostSpan* const found = parts_.around(span);
    return found == nullptr ? "layer" : found->name;
  }
  [[nodiscard]] std::string block_of(const HostSpan& span) const {
    if (updates_.around(span) != nullptr) return "update";
    return backwards_.around(span) != nullptr ? "B" : "F";
  }

  const std::string& source_;
  std::map<std::int64_t, HostOperator> operators_;           ///< by external id
  std::map<std::int64_t, std::int64_t> operator_of_launch_;  ///< by correlation
  std::map<std::int64_t, std::vector<KernelRun>> kernels_;   ///< by external id
  EnclosingSpans parts_, updates_, backwards_;
  std::size_t steps_ = 0;
  KinetoTrace trace_;
};

}  // namespace

std::optional<std::string> product_shape(std::string_view operation, const Sizes& sizes) {
  if (operation.starts_with("aten::")) operation.remove_prefix(6);
  const std::size_t first = operation == "addmm" || operation == "baddbmm" ? 1 : 0;
  const bool transposed = operation == "linear";
  const bool batched = operation == "bmm" || operation == "baddbmm";
  if (operation != "mm" && operation != "matmul" && first == 0 && !transposed && !batched)
    return std::nullopt;
  if (sizes.size() < first + 2) return std::nullopt;
  const auto& a = sizes[first];
  const auto& b = sizes[first + 1];
  if (a.size() < 2 || b.size() < 2 || (batched && (a.size() != 3 || b.size() != 3)))
    return std::nullopt;
  const std::int64_t n = transposed ? b[b.size() - 2] : b.back();
  if (batched) return fmt::format("batch={} m={} n={} k={}", a[0], a[1], n, a[2]);
  if (b.size() != 2) return std::nullopt;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    if (a[i] < 0 || a[i] > (std::int64_t{1} << 31) || rows > (std::int64_t{1} << 31))
      return std::nullopt;
    rows *= a[i];
  }
  return fmt::format("m={} n={} k={}", rows, n, a.back());
}

KinetoTrace read_kineto(std::string_view text, const std::string& source) {
  const json trace = json::parse(text, nullptr, false);
  if (trace.is_discarded())
    fail("{}: this is no JSON (torch.profiler exports JSON). Name the trace, unpacked.", source);
  const json* events = trace.is_array() ? &trace : nullptr;
  if (trace.is_object())
    if (const auto found = trace.find("traceEvents"); found != trace.end() && found->is_array())
      events = &*found;
  if (events == nullptr)
    fail(
        "{}: there is no list \"traceEvents\" (a trace of torch.profiler has one). Name such a "
        "trace.",
        source);
  return TraceReader{source}.run(*events);
}

}  // namespace longhaul::profile
