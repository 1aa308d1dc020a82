// report.js - one compiled network: graph, active memory and engines over time,
// roofline, plans, tables. A layer that is chosen in one is marked in all.

// Rows of the data, by name.
const named = (rows, ...names) => rows.map(r => Object.fromEntries(names.map((n, i) => [n, r[i]])));
const events = named(DATA.events, 'node', 'name', 'op', 'lane', 'start', 'cycles', 'bound', 'read', 'written', 'macs');
const calls = named(DATA.calls, 'node', 'name', 'start', 'cycles');
const volumes = named(DATA.volumes, 'node', 'name', 'kind', 'memory', 'at', 'end', 'from', 'to');
const layers = DATA.layers;
const lanes = DATA.lanes.map((l, i) => ({...l, i})).filter(l => l.cycles > 0);
const END = Math.max(1, DATA.cycles);
const LEFT = innerWidth < 600 ? 46 : 72;
const ms = cycles => (cycles / DATA.clock * 1e3).toFixed(3) + ' ms';

// ---- what is chosen, and what time is seen ----

let chosen = -1;
const onChosen = [], onWindow = [];
const view = {from: 0, to: END};

function choose(node, follow = true) {
  chosen = node === chosen ? -1 : node;
  for (const f of onChosen) f(follow);
}
function look(from, to) {
  const width = Math.min(END, Math.max(to - from, Math.min(END, 20)));
  view.from = Math.max(0, Math.min(from, END - width));
  view.to = view.from + width;
  for (const f of onWindow) f();
}
function zoom(factor, centre = (view.from + view.to) / 2) {
  look(centre - (centre - view.from) / factor, centre + (view.to - centre) / factor);
}
// The time of all that a layer does, with some of its neighbours.
function lookAtChosen() {
  const mine = [...events, ...calls].filter(e => e.node === chosen);
  if (!mine.length) return;
  const from = Math.min(...mine.map(e => e.start)), to = Math.max(...mine.map(e => e.start + e.cycles));
  look(from - (to - from) * .5, to + (to - from) * .5);
}

// ---- pictures over time ----

const pictures = [];

// draw(c, x, width, height): x(cycle) in pixels; find(px, cycle, py): what is
// there: {node, tip}.
function timePicture(label, heightOf, draw, find) {
  const canvas = el('canvas', {tabindex: 0, role: 'img',
    'aria-label': label + '; arrow keys move, plus and minus zoom, n and p choose layers, 0 shows all'});
  let drag = null;
  const inner = () => canvas.clientWidth - LEFT - 8;
  const cycleAt = px => view.from + (px - LEFT) / inner() * (view.to - view.from);
  function paint() {
    const width = canvas.clientWidth, height = heightOf(), ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.style.height = height + 'px';
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const c = canvas.getContext('2d');
    c.scale(ratio, ratio);
    c.font = '11px system-ui, sans-serif';
    const x = cycle => LEFT + (cycle - view.from) / (view.to - view.from) * inner();
    draw(c, x, width, height);
    if (drag && drag.box) {
      c.fillStyle = colour('accent');
      c.globalAlpha = .2;
      c.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), height);
      c.globalAlpha = 1;
    }
  }
  const hit = e => e.offsetX < LEFT ? null : find(e.offsetX, cycleAt(e.offsetX), e.offsetY);
  canvas.addEventListener('pointerdown', e => {
    const whole = view.to - view.from >= END;
    drag = {x: e.offsetX, now: e.offsetX, from: view.from, to: view.to, box: whole || e.shiftKey, moved: false};
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({preventScroll: true});
  });
  canvas.addEventListener('pointermove', e => {
    if (!drag) {
      const found = hit(e);
      showTip(e, found ? found.tip : '');
      canvas.style.cursor = found ? 'pointer' : 'crosshair';
      return;
    }
    drag.now = e.offsetX;
    drag.moved = drag.moved || Math.abs(drag.now - drag.x) > 4;
    const by = (drag.x - drag.now) / inner() * (drag.to - drag.from);
    if (drag.box) paint();
    else look(drag.from + by, drag.to + by);
  });
  canvas.addEventListener('pointerup', e => {
    const d = drag;
    drag = null;
    if (!d) return;
    if (!d.moved) {
      const found = hit(e);
      if (found && found.node !== null) choose(found.node);
    } else if (d.box) {
      look(...[cycleAt(d.x), cycleAt(d.now)].sort((a, b) => a - b));
    }
    paint();
  });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', e => zoom(3, cycleAt(e.offsetX)));
  // A page that is scrolled must not zoom by accident.
  canvas.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.metaKey && document.activeElement !== canvas) return;
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 300), cycleAt(e.offsetX));
  }, {passive: false});
  canvas.addEventListener('keydown', onKey);
  onWindow.push(paint);
  onChosen.push(paint);
  onTheme.push(paint);
  pictures.push(paint);
  new ResizeObserver(paint).observe(canvas);
  return canvas;
}

function onKey(e) {
  const width = view.to - view.from;
  const keys = {
    ArrowLeft: () => look(view.from - width / 8, view.to - width / 8),
    ArrowRight: () => look(view.from + width / 8, view.to + width / 8),
    '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), '0': () => look(0, END),
    n: () => step(1), p: () => step(-1), Enter: lookAtChosen,
    Escape: () => { if (chosen >= 0) choose(chosen); },
  };
  if (!keys[e.key] || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  keys[e.key]();
}
// The next layer in the order of what happens.
const order = [...new Set([...events, ...calls].sort((a, b) => a.start - b.start).map(e => e.node))].filter(n => n !== null);
function step(by) {
  if (!order.length) return;
  const at = order.indexOf(chosen);
  const next = order[(at < 0 ? (by > 0 ? 0 : order.length - 1) : at + by + order.length) % order.length];
  if (next !== chosen) choose(next);
}

function timeAxis(c, x, top, height) {
  c.fillStyle = colour('soft');
  c.strokeStyle = colour('rule');
  c.textAlign = 'center';
  for (const v of ticks(view.from, view.to, Math.max(2, c.canvas.clientWidth / 130))) {
    c.beginPath();
    c.moveTo(x(v), top);
    c.lineTo(x(v), height - 16);
    c.stroke();
    c.fillText(short(v), x(v), height - 4);
  }
}
function label(c, text, x, y, width) {
  if (width < 24) return;
  let n = text.length;
  while (n > 2 && c.measureText(text.slice(0, n)).width > width - 6) n--;
  if (n < text.length && n < 4) return;
  c.fillStyle = colour('ink');
  c.textAlign = 'center';
  c.fillText(n < text.length ? text.slice(0, n - 1) + '\u2026' : text, x + width / 2, y);
}
const faded = node => chosen >= 0 && node !== chosen;

// ---- active memory ----

function memoryPicture(index) {
  const memory = DATA.memories[index];
  const mine = volumes.filter(v => v.memory === memory.id);
  const used = Math.max(1, ...mine.map(v => v.end));
  const top = used < memory.size * .8 ? used * 1.05 : memory.size;
  const HEIGHT = innerWidth < 600 ? 240 : 300, AXIS = 18;
  const y = at => (HEIGHT - AXIS) * (1 - at / top) + 2;
  const fills = {tiles: 'tiles', loaded: 'loaded'};
  function draw(c, x, width, height) {
    timeAxis(c, x, 0, height);
    c.textAlign = 'right';
    for (const v of ticks(0, top, 6)) {
      c.strokeStyle = colour('rule');
      c.beginPath();
      c.moveTo(LEFT, y(v));
      c.lineTo(width, y(v));
      c.stroke();
      c.fillStyle = colour('soft');
      c.fillText(short(v), LEFT - 4, Math.max(10, y(v) + 4));
    }
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, width - LEFT, height - AXIS + 4);
    c.clip();
    for (const v of [...mine.filter(v => faded(v.node)), ...mine.filter(v => !faded(v.node))]) {
      if (v.to < view.from || v.from > view.to) continue;
      const left = Math.max(x(v.from), LEFT - 2), w = Math.max(1, Math.min(x(v.to), width + 2) - left);
      const h = Math.max(1, y(v.at) - y(v.end));
      c.globalAlpha = faded(v.node) ? .35 : 1;
      c.fillStyle = colour(fills[v.kind] || 'v' + (v.node ?? 0) % 6);
      c.fillRect(left, y(v.end), w, h);
      if (w > 3 && h > 3) {
        c.strokeStyle = colour(v.node === chosen ? 'mark' : 'line');
        c.lineWidth = v.node === chosen ? 2 : .6;
        c.strokeRect(left, y(v.end), w, h);
      }
      if (h > 12) label(c, v.name, left, y(v.end) + h / 2 + 4, w);
    }
    c.globalAlpha = 1;
    c.setLineDash([4, 4]);
    c.strokeStyle = colour('soft');
    c.lineWidth = 1;
    for (let at = memory.partition; memory.partition && at < top; at += memory.partition) {
      c.beginPath();
      c.moveTo(LEFT, y(at));
      c.lineTo(width, y(at));
      c.stroke();
    }
    c.restore();
  }
  function find(px, cycle, py) {
    const slack = (view.to - view.from) / 400;
    const found = mine.filter(v => v.from - slack <= cycle && cycle <= v.to + slack && y(v.end) - 1 <= py && py <= y(v.at) + 1);
    const v = found.find(f => f.node === chosen) || found[found.length - 1];
    return v && {node: v.node, tip: `${v.name}${v.kind === 'made' ? '' : ' (' + v.kind + ')'}\n` +
      `${count(v.end - v.at)} bytes from 0x${v.at.toString(16)}\ncycles ${count(v.from)} to ${count(v.to)}`};
  }
  return el('section', {class: 'panel'},
    el('div', {class: 'bar-of'}, el('h2', {}, `${memory.title} ${memory.name}: ${count(memory.size)} bytes`),
      index === 0 ? timeButtons() : null),
    timePicture(`volumes in ${memory.name} over time`, () => HEIGHT, draw, find),
    el('p', {class: 'sub'}, ...keyOf('loaded', 'loaded'), ...keyOf('tiles', 'tiles on their way into an engine'),
      ' \u2003other colours: layers' + (memory.partition ? '; dashed: partitions, between which two operands are read at once' : '')));
}
function keyOf(variable, text) {
  const key = el('span', {class: 'key'});
  key.style.background = `var(--${variable})`;
  return [key, text];
}
function timeButtons() {
  const button = (id, name, title, f) => el('button', {id, type: 'button', title, onclick: f}, name);
  return [button('zoom-in', '+', 'zoom in', () => zoom(2)), button('zoom-out', '\u2212', 'zoom out', () => zoom(.5)),
    button('zoom-all', 'all', 'all cycles', () => look(0, END)),
    button('zoom-eighth', 'first 1/8', 'the first eighth of the cycles', () => look(0, END / 8)),
    button('zoom-layer', 'layer', 'the chosen layer', lookAtChosen)];
}

// ---- engines ----

const LANE = 26;
function enginePicture() {
  const hostLane = lanes.findIndex(l => l.name === 'host');
  const rows = calls.length && hostLane < 0 ? [...lanes, {name: 'host', i: -1}] : lanes;
  const rowOf = new Map(rows.map((l, k) => [l.i, k])), hostRow = calls.length ? (hostLane < 0 ? rows.length - 1 : hostLane) : -1;
  const height = rows.length * LANE + 18;
  function draw(c, x, width) {
    timeAxis(c, x, 0, height);
    rows.forEach((l, k) => {
      c.fillStyle = colour('soft');
      c.textAlign = 'right';
      c.fillText(l.name, LEFT - 5, k * LANE + LANE / 2 + 4);
    });
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, width - LEFT, height);
    c.clip();
    for (const e of events) {
      if (e.start + e.cycles < view.from || e.start > view.to || !rowOf.has(e.lane)) continue;
      const left = Math.max(x(e.start), LEFT - 2), w = Math.max(.7, Math.min(x(e.start + e.cycles), width + 2) - left);
      const top = rowOf.get(e.lane) * LANE + 3;
      c.globalAlpha = faded(e.node) ? .25 : 1;
      c.fillStyle = colour('c' + e.bound);
      c.fillRect(left, top, w, LANE - 6);
      if (w > 3) {
        c.strokeStyle = colour(e.node === chosen ? 'mark' : 'page');
        c.lineWidth = e.node === chosen ? 2 : .5;
        c.strokeRect(left, top, w, LANE - 6);
      }
    }
    c.globalAlpha = 1;
    c.fillStyle = colour('c4');
    for (const call of calls) c.fillRect(x(call.start) - 1, hostRow * LANE + 3, call.node === chosen ? 4 : 2, LANE - 6);
    c.restore();
  }
  function find(px, cycle, py) {
    const row = Math.floor(py / LANE), slack = (view.to - view.from) / (innerWidth || 1000) * 3;
    const call = row === hostRow && calls.find(h => Math.abs(h.start - cycle) <= slack);
    if (call) return {node: call.node, tip: `${call.name} (host)\n${count(call.cycles)} cycles, for which all wait`};
    const found = events.filter(v => rowOf.get(v.lane) === row && v.start - slack <= cycle && cycle <= v.start + v.cycles + slack);
    const e = found.find(v => v.start <= cycle && cycle <= v.start + v.cycles) || found[0];
    return e && {node: e.node, tip: `${e.name} (${e.op})\n${count(e.cycles)} cycles from ${count(e.start)}, ` +
      `bound by ${DATA.bounds[e.bound]}`};
  }
  return el('section', {class: 'panel'}, el('h2', {}, 'Engines'),
    timePicture('engines over time', () => height, draw, find),
    el('p', {class: 'sub'}, 'bound by', ...DATA.bounds.flatMap((b, i) => keyOf('c' + i, b)),
      ...calls.length ? keyOf('c4', 'the host, while the clock stands') : []));
}

// ---- bytes ----

// What has moved by then, in the order in which it began: read, and with what
// was written.
function bytesPicture() {
  const moving = events.filter(e => e.read + e.written);
  const all = moving.reduce((s, e) => s + e.read + e.written, 0), HEIGHT = 110, AXIS = 18;
  if (!all) return '';
  const compulsory = Number((DATA.facts.find(f => f[0] === 'compulsory') || [0, 0])[1]);
  const y = v => (HEIGHT - AXIS) * (1 - v / all) + 2;
  function draw(c, x, width, height) {
    timeAxis(c, x, 0, height);
    c.textAlign = 'right';
    for (const v of ticks(0, all, 3)) c.fillText(short(v), LEFT - 4, Math.max(10, y(v) + 4));
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, width - LEFT, height - AXIS + 4);
    c.clip();
    for (const [fill, of] of [['mark', e => e.read + e.written], ['v2', e => e.read]]) {
      let sum = 0;
      c.fillStyle = colour(fill);
      c.beginPath();
      c.moveTo(x(0), y(0));
      for (const e of moving) {
        c.lineTo(x(e.start), y(sum));
        sum += of(e);
        c.lineTo(x(e.start + e.cycles), y(sum));
      }
      c.lineTo(x(END), y(sum));
      c.lineTo(x(END), y(0));
      c.fill();
    }
    c.setLineDash([4, 4]);
    c.strokeStyle = colour('ink');
    c.beginPath();
    c.moveTo(LEFT, y(compulsory));
    c.lineTo(width, y(compulsory));
    c.stroke();
    c.restore();
  }
  const find = (px, cycle) => {
    const done = moving.filter(e => e.start <= cycle), last = done[done.length - 1];
    return last && {node: last.node, tip: `${last.name}\n` +
      `${count(done.reduce((s, e) => s + e.read, 0))} bytes read by then, ${count(done.reduce((s, e) => s + e.written, 0))} written`};
  };
  return el('section', {class: 'panel'}, el('h2', {}, 'Bytes moved so far'),
    timePicture('bytes moved over time', () => HEIGHT, draw, find),
    el('p', {class: 'sub'}, ...keyOf('v2', 'read'), ...keyOf('mark', 'written'), ' \u2003dashed: what must cross in any case'));
}

// ---- the network ----

// Who feeds whom. A name stands for what was last called so: what is loaded
// again is behind what the host or an engine made.
function edgesOf() {
  const last = new Map(), edges = [];
  layers.forEach((l, i) => {
    for (const b of l.bottoms || []) if (last.has(b)) edges.push([last.get(b), i]);
    if (l.bottoms && !l.bottoms.length && last.has(l.name)) edges.push([last.get(l.name), i]);
    const user = l.type === 'Weights' ? layers.findIndex(u => u.name + '_weights' === l.name) : -1;
    if (user >= 0) edges.push([i, user]);
    for (const m of l.merged || []) last.set(m, i);
    last.set(l.name, i);
  });
  return edges;
}
function graphPanel() {
  const W = 118, H = 24, DX = 132, DY = 44;
  const edges = edgesOf(), into = layers.map(() => []), rank = layers.map(() => 0);
  for (const [a, b] of edges) into[b].push(a);
  layers.forEach((_, i) => { rank[i] = Math.max(0, ...into[i].map(a => rank[a] + 1)); });
  // What is loaded stands above what uses it.
  const used = layers.map(() => Infinity);
  for (const [a, b] of edges) used[a] = Math.min(used[a], rank[b]);
  layers.forEach((_, i) => { if (!into[i].length && used[i] < Infinity) rank[i] = Math.max(0, used[i] - 1); });
  const rows = [];
  layers.forEach((_, i) => (rows[rank[i]] = rows[rank[i]] || []).push(i));
  const x = layers.map(() => 0);
  const centre = list => list.length ? list.reduce((s, a) => s + x[a], 0) / list.length : 0;
  for (const row of rows) {
    row.sort((a, b) => centre(into[a]) - centre(into[b]) || a - b);
    const middle = row.length ? row.reduce((s, a) => s + centre(into[a]), 0) / row.length : 0;
    row.forEach((a, k) => { x[a] = middle + (k - (row.length - 1) / 2) * DX; });
  }
  const least = Math.min(0, ...x), width = Math.max(...x, 0) - least + W + 12, height = rows.length * DY + 8;
  const px = i => x[i] - least + 6, py = i => rank[i] * DY + 6;
  const lines = edges.map(([a, b]) => svg('path', {class: 'edge', d:
    `M${px(a) + W / 2} ${py(a) + H}C${px(a) + W / 2} ${py(a) + H + 16} ${px(b) + W / 2} ${py(b) - 16} ${px(b) + W / 2} ${py(b)}`}));
  const hosts = new Set(calls.map(c => c.node));
  const boxes = layers.map((l, i) => svg('g', {
    class: 'node' + (hosts.has(i) ? ' host' : '') + (/^(Input|Output|Weights|Gather|Scatter)$/.test(l.type) ? ' move' : ''),
    'data-node': i, transform: `translate(${px(i)} ${py(i)})`,
    onclick: () => choose(i, true), onmousemove: e => showTip(e, layerTip(i)), onmouseleave: hideTip},
    svg('rect', {width: W, height: H, rx: 3}),
    svg('text', {x: W / 2, y: 16, 'text-anchor': 'middle'}, l.name.length > 18 ? '\u2026' + l.name.slice(-17) : l.name)));
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'graph of the network'}, lines, boxes);
  const box = el('div', {class: 'graph-view', tabindex: 0});
  let scale = 1;
  const fit = () => scaleBy(box.clientWidth / (width * scale));
  const resize = () => fill(picture, {width: width * scale, height: height * scale}, []);
  const scaleBy = f => {
    const old = scale;
    scale = Math.min(4, Math.max(.1, scale * f));
    const sx = (box.scrollLeft + box.clientWidth / 2) / old, sy = (box.scrollTop + box.clientHeight / 2) / old;
    resize();
    box.scrollTo(sx * scale - box.clientWidth / 2, sy * scale - box.clientHeight / 2);
  };
  box.append(picture);
  box.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    scaleBy(Math.exp(-e.deltaY / 300));
  }, {passive: false});
  box.addEventListener('keydown', e => {
    if (e.key === '+' || e.key === '=') scaleBy(1.3);
    else if (e.key === '-') scaleBy(1 / 1.3);
    else if ('np'.includes(e.key) || e.key === 'Escape') onKey(e);
  });
  let pan = null;
  box.addEventListener('pointerdown', e => { pan = {x: e.clientX, y: e.clientY, left: box.scrollLeft, top: box.scrollTop}; });
  box.addEventListener('pointermove', e => { if (pan && e.pointerType === 'mouse') box.scrollTo(pan.left + pan.x - e.clientX, pan.top + pan.y - e.clientY); });
  for (const end of ['pointerup', 'pointerleave']) box.addEventListener(end, () => { pan = null; });
  resize();
  onChosen.push(follow => {
    boxes.forEach((b, i) => b.classList.toggle('sel', i === chosen));
    lines.forEach((l, i) => l.classList.toggle('sel', chosen >= 0 && edges[i].includes(chosen)));
    if (chosen >= 0 && follow)
      box.scrollTo({left: (px(chosen) + W / 2) * scale - box.clientWidth / 2, top: py(chosen) * scale - box.clientHeight / 2});
  });
  requestAnimationFrame(() => {
    scaleBy(Math.max(.7, Math.min(1, box.clientWidth / width)));
    box.scrollTo((px(0) + W / 2) * scale - box.clientWidth / 2, 0);
  });
  return el('section', {class: 'panel graph'}, el('div', {class: 'bar-of'}, el('h2', {}, 'Network'),
    el('button', {type: 'button', title: 'larger', onclick: () => scaleBy(1.3)}, '+'),
    el('button', {type: 'button', title: 'smaller', onclick: () => scaleBy(1 / 1.3)}, '\u2212'),
    el('button', {type: 'button', title: 'as wide as the panel', onclick: fit}, 'fit')),
    box);
}

// ---- one layer ----

const sums = layers.map(() => ({cycles: 0, macs: 0, read: 0, written: 0, n: 0, peak: 0, bound: new Map()}));
for (const e of events) {
  if (e.node === null) continue;
  const s = sums[e.node], lane = DATA.lanes[e.lane];
  s.n++;
  s.cycles += e.macs ? e.cycles : 0;
  s.macs += e.macs;
  s.read += e.read;
  s.written += e.written;
  s.peak = Math.max(s.peak, e.macs ? lane.peak : 0);
  s.bound.set(e.bound, (s.bound.get(e.bound) || 0) + e.cycles);
}
const layerTip = i => {
  const l = layers[i], s = sums[i];
  return [l.name + (l.type ? ` (${l.type})` : ''), l.shape && l.shape.length ? l.shape.join('x') : '',
    s.cycles ? count(s.cycles) + ' cycles' : ''].filter(Boolean).join('\n');
};
function detailsPanel() {
  const body = el('div', {id: 'details'});
  const show = () => {
    if (chosen < 0) {
      body.replaceChildren(el('p', {class: 'sub'}, 'Choose a layer in any picture or table; n and p step through them. ' +
        'Drag over the time to zoom, or use + and \u2212; the wheel zooms a picture that was clicked.'));
      return;
    }
    const l = layers[chosen], s = sums[chosen], v = volumes.filter(w => w.node === chosen);
    const bound = [...s.bound].sort((a, b) => b[1] - a[1])[0];
    const facts = [['layer', l.name], ['kind', l.type], ['shape', (l.shape || []).join('x')], ['step', l.step], ['from, to', l.where],
      ['instructions', s.n && count(s.n)], ['cycles', s.cycles && `${count(s.cycles)} (${ms(s.cycles)})`],
      ['bound by', bound && DATA.bounds[bound[0]]], ['products', s.macs && count(s.macs)],
      ['array use', s.macs && s.cycles && s.peak && percent(s.macs / s.cycles / s.peak)],
      ['DDR read', s.read && count(s.read)], ['DDR written', s.written && count(s.written)],
      ['bytes in active memory', v.length && count(Math.max(...v.map(w => w.end - w.at)))],
      ['with', (l.merged || []).filter(m => m !== l.name).join(', ')]].filter(f => f[1] || f[1] === 0 && f[0] === 'step');
    body.replaceChildren(el('div', {class: 'details'}, facts.map(f => el('div', {}, el('span', {class: 'sub'}, f[0]), el('span', {}, String(f[1]))))));
  };
  onChosen.push(show);
  show();
  return el('section', {class: 'panel'}, el('h2', {}, 'Chosen layer'), body);
}

// ---- roofline, plans ----

function rooflinePanel() {
  const peak = Math.max(0, ...DATA.lanes.map(l => l.peak && l.cycles ? l.peak : 0)), slope = DATA.bytes_a_cycle;
  const shown = sums.map((s, i) => ({s, i})).filter(({s}) => s.macs && s.cycles);
  if (!shown.length || !peak) return null;
  const moving = shown.filter(({s}) => s.read + s.written);
  const far = Math.max(peak / (slope || 1) * 4, ...moving.map(({s}) => s.macs / (s.read + s.written))) * 2;
  const box = el('div');
  const draw = () => {
    const points = shown.map(({s, i}) => {
      const bytes = s.read + s.written, bound = [...s.bound].sort((a, b) => b[1] - a[1])[0][0];
      return {x: bytes ? s.macs / bytes : far, y: s.macs / s.cycles, colour: 'c' + bound, filled: true, key: i, sel: i === chosen,
        dim: faded(i), tip: `${layers[i].name}\n${(s.macs / s.cycles).toFixed(1)} products a cycle of ${peak}\n` +
          (bytes ? `${(s.macs / bytes).toFixed(1)} products a byte of DDR` : 'moves no bytes of DDR')};
    });
    const low = Math.min(...points.map(p => p.x)), bottom = Math.min(...points.map(p => p.y));
    const rangeX = [Math.min(low, slope ? peak / slope / 2 : low) / 1.5, far * 1.5];
    const rangeY = [bottom / 2, peak * 1.6];
    const knee = slope ? peak / slope : rangeX[0];
    const from = Math.max(rangeX[0], slope ? rangeY[0] / slope : 0);
    const roof = slope ? [{x: from, y: from * slope}, {x: knee, y: peak}, {x: rangeX[1], y: peak}]
      : [{x: rangeX[0], y: peak}, {x: rangeX[1], y: peak}];
    box.replaceChildren(scatter(points, {x: 'products a byte of DDR (far right: no byte)', y: 'products a cycle', log: true,
      rangeX, rangeY, lines: [roof], pick: i => choose(i)}));
  };
  onChosen.push(draw);
  draw();
  return el('section', {class: 'panel'}, el('h2', {}, `Roofline: ${count(peak)} products a cycle` +
    (slope ? `, ${Number(slope.toPrecision(4))} bytes a cycle` : '')), box);
}
function frontPanel() {
  const plans = DATA.front;
  if (!plans) return [];
  const at = plans.findIndex(p => p.chosen), mine = plans[at];
  const change = (p, key) => p === mine || !mine[key] ? '' : ` (${p[key] > mine[key] ? '+' : ''}${percent(p[key] / mine[key] - 1)})`;
  const picture = (x, y, xName, yName) => {
    const points = plans.map((p, i) => ({x: p[x], y: p[y], colour: 'c0', key: i, sel: p.chosen, filled: false,
      tip: `plan ${i + 1}${p.chosen ? ', the chosen one' : ''}\n${count(p.cycles)} cycles${change(p, 'cycles')}\n` +
        `${count(p.memory)} bytes of active memory${change(p, 'memory')}\n${count(p.bytes)} bytes with weights${change(p, 'bytes')}`}));
    const lowest = front(points);
    for (const p of lowest) p.filled = true;
    return el('section', {class: 'panel'}, el('h2', {}, `Plans found: ${yName} against ${xName}`),
      scatter(points, {x: xName, y: yName, stairs: [lowest]}));
  };
  const timed = mine && mine.cycles;
  return [picture('memory', timed ? 'cycles' : 'bytes', 'bytes of active memory', timed ? 'cycles' : 'bytes moved, weights included'),
    timed ? picture('bytes', 'cycles', 'bytes moved, weights included', 'cycles') : null];
}
function frontSheet() {
  const chosenPlan = DATA.front.find(p => p.chosen);
  const part = (p, key) => chosenPlan[key] ? p[key] / chosenPlan[key] - 1 : 0;
  return {title: `Plans found: ${DATA.front.length} that none beats`, note: 'The changes are against the chosen plan. ' +
    'A memory as large as a plan takes holds it; --objective chooses between those of one size, --effort finds more.',
  columns: ['plan', 'active memory', '+', 'cycles', '+', 'bytes+weights', '+', 'instructions', '<least by --objective', '<'],
  rows: DATA.front.map((p, i) => [null, i + 1, p.memory, part(p, 'memory'), p.cycles, part(p, 'cycles'), p.bytes, part(p, 'bytes'),
    p.instructions, p.least_by.join(', '), p.chosen ? 'chosen' : ''])};
}

// ---- the page ----

function head() {
  const copy = el('button', {type: 'button', onclick: () => navigator.clipboard && navigator.clipboard.writeText(DATA.command)}, 'copy');
  return [el('header', {}, el('div', {}, el('h1', {}, DATA.title), el('p', {class: 'sub'}, DATA.doc || '')), themeButton()),
    DATA.command ? el('p', {class: 'command'}, el('code', {id: 'command'}, DATA.command), ' ', copy) : '',
    DATA.settings.length ? el('p', {id: 'settings'}, 'not as the hwspec says: ', DATA.settings.map(s => el('span', {class: 'chip'}, `${s[0]} = ${s[1]}`))) : '',
    el('div', {class: 'facts'}, DATA.facts.map(f => el('div', {class: f[0] === 'violations' ? 'bad' : ''},
      el('span', {}, f[0]), el('b', {}, count(Number(f[1]))), el('span', {}, f[2]))))];
}
function sheets() {
  const all = DATA.front ? [...DATA.tables, frontSheet()] : DATA.tables;
  return all.map((sheet, k) => {
    let table = null;
    const box = el('details', {class: 'sheet', id: 'sheet-' + k, ontoggle: () => {
      if (box.open && !table) {
        table = makeTable(sheet, node => choose(node, false));
        box.append(table.element);
        table.mark(new Set([chosen]), true);
      }
    }}, el('summary', {}, `${sheet.title} (${count(sheet.rows.length)})`));
    onChosen.push(follow => table && table.mark(new Set([chosen]), follow));
    box.open = k === 0;
    return box;
  });
}
document.body.append(...head(), el('div', {class: 'work'},
  layers.some(l => l.bottoms) ? graphPanel() : '',
  el('div', {}, DATA.memories.map((_, i) => memoryPicture(i))), enginePicture(), bytesPicture(), detailsPanel()),
  el('div', {class: 'pair'}, rooflinePanel() || '', frontPanel()), ...sheets(), tip);
const wanted = decodeURIComponent(location.hash.slice(1));
const first = layers.findIndex(l => l.name === wanted);
if (first >= 0) choose(first);
onChosen.push(() => history.replaceState(null, '', chosen < 0 ? '#' : '#' + encodeURIComponent(layers[chosen].name)));
