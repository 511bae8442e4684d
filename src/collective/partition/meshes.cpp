#include "collective/partition/meshes.hpp"

#include <optional>
#include <utility>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::collective {
namespace {

void append_products(int members, int dimensions, std::vector<int>& sizes,
                     std::vector<std::vector<int>>& to) {
  if (dimensions == 1) {
    if (members < 2) return;
    to.push_back(sizes);
    to.back().push_back(members);
    return;
  }
  for (int size = 2; size <= members / 2; ++size) {
    if (members % size != 0) continue;
    sizes.push_back(size);
    append_products(members / size, dimensions - 1, sizes, to);
    sizes.pop_back();
  }
}

/// Names a sub-group along the dimension with pairs of different rates.
std::string why_unequal(const plan::Mesh& mesh, int dimension, const std::vector<Rank>& group,
                        const schedule::NetworkRoutes& routes) {
  const int stride = mesh.stride(dimension);
  const int size = mesh.sizes[at(dimension)];
  for (int first = 0; first < std::ssize(group); ++first) {
    if (mesh.coordinate(first, dimension) != 0) continue;
    std::optional<Bandwidth> rate;
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        if (i == j) continue;
        const Bandwidth own =
            routes.between(group[at(first + i * stride)], group[at(first + j * stride)]).rate;
        if (!rate) rate = own;
        if (*rate != own)
          return fmt::format("sub-groups of unequal bandwidth: ranks {} to {} have {} and {}",
                             index(group[at(first)]), index(group[at(first + (size - 1) * stride)]),
                             to_text(*rate), to_text(own));
      }
  }
  return {};
}

}  // namespace

std::vector<GroupMesh> meshes_of_group(const std::vector<Rank>& group, const Scenario& scenario,
                                       int most) {
  const schedule::NetworkRoutes routes{scenario};
  std::vector<std::vector<int>> products;
  std::vector<int> sizes;
  for (int dimensions = 2; dimensions <= most; ++dimensions)
    append_products(static_cast<int>(group.size()), dimensions, sizes, products);
  std::vector<GroupMesh> meshes;
  for (std::vector<int>& product : products) {
    GroupMesh made;
    made.mesh.sizes = std::move(product);
    const int dimensions = made.mesh.dimensions();
    for (int d = dimensions; d-- > 0;) made.mesh.order.push_back(d);
    made.mesh.algorithms.assign(at(dimensions), plan::CollectiveAlgorithm::ring);
    for (int d = 0; d < dimensions && made.unequal.empty(); ++d)
      made.unequal = why_unequal(made.mesh, d, group, routes);
    meshes.push_back(std::move(made));
  }
  return meshes;
}

}  // namespace longhaul::collective
