// What a GPU ran, by CUPTI or by its emulator.
#include "cuda/task_trace.hpp"

#include <algorithm>
#include <memory>

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TaskTraceTest : public OnDevice {
protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    try {
      trace_ = std::make_unique<cuda::TaskTrace>();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// Tasks that lie in `range`, by their starts.
  static std::vector<cuda::TaskActivity> tasks_in(const cuda::ActivityRecords& records,
                                                  std::uint64_t range) {
    std::vector<cuda::TaskActivity> tasks;
    for (const cuda::TaskActivity& task : records.tasks)
      if (std::ranges::any_of(records.launches, [&](const cuda::LaunchInRange& each) {
            return each.range == range && each.launch == task.launch;
          }))
        tasks.push_back(task);
    std::ranges::sort(tasks, {}, &cuda::TaskActivity::start_ns);
    return tasks;
  }

  std::unique_ptr<cuda::TaskTrace> trace_;
  const std::uint64_t microseconds_ = 1000;
};

TEST_F(TaskTraceTest, TellsTasksByTheRangesOfTheirCalls) {
  const cuda::Stream stream;
  const cuda::DeviceBuffer memory{64};
  trace_->start();
  const std::uint64_t kernels = trace_->begin_range();
  cuda::spin_for(200 * microseconds_, stream.get());
  cuda::spin_for(50 * microseconds_, stream.get());
  trace_->end_range();
  cuda::spin_for(1, stream.get());  // in no range
  const std::uint64_t fill = trace_->begin_range();
  cuda::check(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream.get()));
  cuda::check(cudaMemcpyAsync(memory.data(), memory.data() + 32, 32, cudaMemcpyDeviceToDevice,
                              stream.get()));
  trace_->end_range();
  const cuda::ActivityRecords records = trace_->stop();

  EXPECT_EQ(records.dropped, 0U);
  EXPECT_EQ(records.unread_buffers, 0U);
  EXPECT_EQ(records.tasks.size(), 5U);
  const auto spins = tasks_in(records, kernels);
  ASSERT_EQ(spins.size(), 2U);
  EXPECT_GE(spins[0].end_ns - spins[0].start_ns, 200'000);
  EXPECT_GE(spins[1].end_ns - spins[1].start_ns, 50'000);
  EXPECT_GE(spins[1].start_ns, spins[0].end_ns);
  EXPECT_EQ(spins[0].name, spins[1].name);
  EXPECT_THAT(spins[0].name, HasSubstr("_Z"));
  std::vector<std::string> names;
  for (const cuda::TaskActivity& task : tasks_in(records, fill)) names.push_back(task.name);
  EXPECT_THAT(names, ElementsAre("memset", "memcpy DtoD"));
}

TEST_F(TaskTraceTest, RecordsBetweenStartAndStopAlone) {
  const cuda::Stream stream;
  for (int round = 0; round < 3; ++round) {
    cuda::spin_for(1, stream.get());
    stream.wait_on_host();
    trace_->start();
    const std::uint64_t range = trace_->begin_range();
    cuda::spin_for(1, stream.get());
    trace_->end_range();
    const cuda::ActivityRecords records = trace_->stop();
    EXPECT_EQ(records.tasks.size(), 1U);
    EXPECT_EQ(tasks_in(records, range).size(), 1U);
  }
  trace_->start();
  EXPECT_THAT(trace_->stop().tasks, IsEmpty());
}

TEST_F(TaskTraceTest, HoldsMoreThanABuffer) {
  const cuda::Stream stream;
  trace_->start();
  std::vector<std::uint64_t> ranges;
  for (int i = 0; i < 300; ++i) {
    ranges.push_back(trace_->begin_range());
    cuda::spin_for(1, stream.get());
    trace_->end_range();
  }
  const cuda::ActivityRecords records = trace_->stop();
  EXPECT_EQ(records.tasks.size(), 300U);
  for (const std::uint64_t range : ranges) EXPECT_EQ(tasks_in(records, range).size(), 1U);
}

}  // namespace
}  // namespace longhaul::testing
