#include "spate/named_callback.h"

#include <mutex>

namespace spate {

namespace {

constinit std::mutex names_lock;
constinit NamedCallback* first_name = nullptr;

}  // namespace

NamedCallback::NamedCallback(Node::Callback callback, ActiveKind kind, DescribeActive describe)
    : callback_(callback), kind_(kind), describe_(describe) {
  const std::lock_guard lock(names_lock);
  next_ = first_name;
  first_name = this;
}

// A library that the program unloads takes its callbacks along.
NamedCallback::~NamedCallback() {
  const std::lock_guard lock(names_lock);
  NamedCallback** link = &first_name;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

void NamedCallback::apply(const Node& node, ActiveInfo& info) {
  DescribeActive describe = nullptr;
  {
    const std::lock_guard lock(names_lock);
    const NamedCallback* name = first_name;
    while (name != nullptr && name->callback_ != node.callback) name = name->next_;
    if (name == nullptr) return;
    info.kind = name->kind_;
    describe = name->describe_;
  }
  info.id = node.context;
  if (describe != nullptr) describe(node, info);
}

}  // namespace spate
