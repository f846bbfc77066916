// What a page that is none of the server's tries against it, and what it could see of each. The name of a try says what it is;
// "owned" is what each would make.
async (base, id, worker) => {
  const text = async r => (r.type === "opaque" || r.type === "opaqueredirect" ? r.type : r.status + " " + (await r.text()).slice(0, 200));
  const asked = async (path, init) => { try { return await text(await fetch(base + path, { cache: "no-store", ...init })); } catch (e) { return e.name; } };
  const within = (ms, make) => new Promise(done => { make(done); setTimeout(() => done("nothing"), ms); });
  const named = f => { try { return String(f()); } catch (e) { return e.name; } };
  const json = { "Content-Type": "application/json" }, body = JSON.stringify({ key: "owned" });
  const tried = {};

  tried.fetch = await asked("/v1/sandboxes", { credentials: "include" });
  tried.fetchWithoutAsking = await asked("/v1/sandboxes", { credentials: "include", mode: "no-cors" });
  tried.post = await asked("/v1/sandboxes", { method: "POST", credentials: "include", headers: json, body });
  tried.postWithoutAsking = await asked("/v1/sandboxes", { method: "POST", credentials: "include", mode: "no-cors", body });
  tried.beacon = named(() => navigator.sendBeacon(base + "/v1/sandboxes", new Blob([body], { type: "text/plain" }))) && "sent";
  tried.delete = await asked("/v1/sandboxes/" + id, { method: "DELETE", credentials: "include" });
  tried.signOut = await asked("/v1/session", { method: "DELETE", credentials: "include" });
  tried.signIn = await asked("/v1/session", { method: "POST", credentials: "include", headers: json, body: JSON.stringify({ token: "spt_owned" }) });
  tried.otherCoat = await asked("/mcp", { method: "POST", credentials: "include", headers: json, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });

  tried.form = await within(1500, done => {
    const frame = document.createElement("iframe"), form = document.createElement("form"), input = document.createElement("input");
    frame.name = "taken";
    frame.onload = () => { if (form.parentNode?.sent) done(named(() => frame.contentWindow.document.body.innerText)); };
    form.method = "POST"; form.enctype = "text/plain"; form.target = "taken"; form.action = base + "/v1/sandboxes";
    input.name = '{"key":"owned","x":"'; input.value = '"}';
    form.append(input);
    document.body.append(frame, form);
    document.body.sent = true;
    form.submit();
  });
  tried.frame = await within(1500, done => {
    const frame = document.createElement("iframe");
    frame.onload = () => done(named(() => frame.contentWindow.document.body.innerText));
    frame.src = base + "/console/sandboxes";
    document.body.append(frame);
  });
  tried.framedAnswer = await within(1500, done => {
    const frame = document.createElement("iframe");
    frame.onload = () => done(named(() => frame.contentWindow.document.body.innerText));
    frame.src = base + "/v1/sandboxes";
    document.body.append(frame);
  });
  tried.script = await within(1500, done => {
    const script = document.createElement("script");
    script.onload = () => done("loaded");
    script.onerror = () => done("refused");
    script.src = base + "/v1/sandboxes";
    document.body.append(script);
  });
  tried.socket = await within(3000, done => {
    const socket = named(() => { const s = new WebSocket(base.replace("http", "ws") + "/v1/sandboxes/" + id + "/processes/1/stream"); s.onopen = () => done("open"); s.onerror = s.onclose = () => done("closed"); return "made"; });
    if (socket !== "made") done(socket);
  });
  tried.events = await within(3000, done => {
    const source = new EventSource(base + "/v1/events", { withCredentials: true });
    source.addEventListener("begun", () => done("begun"));
    source.onerror = () => { source.close(); done("closed"); };
  });
  tried.window = await within(2500, done => {
    const opened = window.open(base + "/console/sandboxes");
    if (!opened) { done("no window"); return; }
    setTimeout(() => done(opened.closed ? "severed" : named(() => opened.document.body.innerText)), 1500);
  });
  // Cookies that would stand in for the session's, of this host and of all of its domain.
  const domain = location.hostname.split(".").slice(-2).join(".");
  for (const name of ["__Host-sandpit", "__host-sandpit", "__HOST-SANDPIT", " __Host-sandpit", "=__Host-sandpit", "__Host-sandpit\t"]) {
    for (const rest of ["; Secure; Path=/", "; Secure; Path=/; Domain=" + domain, "; Secure; Path=/v1; Domain=" + domain, "; Path=/; Domain=" + domain]) {
      named(() => { document.cookie = name + "=owned" + rest; });
    }
  }
  tried.cookie = named(() => document.cookie);
  if (worker) {
    tried.worker = await within(10000, async done => {
      try {
        await navigator.serviceWorker.register("/sw.js", { scope: "/" });
        const ready = await navigator.serviceWorker.ready;
        navigator.serviceWorker.onmessage = e => done(e.data);
        ready.active.postMessage(base);
      } catch (e) { done(e.name); }
    });
  }
  return tried;
}
