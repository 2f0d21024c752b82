#!/usr/bin/env node
// Node's http2: one function for all requests.
'use strict';
const fs = require('node:fs');
const http2 = require('node:http2');

const hello = Buffer.from('Hello, World!');
const page = Buffer.alloc(20 * 1024, 'p');

const server = http2.createServer((request, response) => {
  const body = request.url === '/hello' ? hello : page;
  response.writeHead(200,
                     {'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': body.length});
  response.end(body);
});

// Signals as in bench/harness/README.md. The heap is not reported, since V8's is mostly garbage.
const tally = 'tally 0 0 0 0 0 0\n';
process.on('SIGUSR1', () => fs.writeSync(1, tally));
process.on('SIGTERM', () => {
  fs.writeSync(1, tally);
  process.exit(0);
});

server.listen({port: 0, host: '127.0.0.1', backlog: 4096}, () => {
  fs.writeSync(1, `{"version": "${process.version}", "library": ""}\n`);
  fs.writeSync(1, `ready ${process.pid} ${server.address().port}\n`);
});
