// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/test/servertest"
)

// door is the wire as anybody may speak it.
type door struct {
	t     *testing.T
	house *servertest.Server
	url   string
	token string // of the server's administrator
	env   []string
}

func open(t *testing.T) *door {
	t.Helper()
	servertest.Need(t)
	imagetest.Python(t)
	return enter(t, imagetest.Dir(t))
}

// enter is open with a directory of images.
func enter(t *testing.T, images string) *door {
	t.Helper()
	d := &door{t: t, house: servertest.New(t, program, images)}
	d.find()
	return d
}

// restart kills the server, and starts it again.
func (d *door) restart() {
	d.t.Helper()
	d.house.Kill()
	d.find()
}

// find starts the server, and notes where it is.
func (d *door) find() {
	d.t.Helper()
	d.house.Start()
	d.env, d.url, d.token = clients(d.house), d.house.Address+"/daytona", d.house.Token
}

// run runs a command of the server's administrator, and returns what it prints.
func (d *door) run(args ...string) string {
	d.t.Helper()
	return d.house.Run(args...)
}

// ask makes a request, whose answer is never followed elsewhere.
func (d *door) ask(token, method, path, media string, body io.Reader, header ...string) (int, []byte) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, b
}

// refused fails if an answer is not an error as clients read it, of one of the statuses.
func (d *door) refused(what string, status int, body []byte, want ...int) {
	d.t.Helper()
	var p struct {
		StatusCode                           int
		Message, Error, Source, Path, Method string
	}
	if err := json.Unmarshal(body, &p); err != nil || p.StatusCode != status || p.Message == "" || p.Error == "" || p.Source == "" || p.Method == "" {
		d.t.Errorf("%s: %d with %s (%v)", what, status, body[:min(len(body), 300)], err)
	}
	if !slices.Contains(want, status) {
		d.t.Errorf("%s: %d, not one of %v: %s", what, status, want, body[:min(len(body), 300)])
	}
}

const js = "application/json"

func (d *door) create(token, body string) string {
	d.t.Helper()
	status, b := d.ask(token, "POST", "/sandbox", js, strings.NewReader(body))
	var s struct{ ID string }
	if err := json.Unmarshal(b, &s); err != nil || status != 200 || s.ID == "" {
		d.t.Fatalf("create: %d %s", status, b)
	}
	return s.ID
}

func TestNobodyReachesWhatIsNotTheirs(t *testing.T) {
	d := open(t)
	id := d.create(d.token, `{"name":"mine","env":{"KEY":"a-secret-value"}}`)
	other := d.run("token", "create", "--name", "mallet", "--project", "elsewhere")
	reader := d.run("token", "create", "--name", "reader", "--scope", "sandboxes:read")
	tries := []struct{ method, path, body string }{
		{"GET", "/sandbox/" + id, ""}, {"GET", "/sandbox/mine", ""}, {"DELETE", "/sandbox/" + id, ""}, {"POST", "/sandbox/" + id + "/start", ""}, {"POST", "/sandbox/" + id + "/stop", ""},
		{"POST", "/sandbox/" + id + "/fork", "{}"}, {"POST", "/sandbox/" + id + "/public/true", ""}, {"PUT", "/sandbox/" + id + "/labels", `{"labels":{}}`},
		{"POST", "/sandbox/" + id + "/network-settings", `{"networkBlockAll":true}`}, {"GET", "/sandbox/" + id + "/ports/3000/preview-url", ""}, {"GET", "/sandbox/" + id + "/ports/3000/signed-preview-url", ""},
		{"POST", "/toolbox/" + id + "/process/execute", `{"command":"id"}`}, {"POST", "/toolbox/" + id + "/toolbox/process/execute", `{"command":"id"}`}, {"POST", "/toolbox/" + id + "/process/code-run", `{"code":"1"}`},
		{"POST", "/toolbox/" + id + "/process/session", `{"sessionId":"s"}`}, {"GET", "/toolbox/" + id + "/process/session", ""}, {"GET", "/toolbox/" + id + "/process/pty", ""},
		{"GET", "/toolbox/" + id + "/files?path=/etc", ""}, {"GET", "/toolbox/" + id + "/files/download?path=/etc/passwd", ""}, {"POST", "/toolbox/" + id + "/files/bulk-download", `{"paths":["/etc/passwd"]}`},
		{"GET", "/toolbox/" + id + "/git/status?path=.", ""}, {"POST", "/toolbox/" + id + "/env", `{"set":{"A":"b"}}`}, {"GET", "/toolbox/" + id + "/system/metrics", ""}, {"GET", "/toolbox/" + id + "/port", ""},
		{"GET", "/sandbox/" + id + "/build-logs-url", ""}, {"GET", "/sandbox/" + id + "/build-logs?follow=true", ""}, {"GET", "/sandbox/" + id + "/telemetry/metrics", ""}, {"PUT", "/sandbox/" + id + "/secrets", `{"secrets":[]}`},
		{"GET", "/toolbox/" + id + "/process/session/entrypoint", ""}, {"GET", "/toolbox/" + id + "/process/session/entrypoint/logs?follow=true", ""}, {"GET", "/toolbox/" + id + "/process/session/entrypoint/command/x/logs", ""},
		{"POST", "/toolbox/" + id + "/lsp/start", `{"languageId":"python","pathToProject":"/"}`},
	}
	for _, c := range tries {
		status, b := d.ask(other, c.method, c.path, js, strings.NewReader(c.body))
		want := []int{404}
		if strings.Contains(c.path, "/public/") {
			want = []int{403} // nobody may, on this server
		}
		d.refused("another project's "+c.method+" "+c.path, status, b, want...)
		if bytes.Contains(b, []byte("a-secret-value")) {
			t.Errorf("%s %s tells another project %s", c.method, c.path, b)
		}
		status, b = d.ask("", c.method, c.path, js, strings.NewReader(c.body))
		d.refused("nobody's "+c.method+" "+c.path, status, b, 401)
	}
	if status, b := d.ask(other, "GET", "/sandbox", "", nil); status != 200 || !bytes.Contains(b, []byte(`"items":[]`)) {
		t.Errorf("the list of another project: %d %s", status, b)
	}
	// Who only reads sees no values of variables, and changes nothing.
	if status, b := d.ask(reader, "GET", "/sandbox/"+id, "", nil); status != 200 || bytes.Contains(b, []byte("a-secret-value")) || !bytes.Contains(b, []byte(`"env":{}`)) {
		t.Errorf("to who only reads: %d %s", status, b)
	}
	for _, c := range tries {
		if c.method != "GET" || strings.Contains(c.path, "preview-url") {
			if strings.Contains(c.path, "bulk-download") {
				continue
			}
			status, b := d.ask(reader, c.method, c.path, js, strings.NewReader(c.body))
			d.refused("a reader's "+c.method+" "+c.path, status, b, 403)
		}
	}
	if status, b := d.ask(d.token, "GET", "/sandbox/"+id, "", nil); status != 200 || !bytes.Contains(b, []byte(`"state":"started"`)) {
		t.Errorf("after all that: %d %s", status, b)
	}
	// A token in an address is none.
	status, b := d.ask("", "GET", "/sandbox?DAYTONA_SANDBOX_AUTH_KEY="+d.token, "", nil)
	d.refused("a token in an address", status, b, 401)
}

func TestBadInputIsAClassOfTheClients(t *testing.T) {
	d := open(t)
	id := d.create(d.token, "{}")
	box, tools := "/sandbox/"+id, "/toolbox/"+id
	labels := make(map[string]string)
	for i := range 1000 {
		labels[fmt.Sprint("k", i)] = "v"
	}
	many, _ := json.Marshal(labels)
	paths, _ := json.Marshal(map[string]any{"paths": slices.Repeat([]string{"x"}, 10_000)})
	form := func(parts ...string) (media, body string) {
		return "multipart/form-data; boundary=b", strings.Join(parts, "")
	}
	part := func(name, text string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"x\"\r\n\r\n" + text + "\r\n"
	}
	_, unnamed := form(part("files[0].file", "x"), "--b--\r\n")
	_, twice := form(part("files[0].path", "/tmp/a"), part("files[0].file", "x"), part("files[0].file", "y"), "--b--\r\n")
	media, endless := form(part("files[0].path", "/tmp/a"), "--b\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"x\"\r\n\r\nxxx")
	for _, c := range []struct {
		method, path, media, body string
		want                      []int
	}{
		{"POST", "/sandbox", js, `{"name":"` + strings.Repeat("x", 10_000) + `"}`, []int{400}},
		{"POST", "/sandbox", js, `{"name":1}`, []int{400}},
		{"POST", "/sandbox", js, `{"cpu":-1}`, []int{400}},
		{"POST", "/sandbox", js, `{"memory":1e300}`, []int{400}},
		{"POST", "/sandbox", js, `{"autoStopInterval":-5}`, []int{400}},
		{"POST", "/sandbox", js, `{"autoStopInterval":15,"autoPauseInterval":15}`, []int{400}},
		{"POST", "/sandbox", js, `{"kvm":true}`, []int{422}},
		{"POST", "/sandbox", js, `{"spot":true,"gpu":1}`, []int{422}},
		{"POST", "/sandbox", js, `{"sandboxClass":"windows"}`, []int{422}},
		{"POST", "/sandbox", js, `{"target":"us-east-99"}`, []int{422}},
		{"POST", "/sandbox", js, `{"outboundProxyUrl":"http://x"}`, []int{422}},
		{"POST", "/sandbox", js, `{"linkedSandbox":"x"}`, []int{422}},
		{"POST", "/sandbox", js, `{"volumes":[{"volumeId":"none","mountPath":"/data"}]}`, []int{404}},
		{"POST", "/sandbox", js, `{"volumes":[{"volumeId":"none","mountPath":"/proc"}]}`, []int{400, 404}},
		{"POST", "/sandbox", js, `{"snapshot":"none-such"}`, []int{404}},
		{"POST", "/sandbox", js, `{"buildInfo":{"dockerfileContent":"FROM python\nFROBNICATE x"}}`, []int{400, 422}},
		{"POST", "/sandbox", js, `{"buildInfo":{"dockerfileContent":""}}`, []int{400}},
		{"POST", "/sandbox", js, `{"buildInfo":{"dockerfileContent":"FROM python\nRUN <<END\ntrue"}}`, []int{400, 422}},
		{"POST", "/sandbox", js, `{"buildInfo":{"dockerfileContent":"FROM python\nCOPY a b","contextHashes":["../../etc/passwd"]}}`, []int{400, 404}},
		{"POST", "/sandbox", js, `{"buildInfo":{"dockerfileContent":"FROM python\nRUN ` + strings.Repeat("x", 300<<10) + `"}}`, []int{400, 422}},
		{"POST", "/sandbox", js, `{"snapshot":"python","buildInfo":{"dockerfileContent":"FROM python"}}`, []int{400}},
		{"GET", box + "/build-logs-url", "", "", []int{404}},
		{"GET", box + "/build-logs?follow=true", "", "", []int{404}},
		{"GET", box + "/build-logs?follow=maybe", "", "", []int{400, 404}},
		{"POST", "/sandbox", js, `[]`, []int{400}},
		{"POST", "/sandbox", js, `{"name":`, []int{400}},
		{"GET", "/sandbox?labels=nonsense", "", "", []int{400}},
		{"GET", "/sandbox?cursor=nonsense", "", "", []int{400}},
		{"GET", "/sandbox?limit=0", "", "", []int{400}},
		{"GET", "/sandbox?sort=name", "", "", []int{400}},
		{"GET", "/sandbox?createdAtAfter=yesterday", "", "", []int{400}},
		{"GET", "/sandbox/paginated?page=-1", "", "", []int{400}},
		{"POST", box + "/autostop/-5", "", "", []int{400}},
		{"POST", box + "/autostop/1000000000", "", "", []int{400}},
		{"POST", box + "/autostop/NaN", "", "", []int{400}},
		{"POST", box + "/public/maybe", "", "", []int{400}},
		{"POST", box + "/resize", js, `{"cpu":1e9}`, []int{400}},
		{"POST", box + "/network-settings", js, `{"networkAllowList":"nonsense"}`, []int{400}},
		{"GET", box + "/ports/0/preview-url", "", "", []int{400}},
		{"GET", box + "/ports/x/signed-preview-url", "", "", []int{400}},
		{"GET", box + "/ports/3000/signed-preview-url?expiresInSeconds=1e12", "", "", []int{400}},
		{"POST", tools + "/process/execute", js, `{"command":""}`, []int{400}},
		{"POST", tools + "/process/execute", js, `{"command":"id","timeout":-1}`, []int{400}},
		{"POST", tools + "/process/execute", js, `{"command":"id","cwd":"/none/such"}`, []int{400, 404, 409}},
		{"POST", tools + "/process/code-run", js, `{"code":"1","language":"cobol"}`, []int{400, 422}},
		{"POST", tools + "/process/session", js, `{"sessionId":""}`, []int{400}},
		{"POST", tools + "/process/session", js, `{"sessionId":"a/b"}`, []int{400}},
		{"POST", tools + "/process/session", js, `{"sessionId":"entrypoint"}`, []int{409}},
		{"POST", tools + "/process/session/entrypoint/exec", js, `{"command":"id"}`, []int{404}},
		{"DELETE", tools + "/process/session/entrypoint", "", "", []int{404}},
		{"GET", tools + "/process/session/entrypoint/logs", "", "", []int{404}},
		{"POST", tools + "/process/session/entrypoint/command/none/input", js, `{"data":"x"}`, []int{404}},
		{"POST", tools + "/process/session/none/exec", js, `{"command":"id"}`, []int{404}},
		{"GET", tools + "/process/session/none/command/none/logs", "", "", []int{404}},
		{"POST", tools + "/process/pty", js, `{"id":"p","cols":0,"rows":0}`, []int{400}},
		{"POST", tools + "/process/pty", js, `{"id":"p","cols":5000,"rows":5000}`, []int{400}},
		{"POST", tools + "/process/pty/none/resize", js, `{"cols":80,"rows":24}`, []int{404}},
		{"GET", tools + "/process/pty/create-connect?id=p", "", "", []int{400}},
		{"GET", tools + "/process/interpreter/execute", "", "", []int{400}},
		{"GET", tools + "/files/info", "", "", []int{400}},
		{"GET", tools + "/files/download?path=/dev/zero", "", "", []int{400, 409}},
		{"GET", tools + "/files/download?path=/etc", "", "", []int{400, 409}},
		{"GET", tools + "/files/download?path=" + strings.Repeat("x", 6000), "", "", []int{400}},
		{"POST", tools + "/files/bulk-download", js, string(paths), []int{400}},
		{"POST", tools + "/files/bulk-upload", media, unnamed, []int{400}},
		{"POST", tools + "/files/bulk-upload", media, twice, []int{400}},
		{"POST", tools + "/files/bulk-upload", media, endless, []int{400}},
		{"POST", tools + "/files/bulk-upload", js, `{}`, []int{400}},
		{"POST", tools + "/files/bulk-upload", "multipart/form-data", "x", []int{400}},
		{"POST", tools + "/files/folder?path=x&mode=999", "", "", []int{400}},
		{"DELETE", tools + "/files?path=none", "", "", []int{404}},
		{"POST", tools + "/files/move?source=a", "", "", []int{400}},
		{"GET", tools + "/files/find?path=.", "", "", []int{400}},
		{"POST", tools + "/git/clone", js, `{"url":"file:///etc","path":"x"}`, []int{400, 422}},
		{"POST", "/secret", js, `{"name":"x","value":"long enough"}`, []int{422}},
		{"POST", "/secret", js, `{"name":"x/y","value":"long enough","hosts":["a.example.com"]}`, []int{400}},
		{"POST", "/secret", js, `{"name":"x","value":"y","hosts":["a.example.com"]}`, []int{400}},
		{"POST", "/secret", js, `{"name":"x","value":"long enough","hosts":["a.example.com:80"]}`, []int{400}},
		{"POST", "/warm-pools", js, `{"snapshot":"python"}`, []int{400}},
		{"POST", "/warm-pools", js, `{"snapshot":"python","pool":0}`, []int{400}},
		{"POST", "/warm-pools", js, `{"snapshot":"python","pool":1.5}`, []int{400}},
		{"POST", "/warm-pools", js, `{"snapshot":"python","pool":1,"target":"moon"}`, []int{422}},
		{"POST", "/warm-pools", js, `{"pool":1}`, []int{400}},
		{"PATCH", "/warm-pools/none", js, `{"pool":1}`, []int{404}},
		{"DELETE", "/warm-pools/recent", "", "", []int{404}},
		{"GET", "/secret/none", "", "", []int{404}},
		{"PATCH", "/secret/none", js, `{"value":"long enough"}`, []int{404}},
		{"DELETE", "/secret/none", "", "", []int{404}},
		{"GET", "/secret/paginated?limit=0", "", "", []int{400}},
		{"GET", "/secret/paginated?cursor=none", "", "", []int{400}},
		{"GET", "/secret/paginated?sort=value", "", "", []int{400}},
		{"PUT", box + "/secrets", js, `{"secrets":[{"A":"x","B":"y"}]}`, []int{400}},
		{"PUT", box + "/secrets", js, `{"secrets":[{"A":"x"},{"A":"y"}]}`, []int{400}},
		{"PUT", box + "/secrets", js, `{"secrets":[{"A":""}]}`, []int{400}},
		{"PUT", box + "/secrets", js, `{"secrets":[{"A":"none"}]}`, []int{404}},
		{"POST", "/sandbox", js, `{"secrets":[{}]}`, []int{400}},
		{"GET", "/organizations", "", "", []int{404}},
		{"GET", "/toolbox/../sandbox", "", "", []int{400}},
		{"PATCH", "/sandbox", js, "{}", []int{405}},
	} {
		status, b := d.ask(d.token, c.method, c.path, c.media, strings.NewReader(c.body))
		d.refused(fmt.Sprint(c.method, " ", c.path[:min(len(c.path), 100)], " ", c.body[:min(len(c.body), 100)]), status, b, c.want...)
	}
	status, b := d.ask(d.token, "GET", "/sandbox?labels="+urlEscape(string(many)), "", nil)
	d.refused("a filter of 1,000 labels", status, b, 400)
	// What is not read of a form is written nowhere: of two files in one part the second was refused.
	if status, b := d.ask(d.token, "POST", tools+"/process/execute", js, strings.NewReader(`{"command":"cat /tmp/a; ls -d /tmp/.[!.]* 2>/dev/null | wc -l"}`)); status != 200 {
		t.Errorf("after all that: %d %s", status, b)
	}
	// A body without a type is read, as clients send one to /env.
	if status, b := d.ask(d.token, "POST", tools+"/env", "", strings.NewReader(`{"set":{"A":"b"},"new_field":1}`)); status != 200 {
		t.Errorf("a body without a type: %d %s", status, b)
	}
}

func urlEscape(s string) string {
	return strings.NewReplacer("%", "%25", " ", "%20", "\"", "%22", "{", "%7B", "}", "%7D", "&", "%26", "+", "%2B", "#", "%23").Replace(s)
}
