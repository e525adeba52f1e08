import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from greeting import greet


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{greet('a workspace of uv')}\n".encode())


ThreadingHTTPServer(("", int(os.environ["PORT"])), Handler).serve_forever()
