// The types of client.js. `docs/generate.py` generates this file from the OpenAPI description of the service.

/** One tree per bandwidth; structural risk minimisation chooses the tree that decides. */
export interface AdaptiveCats {
  kind: "adaptive"
  leaves: number
  epsilon?: number | Schedule
  seed?: number
  half_life?: number | null
}

/** An agent without tuning: it chooses its own bandwidth and detects changes of the world. */
export interface Auto {
  kind: "auto"
  epsilon?: number | "auto" | Schedule
  seed?: number
  nearby?: number | null
  start?: number | string | boolean | Record<string, number | string | boolean> | null
  prior?: PriorLoop | null
  limits?: string[] | null
}

/** A budget in its current period, which began when it `started` unless it is a number of decisions. Of the `available` amount, which is `amount` and what an earlier period has added or taken, some is `spent`, some is `held` back for decisions that wait for their cost, and the rest is `left`. `waiting` are the decisions of all periods that wait for it. `pace` is what was spent relative to what was planned so far, and `forecast` what will be spent at the end if it stays so; both are null before anything is known. `price` is what a decision must earn for one that it spends, beyond the one itself. `planned` is what should be spent by the end of each twentieth of the period, and `spent_by_slot` what was, so far. `latest` are periods that are over, and `trouble` says that the budget was gone early. */
export interface Budget {
  formula: string
  amount: number
  period: string | number
  started: number | null
  available: number
  spent: number
  held: number
  left: number
  waiting: number
  pace: number | null
  forecast: number | null
  price: number
  planned: number[]
  spent_by_slot: number[]
  latest: BudgetPeriod[]
  trouble: string | null
}

/** A period of a budget that is over: when it `started`, a time or the number of decisions before it, what was available, what was spent, what is still held back, and its mean price. */
export interface BudgetPeriod {
  started: number
  available: number
  spent: number
  held: number
  price: number
}

/** A policy with its estimated loss, a 95 % confidence interval, and the effective sample size. If there are `objections`, the three numbers are null and `note` has the sentences of the objections. `action` is the value of a constant, which is judged by the decisions within a sixteenth of the range on either side, or with the same option; it is null if no constant can be judged. `knob` is the knob that it sets, if there are several. */
export interface Candidate {
  name: string
  loss: number | null
  low: number | null
  high: number | null
  effective_size: number
  note?: string | null
  objections?: Objection[]
  action?: string | number | boolean | null
  knob?: string | null
}

/** A tree that routes a context to one of its leaves and chooses an action within a bandwidth of the leaf's action. */
export interface Cats {
  kind: "cats"
  leaves: number
  bandwidth: number
  epsilon?: number | Schedule
  seed?: number
  half_life?: number | null
}

/** The best constant action in the latest report, with its estimated loss, a 95 % confidence interval, and the effective sample size. Of several knobs, it is the value of one, while the others are set as they were. */
export interface Constant {
  action: string | number | boolean
  loss: number
  effective_size: number
  low: number
  high: number
}

/** An action with the density it was drawn with; `model` is the last event that the model contained. `arm` says who made the decision, if a rollout is running. `within` is the range that it was drawn from, if what is left of a budget has cut it. */
export interface Decision {
  id: string
  /** A number, an option, or the values of several knobs by name. */
  action: string | number | boolean | Record<string, string | number | boolean>
  density: number
  model: number
  /** Of several knobs: the density of each, whose product is the density. */
  densities?: Record<string, number>
  arm?: "baseline" | "learner"
  /** Lower and upper bound. */
  within?: [number, number]
}

/** One decision per context, in order. */
export interface Decisions {
  decisions: Decision[]
}

/** Confirms that a loop is deleted, with all its decisions, losses and models. */
export interface Deleted {
  name: string
}

/** The body of every error response. */
export interface Error {
  error: ErrorBody
}

/** A code for programs, a message for people, and the field that the error is about, if any. */
export interface ErrorBody {
  code: string
  message: string
  field?: string
}

/** A report with the doctor's findings on the same rows; `findings` is null if there are no rows yet. */
export interface Examined {
  time: number
  report: Report
  findings: Finding[] | null
}

/** What decisions outside the greedy window (`explored`) cost, as loss per decision with a standard error, and as a share of the loss, which is null if a loss is negative. By chance, the cost can be slightly negative. */
export interface Exploration {
  explored: number
  cost: number
  error: number
  share: number | null
}

/** A problem with the log of a loop; after an `error` it must not be used for off-policy evaluation. */
export interface Finding {
  severity: "error" | "note" | "warning"
  title: string
  sentence: string
}

/** The service is healthy. */
export interface Health {
  status: "ok"
}

/** A span in intervals of `seconds` each: outcomes, their mean loss with a 95 % confidence interval, late and defaulted losses, and how often actions fell into each part of their range. Each counts at the time of its decision; decisions whose wait is not over are left out. `best_constant` is null if no report has one yet. */
export interface History {
  start: number
  seconds: number
  outcomes: number[]
  loss: (number | null)[]
  low: (number | null)[]
  high: (number | null)[]
  late: number[]
  defaulted: number[]
  played: number[][]
  best_constant: Constant | null
}

/** A bound on the mean of a second outcome: the `mean` of about the latest 1,000 of all `outcomes`, and the `price` of what is kept. `reachable` is what decisions that aim at nothing else would keep, as far as the model knows, and `trouble` says that the bound cannot be kept. */
export interface Kept {
  formula: string
  sign: "<=" | ">="
  value: number
  mean: number | null
  outcomes: number
  price: number
  reachable: number | null
  trouble: string | null
}

/** A knob that is not any number of a range: numbers from `low` to `high` in equal steps, or `options`. */
export interface Knob {
  options?: (string | number | boolean)[] | null
  low?: number | null
  high?: number | null
  step?: number | null
}

/** One of several knobs: its steps, options or the middles of 32 parts of its range (`values`), how often decisions were at each in the intervals of the history, and the current density, averaged over the latest contexts; of steps and options, the probability. It is empty if there are too many combinations of options. */
export interface KnobSummary {
  name: string
  values: (string | number | boolean)[]
  played: number[][]
  density: number[]
  best_constant: Constant | null
}

/** All loops, by name; those that cannot be read are in `out_of_service`. */
export interface Loops {
  loops: Status[]
  out_of_service?: OutOfService[]
}

/** What happens to a loss: `recorded` is learned; `waiting` is learned when the wait of its decision ends; `repeated` was reported before; `late` was reported after the end of the wait, and is stored but not learned. */
export interface Loss {
  id: string
  status: "late" | "recorded" | "repeated" | "waiting"
}

/** A loss with the id of its decision. */
export interface LossOf {
  loss?: number | null
  reward?: number | null
  parts?: Record<string, boolean | number | null> | null
  key?: string | null
  id: string
}

/** One status per loss, in order. */
export interface Losses {
  losses: Loss[]
}

/** The amount of a budget from now on, also in the current period. */
export interface NewBudget {
  amount: number
}

/** A request for a decision; `within` restricts the range of actions for this decision. `action` is what the caller would choose: a rollout with the baseline "caller" needs it, one with another baseline refuses it, and without a rollout it is ignored. `at` is when the decision is made, now by default, for a loop with a budget; without an offset it is in the budget's zone. */
export interface NewDecision {
  /** A list of numbers, or an object of numbers, strings, booleans, dates, missing values (null), lists and objects. A date is {"$date": "2024-02-29"} or {"$date": "2024-02-29T12:30:00+01:00"}, a time of day {"$time": "12:30"}; other strings are categories. */
  context?: number[] | Record<string, unknown> | null
  /** Lower and upper bound, or the options that are allowed; of several knobs by name. */
  within?: (string | number | boolean)[] | Record<string, (string | number | boolean)[]> | null
  id?: string | null
  action?: string | number | boolean | Record<string, string | number | boolean> | null
  at?: string | null
}

/** A request for many decisions. If one of them is invalid, none is made. */
export interface NewDecisions {
  decisions: NewDecision[]
}

/** A decision problem. With a `wait`, a loss is learned so many seconds after its decision, whenever it was reported until then; a decision without a loss gets `default_loss`. Without a wait, a loss is learned as soon as it is reported. A loop has `losses` or `rewards`, by default losses in [0, 1]; Auto also takes "auto", any finite numbers. A reward is stored as a negative loss. With a `formula`, it is computed from `parts`, which are reported instead; `hints` say that a part rises or falls with the action, and `default_parts` are the values of parts that were not reported by the end of the wait. `spend_at_most` is a budget, and `keep` a bound on the mean of a second outcome, as those of `manul.Auto`. `late` says what is held back for decisions whose cost is not known yet: without it, the most that they can cost; "reserve", what is expected and a margin; "carry", what is expected, and the next period gets the error. With `carry`, a period leaves its rest to the next one. `decline` is the action that spends nothing, by default an end of the range, and `zone` the time zone of the period, by default UTC. */
export interface NewLoop {
  name: string
  /** Lower and upper bound; one knob with steps (`low`, `high` and `step`) or `options`; or several knobs by name, in order: bounds, steps or options each. */
  actions: [number, number] | Record<string, (string | number | boolean)[] | string | number | boolean | Knob>
  losses?: [number, number] | "auto" | null
  rewards?: [number, number] | "auto" | null
  agent?: "auto" | AdaptiveCats | Auto | Cats
  wait?: number | null
  default_loss?: number | null
  default_reward?: number | null
  combine?: "first" | "last" | "mean" | "sum"
  apprentice?: boolean
  formula?: string | null
  parts?: Record<string, "amount" | "count" | "yes/no"> | null
  hints?: Record<string, "falls" | "rises"> | null
  default_parts?: Record<string, boolean | number | null> | null
  spend_at_most?: string[] | null
  keep?: string[] | null
  late?: "carry" | "reserve" | null
  carry?: boolean
  decline?: number | null
  zone?: string | null
}

/** The `loss` of a decision if the loop was created with `losses` or neither, its `reward` if the loop was created with `rewards`: exactly one of the two. If the loop has a formula, `parts` are enough; what is reported beside them is learned instead of the value of the formula. Parts that no formula uses are recorded and logged. If a loop combines losses, `key` distinguishes a repeat from another loss. */
export interface NewLoss {
  loss?: number | null
  reward?: number | null
  parts?: Record<string, boolean | number | null> | null
  key?: string | null
}

/** Many losses. If one of them is invalid, none is stored. */
export interface NewLosses {
  losses: LossOf[]
}

/** An action that the caller chose itself, with its density and loss if they are known. `floor` is the smallest density that the caller gave any action. Of several knobs, `densities` may replace `density`, their product. A loop with `rewards` takes a `reward`, any other a `loss`, and one with a formula `parts`. If a downloaded `model` made the decision, its `density` must be the model's, and `number` and `copy`, or `id`, say which decision it was, so that it is learned once. */
export interface NewObservation {
  /** A number, an option, or the values of several knobs by name. */
  action: string | number | boolean | Record<string, string | number | boolean>
  /** A list of numbers, or an object of numbers, strings, booleans, dates, missing values (null), lists and objects. A date is {"$date": "2024-02-29"} or {"$date": "2024-02-29T12:30:00+01:00"}, a time of day {"$time": "12:30"}; other strings are categories. */
  context?: number[] | Record<string, unknown> | null
  density?: number | null
  /** By knob. */
  densities?: Record<string, number> | null
  floor?: number | null
  /** Lower and upper bound, or the options that are allowed; of several knobs by name. */
  within?: (string | number | boolean)[] | Record<string, (string | number | boolean)[]> | null
  id?: string | null
  loss?: number | null
  reward?: number | null
  parts?: Record<string, boolean | number | null> | null
  model?: string | null
  number?: number | null
  copy?: string | null
}

/** Many observations. If one of them is invalid, none is stored. */
export interface NewObservations {
  observations: NewObservation[]
}

/** Lets the loop's learner take over from a baseline by evidence. `baseline` is a constant action (of several knobs an object), "caller" (each request for a decision then has the `action` that the caller would choose), or `{"policy": ...}` with the bytes of the `.manul` file of a saved policy or agent, in Base64. The learner's loss may be at most (1 + `tolerance`) times that of the baseline, or its reward at least (1 - `tolerance`) times. `steps` are its shares of the traffic, one after the other, each for at least `least_decisions` with losses and `least_seconds`; the baseline keeps the share `holdout`. `budget` is the start-up budget of the guarantee, in widths of the range of losses. After `patience` further decisions, or `patience_seconds` if that is given, a missing loss is not waited for. `outcome_range` is the range of the losses or rewards that are compared: by default that of the loop, and required if that is "auto". Those beyond it count as its ends. `guard` has rules for parts of the outcome, such as `{"returned": ["<=", 1.02]}`: the learner's mean may be at most 1.02 times that of the baseline. Counts and amounts need a range, as in `["<=", 1.1, [0, 5]]`. A step up needs all guards, a step down any. A rollout that was aborted or rolled back starts again only with `restart`. */
export interface NewRollout {
  baseline: number | boolean | string | Record<string, unknown>
  least_seconds?: number
  webhook?: Webhook | null
  restart?: boolean
  tolerance?: number
  confidence?: number
  steps?: number[]
  holdout?: number
  least_decisions?: number
  budget?: number
  patience?: number
  patience_seconds?: number | null
  outcome_range?: [number, number] | null
  guard?: Record<string, unknown[]> | null
}

/** A reason not to trust an estimate. */
export interface Objection {
  severity: "error" | "warning"
  title: string
  sentence: string
}

/** One confirmation per observation, in order. */
export interface Observations {
  observations: Observed[]
}

/** Confirms that an observation is stored. */
export interface Observed {
  id: string
}

/** A loop that cannot be read, and why. It answers no requests; it can be deleted, or restored from a backup. */
export interface OutOfService {
  name: string
  trouble: string
}

/** Two of several knobs: how many of the latest decisions were at each pair of values, their mean loss, and the loss that the model predicts there in the latest contexts, the other knobs at their best; it is empty if the model does not know. */
export interface PairView {
  first: string
  second: string
  first_values: (string | number | boolean)[]
  second_values: (string | number | boolean)[]
  count: number[][]
  loss: ((number | null)[])[]
  predicted: number[][]
}

/** The density over equal parts of the range of actions for values of one feature, the others at typical values. Of several knobs, it is the density of `knob` over its `cells`; options have no mean. */
export interface PolicyView {
  feature: string | null
  values: (number | string)[]
  typical: number | string | null
  density: number[][]
  mean: number[]
  knob?: string
  cells?: (string | number | boolean)[]
}

/** A loop whose present model the agent of a new loop starts from, until evidence drops it. */
export interface PriorLoop {
  loop: string
}

/** The agent's estimates (`beliefs`), and candidate policies evaluated on the latest `rows` decisions with an outcome. `played` is the policy that decided. `greedy` are the decisions that did not explore. `model`, if the caller decides, is the model, judged on each decision before it learned from it; it does not know decisions of unknown density. `constant` is the best of nine constant actions, chosen on one half of the rows and judged on the other; actions to which there are objections are not chosen. Of several knobs, there is one for each, the other knobs as they were set. `exploration` is what exploration cost in these rows; it is null if none of them is a greedy decision of the agent, as when the caller decides. */
export interface Report {
  name: string
  model: number
  rows: number
  beliefs: Record<string, unknown>
  candidates: Candidate[]
  exploration: Exploration | null
}

/** A rollout: its settings, its state, and a sentence that says it in words. `excess` bounds the learner's mean loss minus what is tolerated in the present step; null if nothing is known yet. `judged` are the decisions behind it, and `in_flight` those of which the learner had a share that are not judged yet. `learner_decisions` and `baseline_decisions` have losses, and count from the start. `spent` is an upper bound of what the learner has cost beyond the tolerance, of the `budget`, both in units of the loss. If `limited`, the budget leaves less traffic than the step. `needed` is about how many more decisions the next step takes, null if it cannot be foreseen, and `not_before` the earliest time of it, if that is in the future. `unsent` are moves that the webhook has not received yet. `learner_left_out` and `baseline_left_out` are decisions whose losses did not come within patience, since the model was given. If the arms are proven to be left out at different rates, the evidence is `uneven`, and the learner does not move up. If the loop has `rewards`, losses are negative rewards. `guards` is what is known of the parts that `guard` has rules for. */
export interface Rollout {
  loop: string
  rewards: boolean
  started: number
  event: number
  status: "aborted" | "done" | "paused" | "rolled back" | "waiting"
  sentence: string
  baseline: number | boolean | string | Record<string, unknown>
  least_seconds: number
  budget: number
  webhook: string | null
  unsent: number
  step: number
  traffic: number
  limited: boolean
  judged: number
  in_flight: number
  learner_decisions: number
  baseline_decisions: number
  learner_left_out: number
  baseline_left_out: number
  uneven: boolean
  excess: [number, number] | null
  learner_loss: number | null
  baseline_loss: number | null
  spent: number
  needed: number | null
  not_before: number | null
  guards: RolloutGuard[]
  moves: RolloutMove[]
  looks: RolloutLook[]
  tolerance: number
  confidence: number
  steps: number[]
  holdout: number
  least_decisions: number
  patience: number
  patience_seconds: number | null
  outcome_range: [number, number] | null
  guard: Record<string, unknown[]> | null
}

/** A guard since the present step began, in units of its part: the mean values of the arms, and how far the learner's mean is beyond the limit of the `rule`, which it keeps if both ends of `excess` are below 0. `learner_left_out` and `baseline_left_out` are decisions without a value, and `beyond` counts values beyond the range. */
export interface RolloutGuard {
  name: string
  rule: string
  state: "does not hold" | "holds" | "not proven yet"
  learner: number | null
  baseline: number | null
  excess: [number, number] | null
  learner_left_out: number
  baseline_left_out: number
  beyond: number
}

/** What was known at a time: decisions with losses of each arm, the learner's share, and the bounds of its excess. */
export interface RolloutLook {
  time: number
  learner: number
  baseline: number
  traffic: number
  low: number | null
  high: number | null
}

/** A move of a rollout: when, at which event, from which step to which (0 is the baseline), why, and who decided. `low` and `high` bound the learner's excess over what is tolerated, per decision; null if nothing was known. `guard` is the part in which the learner was worse, if it was not the loss; then the bounds are those of the part. */
export interface RolloutMove {
  time: number
  event: number
  judged: number
  origin: number
  target: number
  reason: "aborted" | "model replaced" | "not worse" | "paused" | "restarted" | "resumed" | "started" | "worse"
  by: "evidence" | "owner"
  low?: number | null
  high?: number | null
  guard?: string | null
}

/** A schedule of epsilon. Without a `kind`, it fades from `first` to `last`, and is half of `first` after `rounds` rounds of learning; by default 0.05, 0.002 and 1000. */
export interface Schedule {
  kind?: "fading"
  first?: number
  last?: number
  rounds?: number
}

/** The status of a loop. `waiting` are decisions without an outcome: no loss was reported or, with a wait, it is not over. `learned` are the outcomes that the model contains, and `epsilon` is the share of uniform exploration in the next decision. A reward is a negative loss: if a loop has `rewards`, its mean reward is `-mean_loss`. `trouble` says why the loop is not ready: it does not learn, or its data are damaged; null if all is well. */
export interface Status {
  name: string
  /** Lower and upper bound; one knob with steps (`low`, `high` and `step`) or `options`; or several knobs by name, in order: bounds, steps or options each. */
  actions: [number, number] | Record<string, (string | number | boolean)[] | string | number | boolean | Knob>
  losses: [number, number] | "auto"
  rewards: [number, number] | "auto" | null
  agent: Record<string, unknown>
  combine: "first" | "last" | "mean" | "sum"
  wait: number | null
  default_loss: number | null
  apprentice: boolean
  paused: boolean
  created: number
  decisions: number
  learned: number
  waiting: number
  mean_loss: number | null
  late: number
  defaulted: number
  refused: number
  events: number
  model: number
  width: number | null
  epsilon?: number | null
  trouble?: string | null
  formula?: string | null
  parts?: Record<string, "amount" | "count" | "yes/no"> | null
  hints?: Record<string, "falls" | "rises"> | null
  default_parts?: Record<string, boolean | number | null> | null
  budget?: Budget | null
  kept?: Kept | null
}

/** Everything that the dashboard shows of a loop. `density` is over equal parts of the range of actions, averaged over the latest contexts; `examined` is up to a few seconds old, and null at first. A loop with several knobs has `knobs` instead of `density`, and of `played` and `best_constant` in its history. `rollout` says whether the loop has one. */
export interface Summary {
  time: number
  status: Status
  history: History
  traffic: Traffic
  density: number[]
  features: string[]
  examined: Examined | null
  rollout: boolean
  knobs?: KnobSummary[]
}

/** Decisions per second since the service started, and the median and p99 (`slowest`) of the milliseconds until they were durable. */
export interface Traffic {
  start: number
  seconds: number
  decisions: number[]
  median: (number | null)[]
  slowest: (number | null)[]
}

/** Where to report the moves of a rollout. Each is sent as JSON with POST until the receiver answers with a status of 2xx. The header `X-Manul-Signature` is `sha256=` and the HMAC of the body with the secret, in hexadecimal digits. A move may be sent more than once; `loop` and `event` identify it. */
export interface Webhook {
  url: string
  secret: string
}

/** The service rejects a request or cannot be reached; `code` identifies the error for programs. */
export declare class ServiceError extends Error {
  status: number | null
  code: string
  field: string | null
}

export interface ClientOptions {
  token?: string | null
  /** Seconds of one attempt. */
  timeout?: number
  retries?: number
  fetch?: typeof fetch
  /** Waits so many seconds between attempts. */
  wait?: (seconds: number) => Promise<void>
}

export type DecisionAt = Omit<NewDecision, "at"> & { at?: Date | string | null }

export type DecisionOrId = { id: string } | string

export declare class Client {
  constructor(url: string, options?: ClientOptions)
  create(settings: NewLoop): Promise<Status>
  loops(): Promise<Status[]>
  status(loop: string): Promise<Status>
  decide(loop: string, context?: NewDecision["context"], options?: Omit<DecisionAt, "context">): Promise<Decision>
  decideMany(loop: string, decisions: DecisionAt[]): Promise<Decision[]>
  reportLoss(loop: string, decision: DecisionOrId, told: NewLoss): Promise<Loss>
  reportLosses(loop: string, losses: (NewLoss & ({ decision: DecisionOrId } | { id: string }))[]): Promise<Loss[]>
  observe(loop: string, observation: NewObservation): Promise<Observed>
  observeMany(loop: string, observations: NewObservation[]): Promise<Observed[]>
  pause(loop: string): Promise<Status>
  resume(loop: string): Promise<Status>
  changeBudget(loop: string, amount: number): Promise<Status>
  promote(loop: string): Promise<Status>
  startRollout(loop: string, settings: NewRollout): Promise<Rollout>
  rollout(loop: string): Promise<Rollout>
  pauseRollout(loop: string): Promise<Rollout>
  resumeRollout(loop: string): Promise<Rollout>
  abortRollout(loop: string): Promise<Rollout>
  reset(loop: string): Promise<Status>
  delete(loop: string): Promise<Deleted>
  replace(loop: string, model: Uint8Array): Promise<Status>
  report(loop: string): Promise<Report>
  log(loop: string): Promise<Uint8Array>
  model(loop: string): Promise<Uint8Array>
}
