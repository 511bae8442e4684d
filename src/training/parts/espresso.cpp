#include "training/parts/espresso.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "plan/parts/set_size.hpp"
#include "scenario/training/read_train.hpp"
#include "training/model_layout.hpp"

namespace longhaul::training {
namespace {

/// Before each piece of a payload.
using PieceLength = std::uint32_t;

GradientCompression of_piece(GradientCompression sparse, CompressMethod method) {
  sparse.method = method;
  return sparse;
}

/// Pieces of one part, each with a method of its own.
class PiecesMethod final : public PartMethod {
public:
  PiecesMethod(const std::vector<PartPiece>& pieces, const GradientCompression& sparse,
               const PartPlace& place, const StepSettings& step)
      : accounts_{place.accounts} {
    for (const PartPiece& piece : pieces) {
      PartPlace own = place;
      own.numbers = piece.numbers;
      own.tensors.clear();
      pieces_.push_back({piece, make_part_method(of_piece(sparse, piece.method), own, step)});
      if (is_sparse(piece.method)) residual_.resize(to_size(place.numbers));
    }
  }

  std::vector<std::byte> own_set(int iteration, std::span<const float> gradient) override {
    compress::require_finite(gradient);  // by its place in the part
    std::vector<std::byte> joined;
    for (Piece& piece : pieces_)
      append(joined, piece.method->own_set(iteration, piece.of(gradient)));
    join_residuals();
    if (accounts_) join(seen_, &PartMethod::gradients_seen);
    return joined;
  }
  std::vector<std::byte> site_set(int iteration, std::span<const SetPayload> sets) override {
    const std::vector<std::vector<SetPayload>> of_pieces = cut(sets);
    std::vector<std::byte> joined;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      append(joined, pieces_[i].method->site_set(iteration, of_pieces[i]));
    return joined;
  }
  void merge(int iteration, std::span<const SetPayload> sets) override {
    const std::vector<std::vector<SetPayload>> of_pieces = cut(sets);
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      pieces_[i].method->merge(iteration, of_pieces[i]);
    if (accounts_) join(merged_, &PartMethod::sums_seen);
  }
  void step(int iteration, std::span<float> weights) override {
    for (Piece& piece : pieces_) piece.method->step(iteration, piece.of(weights));
  }
  [[nodiscard]] CatchUp catch_up() const override {
    std::vector<CatchUp> of_pieces;
    for (const Piece& piece : pieces_) of_pieces.push_back(piece.method->catch_up());
    if (std::ranges::none_of(of_pieces, [](const CatchUp& each) { return bool{each}; })) return {};
    return [this, of_pieces = std::move(of_pieces)](std::span<float> weights) {
      for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (of_pieces[i]) of_pieces[i](pieces_[i].of(weights));
    };
  }
  void finish() override {
    for (Piece& piece : pieces_) piece.method->finish();
    join_residuals();
  }
  void save(StateWriter& to) const override {
    for (const Piece& piece : pieces_) piece.method->save(to);
  }
  void load(StateReader& from) override {
    for (Piece& piece : pieces_) piece.method->load(from);
    join_residuals();
    join(seen_, &PartMethod::gradients_seen);
    join(merged_, &PartMethod::sums_seen);
  }
  std::size_t largest_set() const override {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces_) bytes += sizeof(PieceLength) + piece.method->largest_set();
    return bytes;
  }
  std::span<const float> residual() const override { return residual_; }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }

private:
  struct Piece {
    PartPiece place;
    std::unique_ptr<PartMethod> method;

    template <typename Number>
    [[nodiscard]] std::span<Number> of(std::span<Number> part) const {
      return part.subspan(to_size(place.first), to_size(place.numbers));
    }
  };
  static void append(std::vector<std::byte>& joined, std::span<const std::byte> payload) {
    const auto length = static_cast<PieceLength>(payload.size());
    const std::span<const std::byte> bytes = std::as_bytes(std::span{&length, 1});
    joined.insert(joined.end(), bytes.begin(), bytes.end());
    joined.insert(joined.end(), payload.begin(), payload.end());
  }
  /// Of each piece all of its sets.
  [[nodiscard]] std::vector<std::vector<SetPayload>> cut(std::span<const SetPayload> sets) const {
    std::vector<std::vector<SetPayload>> of_pieces(pieces_.size());
    for (const SetPayload& set : sets) {
      std::span<const std::byte> rest = set.payload;
      for (std::vector<SetPayload>& each : of_pieces)
        each.push_back({set.source, next_of(rest, set.source)});
      if (!rest.empty())
        fail(
            "{}: a set of {} bytes goes on for {} after its last piece (of {}). Look at who sent "
            "it.",
            set.source, set.payload.size(), rest.size(), pieces_.size());
    }
    return of_pieces;
  }
  /// The first piece of `rest`, which is taken off.
  static std::span<const std::byte> next_of(std::span<const std::byte>& rest,
                                            const std::string& source) {
    PieceLength length = 0;
    if (rest.size() >= sizeof length) std::memcpy(&length, rest.data(), sizeof length);
    if (rest.size() < sizeof length || rest.size() - sizeof length < length)
      fail("{}: a piece of {} bytes is cut short ({} are left). Look at who sent it.", source,
           length, rest.size());
    const std::span<const std::byte> piece = rest.subspan(sizeof length, length);
    rest = rest.subspan(sizeof length + length);
    return piece;
  }
  void join_residuals() {
    for (const Piece& piece : pieces_)  // of a dense one there is nothing, and so without feedback
      if (const std::span<const float> own = piece.method->residual(); !own.empty())
        std::ranges::copy(own, residual_.begin() + piece.place.first);
  }
  /// Nothing where one piece has nothing.
  void join(std::vector<double>& sums, std::span<const double> (PartMethod::*of)() const) const {
    sums.clear();
    for (const Piece& piece : pieces_) {
      const std::span<const double> own = (piece.method.get()->*of)();
      if (own.empty()) return sums.clear();
      sums.insert(sums.end(), own.begin(), own.end());
    }
  }

  std::vector<Piece> pieces_;
  bool accounts_;
  std::vector<float> residual_;  ///< of all numbers of the part; empty where all pieces are dense
  std::vector<double> seen_, merged_;
};

}  // namespace

CompressMethod espresso_choice(const GradientCompression& sparse, std::int64_t numbers, int sets,
                               const EspressoCosts& costs) {
  const double bytes = 4 * static_cast<double>(numbers);
  const auto sent = [&](double size) { return size / costs.bytes_per_second; };
  const double sparse_bytes = static_cast<double>(plan::set_size(sparse, numbers, sets).count());
  const std::pair<double, CompressMethod> choices[] = {
      {sent(bytes), CompressMethod::none},
      {sent(bytes / 2) + costs.start_seconds + bytes / costs.halves_per_second,
       CompressMethod::fp16},
      {sent(sparse_bytes) + costs.choice_start_seconds + bytes / costs.choices_per_second,
       sparse.method}};
  return std::ranges::min_element(choices, {}, &std::pair<double, CompressMethod>::first)->second;
}

PartChoice choose_for_part(const nn::ParameterPlaces& tensors, const GradientCompression& sparse,
                           int sets, double scale, const EspressoCosts& costs) {
  PartChoice choice;
  std::int64_t bytes = 0, all = 0, end = 0;
  for (std::size_t i = 0; i < tensors.places.size(); ++i) {
    const bool is_last = i + 1 == tensors.places.size();
    const auto past =
        static_cast<std::int64_t>(is_last ? tensors.numbers : tensors.places[i + 1].first);
    const std::int64_t numbers =
        std::max<std::int64_t>(1, std::llround(scale * static_cast<double>(past - end)));
    const CompressMethod method = espresso_choice(sparse, numbers, sets, costs);
    bytes += plan::set_size(of_piece(sparse, method), numbers, sets).count();
    all += numbers;
    if (!choice.pieces.empty() && choice.pieces.back().method == method && !is_sparse(method))
      choice.pieces.back().numbers += past - end;
    else
      choice.pieces.push_back({end, past - end, method});
    end = past;
  }
  if (all > 0) choice.bits = 8 * static_cast<double>(bytes) / static_cast<double>(all);
  return choice;
}

std::vector<PartChoice> choose_for_parts(const Schedule& schedule, const Scenario& scenario) {
  constexpr std::int64_t kMany = 1 << 30;  // numbers, so that rounding does not matter
  const double scale =
      static_cast<double>(scenario::nominal_size(scenario, Bytes{kMany}).count()) / kMany;
  const nn::ModelShape shape = model_shape(scenario);
  const std::vector<nn::LayerRange> layers = layers_of_stages(schedule, scenario);
  std::map<int, PartChoice> by_number;
  for (const DeviceId device : schedule.device_ids())
    for (const plan::TrainedPart& part : plan::trained_parts(schedule, ReplicaId{0}, device))
      by_number[part.number] = choose_for_part(
          tensors_of_part(shape, layers[at(schedule.stage_of(part.chunk))], part.part, part.parts),
          scenario.train.compress, scenario.parallel.replicas, scale);
  std::vector<PartChoice> all;
  for (auto& [number, choice] : by_number) all.push_back(std::move(choice));
  return all;
}

std::unique_ptr<PartMethod> make_espresso(const std::vector<PartPiece>& pieces,
                                          const GradientCompression& sparse, const PartPlace& place,
                                          const StepSettings& step) {
  std::int64_t end = 0;
  for (const PartPiece& piece : pieces) {
    if (piece.first != end || piece.numbers < 1)
      fail(
          "a piece has {} numbers from {} on (the one before ends at {}). Let pieces cover the "
          "part.",
          piece.numbers, piece.first, end);
    end += piece.numbers;
  }
  if (end != place.numbers)
    fail("pieces end at {} (the part has {} numbers). Let pieces cover the part.", end,
         place.numbers);
  if (pieces.size() == 1)
    return make_part_method(of_piece(sparse, pieces.front().method), place, step);
  return std::make_unique<PiecesMethod>(pieces, sparse, place, step);
}

}  // namespace longhaul::training
