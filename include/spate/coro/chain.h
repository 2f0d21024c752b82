// Chain: a spawned task, the tasks that it awaits, and how the loop resumes them. For those who
// write awaitables; programs include task.h, scope.h and what they wait for.
//
// A chain is resumed by the loop only, and never inside itself: what happens to it while it runs
// (it may run the loop, or cancel itself) is looked at when it next waits. So nobody destroys a
// coroutine that runs.
//
// An awaitable is an Operation<Self> with
//   bool await_ready()                       whether there is nothing to wait for;
//   bool start(Promise& chain, Then then)    begins to wait; false if it is over already. If it
//   runs
//                                            somebody's code, the chain may be doomed after that;
//   void cancel()                            nobody waits any more; the destructor does it, too;
//   T await_resume()                         what came of it.
// When it is over, it calls then.go() from the loop, or then.wake() from another's call, once, and
// touches nothing of itself after that.
//
// Threads: the loop's thread only.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "spate/assert.h"
#include "spate/coro/frames.h"
#include "spate/export.h"

namespace spate {
class Loop;
}

namespace spate::coro {

class Place;
class Promise;
class Scope;
class StopPoint;
class Then;

// A link of a ring, which a Line closes.
class Link {
 protected:
  Link() = default;  // In no ring.

  Link* next_;
  Link* previous_;

  friend class Line;
  friend class Place;
};

// A line of those who wait, first come, first served: for what it stands for, or, once they are
// woken, for the loop.
class Line : Link {
 public:
  Line() { next_ = previous_ = this; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  inline ~Line();

  bool empty() const { return next_ == this; }
  inline Place* first() const;
  inline Place* last() const;
  inline Place* behind(const Place& place) const;
  inline void push(Place& place);
  // The same of one who is woken.
  inline void push_woken(Place& place);

 private:
  friend class Place;

  inline Place* place_of(Link* link) const;
  inline void append(Place& place);
};

// A place in a line, one at a time. It is left with its owner.
class Place : Link {
 public:
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // In a line that is not that of the woken.
  bool is_waiting() const { return where_ == Where::waiting; }
  bool is_woken() const { return where_ == Where::woken; }
  inline Then then();
  void leave() {
    if (where_ == Where::nowhere) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    where_ = Where::nowhere;
  }

 protected:
  enum class Owner : bool { promise, chooser };

  explicit Place(Owner owner) : owner_(owner) {}
  ~Place() { leave(); }

 private:
  friend class Line;

  enum class Where : std::uint8_t { nowhere, waiting, woken };

  Where where_ = Where::nowhere;
  Owner owner_;
};

inline Line::~Line() {
  while (!empty()) first()->leave();
}

inline Place* Line::place_of(Link* link) const {
  return link == this ? nullptr : static_cast<Place*>(link);
}
inline Place* Line::first() const { return place_of(next_); }
inline Place* Line::last() const { return place_of(previous_); }
inline Place* Line::behind(const Place& place) const { return place_of(place.next_); }

inline void Line::append(Place& place) {
  place.leave();
  place.next_ = this;
  place.previous_ = previous_;
  previous_ = previous_->next_ = &place;
}
inline void Line::push(Place& place) {
  append(place);
  place.where_ = Place::Where::waiting;
}
inline void Line::push_woken(Place& place) {
  append(place);
  place.where_ = Place::Where::woken;
}

// Says who goes on when something that was awaited is over. It is asked once.
class Chooser : public Place {
 public:
  // nullptr: nobody yet. It may be one that has ended by this: then whoever awaits that goes on.
  using Choose = Promise* (*)(Chooser& self);

  explicit Chooser(Choose choose) : Place(Owner::chooser), choose_(choose) {}

  Promise* awaiting = nullptr;  // Whose chain it is.

 private:
  friend class Then;
  Choose choose_;
};

// Who goes on: a coroutine, or whom a Chooser names. One word.
class Then {
 public:
  Then() = default;
  explicit Then(Promise& awaiting) : bits_(reinterpret_cast<std::uintptr_t>(&awaiting)) {}
  explicit Then(Chooser& chooser) : bits_(reinterpret_cast<std::uintptr_t>(&chooser) | 1) {}

  explicit operator bool() const { return bits_ != 0; }
  bool is_chooser() const { return (bits_ & 1) != 0; }
  // If it is none.
  Promise& promise() const { return *reinterpret_cast<Promise*>(bits_); }
  inline Promise& chain() const;
  inline Place& place() const;
  inline Promise* choose() const;

  // From the loop: it is resumed now, or when its chain, which runs the loop, waits again.
  inline void go() const;
  // From another's call: it is resumed after the running callback.
  inline void wake() const;
  // Nobody is to go on.
  void leave() {
    if (*this) place().leave();
    bits_ = 0;
  }

 private:
  Chooser& chooser() const { return *reinterpret_cast<Chooser*>(bits_ - 1); }

  std::uintptr_t bits_ = 0;
};

// What the promises of all tasks begin with: of the chain's first, which a Scope has, and of those
// that are awaited.
class Promise : public Place {
 public:
  Promise() : Place(Owner::promise) {}
  ~Promise() {
    if (has_failed()) exception_.~exception_ptr();
  }

  static void* operator new(std::size_t bytes) noexcept { return allocate_frame(bytes); }
  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate_frame(bytes);
  }
  static void operator delete(void* frame, std::size_t bytes) noexcept { free_frame(frame, bytes); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return Ending(); }
  // Nobody catches what comes out of the chain's first: it ends the program.
  void unhandled_exception() noexcept {
    if (is_first_) std::rethrow_exception(std::current_exception());
    new (&exception_) std::exception_ptr(std::current_exception());
    marks_ |= kFailed;
  }
  void rethrow() {
    if (has_failed()) std::rethrow_exception(exception_);
  }

  std::coroutine_handle<> handle() { return std::coroutine_handle<Promise>::from_promise(*this); }

  // ---- one that was awaited

  // Runs it to its first wait. False if it is over.
  bool start(Promise& chain) {
    first_ = &chain;
    handle().resume();
    return !has_ended();
  }
  void then(Then then) { then_ = then; }
  // Of one that gives several results, and has given one.
  void start_again() {
    marks_ = 0;
    then_ = Then();
  }
  // It is over: by co_return, or because what it awaited ends it; or it has a result before that.
  // Whoever awaits it is next, and takes its result when it has been left: no frame is destroyed
  // inside its own call.
  void end() noexcept { marks_ |= kEnded; }
  bool has_ended() const { return (marks_ & kEnded) != 0; }

  // ---- the chain's first

  Promise& chain() { return is_first_ ? *this : *first_; }
  bool is_running() const { return is_running_; }
  // The same, for who is to be looked at again when it no longer runs.
  bool is_busy() {
    if (is_running_) marks_ |= kMissed;
    return is_running_;
  }
  // It was cancelled while it ran, and is destroyed when it waits.
  bool is_doomed() const { return (marks_ & kDoomed) != 0; }
  Scope& scope() const { return *scope_; }
  inline Loop& loop() const;
  // Resumes one of its coroutines, and whoever is next.
  inline void resume(Then then);
  inline void resume(Promise& awaiting);

 protected:
  // Waits there until somebody resumes it who knows that it has ended.
  struct Ending {
    bool await_ready() noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> handle) noexcept {
      handle.promise().end();
    }
    void await_resume() noexcept {}
  };

 private:
  friend class Scope;

  // What is to be seen to when it no longer runs.
  static constexpr std::uint8_t kDoomed = 1;
  static constexpr std::uint8_t kEnded = 2;
  static constexpr std::uint8_t kFailed = 4;  // By an exception.
  static constexpr std::uint8_t kMissed = 8;  // Somebody of it was to be resumed.

  bool has_failed() const { return (marks_ & kFailed) != 0; }
  // Who goes on when it has been resumed: nobody, until it has ended.
  Promise* next() const { return has_ended() && !is_first_ ? then_.choose() : nullptr; }
  inline void go_on(Promise* next);
  // Nobody of it runs.
  inline void rest();
  SPATE_EXPORT void settle();

  std::uint8_t marks_ = 0;  // These lie where a Place leaves room.
  bool is_running_ = false;
  bool is_first_ = false;
  bool gives_error_ = false;

  union {
    Promise* first_;  // Of one that is awaited.
    Scope* scope_;    // Of the first; nullptr when it is gone.
  };
  // Of one that is awaited: by whom, and why it has failed. Of the first: its place in its Scope.
  union {
    Then then_{};
    Promise* newer_;
  };
  union {
    std::exception_ptr exception_;
    Promise* older_;
  };
};

inline Promise& Then::chain() const {
  return (is_chooser() ? *chooser().awaiting : promise()).chain();
}

inline Place& Then::place() const {
  if (is_chooser()) return chooser();
  return promise();
}

inline Then Place::then() {
  if (owner_ == Owner::chooser) return Then(static_cast<Chooser&>(*this));
  return Then(static_cast<Promise&>(*this));
}

inline Promise* Then::choose() const {
  return is_chooser() ? chooser().choose_(chooser()) : &promise();
}

// What co_await needs of an awaitable, made of what the comment above asks of it.
template <class Self>
class Operation {
 public:
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& promise = handle.promise();
    if (promise.chain().is_doomed()) return true;
    return static_cast<Self*>(this)->start(promise.chain(), Then(promise));
  }

 protected:
  Operation() = default;
  ~Operation() = default;
};

}  // namespace spate::coro
