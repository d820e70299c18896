// The interfaces of policy models.
//
//   PolicyModel   maps a context to a window and learns from outcomes     (this folder, one file per kind)
//   Player        decides with a model: epsilon-greedy, numbered decisions, checked input     (play/player.hpp)
//   agent         the object of the user, in Python; it has one player
//
// Models are compiled once per instruction set, each time into its own namespace MANUL_SIMD, and are reached only
// through the interfaces below, so that no function built for a newer machine can stand in for the same function on an
// older one. For the same reason they use no templates of the standard library.
#pragma once

#include "contexts/context_view.hpp"
#include "knobs/knob.hpp"
#include "numerics/buffer.hpp"
#include "numerics/ranges.hpp"

namespace manul {

// The result of one decision. The loss is scaled to [0, 1] if its range is known.
struct Outcome {
  double action;
  double density;
  double loss;
  Range within;
  const double* parts = nullptr;  // of an outcome that has parts, NaN where one was not seen
  bool judged = false;            // whether the loss was reported beside them; otherwise the formula said it
};

// What has learned, and can be saved.
class Model {
 public:
  virtual ~Model() = default;

  // The rounds since learning began or restarted, which schedules of exploration depend on.
  virtual double age(double rounds) const { return rounds; }

  // The factor of an epsilon that depends on the evidence for what was learned.
  virtual double exploring() const { return 1.0; }

  // Sets the rounds after which old evidence counts half; by default nothing is forgotten.
  virtual void forget(double half_life) = 0;

  // Initialises a model that defers this until it is needed; only the first call has an effect.
  virtual void start() {}

  // The memory that files do not contain, because `resume` computes it; small buffers are not counted.
  virtual std::size_t unsaved_bytes() const { return 0; }

  virtual std::size_t arrays() const = 0;
  virtual Array array(std::size_t index) = 0;

  // Makes room for `size` numbers of a file in an array that grows; the caller then compares the sizes.
  virtual void fit(std::size_t, std::size_t) {}

  // Computes what is not saved from restored arrays, which are valid.
  virtual void resume() {}

  // Whether restored arrays are valid. Values that are only added and compared are not checked.
  virtual bool is_valid() const { return true; }
};

class PolicyModel : public Model {
 public:
  virtual Window window(const ContextView& context, Range within) = 0;
  virtual void learn(const ContextView& context, const Outcome& outcome) = 0;

  // Learns, and returns the greedy window before learning. The window must be exact if it covers the action; otherwise
  // any window that does not cover the action may be returned.
  virtual Window replay(const ContextView& context, const Outcome& outcome) = 0;
};

// One node on the path of a context down a tree; a forced node has only one reachable side.
struct Step {
  std::uint32_t node;
  double margin;
  bool right;
  bool forced;
};

// A tree of linear nodes that can explain its decisions.
class RoutingModel : public PolicyModel {
 public:
  virtual std::uint32_t depth() const = 0;

  // The weight of a feature in node `row`; row 0 is shared by all nodes.
  virtual float weight(std::uint32_t row, std::uint32_t feature) const = 0;

  // The path of a context to its leaf, one step per level.
  virtual void route(const ContextView& context, Range within, Step* steps) = 0;
};

// One update of a node by the paper's training rule.
struct Update {
  std::uint32_t node;
  float cost_left;
  float cost_right;
};

class UpdateObserver {
 public:
  virtual ~UpdateObserver() = default;
  virtual void observe(const Update& update) = 0;
};

// A tree that can show which nodes it trains.
class TracingModel : public PolicyModel {
 public:
  virtual void learn_observed(const ContextView& context, const Outcome& outcome, UpdateObserver& observer) = 0;
};

// Several bandwidths, of which the best one decides.
class BandwidthSelectingModel : public PolicyModel {
 public:
  virtual std::size_t members() const = 0;

  // The member that decides: the smallest risk among those that fit into the range.
  virtual std::size_t best_member(Range within) = 0;

  // The estimated loss of a member plus the penalty for its uncertainty.
  virtual double risk(std::size_t member) = 0;
};

struct CriticReport {
  static constexpr std::size_t members = 4;  // deep, shallow, sharp, scout

  double errors[members];   // root mean squared errors of their predictions, in units of the loss
  double weights[members];  // their shares in the prediction
  double forest;            // the weight of the trees' correction, from 0 to 1
  double trees;             // their number
  double bandwidth;         // the widest in use, in action units
  double noise;             // standard deviation of the loss around the prediction
  double rounds;
  double memory;  // rounds since the last detected change of the world
  double alarms;
  double last_alarm;  // the round of the last alarm, or 0
  double clipped;     // losses outside their bounds, if their range is unknown
  double early;       // the share of what predicts the first rounds
  double constant;    // the share of the constant action in the rest
  double prior;       // the share of a prior, not a number without one
};

// How the formula of an outcome with parts does.
struct FormulaReport {
  std::size_t parts = 0;     // that are predicted
  double weight = 0.0;       // of the formula's prediction, from 0 to 1
  double reported = 0.0;     // values beside the parts
  double explained = 1.0;    // the share of their variance that the formula explains
  double hints[8] = {};      // by part: the weight of the experts that believe the hint
  double inherited[8] = {};  // and that of the experts of another agent
};

// The prices of limits in expectation: what a decision is worth is its value less that of what it spends, plus that of
// what it keeps.
struct Prices {
  double spent = 0.0, kept = 0.0;  // now
  double usual = 0.0;              // of what is spent: its slow mean
};

// What is expected of the latest window, NaN if that is not known; `usual` is what would be spent at the usual price,
// and `most_kept` the most that any action keeps.
struct Expectation {
  double value = __builtin_nan(""), spent = value, kept = value, usual = value, most_kept = value;
};

// A model of the loss of every action.
class CriticModel : public PolicyModel {
 public:
  virtual CriticReport report() const = 0;
  virtual FormulaReport formula_report() const = 0;

  virtual Prices& prices() = 0;
  virtual Expectation expectation() const = 0;

  // What an action is expected to spend in the context of the latest window; NaN if that is not known.
  virtual double spent(double action) const = 0;

  // The predicted losses of `count` actions.
  virtual void predict(const ContextView& context, const double* actions, std::size_t count, double* losses) = 0;

  // Takes over what another agent has learned of the parts of outcomes; false if its contexts or parts are others.
  virtual bool inherit(const CriticModel& sister) = 0;

  // The window with the lowest predicted loss among those with this bandwidth, in action units.
  virtual Window best_window(const ContextView& context, Range within, double bandwidth) = 0;
};

// A model of the loss of actions with several knobs. Positions are those of the knobs in [0, 1], or numbers of
// categories.
class KnobsModel : public Model {
 public:
  // Where the knobs are set, inside the limits, if nothing is explored.
  virtual void windows(const ContextView& context, const KnobRange* ranges, const Limited& limited,
                       KnobWindow* windows) = 0;

  // The positions inside the limits with the lowest predicted loss; returns false if it knows none.
  virtual bool minimum(const ContextView& context, const KnobRange* ranges, const Limited& limited,
                       double* positions) = 0;

  // The outcome's density is relative to the uniform density; the positions say the action.
  virtual void learn(const ContextView& context, const double* positions, const Outcome& outcome) = 0;

  // The predicted losses of `count` actions, one row of positions each.
  virtual void predict(const ContextView& context, const double* positions, std::size_t count, double* losses) = 0;
  virtual CriticReport report() const = 0;
  virtual FormulaReport formula_report() const = 0;

  virtual bool inherit(const KnobsModel& sister) = 0;  // as of `CriticModel`
};

namespace MANUL_SIMD {

// For models whose `learn` does not compute the window.
template <class Base>
class ReplayByWindow : public Base {
 public:
  Window replay(const ContextView& context, const Outcome& outcome) override {
    const Window window = this->window(context, outcome.within);
    this->learn(context, outcome);
    return window;
  }
};

}  // namespace MANUL_SIMD
}  // namespace manul
