#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "planner/layouts/layout_search.hpp"
#include "profile/row_memory.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::planner {
namespace {

using profile::TrainingRow;

std::string time_list(const std::vector<Duration>& times) {
  std::vector<std::string> words;
  for (const Duration time : times) words.push_back(fmt::format("\"{}ns\"", time.count()));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::string size_list(const std::vector<Bytes>& sizes) {
  std::vector<std::string> words;
  for (const Bytes size : sizes) words.push_back(fmt::format("\"{}B\"", size.count()));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

/// The shortest text that reads back as the same number.
std::string rate_text(Bandwidth rate) {
  if (rate.is_unlimited()) return "unlimited";
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 rate.bits_per_second(), std::chars_format::fixed);
  return std::string{digits.data(), end.ptr} + "bps";
}

/// A text of TOML in quotes.
std::string toml_text(std::string_view text) {
  std::string quotes = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7F)
      quotes += fmt::format("\\u{:04X}", code);
    else if (c == '"' || c == '\\')
      quotes += {'\\', c};
    else
      quotes += c;
  }
  return quotes + '"';
}

/// What of the plan's ranks is written.
struct Emitted {
  bool all = true;  ///< otherwise a representative part
  int cell = 1;     ///< of it: replicas, where they lie in one place
};

/// Operators of a chunk in a representative part.
constexpr int kMostOperatorsOfChunk = 4;

/// Part `i` of `count` of a time, whole ns that add up to it.
std::int64_t part_of(Duration time, int i, int count) {
  return time.count() * (i + 1) / count - time.count() * i / count;
}

/// Stages of one node, or one site, that follow each other: one datacenter of the scenario.
struct StageRun {
  int first = 0, last = 0;
  int site = 0;
  std::string name;
};

class ScenarioWriter {
public:
  ScenarioWriter(const LayoutProblem& problem, const LayoutPlan& plan, Emitted emitted)
      : problem_{problem},
        emitted_{emitted},
        layout_{plan.layout},
        plan_{plan},
        row_{row_of(problem, layout_)},
        choice_{problem.placings[at(layout_.placing)]} {
    LayoutTimer timer{problem};
    (void)timer.graph(layout_);
    times_ = timer.times(layout_);
  }

  std::string text(const std::string& name) {
    add_head(name);
    if (has_block_costs()) add_model();
    add_parallel();
    add_costs();
    if (!has_block_costs()) add_operators();
    add_memory();
    add_places();
    return std::move(text_);
  }

private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + '\n';
  }

  [[nodiscard]] bool has_block_costs() const { return emitted_.all && layout_.chunks == 1; }
  [[nodiscard]] bool is_of_sites() const {
    return choice_.split == SiteSplit::replicas && choice_.sites.size() > 1;
  }
  /// Replicas that are written.
  [[nodiscard]] int replicas() const {
    if (emitted_.all) return layout_.data;
    return is_of_sites() ? static_cast<int>(choice_.sites.size()) : emitted_.cell;
  }
  [[nodiscard]] bool sends_gradients() const { return !emitted_.all && is_of_sites(); }

  void add_head(const std::string& name) {
    line("# A plan of `longhaul plan --search parallel`: {} on {} GPUs of {}.",
         scenario::shown(row_.model), layout_.gpus(), row_.machine);
    line("# (t, d, p) = ({}, {}, {}), micro-batch {}, {}, recomputation {}, sharding {}.",
         layout_.tensor, layout_.data, layout_.pipeline, layout_.micro_batch,
         to_string(layout_.order), to_string(layout_.recompute), to_string(layout_.sharding));
    const std::string schedule =
        layout_.order == LayoutOrder::best ? name + ".csv" : to_string(layout_.order);
    if (emitted_.all)
      line("# longhaul simulate FILE --schedule {}: iteration {} ns. Times are predicted.",
           schedule, plan_.iteration.count());
    else
      line("# What its ranks repeat: one of each tensor group; replicas: {}.",
           is_of_sites() ? "one of each site" : fmt::format("{}, the others alike", replicas()));
    line("# Of a rank; tensor-parallel collectives are part of its blocks. `optimizer` is what");
    line("# follows the last backward: gradients summed over the replicas, the embedding's, the");
    line("# step. Selective recomputation is part of the backward.");
    line("[scenario]\nname = {}\n", toml_text(name));
  }

  void add_model() {
    const bool has_table = row_.vocabulary > 1;
    line("[model]\nname = {}", toml_text(row_.model));
    line("layers = {}", row_.layers + (has_table ? 2 : 0));
    line("hidden = {}\nintermediate = {}\nheads = {}\nkv_heads = {}", row_.hidden,
         row_.intermediate, row_.heads, row_.kv_heads);
    if (has_table) line("vocabulary = {}", row_.vocabulary);
    line("sequence_length = {}\nmicrobatch_size = {}", row_.sequence, row_.micro_batch);
    line("mlp = \"{}\"\npositions = \"{}\"\nattention = \"{}\"", to_string(row_.mlp),
         to_string(row_.positions), to_string(row_.attention));
    line("peak_flops = \"{:g} TFLOP/s\"", problem_.machine->gpu.flops_per_ns / 1e3);
    std::vector<int> layers = layers_of_chunks(row_.layers, layout_.pipeline);
    if (has_table) ++layers.front(), ++layers.back();
    line("layers_per_stage = [{}]\n", fmt::join(layers, ", "));
  }

  void add_parallel() {
    line("[parallel]\nstages = {}\nreplicas = {}", layout_.pipeline, replicas());
    line("microbatches = {}", times_.microbatches);
    line("chunks = {}", emitted_.all ? layout_.chunks : std::max(2, layout_.chunks));
    if (emitted_.all) line("tensor = {}\norder = \"tensor,replica,stage\"", layout_.tensor);
    if (!emitted_.all) line("cell = {}", is_of_sites() ? 1 : emitted_.cell);
    if (sends_gradients())
      line("gradient_sync = \"{}\"  # between sites\n",
           layout_.sharding == profile::ShardingKind::none ? "all-reduce" : "zero1");
    else
      line("gradient_sync = \"none\"  # its time is in costs.optimizer\n");
  }

  void add_costs() {
    std::vector<Duration> ends;
    for (int device = 0; device < times_.devices; ++device)
      ends.push_back(times_.tail(device) -
                     (sends_gradients() ? times_.over_sites[at(device)] : Duration{}));
    line("[costs]");
    if (has_block_costs()) {
      for (const auto& [key, kind] :
           {std::pair{"forward", BlockKind::F}, std::pair{"backward", BlockKind::B},
            std::pair{"dgrad", BlockKind::D}, std::pair{"wgrad", BlockKind::W},
            std::pair{"recompute", BlockKind::R}}) {
        if (kind == BlockKind::R && !times_.has_recompute) continue;
        std::vector<Duration> of_stages;
        for (const LayoutTimes::OfChunk& chunk : times_.chunks)
          of_stages.push_back(chunk[index(kind)]);
        line("{} = {}", key, time_list(of_stages));
      }
      line("weights = {}", size_list(times_.weights));
    }
    line("optimizer = {}", time_list(ends));
    line("message = \"{}B\"", times_.message.count());
    const profile::RowMemory memory = profile::memory_of(row_, 1);
    line("activation = \"{}B\"\n", std::max<std::int64_t>(1, std::llround(memory.activations)));
  }

  /// A chunk is one operator: chunks of a device need not take the same time. Of a representative
  /// part it is several, so that two chunks of a stage, and buckets of gradients, may be made of
  /// them.
  void add_operators() {
    const int count = operators_of_chunk();
    for (std::size_t chunk = 0; chunk < times_.chunks.size(); ++chunk) {
      const LayoutTimes::OfChunk& of = times_.chunks[chunk];
      const auto of_kind = [&](BlockKind kind, int i) {
        return part_of(of[index(kind)], i, count);
      };
      const Bytes weights = times_.weights[at(times_.device_of_chunk[chunk])];
      for (int i = 0; i < count; ++i) {
        line("[[operator]]\nname = \"chunk {}{}\"\nkind = \"matmul\"", chunk,
             count == 1 ? "" : fmt::format(" part {}", i));
        line("weights = \"{}B\"", weights.count() / layout_.chunks / count);
        line("forward = \"{}ns\"\ndgrad = \"{}ns\"\nwgrad = \"{}ns\"\nrecompute = \"{}ns\"\n",
             of_kind(BlockKind::F, i), of_kind(BlockKind::D, i), of_kind(BlockKind::W, i),
             of_kind(BlockKind::R, i));
      }
    }
  }

  [[nodiscard]] int operators_of_chunk() const {
    if (emitted_.all) return 1;
    const int chunks = static_cast<int>(times_.chunks.size());
    return std::clamp(row_.layers / chunks, layout_.chunks == 1 ? 2 : 1, kMostOperatorsOfChunk);
  }

  void add_memory() {
    const double flight = in_flight(problem_, layout_);
    const profile::RowMemory memory = profile::memory_of(row_, flight);
    const int usual = std::min(layout_.pipeline, times_.microbatches);
    line("[memory]");
    if (times_.has_recompute) line("recompute = true");
    if (layout_.recompute == RecomputeKind::selective)
      line("recompute = \"selective\"  # its time is in the backward");
    line("budget = {:.6f}",
         std::max(1.0, (emitted_.all ? flight : most_in_flight()) / usual + 1e-6));
    line("static = \"{}B\"", std::llround(memory.weights + memory.optimizer + memory.working));
    if (problem_.memory) line("capacity = \"{}B\"", problem_.memory->count());
    text_ += '\n';
  }

  /// Activations of a stage that the capacity has room for, at most those of all microbatches.
  [[nodiscard]] double most_in_flight() const {
    const double own = in_flight(problem_, layout_);
    if (!problem_.memory) return times_.microbatches;
    const profile::RowMemory memory = profile::memory_of(row_, 1);
    const double room = static_cast<double>(problem_.memory->count()) - memory.weights -
                        memory.optimizer - memory.working;
    return std::clamp(std::floor(room / std::max(1.0, memory.activations)), own,
                      std::max<double>(own, times_.microbatches));
  }

  [[nodiscard]] std::vector<StageRun> stage_runs() const {
    std::vector<StageRun> runs;
    const bool by_node = !all_leave_nodes();
    const std::vector<int> sites = sites_of_stages(problem_, layout_);
    for (int stage = 0; stage < layout_.pipeline; ++stage) {
      const int site = sites[at(stage)];
      const bool begins = runs.empty() || runs.back().site != site ||
                          (by_node && border_leaves_node(row_, *problem_.machine, stage - 1));
      if (begins) runs.push_back({stage, stage, site, {}});
      runs.back().last = stage;
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].name = problem_.sites[at(runs[i].site)].name;
      if (by_node) runs[i].name += fmt::format("-{}", i);
    }
    return runs;
  }

  [[nodiscard]] bool all_leave_nodes() const {
    for (int border = 0; border + 1 < layout_.pipeline; ++border)
      if (!border_leaves_node(row_, *problem_.machine, border)) return false;
    return true;
  }

  void add_places() {
    const std::vector<StageRun> runs = stage_runs();
    if (is_of_sites()) return add_replica_places(runs);
    for (const StageRun& run : runs)
      line("[[datacenter]]\nname = {}\nstages = \"{}-{}\"\n", toml_text(run.name), run.first,
           run.last);
    add_links(runs);
  }

  /// Each site has the runs of its replicas.
  void add_replica_places(const std::vector<StageRun>& runs) {
    const std::vector<int> parts =
        scenario::evenly(replicas(), static_cast<int>(choice_.sites.size()));
    std::vector<std::vector<StageRun>> of_sites;
    int first = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<StageRun> here = runs;
      const std::string& site = problem_.sites[at(choice_.sites[i])].name;
      for (std::size_t k = 0; k < here.size(); ++k)
        here[k].name = here.size() > 1 ? fmt::format("{}-{}", site, k) : site;
      for (const StageRun& run : here)
        line("[[datacenter]]\nname = {}\nstages = \"{}-{}\"\nreplicas = \"{}-{}\"\n",
             toml_text(run.name), run.first, run.last, first, first + parts[i] - 1);
      add_links(here);
      first += parts[i];
      of_sites.push_back(std::move(here));
    }
    if (sends_gradients()) add_links_of_gradients(of_sites);
  }

  /// Between the same stages in all pairs of sites.
  void add_links_of_gradients(const std::vector<std::vector<StageRun>>& of_sites) {
    for (std::size_t from = 0; from < of_sites.size(); ++from)
      for (std::size_t to = 0; to < of_sites.size(); ++to) {
        if (from == to) continue;
        const SiteLink& link = problem_.links[at(choice_.sites[from])][at(choice_.sites[to])];
        for (std::size_t run = 0; run < of_sites[from].size(); ++run)
          line("[[link]]\nfrom = {}\nto = {}\nlatency = \"{}ns\"\nbandwidth = \"{}\"\n",
               toml_text(of_sites[from][run].name), toml_text(of_sites[to][run].name),
               link.latency.count(), rate_text(link.bandwidth));
      }
  }

  void add_links(const std::vector<StageRun>& runs) {
    if (layout_.pipeline == 1) return;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].last > runs[i].first)
        add_links_between(runs[i].name, runs[i].first, runs[i].name, runs[i].first + 1);
      if (i + 1 < runs.size())
        add_links_between(runs[i].name, runs[i].last, runs[i + 1].name, runs[i + 1].first);
    }
    const bool wraps = layout_.order == LayoutOrder::interleaved && runs.size() > 2;
    if (wraps) add_links_between(runs.back().name, runs.back().last, runs.front().name, 0);
  }

  /// Between the places of two stages: one link for both ways where both are the same.
  void add_links_between(const std::string& place, int stage, const std::string& other_place,
                         int other_stage) {
    const LayoutTimes::Border& there = times_.border(stage, other_stage);
    const LayoutTimes::Border& back = times_.border(other_stage, stage);
    const auto add = [&](const std::string& ends, const LayoutTimes::Border& border) {
      line("[[link]]\n{}\nlatency = \"{}ns\"\nbandwidth = \"{}\"\n", ends, border.latency.count(),
           rate_text(border.rate));
    };
    if (there == back)
      return add(fmt::format("between = [{}, {}]", toml_text(place), toml_text(other_place)),
                 there);
    add(fmt::format("from = {}\nto = {}", toml_text(place), toml_text(other_place)), there);
    add(fmt::format("from = {}\nto = {}", toml_text(other_place), toml_text(place)), back);
  }

  const LayoutProblem& problem_;
  Emitted emitted_;
  const Layout& layout_;
  const LayoutPlan& plan_;
  TrainingRow row_;
  const SiteChoice& choice_;
  LayoutTimes times_;
  std::string text_;
};

}  // namespace

std::string scenario_text(const LayoutProblem& problem, const LayoutPlan& plan,
                          const std::string& name) {
  return ScenarioWriter{problem, plan, {}}.text(name);
}

std::string representative_text(const LayoutProblem& problem, const LayoutPlan& plan,
                                const std::string& name, int cell) {
  return ScenarioWriter{problem, plan, {.all = false, .cell = cell}}.text(name);
}

}  // namespace longhaul::planner
