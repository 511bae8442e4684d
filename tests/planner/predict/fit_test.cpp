#include "planner/predict/fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/predict/rows.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;
using profile::TrainingRow;
using test::selene;
using test::training_row;

/// Rows whose measured times are the model's, with these parameters.
std::vector<TrainingRow> rows_measured_with(const ParameterValues& values) {
  std::vector<TrainingRow> rows;
  for (const int tensor : {1, 2, 4, 8})
    for (const int data : {1, 16})
      for (const int pipeline : {1, 4}) {
        TrainingRow row = training_row(tensor, data, pipeline, 4);
        row.row = std::to_string(rows.size());
        RowPlan plan{profile::row_graph(row, selene())};
        row.measured = plan.run(values).iteration;
        rows.push_back(row);
      }
  return rows;
}

TEST(Fit, FindsTheParametersThatMadeTheRows) {
  ParameterValues truth = selene().parameters;
  truth[Parameter::matmul_rate] = 0.85;
  truth[Parameter::memory_rate] = 0.6;
  truth[Parameter::alpha_data] = 0.4;
  const Fit fit = fit_parameters(rows_measured_with(truth));
  ASSERT_EQ(fit.machines.size(), 1U);
  const MachineFit& machine = fit.machines.front();
  EXPECT_EQ(machine.rows, 16);
  EXPECT_EQ(machine.groups, 16);
  EXPECT_GT(machine.unfitted.mean, 0.05);
  EXPECT_LT(machine.fitted.mean, 0.01);
  EXPECT_LT(machine.left_out.mean, 0.02);
  EXPECT_NEAR(machine.calibration.values[Parameter::matmul_rate], 0.85, 0.05);
  EXPECT_FALSE(machine.calibration.is_fitted(Parameter::flash_forward_rate));
  EXPECT_LE(machine.calibration.low, 1);
  EXPECT_GE(machine.calibration.high, 1);
}

TEST(Fit, ARowFarOffPullsLittle) {
  std::vector<TrainingRow> rows = rows_measured_with(selene().parameters);
  rows[3].measured = *rows[3].measured * 2;
  const MachineFit machine = fit_parameters(rows).machines.front();
  EXPECT_LT(machine.fitted.median, 0.01);
  EXPECT_NEAR(machine.fitted.largest, 0.5, 0.05);
}

TEST(Fit, NeedsMeasuredTimes) {
  std::vector<TrainingRow> rows = rows_measured_with(selene().parameters);
  rows[5].measured.reset();
  EXPECT_THROW((void)fit_parameters(rows), Error);
}

TEST(Fit, IntervalsAreTheShortestWithNineTenths) {
  std::vector<double> ratios{2.0};
  for (int i = 0; i < 9; ++i) ratios.push_back(0.96 + 0.01 * i);
  const RatioInterval interval = shortest_interval(ratios);
  EXPECT_DOUBLE_EQ(interval.low, 0.96);
  EXPECT_DOUBLE_EQ(interval.high, 1.04);
  EXPECT_EQ(shortest_interval({1.1}).low, 1);
}

TEST(Predict, ReadsNoMeasuredTime) {
  std::vector<TrainingRow> rows = rows_measured_with(selene().parameters);
  const std::vector<RowPrediction> with = predict(rows, {});
  for (TrainingRow& row : rows) row.measured.reset();
  const std::vector<RowPrediction> without = predict(rows, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(with[i].iteration, without[i].iteration);
    EXPECT_LT(with[i].low, with[i].iteration);
    EXPECT_GT(with[i].high, with[i].iteration);
    EXPECT_GT(with[i].memory, Bytes{0});
    EXPECT_TRUE(with[i].fits);
  }
}

TEST(Predict, NamesAnUnknownMachine) {
  TrainingRow row = training_row(1, 1, 1, 1);
  row.machine = "selen";
  EXPECT_THROW((void)predict({row}, {}), Error);
}

}  // namespace
}  // namespace longhaul::planner
