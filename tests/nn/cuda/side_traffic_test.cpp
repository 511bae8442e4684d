#include "nn/cuda/side_traffic.hpp"

#include <thread>

#include "base/error.hpp"
#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/tensor_ops_fixture.hpp"

/// Work on several streams of one device: when it is done, and that it is right.
namespace longhaul::nn {
namespace {

using CudaBeside = CudaMathTest;

TEST_F(CudaBeside, AnAddOnFewBlocksIsAnAdd) {
  for (const std::size_t count : {1U, 7U, 8U, 4096U, 70'003U})
    for (const NumberType type : {NumberType::bf16, NumberType::f32}) {
      SCOPED_TRACE(count);
      const OnBoth a = random(count, type), b = random(count, type);
      const Tensor all{gpu(), count, type}, few{gpu(), count, type};
      gpu().add(a.gpu, b.gpu, all);
      add_on_few(gpu().stream(), 3, a.gpu, b.gpu, few);
      EXPECT_EQ(few.read(), all.read());
      // Views that begin anywhere, and a sum in the place of an operand.
      add_on_few(gpu().stream(), 2, a.gpu.view().part(count / 2, count - count / 2),
                 b.gpu.view().part(count / 2, count - count / 2),
                 a.gpu.view().part(count / 2, count - count / 2));
      const naive::Numbers sum = all.read(), in_place = a.gpu.read();
      for (std::size_t i = count / 2; i < count; ++i) ASSERT_EQ(in_place[i], sum[i]) << i;
    }
}

TEST_F(CudaBeside, MarksOfTwoStreamsAreOnOneClock) {
  CudaTensorOps urgent{0, {.urgency = cuda::Urgency::high}};
  const auto first = make_work_marks(gpu()), second = make_work_marks(urgent);
  const auto work = [](TensorOps& math) {
    const Tensor some{math, 100'000, NumberType::f32};
    math.fill_random(1, 1, some);
  };
  for (int time = 0; time < 2; ++time) {
    first->clear();
    second->clear();
    first->mark();
    work(gpu());
    first->mark();
    first->wait_for(1);
    std::thread{[&] {
      second->enter();
      second->mark();
      work(urgent);
      second->mark();
    }}.join();
    EXPECT_EQ(second->count(), 2U);
    const std::vector<double> mine = first->seconds_since(*first),
                              other = second->seconds_since(*first);
    ASSERT_EQ(mine.size(), 2U);
    EXPECT_EQ(mine[0], 0);
    EXPECT_GE(mine[1], mine[0]);
    EXPECT_GE(other.at(0), mine[1]);
    EXPECT_GE(other.at(1), other[0]);
  }
}

TEST_F(CudaBeside, TrafficArrives) {
  constexpr std::size_t kBytes = 10'000;
  for (const TrafficKind kind : {TrafficKind::from_pinned, TrafficKind::from_pageable}) {
    const auto traffic = make_side_traffic(gpu(), kind, kBytes);
    EXPECT_EQ(traffic->arrived().at(77), std::byte{0});
    traffic->pass();
    const std::vector<std::byte> bytes = traffic->arrived();
    for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(bytes[i], std::byte(i % 251)) << i;
  }
  const auto copy = make_side_traffic(gpu(), TrafficKind::copy, kBytes);
  const auto sum = make_side_traffic(gpu(), TrafficKind::sum, kBytes);
  copy->pass();
  sum->pass();
  EXPECT_EQ(sum->arrived(), copy->arrived());  // onto zeros
  sum->pass();
  EXPECT_NE(sum->arrived(), copy->arrived());
}

TEST_F(CudaBeside, ACpuHasMarksAndNoTraffic) {
  const auto marks = make_work_marks(cpu());
  for (int i = 0; i < 3; ++i) marks->mark();
  const std::vector<double> at = marks->seconds_since(*marks);
  EXPECT_EQ(at.at(0), 0);
  EXPECT_LE(at.at(1), at.at(2));
  EXPECT_THROW(static_cast<void>(make_side_traffic(cpu(), TrafficKind::copy, 8)), Error);
}

}  // namespace
}  // namespace longhaul::nn
