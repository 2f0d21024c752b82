// A client in Node: connects twice, receives an echo, and ends; prints the negotiated parameters.
// The second time it resumes.   client.js PORT FOLDER VERSION
const fs = require('fs');
const tls = require('tls');
const [port, folder, version] = process.argv.slice(2);
const read = (name) => fs.readFileSync(`${folder}/${name}.pem`);

function talk(session, then) {
  let heard = '';
  const stream = tls.connect({
    port, host: '127.0.0.1', servername: 'localhost', ca: read('root'), cert: read('chain'),
    key: read('key'), ALPNProtocols: ['echo'], minVersion: version, maxVersion: version, session,
    allowHalfOpen: true,
  });
  stream.on('session', (given) => { session = given; });
  stream.on('secureConnect', () => stream.end('x'.repeat(200000)));
  stream.on('data', (bytes) => { heard += bytes; });
  stream.on('end', () => {
    const resumed = stream.isSessionReused() ? ' resumed' : '';
    console.log(`${stream.getProtocol()} ${stream.alpnProtocol} ${heard.length}${resumed}`);
    then(session);
  });
  stream.on('error', (error) => { console.log(error.message); process.exit(1); });
}

talk(undefined, (session) => talk(session, () => {}));
