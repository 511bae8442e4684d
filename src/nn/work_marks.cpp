#include "nn/work_marks.hpp"

#include <chrono>

#include "base/error.hpp"

namespace longhaul::nn {
namespace {

class HostMarks final : public WorkMarks {
public:
  explicit HostMarks(TensorOps& math) : math_{math} {}

  void enter() override {}
  void mark() override {
    math_.finish();
    reached_.push_back(std::chrono::steady_clock::now());
  }
  [[nodiscard]] std::size_t count() const override { return reached_.size(); }
  void wait_for(std::size_t number) override {
    LONGHAUL_ASSERT(number < count(), "mark {} of {}", number, count());
  }
  [[nodiscard]] std::vector<double> seconds_since(const WorkMarks& origin) override {
    const auto begin = dynamic_cast<const HostMarks&>(origin).reached_.at(0);
    std::vector<double> seconds;
    for (const auto instant : reached_)
      seconds.push_back(std::chrono::duration<double>(instant - begin).count());
    return seconds;
  }
  void clear() override { reached_.clear(); }

private:
  TensorOps& math_;
  std::vector<std::chrono::steady_clock::time_point> reached_;
};

}  // namespace

std::unique_ptr<WorkMarks> make_host_marks(TensorOps& math) {
  return std::make_unique<HostMarks>(math);
}

}  // namespace longhaul::nn
