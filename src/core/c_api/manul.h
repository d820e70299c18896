/* manul in C: open an agent that manul has saved, decide, learn and save it again, without Python.
 *
 *   manul_error error;
 *   manul_agent *agent = manul_open(bytes, size, &error);
 *   manul_decision decision;
 *   if (agent == NULL || manul_decide(agent, manul_json("{\"city\": \"Oslo\"}"), NULL, NULL, &decision, &error) != 0)
 *     fprintf(stderr, "%s\n", error.sentence);
 *
 * The same file and the same calls give the same decisions, densities and saved bytes as in Python. Agents are Cats,
 * Cats.paper and Auto, for numbers, steps, choices and several of them with limits; others are refused.
 *
 * An agent may be used by several threads: one lock per agent lets its calls wait for each other. A call that fails
 * changes nothing, except that memory may have been allocated. Functions that return int return 0 if they succeed.
 */
#ifndef MANUL_H
#define MANUL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(MANUL_STATIC)
#define MANUL_EXPORT
#elif defined(_WIN32)
#define MANUL_EXPORT __declspec(dllexport)
#else
#define MANUL_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MANUL_MOST_KNOBS 16

typedef struct manul_agent manul_agent;

/* What is wrong, in one sentence of UTF-8, and the name of the argument, field or knob. May be NULL in every call. */
typedef struct {
  char sentence[512];
  char field[128];
} manul_error;

/* A context: `size` bytes of JSON, an object of fields or an array of numbers, or, if `json` is NULL, `size` numbers.
 * Nested objects, lists of tags, null for missing values, and dates such as {"$date": "2024-02-29"} are as in Python. */
typedef struct {
  const char *json;
  const double *row;
  size_t size;
} manul_context;

/* The value of one knob. Of a choice, `value` is the number of the option, and `option` its JSON text, which is valid as
 * long as the agent; of others, `option` is NULL. The `density` is a probability for steps and choices. */
typedef struct {
  double value;
  const char *option;
  double density;
} manul_value;

/* A decision. `number` counts the decisions of this copy of the agent. `density` is that of the whole action, and `floor`
 * the smallest that any action could have; log both. To report decisions to a service, add the SHA-256 that
 * `manul_describe` gives, and a text of your own for each copy that is opened; once a copy has learned, its densities are no
 * longer those of this SHA-256, and the service refuses them. `low` and `high` are the range of an action that is one number. */
typedef struct {
  uint64_t number;
  double density;
  double floor;
  double low;
  double high;
  size_t size; /* of `values`, one for each knob */
  manul_value values[MANUL_MOST_KNOBS];
} manul_decision;

/* The agent in the bytes of a file, which may be freed afterwards, or NULL. */
MANUL_EXPORT manul_agent *manul_open(const void *bytes, size_t size, manul_error *error);

/* Frees an agent, which no other thread may use any more. NULL is allowed. */
MANUL_EXPORT void manul_free(manul_agent *agent);

/* What the agent is, as a JSON object: its `kind`, its `model`, the SHA-256 of the bytes that were opened, its `knobs`
 * and whether its `outcome` is a "loss" or a "reward". Valid as long as the agent. */
MANUL_EXPORT const char *manul_describe(const manul_agent *agent);

/* Draws an action. `within` narrows the range in JSON: [low, high], a list of options, or an object of them by knob; it
 * may be NULL. With a `seed`, the decision is drawn with it instead of the seed of the agent, so that copies of one file
 * draw different actions; it may be NULL. */
MANUL_EXPORT int manul_decide(manul_agent *agent, manul_context context, const char *within, const uint64_t *seed,
                              manul_decision *decision, manul_error *error);

/* The action without exploration, which has no density, so there is nothing to learn from. */
MANUL_EXPORT int manul_best(manul_agent *agent, manul_context context, const char *within, manul_decision *decision,
                            manul_error *error);

/* Learns from the outcome of a decision: a reward if `manul_describe` says so, otherwise a loss. */
MANUL_EXPORT int manul_learn(manul_agent *agent, manul_context context, const manul_decision *decision, double outcome,
                             manul_error *error);

/* The decision with an action in JSON, a number, an option or an object by knob, that was drawn `within` a narrower
 * range, or NULL, with this density: to learn from decisions that were kept as text. */
MANUL_EXPORT int manul_read_decision(const manul_agent *agent, const char *action, const char *within, double density,
                                     manul_decision *decision, manul_error *error);

/* The bytes of a file with what the agent has learned, which `manul.load` reads; free them with manul_free_bytes. */
MANUL_EXPORT int manul_save(manul_agent *agent, unsigned char **bytes, size_t *size, manul_error *error);
MANUL_EXPORT void manul_free_bytes(unsigned char *bytes);

/* A context of JSON text, and one of numbers. */
static inline manul_context manul_json(const char *json) {
  manul_context context = {json, NULL, strlen(json)};
  return context;
}
static inline manul_context manul_row(const double *row, size_t size) {
  manul_context context = {NULL, row, size};
  return context;
}

#ifdef __cplusplus
}
#endif

#endif
