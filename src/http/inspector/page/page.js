'use strict';
// Shows the states that come from "events", one after another. All text is set as text.
const SAMPLES = 60, ROWS = 200;
const at = (id) => document.getElementById(id);
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};

// ---- numbers

const whole = (n) => Math.round(n).toLocaleString('en');
const bytes = (n) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; n /= 1024) ++unit;
  return (unit && n < 10 ? n.toFixed(1) : Math.round(n)) + ' ' + units[unit];
};
const span = (s) => s === 0 ? '0 s' : s < 1e-3 ? Math.round(s * 1e6) + ' us' :
    s < 1 ? Math.round(s * 1e3) + ' ms' :
    s < 120 ? s.toFixed(s < 10 && s % 1 ? 1 : 0) + ' s' : s < 7200 ? Math.round(s / 60) + ' min' :
    s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' d';
const share = (n) => Math.round(n * 100) + ' %';
const maybe = (show, n) => n === undefined ? '' : show(n);

// ---- loops

const cards = new Map();  // The card of each loop and its last state, by name.

function loopCard(name) {
  const card = {root: make('article', 'card'), past: []};
  const top = make('div', 'top'), busy = make('div', 'busy');
  card.status = make('span', 'badge');
  top.append(make('h3', '', name), card.status);
  card.share = make('b', '', '\u2013');
  const chart = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  card.line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  chart.setAttribute('viewBox', `0 0 ${SAMPLES - 1} 100`);
  chart.setAttribute('preserveAspectRatio', 'none');
  chart.setAttribute('role', 'img');
  chart.setAttribute('aria-label', `busy share of ${name}`);
  chart.append(card.line);
  busy.append(card.share, chart);
  card.why = make('p', 'why');
  card.list = make('dl');
  card.root.append(top, card.why, busy, card.list);
  return card;
}

function pairs(list, rows) {
  list.replaceChildren(...rows.flatMap(
      ([name, text]) => [make('dt', '', name), make('dd', '', text)]));
}

function why(loop) {
  if (loop.status !== 'blocked') return '';
  const running = loop.running;
  if (!running) return `no response for ${span(loop.silent)}`;
  return `no response for ${span(loop.silent)}: in a callback of ${running.kind}` +
      (running.peer ? `, ${running.peer},` : '') + ` for ${span(running.seconds)}`;
}

// Streams and requests have a table, so only the first entries of each kind are named.
function keptBy(loop) {
  const kinds = new Map();
  for (const {kind, label, count} of loop.kept_by) {
    if (count === 0) continue;
    const entry = kinds.get(kind) ?? {count: 0, labels: []};
    entry.count += count;
    if (label !== '' && entry.labels.length < 3) entry.labels.push(label);
    kinds.set(kind, entry);
  }
  const texts = [...kinds].map(([kind, {count, labels}]) =>
      `${whole(count)} ${kind}` + (labels.length > 0 ? ` (${labels.join(', ')})` : ''));
  return texts.length > 0 ? texts.join('; ') : whole(loop.active);
}

function showLoop(card, loop, elapsed) {
  const before = card.before, good = loop.status === 'responsive';
  card.root.classList.toggle('bad', loop.status === 'blocked');
  card.status.className = good ? 'badge good' : 'badge bad';
  card.status.textContent = loop.status;
  card.why.textContent = why(loop);
  if (loop.turns === undefined) return;
  let busy;
  const rate = (field) => before && elapsed > 0 ? (loop[field] - before[field]) / elapsed : 0;
  if (before && good) {
    const measured = loop.busy - before.busy + loop.blocked - before.blocked;
    if (measured > 0) busy = Math.min(1, (loop.busy - before.busy) / measured);
  }
  if (!good) busy = loop.status === 'blocked' ? 1 : 0;
  if (busy !== undefined) {
    card.past.push(busy);
    if (card.past.length > SAMPLES) card.past.shift();
    card.share.textContent = share(busy) + ' busy';
    const first = SAMPLES - card.past.length;
    card.line.setAttribute('points', card.past.map(
        (value, i) => `${first + i},${(98 - 96 * value).toFixed(1)}`).join(' '));
  }
  pairs(card.list, [
    ['callbacks / s', whole(rate('events'))], ['turns / s', whole(rate('turns'))],
    ['longest callback', loop.longest_callback ?
        `${span(loop.longest_callback)} (${loop.longest_kind})` : 'not measured yet'],
    ['pending', whole(loop.pending)], ['timers', whole(loop.timers)],
    ['descriptors', whole(loop.descriptors)], ['streams', whole(loop.streams.count)],
    ['queued', bytes(loop.streams.queued)], ['backend', loop.backend],
    ['kept alive by', keptBy(loop)],
  ]);
  card.before = good ? loop : undefined;
}

function showLoops(state, elapsed) {
  const names = new Set(state.loops.map((loop) => loop.name));
  for (const name of cards.keys()) if (!names.has(name)) cards.delete(name);
  for (const loop of state.loops) {
    if (!cards.has(loop.name)) cards.set(loop.name, loopCard(loop.name));
    showLoop(cards.get(loop.name), loop, elapsed);
  }
  const roots = state.loops.map((loop) => cards.get(loop.name).root);
  if (roots.some((root, i) => at('loops').children[i] !== root) ||
      roots.length !== at('loops').children.length) at('loops').replaceChildren(...roots);
}

// ---- the program's own numbers

const total = (readings, field) => readings.reduce((sum, reading) => sum + reading[field], 0);

function readingText(name, value) {
  return value === null ? '-' : /bytes$/.test(name) ? bytes(value) : value.toLocaleString('en');
}

// Numbers of one name are added up, and then listed by their labels.
function readingRow([name, readings]) {
  const count = total(readings, 'value');
  if (readings[0].kind === 'histogram')
    return [name, whole(count) + (count > 0 ?
        `, ${span(total(readings, 'sum') / count)} on average` : '')];
  if (readings.length === 1) return [name, readingText(name, readings[0].value)];
  const parts = readings.map((reading) => Object.values(reading.labels ?? {}).join(' ') + ': ' +
      readingText(name, reading.value));
  return [name, `${readingText(name, count)} (${parts.join(', ')})`];
}

function readingRows(source) {
  const names = new Map();
  for (const reading of source.readings) {
    if (!names.has(reading.name)) names.set(reading.name, []);
    names.get(reading.name).push(reading);
  }
  return [...names].map(readingRow);
}

function showSources(state) {
  at('sources-section').hidden = state.sources.length === 0;
  at('sources').replaceChildren(...state.sources.map((source) => {
    const card = make('article', 'card'), list = make('dl');
    pairs(list, readingRows(source));
    card.append(make('h3', '', source.source), list);
    return card;
  }));
}

// ---- streams

const COLUMNS = [
  ['loop', 'minor', (s) => s.loop], ['state', '', (s) => s.state],
  ['peer', 'address', (s) => s.peer], ['local', 'address minor', (s) => s.local],
  ['queued', 'number', (s) => s.queued, bytes], ['unread', 'number minor', (s) => s.unread, bytes],
  ['idle', 'number', (s) => s.idle, span],
  ['age', 'number minor', (s) => s.age, (age) => span(Math.round(age))],
  ['received', 'number minor', (s) => s.received, bytes],
  ['sent', 'number minor', (s) => s.sent, bytes],
  ['round trip', 'number minor', (s) => s.round_trip, span], ['TLS', 'minor', (s) => s.tls],
];
let order = {column: 4, sign: -1}, last;

function makeHead() {
  const row = at('streams').querySelector('thead tr');
  COLUMNS.forEach(([title, name], column) => {
    const cell = make('th', name), button = make('button', '', title);
    button.type = 'button';
    button.addEventListener('click', () => {
      order = {column, sign: order.column === column ? -order.sign : 1};
      if (last) showStreams(last);
    });
    cell.append(button);
    row.append(cell);
  });
}

const notes = (s) => s.state + (s.full ? ', full' : '') + (s.paused ? ', paused' : '') +
    (!s.owned ? ', left' : s.started ? '' : ', not started');

function compare(a, b) {
  const value = COLUMNS[order.column][2], x = value(a) ?? -1, y = value(b) ?? -1;
  return order.sign * (typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y);
}

function streamRow(stream) {
  const row = make('tr', stream.full ? 'full' : '');
  row.append(...COLUMNS.map(([title, name, value, show]) => make('td', name,
      title === 'state' ? notes(stream) : show ? maybe(show, value(stream)) : value(stream))));
  return row;
}

function showStreams(state) {
  const all = [], counts = new Map();
  let total = 0;
  for (const loop of state.loops) {
    if (!loop.streams) continue;
    total += loop.streams.count;
    for (const [name, count] of Object.entries(loop.streams.by_state))
      counts.set(name, (counts.get(name) ?? 0) + count);
    for (const stream of loop.streams.listed) all.push({...stream, loop: loop.name});
  }
  at('counts').textContent = `${whole(total)} in all` + [...counts].filter(([, n]) => n > 0).map(
      ([name, n]) => `, ${whole(n)} ${name}`).join('');
  const wanted = at('filter').value.trim().toLowerCase();
  const kept = all.filter((stream) => wanted === '' ||
      `${stream.loop} ${notes(stream)} ${stream.peer} ${stream.local} ${stream.tls}`
          .toLowerCase().includes(wanted)).sort(compare);
  at('streams').querySelectorAll('th').forEach((cell, column) => cell.setAttribute('aria-sort',
      column !== order.column ? 'none' : order.sign > 0 ? 'ascending' : 'descending'));
  at('streams').querySelector('tbody').replaceChildren(...kept.slice(0, ROWS).map(streamRow));
  const hidden = kept.length - Math.min(kept.length, ROWS);
  const unlisted = total - all.length;
  at('left-out').textContent = (hidden > 0 ? `${whole(hidden)} more match. ` : '') +
      (unlisted > 0 ? `${whole(unlisted)} are only counted.` : '');
}

// ---- events

let heard, held = false;

function say(text, good) {
  at('live').textContent = text;
  at('live').className = good ? 'badge good' : 'badge bad';
}

function show(state) {
  const elapsed = last ? state.time - last.time : 0;
  showLoops(state, elapsed);
  showSources(state);
  last = state;
  showStreams(state);
}

makeHead();
at('filter').addEventListener('input', () => last && showStreams(last));
at('hold').addEventListener('click', () => {
  held = !held;
  at('hold').setAttribute('aria-pressed', held);
});
const events = new EventSource('events');
events.addEventListener('message', (event) => {
  heard = performance.now();
  say(held ? 'held' : 'live', !held);
  if (!held) show(JSON.parse(event.data));
});
events.addEventListener('error', () => say(
    events.readyState === EventSource.CLOSED ? 'refused: too many look, or it has gone' :
    'lost: trying again', false));
setInterval(() => {
  const silent = heard === undefined ? 0 : (performance.now() - heard) / 1000;
  const patience = last ? 3 * last.period + 1 : 5;
  if (silent > patience && events.readyState === EventSource.OPEN)
    say(`no news for ${span(silent)}: the loop of the inspector itself?`, false);
}, 1000);
