// Notes what a page costs: its long tasks (of 50 ms or more, those that browsers report), and when its first rows were drawn.
(() => {
  const tasks = [], observer = new PerformanceObserver((l) => take(l.getEntries()));
  const take = (entries) => { for (const e of entries) tasks.push(e.duration); };
  observer.observe({ type: "longtask", buffered: true });
  const costs = globalThis.sandpitCosts = {
    rows: 0, // ms since the visit began
    frames: (n) => new Promise((done) => { const next = () => (n-- > 0 ? requestAnimationFrame(next) : done()); next(); }),
    // drawn is over when what the page is like now was drawn.
    drawn: () => new Promise((done) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); })),
    // tasks returns those that ended since it was called last.
    tasks: async () => { await costs.frames(2); take(observer.takeRecords()); return tasks.splice(0); },
    until: (is) => new Promise((done) => { const look = () => (is() ? done(true) : setTimeout(look, 10)); look(); }),
  };
  const rows = new MutationObserver(() => {
    if (!document.querySelector(".rows .row .name")) return;
    rows.disconnect();
    void costs.drawn().then(() => { costs.rows = performance.now(); });
  });
  rows.observe(document, { childList: true, subtree: true });
})();
