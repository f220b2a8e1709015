#!/usr/bin/env python3
"""Stands where Neutron would: has no networks, no ports, no anything, and says so.

    network-stub.py ADDRESS PORT

Servers are created without a network (--nic none); Nova and the client ask all the same.
"""

import http.server
import json
import sys


class Stub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts == [""]:
            link = {"rel": "self", "href": f"http://{self.headers.get('Host')}/v2.0/"}
            self.answer(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]})
        elif len(parts) == 1:
            self.answer(200, {"resources": []})
        elif len(parts) == 2:  # /v2.0/security-groups -> {"security_groups": []}
            self.answer(200, {parts[1].removesuffix(".json").replace("-", "_"): []})
        else:
            self.refuse()

    def refuse(self):
        # A body that is not read would be taken for the next request.
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        error = {"type": "NotFound", "message": "this is a stub", "detail": ""}
        self.answer(404, {"NeutronError": error})

    do_POST = do_PUT = do_DELETE = refuse

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Stub)
    server.serve_forever()
