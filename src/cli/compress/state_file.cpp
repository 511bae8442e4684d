#include "cli/compress/state_file.hpp"

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/text_file.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// Throws nlohmann's exception where a key is missing or of another type.
CompressionState state_in(const ordered_json& json) {
  CompressionState found;
  const auto method = from_string<compress::Method>(json.at("method").get<std::string>());
  if (!method) fail("there is no method {}", json.at("method").dump());
  found.method = *method;
  found.block = json.at("block").get<int>();
  found.count = json.at("count").get<std::int64_t>();
  found.state.threshold = json.at("threshold").get<float>();
  found.state.first_threshold = json.at("first_threshold").get<float>();
  found.state.calls = json.at("calls").get<std::uint64_t>();
  const auto is_threshold = [](float value) { return value >= 0 && std::isfinite(value); };
  if (!is_threshold(found.state.threshold) || !is_threshold(found.state.first_threshold))
    fail("a threshold is no finite number from 0 on");
  return found;
}

}  // namespace

compress::SparsifierState read_state(const std::string& file, const CompressionState& wanted) {
  if (!std::filesystem::exists(file)) return {};
  CompressionState found;
  try {
    found = state_in(ordered_json::parse(read_text_file(file)));
  } catch (const std::exception& error) {
    fail("{}: no state of `longhaul compress` ({}). Remove it to begin anew.", file, error.what());
  }
  if (found.method != wanted.method || found.block != wanted.block || found.count != wanted.count)
    fail(
        "{}: the state of {} numbers under {} in blocks of {} (here: {} under {} in {}). Name "
        "another file.",
        file, found.count, to_string(found.method), found.block, wanted.count,
        to_string(wanted.method), wanted.block);
  return found.state;
}

std::string state_text(const CompressionState& state) {
  ordered_json json = report::record_header();
  json["method"] = to_string(state.method);
  json["block"] = state.block;
  json["count"] = state.count;
  json["threshold"] = state.state.threshold;
  json["first_threshold"] = state.state.first_threshold;
  json["calls"] = state.state.calls;
  return report::json_text(json);
}

}  // namespace longhaul::cli
