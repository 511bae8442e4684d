#include "harness/prefill/served_work.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/layers/weights.hpp"
#include "prefill/prompt/kv_link.hpp"
#include "training/parameter_map.hpp"

namespace longhaul::harness {
namespace {

/// Weights of it, as f32, fit beside those that train, on each rank and once more on rank 0.
constexpr std::int64_t kMostParameters = 100'000'000;
constexpr std::uint64_t kSeedOfPrompts = 41, kSeedOfWeights = 43;

/// What ranks say of a row of numbers.
struct RowOfNumbers {
  std::int64_t kind = 0, stage = 0, count = 0;
};

engine::Payload payload_with(std::vector<float> numbers) {
  auto owner = std::make_shared<std::vector<float>>(std::move(numbers));
  return {std::as_writable_bytes(std::span{*owner}), owner};
}

std::vector<float> numbers_of(const engine::Payload& payload) {
  std::vector<float> numbers(payload.bytes.size() / sizeof(float));
  if (!numbers.empty())
    std::memcpy(numbers.data(), payload.bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

/// Of a rank in the pipelines of a served model; nullopt: it holds none.
std::optional<int> stage_of(const prefill::Served& served, Rank rank) {
  for (const prefill::Pipeline& pipeline : served.serving.pipelines)
    for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage)
      if (Rank{pipeline.ranks[stage]} == rank) return static_cast<int>(stage);
  return std::nullopt;
}

}  // namespace

nn::ModelShape served_shape(const ServedModel& model) {
  if (!model.dimensions)
    fail("{}: real layers need its dimensions. Write prefill.model = {{layers = ..., ...}}.",
         model.name);
  const ServedDimensions& own = *model.dimensions;
  if (own.parameters() > kMostParameters)
    fail(
        "{}: {} parameters (real layers are computed by CPUs, {} are the most). Give a smaller "
        "prefill.model, or leave --compute real out.",
        model.name, own.parameters(), kMostParameters);
  if (own.heads * own.head_size != own.hidden)
    fail("{}: {} heads of {} do not make up the hidden size of {}. Change prefill.model.",
         model.name, own.heads, own.head_size, own.hidden);
  if (own.layers < model.stages)
    fail("{}: {} layers in {} stages (each must hold one at least). Write --set prefill.stages={}.",
         model.name, own.layers, model.stages, own.layers);
  const nn::ModelShape shape{.batch = 1,
                             .sequence = 1,
                             .hidden = own.hidden,
                             .intermediate = own.intermediate,
                             .heads = own.heads,
                             .kv_heads = own.kv_heads,
                             .vocabulary = own.vocabulary,
                             .layers = own.layers + 2};
  nn::check_layers(shape, {0, shape.layers});
  return shape;
}

nn::LayerRange served_range(const ServedModel& model, int stage) {
  nn::LayerRange range{1, prefill::layers_of_stage(model, stage)};
  for (int before = 0; before < stage; ++before)
    range.first += prefill::layers_of_stage(model, before);
  if (stage == 0) {
    range.first = 0;
    ++range.count;
  }
  if (stage + 1 == model.stages) ++range.count;
  return range;
}

std::vector<std::int32_t> prompt_tokens(std::uint64_t seed, std::int64_t request,
                                        std::int64_t tokens, int vocabulary) {
  Random random{derived_seed(seed, kSeedOfPrompts, static_cast<std::uint64_t>(request))};
  std::vector<std::int32_t> text(to_size(tokens));
  for (std::int32_t& token : text)
    token = static_cast<std::int32_t>(random.between(0, vocabulary - 1));
  return text;
}

std::uint64_t served_seed(const Scenario& scenario, std::size_t model) {
  return derived_seed(scenario.run.seed, kSeedOfWeights, model);
}

ServedWork::ServedWork(const PlannedStretches& planned, Rank self)
    : planned_{planned},
      self_{self},
      math_{nn::make_cpu_math()},
      memory_{std::make_unique<nn::DeviceMemory>(*math_, 0)} {
  for (std::size_t i = 0; i < planned.served.size(); ++i) {
    const prefill::Served& served = planned.served[i];
    Model model{served_shape(served.model), {}, nullptr};
    const auto stage = stage_of(served, self);
    if (!stage) continue;
    model.range = served_range(served.model, *stage);
    model.layers = std::make_unique<nn::ServedLayers>(*math_, *memory_, model.shape, model.range,
                                                      served_seed(planned.scenario, i));
    models_.emplace(i, std::move(model));
  }
}

void ServedWork::forget_stretch() {
  for (auto& [number, model] : models_)
    for (const Stage& each : stages_)
      if (each.model == number) model.layers->forget(each.request);
  const std::lock_guard lock{mutex_};
  jobs_.clear();
  stages_.clear();
  slots_.clear();
  stage_of_.clear();
  passes_.clear();
  arrived_.clear();
  rows_in_.clear();
  rows_out_.clear();
  numbers_ = {};
}

void ServedWork::begin(const FilledStretch& stretch) {
  forget_stretch();
  live_ = nullptr;
  for (const prefill::FilledStage& each : stretch.filled.stages) {
    const prefill::Decision& own = stretch.decisions[each.placed.decision];
    stages_.push_back({own.request, own.tokens, own.model, each.placed.stage, each.placed.context,
                       each.placed.tokens});
  }
  list_jobs(stretch);
}

void ServedWork::list_jobs(const FilledStretch& stretch) {
  const prefill::FilledPlan& filled = stretch.filled;
  for (std::size_t i = 0; i < filled.stages.size(); ++i) {
    const prefill::FilledStage& stage = filled.stages[i];
    const std::size_t first = index(stage.first), past = index(stage.op) + 1;
    for (std::size_t op = first; op < past; ++op) {
      Job& job = jobs_[OpId{static_cast<std::uint32_t>(op)}];
      job.what = Job::What::compute;
      job.stages.push_back(i);
      job.part = static_cast<int>(op - first);
      job.parts = static_cast<int>(past - first);
    }
  }
  for (const prefill::FilledMessage& each : filled.messages) {
    const Stage& stage = stages_[each.stage];
    Job job{each.is_slice ? Job::What::slice : Job::What::hop, {each.stage}};
    job.first = to_size(each.first) / 2;  // fp16
    job.count = to_size(each.first + each.bytes) / 2 - job.first;
    if (!each.is_slice) {
      const auto& model = planned_.served[stage.model].model;
      job.count = to_size(stage.tokens) * to_size(model.dimensions->hidden);
    }
    jobs_[each.send] = jobs_[each.recv] = job;
  }
}

/// nullptr: nothing is computed, a first token, which is checked after the run.
const ServedWork::Job* ServedWork::job_of(OpId op) const {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(op);
  return found == jobs_.end() ? nullptr : &found->second;
}

/// What came for a stage from the one before it.
std::vector<float> ServedWork::rows_for(std::size_t stage) const {
  const std::lock_guard lock{mutex_};
  if (live_ == nullptr) return rows_in_.at(stage);
  for (const auto& [slot, at] : slots_) {
    if (at != stage) continue;
    const auto& [pipeline, number, of] = slot;
    return arrived_.at(live_->slot(pipeline, number)[to_size(of)].arrived);
  }
  fail("a stage of a prompt has no slot");
}

nn::ServedPass ServedWork::begin_pass(const Job& job, Model& model) {
  std::vector<nn::PromptPart> parts;
  std::vector<std::int32_t> text;
  std::vector<float> rows;
  const bool reads = stages_[job.stages.front()].stage == 0;
  for (const std::size_t at : job.stages) {
    const Stage& stage = stages_[at];
    if (stage.context == 0) model.layers->begin(stage.request, to_size(stage.prompt));
    parts.push_back({stage.request, to_size(stage.tokens)});
    if (reads) {
      const auto all = prompt_tokens(planned_.scenario.run.seed, stage.request, stage.prompt,
                                     model.shape.vocabulary);
      const auto own = std::span{all}.subspan(to_size(stage.context), to_size(stage.tokens));
      text.insert(text.end(), own.begin(), own.end());
    } else {
      const std::vector<float> own = rows_for(at);
      rows.insert(rows.end(), own.begin(), own.end());
    }
  }
  return reads ? model.layers->read(std::move(parts), text)
               : model.layers->take(std::move(parts), rows);
}

void ServedWork::run(OpId op) {
  const Job* const found = job_of(op);
  if (found == nullptr) return;
  const Job& job = *found;
  const std::size_t number = stages_[job.stages.front()].model;
  Model& model = models_.at(number);
  if (job.part == 0) passes_.insert_or_assign(job.stages.front(), begin_pass(job, model));
  nn::ServedPass& pass = passes_.at(job.stages.front());
  const int decoders =
      prefill::layers_of_stage(planned_.served[number].model, stages_[job.stages.front()].stage);
  const int first = std::max(1, model.range.first);
  for (int i = job.part * decoders / job.parts; i < (job.part + 1) * decoders / job.parts; ++i) {
    model.layers->compute(pass, first + i);
    keep_keys(job, model, first + i);
  }
  if (job.part + 1 < job.parts) return;
  end_pass(job, model, pass);
  passes_.erase(job.stages.front());
}

void ServedWork::keep_keys(const Job& job, Model& model, int layer) {
  for (const std::size_t at : job.stages) {
    const Stage& stage = stages_[at];
    const std::vector<float> kept = model.layers->keys_and_values(
        stage.request, layer, to_size(stage.context), to_size(stage.tokens));
    const std::lock_guard lock{mutex_};
    auto& all = numbers_.sent[at];
    all.insert(all.end(), kept.begin(), kept.end());
  }
}

void ServedWork::end_pass(const Job& job, Model& model, const nn::ServedPass& pass) {
  const std::vector<float> rows = model.layers->rows_of(pass);
  auto from = rows.begin();
  for (std::size_t part = 0; part < job.stages.size(); ++part) {
    const Stage& stage = stages_[job.stages[part]];
    const auto past = from + static_cast<std::ptrdiff_t>(stage.tokens * model.shape.hidden);
    const bool ends = stage.context + stage.tokens == stage.prompt;
    std::vector<float> logits;
    if (is_last(stage) && ends) logits = model.layers->logits(pass, part);
    const std::lock_guard lock{mutex_};
    if (!logits.empty()) numbers_.logits[job.stages[part]] = std::move(logits);
    if (!is_last(stage)) rows_out_[job.stages[part]] = {from, past};
    from = past;
  }
}

engine::Payload ServedWork::make(OpId send) {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(send);
  if (found == jobs_.end()) {  // between stages of a live prompt
    const prefill::LiveOp& op = live_->ops[index(send)];
    return payload_with(rows_out_.at(stage_of_slot(op, op.stage - 1)));
  }
  const Job& job = found->second;
  if (job.what == Job::What::hop) return payload_with(rows_out_.at(job.stages.front() - 1));
  const std::vector<float>& all = numbers_.sent.at(job.stages.front());
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(job.first);
  return payload_with(std::vector<float>(first, first + static_cast<std::ptrdiff_t>(job.count)));
}

/// The most that may come, of a live stretch.
engine::Payload ServedWork::room(OpId recv) const {
  if (const Job* const job = job_of(recv)) return payload_with(std::vector<float>(job->count));
  const prefill::LiveOp& op = live_->ops[index(recv)];
  if (op.kind == prefill::LiveOp::Kind::slice_arrived)
    return payload_with(std::vector<float>(to_size(live_->plan.op(recv).size.count()) / 2 + 1));
  const std::size_t model = live_->pipelines[to_size(op.pipeline)].model;
  return payload_with(std::vector<float>(to_size(longest_) *
                                         to_size(planned_.served[model].model.dimensions->hidden)));
}

engine::Payloads::Verdict ServedWork::check(OpId recv, std::span<const std::byte> bytes) const {
  const Job* const job = job_of(recv);
  const bool is_right = job == nullptr ? bytes.size() % sizeof(float) == 0
                                       : bytes.size() == job->count * sizeof(float);
  return is_right ? engine::Payloads::Verdict::right : engine::Payloads::Verdict::corrupted;
}

void ServedWork::deliver(OpId recv, const engine::Payload& payload) {
  const std::vector<float> numbers = numbers_of(payload);
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(recv);
  if (found == jobs_.end()) {
    arrived_[recv] = numbers;
    return;
  }
  const Job& job = found->second;
  if (job.what == Job::What::hop) {
    rows_in_[job.stages.front()] = numbers;
    return;
  }
  auto& all = numbers_.received[job.stages.front()];
  all.resize(std::max(all.size(), job.first + numbers.size()), std::nanf(""));
  std::ranges::copy(numbers, all.begin() + static_cast<std::ptrdiff_t>(job.first));
}

void ServedWork::corrupt(const engine::Payload& payload) {
  if (payload.bytes.size() < sizeof(float)) return;
  std::byte* const last = payload.bytes.data() + payload.bytes.size() - sizeof(float);
  float number = 0;
  std::memcpy(&number, last, sizeof number);
  number += 1 + std::abs(number);
  std::memcpy(last, &number, sizeof number);
}

ServedNumbers ServedWork::gather(const engine::Ranks& ranks, const FilledStretch& stretch) {
  if (live_ != nullptr) sort_arrived(stretch);
  std::vector<RowOfNumbers> rows;
  std::vector<float> mine;
  const std::lock_guard lock{mutex_};
  for (const auto& [kind, of_stages] :
       {std::pair{0, &numbers_.logits}, {1, &numbers_.sent}, {2, &numbers_.received}})
    for (const auto& [stage, numbers] : *of_stages) {
      rows.push_back({kind, static_cast<std::int64_t>(stage), std::ssize(numbers)});
      mine.insert(mine.end(), numbers.begin(), numbers.end());
    }
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{rows}), counts);
  const auto of_ranks = training::gather_numbers(ranks.world(), mine);
  ServedNumbers all;
  const std::byte* at = bytes.data();
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    auto numbers = of_ranks[rank].begin();
    for (std::size_t i = 0; i < to_size(counts[rank]) / sizeof(RowOfNumbers); ++i) {
      RowOfNumbers row;
      std::memcpy(&row, at, sizeof row);
      at += sizeof row;
      auto& into = row.kind == 0 ? all.logits : row.kind == 1 ? all.sent : all.received;
      into[to_size(row.stage)] = {numbers, numbers + row.count};
      numbers += row.count;
    }
  }
  return all;
}

}  // namespace longhaul::harness
