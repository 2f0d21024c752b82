"""Reading a stream that arrives in pieces."""


def receive(stream, size):
    """Returns that many bytes of a socket, or fewer if it ends before. Not MSG_WAITALL, which
    does not wait on a socket that has a timeout."""
    data = b""
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data
