#!/usr/bin/env node
// Node's http: one function for all requests, the file by a stream.
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

const kFileSize = 1024 * 1024;
const hello = Buffer.from('Hello, World!');
const page = Buffer.alloc(20 * 1024, 'p');

// Stays open while the process runs.
function makeFile() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'spate-bench-'));
  const name = path.join(directory, 'file');
  fs.writeFileSync(name, Buffer.alloc(kFileSize, 'f'));
  const file = fs.openSync(name);
  fs.rmSync(directory, {recursive: true});
  return file;
}
const file = makeFile();

function begin(response, size) {
  response.writeHead(200, {'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': size});
}

function answer(response, body) {
  begin(response, body.length);
  response.end(body);
}

const server = http.createServer((request, response) => {
  if (request.url === '/hello') {
    answer(response, hello);
  } else if (request.url === '/page') {
    answer(response, page);
  } else if (request.url === '/file') {
    begin(response, kFileSize);
    fs.createReadStream(null, {fd: file, start: 0, autoClose: false}).pipe(response);
  } else {
    let size = 0;
    request.on('data', (bytes) => { size += bytes.length; });
    request.on('end', () => answer(response, Buffer.from(String(size))));
  }
});

// Signals as in bench/harness/README.md. The heap is not reported, since V8's is mostly garbage.
const tally = 'tally 0 0 0 0 0 0\n';
process.on('SIGUSR1', () => fs.writeSync(1, tally));
process.on('SIGTERM', () => {
  fs.writeSync(1, tally);
  process.exit(0);
});

server.keepAliveTimeout = 60 * 1000;
server.listen({port: 0, host: '127.0.0.1', backlog: 4096}, () => {
  fs.writeSync(1, `{"version": "${process.version}", "library": ""}\n`);
  fs.writeSync(1, `ready ${process.pid} ${server.address().port}\n`);
});
