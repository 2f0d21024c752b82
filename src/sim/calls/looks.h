// Looks for events, in a row, that waited for nothing and found nothing.
#pragma once

namespace spate::sim {

// Of this thread, since the World last turned a host.
inline thread_local int looks_in_vain = 0;

}  // namespace spate::sim
