#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/presets.hpp"
#include "scenario/reader/link_values.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::scenario {

SiteRegions::SiteRegions(const ConfigNode& root, const Scenario& scenario) : scenario_{scenario} {
  const auto wan = section_of(root, "wan", {"regions"});
  const auto file = wan ? wan->find("regions") : std::nullopt;
  for (const ConfigNode* table : tables_of(root, "datacenter")) {
    const ConfigNode* const region = table->find("region");
    if (region == nullptr) continue;
    if (!any_) first_ = {region, "datacenter.region"};
    any_ = true;
  }
  if (file) {
    read_own(root, *file);
    table_ = &own_;
  } else if (any_) {
    table_ = &RegionTable::built_in();
  }
  require_known(root);
}

/// Of the scenario's own [regions], or of the file beside it.
void SiteRegions::read_own(const ConfigNode& root, const Field& field) {
  const std::string name = read_file_name(field, "a CSV");
  if (const ConfigNode* own = own_file(root, "regions", name)) {
    const std::string path = "regions." + shown(name);
    own_ = RegionTable::parse(read_text({own, path}), to_text(own->place) + ": " + path);
    return;
  }
  own_ = RegionTable::load(std::filesystem::path{*root.place.origin}.parent_path() / name);
  held_text_ = '\n' + scenario::held_text("regions", name, own_.text());
}

void SiteRegions::require_known(const ConfigNode& root) const {
  for (const ConfigNode* table : tables_of(root, "datacenter")) {
    const ConfigNode* const region = table->find("region");
    if (region == nullptr || table_->knows(region->text)) continue;
    const std::vector<std::string> known(table_->regions().begin(), table_->regions().end());
    const auto like = nearest(region->text, known);
    fail_at(region->place, "datacenter.region = \"{}\" is no region (of {}). {}{}",
            shown(region->text), table_->source(),
            like || known.size() <= 12
                ? suggestion(region->text, known)
                : fmt::format("It has {}, such as {}.", known.size(), known[0]),
            table_ == &own_ ? "" : " Others: [wan] regions = \"file.csv\".");
  }
}

std::shared_ptr<const RegionTable> own_regions(const Scenario& scenario) {
  const std::vector<std::string> overrides = stored_options(scenario.text).set;
  const ConfigNode root = scenario_tree(scenario.text, scenario.name, overrides);
  const auto wan = section_of(root, "wan", {"regions"});
  const auto file = wan ? wan->find("regions") : std::nullopt;
  if (!file) return nullptr;
  const std::string name = read_file_name(*file, "a CSV");
  const ConfigNode* const own = own_file(root, "regions", name);
  LONGHAUL_ASSERT(own != nullptr, "{}: its text does not hold {}", scenario.name, name);
  const std::string path = "regions." + shown(name);
  return std::make_shared<const RegionTable>(
      RegionTable::parse(read_text({own, path}), scenario.name + ": " + path));
}

const std::string& SiteRegions::region(DatacenterId id) const {
  return scenario_.datacenters[index(id)].region;
}

bool SiteRegions::both(DatacenterId from, DatacenterId to) const {
  return !region(from).empty() && !region(to).empty();
}

std::pair<std::string_view, std::string_view> SiteRegions::names(DatacenterId from,
                                                                 DatacenterId to) const {
  if (!both(from, to)) return {};
  return {region(from), region(to)};
}

std::optional<RegionPair> SiteRegions::link(DatacenterId from, DatacenterId to) const {
  if (!both(from, to)) return std::nullopt;
  if (const RegionPair* pair = table_->find(region(from), region(to))) return *pair;
  if (const RegionPair* pair = table_->find(region(to), region(from))) return *pair;
  if (region(from) != region(to)) return std::nullopt;
  static const LinkPreset& near =
      *std::ranges::find(link_presets(), "same-region", &LinkPreset::name);
  return RegionPair{2 * near.latency, near.bandwidth};
}

void SiteRegions::refuse_pair(const ConfigPosition& place, DatacenterId from,
                              DatacenterId to) const {
  fail_at(place,
          "nothing was measured between {} and {} ({} has no such pair). Give the link latency and "
          "bandwidth.",
          region(from), region(to), table_->source());
}

void SiteRegions::refuse_unknown_message() const {
  fail_at(first_.node->place,
          "{} needs costs.message (the region gives the link a rate, and without a model nothing "
          "tells the size of a message). Add costs.message.",
          first_.path);
}

}  // namespace longhaul::scenario
