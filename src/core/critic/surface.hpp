// The critic's prediction in one context as a function of actions with several columns, and its minimum.
//
// The prediction is averaged over a window around the action. Averaging over a box rounds the corner of a hinge, so to
// the second moment it only makes corners blunter: corner^2 + 12 sum_k s_k^2 h_k^2. The minimum is sought from many
// points at once, one per lane, by steps that depend on the signs of the slopes only (Rprop, Riedmiller and Braun
// 1993).
#pragma once

#include "critic/early_surface.hpp"
#include "critic/ensemble.hpp"
#include "numerics/sorting.hpp"

namespace manul::MANUL_SIMD {

// The part of the space of actions that is searched: each column from `low` to `high`. Fixed columns keep the values of
// the starting points.
struct SearchBox {
  float low[most_action_columns], high[most_action_columns];
  bool fixed[most_action_columns];
};

// Where `descend` may move points.
struct WholeBox {
  static constexpr bool is_whole = true;
  bool operator()(float*, std::size_t) const { return true; }
};

class Surface {
 public:
  explicit Surface(std::size_t columns)
      : columns_(columns), slopes_(most_hinges * columns), shapes_(columns * shape_size), linear_(columns),
        early_(columns) {}

  // What is mixed into the predictions of the networks.
  EarlySurface& early() { return early_; }

  // Takes the prediction of an ensemble that looks at a context. Hinges that are zero or linear in the whole box, even
  // if averaged over windows of half-width `widest`, are not kept.
  void look(const Ensemble& ensemble, const SearchBox& box, float widest) {
    size_ = 0, constant_ = 0.0f;
    for (std::size_t k = 0; k < columns_; ++k) linear_[k] = 0.0f;
    for (std::size_t i = 0; i < shapes_.size(); ++i) shapes_[i] = 0.0f;
    ensemble.visit([&](const Network& network, const float* q, float share) {
      for (std::size_t k = 0; k < columns_; ++k)
        for (std::size_t i = 0; i < knots; ++i) shapes_[k * shape_size + i] += share * network.shape(k)[i];
      for (std::size_t j = 0; j < hinges; ++j) add(network, j, q[j], share * network.outputs()[j], box, widest);
    });
  }

  // Averages over windows of half-width `h` from now on; null: over none.
  void smooth(const float* h) {
    for (std::size_t k = 0; k < columns_; ++k) reach_[k] = h == nullptr ? 0.0f : h[k] * inverse_root_three;
    for (std::size_t j = 0; j < size_; ++j) {
      float square = corners_[j] * corners_[j];
      for (std::size_t k = 0; h != nullptr && k < columns_; ++k) {
        const float moved = slopes_[j * columns_ + k] * h[k];
        square += 12.0f * moved * moved;
      }
      rounded_[j] = __builtin_sqrtf(square);
      bends_[j] = 0.25f / rounded_[j];
    }
  }

  // The predictions for a group of points and, unless null, their slopes.
  void evaluate(const float* actions, float* losses, float* slopes) const {
    switch (columns_) {  // a known number of columns stays in registers
      case 1: add_hinges<1>(actions, losses, slopes); break;
      case 2: add_hinges<2>(actions, losses, slopes); break;
      case 3: add_hinges<3>(actions, losses, slopes); break;
      case 4: add_hinges<4>(actions, losses, slopes); break;
      case 5: add_hinges<5>(actions, losses, slopes); break;
      case 6: add_hinges<6>(actions, losses, slopes); break;
      case 7: add_hinges<7>(actions, losses, slopes); break;
      case 8: add_hinges<8>(actions, losses, slopes); break;
      default: add_hinges<0>(actions, losses, slopes);
    }
    for (std::size_t k = 0; k < columns_; ++k)
      for (std::size_t i = 0; i < points; i += wide)
        add_shape(k, actions + k * points + i, losses + i, slopes == nullptr ? nullptr : slopes + k * points + i);
    early_.mix(actions, losses, slopes);
  }

  // Moves a group of points towards lower predictions, each column by at most `first` in the first of `steps` steps,
  // and returns the lowest prediction met, whose action is put into `best`. `project(actions, i)` moves point i into
  // the space that is searched; if it returns false, the point goes back, and its next step is shorter.
  template <class Project = WholeBox>
  float descend(float* actions, const SearchBox& box, float first, std::size_t steps, float* best,
                const Project& project = {}) const {
    float lengths[most_action_columns * points], before[most_action_columns * points] = {};
    for (std::size_t i = 0; i < columns_ * points; ++i) lengths[i] = first;
    float lowest = __builtin_inff();
    for (std::size_t k = 0; k < columns_; ++k) best[k] = actions[k * points];  // if no prediction is a number
    for (std::size_t step = 0;; ++step) {
      float losses[points], slopes[most_action_columns * points];
      evaluate(actions, losses, step < steps ? slopes : nullptr);
      for (std::size_t i = 0; i < points; ++i) {
        if (!(losses[i] < lowest)) continue;
        lowest = losses[i];
        for (std::size_t k = 0; k < columns_; ++k) best[k] = actions[k * points + i];
      }
      if (step == steps) return lowest;
      if constexpr (Project::is_whole) {
        move(box, slopes, before, lengths, actions);
      } else {
        float last[most_action_columns * points];
        for (std::size_t i = 0; i < columns_ * points; ++i) last[i] = actions[i];
        move(box, slopes, before, lengths, actions);
        for (std::size_t i = 0; i < points; ++i) {
          if (project(actions, i)) continue;
          for (std::size_t at = i; at < columns_ * points; at += points) actions[at] = last[at], lengths[at] *= shorter;
        }
      }
    }
  }

 private:
  static constexpr std::size_t most_hinges = Ensemble::members * hinges;
  static constexpr float inverse_root_three = 0.57735026f;
  static constexpr float longer = 1.2f, shorter = 0.5f;  // factors of the next step: the same direction, or back

  void add(const Network& network, std::size_t j, float q, float output, const SearchBox& box, float widest) {
    float least = q, most = q, square = network.corner() * network.corner();
    float* own = slopes_.data() + size_ * columns_;
    for (std::size_t k = 0; k < columns_; ++k) {
      own[k] = network.slopes(k)[j];
      const float one = own[k] * root_twelve * (box.low[k] - 0.5f), other = own[k] * root_twelve * (box.high[k] - 0.5f);
      least += one < other ? one : other;
      most += one < other ? other : one;
      if (!box.fixed[k]) square += 12.0f * own[k] * own[k] * widest * widest;
    }
    const float corner = __builtin_sqrtf(square);
    if (most <= -corner) return;
    if (least >= corner) {
      constant_ += output * q;
      for (std::size_t k = 0; k < columns_; ++k) linear_[k] += output * own[k];
      return;
    }
    positions_[size_] = q, outputs_[size_] = output, corners_[size_] = network.corner();
    ++size_;
  }

  template <std::size_t known>
  void add_hinges(const float* actions, float* losses, float* slopes) const {
    if (slopes == nullptr)
      add_hinges<known, false>(actions, losses, slopes);
    else
      add_hinges<known, true>(actions, losses, slopes);
  }

  // Sets the losses and slopes to those of the hinges; `known` is the number of columns, or 0 if it is another one.
  template <std::size_t known, bool with_slopes>
  void add_hinges(const float* actions, float* losses, float* slopes) const {
    const std::size_t columns = known > 0 ? known : columns_;
    for (std::size_t i = 0; i < points; i += wide) {
      Lanes v[known > 0 ? known : most_action_columns], slope[known > 0 ? known : most_action_columns];
      Lanes total = Lanes{} + constant_;
      for (std::size_t k = 0; k < columns; ++k) {
        v[k] = root_twelve * (load<Lanes>(actions + k * points + i) - 0.5f);
        slope[k] = Lanes{} + linear_.data()[k];
        total += linear_.data()[k] * v[k];
      }
      for (std::size_t j = 0; j < size_; ++j) {
        const float* own = slopes_.data() + j * columns;
        Lanes u = Lanes{} + positions_[j];
        for (std::size_t k = 0; k < columns; ++k) u += own[k] * v[k];
        const Lanes above = largest(u - rounded_[j], Lanes{}), inside = largest(u + rounded_[j], Lanes{}) - above;
        total += outputs_[j] * (bends_[j] * (inside * inside) + above);  // as `ramp`
        if constexpr (with_slopes) {
          const Lanes bent = outputs_[j] * (2.0f * bends_[j] * inside);  // as `ramp_slope`
          for (std::size_t k = 0; k < columns; ++k) slope[k] += own[k] * bent;
        }
      }
      store(losses + i, total);
      if constexpr (with_slopes)
        for (std::size_t k = 0; k < columns; ++k) store(slopes + k * points + i, root_twelve * slope[k]);
    }
  }

  // The neighbouring knots of actions, and where the actions lie between them.
  struct Neighbours {
    Lanes low, high, share;

    Neighbours(const float* shape, Lanes actions) {
      using Whole = decltype(actions < actions);
      constexpr auto last = static_cast<float>(knots - 1);
      const Lanes place = last * (actions > 0.0f ? (actions < 1.0f ? actions : Lanes{} + 1.0f) : Lanes{});
      const Whole knot = __builtin_convertvector(place < last ? place : Lanes{} + (last - 1.0f), Whole);
      share = place - __builtin_convertvector(knot, Lanes);
      for (std::size_t i = 0; i < wide; ++i) {
        low[i] = shape[knot[i]];
        high[i] = shape[knot[i] + 1];
      }
    }

    Lanes value() const { return low + share * (high - low); }
  };

  void add_shape(std::size_t k, const float* actions, float* losses, float* slopes) const {
    const float* shape = shapes_.data() + k * shape_size;
    const Neighbours below(shape, load<Lanes>(actions) - reach_[k]), above(shape, load<Lanes>(actions) + reach_[k]);
    store(losses, load<Lanes>(losses) + 0.5f * (below.value() + above.value()));
    if (slopes == nullptr) return;
    const Lanes rise = below.high - below.low + above.high - above.low;
    store(slopes, load<Lanes>(slopes) + 0.5f * static_cast<float>(knots - 1) * rise);
  }

  void move(const SearchBox& box, const float* slopes, float* before, float* lengths, float* actions) const {
    for (std::size_t k = 0; k < columns_; ++k)
      if (!box.fixed[k]) move(k, box, slopes, before, lengths, actions);
  }

  static void move(std::size_t k, const SearchBox& box, const float* slopes, float* before, float* lengths,
                   float* actions) {
    for (std::size_t at = k * points; at < (k + 1) * points; ++at) {
      const float slope = slopes[at], turned = slope * before[at];
      lengths[at] *= turned > 0.0f ? longer : turned < 0.0f ? shorter : 1.0f;
      const float moved = actions[at] - (slope > 0.0f ? lengths[at] : slope < 0.0f ? -lengths[at] : 0.0f);
      actions[at] = moved < box.low[k] ? box.low[k] : moved > box.high[k] ? box.high[k] : moved;
      before[at] = slope;
    }
  }

  std::size_t columns_, size_ = 0;
  Buffer<float> slopes_, shapes_, linear_;
  EarlySurface early_;
  float constant_ = 0.0f;
  float positions_[most_hinges], outputs_[most_hinges], corners_[most_hinges];
  float rounded_[most_hinges], bends_[most_hinges];
  float reach_[most_action_columns] = {};
};

}  // namespace manul::MANUL_SIMD
