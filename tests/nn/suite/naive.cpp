#include "naive.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::naive {

namespace {

std::size_t index(int row, int width, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(column);
}

int rows_of(const Numbers& numbers, int width) { return static_cast<int>(numbers.size()) / width; }

double sigmoid(double number) { return 1 / (1 + std::exp(-number)); }

}  // namespace

Numbers gemm(const nn::Gemm& shape, const Numbers& a, const Numbers& b, const Numbers& c) {
  Numbers product(index(shape.m, shape.n, 0));
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      double sum = c.empty() ? 0 : c[index(row, shape.n, column)];
      for (int i = 0; i < shape.k; ++i) {
        sum += a[shape.transpose_a ? index(i, shape.m, row) : index(row, shape.k, i)] *
               b[shape.transpose_b ? index(column, shape.k, i) : index(i, shape.n, column)];
      }
      product[index(row, shape.n, column)] = sum;
    }
  }
  return product;
}

Numbers inverse_rms(const Numbers& x, int width) {
  Numbers inverse;
  for (int row = 0; row < rows_of(x, width); ++row) {
    double sum = 0;
    for (int i = 0; i < width; ++i) sum += std::pow(x[index(row, width, i)], 2);
    inverse.push_back(1 / std::sqrt(sum / width + kNormEpsilon));
  }
  return inverse;
}

Numbers rms_norm(const Numbers& x, const Numbers& weight, int width) {
  const Numbers inverse = inverse_rms(x, width);
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto columns = static_cast<std::size_t>(width);
    y[i] = x[i] * inverse[i / columns] * weight[i % columns];
  }
  return y;
}

NormGradients rms_norm_gradients(const Numbers& x, const Numbers& weight, const Numbers& dy,
                                 int width) {
  const Numbers inverse = inverse_rms(x, width);
  NormGradients gradients{Numbers(x.size()), Numbers(weight.size())};
  for (int row = 0; row < rows_of(x, width); ++row) {
    const double r = inverse[static_cast<std::size_t>(row)];
    for (int i = 0; i < width; ++i) {
      const auto column = static_cast<std::size_t>(i);
      gradients.dweight[column] += dy[index(row, width, i)] * x[index(row, width, i)] * r;
      double sum = 0;  // d y_j / d x_i = w_j (r [i == j] - r^3 x_i x_j / width)
      for (int j = 0; j < width; ++j) {
        const double same = i == j ? r : 0;
        const double other = r * r * r * x[index(row, width, i)] * x[index(row, width, j)] / width;
        sum += dy[index(row, width, j)] * weight[static_cast<std::size_t>(j)] * (same - other);
      }
      gradients.dx[index(row, width, i)] = sum;
    }
  }
  return gradients;
}

Numbers swiglu(const Numbers& gate_up, int width) {
  Numbers y;
  for (int row = 0; row < rows_of(gate_up, 2 * width); ++row) {
    for (int i = 0; i < width; ++i) {
      const double gate = gate_up[index(row, 2 * width, i)];
      y.push_back(gate * sigmoid(gate) * gate_up[index(row, 2 * width, width + i)]);
    }
  }
  return y;
}

Numbers swiglu_gradient(const Numbers& gate_up, const Numbers& dy, int width) {
  Numbers gradient(gate_up.size());
  for (int row = 0; row < rows_of(dy, width); ++row) {
    for (int i = 0; i < width; ++i) {
      const double gate = gate_up[index(row, 2 * width, i)], open = sigmoid(gate);
      const double up = gate_up[index(row, 2 * width, width + i)];
      const double slope = open + gate * open * (1 - open);
      gradient[index(row, 2 * width, i)] = dy[index(row, width, i)] * up * slope;
      gradient[index(row, 2 * width, width + i)] = dy[index(row, width, i)] * gate * open;
    }
  }
  return gradient;
}

Numbers embed(const Tokens& tokens, const Numbers& table, int width) {
  Numbers y;
  for (const int token : tokens) {
    for (int i = 0; i < width; ++i) y.push_back(table[index(token, width, i)]);
  }
  return y;
}

Numbers embed_gradient(const Tokens& tokens, const Numbers& dy, int width, int vocabulary) {
  Numbers gradient(index(vocabulary, width, 0));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (int i = 0; i < width; ++i) {
      gradient[index(tokens[t], width, i)] += dy[index(static_cast<int>(t), width, i)];
    }
  }
  return gradient;
}

Loss cross_entropy(const Tokens& targets, int vocabulary, const Numbers& logits) {
  Loss loss{0, Numbers(logits.size())};
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0) continue;
    const auto at = [&](int token) { return index(static_cast<int>(t), vocabulary, token); };
    double largest = logits[at(0)], sum = 0;
    for (int i = 0; i < vocabulary; ++i) largest = std::max(largest, logits[at(i)]);
    for (int i = 0; i < vocabulary; ++i) sum += std::exp(logits[at(i)] - largest);
    loss.sum += largest + std::log(sum) - logits[at(targets[t])];
    for (int i = 0; i < vocabulary; ++i) {
      const double probability = std::exp(logits[at(i)] - largest) / sum;
      loss.gradient[at(i)] = probability - (i == targets[t] ? 1 : 0);
    }
  }
  return loss;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Numbers differences(const std::function<double(const Numbers&)>& of, Numbers at) {
  constexpr double kStep = 1e-5;
  Numbers slope(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double here = at[i];
    at[i] = here + kStep;
    const double above = of(at);
    at[i] = here - kStep;
    slope[i] = (above - of(at)) / (2 * kStep);
    at[i] = here;
  }
  return slope;
}

double distance(const Numbers& got, const Numbers& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double apart = 0;
  for (std::size_t i = 0; i < got.size(); ++i) apart += std::pow(got[i] - expected[i], 2);
  const double length = dot(expected, expected);
  return std::sqrt(length > 0 ? apart / length : apart);
}

}  // namespace longhaul::naive
