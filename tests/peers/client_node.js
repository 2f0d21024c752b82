// A client with Node's http and http2, which reads jobs: see table.py.
const http = require('http');
const http2 = require('http2');
const readline = require('readline');

function collect(response, resolve, reject, status) {
  let text = '';
  response.setEncoding('utf8');
  response.on('data', (piece) => { text += piece; });
  response.on('end', () => resolve({status: status(), body: text}));
  response.on('error', reject);
  response.on('aborted', () => reject(new Error('aborted')));
}

function sendBody(request, job) {
  if (job.body === 'chunked') {
    request.write('ch');
    return request.end('unk');
  }
  return job.size ? request.end(Buffer.alloc(job.size, 'b')) : request.end();
}

function askHttp1(agent, port, job, timeout) {
  return new Promise((resolve, reject) => {
    const headers = {};
    if (job.size && job.body !== 'chunked') headers['Content-Length'] = job.size;
    if (job.body === 'expected') headers['Expect'] = '100-continue';
    const method = job.size ? 'POST' : 'GET';
    const request = http.request({agent, port, host: '127.0.0.1', path: job.path, method, headers},
        (response) => collect(response, resolve, reject, () => response.statusCode));
    request.on('error', reject);
    request.setTimeout(timeout, () => request.destroy(new Error('late')));
    if (job.body !== 'expected') return sendBody(request, job);
    request.flushHeaders();
    request.on('continue', () => sendBody(request, job));
    return undefined;
  });
}

function askHttp2(client, job, timeout) {
  return new Promise((resolve, reject) => {
    const stream = client.request({':path': job.path, ':method': job.size ? 'POST' : 'GET'},
                                  {endStream: job.size === 0});
    let status;
    stream.on('response', (fields) => { status = fields[':status']; });
    stream.on('close', () => { if (status === undefined) reject(new Error('closed')); });
    stream.setTimeout(timeout, () => { stream.close(8); reject(new Error('late')); });
    collect(stream, resolve, reject, () => status);
    if (job.size) sendBody(stream, job);
  });
}

async function run(job) {
  const results = [];
  const agent = new http.Agent({keepAlive: true, maxSockets: 1});
  const client = job.version === '2' ? http2.connect('http://127.0.0.1:' + job.port) : null;
  if (client) client.on('error', () => {});
  for (const each of job.requests) {
    const asked = client ? askHttp2(client, each, job.timeout * 1000)
                         : askHttp1(agent, job.port, each, job.timeout * 1000);
    try {
      results.push(await asked);
    } catch (error) {
      results.push({error: String(error)});
    }
  }
  agent.destroy();
  if (client) client.destroy();
  return results;
}

(async () => {
  for await (const line of readline.createInterface({input: process.stdin}))
    console.log(JSON.stringify(await run(JSON.parse(line))));
})();
