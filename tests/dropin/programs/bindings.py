#!/usr/bin/env python3
"""Bindings of libevent for other languages, and libraries that run on libevent's loop."""

import harness
from peers.lines import Lines
from peers.table import Table

RANKS = 4

table = Table()

LUA = """
local event, socket = require "luaevent.core", require "socket"
local base = event.new()
local server = assert(socket.bind("127.0.0.1", arg[1]))
local served, ticks = {}, 0
server:settimeout(0)

local function serve(client)
  local input, output = event.buffer.new(), event.buffer.new()
  local function ready(what)
    if what == event.EV_READ then
      local size, why = input:read(client:getfd(), 65536)
      if why == "closed" or size == 0 then
        served[client] = nil
        client:close()
        return event.LEAVE
      end
      local line = input:readline()
      while line do
        if line == "ticks" then line = tostring(ticks > 0) end
        output:add(line:upper(), "\\n")
        line = input:readline()
      end
    end
    if output:length() > 0 then output:write(client) end
    return output:length() > 0 and event.EV_READ + event.EV_WRITE or event.EV_READ
  end
  served[client] = base:addevent(client, event.EV_READ, ready)
end

local accepting = base:addevent(server, event.EV_READ, function()
  local client = server:accept()
  if client then client:settimeout(0) serve(client) end
  return event.EV_READ
end)
local ticking = base:addevent(nil, event.EV_TIMEOUT,
  function() ticks = ticks + 1 return event.EV_TIMEOUT, 0.01 end, 0.01)
base:loop()
"""


@table.row("lua5.3")
def lua_event(run):
    """A server of lines on buffers, and a timer."""
    port = harness.free_port()
    # Unsent output is lost, on the original library too: a callback cannot wait for both
    # directions.
    server = run.start("lua5.3", run.file("server.lua", LUA), port,
                       weather=harness.Weather(share=0.2, calls="in"))
    server.wait_tcp(port)
    server.assert_uses()
    talks = [Lines(port) for _ in range(5)]
    for number in range(50):
        for talk in talks:
            talk.say(*(f"line {number}.{word}" for word in range(20)))
        for talk in talks:
            for word in range(20):
                heard = talk.hear()
                harness.check(heard == f"LINE {number}.{word}", f"heard {heard!r}")
    talks[0].ask("ticks", "TRUE")
    for talk in talks:
        talk.close()


# PMIx: the processes exchange a number. pmix_common.h: 14 is PMIX_UINT32, 3 PMIX_GLOBAL.
PMIX = """
import ctypes, os, sys
pmix = ctypes.CDLL("libpmix.so.2")
class Proc(ctypes.Structure):
    _fields_ = [("nspace", ctypes.c_char * 256), ("rank", ctypes.c_uint32)]
class Value(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint16), ("number", ctypes.c_uint64),
                ("rest", ctypes.c_uint64 * 2)]
def do(result):
    if result != 0: sys.exit(f"failed: {result}")
me = Proc()
do(pmix.PMIx_Init(ctypes.byref(me), None, 0))
do(pmix.PMIx_Put(ctypes.c_uint8(3), b"number", ctypes.byref(Value(14, 1000 + me.rank))))
do(pmix.PMIx_Commit())
do(pmix.PMIx_Fence(None, 0, None, 0))
got = []
for rank in range(int(sys.argv[1])):
    value = ctypes.POINTER(Value)()
    do(pmix.PMIx_Get(ctypes.byref(Proc(me.nspace, rank)), b"number", None, 0, ctypes.byref(value)))
    got.append(value.contents.number & 0xffffffff)
print(f"rank {me.rank} has {got}", flush=True)
do(pmix.PMIx_Finalize(None, 0))
"""


# With the original library too, messages between its processes are lost under any faults.
@table.row("mpirun", "python3", has_traffic=False)
def mpirun(run):
    """Open MPI's runtime starts processes and passes on their output; they communicate by PMIx."""
    program = run.start("mpirun", *(["--allow-run-as-root"] if harness.is_root() else []),
                        "--oversubscribe", "-n", RANKS, "python3", "-c", PMIX, RANKS,
                        weather=False)
    program.assert_uses()
    output = program.wait()
    numbers = [1000 + rank for rank in range(RANKS)]
    for rank in range(RANKS):
        harness.check(f"rank {rank} has {numbers}" in output, output)


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
