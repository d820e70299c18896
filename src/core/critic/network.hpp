// One member of the critic: a small network for the loss of action a in context z.
//
//   f(z, a) = sum_k shape_k(a_k) + sum_j o_j ramp(q_j(z) + s_j v),   q(z) = U z + W ramp(T z),   v = sqrt(12) (a - 1/2)
//
// z is standardised and ends with a constant 1; the action has one or more columns a_k in [0, 1]. `shape_k` is linear
// between 17 knots: the part of the loss that depends on one column of the action only. The action enters only the last
// layer, so scoring many actions in one context is fast. A shallow network has no trunk (no T and W). In named contexts
// only the constant is dense; the columns of U and T that belong to features are in FeatureRows. Vectors run over
// units, so that sums over features and samples have the same order on every machine.
#pragma once

#include "critic/feature_rows.hpp"
#include "knobs/knob.hpp"

namespace manul::MANUL_SIMD {

// Units of the last layer and of the trunk, which fill whole vectors, and knots of `shape`.
constexpr std::size_t hinges = 32, trunk = 16, knots = 17;
constexpr std::size_t shape_size = 32;  // the knots of one shape and padding
constexpr std::size_t most_action_columns = most_columns;

// A standardised context.
struct StandardContext {
  const float* row;
  Entries features;  // none if contexts are rows
};

struct Batch {
  const float* rows;                           // 16 contexts, `stride` apart
  const FeatureBatch* features;                // null if contexts are rows
  float actions[batch * most_action_columns];  // one row per sample
  float loss[batch];
  std::size_t slots[batch];  // of the replay buffer
};

// Element (r, i) is data[r * row_step + i * column_step].
struct Left {
  const float* data;
  std::size_t row_step, column_step;
};

struct Right {
  const float* data;
  std::size_t row_step;
};

template <std::size_t rows>
void multiply_rows(Left left, Right right, std::size_t inner, std::size_t columns, float* out) {
  for (std::size_t c = 0; c < columns; c += wide) {
    Lanes total[rows] = {};
    for (std::size_t i = 0; i < inner; ++i) {
      const Lanes row = load<Lanes>(right.data + i * right.row_step + c);
      for (std::size_t r = 0; r < rows; ++r) total[r] += left.data[r * left.row_step + i * left.column_step] * row;
    }
    for (std::size_t r = 0; r < rows; ++r) store(out + r * columns + c, total[r]);
  }
}

// out = left right, with `rows` rows of `columns` numbers, a multiple of 16.
inline void multiply(Left left, Right right, std::size_t rows, std::size_t inner, std::size_t columns, float* out) {
  const auto from = [&](std::size_t r) { return Left{left.data + r * left.row_step, left.row_step, left.column_step}; };
  std::size_t r = 0;
  for (; r + 8 <= rows; r += 8) multiply_rows<8>(from(r), right, inner, columns, out + r * columns);
  for (; r + 4 <= rows; r += 4) multiply_rows<4>(from(r), right, inner, columns, out + r * columns);
  for (; r < rows; ++r) multiply_rows<1>(from(r), right, inner, columns, out + r * columns);
}

inline Lanes positive(Lanes u) { return u < Lanes{} ? Lanes{} : u; }

// A hinge whose corner is rounded by a parabola, `corner` to both sides. Sharp corners approximate a flat minimum
// badly, and blunt ones a cliff.
inline Lanes ramp(Lanes u, float corner) {
  const Lanes above = positive(u - corner), inside = positive(u + corner) - above;
  return (0.25f / corner) * (inside * inside) + above;
}

inline Lanes ramp_slope(Lanes u, float corner) {
  return (0.5f / corner) * (positive(u + corner) - positive(u - corner));
}

// The position of an action between two knots.
struct Between {
  std::size_t knot;
  float share;

  explicit Between(float action) {
    const float place = action * static_cast<float>(knots - 1);
    knot = !(place > 0.0f) ? 0 : place < static_cast<float>(knots - 1) ? static_cast<std::size_t>(place) : knots - 2;
    share = place - static_cast<float>(knot);
  }

  float value(const float* shape) const { return shape[knot] + share * (shape[knot + 1] - shape[knot]); }
};

// Actions of one column that are scored together, with the knots that they lie between.
struct ScoredActions {
  static constexpr std::size_t most = 64;

  const float* actions;
  std::size_t size;  // a multiple of 16
  float lowest, highest;
  std::int32_t knot[most];
  float share[most];

  ScoredActions(const float* all, std::size_t count) : actions(all), size(count), lowest(all[0]), highest(all[0]) {
    for (std::size_t i = 0; i < size; ++i) {
      const Between at(actions[i]);
      knot[i] = static_cast<std::int32_t>(at.knot), share[i] = at.share;
      lowest = actions[i] < lowest ? actions[i] : lowest, highest = actions[i] > highest ? actions[i] : highest;
    }
  }
};

constexpr float blunt = 1.0f, sharp = 0.1f;  // corners of ramps
constexpr float root_twelve = 3.4641016f;    // gives uniform actions variance 1

class Network {
 public:
  Network(std::size_t width, std::size_t features, std::size_t action_columns, std::size_t stride, bool deep,
          float corner)
      : width_(width), action_columns_(action_columns), stride_(stride), deep_(deep), corner_(corner),
        columns_(deep ? hinges + trunk : hinges), second_((width + 1) * columns_),
        slopes_(second_ + (deep ? trunk * hinges : 0)), outputs_(slopes_ + action_columns * hinges),
        shape_(outputs_ + hinges), size_(shape_ + action_columns * shape_size), weights_(3 * size_), gradient_(size_),
        before_(batch * columns_), delta_(batch * columns_), after_(batch * hinges), lift_(batch * hinges),
        trunk_after_(batch * trunk), trunk_delta_(batch * trunk), turned_(hinges * trunk),
        features_(features, columns_) {}

  // The weights, then the means and squares of gradients (Adam); each part is U and T side by side, W, s by
  // columns of the action, o, shapes.
  Buffer<float>& weights() { return weights_; }
  FeatureRows& features() { return features_; }
  const FeatureRows& features() const { return features_; }

  // Normal weights, scaled by the number of inputs of a unit: 0.25 is 1 / sqrt(trunk), 0.0884 is half of 1 /
  // sqrt(hinges), and 1.4 compensates for the variance that a ramp removes. Every fourth hinge starts six times as
  // steep, at the same positions and with the same range of outputs, so that cliffs are learned early.
  void initialise(std::uint64_t seed, std::uint64_t stream) {
    std::uint64_t next = 0;
    const float fan = 1.0f / __builtin_sqrtf(static_cast<float>(width_ + 1));
    for (std::size_t i = 0; i < second_; ++i) {
      const std::size_t column = i % columns_;
      const float hinge = (i / columns_ == width_ ? 0.5f : fan) * steep(column);
      weights_[i] = normal(seed, next, stream) * (column < hinges ? hinge : 1.4f * fan);
    }
    for (std::size_t i = second_; i < slopes_; ++i)
      weights_[i] = 0.25f * steep((i - second_) % hinges) * normal(seed, next, stream);
    const float spread = action_columns_ == 1 ? 1.0f : 1.2f / __builtin_sqrtf(static_cast<float>(action_columns_));
    for (std::size_t j = 0; j < hinges; ++j) {
      for (std::size_t k = 0; k < action_columns_; ++k)
        weights_[slopes_ + k * hinges + j] = spread * steep(j) * normal(seed, next, stream);
      weights_[outputs_ + j] = 0.0884f / steep(j) * normal(seed, next, stream);
    }
  }

  // Adds rows for the features of a named context that are new.
  void add_features(const ContextView& context, std::uint64_t seed, std::uint64_t stream) {
    const float fan = 1.0f / __builtin_sqrtf(static_cast<float>(context.size + 1));
    features_.grow(context, seed, stream, [=](std::size_t c) { return c < hinges ? fan * steep(c) : 1.4f * fan; });
  }

  // Computes q(z).
  void look(const StandardContext& input, float* q) const {
    float first[hinges + trunk], raised[trunk], lift[hinges];
    multiply({input.row, 0, 1}, {weights_.data(), columns_}, 1, width_ + 1, columns_, first);
    features_.add(input.features, first);
    for (std::size_t j = 0; j < hinges; ++j) q[j] = first[j];
    if (!deep_) return;
    for (std::size_t k = 0; k < trunk; k += wide) store(raised + k, ramp(load<Lanes>(first + hinges + k), blunt));
    multiply({raised, 0, 1}, {weights_.data() + second_, hinges}, 1, trunk, hinges, lift);
    for (std::size_t j = 0; j < hinges; ++j) q[j] += lift[j];
  }

  float corner() const { return corner_; }
  const float* slopes(std::size_t column) const { return weights_.data() + slopes_ + column * hinges; }
  const float* outputs() const { return weights_.data() + outputs_; }
  const float* shape(std::size_t column) const { return weights_.data() + shape_ + column * shape_size; }

  // Adds weight f(z, a) to `losses`. Hinges that are zero for all the actions are left out, which changes no bit.
  void score(const float* q, const ScoredActions& scored, float weight, float* losses) const {
    const float *slopes = this->slopes(0), *outputs = this->outputs(), *shape = this->shape(0);
    float peaks[hinges];
    const float first = root_twelve * (scored.lowest - 0.5f), last = root_twelve * (scored.highest - 0.5f);
    for (std::size_t j = 0; j < hinges; j += wide) {
      const Lanes at = load<Lanes>(q + j), slope = load<Lanes>(slopes + j);
      store(peaks + j, largest(at + slope * first, at + slope * last) + corner_);
    }
    std::size_t used[hinges], count = 0;
    for (std::size_t j = 0; j < hinges; ++j) {
      used[count] = j;
      count += !(peaks[j] <= 0.0f);
    }
    for (std::size_t i = 0; i < scored.size; i += wide) {
      const Lanes v = root_twelve * (load<Lanes>(scored.actions + i) - 0.5f);
      Lanes total = {};
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t j = used[k];
        total += outputs[j] * ramp(q[j] + slopes[j] * v, corner_);
      }
      store(losses + i, load<Lanes>(losses + i) + weight * total);
    }
    for (std::size_t i = 0; i < scored.size; ++i) {
      const float* at = shape + scored.knot[i];
      losses[i] += weight * (at[0] + scored.share[i] * (at[1] - at[0]));
    }
  }

  // One step on the mean squared error; `predicted` gets the predictions before the step. The rows of U and T that
  // belong to features are then multiplied by `keep` (weight decay).
  void step(const Batch& data, float rate, float keep, float* predicted) {
    forward(data, predicted);
    backward(data, predicted);
    float *weights = weights_.data(), *means = weights + size_, *squares = means + size_;
    for (std::size_t i = 0; i < size_; i += wide)
      adam(weights + i, means + i, squares + i, load<Lanes>(&gradient_[i]), rate);
    if (data.features != nullptr) features_.step(*data.features, delta_.data(), rate, keep);
    if (keep != 1.0f)
      for (std::size_t i = 0; i < width_ * columns_; ++i) weights_[i] *= keep;
  }

 private:
  void forward(const Batch& data, float* predicted) {
    multiply({data.rows, stride_, 1}, {weights_.data(), columns_}, batch, width_ + 1, columns_, before_.data());
    if (data.features != nullptr)
      for (std::size_t s = 0; s < batch; ++s) features_.add(data.features->sample(s), &before_[s * columns_]);
    if (deep_) {
      for (std::size_t s = 0; s < batch; ++s)
        for (std::size_t k = 0; k < trunk; k += wide)
          store(&trunk_after_[s * trunk + k], ramp(load<Lanes>(&before_[s * columns_ + hinges + k]), blunt));
      multiply({trunk_after_.data(), trunk, 1}, {weights_.data() + second_, hinges}, batch, trunk, hinges,
               lift_.data());
    }
    for (std::size_t s = 0; s < batch; ++s) predicted[s] = last_layer(s, data.actions + s * action_columns_);
  }

  float last_layer(std::size_t s, const float* action) {
    float *u = &before_[s * columns_], *after = &after_[s * hinges];
    for (std::size_t j = 0; j < hinges; j += wide) {
      Lanes moved = load<Lanes>(u + j) + load<Lanes>(&lift_[s * hinges + j]);
      for (std::size_t k = 0; k < action_columns_; ++k)
        moved += load<Lanes>(slopes(k) + j) * (root_twelve * (action[k] - 0.5f));
      store(u + j, moved);
      store(after + j, ramp(moved, corner_));
    }
    float total = dot(after, outputs(), hinges);
    for (std::size_t k = 0; k < action_columns_; ++k) total += Between(action[k]).value(shape(k));
    return total;
  }

  void backward(const Batch& data, const float* predicted) {
    for (std::size_t i = slopes_; i < size_; ++i) gradient_[i] = 0.0f;
    for (std::size_t s = 0; s < batch; ++s)
      last_layer_back(s, data.actions + s * action_columns_, (predicted[s] - data.loss[s]) / static_cast<float>(batch));
    if (deep_) trunk_back();
    multiply({data.rows, 1, stride_}, {delta_.data(), columns_}, width_ + 1, batch, columns_, gradient_.data());
  }

  void last_layer_back(std::size_t s, const float* action, float error) {
    float *slopes = &gradient_[slopes_], *outputs = &gradient_[outputs_];
    for (std::size_t j = 0; j < hinges; j += wide) {
      const Lanes bent = ramp_slope(load<Lanes>(&before_[s * columns_ + j]), corner_);
      const Lanes slope = error * load<Lanes>(&weights_[outputs_ + j]) * bent;
      store(&delta_[s * columns_ + j], slope);
      for (std::size_t k = 0; k < action_columns_; ++k) {
        float* row = slopes + k * hinges + j;
        store(row, load<Lanes>(row) + root_twelve * (action[k] - 0.5f) * slope);
      }
      store(outputs + j, load<Lanes>(outputs + j) + error * load<Lanes>(&after_[s * hinges + j]));
    }
    for (std::size_t k = 0; k < action_columns_; ++k) {
      const Between at(action[k]);
      float* shape = &gradient_[shape_ + k * shape_size];
      shape[at.knot] += error * (1.0f - at.share);
      shape[at.knot + 1] += error * at.share;
    }
  }

  void trunk_back() {
    multiply({trunk_after_.data(), 1, trunk}, {delta_.data(), columns_}, trunk, batch, hinges, &gradient_[second_]);
    for (std::size_t j = 0; j < hinges; ++j)
      for (std::size_t k = 0; k < trunk; ++k) turned_[j * trunk + k] = weights_[second_ + k * hinges + j];
    multiply({delta_.data(), columns_, 1}, {turned_.data(), trunk}, batch, hinges, trunk, trunk_delta_.data());
    for (std::size_t s = 0; s < batch; ++s)
      for (std::size_t k = 0; k < trunk; k += wide) {
        const std::size_t at = s * columns_ + hinges + k;
        store(&delta_[at], load<Lanes>(&trunk_delta_[s * trunk + k]) * ramp_slope(load<Lanes>(&before_[at]), blunt));
      }
  }

  static float steep(std::size_t hinge) { return hinge % 4 == 3 ? 6.0f : 1.0f; }

  std::size_t width_, action_columns_, stride_;
  bool deep_;
  float corner_;
  std::size_t columns_, second_, slopes_, outputs_, shape_, size_;
  Buffer<float> weights_, gradient_, before_, delta_, after_, lift_, trunk_after_, trunk_delta_, turned_;
  FeatureRows features_;
};

}  // namespace manul::MANUL_SIMD
