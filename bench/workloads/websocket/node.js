#!/usr/bin/env node
// `ws` on Node, without compression: each message is sent back as it was received, or to all.
'use strict';
const fs = require('node:fs');
module.paths.push('/usr/share/nodejs');  // Debian's modules, which other builds of Node do not find.
const {WebSocketServer} = require('ws');

// Signals as in bench/harness/README.md. The heap is not reported, since V8's is mostly garbage.
const tally = 'tally 0 0 0 0 0 0\n';
process.on('SIGUSR1', () => fs.writeSync(1, tally));
process.on('SIGTERM', () => {
  fs.writeSync(1, tally);
  process.exit(0);
});

const options = {port: 0, host: '127.0.0.1', backlog: 4096, perMessageDeflate: false};
const server = new WebSocketServer(options, () => {
  fs.writeSync(1, `{"version": "${process.version}", "library": ""}\n`);
  fs.writeSync(1, `ready ${process.pid} ${server.address().port}\n`);
});
server.on('connection', (socket, request) => {
  socket.on('message', (bytes, isBinary) => {
    const told = request.url === '/tell' ? server.clients : [socket];
    for (const each of told) each.send(bytes, {binary: isBinary});
  });
});
