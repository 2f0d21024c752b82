// Lines of an access log.
#pragma once

#include <string>

#include "spate/http/access_log.h"
#include "spate/time.h"

namespace spate::http {

// Appends the line of an exchange that ended at `time`.
void append_access_line(std::string& line, const AccessRecord& record, AccessLogFormat format,
                        WallTime time);

}  // namespace spate::http
