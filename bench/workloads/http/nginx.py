#!/usr/bin/env python3
"""nginx, one process: the short answer by `return`, files by sendfile."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import ready_made, server  # noqa: E402

# nginx closes kept-alive connections when only a sixteenth of its connections are free.
CONFIGURATION = """
daemon off; master_process off; pid ROOT/pid; error_log stderr crit; worker_rlimit_nofile 20000;
events { worker_connections 24000; multi_accept on; }
http {
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;
  open_file_cache max=16; default_type "text/plain; charset=utf-8"; etag off; server_tokens off;
  client_body_temp_path ROOT; proxy_temp_path ROOT; fastcgi_temp_path ROOT;
  uwsgi_temp_path ROOT; scgi_temp_path ROOT;
  server {
    listen 127.0.0.1:PORT backlog=4096; root ROOT;
    location = /hello { return 200 "Hello, World!"; }
  }
}
"""


if __name__ == "__main__":
    ready_made.main(
        lambda root, port: CONFIGURATION.replace("ROOT", str(root)).replace("PORT", str(port)),
        lambda file: ("-c", str(file)), server.nginx_version)
