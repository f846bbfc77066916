// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// dial opens a WebSocket; a refusal is the status and the body of the answer.
func (d *door) dial(ctx context.Context, token, path string, protocols ...string) (conn *websocket.Conn, status int, body []byte) {
	d.t.Helper()
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	conn, resp, err := websocket.Dial(ctx, d.url+path, &websocket.DialOptions{HTTPHeader: h, Subprotocols: protocols})
	if err == nil {
		conn.SetReadLimit(16 << 20)
		d.t.Cleanup(func() { _ = conn.CloseNow() })
		return conn, resp.StatusCode, nil
	}
	if resp == nil {
		d.t.Fatalf("%s: %v", path, err)
	}
	b := make([]byte, 2000)
	n, _ := resp.Body.Read(b) // as much of it as Dial keeps
	return nil, resp.StatusCode, b[:n]
}

// closedBy reads a socket to its end, and returns what it was closed with, and the last message.
func closedBy(ctx context.Context, conn *websocket.Conn) (code websocket.StatusCode, last string) {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err), last
		}
		last = string(b)
	}
}

func (d *door) does(token, method, path, body string, want int) []byte {
	d.t.Helper()
	status, b := d.ask(token, method, path, js, strings.NewReader(body))
	if status != want {
		d.t.Errorf("%s %s: %d %s", method, path, status, b)
	}
	return b
}

func TestATokenOfOneSandboxIsGoodForThatAlone(t *testing.T) {
	d := open(t)
	mine, other := d.create(d.token, `{"name":"mine"}`), d.create(d.token, `{"name":"other","env":{"KEY":"a-secret-value"}}`)
	caged := d.run("token", "create", "--sandbox", mine)
	d.does(caged, "POST", "/toolbox/"+mine+"/process/execute", `{"command":"id"}`, 200)
	for _, ref := range []string{other, "other"} {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/sandbox/" + ref, ""}, {"DELETE", "/sandbox/" + ref, ""}, {"POST", "/sandbox/" + ref + "/stop", ""}, {"POST", "/sandbox/" + ref + "/fork", "{}"},
			{"GET", "/sandbox/" + ref + "/ports/3000/preview-url", ""}, {"PUT", "/sandbox/" + ref + "/labels", `{"labels":{}}`},
			{"POST", "/toolbox/" + ref + "/process/execute", `{"command":"id"}`}, {"POST", "/toolbox/" + ref + "/toolbox/process/code-run", `{"code":"1"}`},
			{"GET", "/toolbox/" + ref + "/files?path=/etc", ""}, {"GET", "/toolbox/" + ref + "/files/download?path=/etc/passwd", ""},
			{"POST", "/toolbox/" + ref + "/files/bulk-download", `{"paths":["/etc/passwd"]}`}, {"GET", "/toolbox/" + ref + "/process/session", ""},
			{"POST", "/toolbox/" + ref + "/process/pty", `{"id":"p"}`}, {"GET", "/toolbox/" + ref + "/git/status?path=.", ""}, {"POST", "/toolbox/" + ref + "/env", `{"set":{"A":"b"}}`},
		} {
			status, b := d.ask(caged, c.method, c.path, js, strings.NewReader(c.body))
			d.refused("another sandbox's "+c.method+" "+c.path, status, b, 403, 404)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/sandbox", "{}"}, {"GET", "/sandbox", ""}, {"GET", "/sandbox/paginated", ""}, {"GET", "/volumes", ""}, {"POST", "/volumes", `{"name":"v"}`},
	} {
		status, b := d.ask(caged, c.method, c.path, js, strings.NewReader(c.body))
		if status == 200 && c.method == "GET" && !strings.Contains(string(b), other) && !strings.Contains(string(b), "a-secret-value") {
			continue // a list of what it reaches
		}
		d.refused("the API's "+c.method+" "+c.path, status, b, 401, 403)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if conn, status, b := d.dial(ctx, caged, "/toolbox/"+other+"/process/pty/create-connect?id=p"); conn != nil {
		t.Error("it opens a terminal in another sandbox")
	} else {
		d.refused("a terminal in another sandbox", status, b, 403, 404)
	}
	// Nothing but its own sandbox is told to it.
	if conn, status, b := d.dial(ctx, "", "/socket.io/?EIO=4&transport=websocket"); conn == nil {
		d.refused("events", status, b, 401, 403)
	} else {
		_ = conn.Write(ctx, websocket.MessageText, []byte(`40{"token":"`+caged+`"}`))
		_, _, _ = conn.Read(ctx)
		if _, b, err := conn.Read(ctx); err == nil && !strings.HasPrefix(string(b), "44") {
			t.Errorf("the events are told to a token of one sandbox: %s", b)
		}
	}
	d.does(d.token, "GET", "/sandbox/"+other, "", 200)
}

func TestAPreviewsTokenIsNone(t *testing.T) {
	d := open(t)
	mine, other := d.create(d.token, "{}"), d.create(d.token, "{}")
	preview := func(id, path string) (p struct{ URL, Token string }) {
		t.Helper()
		if err := json.Unmarshal(d.does(d.token, "GET", "/sandbox/"+id+path, "", 200), &p); err != nil || p.Token == "" {
			t.Fatal(err, p)
		}
		return p
	}
	plain, signed := preview(mine, "/ports/3000/preview-url"), preview(mine, "/ports/3000/signed-preview-url?expiresInSeconds=600")
	for what, token := range map[string]string{"a port's": plain.Token, "a signed address's": signed.Token} {
		for _, path := range []string{"/sandbox/" + mine, "/sandbox", "/toolbox/" + mine + "/files?path=/etc"} {
			status, b := d.ask(token, "GET", path, "", nil)
			d.refused(what+" token for "+path, status, b, 401, 403)
			status, b = d.ask("", "GET", path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"DAYTONA_SANDBOX_AUTH_KEY="+url.QueryEscape(token), "", nil)
			d.refused(what+" token in the query of "+path, status, b, 401)
		}
	}
	// The addresses by path: of another sandbox, of another port, without a token, and with the administrator's.
	at := func(id, port string) string {
		return strings.TrimSuffix(d.url, "/daytona") + "/preview/" + id + "/" + port + "/"
	}
	for what, try := range map[string]struct{ url, token string }{
		"another sandbox": {at(other, "3000"), plain.Token}, "another port": {at(mine, "3001"), plain.Token},
		"nobody": {at(mine, "3000"), ""}, "a guess": {at(mine, "3000"), "guess"}, "no sandbox": {at("none", "3000"), plain.Token},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", try.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if try.token != "" {
			r.Header.Set("x-daytona-preview-token", try.token)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode > 499 {
			t.Errorf("a preview for %s: %d", what, resp.StatusCode)
		}
	}
}

func TestTerminalsAreBounded(t *testing.T) {
	d := open(t)
	id := d.create(d.token, "{}")
	pty := "/toolbox/" + id + "/process/pty"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	envs := func(n int) string {
		text, _ := json.Marshal(map[string]string{"A": strings.Repeat("x", n)})
		return "X-Daytona-Pty-Envs~" + base64.RawURLEncoding.EncodeToString(text)
	}
	for what, c := range map[string]struct {
		query, protocol string
		want            []int
	}{
		"0 by 0":                     {"id=p&cols=0&rows=0", "", []int{400}},
		"5,000 by 5,000":             {"id=p&cols=5000&rows=5000", "", []int{400}},
		"no numbers":                 {"id=p&cols=a&rows=b", "", []int{400}},
		"no name":                    {"cols=80&rows=24", "", []int{400}},
		"a name of 10,000 bytes":     {"id=" + strings.Repeat("x", 10_000), "", []int{400}},
		"variables of 100 KB":        {"id=p", envs(100_000), []int{400}},
		"variables of 1 MB":          {"id=p", envs(1 << 20), []int{400, 431}}, // a head that is too long is read by no coat
		"variables that are no JSON": {"id=p", "X-Daytona-Pty-Envs~" + base64.RawURLEncoding.EncodeToString([]byte("[1]")), []int{400}},
		"variables in no base64":     {"id=p", "X-Daytona-Pty-Envs~!!", []int{400}},
		"a directory that is not":    {"id=p&cwd=/none/such", "", []int{400, 404, 409}},
	} {
		var protocols []string
		if c.protocol != "" {
			protocols = []string{c.protocol}
		}
		conn, status, b := d.dial(ctx, d.token, pty+"/create-connect?"+c.query, protocols...)
		if conn != nil {
			t.Errorf("%s is taken", what)
			_ = conn.CloseNow()
			continue
		}
		if status != 431 {
			d.refused(what, status, b, c.want...)
		}
	}
	d.does(d.token, "POST", pty, `{"id":"one"}`, 201)
	status, b := d.ask(d.token, "POST", pty, js, strings.NewReader(`{"id":"one"}`))
	d.refused("a second terminal of a name", status, b, 409)
	conn, status, b := d.dial(ctx, d.token, pty+"/create-connect?id=one")
	if conn != nil {
		t.Error("a second terminal of a name is joined as if it were new")
	} else {
		d.refused("a second terminal of a name, by a socket", status, b, 409)
	}
	for _, size := range []string{`{"cols":0,"rows":0}`, `{"cols":5000,"rows":5000}`, `{"cols":-1,"rows":1e9}`, `{}`} {
		status, b := d.ask(d.token, "POST", pty+"/one/resize", js, strings.NewReader(size))
		d.refused("resize to "+size, status, b, 400)
	}
	// What ended takes nothing more.
	if conn, status, b = d.dial(ctx, d.token, pty+"/one/connect"); conn == nil {
		t.Fatalf("join: %d %s", status, b)
	}
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("exit 3\n")); err != nil {
		t.Fatal(err)
	}
	if code, _ := closedBy(ctx, conn); code != websocket.StatusNormalClosure {
		t.Errorf("the end of a terminal is %d", code)
	}
	status, b = d.ask(d.token, "POST", pty+"/one/resize", js, strings.NewReader(`{"cols":80,"rows":24}`))
	d.refused("resize of what ended", status, b, 410)
	d.does(d.token, "POST", "/toolbox/"+id+"/process/session", `{"sessionId":"s"}`, 201)
	var ran struct{ CmdID string }
	if err := json.Unmarshal(d.does(d.token, "POST", "/toolbox/"+id+"/process/session/s/exec", `{"command":"true"}`, 200), &ran); err != nil {
		t.Fatal(err)
	}
	status, b = d.ask(d.token, "POST", "/toolbox/"+id+"/process/session/s/command/"+ran.CmdID+"/input", js, strings.NewReader(`{"data":"x"}`))
	d.refused("input to what ended", status, b, 410)
}

func TestSocketsThatSayNothingOrEverything(t *testing.T) {
	d := open(t)
	id := d.create(d.token, "{}")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	paths := map[string]string{
		"events": "/socket.io/?EIO=4&transport=websocket", "terminal": "/toolbox/" + id + "/process/pty/create-connect?id=p", "interpreter": "/toolbox/" + id + "/process/interpreter/execute",
	}
	// Many that say nothing hold nobody up.
	for _, path := range paths {
		for range 20 {
			if strings.Contains(path, "create-connect") {
				continue // 20 shells would be what is asked for
			}
			if conn, status, b := d.dial(ctx, d.token, path); conn == nil {
				t.Fatalf("%s: %d %s", path, status, b)
			}
		}
	}
	d.does(d.token, "POST", "/toolbox/"+id+"/process/execute", `{"command":"echo here"}`, 200)
	// One that says everything is closed, by a code that says why.
	for what, c := range map[string]struct {
		first string
		want  []websocket.StatusCode
	}{
		"events":      {strings.Repeat("x", 1<<20), []websocket.StatusCode{websocket.StatusMessageTooBig}},
		"interpreter": {strings.Repeat("x", 17<<20), []websocket.StatusCode{websocket.StatusMessageTooBig}},
		"terminal":    {strings.Repeat("x", 2<<20), []websocket.StatusCode{websocket.StatusMessageTooBig}},
	} {
		conn, status, b := d.dial(ctx, d.token, paths[what])
		if conn == nil {
			t.Fatalf("%s: %d %s", what, status, b)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = conn.Write(ctx, websocket.MessageText, []byte(c.first)) }) // the server may close in its middle
		code, last := closedBy(ctx, conn)
		_ = conn.CloseNow()
		wg.Wait()
		if code != c.want[0] && code != -1 { // -1: the server's word did not come through what we still sent
			t.Errorf("%s: closed with %d after %.200s", what, code, last)
		}
	}
	for what, first := range map[string]string{
		"no packet": "hello", "no JSON": "40{", "no token": "40{}", "an empty one": `40{"token":""}`, "another's form": `40["x"]`, "a NUL": "40\x00", "a guess": `40{"token":"guess"}`,
	} {
		conn, status, b := d.dial(ctx, "", paths["events"])
		if conn == nil {
			t.Fatalf("%s: %d %s", what, status, b)
		}
		if err := conn.Write(ctx, websocket.MessageText, []byte(first)); err != nil {
			t.Fatal(err)
		}
		if code, last := closedBy(ctx, conn); code != websocket.StatusPolicyViolation || !strings.HasPrefix(last, `44{"message":`) {
			t.Errorf("%s: closed with %d after %s", what, code, last)
		}
		_ = conn.CloseNow()
	}
	for what, first := range map[string]string{"no JSON": "{", "a number": "1", "a context that is not": `{"code":"1","contextId":"none"}`, "a time that is none": `{"code":"1","timeout":-1}`} {
		conn, status, b := d.dial(ctx, d.token, paths["interpreter"])
		if conn == nil {
			t.Fatalf("%s: %d %s", what, status, b)
		}
		if err := conn.Write(ctx, websocket.MessageText, []byte(first)); err != nil {
			t.Fatal(err)
		}
		if code, last := closedBy(ctx, conn); code != websocket.StatusNormalClosure || !strings.Contains(last, `"type":"error"`) {
			t.Errorf("%s: closed with %d after %s", what, code, last)
		}
		_ = conn.CloseNow()
	}
	d.does(d.token, "POST", "/toolbox/"+id+"/process/execute", `{"command":"echo here"}`, 200)
}

func TestACursorIsOfItsOwnProject(t *testing.T) {
	d := open(t)
	for range 2 {
		d.create(d.token, "{}")
	}
	var page struct{ NextCursor string }
	if err := json.Unmarshal(d.does(d.token, "GET", "/sandbox?limit=1", "", 200), &page); err != nil || page.NextCursor == "" {
		t.Fatal(err, page)
	}
	other := d.run("token", "create", "--name", "mallet", "--project", "elsewhere")
	status, b := d.ask(other, "GET", "/sandbox?limit=1&cursor="+url.QueryEscape(page.NextCursor), "", nil)
	d.refused("a cursor of another project", status, b, 400)
}
