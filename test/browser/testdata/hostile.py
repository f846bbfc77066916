# A web server whose page finds out what it can do. Each answer has the headers by which it could become more.
import http.server, json

PAGE = b"""<!doctype html><html><head><title>hostile</title>
<script>window.frameSaid = new Promise(done => addEventListener('message', e => done(e.data)))</script>
<link rel=stylesheet href="style.css"></head><body><p id=p>x</p><img id=i src="dot.svg"><iframe id=f src="frame.html"></iframe>
<script src="script.js"></script><script type=module src="module.js"></script>
<script>
const named = f => { try { return String(f()) } catch (e) { return e.name } }
const asked = async (path, init) => { try { const r = await fetch(path, init); return r.status + ' ' + (await r.text()).trim() } catch (e) { return e.name } }
window.tried = (async () => {
  await new Promise(done => addEventListener('load', done))
  const of = {origin: window.origin, script: window.scriptRan, module: window.moduleRan}
  of.style = getComputedStyle(document.getElementById('p')).color
  of.image = document.getElementById('i').naturalWidth ? 'loaded' : 'broken'
  of.frame = await window.frameSaid
  of.cookie = named(() => document.cookie)
  of.storage = named(() => localStorage.length)
  of.database = named(() => indexedDB.open('x'))
  of.worker = await (async () => { try { await navigator.serviceWorker.register('sw.js', {scope: '/'}); return 'registered' } catch (e) { return e.name } })()
  of.fetch = await asked('data.txt')
  of.post = await asked('echo', {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Own': '1'}, body: '{"a":1}'})
  of.api = await asked('/v1/whoami', {credentials: 'include'})
  of.front = await asked('/connect')
  of.other = await asked('/preview/aaaaaaaaaaaaaaaa/8000/')
  return of
})()
</script></body></html>"""

FILES = {
    "/": ("text/html", PAGE),
    "/style.css": ("text/css", b"p { color: rgb(1, 2, 3) }"),
    "/script.js": ("text/javascript", b"window.scriptRan = 'ran'"),
    "/module.js": ("text/javascript", b"window.moduleRan = 'ran'"),
    "/dot.svg": ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>"),
    "/data.txt": ("text/plain", b"relative"),
    "/sw.js": ("text/javascript", b"""onfetch = e => { if (new URL(e.request.url).origin === location.origin) e.respondWith(new Response('taken over')) }
onactivate = e => e.waitUntil(clients.claim())
onmessage = async e => {
  const tried = []
  for (const init of [{credentials: 'include'}, {credentials: 'include', mode: 'no-cors'}, {credentials: 'include', mode: 'no-cors', method: 'POST', body: '{"key":"owned"}'}])
    try { const r = await fetch(e.data + '/v1/sandboxes', init); tried.push(r.type === 'opaque' ? 'opaque' : r.status + await r.text()) } catch (x) { tried.push(x.name) }
  e.source.postMessage('worker: ' + tried.join(' '))
}"""),
    "/frame.html": ("text/html", b"<script>parent.postMessage(window.origin, '*')</script>"),
}


class Program(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Set-Cookie", "stays=1; Path=/")
        self.send_header("Set-Cookie", "__Host-sandpit=forged; Secure; Path=/")
        self.send_header("Set-Cookie", "=__Host-sandpit=forged")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        kind, body = FILES.get(self.path.split("?")[0], ("text/plain", b"none"))
        self.answer(kind, body)

    def do_POST(self):
        self.answer("application/json", self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Program).serve_forever()
