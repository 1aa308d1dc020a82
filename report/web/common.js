// common.js - what both pages share: data, elements, numbers, tables that sort
// and search, points in a plane. Nothing is fetched.
'use strict';
const DATA = JSON.parse(document.getElementById('data').textContent);

// ---- elements ----

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat(4).filter(c => c !== null && c !== undefined));
  return node;
}
const el = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes,
    children);
const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue('--' + name);

// ---- numbers ----

const count = v => Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, ',');
const signed = v => (v > 0 ? '+' : v < 0 ? '-' : '') + count(Math.abs(v));
const percent = v => (v * 100).toFixed(1) + ' %';
function short(v) {
  let i = 0;
  const unit = ['', ' k', ' M', ' G', ' T'];
  for (; Math.abs(v) >= 1000 && i < 4; i++) v /= 1000;
  return Number(v.toPrecision(4)) + unit[i];
}
// At most `most` steps of 1, 2 or 5 times a power of ten.
function ticks(low, high, most) {
  const raw = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step)
    found.push(v);
  return found;
}

// ---- the tip under the pointer, the theme ----

const tip = el('div', {class: 'tip', role: 'tooltip'});
function showTip(event, text) {
  tip.textContent = text;
  tip.style.display = text ? 'block' : 'none';
  const x = event.clientX + 14, y = event.clientY + 14;
  tip.style.left = Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.max(4, Math.min(y, innerHeight - tip.offsetHeight - 8)) + 'px';
}
const hideTip = () => { tip.style.display = 'none'; };

const onTheme = [];
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const draw of onTheme) draw();
}
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
setTheme(systemIsDark.matches ? 'dark' : 'light');
systemIsDark.addEventListener('change', e => setTheme(e.matches ? 'dark' : 'light'));
const themeButton = () => el('button', {
  id: 'theme', title: 'dark or light', onclick: () =>
    setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
}, 'dark / light');

function download(name, text) {
  const link = el('a', {download: name,
    href: URL.createObjectURL(new Blob([text], {type: 'text/csv'}))});
  link.click();
  URL.revokeObjectURL(link.href);
}
const csvCell = v => /[",\n]/.test(String(v ?? ''))
  ? '"' + String(v).replaceAll('"', '""') + '"' : String(v ?? '');
const csv = rows => rows.map(r => r.map(csvCell).join(',') + '\n').join('');

// ---- tables: report/sheet.h ----

const MOST_ROWS = 400;

function cell(kind, value, largest) {
  if (value === null) return el('td', {class: kind === '<' ? 'l' : ''});
  if (kind === '<')
    return el('td', {class: String(value).length > 60 ? 'w' : 'l'}, value);
  if (kind === '%') {
    const bar = el('span', {class: 'bar'});
    bar.style.width = (largest ? 5 * value / largest : 0).toFixed(2) + 'em';
    return el('td', {class: 'l'}, percent(value), bar);
  }
  if (kind === '+') return el('td', {}, value ? (value > 0 ? '+' : '') + percent(value) : '0');
  if (kind === '~') return el('td', {}, Number.isInteger(value) ? count(value) : value.toPrecision(6));
  if (kind === '.') return el('td', {}, Number.isInteger(value) ? signed(value) : value.toPrecision(6));
  return el('td', {}, count(value));
}

// A table of rows [node, cells...]. `pick(node, row)` is called for a row that
// was clicked; the result has mark(nodes) for what is chosen elsewhere.
function makeTable(sheet, pick) {
  const kinds = sheet.columns.map(c => '<%+.~'.includes(c[0]) ? c[0] : '#');
  const names = sheet.columns.map((c, i) => kinds[i] === '#' ? c : kinds[i] === '+' ? 'change' : c.slice(1));
  const largest = kinds.map((k, i) => k === '%' ? Math.max(...sheet.rows.map(r => r[i + 1] || 0)) : 0);
  let sorted = -1, down = false, query = '', all = false, marked = new Set();
  const body = el('tbody'), more = el('p', {class: 'sub'});
  const heads = names.map((name, i) => el('th', {
    class: kinds[i] === '<' || kinds[i] === '%' ? 'l' : '', scope: 'col', 'aria-sort': 'none',
  }, el('button', {type: 'button', onclick: () => {
    down = sorted === i ? !down : kinds[i] !== '<';
    sorted = i;
    show();
  }}, name)));
  const search = el('input', {type: 'search', placeholder: 'search',
    'aria-label': 'search in ' + sheet.title,
    oninput: () => { query = search.value.toLowerCase(); show(); }});

  function rows() {
    let list = sheet.rows;
    if (query)
      list = list.filter(r => r.some((v, i) => i && v !== null && String(v).toLowerCase().includes(query)));
    if (sorted >= 0) {
      const sign = down ? -1 : 1, at = sorted + 1;
      list = [...list].sort((a, b) => {
        if (a[at] === null || b[at] === null) return (a[at] === null) - (b[at] === null);
        return sign * (kinds[sorted] === '<' ? String(a[at]).localeCompare(b[at]) : a[at] - b[at]);
      });
    }
    return list;
  }
  function show() {
    heads.forEach((h, i) => h.setAttribute('aria-sort',
      i !== sorted ? 'none' : down ? 'descending' : 'ascending'));
    const list = rows(), n = all ? list.length : Math.min(list.length, MOST_ROWS);
    body.replaceChildren(...list.slice(0, n).map(r => el('tr', {
      'data-node': r[0], class: marked.has(r[0]) ? 'sel' : '',
      onclick: () => pick && r[0] !== null && pick(r[0], r),
    }, r.slice(1).map((v, i) => cell(kinds[i], v, largest[i])))));
    more.replaceChildren(n < list.length ? el('button', {type: 'button',
      onclick: () => { all = true; show(); }}, `all ${count(list.length)} rows`) : '');
  }
  show();
  const scroll = el('div', {class: 'scroll', tabindex: 0},
    el('table', {}, el('thead', {}, el('tr', {}, heads)), body));
  return {
    element: el('div', {}, el('div', {class: 'bar-of'}, el('p', {class: 'sub'}, sheet.note || ''), search),
      scroll, more),
    mark(nodes, follow) {
      marked = nodes;
      let first = null;
      for (const tr of body.children) {
        const on = tr.dataset.node !== undefined && nodes.has(Number(tr.dataset.node));
        tr.classList.toggle('sel', on);
        first = first || (on ? tr : null);
      }
      if (first && follow) scroll.scrollTop = first.offsetTop - scroll.clientHeight / 3;
    },
    show, rows,
  };
}

// ---- points in a plane ----

const VIEW = {w: innerWidth < 600 ? 340 : 480, h: innerWidth < 600 ? 270 : 320, left: 62, right: 14, top: 12, bottom: 42};

// `points`: {x, y, colour, filled, tip, key, dim, sel}; the result is an <svg>.
// options: x, y titles; log; stairs: lists of points to join; lines: {x, y}
// lists; pick(key, event); brush(x0, x1, y0, y1) or brush(null).
function scatter(points, options) {
  const {left, right, top, bottom, w, h} = VIEW;
  const grow = (low, high) => options.log ? [low / 1.3, high * 1.3]
    : [Math.max(0, low - (high - low || high) * .06), high + (high - low || high) * .06 || 1];
  const range = key => grow(Math.min(...points.map(p => p[key])), Math.max(...points.map(p => p[key])));
  const [x0, x1] = options.rangeX || range('x'), [y0, y1] = options.rangeY || range('y');
  const f = options.log ? Math.log10 : v => v;
  const at = (v, a, b, from, to) => from + (f(v) - f(a)) / (f(b) - f(a) || 1) * (to - from);
  const px = v => at(v, x0, x1, left, w - right), py = v => at(v, y0, y1, h - bottom, top);
  const decades = (a, b) => {
    const steps = b / a < 100 ? [1, 2, 5] : [1];
    const found = [];
    for (let e = Math.floor(Math.log10(a)); e <= Math.log10(b); e++)
      found.push(...steps.map(s => s * 10 ** e).filter(v => v >= a && v <= b));
    return found;
  };
  const marks = (a, b, n) => options.log ? decades(a, b) : ticks(a, b, n);
  const name = v => options.format ? options.format(v) : short(v);
  const node = svg('svg', {viewBox: `0 0 ${w} ${h}`, role: 'img', width: '100%',
    'aria-label': `${options.y} against ${options.x}`});
  for (const v of marks(x0, x1, 5))
    node.append(svg('path', {class: 'grid', d: `M${px(v)} ${top}V${h - bottom}`}),
      svg('text', {x: px(v), y: h - bottom + 14, 'text-anchor': 'middle'}, name(v)));
  for (const v of marks(y0, y1, 6))
    node.append(svg('path', {class: 'grid', d: `M${left} ${py(v)}H${w - right}`}),
      svg('text', {x: left - 5, y: py(v) + 4, 'text-anchor': 'end'}, name(v)));
  node.append(svg('path', {class: 'axis', d: `M${left} ${top}V${h - bottom}H${w - right}`}),
    svg('text', {x: (left + w - right) / 2, y: h - 8, 'text-anchor': 'middle'}, options.x),
    svg('text', {transform: `translate(11 ${(top + h - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle'}, options.y));
  for (const line of options.lines || [])
    node.append(svg('path', {class: 'roof', d: 'M' + line.map(p => `${px(p.x)} ${py(p.y)}`).join('L')}));
  for (const step of options.stairs || []) {
    if (step.length < 2) continue;
    let d = `M${px(step[0].x)} ${py(step[0].y)}`;
    for (const p of step.slice(1)) d += `H${px(p.x)}V${py(p.y)}`;
    node.append(svg('path', {class: 'stairs', d, stroke: `var(--${step[0].colour})`}));
  }
  if (options.brush) addBrush(node, {px, py, x0, x1, y0, y1}, options);
  for (const p of points)
    node.append(svg('circle', {class: 'dot' + (p.dim ? ' dim' : '') + (p.sel ? ' sel' : ''),
      cx: px(p.x).toFixed(1), cy: py(p.y).toFixed(1), r: p.filled ? 4.5 : 3.2,
      fill: p.filled ? `var(--${p.colour})` : 'var(--page)', stroke: `var(--${p.colour})`,
      'data-key': p.key, onmousemove: e => showTip(e, p.tip), onmouseleave: hideTip,
      onclick: e => options.pick && options.pick(p.key, e)}));
  return node;
}

// Dragging over the plane chooses a part of it; a click beside points ends it.
function addBrush(node, plane, options) {
  const {left, right, top, bottom, w, h} = VIEW;
  const area = svg('rect', {x: left, y: top, width: w - left - right, height: h - top - bottom,
    fill: 'transparent'});
  const box = svg('rect', {class: 'brush', width: 0, height: 0});
  let from = null;
  const place = e => {
    const r = node.getBoundingClientRect();
    return {x: Math.min(w - right, Math.max(left, (e.clientX - r.left) / r.width * w)),
      y: Math.min(h - bottom, Math.max(top, (e.clientY - r.top) / r.height * h))};
  };
  const value = (v, a, b, p, q) => a + (v - p) / (q - p) * (b - a);
  area.addEventListener('pointerdown', e => { from = place(e); area.setPointerCapture(e.pointerId); });
  area.addEventListener('pointermove', e => {
    if (!from) return;
    const to = place(e);
    fill(box, {x: Math.min(from.x, to.x), y: Math.min(from.y, to.y),
      width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y)}, []);
  });
  area.addEventListener('pointerup', e => {
    const a = from, b = place(e);
    from = null;
    if (!a) return;
    if (Math.abs(a.x - b.x) + Math.abs(a.y - b.y) < 6) { options.brush(null); return; }
    const xs = [a.x, b.x].sort((p, q) => p - q).map(v => value(v, plane.x0, plane.x1, left, w - right));
    const ys = [a.y, b.y].sort((p, q) => q - p).map(v => value(v, plane.y0, plane.y1, h - bottom, top));
    options.brush({x0: xs[0], x1: xs[1], y0: ys[0], y1: ys[1]});
  });
  node.append(area, box);
}

// Those of rising x that no other has less of both: the corners of a stair.
function front(points) {
  const found = [];
  for (const p of [...points].sort((a, b) => a.x - b.x || a.y - b.y))
    if (!found.length || p.y < found[found.length - 1].y) found.push(p);
  return found;
}
