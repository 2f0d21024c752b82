"""Frame Streams: files of frames, in the format of fstrm_capture and fstrm_replay
(fstrm/control.h)."""

import struct

START, STOP = 2, 3
CONTENT_TYPE = 1


def control(kind, content=b""):
    field = struct.pack(">2L", CONTENT_TYPE, len(content)) + content if content else b""
    return struct.pack(">3L", 0, 4 + len(field), kind) + field


def pack(content_type, frames):
    data = b"".join(struct.pack(">L", len(frame)) + frame for frame in frames)
    return control(START, content_type) + data + control(STOP)


def unpack(data):
    """Returns the frames of a file, which must have the start and the stop frame."""
    frames, ends, position = [], 0, 0
    while position < len(data):
        size = struct.unpack_from(">L", data, position)[0]
        position += 4
        if size == 0:
            size = struct.unpack_from(">L", data, position)[0]
            position += 4
            ends += 1
        else:
            frames.append(data[position:position + size])
        position += size
    if position != len(data) or ends != 2:
        raise ValueError(f"{ends} control frames, {position} of {len(data)} bytes")
    return frames
