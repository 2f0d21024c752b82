// Fiber: a spawned task with the tasks that it awaits, and how the loop resumes them. A fiber is
// represented by the Promise of the spawned task, its root. For authors of awaitables; programs
// include task.h, scope.h and the headers of their awaitables.
//
// A fiber is resumed by the loop only, and never inside itself. Events that occur while it runs (it
// may run the loop, or cancel itself) take effect when it next waits. So a running coroutine is
// never destroyed.
//
// An awaitable is an Operation<Self> with
//   bool await_ready()   Returns true if the result is available without waiting.
//   bool start(Promise& fiber, Continuation continuation)
//                        Begins to wait. Returns false if the result is available now. It may run
//                        user code, which may cancel the fiber.
//   void cancel()        Abandons the wait. The destructor calls it as well.
//   T await_resume()     Returns the result.
// On completion it calls continuation.resume() from the loop, or continuation.wake() from any other
// call, once, and touches nothing of itself afterwards.
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
#include "spate/coro/extend/frames.h"
#include "spate/export.h"

namespace spate {
class Loop;
}

namespace spate::coro {

class Continuation;
class Promise;
class Scope;
class StopPoint;
class WaitNode;

// The links of a circular list. A WaitList is its head.
class Link {
 protected:
  Link() = default;  // In no list.

  Link* next_;
  Link* previous_;

  friend class WaitList;
  friend class WaitNode;
};

// A FIFO list of waiting coroutines (WaitNodes): those that wait for one object, or those that were
// woken and that the loop will resume.
class WaitList : Link {
 public:
  WaitList() { next_ = previous_ = this; }
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  inline ~WaitList();

  bool empty() const { return next_ == this; }
  inline WaitNode* first() const;
  inline WaitNode* last() const;
  inline WaitNode* after(const WaitNode& node) const;
  inline void push(WaitNode& node);
  // As push(), for a coroutine that is woken.
  inline void push_woken(WaitNode& node);

 private:
  friend class WaitNode;

  inline WaitNode* node_of(Link* link) const;
  inline void append(WaitNode& node);
};

// A node of a waiting coroutine, in at most one list. The destructor removes it.
class WaitNode : Link {
 public:
  WaitNode(const WaitNode&) = delete;
  WaitNode& operator=(const WaitNode&) = delete;

  // Returns whether it is in the list of an object, and not in that of the woken coroutines.
  bool is_waiting() const { return state_ == State::waiting; }
  bool is_woken() const { return state_ == State::woken; }
  inline Continuation as_continuation();
  void unlink() {
    if (state_ == State::unlinked) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    state_ = State::unlinked;
  }

 protected:
  enum class Owner : bool { promise, selector };

  explicit WaitNode(Owner owner) : owner_(owner) {}
  ~WaitNode() { unlink(); }

 private:
  friend class WaitList;

  enum class State : std::uint8_t { unlinked, waiting, woken };

  State state_ = State::unlinked;
  Owner owner_;
};

inline WaitList::~WaitList() {
  while (!empty()) first()->unlink();
}

inline WaitNode* WaitList::node_of(Link* link) const {
  return link == this ? nullptr : static_cast<WaitNode*>(link);
}
inline WaitNode* WaitList::first() const { return node_of(next_); }
inline WaitNode* WaitList::last() const { return node_of(previous_); }
inline WaitNode* WaitList::after(const WaitNode& node) const { return node_of(node.next_); }

inline void WaitList::append(WaitNode& node) {
  node.unlink();
  node.next_ = this;
  node.previous_ = previous_;
  previous_ = previous_->next_ = &node;
}
inline void WaitList::push(WaitNode& node) {
  append(node);
  node.state_ = WaitNode::State::waiting;
}
inline void WaitList::push_woken(WaitNode& node) {
  append(node);
  node.state_ = WaitNode::State::woken;
}

// Selects the coroutine to resume when an awaited operation completes. It is called once.
class Selector : public WaitNode {
 public:
  // Returns the coroutine to resume; nullptr: none yet. The returned one may have ended meanwhile:
  // then the coroutine that awaits it is resumed.
  using Select = Promise* (*)(Selector& self);

  explicit Selector(Select select) : WaitNode(Owner::selector), select_(select) {}

  Promise* awaiting = nullptr;  // Any promise of the fiber.

 private:
  friend class Continuation;
  Select select_;
};

// The continuation of an operation: a coroutine, or a Selector. The size of a pointer.
class Continuation {
 public:
  Continuation() = default;
  explicit Continuation(Promise& awaiting) : bits_(reinterpret_cast<std::uintptr_t>(&awaiting)) {}
  explicit Continuation(Selector& selector)
      : bits_(reinterpret_cast<std::uintptr_t>(&selector) | 1) {}

  explicit operator bool() const { return bits_ != 0; }
  bool is_selector() const { return (bits_ & 1) != 0; }
  // Must not be called if is_selector().
  Promise& promise() const { return *reinterpret_cast<Promise*>(bits_); }
  inline Promise& fiber() const;
  inline WaitNode& node() const;
  inline Promise* select() const;

  // Resumes the coroutine now, or, if its fiber is running the loop, when it next waits. Called
  // from the loop.
  inline void resume() const;
  // Resumes the coroutine after the running callback. Called from any other code.
  inline void wake() const;
  // Removes the coroutine from its list, and clears this: no coroutine is resumed.
  void cancel() {
    if (*this) node().unlink();
    bits_ = 0;
  }

 private:
  Selector& selector() const { return *reinterpret_cast<Selector*>(bits_ - 1); }

  std::uintptr_t bits_ = 0;
};

// The base of all tasks' promises: of the root of a fiber, which belongs to a Scope, and of the
// tasks that are awaited.
class Promise : public WaitNode {
 public:
  Promise() : WaitNode(Owner::promise) {}
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
  // An exception that leaves the root ends the program: no code could catch it.
  void unhandled_exception() noexcept {
    if (is_root_) std::rethrow_exception(std::current_exception());
    new (&exception_) std::exception_ptr(std::current_exception());
    flags_ |= kFailed;
  }
  void rethrow() {
    if (has_failed()) std::rethrow_exception(exception_);
  }

  std::coroutine_handle<> handle() { return std::coroutine_handle<Promise>::from_promise(*this); }

  // ---- an awaited task

  // Runs it to its first wait. False if it is done.
  bool start(Promise& fiber) {
    root_ = &fiber;
    handle().resume();
    return !has_ended();
  }
  void set_continuation(Continuation continuation) { continuation_ = continuation; }
  // Prepares a generator, which has returned a value, for the next one.
  void start_again() {
    flags_ = 0;
    continuation_ = Continuation();
  }
  // Marks it done: by co_return, by an error of or_return(), or because a generator has a value.
  // The awaiting coroutine is resumed next, after this call has returned, and takes the result: no
  // frame is destroyed inside its own call.
  void end() noexcept { flags_ |= kEnded; }
  bool has_ended() const { return (flags_ & kEnded) != 0; }

  // ---- the root of a fiber

  Promise& fiber() { return is_root_ ? *this : *root_; }
  bool is_running() const { return is_running_; }
  // Returns is_running(). If true, settle() feeds the Scope's queue, so that waiters that could not
  // be resumed now are resumed later.
  bool defer_if_running() {
    if (is_running_) flags_ |= kMissed;
    return is_running_;
  }
  // Returns whether it was cancelled while running: it is destroyed when it next waits.
  bool is_cancelled() const { return (flags_ & kCancelled) != 0; }
  Scope& scope() const { return *scope_; }
  inline Loop& loop() const;
  // Calls `code`, which may run user code and cancel the fiber. The fiber is not destroyed before
  // `code` has returned, but may be before this returns.
  template <class F>
  void call_pinned(F code) {
    is_running_ = true;
    code();
    end_run();
  }
  // Resumes one of the fiber's coroutines, and those that await it if it ends.
  inline void resume(Continuation continuation);
  inline void resume(Promise& awaiting);

 protected:
  // Suspends for ever at the end. The code that resumed the coroutine sees has_ended().
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

  // Bits of flags_, handled when the fiber stops running.
  static constexpr std::uint8_t kCancelled = 1;
  static constexpr std::uint8_t kEnded = 2;
  static constexpr std::uint8_t kFailed = 4;  // An exception was thrown.
  static constexpr std::uint8_t kMissed = 8;  // A coroutine of the fiber could not be resumed in
                                              // time.

  bool has_failed() const { return (flags_ & kFailed) != 0; }
  // Returns the coroutine to resume after this one: none until it has ended.
  Promise* next() const { return has_ended() && !is_root_ ? continuation_.select() : nullptr; }
  inline void run(Promise* next);
  // Called when all coroutines of the fiber are suspended.
  inline void end_run();
  SPATE_EXPORT void settle();
  // Destroys the root's frame. Destructors in it may wake or resume other tasks of the fiber,
  // which has no effect.
  void destroy();

  std::uint8_t flags_ = 0;  // These four fill the padding of WaitNode.
  bool is_running_ = false;
  bool is_root_ = false;
  bool returns_result_ = false;

  union {
    Promise* root_;  // If awaited.
    Scope* scope_;   // If root; nullptr after the Scope was destroyed.
  };
  // If awaited: the continuation and the exception. If root: the links of the Scope's list.
  union {
    Continuation continuation_{};
    Promise* newer_;
  };
  union {
    std::exception_ptr exception_;
    Promise* older_;
  };
};

inline Promise& Continuation::fiber() const {
  return (is_selector() ? *selector().awaiting : promise()).fiber();
}

inline WaitNode& Continuation::node() const {
  if (is_selector()) return selector();
  return promise();
}

inline Continuation WaitNode::as_continuation() {
  if (owner_ == Owner::selector) return Continuation(static_cast<Selector&>(*this));
  return Continuation(static_cast<Promise&>(*this));
}

inline Promise* Continuation::select() const {
  return is_selector() ? selector().select_(selector()) : &promise();
}

// Implements await_suspend() for the awaitables described above.
template <class Self>
class Operation {
 public:
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& promise = handle.promise();
    if (promise.fiber().is_cancelled()) return true;
    return static_cast<Self*>(this)->start(promise.fiber(), Continuation(promise));
  }

 protected:
  Operation() = default;
  ~Operation() = default;
};

}  // namespace spate::coro
