#include <filesystem>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "profile/import/imported_profile.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using profile::ImportedOperator;
using profile::ImportedProfile;

ImportedProfile imported_file(const std::string& file) {
  const std::string text = read_text_file(file);
  if (profile::is_cupti_log(text))
    return profile::read_cupti_log(text, file, std::filesystem::path{file}.filename().string());
  const profile::KinetoTrace trace = profile::read_kineto(text, file);
  return profile::imported(trace.runs, trace.iterations);
}

std::string imported_text(const ImportedProfile& imported, TableWidth width) {
  Table table{{{"part", Align::left},
               {"block", Align::left},
               {"operator", Align::left},
               {"shape", Align::left},
               {"type", Align::left},
               {"calls"},
               {"n"},
               {"median"}}};
  for (const ImportedOperator& each : imported.operators)
    table.add_row({each.part, each.block, each.operation, each.shape, each.type,
                   std::to_string(each.calls), std::to_string(each.runs), to_text(each.median)});
  return table.text(width);
}

ordered_json imported_json(const ImportedProfile& imported) {
  ordered_json json{{"operators", ordered_json::array()}, {"tasks", ordered_json::array()}};
  for (const ImportedOperator& each : imported.operators)
    json["operators"].push_back({{"part", each.part},
                                 {"block", each.block},
                                 {"operator", each.operation},
                                 {"shape", each.shape},
                                 {"type", each.type},
                                 {"calls", each.calls},
                                 {"n", each.runs},
                                 {"median_ns", each.median.count()},
                                 {"min_ns", each.least.count()}});
  for (const profile::ImportedTask& each : imported.tasks)
    json["tasks"].push_back({{"operator", each.operation},
                             {"kernel", each.kernel},
                             {"position", each.position},
                             {"median_ns", each.median.count()},
                             {"gap_ns", each.gap.count()}});
  return json;
}

}  // namespace

Answer profile_import_command(const Options& options) {
  for (const std::string* out : {&options.out, &options.profile.tasks})
    if (!out->empty()) report::require_new_file(*out);
  const ImportedProfile imported = imported_file(options.files.front());
  require_readable(imported, options.files.front());
  if (!options.out.empty())
    report::write_new_file(options.out,
                           [&](std::ostream& out) { out << profile::operators_csv(imported); });
  if (!options.profile.tasks.empty())
    report::write_new_file(options.profile.tasks,
                           [&](std::ostream& out) { out << profile::tasks_csv(imported); });
  if (options.json) return {report::json_text(imported_json(imported))};
  return {imported_text(imported, table_width(options))};
}

}  // namespace longhaul::cli
