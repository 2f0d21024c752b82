// Responds with 200 to every request that it has read completely.   node server.js PORT
const http = require('http');

const server = http.createServer((request, response) => {
  request.on('error', () => response.destroy());
  request.on('end', () => response.end());
  request.resume();
});
server.on('checkExpectation', (request, response) => {
  response.writeHead(417);
  response.end();
});
server.on('upgrade', (request, socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
server.listen(Number(process.argv[2]), '127.0.0.1');
