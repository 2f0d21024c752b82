// The elements of the patterns: counted objects, a minimal Task, and gates to wait at.
#pragma once

#include <coroutine>
#include <exception>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace patterns {

// Tracks the addresses of its objects, so that a second or a missing destruction is noticed.
class Counted {
 public:
  explicit Counted(int value = 0) : value_(value) { born(); }
  Counted(const Counted& other) : value_(other.value_) { born(); }
  Counted(Counted&& other) noexcept : value_(other.value_) { born(); }
  Counted& operator=(const Counted&) = default;
  ~Counted() {
    if (alive.erase(this) == 0) ++destroyed_twice;
  }
  int value() const { return value_; }

  static inline std::set<const Counted*> alive;
  static inline int destroyed_twice = 0;

 private:
  void born() { alive.insert(this); }

  int value_;
};

inline int sum(const Counted& a, const Counted& b) { return a.value() + b.value(); }

// ---- a minimal coroutine

inline std::coroutine_handle<> waiting;  // The coroutine that waits at a gate.

struct Promise {
  struct ToParent {
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
      const std::coroutine_handle<> parent = self.promise().parent;
      return parent ? parent : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  ToParent final_suspend() noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }

  std::coroutine_handle<> parent;
  std::exception_ptr error;
};

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type : Promise {
    Task get_return_object() {
      return Task{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    template <class U = T>
    void return_value(U&& value) {
      result.push_back(T(std::forward<U>(value)));
    }
    std::suspend_always yield_value(T value) {
      result.push_back(std::move(value));
      return {};
    }
    std::vector<T> result;
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return false; }
  // Calls the child, without symmetric transfer: see Transferred for that.
  bool await_suspend(std::coroutine_handle<> parent) {
    handle_.resume();
    if (handle_.done()) return false;
    handle_.promise().parent = parent;
    return true;
  }
  T await_resume() { return take(); }

  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  T take() {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return std::move(handle_.promise().result.back());
  }

 protected:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// A child that is started by symmetric transfer.
struct Transferred : Task<int> {
  explicit Transferred(Task<int> task) : Task(std::move(task)) {}
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) {
    handle_.promise().parent = parent;
    return handle_;
  }
};

// Waits until main() opens the gate.
struct Gate {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting = handle; }
  void await_resume() {}
};

// Waits at a gate, then returns a value.
template <class T>
struct Gives {
  explicit Gives(T what) : value(std::move(what)) {}
  Gives(const Gives&) = delete;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting = handle; }
  T await_resume() { return std::move(value); }
  T value;
};
inline Gives<int> gives(int value) { return Gives<int>(value); }
inline Gives<Counted> gives_counted(int value) { return Gives<Counted>(Counted(value)); }

inline int rounds = 0;  // Counts the calls of more() in this run.
// True twice, then false.
inline Gives<bool> more() { return Gives<bool>(++rounds % 3 != 0); }

inline Task<int> child_by_value(Counted a) {
  const Counted local(1);
  co_await Gate{};
  co_return sum(a, local);
}
inline Task<Counted> counted_child(int value) {
  co_await Gate{};
  co_return Counted(value);
}

// ---- outcomes of a pattern

// Broken: it crashed, or gave a wrong result.
enum class Outcome { ok, broken, twice, leak };

struct Pattern {
  const char* name;
  Task<int> (*make)();  // Gives 7.
  Outcome gcc12 = Outcome::ok;
  Outcome clang19 = Outcome::ok;
};
#define PATTERN(name, ...) {#name, name __VA_OPT__(, ) __VA_ARGS__}

extern const std::span<const Pattern> kControlFlow;
extern const std::span<const Pattern> kExpressions;
extern const std::span<const Pattern> kLifetimes;
extern const std::span<const Pattern> kGenerators;

}  // namespace patterns
