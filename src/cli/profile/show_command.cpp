#include <map>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/profile/profile_inputs.hpp"
#include "profile/shape_law.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using scenario::ProfileRow;
using scenario::ProfileTable;

struct BlockSum {
  Duration time{};
  std::size_t operators = 0;
};
/// By part and block: the sum of calls x median.
std::map<std::pair<std::string, std::string>, BlockSum> blocks_of(const ProfileTable& table) {
  std::map<std::pair<std::string, std::string>, BlockSum> blocks;
  for (const ProfileRow& row : table.rows) {
    BlockSum& sum = blocks[{row.part, row.block}];
    sum.time += row.median * row.calls;
    ++sum.operators;
  }
  return blocks;
}

std::string show_text(const ProfileTable& table, const profile::ShapeLaws& laws, TableWidth width) {
  Table blocks{{{"part", Align::left}, {"block", Align::left}, {"operators"}, {"sum"}}};
  for (const auto& [key, sum] : blocks_of(table))
    blocks.add_row({key.first, key.second, std::to_string(sum.operators), to_text(sum.time)});
  Table shapes{{{"operator", Align::left}, {"type", Align::left}, {"shapes"}, {"left out"}}};
  for (const auto& [key, law] : laws)
    shapes.add_row({key.first, key.second, std::to_string(law.shapes()),
                    law.shapes() < 2 ? "-" : fmt::format("{:.1f}%", 100 * law.left_out())});
  return fmt::format("{}: {} operators\n\n{}\nEach shape predicted from the others:\n{}",
                     table.source, table.rows.size(), blocks.text(width), shapes.text(width));
}

ordered_json show_json(const ProfileTable& table, const profile::ShapeLaws& laws) {
  ordered_json json{{"profile", table.source},
                    {"operators", table.rows.size()},
                    {"blocks", ordered_json::array()},
                    {"laws", ordered_json::array()}};
  for (const auto& [key, sum] : blocks_of(table))
    json["blocks"].push_back({{"part", key.first},
                              {"block", key.second},
                              {"operators", sum.operators},
                              {"sum_ns", sum.time.count()}});
  for (const auto& [key, law] : laws)
    json["laws"].push_back(
        {{"operator", key.first},
         {"type", key.second},
         {"shapes", law.shapes()},
         {"left_out", law.shapes() < 2 ? ordered_json{} : ordered_json(law.left_out())}});
  return json;
}

/// An operator of two profiles; nullptr: the other alone has it.
struct ComparedRow {
  const ProfileRow* a = nullptr;
  const ProfileRow* b = nullptr;
  [[nodiscard]] const ProfileRow& any() const { return a != nullptr ? *a : *b; }
};

std::vector<ComparedRow> joined_rows(const ProfileTable& a, const ProfileTable& b) {
  const auto same = [](const ProfileRow& x, const ProfileRow& y) {
    return std::tie(x.part, x.block, x.operation, x.shape, x.type) ==
           std::tie(y.part, y.block, y.operation, y.shape, y.type);
  };
  std::vector<ComparedRow> rows;
  for (const ProfileRow& row : a.rows) {
    const ProfileRow* const other = b.find(row);
    rows.push_back({&row, other != nullptr && same(row, *other) ? other : nullptr});
  }
  for (const ProfileRow& row : b.rows) {
    const ProfileRow* const other = a.find(row);
    if (other == nullptr || !same(row, *other)) rows.push_back({nullptr, &row});
  }
  return rows;
}

/// B over A; nullopt where one has none, or none above 0.
std::optional<double> growth_of(const ComparedRow& row) {
  if (row.a == nullptr || row.b == nullptr || row.a->median == Duration::zero())
    return std::nullopt;
  return static_cast<double>(row.b->median.count()) / static_cast<double>(row.a->median.count());
}

}  // namespace

Answer profile_show_command(const Options& options) {
  const ProfileTable table = profile_file(options.files.front());
  const profile::ShapeLaws laws = profile::shape_laws(table);
  if (options.json) return {report::json_text(show_json(table, laws))};
  return {show_text(table, laws, table_width(options))};
}

Answer profile_compare_command(const Options& options) {
  const ProfileTable a = profile_file(options.files[0]);
  const ProfileTable b = profile_file(options.files[1]);
  ordered_json json{{"a", a.source}, {"b", b.source}, {"operators", ordered_json::array()}};
  Table table{{{"part", Align::left},
               {"block", Align::left},
               {"operator", Align::left},
               {"shape", Align::left},
               {"A"},
               {"B"},
               {"B / A"}}};
  for (const ComparedRow& row : joined_rows(a, b)) {
    const ProfileRow& any = row.any();
    const auto ns = [](const ProfileRow* of) {
      return of == nullptr ? ordered_json{} : ordered_json(of->median.count());
    };
    const auto text = [](const ProfileRow* of) {
      return of == nullptr ? "-" : to_text(of->median);
    };
    const std::optional<double> ratio = growth_of(row);
    json["operators"].push_back({{"part", any.part},
                                 {"block", any.block},
                                 {"operator", any.operation},
                                 {"shape", any.shape},
                                 {"type", any.type},
                                 {"a_ns", ns(row.a)},
                                 {"b_ns", ns(row.b)},
                                 {"ratio", ratio ? ordered_json(*ratio) : ordered_json{}}});
    table.add_row({any.part, any.block, any.operation, any.shape, text(row.a), text(row.b),
                   ratio ? fmt::format("{:.2f}", *ratio) : "-"});
  }
  return {options.json ? report::json_text(json) : table.text(table_width(options))};
}

}  // namespace longhaul::cli
