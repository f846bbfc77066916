// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/network/preview"
)

func TestHosts(t *testing.T) {
	h := openAt(t, "prev.example.org", mirror)
	for host, want := range map[string]int{
		"8000-" + web + ".prev.example.org":                  200,
		"8000-" + web + ".prev.example.org:8443":             200,
		"8000-" + web + ".prev.example.org.":                 200,
		"8000-" + strings.ToUpper(web) + ".PREV.example.org": 200,
		"0-" + web + ".prev.example.org":                     404,
		"65536-" + web + ".prev.example.org":                 404,
		"08000-" + web + ".prev.example.org":                 404,
		"99999999999999999999-" + web + ".prev.example.org":  404,
		"8000-web.prev.example.org":                          404,
		"8000-.prev.example.org":                             404,
		"x.8000-" + web + ".prev.example.org":                404,
		"8000-" + web + ".prev.example.org:80@evil.example":  404,
	} {
		if !h.proxy.IsHost(host) {
			t.Errorf("%s is not taken for a preview's", host)
		}
		// Raw, as no client would send some of them.
		resp := h.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + owner + "\r\n\r\n")
		if resp.StatusCode != want && !(want == 404 && resp.StatusCode == 400) {
			t.Errorf("%s: got %d, want %d", host, resp.StatusCode, want)
		}
	}
	for _, host := range []string{
		"prev.example.org", "api.prev.example.org", "localhost", "8000-" + web + ".localhost", "8000-" + web,
		"8000-" + web + ".prev.example.org.evil.example", "8000-" + web + "prev.example.org", "127.0.0.1", "",
	} {
		if h.proxy.IsHost(host) {
			t.Errorf("%q is taken for a preview's", host)
		}
	}
	for _, domain := range []string{"Example.org", ".example.org", "example.org.", "a..b", "a b", "127.0.0.1", "a:80", "é.org", strings.Repeat("a", 64)} {
		if preview.CheckDomain("domain", domain) == nil {
			t.Errorf("the domain %q is taken", domain)
		}
	}
}

func TestPaths(t *testing.T) {
	h := open(t, mirror)
	for path, want := range map[string]string{
		pathOf(web):                       "/",
		pathOf(web) + "/":                 "/",
		pathOf(web) + "/a/b?x=1&y":        "/a/b?x=1&y",
		pathOf(web) + "//a":               "//a",
		pathOf(web) + "/a%2Fb%20c":        "/a%2Fb%20c",
		pathOf(web) + "/../../../v1/x":    "/../../../v1/x",
		pathOf(web) + "/..%2f..%2fv1":     "/..%2f..%2fv1",
		pathOf(web) + "/%2e%2e/%2E%2e/v1": "/%2e%2e/%2E%2e/v1",
		pathOf(web) + "/a;b?q=1;2":        "/a;b?q=1;2",
		pathOf(web) + "/?":                "/?",
		pathOf(web) + "/%00":              "/%00",
		pathOf(web) + pathOf(other) + "/": pathOf(other) + "/",
	} {
		s := h.get(h.addr, path, "Authorization", "Bearer "+owner).want(t, 200).seen(t)
		if s.URI != want && s.URI+"?" != want {
			t.Errorf("%s: the program sees %s, want %s", path, s.URI, want)
		}
	}
	for _, path := range []string{
		"/preview/", "/preview//", "/preview/" + web, "/preview/" + web + "/", "/preview/" + web + "/0/", "/preview/" + web + "/65536/",
		"/preview/" + web + "/-1/", "/preview/" + web + "/+8000/", "/preview/" + web + "/08000/", "/preview/" + web + "/8000%2F/",
		"/preview/web/8000/", "/preview/../" + web + "/8000/", "/preview/" + strings.ToUpper(web) + "/8000/", "/preview/%61aaaaaaaaaaaaaaa/8000/",
		"/%70review/" + web + "/8000/", "/v1/sandboxes", "/",
	} {
		if a := h.get(h.addr, path, "Authorization", "Bearer "+owner); a.StatusCode != 404 {
			t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
		}
	}
}

func TestTheProgramSeesNothingOfOurs(t *testing.T) {
	h := open(t, mirror)
	link := h.link(web, 8000)
	for what, headers := range map[string][]string{
		"a bearer token":           {"Authorization", "Bearer " + owner},
		"an admin token":           {"Authorization", "Bearer " + admin, "X-Sandpit-Token", link},
		"an old token":             {"Authorization", "Bearer spt_ended", "X-Sandpit-Token", link},
		"a link as bearer":         {"Authorization", "bearer " + link},
		"two headers":              {"Authorization", "Basic eDp5", "Authorization", "Bearer " + owner, "X-Sandpit-Token", link},
		"a hop-by-hop header":      {"Connection", "Keep-Alive, X-Own", "X-Own", "1", "Proxy-Authorization", "Basic x", "X-Sandpit-Token", link},
		"cookies":                  {"Cookie", "sandpit_preview=" + link, "Cookie", "x=1;sandpit_preview=" + owner, "X-Sandpit-Token", link},
		"the session's cookie":     {"Cookie", "x=1; __Host-sandpit=sandpit_preview; y=2", "Cookie", "__host-sandpit =sandpit_preview;=__Host-sandpit=sandpit_preview", "X-Sandpit-Token", link},
		"a referer with the token": {"Referer", "http://x/a?b=1&sandpit_token=" + link + "#f", "X-Sandpit-Token", link},
		"forwarded headers":        {"Forwarded", "for=1.2.3.4", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Host", "evil", "X-Forwarded-Prefix", "/evil", "X-Sandpit-Token", link},
	} {
		s := h.get(h.hostOf(web), "/p?a=1&%73andpit_token="+link+"&b=2&sandpit_token=x", headers...).want(t, 200).seen(t)
		if s.URI != "/p?a=1&b=2" {
			t.Errorf("%s: the program sees %s", what, s.URI)
		}
		text := fmt.Sprint(s.Header)
		for _, secret := range []string{owner, admin, link, "spt_", "spp_", "Sandpit", "X-Own", "1.2.3.4", "evil", "Proxy-Auth", "sandpit_preview", "andpit="} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: the program sees %q in %s", what, secret, text)
			}
		}
		if got := s.Header.Get("X-Forwarded-For"); got != "127.0.0.1" {
			t.Errorf("%s: X-Forwarded-For is %q", what, got)
		}
		if s.Header.Get("X-Forwarded-Host") != h.hostOf(web) || s.Header.Get("X-Forwarded-Proto") != "http" || s.Host != h.hostOf(web) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	t.Run("ButItsOwnCredentials", func(t *testing.T) {
		s := h.get(h.hostOf(web), "/?token=x", "Authorization", "Bearer eyJhbGciOi.its.own", "Cookie", "session=1; sandpit_previews=2", "X-Sandpit-Token", link).seen(t)
		if s.Header.Get("Authorization") != "Bearer eyJhbGciOi.its.own" || s.Header.Get("Cookie") != "session=1; sandpit_previews=2" || s.URI != "/?token=x" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("AndItsPrefix", func(t *testing.T) {
		s := h.get(h.addr, pathOf(web)+"/x", "X-Sandpit-Token", link, "X-Forwarded-Proto", "https").seen(t)
		if s.Header.Get("X-Forwarded-Prefix") != pathOf(web) || s.Header.Get("X-Forwarded-Proto") != "https" {
			t.Errorf("got %+v", s.Header)
		}
	})
}

func TestAnswers(t *testing.T) {
	kept := []string{ // by a browser, beyond the preview
		"Strict-Transport-Security", "Alt-Svc", "Public-Key-Pins", "Clear-Site-Data", "NEL", "Report-To", "Reporting-Endpoints",
	}
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		hd := w.Header()
		for _, c := range []string{
			"a=1", "b=2; Path=/; HttpOnly", "c=3; path=/admin; DOMAIN=localhost; Secure", "sandpit_preview=evil", " Sandpit_Preview =evil; Path=/", "d=4; Path=relative",
			"__Host-sandpit=evil; Secure; Path=/", "__HOST-SANDPIT =evil; Secure", "=__Host-sandpit=evil", " = \tsandpit_preview=evil", "__Host-sandpit",
		} {
			hd.Add("Set-Cookie", c)
		}
		for _, name := range kept {
			hd.Set(name, "x")
		}
		hd.Set("Service-Worker-Allowed", "/")
		hd.Set("X-Powered-By", "tests")
		if to := r.URL.Query().Get("to"); to != "" {
			hd.Set("Location", strings.ReplaceAll(to, "HOST", r.Host))
			w.WriteHeader(http.StatusFound)
		}
	})
	t.Run("ByPathKeepToTheirPrefix", func(t *testing.T) {
		a := h.get(h.addr, pathOf(web)+"/", "Authorization", "Bearer "+owner).want(t, 200)
		p := pathOf(web)
		want := []string{"a=1; Path=" + p + "/", "b=2; HttpOnly; Path=" + p + "/", "c=3; Secure; Path=" + p + "/admin", "d=4; Path=" + p + "/"}
		if got := a.Header["Set-Cookie"]; !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		for _, name := range append(kept[:len(kept):len(kept)], "Service-Worker-Allowed", "Access-Control-Allow-Origin") {
			if a.Header.Get(name) != "" {
				t.Errorf("%s is passed on", name)
			}
		}
		if a.Header.Get("X-Powered-By") != "tests" {
			t.Error("the program's own headers are lost")
		}
	})
	t.Run("ByHostKeepToTheirHost", func(t *testing.T) {
		a := h.get(h.hostOf(web), "/", "Authorization", "Bearer "+owner).want(t, 200)
		want := []string{"a=1", "b=2; HttpOnly; Path=/", "c=3; Secure; Path=/admin", "d=4; Path=relative"}
		if got := a.Header["Set-Cookie"]; !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		for _, name := range kept {
			if a.Header.Get(name) != "" {
				t.Errorf("%s is passed on", name)
			}
		}
		if a.Header.Get("Service-Worker-Allowed") != "/" {
			t.Error("the program may have no service worker of its own origin")
		}
	})
	t.Run("LeadWhereTheProgramMeans", func(t *testing.T) {
		p := pathOf(web)
		for to, want := range map[string][2]string{ // by path, by host
			"/login?x=1":                   {p + "/login?x=1", "/login?x=1"},
			"next":                         {"next", "next"},
			"http://HOST/a":                {p + "/a", "/a"},
			"http://HOST":                  {p + "/", "/"},
			"https://HOST?q":               {p + "/?q", "/?q"},
			"http://localhost:8000/in":     {p + "/in", "/in"},
			"http://127.0.0.1:8000/in":     {p + "/in", "/in"},
			"http://0.0.0.0:8000/in":       {p + "/in", "/in"},
			"http://localhost:9000/in":     {"http://localhost:9000/in", "http://localhost:9000/in"},
			"https://elsewhere.example/":   {"https://elsewhere.example/", "https://elsewhere.example/"},
			"//elsewhere.example/":         {"//elsewhere.example/", "//elsewhere.example/"},
			"http://u:p@localhost:8000/in": {"http://u:p@localhost:8000/in", "http://u:p@localhost:8000/in"},
			"http://HOST//evil.example/":   {p + "//evil.example/", "http://HOST//evil.example/"},
			"mailto:x@y":                   {"mailto:x@y", "mailto:x@y"},
		} {
			for i, form := range [][2]string{{h.addr, p}, {h.hostOf(web), ""}} {
				a := h.get(form[0], form[1]+"/?to="+strings.ReplaceAll(strings.ReplaceAll(to, "&", "%26"), "?", "%3F"), "Authorization", "Bearer "+owner).want(t, 302)
				if got, want := a.Header.Get("Location"), strings.ReplaceAll(want[i], "HOST", form[0]); got != want {
					t.Errorf("%s at %s: got %s, want %s", to, form[0], got, want)
				}
			}
		}
	})
}

func TestWhatCannotBeShownIsExplained(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if r.URL.Path == "/garbage" {
			_, _ = io.WriteString(nc, "SSH-2.0-OpenSSH <script>\r\n\r\n")
		}
		_ = nc.Close()
	})
	auth := []string{"Authorization", "Bearer " + owner}
	h.stopped[other] = true
	for _, c := range []struct {
		host, path string
		status     int
		words      string
	}{
		{"9999-" + web + ".localhost", "/", 502, "nothing listens on port 9999"},
		{h.hostOf(other), "/", 503, "is stopped"},
		{h.hostOf(web), "/cut", 502, "broke the connection off"},
		{h.hostOf(web), "/garbage", 502, "not HTTP"},
	} {
		a := h.get(c.host, c.path, auth...).want(t, c.status)
		if !strings.Contains(a.body, c.words) || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s%s: got %s", c.host, c.path, a.body)
		}
		a = h.get(c.host, c.path, append(auth, "Accept", "text/html,*/*")...).want(t, c.status)
		if !strings.Contains(a.body, "<h1>") || !strings.Contains(a.body, c.words) || strings.Contains(a.body, "<script") {
			t.Errorf("%s%s: got %s", c.host, c.path, a.body)
		}
	}
	if a := h.do("CONNECT", h.hostOf(web), "x.example:80", nil, auth...); a.StatusCode != 400 && a.StatusCode != 404 {
		t.Errorf("CONNECT: got %d", a.StatusCode)
	}
}

func TestStreams(t *testing.T) {
	more := make(chan struct{})
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				_, _ = io.WriteString(w, "data: x\n\n")
				_ = http.NewResponseController(w).Flush()
				<-more
			}
		case "/echo":
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
			if err != nil {
				return
			}
			defer c.CloseNow()
			for {
				kind, b, err := c.Read(r.Context())
				if err != nil || c.Write(r.Context(), kind, b) != nil {
					return
				}
			}
		case "/upload":
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}
	})
	link := h.link(web, 8000)
	t.Run("ComeAtOnce", func(t *testing.T) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+h.addr+pathOf(web)+"/events", nil)
		req.Header.Set("X-Sandpit-Token", link)
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for range 3 { // each waits to have been read before the next is sent
			if _, err := io.ReadFull(resp.Body, make([]byte, len("data: x\n\n"))); err != nil {
				t.Fatal(err)
			}
			more <- struct{}{}
		}
	})
	t.Run("WebSocketsPass", func(t *testing.T) {
		for _, address := range []string{"ws://" + h.addr + pathOf(web) + "/echo?sandpit_token=" + link, "ws://" + h.addr + "/echo?sandpit_token=" + link} {
			o := &websocket.DialOptions{HTTPHeader: http.Header{"Accept": {"text/html"}}}
			if !strings.Contains(address, "/preview/") {
				o.Host = h.hostOf(web)
			}
			c, _, err := websocket.Dial(t.Context(), address, o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			for _, text := range []string{"one", strings.Repeat("x", 30_000)} {
				if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
					t.Fatal(err)
				}
				if _, got, err := c.Read(t.Context()); err != nil || string(got) != text {
					t.Fatalf("got %d bytes, %v", len(got), err)
				}
			}
		}
		_, resp, err := websocket.Dial(t.Context(), "ws://"+h.addr+pathOf(web)+"/echo", nil)
		if err == nil || resp.StatusCode != 401 {
			t.Errorf("without a token: %v", err)
		}
	})
	t.Run("EndWithTheirLink", func(t *testing.T) {
		short := h.links.Token(preview.Grant{Project: "default", Sandbox: web, Port: 8000, Expires: time.Unix(1_800_000_001, 0), Link: "short"})
		c, _, err := websocket.Dial(t.Context(), "ws://"+h.addr+pathOf(web)+"/echo?sandpit_token="+short, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if _, _, err := c.Read(t.Context()); err == nil || t.Context().Err() != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("EndWithTheirToken", func(t *testing.T) {
		valid, end := context.WithCancel(t.Context())
		h.mu.Lock()
		h.valid = valid
		h.mu.Unlock()
		c, _, err := websocket.Dial(t.Context(), "ws://"+h.addr+pathOf(web)+"/echo", &websocket.DialOptions{HTTPHeader: http.Header{"X-Sandpit-Token": {owner}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		end()
		if _, _, err := c.Read(t.Context()); err == nil || t.Context().Err() != nil {
			t.Errorf("got %v", err)
		}
		h.mu.Lock()
		h.valid = context.Background()
		h.mu.Unlock()
	})
	t.Run("OfAnyLengthGoIn", func(t *testing.T) {
		const size = 32 << 20
		a := h.do("POST", h.addr, pathOf(web)+"/upload", io.LimitReader(zeros{}, size), "X-Sandpit-Token", link).want(t, 200)
		if a.body != fmt.Sprint(size, "<nil>") && a.body != fmt.Sprint(size, nil) {
			t.Errorf("got %q", a.body)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestWhatStandsStillEnds(t *testing.T) {
	quiet := func(o *preview.Options) { o.Idle, o.Stall = 50*time.Millisecond, 50*time.Millisecond }
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		<-r.Context().Done() // the proxy's connection is closed
	}, quiet)
	t.Run("AProgramThatSaysNothing", func(t *testing.T) {
		a := h.get(h.hostOf(web), "/", "Authorization", "Bearer "+owner).want(t, 502)
		if !strings.Contains(a.body, "said nothing for too long") {
			t.Errorf("got %s", a.body)
		}
	})
	t.Run("AClientThatSendsNothing", func(t *testing.T) {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		fmt.Fprintf(nc, "POST / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\n\r\nx", h.hostOf(web), owner)
		b, _ := io.ReadAll(nc)
		if strings.HasPrefix(string(b), "HTTP/1.1 200") {
			t.Errorf("got %s", b)
		}
	})
}

// TestNothingIsSmuggled sends what a lenient proxy would take for other requests
// than the program behind it.
func TestNothingIsSmuggled(t *testing.T) {
	var mu sync.Mutex
	var got []string
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.RequestURI+" "+string(b))
	})
	for _, head := range []string{
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"Content-Length: 4\r\nContent-Length: 40\r\n\r\nabcdGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"X: y\rGET /smuggled HTTP/1.1\r\n\r\n",
		"Host: other\r\n\r\n",
	} {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "POST /outer HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s", h.hostOf(web), owner, head)
		_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(nc); os.IsTimeout(err) {
			t.Errorf("%q: no answer", head)
		}
		_ = nc.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range got {
		if strings.Contains(strings.SplitN(request, " ", 3)[1], "smuggled") {
			t.Errorf("the program was asked for %q", request)
		}
	}
}

// TestConnectionsAreNotShared: each port of each sandbox has
// connections of its own.
func TestConnectionsAreNotShared(t *testing.T) {
	h := open(t, mirror)
	for range 3 {
		h.get(h.hostOf(web), "/", "Authorization", "Bearer "+owner).want(t, 200)
	}
	if h.dialed() != 1 {
		t.Errorf("three requests to one program took %d connections", h.dialed())
	}
	h.get(h.hostOf(other), "/", "Authorization", "Bearer "+owner).want(t, 200)
	if h.dialed() != 2 {
		t.Errorf("another sandbox was reached by %d connections in all", h.dialed())
	}
	h.get(h.hostOf(alien), "/", "Authorization", "Bearer "+mallet).want(t, 200)
	h.get(h.hostOf(alien), "/", "Authorization", "Bearer "+owner).want(t, 404)
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ domain, host, proto, want string }{
		{"localhost", "127.0.0.1:8080", "", "http://8000-" + web + ".localhost:8080/"},
		{"localhost", "[::1]:8080", "", "http://8000-" + web + ".localhost:8080/"},
		{"localhost", "localhost", "", "http://8000-" + web + ".localhost/"},
		{"localhost", "10.0.0.5:8080", "", "http://10.0.0.5:8080/preview/" + web + "/8000/"},
		{"localhost", "box.example.org", "https", "https://box.example.org/preview/" + web + "/8000/"},
		{"p.example.org", "api.example.org", "https", "https://8000-" + web + ".p.example.org/"},
		{"p.example.org", "10.0.0.5:8080", "", "http://8000-" + web + ".p.example.org:8080/"},
		{"", "127.0.0.1:8080", "", "http://127.0.0.1:8080/preview/" + web + "/8000/"},
	} {
		l, err := preview.NewLinks(make([]byte, preview.KeySize), c.domain)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		r.Header.Set("X-Forwarded-Proto", c.proto)
		if got, _ := l.Addresses(r, web, 8000); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}
