// pages.mjs - pages of amphora in headless Chromium, as somebody works with
// them. node pages.mjs CHROMIUM REPORT.html LARGE.html SWEEP.html [FOLDER for
// screenshots]; prints a line for each thing that is wrong.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { chromium } = createRequire(join(process.cwd(), 'x.js'))('playwright-core');
const [, , program, report, large, sweep, folder] = process.argv;
let failed = 0, passed = 0;
function check(good, what) {
  if (good) passed++;
  else { failed++; console.log('FAIL', what); }
}

const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
async function open(file, width, scheme = 'light') {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme, acceptDownloads: true });
  page.on('pageerror', e => check(false, `${file}: ${e.message}`));
  page.on('request', r => check(r.url().startsWith('file:') || r.url().startsWith('blob:'), `${file} asks for ${r.url()}`));
  await page.goto('file://' + file);
  return page;
}
const rgb = text => text.match(/[\d.]+/g).map(Number);
function luminance(colour) {
  const [r, g, b] = rgb(colour).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + .05) / (Math.min(luminance(a), luminance(b)) + .05);

// No page is wider than the window; words can be read in both themes.
for (const [name, file] of [['report', report], ['large', large], ['sweep', sweep]])
  for (const scheme of ['light', 'dark'])
    for (const width of [375, 768, 1280, 1920]) {
      const page = await open(file, width, scheme);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${name} at ${width} px is ${wide} wide`);
      for (const which of ['.sub', 'td', 'h1', '.mark', 'th button']) {
        const colours = await page.evaluate(s => {
          const e = document.querySelector(s);
          return e && [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor];
        }, which);
        if (colours)
          check(contrast(...colours) >= 4.5, `${name} ${scheme}: ${which} has contrast ${contrast(...colours).toFixed(2)}`);
      }
      if (folder) await page.screenshot({ path: join(folder, `${name}-${scheme}-${width}.png`) });
      await page.close();
    }

// ---- the report ----
{
  const page = await open(report, 1440);
  const state = () => page.evaluate(() => ({ chosen, from: view.from, to: view.to, end: END,
    node: [...document.querySelectorAll('.node.sel')].map(n => Number(n.dataset.node)),
    rows: [...document.querySelectorAll('#sheet-0 tr.sel')].map(r => Number(r.dataset.node)),
    dots: [...document.querySelectorAll('.dot.sel[data-key]')].map(d => d.dataset.key),
    words: document.getElementById('details').textContent }));
  check((await page.textContent('#command')).startsWith('amphora compile '), 'the command is there');
  check((await page.textContent('#settings')).includes('memories.am.size = 2MiB'), 'what was set is there');
  const canvas = page.locator('canvas').first();
  const box = await canvas.boundingBox();

  // a volume in the map: found by the page's own data, clicked as a person does
  const spot = await page.evaluate(() => {
    const v = volumes.filter(w => w.kind === 'made' && w.node !== null).sort((a, b) => (b.to - b.from) * (b.end - b.at) - (a.to - a.from) * (a.end - a.at))[0];
    const c = document.querySelector('canvas'), top = Math.max(...volumes.map(w => w.end));
    const size = DATA.memories[0].size, scale = top < size * .8 ? top * 1.05 : size;
    return { node: v.node, x: LEFT + (v.from + v.to) / 2 / END * (c.clientWidth - LEFT - 8), y: (c.clientHeight - 18) * (1 - (v.at + v.end) / 2 / scale) + 2 };
  });
  await page.mouse.click(box.x + spot.x, box.y + spot.y);
  let s = await state();
  check(s.chosen >= 0, 'a click into the map chooses a layer');
  check(s.node.length === 1 && s.node[0] === s.chosen, 'the graph marks it');
  check(s.rows.length > 0 && s.rows.every(r => r === s.chosen), 'the table marks it');
  check(s.words.includes('cycles'), 'its figures are shown');
  const pixels = () => canvas.evaluate(c => c.toDataURL());
  const marked = await pixels();
  await page.keyboard.press('Escape');
  check((await state()).chosen === -1 && await pixels() !== marked, 'Escape ends the choice, and the picture changes');

  // the graph, the table and the roofline choose, too
  await page.locator('.node').nth(3).click();
  s = await state();
  check(s.chosen === 3 && s.node[0] === 3, 'a node of the graph chooses');
  const row = page.locator('#sheet-0 tbody tr[data-node]').nth(8);
  const wanted = Number(await row.getAttribute('data-node'));
  await row.click();
  check((await state()).chosen === wanted, 'a row of the table chooses');
  await page.locator('.dot[data-key]').first().click();
  s = await state();
  check(s.chosen >= 0 && s.dots.includes(String(s.chosen)), 'a dot of the roofline chooses');

  // keys
  await canvas.focus();
  await page.keyboard.press('0');
  const first = (await state()).chosen;
  await page.keyboard.press('n');
  check((await state()).chosen !== first, 'n goes to the next layer');
  await page.keyboard.press('+');
  s = await state();
  check(s.to - s.from < s.end * .7, '+ zooms in');
  const at = s.from;
  await page.keyboard.press('ArrowRight');
  check((await state()).from > at, 'an arrow key moves');
  await page.keyboard.press('0');
  s = await state();
  check(s.from === 0 && s.to === s.end, '0 shows all');

  // the mouse: drag a part, pan, the wheel, buttons
  await page.mouse.move(box.x + box.width * .3, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * .5, box.y + 150, { steps: 5 });
  await page.mouse.up();
  s = await state();
  check(s.from > s.end * .1 && s.to < s.end * .7, 'dragging shows a part');
  await page.mouse.move(box.x + box.width * .5, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * .4, box.y + 150, { steps: 5 });
  await page.mouse.up();
  check((await state()).from > s.from, 'dragging a part moves it');
  const before = await state();
  await page.mouse.wheel(0, -300);
  s = await state();
  check(s.to - s.from < before.to - before.from, 'the wheel zooms the picture that was clicked');
  await page.click('#zoom-eighth');
  s = await state();
  check(s.from === 0 && Math.abs(s.to - s.end / 8) < 2, 'the first eighth');
  await page.click('#zoom-all');

  // the table sorts and searches
  const column = name => page.locator('#sheet-0 th', { hasText: name }).first();
  const heads = await page.locator('#sheet-0 th').allTextContents();
  const cycles = heads.indexOf('cycles');
  const values = async () => (await page.locator(`#sheet-0 tbody tr td:nth-child(${cycles + 1})`).allTextContents()).map(t => Number(t.replaceAll(',', '')));
  await page.locator('#sheet-0 th').nth(cycles).locator('button').click();
  let list = await values();
  check(list.length > 5 && list.every((v, i) => !i || v <= list[i - 1]), 'sorted, the most first');
  check(await page.locator('#sheet-0 th').nth(cycles).getAttribute('aria-sort') === 'descending', 'aria-sort');
  await page.locator('#sheet-0 th').nth(cycles).locator('button').click();
  list = await values();
  check(list.every((v, i) => !i || v >= list[i - 1]), 'sorted, the least first');
  check(await column('layer').count() === 1, 'a column of layers');
  await page.fill('#sheet-0 input[type=search]', 'pool');
  const names = await page.locator('#sheet-0 tbody tr').allTextContents();
  check(names.length > 0 && names.length < list.length && names.every(n => n.includes('pool')), 'searched');
  check(await page.locator('text=Plans found').count() > 0, 'plans that were found');

  // the theme
  const colourOf = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await colourOf();
  await page.click('#theme');
  check(await colourOf() !== light, 'dark and light');

  // a link to a layer
  const name = await page.evaluate(() => layers[5].name);
  const linked = await open(report + '#' + encodeURIComponent(name), 1440);
  check(await linked.evaluate(() => chosen) === 5, 'a link to a layer');
  await linked.close();
  await page.close();
}

// ---- many tiles: the first eighth can be read, and nothing takes long ----
{
  const start = Date.now();
  const page = await open(large, 1920);
  const took = Date.now() - start;
  check(took < 8000, `a large report opens in ${took} ms`);
  await page.click('#zoom-eighth');
  const widest = await page.evaluate(() => {
    const inside = events.filter(e => e.start < view.to);
    return Math.max(...inside.map(e => e.cycles)) / (view.to - view.from) * document.querySelector('canvas').clientWidth;
  });
  const box = await page.locator('.node').first().boundingBox();
  check(box.width > 80, `boxes of the graph are ${box.width} px wide`);
  const loose = await page.evaluate(() => {
    const fed = new Set(edgesOf().map(e => e[1]));
    return layers.filter((l, i) => l.bottoms.some(b => layers.some(o => o.name === b)) && !fed.has(i)).length
      + layers.filter((l, i) => i && l.bottoms.length && !fed.has(i)).length;
  });
  check(loose === 0, 'each layer hangs on what it reads');
  check(widest > 10, 'in the first eighth an event is some pixels wide');
  await page.close();
}

// ---- the sweep ----
{
  const start = Date.now();
  const page = await open(sweep, 1440);
  check(Date.now() - start < 8000, 'a sweep opens');
  const n = await page.evaluate(() => points.length), networks = await page.evaluate(() => DATA.networks.length);
  check(await page.locator('.panel svg').count() === networks, 'a panel for each network');
  check(await page.locator('.stairs').count() >= 1, 'fronts are drawn');
  // the front of a panel is that of its points
  const wrong = await page.evaluate(() => panelsOf().filter(panel => {
    const dots = dotsOf(panel), drawn = new Set([...document.querySelectorAll(`[data-panel="${panel}"] .dot`)].filter(d => d.getAttribute('r') === '4.5').map(d => d.dataset.key));
    return dots.some(d => {
      const beaten = dots.some(o => o.x <= d.x && o.y <= d.y && (o.x < d.x || o.y < d.y));
      const twin = dots.some(o => o !== d && o.x === d.x && o.y === d.y);
      return !twin && beaten === drawn.has('p' + d.point.i);
    });
  }).length);
  check(wrong === 0, 'filled dots are those that none beats');

  // a point marks its machine in all panels; a second one is compared
  const onTop = last => page.evaluate(last => {
    document.querySelector('[data-panel="0"]').scrollIntoView({ block: 'center' });
    const spots = [...document.querySelectorAll('[data-panel="0"] .dot')].map(d => {
      const b = d.getBoundingClientRect();
      return { x: b.x + b.width / 2, y: b.y + b.height / 2, dot: d };
    }).filter(s => document.elementFromPoint(s.x, s.y) === s.dot);
    const { x, y } = last ? spots[spots.length - 1] : spots[0];
    return { x, y };
  }, last);
  const clickDot = async last => { const { x, y } = await onTop(last); await page.mouse.click(x, y); };
  await clickDot(false);
  check(await page.evaluate(() => state.pair.length) === 1, 'a click marks a machine');
  check(await page.locator('.dot.sel').count() >= networks - 1, 'in all panels');
  await clickDot(true);
  check((await page.textContent('#pair')).includes('B against A'), 'two machines side by side');

  // filters
  const all = await page.evaluate(() => shownPoints().length);
  await page.locator('fieldset', { hasText: 'networks' }).locator('input[type=checkbox]').first().click();
  check(await page.evaluate(() => shownPoints().length) < all, 'a filter takes points away');
  await page.locator('fieldset', { hasText: 'networks' }).locator('input[type=checkbox]').first().click();
  check(await page.evaluate(() => shownPoints().length) === all, 'and gives them back');

  // brushing
  const plane = await page.locator('[data-panel="0"] svg').boundingBox();
  await page.mouse.move(plane.x + plane.width * .14, plane.y + plane.height * .4);
  await page.mouse.down();
  await page.mouse.move(plane.x + plane.width * .96, plane.y + plane.height * .85, { steps: 4 });
  await page.mouse.up();
  const brushed = await page.evaluate(() => shownPoints().length);
  check(brushed > 0 && brushed < all, `a part that was brushed stays: ${brushed} of ${all}`);
  check(await page.locator('.dot.dim').count() > 0, 'the others are dim');
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#csv')]);
  const stream = await file.createReadStream();
  let text = '';
  for await (const part of stream) text += part;
  check(text.trim().split('\n').length === brushed + 1, 'the CSV has what is shown');
  await page.mouse.click(plane.x + plane.width * .16, plane.y + plane.height * .05);
  check(await page.evaluate(() => shownPoints().length) === all, 'a click beside points ends it');

  // the mean, with weights; against the best
  await page.selectOption('#mode', 'mean');
  const best = () => page.textContent('#best');
  const even = await page.evaluate(() => means());
  const reckoned = await page.evaluate(() => means().every(d => {
    const of = machines[d.machine].points.map(p => p.values[state.y]);
    return Math.abs(Math.exp(of.reduce((s, v) => s + Math.log(v), 0) / of.length) - d.y) < 1e-6 * d.y;
  }));
  check(even.length > 0 && reckoned && (await best()).includes('least'), 'the geometric mean of the networks');
  await page.fill('[data-weight="0"]', '0');
  check(JSON.stringify(await page.evaluate(() => means())) !== JSON.stringify(even), 'weights change it');
  await page.fill('[data-weight="0"]', '1');
  await page.selectOption('#mode', 'normal');
  check(await page.evaluate(() => Math.min(...dotsOf(0).map(d => d.y))) === 1, 'against the best of each');
  await page.selectOption('#x', { index: 1 });
  check(await page.locator('.dot').count() > 0, 'another axis');
  const rows = page.locator('#table tbody tr');
  check(await rows.count() === Math.min(n, 400), 'the table');
  await rows.first().click();
  check((await page.textContent('#command')).includes('amphora compile'), 'the command of a point');
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
