// A server in Node: echoes to clients with a certificate.   server.js FOLDER VERSION
const fs = require('fs');
const tls = require('tls');
const [folder, version] = process.argv.slice(2);
const read = (name) => fs.readFileSync(`${folder}/${name}.pem`);

const server = tls.createServer({
  cert: read('chain'), key: read('key'), ca: read('root'), requestCert: true,
  ALPNProtocols: ['echo'], minVersion: version, maxVersion: version, allowHalfOpen: true,
}, (stream) => {
  stream.pipe(stream);
  stream.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port} `));
