// NamedCallback: the kind under which for_each_active() lists a watcher, found by its callback. It
// needs no space in a watcher, and no time until for_each_active() is called.
//
// Programs do not need this header. Libraries built on spate use it, so that the list shows their
// objects instead of their watchers:
//
//   timer_(loop, named<Timer, ActiveKind::relay>(bind<&Relay::on_look>(this)))
//
// Threads: any.
#pragma once

#include "spate/active.h"
#include "spate/delegate.h"
#include "spate/export.h"
#include "spate/layer/node.h"

namespace spate {

// Completes an entry: label, id, or count 0 for one that is not to be listed. The entry's id is the
// node's context.
using DescribeActive = void (*)(const Node& node, ActiveInfo& info);

class SPATE_EXPORT NamedCallback {
 public:
  NamedCallback(Node::Callback callback, ActiveKind kind, DescribeActive describe);
  ~NamedCallback();
  NamedCallback(const NamedCallback&) = delete;
  NamedCallback& operator=(const NamedCallback&) = delete;

  // Completes `info` if the node's callback has a name. Any thread.
  static void apply(const Node& node, ActiveInfo& info);

 private:
  const Node::Callback callback_;
  const ActiveKind kind_;
  const DescribeActive describe_;
  NamedCallback* next_;
};

// Returns a watcher's callback, and names it. The type of `callable` must not be used with another
// name, so bind a method or write a lambda.
template <class W, ActiveKind kind, DescribeActive describe = nullptr, class F>
Delegate<W> named(F callable) {
  const Delegate<W> delegate(callable);
  static const NamedCallback name(delegate.thunk(), kind, describe);
  return delegate;
}

// Describes a watcher that does not keep the loop alive, because its owner calls Loop::unref(). The
// owner lists its work itself.
inline void hide_active(const Node&, ActiveInfo& info) { info.count = 0; }

}  // namespace spate
