#!/usr/bin/env python3
"""nginx, one process: handshakes only, without requests."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import server  # noqa: E402

CONFIGURATION = """
daemon off; master_process off; pid ROOT/pid; error_log stderr crit; worker_rlimit_nofile 19000;
events { worker_connections 18000; multi_accept on; }
http {
  access_log off; tcp_nodelay on;
  client_body_temp_path ROOT; proxy_temp_path ROOT; fastcgi_temp_path ROOT;
  uwsgi_temp_path ROOT; scgi_temp_path ROOT;
  ssl_certificate ROOT/chain.pem; ssl_certificate_key ROOT/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
  ssl_session_tickets on; ssl_session_cache off;
  server { listen 127.0.0.1:PORT ssl backlog=4096; return 200; }
}
"""


def main():
    options = server.arguments()
    with tempfile.TemporaryDirectory() as root:
        subprocess.run([options.client, "--make", root], check=True)
        port = server.free_port()
        file = pathlib.Path(root, "configuration")
        file.write_text(CONFIGURATION.replace("ROOT", root).replace("PORT", str(port)))
        sys.argv += ["--certificate", root]
        with server.running(options, "-c", str(file), port=port) as (process, _):
            server.tell(version=server.nginx_version(options.program), library="")
            print(server.load_there(options, process, port), end="")


if __name__ == "__main__":
    main()
