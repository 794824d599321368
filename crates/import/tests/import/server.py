"""A web server for tests on a free port, which it prints: `git http-backend` below /git/, files below /, and some oddities.

Arguments: the folder of repositories, the folder of files.
"""

import os
import subprocess
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

repositories, files = sys.argv[1:3]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/git/"):
            return self.git(path, query)
        if path == "/redirect":
            return self.answer(302, b"", {"Location": urllib.parse.unquote(query)})
        if path == "/loop":
            return self.answer(302, b"", {"Location": "/loop"})
        if path == "/large.zip":
            self.send_response(200)
            self.send_header("Content-Length", str(300 << 20))
            self.end_headers()
            self.close_connection = True
            return None
        name = os.path.join(files, urllib.parse.unquote(path).lstrip("/"))
        if not os.path.isfile(name):
            return self.answer(404, b"not here")
        with open(name, "rb") as file:
            return self.answer(200, file.read())

    def do_POST(self):
        path, _, query = self.path.partition("?")
        return self.git(path, query)

    def git(self, path, query):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": repositories,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
            "PATH_INFO": urllib.parse.unquote(path[len("/git") :]),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self.answer(status, content, headers)

    def answer(self, status, content, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
