#include <filesystem>

#include "scenario/reader/embedded_files.hpp"
#include "scenario/reader/link_trace.hpp"
#include "scenario/reader/read_weather.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {

TraceStore::TraceStore(const ConfigNode& root) : root_{root} {}

std::shared_ptr<const LinkTrace> TraceStore::find(const Field& field) {
  const std::string name = read_text(field);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second;
  LinkTrace trace = read(field, name);
  trace.name = name;
  return by_name_[name] = std::make_shared<const LinkTrace>(std::move(trace));
}

LinkTrace TraceStore::read(const Field& field, const std::string& name) {
  (void)read_file_name(field, "a CSV");
  if (const ConfigNode* own = own_file(root_, "traces", name))
    return parse_link_trace(read_text({own, "traces." + shown(name)}),
                            to_text(own->place) + ": traces." + shown(name));
  const std::filesystem::path beside{*root_.place.origin};
  const std::filesystem::path file = beside.parent_path() / name;
  try {
    const std::string csv = read_csv_file(file, kLargestTrace, "the trace of a link", field.path);
    LinkTrace trace = parse_link_trace(csv, file.string());
    of_files_.push_back(name);
    return trace;
  } catch (const Error& error) {
    fail_at(field.node->place, "{}", error.what());
  }
}

std::string TraceStore::held_text() const {
  std::string text{of_files_.empty() ? "" : "\n"};
  for (const std::string& name : of_files_)
    text += scenario::held_text("trace", name, write_link_trace(*by_name_.at(name)));
  return text;
}

}  // namespace longhaul::scenario
