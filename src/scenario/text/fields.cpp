#include "scenario/text/fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/index.hpp"
#include "base/suggest.hpp"
#include "base/unit_text.hpp"

namespace longhaul::scenario {
namespace {

using Kind = ConfigNode::Kind;

/// Largest time in nanoseconds and largest size in bytes: a sum of a few does not overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 60;

[[noreturn]] void wrong_type(const Field& field, std::string_view wanted, std::string_view remedy) {
  fail_at(field.node->place, "{} = {} is no {} (wrong type). {}", field.path, to_text(*field.node),
          wanted, remedy);
}

/// The text of a value with a unit.
std::string unit_text(const Field& field, std::string_view wanted, std::string_view example) {
  constexpr std::size_t kLongest = 64;
  const ConfigNode& node = *field.node;
  if (node.kind == Kind::integer || node.kind == Kind::real)
    fail_at(node.place, "{} = {} is no {} (it has no unit). Write it as a text, like \"{}\".",
            field.path, to_text(node), wanted, example);
  if (node.kind != Kind::text)
    wrong_type(field, wanted, fmt::format("Write a text like \"{}\".", example));
  if (node.text.size() > kLongest)
    wrong_type(field, wanted, fmt::format("Write a text like \"{}\".", example));
  return node.text;
}

/// Runs a reader of base/unit_text.hpp and puts place and path before its complaint.
template <typename Parse>
auto with_place(const Field& field, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    fail_at(field.node->place, "{}: {}", field.path, error.what());
  }
}

template <typename Number>
void require_range(const Field& field, Number value, Number low, Number high) {
  if (!(value >= low && value <= high))
    fail_at(field.node->place, "{} = {} is out of range ({} to {}). Choose a value in it.",
            field.path, to_text(*field.node), low, high);
}

double parse_flops(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kUnits{
      {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
  double number = 0;
  const char* const end = text.data() + text.size();
  auto [rest, status] = std::from_chars(text.data(), end, number);
  while (rest != end && *rest == ' ') ++rest;
  for (const auto& [name, factor] : kUnits) {
    if (status == std::errc{} && std::string_view{rest, end} == name) return number * factor;
  }
  fail("\"{}\" is no rate of computing (wrong number or unit). Use GFLOP/s, TFLOP/s or PFLOP/s.",
       shown(text));
}

}  // namespace

Section::Section(const ConfigNode& table, std::string name, std::vector<std::string> known)
    : table_{&table}, name_{std::move(name)}, known_{std::move(known)} {
  if (table.kind != Kind::table)
    fail_at(table.place, "{} = {} is no table (wrong type). Write [{}] and its keys below.", name_,
            to_text(table), name_);
  for (const ConfigEntry& entry : table.entries) {
    if (std::ranges::find(known_, entry.key) == known_.end())
      fail_at(entry.place, "unknown key \"{}\" (in {}). {}", shown(entry.key),
              name_.empty() ? "the scenario" : name_, suggestion(entry.key, known_));
  }
}

std::optional<Field> Section::find(const std::string& key) const {
  LONGHAUL_ASSERT(std::ranges::find(known_, key) != known_.end(), "{}.{}", name_, key);
  const ConfigNode* node = table_->find(key);
  if (node == nullptr) return std::nullopt;
  return Field{node, name_.empty() ? key : name_ + "." + key};
}

Field Section::require(const std::string& key, std::string_view why) const {
  if (auto field = find(key)) return *std::move(field);
  fail_at(place(), "{}{}{} is missing ({}). Add it.", name_, name_.empty() ? "" : ".", key, why);
}

std::vector<const ConfigNode*> tables_of(const ConfigNode& root, const std::string& name) {
  std::vector<const ConfigNode*> tables;
  const ConfigNode* list = root.find(name);
  if (list == nullptr) return tables;
  const auto refuse = [&](const ConfigNode& node) {
    fail_at(node.place, "{} = {} is no list of tables (wrong type). Write [[{}]] for each.", name,
            to_text(node), name);
  };
  if (list->kind != Kind::list) refuse(*list);
  for (const ConfigNode& item : list->items) {
    if (item.kind != Kind::table) refuse(item);
    tables.push_back(&item);
  }
  return tables;
}

std::int64_t read_integer(const Field& field, std::int64_t low, std::int64_t high) {
  if (field.node->kind != Kind::integer)
    wrong_type(field, "whole number", "Write it without quotes and without a unit.");
  require_range(field, field.node->integer, low, high);
  return field.node->integer;
}

double read_number(const Field& field, double low, double high) {
  const ConfigNode& node = *field.node;
  if (node.kind != Kind::integer && node.kind != Kind::real)
    wrong_type(field, "number", "Write it without quotes and without a unit.");
  const double value = node.kind == Kind::real ? node.real : static_cast<double>(node.integer);
  require_range(field, value, low, high);
  return value;
}

bool read_boolean(const Field& field) {
  if (field.node->kind != Kind::boolean)
    wrong_type(field, "true or false", "Write true or false, without quotes.");
  return field.node->integer != 0;
}

std::string read_text(const Field& field) {
  if (field.node->kind != Kind::text) wrong_type(field, "text", "Write it in double quotes.");
  return field.node->text;
}

Duration read_duration(const Field& field) {
  const std::string text = unit_text(field, "duration", "40ms");
  const Duration time = with_place(field, [&] { return parse_duration(text); });
  if (time.count() > kLargest)
    fail_at(field.node->place, "{} = \"{}\" is too long (36 years is the limit). Use less.",
            field.path, text);
  if (time < Duration::zero())
    fail_at(field.node->place, "{} = \"{}\" is negative (no time is). Use zero or more.",
            field.path, text);
  return time;
}

Bytes read_bytes(const Field& field) {
  const std::string text = unit_text(field, "size", "64MiB");
  const Bytes size = with_place(field, [&] { return parse_bytes(text); });
  if (size.count() > kLargest)
    fail_at(field.node->place, "{} = \"{}\" is too large (1 EiB is the limit). Use less.",
            field.path, text);
  if (size < Bytes{})
    fail_at(field.node->place, "{} = \"{}\" is negative (no size is). Use zero or more.",
            field.path, text);
  return size;
}

Bandwidth read_bandwidth(const Field& field) {
  const std::string text = unit_text(field, "rate", "5Gbps");
  if (text == "unlimited") return Bandwidth::unlimited();
  const Bandwidth rate = with_place(field, [&] { return parse_bandwidth(text); });
  if (!(rate.bits_per_second() > 0))
    fail_at(field.node->place,
            "{} = \"{}\" is not above zero (nothing would arrive). Use a rate above zero, or "
            "\"unlimited\".",
            field.path, text);
  if (rate.is_unlimited())
    fail_at(field.node->place, "{} = \"{}\" is too large (beyond 1e308 bps). Use \"unlimited\".",
            field.path, text);
  return rate;
}

double read_flops(const Field& field) {
  const bool is_text = field.node->kind == Kind::text;
  const double rate = is_text ? with_place(field, [&] { return parse_flops(field.node->text); })
                              : read_number(field, 1, 1e30);
  require_range(field, rate, 1.0, 1e30);
  return rate;
}

std::size_t read_choice(const Field& field, const std::vector<std::string>& names) {
  const std::string text = read_text(field);
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    fail_at(field.node->place, "{} = \"{}\" is unknown (it is one of a few names). {}", field.path,
            shown(text), suggestion(text, names));
  return at(found - names.begin());
}

std::vector<Field> elements(const Field& field) {
  if (field.node->kind != Kind::list) wrong_type(field, "list", "Write it as [a, b].");
  std::vector<Field> result;
  for (std::size_t i = 0; i < field.node->items.size(); ++i)
    result.push_back({&field.node->items[i], fmt::format("{}[{}]", field.path, i)});
  return result;
}

}  // namespace longhaul::scenario
