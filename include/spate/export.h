// SPATE_EXPORT: what the shared library shows. Everything else is hidden.
#pragma once

#define SPATE_EXPORT __attribute__((visibility("default")))
