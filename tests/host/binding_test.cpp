#include "host/binding.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::host {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> cores(const std::vector<RankBinding>& bindings) {
  std::vector<std::string> all;
  for (const RankBinding& binding : bindings) all.push_back(binding.cores);
  return all;
}

struct FakeDevice {
  std::string address;
  std::string type;  ///< class and ids, as lstopo writes them
  std::string name;  ///< of a network interface
};
std::string xml_of(const FakeDevice& device, int number) {
  const std::string inside =
      device.name.empty()
          ? ""
          : fmt::format(R"(<object type="OSDev" gp_index="{}" name="{}" osdev_type="{}"/>)",
                        900 + number, device.name, device.name.starts_with("mlx") ? 3 : 2);
  return fmt::format(
      R"(<object type="PCIDev" gp_index="{}" pci_busid="{}" pci_type="{}" pci_link_speed="0">{}</object>)",
      800 + number, device.address, device.type, inside);
}
constexpr const char* kNvidia = "0302 [10de:2330] [10de:16c1] a1";
constexpr const char* kConsole = "0300 [1a03:2000] [1a03:2000] 52";
constexpr const char* kNic = "0200 [15b3:1021] [15b3:0040] 00";

/// Two packages of four cores of two threads each, with devices on the one and on the other.
Topology two_packages(const std::vector<FakeDevice>& first, const std::vector<FakeDevice>& second) {
  const Topology plain = Topology::of_description("package:2 core:4 pu:2");
  char* buffer = nullptr;
  int length = 0;
  hwloc_topology_export_xmlbuffer(plain.get(), &buffer, &length, 0);
  std::string xml{buffer};
  hwloc_free_xmlbuffer(plain.get(), buffer);
  const std::string end = "\n    </object>";  // of a package
  std::size_t at = 0;
  int number = 0;
  for (const auto& devices : {first, second}) {
    at = xml.find(end, xml.find("<object type=\"Package\"", at));
    std::string bridge = fmt::format(
        R"(<object type="Bridge" gp_index="{}" bridge_type="0-1" depth="0" bridge_pci="{}:[00-ff]">)",
        700 + number, devices.empty() ? "0000" : devices.front().address.substr(0, 4));
    for (const FakeDevice& device : devices) bridge += xml_of(device, ++number);
    bridge += "</object>";
    if (devices.empty()) bridge.clear();
    xml.insert(at, bridge);
    at += bridge.size() + end.size();
  }
  return Topology::of_xml(xml);
}

TEST(Seats, ShareTheCoresEvenlyAndInOrder) {
  const Topology host = Topology::of_description("package:2 core:4 pu:2");
  EXPECT_THAT(cores(bind_ranks(host, 2)), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(cores(bind_ranks(host, 3)), ElementsAre("0-1", "2-4", "5-7"));
  EXPECT_THAT(cores(bind_ranks(host, 8)), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  EXPECT_EQ(bind_ranks(host, 8)[3].threads, "6-7") << "both threads of core 3";
  EXPECT_TRUE(bind_ranks(host, 8)[3].has_cores);
}

TEST(Seats, AreSharedWhereThereAreTooFewCores) {
  const auto bindings = bind_ranks(Topology::of_description("core:2 pu:1"), 3);
  EXPECT_THAT(cores(bindings), ElementsAre("0-1", "0-1", "0-1"));
  EXPECT_FALSE(bindings.front().has_cores);
}

TEST(Seats, KeepToWhatTheLauncherLeft) {
  const Topology host = Topology::of_description("package:2 core:4 pu:2");
  EXPECT_THAT(cores(bind_ranks(host, 2, "8-11")), ElementsAre("4", "5"));
  EXPECT_THAT(cores(bind_ranks(host, 2, "0")), ElementsAre("0", "0"));
  EXPECT_THROW((void)bind_ranks(host, 2, "some"), Error);
}

TEST(Seats, AreNearTheirGpuAndItsNetwork) {
  const Topology host =
      two_packages({{"0000:1b:00.0", kNvidia, ""}, {"0000:1c:00.0", kNic, "mlx5_0"}},
                   {{"0001:9d:00.0", kNvidia, ""}, {"0001:9e:00.0", kNic, "mlx5_1"}});
  const auto bindings = bind_ranks(host, 2);
  EXPECT_EQ(bindings[0].gpu, "0000:1b:00.0");
  EXPECT_EQ(bindings[1].gpu, "0001:9d:00.0");
  EXPECT_EQ(bindings[0].nic, "mlx5_0");
  EXPECT_EQ(bindings[1].nic, "mlx5_1");
  EXPECT_THAT(cores(bindings), ElementsAre("0-3", "4-7"));
}

/// Both GPUs are on the second package: no rank is bound to the first.
TEST(Seats, SplitTheCoresNearGpusThatAreNeighbours) {
  const Topology host =
      two_packages({{"0000:03:00.0", kConsole, ""}},
                   {{"0001:9d:00.0", kNvidia, ""}, {"0001:9f:00.0", kNvidia, ""}});
  const auto bindings = bind_ranks(host, 2);
  EXPECT_EQ(bindings[0].gpu, "0001:9d:00.0");
  EXPECT_EQ(bindings[1].gpu, "0001:9f:00.0");
  EXPECT_THAT(cores(bindings), ElementsAre("4-5", "6-7"));
}

TEST(Seats, ShareGpusThatAreTooFew) {
  const Topology host =
      two_packages({{"0000:1b:00.0", kNvidia, ""}}, {{"0001:9d:00.0", kNvidia, ""}});
  const auto bindings = bind_ranks(host, 4);
  EXPECT_EQ(bindings[0].gpu, bindings[1].gpu);
  EXPECT_EQ(bindings[2].gpu, bindings[3].gpu);
  EXPECT_THAT(cores(bindings), ElementsAre("0-1", "2-3", "4-5", "6-7"));
}

TEST(Seats, CountNoConsoleAsGpu) {
  EXPECT_EQ(bind_ranks(two_packages({{"0000:03:00.0", kConsole, ""}}, {}), 2)[0].gpu, "");
}

TEST(Seats, AreDisjointAndCoverAllCoresOnRandomHosts) {
  Random random{3};
  for (int i = 0; i < 40; ++i) {
    const auto packages = random.between(1, 3), of_package = random.between(1, 6);
    const int ranks = static_cast<int>(random.between(1, packages * of_package));
    const Topology host =
        Topology::of_description(fmt::format("package:{} core:{} pu:2", packages, of_package));
    const auto bindings = bind_ranks(host, ranks);
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    int sum = 0;
    for (const RankBinding& binding : bindings) {
      hwloc_bitmap_list_sscanf(one, binding.cores.c_str());
      EXPECT_GE(hwloc_bitmap_weight(one), packages * of_package / ranks);
      sum += hwloc_bitmap_weight(one);
      hwloc_bitmap_or(all, all, one);
      EXPECT_TRUE(binding.has_cores);
    }
    EXPECT_EQ(hwloc_bitmap_weight(all), packages * of_package);
    EXPECT_EQ(sum, packages * of_package);
    hwloc_bitmap_free(all);
    hwloc_bitmap_free(one);
  }
}

}  // namespace
}  // namespace longhaul::host
