#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.hpp"
#include "harness/profile/model_profile.hpp"

namespace longhaul::harness {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::string duration_text(const std::vector<double>& sample) {
  return fmt::format("{}ns", std::llround(summarize(sample).median));
}

/// "key = [..]" with one value of each stage.
template <typename Value>
std::string line(const ModelProfile& profile, int stages, const char* key, Value value) {
  std::vector<std::string> values;
  for (const DeviceId device : ids<DeviceId>(stages))
    values.push_back(quoted(value(profile.of_device(device))));
  return fmt::format("{} = [{}]\n", key, fmt::join(values, ", "));
}

std::string costs_lines(const ModelProfile& profile, int stages) {
  std::string text;
  for (const auto& [key, samples] :
       {std::pair{"forward", &BlockSamples::forward},
        std::pair{"backward", &BlockSamples::backward}, std::pair{"dgrad", &BlockSamples::dgrad},
        std::pair{"wgrad", &BlockSamples::wgrad}, std::pair{"recompute", &BlockSamples::recompute}})
    text += line(profile, stages, key, [samples = samples](const DeviceProfile& device) {
      return duration_text(device.samples.*samples);
    });
  for (const auto& [key, size] : {std::pair{"activation", &StageMemory::activation},
                                  std::pair{"weights", &StageMemory::weights}})
    text += line(profile, stages, key, [size = size](const DeviceProfile& device) {
      return fmt::format("{}B", (device.memory.*size).count());
    });
  return text + fmt::format("message = \"{}B\"\n", profile.message_size().count());
}

std::string model_lines(const nn::ModelShape& shape, const Scenario& scenario) {
  return fmt::format(
      "\n[model]\nlayers = {}\nhidden = {}\nintermediate = {}\nheads = {}\nkv_heads = {}\n"
      "vocabulary = {}\nsequence_length = {}\nmicrobatch_size = {}\nlayers_of_stages = [{}]\n",
      shape.layers, shape.hidden, shape.intermediate, shape.heads, shape.kv_heads, shape.vocabulary,
      shape.sequence, shape.batch, fmt::join(scenario.layers, ", "));
}

}  // namespace

double widest_interval(const ModelProfile& profile) {
  double widest = 0;
  for (const DeviceProfile& device : profile.devices)
    for (const auto samples :
         {&BlockSamples::forward, &BlockSamples::backward, &BlockSamples::dgrad,
          &BlockSamples::wgrad, &BlockSamples::recompute})
      widest = std::max(widest, summarize(device.samples.*samples).relative_width().value_or(0));
  return widest;
}

std::string costs_text(const ModelProfile& profile, const Scenario& scenario,
                       const CostsOrigin& origin) {
  std::string text = fmt::format(
      "# What blocks of this model cost on this device: medians that bench_profile measured.\n"
      "# A scenario includes it with [costs] file = \"costs.toml\".\nstages = {}\n",
      scenario.parallel.stages);
  text += costs_lines(profile, scenario.parallel.stages);
  text += model_lines(profile.shape, scenario);
  text += fmt::format(
      "\n[measured]\ndevice = {}\nnumber_type = \"{}\"\nschedule = {}\nchunks = {}\nranks = {}\n"
      "samples = {}\nwidest_interval = {:.4f}\nmessage_time = \"{}\"\nwhen = {}\ncommand = {}\n"
      "commit = {}\n",
      quoted(origin.device), longhaul::to_string(profile.type), quoted(origin.schedule),
      origin.chunks, origin.ranks, profile.devices.front().samples.forward.size(),
      widest_interval(profile), duration_text(profile.message), quoted(origin.when),
      quoted(origin.command), quoted(origin.commit));
  return text;
}

}  // namespace longhaul::harness
