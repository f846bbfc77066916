# A web server whose page, where it is shown in a frame, tries what it must not be able to, and what it must. What it found out the page
# sends to /said, which is a file then: nobody else can read it off the page.
import http.server, json, sys

BASE, ID = sys.argv[1], sys.argv[2]
ATTACK = open("attack.js").read()

PAGE = """<!doctype html><html><head><meta charset=utf-8><title>framed</title></head><body><p>a page in a frame</p>
<a id=leave href="%(base)s/connect" target="_top">out</a>
<form id=post method=post action="%(base)s/connect" target="_top"></form>
<form id=own method=post action="/echo" target="inner"><input name=a value=1></form><iframe name="inner"></iframe>
<script>parent.postMessage("a page in a frame", "*")</script>
<script>
const named = f => { try { return String(f()) } catch (e) { return e.name } }
if (top !== self) (async () => {
  const of = {origin: location.origin, referrer: document.referrer}
  of.document = named(() => parent.document.title)
  of.address = named(() => parent.location.href)
  of.storage = named(() => { localStorage.setItem("a", "kept"); return localStorage.getItem("a") })
  of.own = await fetch("/data").then(r => r.text(), e => e.name)
  of.form = await new Promise(done => {
    document.querySelector("iframe").onload = e => { const text = named(() => e.target.contentDocument.body.innerText); if (text) done(text) }
    document.getElementById("own").submit()
  })
  of.element = named(() => window.frameElement)
  of.camera = named(() => document.featurePolicy.allowsFeature("camera"))
  of.fullscreen = named(() => document.featurePolicy.allowsFeature("fullscreen"))
  of.leaves = named(() => { top.location.href = "%(base)s/connect"; return "no error" })
  of.replaces = named(() => { top.location.replace("%(base)s/connect"); return "no error" })
  document.getElementById("leave").click()
  document.getElementById("post").submit()
  of.tab = named(() => window.open("%(base)s/connect", "_blank"))
  of.asks = named(() => confirm("owned"))
  Object.assign(of, {attack: await (%(attack)s)("%(base)s", "%(id)s", false)})
  await fetch("/said", {method: "POST", body: JSON.stringify(of)})
})()
</script></body></html>""" % {"base": BASE, "id": ID, "attack": ATTACK}


class Program(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            self.answer("text/html", PAGE.encode())
        else:
            self.answer("text/plain", b"its own")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/said":
            json.loads(body)
            with open("said.json", "wb") as f:
                f.write(body)
        self.answer("text/plain", body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Program).serve_forever()
