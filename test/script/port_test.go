// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
)

// site is what the sandbox of TestPorts serves: on 8000 pages, a stream of events
// and a WebSocket that echoes, over IPv6 too; on 8001 a count of what it was
// sent, once that has ended.
const site = `import base64, hashlib, http.server, socket, socketserver, struct, threading, time
class Site(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, text, kind='text/html'):
        b = text.encode()
        self.send_response(200); self.send_header('Content-Type', kind); self.send_header('Content-Length', str(len(b)))
        self.send_header('Set-Cookie', 'mine=1; Domain=localhost; Path=/'); self.end_headers(); self.wfile.write(b)
    def do_GET(self):
        path = self.path.split('?')[0]
        if path == '/events':
            self.send_response(200); self.send_header('Content-Type', 'text/event-stream'); self.send_header('Connection', 'close'); self.end_headers()
            for i in range(3): self.wfile.write(b'data: %d\n\n' % i); self.wfile.flush(); time.sleep(0.05)
            self.close_connection = True
        elif path == '/ws':
            key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
            self.send_response(101); self.send_header('Upgrade', 'websocket'); self.send_header('Connection', 'Upgrade')
            self.send_header('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()); self.end_headers()
            while (head := self.rfile.read(2)):
                n = head[1] & 127
                if n == 126: n, = struct.unpack('>H', self.rfile.read(2))
                mask = self.rfile.read(4); b = bytes(c ^ mask[i % 4] for i, c in enumerate(self.rfile.read(n)))
                size = bytes([n]) if n < 126 else struct.pack('>BH', 126, n)
                self.wfile.write(bytes([head[0]]) + size + b)
            self.close_connection = True
        elif path == '/': self.answer('<h1>home</h1>' + str(self.headers))
        elif path == '/app.js': self.answer('js')
        else: self.send_error(404, 'the program has no ' + path)
class Server(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
class Count(socketserver.StreamRequestHandler):
    def handle(self): self.wfile.write(b'got %d' % len(self.rfile.read()))
threading.Thread(target=socketserver.ThreadingTCPServer(('127.0.0.1', 8001), Count).serve_forever).start()
Server(('::', 8000), Site).serve_forever()
`

// visit is a browser, as far as this matters: cookies, and headers of its own.
type visit struct {
	t    *testing.T
	http *http.Client
}

// browser connects every name to the server at addr.
func browser(t *testing.T, addr string) *visit {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &visit{t, &http.Client{Jar: jar, Transport: tr}}
}

func (v *visit) get(address string, headers ...string) (status int, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), "GET", address, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// open is get as by typing the address.
func (v *visit) open(address string) (int, string) {
	v.t.Helper()
	return v.get(address, "Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none")
}

func TestPorts(t *testing.T) {
	images := needRoot(t)
	dir := t.TempDir()
	s := &server{dir: dir, env: environment(dir, images)}
	start := func() (addr string) {
		t.Helper()
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "run", "server.json"))
		if err != nil {
			t.Fatal(err)
		}
		var note struct{ URL string }
		if err := json.Unmarshal(b, &note); err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(note.URL, "http://")
	}
	addr := start()
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	do := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := s.command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	do(t, "create", "--name", "box")
	write := s.command("exec", "-i", "box", "-c", "cat > site.py")
	write.Stdin = strings.NewReader(site)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("write: %v\n%s", err, out)
	}
	serve := func(t *testing.T) {
		t.Helper()
		do(t, "exec", "-n", "box", "-c", `nohup python3 site.py >log 2>&1 &
python3 -c 'import socket, time
for port in (8000, 8001):
    while socket.socket().connect_ex(("127.0.0.1", port)): time.sleep(.02)'`)
	}
	serve(t)
	preview := func(t *testing.T, port string, flags ...string) (p v1.Preview) {
		t.Helper()
		if err := json.Unmarshal([]byte(do(t, append([]string{"preview", "box", port, "-o", "json"}, flags...)...)), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("AreListed", func(t *testing.T) {
		var list v1.PortList
		if err := json.Unmarshal([]byte(do(t, "ports", "box", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 2 {
			t.Fatalf("got %+v", list)
		}
		for i, want := range []v1.Port{{Port: 8000, Address: "::"}, {Port: 8001, Address: "127.0.0.1"}} {
			got := list.Items[i]
			if got.Port != want.Port || got.Address != want.Address || got.Protocol != "tcp" || got.PID < 2 || got.Command != "python3" || got.User != "sandbox" {
				t.Errorf("got %+v", got)
			}
		}
		if out := do(t, "ports", "box"); !strings.Contains(out, "8001") || !strings.Contains(out, "python3") {
			t.Errorf("got %s", out)
		}
	})
	link := preview(t, "8000")
	b := browser(t, addr)
	t.Run("ArePreviewedByHost", func(t *testing.T) {
		if status, body := b.open(link.URL); status != 200 || !strings.Contains(body, "home") || strings.Contains(body, "spp_") {
			t.Fatalf("got %d %s", status, body)
		}
		if status, body := b.get(link.BaseURL+"app.js", "Sec-Fetch-Site", "same-origin"); status != 200 || body != "js" {
			t.Errorf("got %d %s", status, body)
		}
		if status, body := browser(t, addr).open(link.BaseURL); status != 401 || !strings.Contains(body, "private") {
			t.Errorf("without the link: got %d %s", status, body)
		}
	})
	t.Run("ArePreviewedByPath", func(t *testing.T) {
		p := browser(t, addr)
		path, query, _ := strings.Cut(link.PathURL, "?")
		if status, body := p.get(path + "app.js?" + query); status != 200 || body != "js" {
			t.Errorf("got %d %s", status, body)
		}
		if status, _ := p.get(path + "app.js"); status != 401 {
			t.Errorf("without the link: got %d", status)
		}
	})
	t.Run("Stream", func(t *testing.T) { testPreviewedStreams(t, addr, b, link) })
	t.Run("NeverServeTheAPI", func(t *testing.T) {
		token, err := os.ReadFile(filepath.Join(dir, "data", "admin-token"))
		if err != nil {
			t.Fatal(err)
		}
		auth := []string{"Authorization", "Bearer " + strings.TrimSpace(string(token))}
		c := browser(t, addr)
		for _, path := range []string{"v1/info", "mcp", "healthz", "metrics", "api/v1/sandboxes"} {
			if status, body := c.get(link.BaseURL+path, auth...); status != 404 || !strings.Contains(body, "the program has no /"+path) {
				t.Errorf("%s: got %d %s", path, status, body)
			}
		}
		for _, host := range []string{"0-" + link.SandboxID, "8000-zzzz", "x.8000-" + link.SandboxID} {
			if status, body := c.get("http://"+host+".localhost/v1/info", auth...); status != 404 || strings.Contains(body, "version") {
				t.Errorf("%s: got %d %s", host, status, body)
			}
		}
		if status, _ := c.get("http://evil.example/preview/"+link.SandboxID+"/8000/", auth...); status != 403 {
			t.Errorf("a rebound name: got %d", status)
		}
		if status, _ := c.get("http://localhost/v1/info", append(auth, "Origin", strings.TrimSuffix(link.BaseURL, "/"))...); status != 403 {
			t.Errorf("a preview's page calls the API: got %d", status)
		}
	})
	t.Run("AreTheSandboxesOwn", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, at := range []net.Addr{l.Addr(), addrOf(t, addr)} {
			_, port, _ := net.SplitHostPort(at.String())
			p := preview(t, port)
			if status, body := browser(t, addr).get(p.URL); status != 502 || !strings.Contains(body, "nothing listens on port "+port) {
				t.Errorf("the host's port %s: got %d %s", port, status, body)
			}
		}
	})
	t.Run("AreForwarded", func(t *testing.T) { testForwardedPorts(t, s) })
	t.Run("AreReachedInEveryMode", func(t *testing.T) {
		for _, mode := range [][]string{{"restricted", "--allow-domain", "example.org"}, {"open"}, {"off"}} {
			do(t, append([]string{"network", "set", "box"}, mode...)...)
			if status, body := b.get(link.BaseURL+"app.js", "Sec-Fetch-Site", "same-origin"); status != 200 || body != "js" {
				t.Errorf("%s, by host: got %d %s", mode[0], status, body)
			}
			path, query, _ := strings.Cut(link.PathURL, "?")
			if status, body := browser(t, addr).get(path + "app.js?" + query); status != 200 || body != "js" {
				t.Errorf("%s, by path: got %d %s", mode[0], status, body)
			}
			if status, body := b.get(link.BaseURL+"events", "Sec-Fetch-Site", "same-origin"); status != 200 || !strings.HasSuffix(body, "data: 2\n\n") {
				t.Errorf("%s, a stream: got %d %q", mode[0], status, body)
			}
		}
	})
	t.Run("StayPreviewedOverARestart", func(t *testing.T) {
		if err := s.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		addr = start()
		if status, body := browser(t, addr).open(link.URL); status != 200 || !strings.Contains(body, "home") {
			t.Errorf("got %d %s", status, body)
		}
	})
	t.Run("SayWhatBecameOfTheirSandbox", func(t *testing.T) {
		v := browser(t, addr)
		do(t, "stop", "box")
		if status, body := v.open(link.URL); status != 503 || !strings.Contains(body, "is stopped (user") {
			t.Errorf("stopped: got %d %s", status, body)
		}
		do(t, "start", "box")
		if status, body := v.open(link.URL); status != 502 || !strings.Contains(body, "nothing listens on port 8000") {
			t.Errorf("started: got %d %s", status, body)
		}
		serve(t)
		if status, body := v.open(link.URL); status != 200 {
			t.Errorf("served: got %d %s", status, body)
		}
		if out := do(t, "activity", "box"); strings.Count(out, "preview.opened") < 1 || !strings.Contains(out, "link "+link.ID+" to port 8000") {
			t.Errorf("got %s", out)
		}
		short := preview(t, "8000", "--expires", "1s")
		time.Sleep(time.Until(short.ExpiresAt))
		if status, body := browser(t, addr).open(short.URL); status != 401 || !strings.Contains(body, "expired") {
			t.Errorf("expired: got %d %s", status, body)
		}
		do(t, "rm", "-f", "box")
		if status, _ := v.open(link.URL); status != 404 {
			t.Errorf("deleted: got %d", status)
		}
	})
}

// testPreviewedStreams tests what goes on: events, and a WebSocket.
func testPreviewedStreams(t *testing.T, addr string, b *visit, link v1.Preview) {
	if status, body := b.get(link.BaseURL+"events", "Sec-Fetch-Site", "same-origin"); status != 200 || body != "data: 0\n\ndata: 1\n\ndata: 2\n\n" {
		t.Errorf("got %d %q", status, body)
	}
	u, err := url.Parse(link.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*websocket.DialOptions{
		{HTTPClient: b.http, HTTPHeader: http.Header{"Origin": {"http://" + u.Host}}},
		{HTTPClient: browser(t, addr).http, HTTPHeader: http.Header{"X-Sandpit-Token": {link.Token}}},
	} {
		c, _, err := websocket.Dial(t.Context(), link.BaseURL+"ws", o)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"x", strings.Repeat("long ", 5000)} {
			if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := c.Read(t.Context()); err != nil || string(got) != text {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		}
		_ = c.CloseNow()
	}
	if _, resp, err := websocket.Dial(t.Context(), link.BaseURL+"ws", &websocket.DialOptions{
		HTTPClient: b.http, HTTPHeader: http.Header{"Origin": {"http://evil.example"}},
	}); err == nil || resp.StatusCode != 403 {
		t.Errorf("a page elsewhere opens a WebSocket: %v", err)
	}
}

// testForwardedPorts tests what listens inside and what does not.
func testForwardedPorts(t *testing.T, s *server) {
	cmd := s.command("forward", "box", "0:8001", "0:9")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var local [2]string
	for i := range local {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("forward: %v %s", err, told.String())
		}
		local[i], _, _ = strings.Cut(line, " ")
	}
	for _, size := range []int{0, 1, 5_000_000} {
		nc, err := net.Dial("tcp", local[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		_ = nc.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(nc); err != nil || string(got) != fmt.Sprint("got ", size) {
			t.Errorf("got %q, %v", got, err)
		}
		_ = nc.Close()
	}
	nc, err := net.Dial("tcp", local[1])
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(nc); len(got) != 0 {
		t.Errorf("got %q of a port where nothing listens", got)
	}
	_ = nc.Close()
	interruptIt(t, cmd)
	if !strings.Contains(told.String(), "nothing listens on port 9") {
		t.Errorf("it said %q", told.String())
	}
}

func addrOf(t *testing.T, addr string) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// interruptIt ends a command that runs until then, and wants it to end well.
func interruptIt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
