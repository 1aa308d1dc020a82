// explore.js - points of a sweep: a panel for each network, or all of them
// against the best of each, or machines by their geometric mean; fronts,
// filters, a part that was brushed, two points side by side.

const M = DATA.measures;
const stem = path => path.replace(/^.*\//, '').replace(/\.[^.]*$/, '');
const unique = list => new Set(list.map(stem)).size === list.length;
const networks = unique(DATA.networks) ? DATA.networks.map(stem) : DATA.networks;
const targets = unique(DATA.targets) ? DATA.targets.map(stem) : DATA.targets;
const COLOURS = 8;
const TIME = 0, CYCLES = 1, AM = 2;
const amount = v => v === null || v === undefined ? '' : Number.isInteger(v) ? count(v) : String(Number(v.toPrecision(6)));

const points = DATA.points.map((p, i) => ({...p, i, fits: p.status === 'fits'}));
// A machine: a target and its settings, whatever the network.
const machineKey = p => JSON.stringify([p.target, p.settings]);
const machines = [];
const machineOf = new Map();
for (const p of points) {
  const key = machineKey(p);
  if (!machineOf.has(key)) {
    machineOf.set(key, machines.length);
    machines.push({target: p.target, settings: p.settings, points: []});
  }
  p.machine = machineOf.get(key);
  machines[p.machine].points.push(p);
}
const machineName = m => [targets[m.target], ...m.settings.map((v, i) => `${DATA.paths[i]}=${v}`)].join(' ');

const state = {
  mode: 'panels', x: AM, y: DATA.by_time ? TIME : CYCLES, query: '', brush: null,
  off: {network: new Set(), target: new Set(), status: new Set(), settings: DATA.paths.map(() => new Set())},
  weight: networks.map(() => 1), pair: [], hot: -1,
};

// ---- which points ----

function passes(p) {
  if (state.off.network.has(p.network) || state.off.target.has(p.target) || state.off.status.has(p.status)) return false;
  if (p.settings.some((v, i) => state.off.settings[i].has(v))) return false;
  return !state.query || machineName(machines[p.machine]).concat(' ', networks[p.network]).toLowerCase().includes(state.query);
}
function inBrush(machine, x, y, panel) {
  const b = state.brush;
  return !b || (b.panel === panel && x >= b.x0 && x <= b.x1 && y >= b.y0 && y <= b.y1);
}

// Dots of a panel: {x, y, machine, point or null}.
function dotsOf(panel) {
  if (state.mode === 'mean') return means();
  const best = {};
  const list = points.filter(p => p.fits && passes(p) && p.values[state.x] !== null && p.values[state.y] !== null &&
    (state.mode === 'normal' || p.network === panel));
  if (state.mode !== 'normal') return list.map(p => ({x: p.values[state.x], y: p.values[state.y], machine: p.machine, point: p}));
  for (const p of list) {
    const b = best[p.network] = best[p.network] || [Infinity, Infinity];
    b[0] = Math.min(b[0], p.values[state.x]);
    b[1] = Math.min(b[1], p.values[state.y]);
  }
  return list.map(p => ({x: p.values[state.x] / (best[p.network][0] || 1), y: p.values[state.y] / (best[p.network][1] || 1),
    machine: p.machine, point: p}));
}
// Of machines on which every network that is weighed fits: the weighted
// geometric mean of what is measured; of memory the most.
function means() {
  const wanted = networks.map((_, i) => i).filter(i => state.weight[i] > 0 && !state.off.network.has(i));
  const sum = wanted.reduce((s, i) => s + state.weight[i], 0);
  const value = (mine, m) => M[m].startsWith('AM') ? Math.max(...mine.map(p => p.values[m]))
    : Math.exp(mine.reduce((s, p) => s + state.weight[p.network] * Math.log(Math.max(p.values[m], 1e-12)), 0) / sum);
  return machines.map((m, i) => {
    const mine = wanted.map(n => m.points.find(p => p.network === n && p.fits && passes(p)));
    return wanted.length && mine.every(p => p && p.values[state.x] !== null && p.values[state.y] !== null)
      ? {x: value(mine, state.x), y: value(mine, state.y), machine: i, point: null} : null;
  }).filter(Boolean);
}
const panelsOf = () => state.mode === 'panels' ? networks.map((_, i) => i).filter(i => !state.off.network.has(i)) : [0];

// ---- pictures ----

const pictures = el('div', {class: 'panels', id: 'panels'});
const seriesColour = machine => 'c' + machines[machine].target % COLOURS;
let shownMachines = new Set();

function drawPanels() {
  shownMachines = null;
  const lists = panelsOf().map(panel => ({panel, dots: dotsOf(panel)}));
  if (state.brush)
    for (const {panel, dots} of lists)
      if (panel === state.brush.panel)
        shownMachines = new Set(dots.filter(d => inBrush(d.machine, d.x, d.y, panel)).map(d => d.machine));
  pictures.replaceChildren(...lists.map(({panel, dots}) => drawPanel(panel, dots)));
}
function drawPanel(panel, dots) {
  const groups = new Map();
  const drawn = dots.map(d => ({...d, colour: state.mode === 'normal' ? 'c' + d.point.network % COLOURS : seriesColour(d.machine),
    key: d.point ? 'p' + d.point.i : 'm' + d.machine, dim: shownMachines !== null && !shownMachines.has(d.machine),
    sel: state.pair.includes(d.machine) || state.hot === d.machine, filled: false, tip: dotTip(d)}));
  for (const d of drawn) {
    const group = state.mode === 'normal' ? d.point.network : 0;
    groups.set(group, [...(groups.get(group) || []), d]);
  }
  const stairs = [...groups.values()].map(front);
  for (const stair of stairs) for (const d of stair) d.filled = true;
  drawn.sort((a, b) => a.filled - b.filled); // the front on top
  const title = state.mode === 'panels' ? networks[panel] : state.mode === 'normal' ? 'all networks, each against its best'
    : 'geometric mean of the networks';
  const axis = m => M[m] + (state.mode === 'normal' ? ', times the best' : state.mode === 'mean' ? (M[m].startsWith('AM') ? ', the most' : ', mean') : '');
  return el('section', {class: 'panel', 'data-panel': panel}, el('h2', {}, title),
    dots.length ? scatter(drawn, {x: axis(state.x), y: axis(state.y), stairs,
      pick: (key, e) => pick(drawn.find(d => d.key === key).machine, e),
      brush: b => { state.brush = b && {...b, panel}; update(); }}) : el('p', {}, 'no point fits'));
}
function dotTip(d) {
  const m = machines[d.machine];
  if (d.point) return `${networks[d.point.network]} ${machineName(m)}\n` + M.map((name, i) => d.point.values[i] === null ? '' : `${name} ${amount(d.point.values[i])}`).filter(Boolean).join('\n');
  return `${machineName(m)}\n${M[state.x]} ${amount(d.x)}\n${M[state.y]} ${amount(d.y)}`;
}
// The first click marks a machine, that on another one compares both.
function pick(machine) {
  const at = state.pair.indexOf(machine);
  if (at >= 0) state.pair.splice(at, 1);
  else state.pair = [...state.pair.slice(-1), machine];
  update();
}

// ---- two side by side ----

const pairBox = el('div', {id: 'pair'});
function drawPair() {
  if (!state.pair.length) {
    pairBox.replaceChildren(el('p', {class: 'sub'}, 'Click a point to mark its machine in all panels; a second one is compared with it. ' +
      'Drag over a panel to keep the points there; a click beside them ends that.'));
    return;
  }
  const [a, b] = state.pair.map(i => machines[i]);
  const rows = [];
  networks.forEach((name, n) => {
    const pa = a.points.find(p => p.network === n), pb = b && b.points.find(p => p.network === n);
    M.forEach((measure, m) => {
      const va = pa && pa.fits ? pa.values[m] : null, vb = pb && pb.fits ? pb.values[m] : null;
      if (va === null && vb === null && m) return;
      rows.push(el('tr', {}, el('td', {class: 'l'}, m ? '' : name), el('td', {class: 'l'}, measure),
        el('td', {}, pa && !pa.fits ? (m ? '' : pa.status) : amount(va)),
        b ? el('td', {}, pb && !pb.fits ? (m ? '' : pb.status) : amount(vb)) : '',
        b ? el('td', {}, va && vb !== null ? (vb > va ? '+' : '') + percent(vb / va - 1) : '') : ''));
    });
  });
  const head = (m, letter) => el('th', {}, `${letter}: `, machineName(m));
  pairBox.replaceChildren(el('div', {class: 'bar-of'}, el('h2', {}, b ? 'Two machines' : 'Chosen machine'),
    el('button', {type: 'button', onclick: () => { state.pair = []; update(); }}, 'none')),
  el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, el('tr', {}, el('th', {class: 'l'}, 'network'), el('th', {class: 'l'}, ''),
    head(a, 'A'), b ? [head(b, 'B'), el('th', {}, 'B against A')] : '')), el('tbody', {}, rows))));
}

// ---- the table ----

const tableBox = el('div', {id: 'table'});
let table = null;
function shownPoints() {
  return points.filter(p => passes(p) && (shownMachines === null || shownMachines.has(p.machine)));
}
function drawTable() {
  const sheet = {title: 'points', note: `${count(shownPoints().length)} of ${count(points.length)} points; filled dots are on a front`,
    columns: ['point', '<network', '<machine', ...DATA.paths.map(p => '<' + p), ...M.map(m => m === 'ms' || !/bytes|cycles|instructions/.test(m) ? '~' + m : m), '<note', '<page'],
    rows: shownPoints().map(p => [p.machine, p.point, networks[p.network], targets[p.target], ...p.settings,
      ...M.map((_, i) => p.fits ? p.values[i] : null), p.fits ? (p.enough ? 'enough AM' : '') : `${p.status}: ${p.reason}`,
      p.report ? 'report' : p.command ? 'command' : ''])};
  table = makeTable(sheet, (node, row) => {
    const p = points.find(q => q.point === row[1]);
    showCommand(p);
    pick(node);
  });
  tableBox.replaceChildren(table.element);
  table.mark(new Set(state.pair), false);
}
const commandBox = el('p', {id: 'command'});
function showCommand(p) {
  commandBox.replaceChildren(p.report ? el('a', {href: p.report}, `report of point ${p.point}`) : '', ' ',
    p.command ? el('code', {}, p.command) : '');
}
function shownCsv() {
  return csv([['point', 'network', 'target', ...DATA.paths, 'status', ...DATA.keys, 'reason'],
    ...shownPoints().map(p => [p.point, DATA.networks[p.network], DATA.targets[p.target], ...p.settings, p.status,
      ...M.map((_, i) => p.fits ? p.values[i] : ''), p.reason || ''])]);
}

// ---- filters ----

function boxes(name, values, off, title = v => v) {
  if (values.length < 2) return '';
  return el('fieldset', {}, el('legend', {}, name), values.map(v => el('label', {}, el('input', {type: 'checkbox', checked: true,
    onchange: e => { if (e.target.checked) off.delete(v); else off.add(v); update(); }}), ' ', title(v))));
}
function choice(name, id, options, value, change) {
  const box = el('select', {id, onchange: () => { change(box.value); state.brush = null; update(); }},
    options.map(([v, text]) => el('option', {value: v, selected: String(v) === String(value)}, text)));
  return el('label', {}, name + ' ', box);
}
function filters() {
  const axes = M.map((m, i) => [i, m]);
  const different = key => [...new Set(points.map(key))];
  const search = el('input', {type: 'search', id: 'search', placeholder: 'part of a name', oninput: () => { state.query = search.value.toLowerCase(); update(); }});
  return el('div', {class: 'filters'}, el('fieldset', {}, el('legend', {}, 'picture'),
    choice('', 'mode', [['panels', 'a panel a network'], ['normal', 'all, against the best'], ['mean', 'geometric mean']], state.mode, v => { state.mode = v; }),
    choice(' across', 'x', axes, state.x, v => { state.x = Number(v); }), choice(' up', 'y', axes, state.y, v => { state.y = Number(v); })),
  el('fieldset', {}, el('legend', {}, 'points'), search, ' ',
    el('button', {type: 'button', id: 'csv', onclick: () => download('points-shown.csv', shownCsv())}, 'CSV of what is shown')),
  networks.length > 1 ? el('fieldset', {}, el('legend', {}, 'weights in the mean'), networks.map((n, i) => el('label', {}, n + ' ',
    el('input', {type: 'number', min: 0, step: .1, value: 1, 'data-weight': i, oninput: e => { state.weight[i] = Math.max(0, Number(e.target.value) || 0); update(); }})))) : '',
  boxes('networks', networks.map((_, i) => i), state.off.network, i => networks[i]),
  boxes('machines', targets.map((_, i) => i), state.off.target, i => targets[i]),
  DATA.paths.map((path, i) => boxes(path, different(p => p.settings[i]), state.off.settings[i])),
  boxes('status', different(p => p.status), state.off.status));
}
function legend() {
  const list = state.mode === 'normal' ? networks : targets;
  return list.map((name, i) => {
    const key = el('span', {class: 'key'});
    key.style.background = `var(--c${i % COLOURS})`;
    return [key, name];
  });
}
const legendBox = el('p', {class: 'sub'});
// The best of the machines as they are weighed: what to build.
const bestBox = el('p', {id: 'best'});
function drawBest() {
  if (state.mode !== 'mean') { bestBox.replaceChildren(); return; }
  const best = means().sort((a, b) => a.y - b.y || a.x - b.x)[0];
  bestBox.replaceChildren(best ? `least ${M[state.y]} in the mean: ${machineName(machines[best.machine])}, ${amount(best.y)}` : '');
}
function update() {
  drawPanels();
  drawBest();
  legendBox.replaceChildren(...legend().flat());
  drawPair();
  drawTable();
}
document.body.append(el('header', {}, el('div', {}, el('h1', {}, DATA.title),
  el('p', {class: 'sub'}, [[networks, 'network'], [machines, 'machine']].map(([list, name]) => `${count(list.length)} ${name}${list.length === 1 ? '' : 's'}`).join(', '))), themeButton()),
filters(), legendBox, bestBox, pictures, el('section', {class: 'panel'}, pairBox), commandBox, tableBox, tip);
update();
