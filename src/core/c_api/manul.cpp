// The functions of manul.h, which turn exceptions into sentences.
#include "c_api/manul.h"

#include <new>
#include <typeinfo>

#include "c_api/agent.hpp"

#ifdef __wasm__
#include "c_api/wasm_runtime.hpp"
#else
#include <mutex>

#include "simd/instruction_set.hpp"
#endif

namespace manul::api {
namespace {

#ifdef __wasm__

struct Mutex {
  void lock() {}
  void unlock() {}
};

const Kernels& kernels() {
  static const Kernels chosen = baseline::kernels();
  return chosen;
}

#else

using Mutex = std::mutex;

const Kernels& kernels() {
  static const InstructionSet chosen = instruction_set();
  return chosen.kernels;
}

#endif

}  // namespace
}  // namespace manul::api

struct manul_agent {
  manul::api::Agent agent;
  mutable manul::api::Mutex mutex = {};
};

namespace manul::api {
namespace {

struct Locked {
  explicit Locked(Mutex& mutex) : mutex(mutex) { mutex.lock(); }
  ~Locked() { mutex.unlock(); }
  Mutex& mutex;
};

void report(const Failure& failure, manul_error* error) {
  if (error != nullptr) *error = failure;
}

// Calls a function and turns what it throws into an error.
template <class Body>
int attempt(Agent* agent, manul_error* error, Body&& body) {
  try {
    try {
      body();
      if (agent != nullptr) agent->succeed();
      return 0;
    } catch (const BadField&) {
      if (agent != nullptr) agent->fail_field();
      throw;
    } catch (const NothingLeft& nothing) {
      if (agent != nullptr) agent->fail_nothing_left(nothing);
      throw;
    }
  } catch (const Failure& failure) {
    report(failure, error);
  } catch (const std::bad_alloc&) {
    report(Failure("", "memory is exhausted."), error);
  } catch (const std::exception& unknown) {
    report(Failure("", std::string(unknown.what()) + "."), error);
  }
  if (agent != nullptr) agent->recover();
  return 1;
}

#ifdef __wasm__

// There are no exceptions in WebAssembly: `thrown` ends the call by a trap after it has written the error, and the host
// restores the stack. Each agent has an instance of its own, so what was not freed is gone with it.
struct {
  Agent* agent = nullptr;
  manul_error* error = nullptr;
} current;

template <class Body>
int guard(Agent* agent, manul_error* error, Body&& body) {
  current = {agent, error};
  body();
  if (agent != nullptr) agent->succeed();
  current = {};
  return 0;
}

#else

template <class Body>
int guard(Agent* agent, manul_error* error, Body&& body) {
  return attempt(agent, error, body);
}

#endif

}  // namespace

#ifdef __wasm__

void thrown(const void* what, const std::type_info& type) {
  const auto [agent, error] = current;
  // These throw a Failure.
  if (agent != nullptr && type == typeid(BadField)) agent->fail_field();
  if (agent != nullptr && type == typeid(NothingLeft)) agent->fail_nothing_left(*static_cast<const NothingLeft*>(what));
  if (type == typeid(Failure))
    report(*static_cast<const Failure*>(what), error);
  else
    report(Failure("", type == typeid(std::bad_alloc) ? "memory is exhausted." : "the call is not possible."), error);
  current = {};
  if (agent != nullptr) agent->recover();
}

#endif

}  // namespace manul::api

using manul::api::Locked;

extern "C" {

manul_agent* manul_open(const void* bytes, size_t size, manul_error* error) {
  manul_agent* opened = nullptr;
  manul::api::guard(nullptr, error, [&] {
    manul::api::Sha256 signature;
    signature.add(bytes, size);
    const manul::api::ModelFile file(static_cast<const unsigned char*>(bytes), size);
    opened = new manul_agent{{file, manul::api::kernels(), signature.hex()}};
  });
  return opened;
}

void manul_free(manul_agent* agent) { delete agent; }

const char* manul_describe(const manul_agent* agent) { return agent->agent.description().c_str(); }

int manul_decide(manul_agent* agent, manul_context context, const char* within, const uint64_t* seed,
                 manul_decision* decision, manul_error* error) {
  const Locked locked(agent->mutex);
  return manul::api::guard(&agent->agent, error, [&] { agent->agent.decide(context, within, seed, *decision); });
}

int manul_best(manul_agent* agent, manul_context context, const char* within, manul_decision* decision,
               manul_error* error) {
  const Locked locked(agent->mutex);
  return manul::api::guard(&agent->agent, error, [&] { agent->agent.best(context, within, *decision); });
}

int manul_learn(manul_agent* agent, manul_context context, const manul_decision* decision, double outcome,
                manul_error* error) {
  const Locked locked(agent->mutex);
  return manul::api::guard(&agent->agent, error, [&] { agent->agent.learn(context, *decision, outcome); });
}

int manul_read_decision(const manul_agent* agent, const char* action, const char* within, double density,
                        manul_decision* decision, manul_error* error) {
  const Locked locked(agent->mutex);
  return manul::api::guard(const_cast<manul::api::Agent*>(&agent->agent), error,
                           [&] { agent->agent.read_decision(action, within, density, *decision); });
}

int manul_save(manul_agent* agent, unsigned char** bytes, size_t* size, manul_error* error) {
  const Locked locked(agent->mutex);
  return manul::api::guard(&agent->agent, error, [&] {
    const std::string file = agent->agent.save();
    *bytes = new unsigned char[file.size()];
    std::memcpy(*bytes, file.data(), file.size());
    *size = file.size();
  });
}

void manul_free_bytes(unsigned char* bytes) { delete[] bytes; }

}  // extern "C"
