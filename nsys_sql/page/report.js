// Unpacks plotly and PICTURES, and draws them. Colours of text and lines come from the style sheet, so that they
// follow light, dark and print.
const PRINT = 680;
function colour(name, paper) {
  if (paper) return name === '--text' ? '#000' : '#bbb';
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
// Plotly reads tags in a tick's text: a name would become bold, or a link.
function plain(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
function draw(paper) {
  for (const item of PICTURES) {
    const text = colour('--text', paper), line = colour('--line', paper);
    const node = document.getElementById(item.id), small = !paper && node.clientWidth < 560;
    const axis = {gridcolor: line, zerolinecolor: line, linecolor: line};
    const layout = JSON.parse(JSON.stringify(item.layout));
    layout.font = {family: 'system-ui, sans-serif', size: small ? 10 : 12, color: text};
    layout.paper_bgcolor = layout.plot_bgcolor = 'rgba(0,0,0,0)';
    layout.width = paper ? PRINT : node.clientWidth;
    layout.margin = {l: 8, r: 12, t: 8, b: 8};
    Object.assign(layout.xaxis, axis); Object.assign(layout.yaxis, axis);
    layout.yaxis.fixedrange = true;
    const names = item.upright ? [] : item.names;
    // Short names are worth their room: they may end in a figure.
    const widest = Math.max(0, ...names.map(n => n.length));
    const long = !small ? 44 : widest <= 30 ? 30 : 16;
    if (names.length) {
      layout.yaxis.tickvals = names.map((_, i) => String(i));
      layout.yaxis.ticktext = names.map(n => plain(n.length > long
        ? n.slice(0, long / 2) + '...' + n.slice(-long / 2 + 3) : n));
    }
    Plotly.react(node, item.data, layout, {displayModeBar: false, responsive: false});
  }
}
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const code = document.createElement('script');
  code.textContent = await new Response(plain).text();
  document.head.append(code);
  for (const item of PICTURES) document.getElementById(item.id).replaceChildren();
  draw(false);
  watch();
}
unpack(PACKED);
// At once, so that no frame shows pictures of another width, then not more often than needed.
function watch() {
  let timer;
  addEventListener('resize', () => {
    if (timer === undefined) draw(false);
    clearTimeout(timer);
    timer = setTimeout(() => { timer = undefined; draw(false); }, 150);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(false));
  addEventListener('beforeprint', () => draw(true));
  addEventListener('afterprint', () => draw(false));
}
