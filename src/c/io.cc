// spate_io.
#include "c/watchers.h"

using namespace spate;
using c::IoPart;

namespace {

bool may_ask_for(std::uint32_t events) {
  return (events & ~static_cast<std::uint32_t>(kIoEvents)) == 0;
}

bool is_set(const IoPart& io) { return io.node.fd >= 0; }

}  // namespace

void spate_io_init(spate_io* io, spate_loop* loop, spate_io_fn* callback, void* data) {
  c::init<IoPart>(io, loop, callback, data).node.fd = -1;
}

int spate_io_set(spate_io* io, int fd, uint32_t events) {
  if (fd < 0 || !may_ask_for(events)) return -EINVAL;
  return c::set_anew(io, spate_io_start, spate_io_stop, [&] {
    FdNode& node = c::part_of<IoPart>(io).node;
    node.fd = fd;
    node.events = events | kFdIsNew;
  });
}

int spate_io_modify(spate_io* io, uint32_t events) {
  if (!may_ask_for(events)) return -EINVAL;
  IoPart& part = c::part_of<IoPart>(io);
  if (c::is_known(part.node.head)) {
    c::core_behind(part.loop).modify_fd(part.node, static_cast<Events>(events));
  } else {
    part.node.events = (part.node.events & kFdIsNew) | events;
  }
  return 0;
}

int spate_io_start(spate_io* io) {
  IoPart& part = c::part_of<IoPart>(io);
  if (!is_set(part)) return -EINVAL;
  return c::start_by(
      part, [&](LoopCore& core) { return c::out_of_memory_unless(core.start_fd(part.node)); });
}

int spate_io_start_now(spate_io* io) {
  IoPart& part = c::part_of<IoPart>(io);
  if (!is_set(part)) return -EINVAL;
  return c::start_by(part,
                     [&](LoopCore& core) { return c::to_code(core.start_fd_now(part.node)); });
}

void spate_io_stop(spate_io* io) {
  IoPart& part = c::part_of<IoPart>(io);
  c::stop_by(part, [&](LoopCore& core) { core.stop_fd(part.node); });
}

void spate_io_stop_before_close(spate_io* io) {
  IoPart& part = c::part_of<IoPart>(io);
  c::stop_by(part, [&](LoopCore& core) { core.stop_fd_before_close(part.node); });
}

void spate_io_stop_now(spate_io* io) {
  IoPart& part = c::part_of<IoPart>(io);
  c::stop_by(part, [&](LoopCore& core) { core.stop_fd_now(part.node); });
}

int spate_io_fd(const spate_io* io) { return c::part_of<IoPart>(io).node.fd; }

uint32_t spate_io_events(const spate_io* io) {
  return c::part_of<IoPart>(io).node.events & ~kFdIsNew;
}

int spate_io_error(const spate_io* io) {
  return -static_cast<int>(c::part_of<IoPart>(io).node.head.extra);
}
