// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// TestBadInput sends what is wrong; each must be answered with its own code, the
// field, and a message that names the value or the bound. Nothing may come of it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.create().ID
	box := "/v1/sandboxes/" + id
	for _, c := range []struct {
		name, method, path string
		body               any
		status             int
		code               string
		fields             string // separated by spaces, sorted
		says               string // in detail
		headers            []string
	}{
		{name: "an unknown field", body: `{"memory":512}`, status: 422, code: "invalid", fields: "memory", says: "did you mean memory_mb"},
		{name: "an unknown field in another case", body: `{"Image":"python"}`, status: 422, code: "invalid", fields: "Image", says: "did you mean image"},
		{name: "an unknown field with a dash", body: `{"session-key":"a"}`, status: 422, code: "invalid", fields: "session-key", says: "did you mean session_key"},
		{name: "an abbreviation", path: box + "/exec", body: `{"cmd":"ls"}`, status: 422, code: "invalid", fields: "cmd", says: "did you mean command"},
		{name: "a number in quotes", body: `{"memory_mb":"512"}`, status: 422, code: "invalid", fields: "memory_mb", says: "without the quotes"},
		{name: "several at once", body: `{"memory_mb":"x","pids":1.5,"nosuch":1}`, status: 422, code: "invalid", fields: "memory_mb nosuch pids"},
		{name: "a field twice", body: `{"image":"python","image":"node"}`, status: 422, code: "invalid", fields: "image", says: "twice"},
		{name: "two spellings that disagree", body: `{"cpu":1,"cpu_cores":2}`, status: 422, code: "invalid", fields: "cpu cpu_cores", says: "send one"},
		{name: "two names that disagree", body: `{"key":"a-1","session_key":"b-1"}`, status: 422, code: "invalid", fields: "key session_key"},
		{name: "two images that disagree", body: `{"image":"python","template":"node"}`, status: 422, code: "invalid", fields: "image template"},
		{name: "a size and too little memory", body: `{"size":"small","memory_mb":1}`, status: 422, code: "invalid", fields: "memory_mb"},
		{name: "no size of a sandbox that is there", method: "PATCH", path: box, body: `{"size":"huge"}`, status: 422, code: "invalid", fields: "size", says: `"huge" is not valid; use small, medium, large`},
		{name: "no size of a template", path: "/v1/templates", body: `{"name":"x","size":"huge"}`, status: 422, code: "invalid", fields: "size", says: "use small, medium, large"},
		{name: "an account that is root", body: `{"account":{"name":"root"}}`, status: 422, code: "invalid", fields: "account.name", says: "root"},
		{name: "an account with a slash", body: `{"account":{"name":"a/b"}}`, status: 422, code: "invalid", fields: "account.name", says: `"a/b"`},
		{name: "a long account", body: `{"account":{"name":"` + strings.Repeat("a", 33) + `"}}`, status: 422, code: "invalid", fields: "account.name", says: "1 to 32"},
		{name: "directories of an account", body: `{"account":{"home":"/proc/x","workdir":"../x"}}`, status: 422, code: "invalid", fields: "account.home account.workdir"},
		{name: "a home that breaks a line", body: `{"account":{"home":"/a\nroot:x:0:0::/:/bin/sh"}}`, status: 422, code: "invalid", fields: "account.home", says: "does not print"},
		{name: "a home with a colon", body: `{"account":{"home":"/a:b"}}`, status: 422, code: "invalid", fields: "account.home", says: "colon"},
		{name: "an unknown default user", body: `{"user":"bob"}`, status: 422, code: "invalid", fields: "user", says: `"bob"`},
		{name: "a user who is none", path: box + "/exec", body: `{"command":"id","user":"a b"}`, status: 422, code: "invalid", fields: "user", says: `"a b"`},
		{name: "a user whom the sandbox does not have", path: box + "/exec", body: `{"command":"id","user":"carl"}`, status: 422, code: "invalid", fields: "user", says: "there are sandbox, root"},
		{name: "environments that disagree", body: `{"env":{"A":"1"},"env_vars":{"A":"2"}}`, status: 422, code: "invalid", fields: "env env_vars"},
		{name: "networks that disagree", body: `{"network":"off","network_enabled":true}`, status: 422, code: "invalid", fields: "network network_enabled"},
		{name: "lifetimes that disagree", body: `{"ttl_seconds":60,"timeout_seconds":70}`, status: 422, code: "invalid", fields: "timeout_seconds ttl_seconds"},
		{name: "a network", body: `{"network_enabled":true}`, status: 501, code: "unsupported", says: "network"},
		{name: "an open network", body: `{"network":"open"}`, status: 501, code: "unsupported"},
		{name: "no network", body: `{"network":"some"}`, status: 422, code: "invalid", fields: "network", says: `"some"`},
		{name: "a member of a network twice", body: `{"network":{"mode":"off","allow_domains":["a.example"],"m\u006fde":"open"}}`, status: 422, code: "invalid", fields: "network.mode", says: "twice"},
		{name: "a network with very many members", body: `{"network":{"mode":"off"` + strings.Repeat(`,"x":1`, 5000) + `}}`, status: 422, code: "invalid", fields: "network", says: "many more members"},
		{name: "an unknown member of a network", body: `{"network":{"mode":"off","` + strings.Repeat("x", 5000) + `":1}}`, status: 422, code: "invalid", fields: "network." + strings.Repeat("x", 80) + "…", says: "is unknown"},
		{name: "a very long list of a network", body: `{"network":{"allow_cidrs":[` + strings.Repeat(`1,`, 5000) + `1]}}`, status: 422, code: "invalid", fields: "network.allow_cidrs network.mode", says: "5001 entries"},
		{name: "a preset that there is not", body: `{"network":{"allow_presets":["pyhton"]}}`, status: 422, code: "invalid", fields: "network.allow_presets", says: "there are debian, github, huggingface, node, python"},
		{name: "presets of an open network", body: `{"network":{"mode":"open","allow_presets":["python"]}}`, status: 422, code: "invalid", fields: "network", says: "mode open"},
		{name: "presets that are no list", body: `{"network":{"allow_presets":"python"}}`, status: 422, code: "invalid", fields: "network.allow_presets network.mode", says: "is no list"},
		{name: "an answer's presets sent back", body: `{"network":{"mode":"restricted","allow_domains":["a.example"],"preset_domains":[{"preset":"x","domain":"y","source":"z"}]}}`, status: 501, code: "unsupported"},
		{name: "restricted without a list", body: `{"network":"restricted"}`, status: 422, code: "invalid", fields: "network", says: "without a list"},
		{name: "presets of an image that there is not", method: "GET", path: "/v1/network/presets?image=nowhere", status: 404, code: "not_found", says: "nowhere"},
		{name: "a very long list of ranges", body: `{"network_allow_list":"` + strings.Repeat(`x,`, 5000) + `"}`, status: 422, code: "invalid", fields: "network_allow_list", says: "5001 entries"},
		{name: "no size", body: `{"size":"huge"}`, status: 422, code: "invalid", fields: "size", says: `"huge"`},
		{name: "a region", body: `{"region":"fsn1"}`, status: 422, code: "invalid", fields: "region", says: "fsn1"},
		{name: "no memory", body: `{"memory_mb":0}`, status: 422, code: "invalid", fields: "memory_mb", says: "16 to 1048576"},
		{name: "too much of all", body: `{"memory_mb":9999999,"cpu":1000,"disk_mb":1,"pids":0}`, status: 422, code: "invalid", fields: "cpu disk_mb memory_mb pids", says: "9999999"},
		{name: "a number beyond 64 bits", body: `{"memory_mb":99999999999999999999}`, status: 422, code: "invalid", fields: "memory_mb"},
		{name: "a negative clock", body: `{"idle_timeout_seconds":-1}`, status: 422, code: "invalid", fields: "idle_timeout_seconds", says: "-1"},
		{name: "a lifetime too short", body: `{"timeout_seconds":9}`, status: 422, code: "invalid", fields: "timeout_seconds", says: "10 to 31622400"},
		{name: "a clock that overflows", body: `{"retention_seconds":9223372036854775807}`, status: 422, code: "invalid", fields: "retention_seconds"},
		{name: "a mode without its clock", body: `{"ttl_mode":"sliding"}`, status: 422, code: "invalid", fields: "ttl_mode", says: "ttl_seconds"},
		{name: "a sliding mode of another clock", body: `{"ttl_mode":"sliding","timeout_seconds":60}`, status: 422, code: "invalid", fields: "ttl_mode"},
		{name: "no mode", body: `{"ttl_mode":"slow","ttl_seconds":60}`, status: 422, code: "invalid", fields: "ttl_mode", says: `"slow" is not valid; use absolute or sliding`},
		{name: "a sliding lifetime too short", body: `{"ttl_mode":"sliding","ttl_seconds":9}`, status: 422, code: "invalid", fields: "ttl_seconds", says: "10 to 31622400"},
		{name: "no idle action", body: `{"idle_action":"sleep"}`, status: 422, code: "invalid", fields: "idle_action", says: "stop or pause"},
		{name: "no checkpoints", body: `{"checkpoints":"always"}`, status: 422, code: "invalid", fields: "checkpoints", says: "off or command"},
		{name: "a truth that is none", body: `{"auto_start":"yes"}`, status: 422, code: "invalid", fields: "auto_start", says: "true or false"},
		{name: "no snapshot", body: `{"from_snapshot":""}`, status: 422, code: "invalid", fields: "from_snapshot"},
		{name: "an unknown snapshot", body: `{"from_snapshot":"nosuch0000000000"}`, status: 404, code: "not_found", says: "nosuch0000000000"},
		{name: "volumes that are no list", body: `{"volumes":{"volume":"a"}}`, status: 422, code: "invalid", fields: "volumes", says: "a list of objects"},
		{name: "a volume that is no object", body: `{"volumes":["data:/mnt"]}`, status: 422, code: "invalid", fields: "volumes[0]", says: "an object"},
		{name: "a volume that is null", body: `{"volumes":[{"volume":"a","path":"/a"},null]}`, status: 422, code: "invalid", fields: "volumes[1]", says: "null"},
		{name: "an unknown field of a volume", body: `{"volumes":[{"volume":"a","path":"/a","readonly":true}]}`, status: 422, code: "invalid", fields: "volumes[0].readonly", says: "did you mean read_only"},
		{name: "a field of a volume twice", body: `{"volumes":[{"volume":"a","path":"/a","path":"/b"}]}`, status: 422, code: "invalid", fields: "volumes[0].path", says: "twice"},
		{name: "a field of a volume of another type", body: `{"volumes":[{"volume":"a","path":["]",1]},{"volume":1,"path":"/b"}]}`, status: 422, code: "invalid", fields: "volumes[0].path volumes[1].volume", says: "a text"},
		{name: "very many volumes", body: `{"volumes":[` + strings.Repeat(`{"x":1},`, 5000) + `{}]}`, status: 422, code: "invalid", fields: "volumes", says: "more than 100 objects"},
		{name: "an unknown image", body: `{"image":"nosuch"}`, status: 404, code: "not_found", says: `"nosuch"`},
		{name: "an unknown runtime", body: `{"runtime":"nosuch"}`, status: 422, code: "invalid", fields: "runtime"},
		{name: "an empty key", body: `{"key":""}`, status: 422, code: "invalid", fields: "key", says: "1 to 255"},
		{name: "a key with a slash", body: `{"session_key":"a/b"}`, status: 422, code: "invalid", fields: "session_key", says: `"a/b"`},
		{name: "a long key", body: object{"key": strings.Repeat("k", 256)}, status: 422, code: "invalid", fields: "key", says: "255"},
		{name: "a key that is an id", body: `{"key":"abcdefghij012345"}`, status: 422, code: "invalid", fields: "key"},
		{name: "a variable that is no text", body: `{"env":{"PORT":8080}}`, status: 422, code: "invalid", fields: "env.PORT", says: "8080"},
		{name: "a variable that is null", body: `{"env":{"PORT":null}}`, status: 422, code: "invalid", fields: "env.PORT", says: "null"},
		{name: "a variable with a bad name", body: `{"env_vars":{"1A":"x"}}`, status: 422, code: "invalid", fields: "env_vars", says: `"1A"`},
		{name: "a list for an object", body: `{"metadata":["a"]}`, status: 422, code: "invalid", fields: "metadata"},
		{name: "no JSON", body: "{\n  \"image\": python\n}", status: 400, code: "malformed", says: "line 2, column 12"},
		{name: "half of it", body: `{"image":"py`, status: 400, code: "malformed"},
		{name: "garbage after it", body: `{} {}`, status: 400, code: "malformed", says: "after top-level value"},
		{name: "an array", body: `[]`, status: 400, code: "malformed", says: "no object"},
		{name: "null", body: `null`, status: 400, code: "malformed", says: "no object"},
		{name: "not UTF-8", body: "{\"key\":\"\xff\"}", status: 400, code: "malformed", says: "0xff"},
		{name: "nested too deep", body: strings.Repeat(`{"a":`, 20000), status: 400, code: "malformed"},
		{name: "over the bound", body: `{"key":"` + strings.Repeat("x", 1<<20) + `"}`, status: 413, code: "too_large", says: "1048576"},
		{name: "another type", body: `{}`, headers: []string{"Content-Type", "text/plain"}, status: 415, code: "malformed", says: "text/plain"},
		{name: "a form", body: `image=python`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, code: "malformed"},
		{name: "another character set", body: `{}`, headers: []string{"Content-Type", "application/json; charset=latin1"}, status: 415, code: "malformed"},
		{name: "compressed", body: `{}`, headers: []string{"Content-Encoding", "gzip"}, status: 415, code: "malformed"},
		{name: "no token", body: `{}`, headers: []string{"Authorization", ""}, status: 401, code: "unauthenticated", says: "no token"},
		{name: "a wrong token", body: `{}`, headers: []string{"Authorization", "Bearer spt_nosuch"}, status: 401, code: "unauthenticated"},
		{name: "another scheme", body: `{}`, headers: []string{"Authorization", "Basic YTpi"}, status: 401, code: "unauthenticated"},

		{name: "an unknown route", method: "GET", path: "/v1/nosuch", status: 404, code: "not_found", says: "/v1/nosuch"},
		{name: "a route with a slip", method: "GET", path: "/v1/sandbox", status: 404, code: "not_found", says: "did you mean /v1/sandboxes?"},
		{name: "a route of the other base with a slip", method: "GET", path: "/api/v1/snapshot/x", status: 404, code: "not_found", says: "did you mean /api/v1/snapshots?"},
		{name: "a route without its base", method: "GET", path: "/sandboxes/x", status: 404, code: "not_found", says: "did you mean /v1/sandboxes?"},
		{name: "another base", method: "GET", path: "/v2/sandboxes", status: 404, code: "not_found"},
		{name: "a slash too many", method: "GET", path: "/v1/sandboxes/", status: 404, code: "not_found"},
		{name: "a wrong method", method: "PUT", path: "/v1/sandboxes", body: `{}`, status: 405, code: "malformed", says: "GET, HEAD, POST"},
		{name: "a method that is none", method: "FROB", path: "/v1/info", status: 405, code: "malformed"},
		{name: "an unknown parameter", method: "GET", path: "/v1/sandboxes?limt=5", status: 422, code: "invalid", fields: "limt", says: "did you mean limit"},
		{name: "a parameter twice", method: "GET", path: "/v1/sandboxes?limit=5&limit=6", status: 422, code: "invalid", fields: "limit"},
		{name: "a bad query", method: "GET", path: "/v1/sandboxes?search=%zz", status: 400, code: "malformed"},
		{name: "pages out of bounds", method: "GET", path: "/v1/sandboxes?page=0&page_size=501", status: 422, code: "invalid", fields: "page page_size", says: "1 to 500"},
		{name: "a page that is no number", method: "GET", path: "/v1/sandboxes?page=two", status: 422, code: "invalid", fields: "page", says: `"two"`},
		{name: "page and cursor", method: "GET", path: "/v1/sandboxes?page=1&cursor=x", status: 422, code: "invalid", fields: "cursor page"},
		{name: "a cursor that is none", method: "GET", path: "/v1/sandboxes?cursor=nosuch", status: 422, code: "invalid", fields: "cursor"},
		{name: "a state that is none", method: "GET", path: "/v1/sandboxes?status=frozen", status: 422, code: "invalid", fields: "status", says: "running"},
		{name: "no such sandbox", method: "GET", path: "/v1/sandboxes/nosuch", status: 404, code: "not_found", says: "nosuch"},
		{name: "too much activity", method: "GET", path: box + "/activity?limit=201", status: 422, code: "invalid", fields: "limit", says: "1 to 200"},
		{name: "activity since never", method: "GET", path: box + "/activity?since=never", status: 422, code: "invalid", fields: "since"},

		{name: "no command", path: box + "/exec", status: 422, code: "invalid", fields: "command", says: "missing"},
		{name: "an empty command", path: box + "/exec", body: `{"command":" "}`, status: 422, code: "invalid", fields: "command", says: "empty"},
		{name: "two commands", path: box + "/exec", body: `{"command":"a","argv":["b"]}`, status: 422, code: "invalid", fields: "argv command"},
		{name: "a command over the bound", path: box + "/exec", body: object{"command": strings.Repeat("x", 128<<10+1)}, status: 422, code: "invalid", fields: "command", says: "131072"},
		{name: "arguments over the bound", path: box + "/exec", body: object{"argv": slices.Repeat([]string{"x"}, 1025)}, status: 422, code: "invalid", fields: "argv", says: "1024"},
		{name: "a directory that is none", path: box + "/exec", body: `{"command":"true","cwd":"/nosuch"}`, status: 422, code: "invalid", fields: "cwd", says: "/nosuch"},
		{name: "a timeout over the bound", path: box + "/exec", body: `{"command":"true","timeout_seconds":86401}`, status: 422, code: "invalid", fields: "timeout_seconds", says: "86400"},
		{name: "a timeout far over the bound", path: box + "/exec", body: `{"command":"true","timeout_seconds":100000000}`, status: 422, code: "invalid", fields: "timeout_seconds", says: "100000000 is outside 0 to 86400"},
		{name: "a timeout of nothing", path: box + "/exec", body: `{"command":"true","timeout_seconds":0}`, status: 422, code: "invalid", fields: "timeout_seconds"},
		{name: "a streamed input and nobody who could send it", path: box + "/exec", body: `{"command":"cat","stream_stdin":true}`, status: 422, code: "invalid", fields: "stream_stdin", says: "only at its end"},
		{name: "the same with a sandbox", path: "/v1/exec", body: `{"command":"cat","stream_stdin":true}`, status: 422, code: "invalid", fields: "stream_stdin"},
		{name: "an input both ways", path: box + "/exec", body: `{"command":"cat","stdin":"x","stream_stdin":true,"wait_seconds":0}`, status: 422, code: "invalid", fields: "stdin", says: "one of them"},
		{name: "a negative wait", path: box + "/exec", body: `{"command":"true","wait_seconds":-1}`, status: 422, code: "invalid", fields: "wait_seconds"},
		{name: "too little output", path: box + "/exec", body: `{"command":"true","max_output_bytes":0}`, status: 422, code: "invalid", fields: "max_output_bytes"},
		{name: "too much output", path: box + "/exec", body: `{"command":"true","max_stdout_bytes":99999999999}`, status: 422, code: "invalid", fields: "max_stdout_bytes"},
		{name: "a user that is none", path: box + "/exec", body: `{"command":"true","user":"bob"}`, status: 422, code: "invalid", fields: "user", says: `"bob"`},
		{name: "input that is no base64", path: box + "/exec", body: `{"command":"true","stdin_base64":"%"}`, status: 422, code: "invalid", fields: "stdin_base64"},
		{name: "two inputs", path: box + "/exec", body: `{"command":"true","stdin":"","stdin_base64":""}`, status: 422, code: "invalid", fields: "stdin stdin_base64"},
		{name: "input over the bound", path: box + "/exec", body: object{"command": "true", "stdin": strings.Repeat("x", 12<<20)}, status: 413, code: "too_large"},

		{name: "a file without content", path: box + "/files?path=a", body: `{}`, status: 422, code: "invalid", fields: "content"},
		{name: "a file without a path", path: box + "/files", body: `{"content":"x"}`, status: 422, code: "invalid", fields: "path"},
		{name: "a file with two paths", path: box + "/files?path=a", body: `{"content":"x","path":"b"}`, status: 422, code: "invalid", fields: "path"},
		{name: "an encoding that is none", path: box + "/files?path=a", body: `{"content":"x","encoding":"hex"}`, status: 422, code: "invalid", fields: "encoding"},
		{name: "a mode that is none", path: box + "/files?path=a", body: `{"content":"x","mode":"rwx"}`, status: 422, code: "invalid", fields: "mode"},
		{name: "a directory without a path", path: box + "/mkdir", body: `{}`, status: 422, code: "invalid", fields: "path"},
		{name: "a move from nowhere", path: box + "/move", body: `{"from":"nosuch","to":"b"}`, status: 404, code: "not_found"},
		{name: "a move out", path: box + "/move", body: `{"from":"a","to":"../../b"}`, status: 422, code: "invalid", fields: "to"},
		{name: "a terminal without a WebSocket", method: "GET", path: box + "/terminal", status: 426, code: "malformed"},
		{name: "a terminal too wide", method: "GET", path: box + "/terminal?cols=1001&rows=0", status: 422, code: "invalid", fields: "cols rows"},

		{name: "a file of a user that is none", path: box + "/files?path=a", body: `{"content":"x","user":"bob"}`, status: 422, code: "invalid", fields: "user", says: `"bob"`},
		{name: "a listing for a user that is none", method: "GET", path: box + "/files?user=bob", status: 422, code: "invalid", fields: "user"},
		{name: "a file with two users", path: box + "/files?path=a&user=root", body: `{"content":"x","user":"sandbox"}`, status: 422, code: "invalid", fields: "user"},
		{name: "a token without a name", path: "/v1/tokens", body: `{}`, status: 422, code: "invalid", fields: "name"},
		{name: "a scope that is none", path: "/v1/tokens", body: `{"name":"a","scopes":["root"]}`, status: 422, code: "invalid", fields: "scopes", says: `"root"`},
		{name: "a token that ended", path: "/v1/tokens", body: `{"name":"a","expires_at":"2020-01-01T00:00:00Z"}`, status: 422, code: "invalid", fields: "expires_at"},
		{name: "a time that is none", path: "/v1/tokens", body: `{"name":"a","expires_at":"soon"}`, status: 422, code: "invalid", fields: "expires_at", says: "2026-01-31T12:00:00Z"},
		{name: "an image to build that is none", path: "/v1/images/no%2Fsuch/build", status: 404, code: "not_found", says: "no/such"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.method == "" {
				c.method = "POST"
			}
			if c.path == "" {
				c.path = "/v1/sandboxes"
			}
			a := h.do(c.method, c.path, c.body, c.headers...)
			var p v1.Problem
			if err := json.Unmarshal(a.body, &p); err != nil || a.Header.Get("Content-Type") != v1.ProblemType {
				t.Fatalf("got %d %s %q, want a problem", a.StatusCode, a.Header.Get("Content-Type"), a.body)
			}
			if a.StatusCode != c.status || p.Status != c.status || p.Code != c.code {
				t.Errorf("got %d %q (%s), want %d %q", a.StatusCode, p.Code, p.Detail, c.status, c.code)
			}
			var fields []string
			for _, f := range p.Errors {
				fields = append(fields, f.Field)
			}
			slices.Sort(fields)
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("fields: got %q (%s), want %q", got, p.Detail, c.fields)
			}
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail: got %q, want %q in it", p.Detail, c.says)
			}
			if len(p.Detail) > 1100 || p.Title == "" || p.Type == "" || p.RequestID == "" || p.RequestID != a.Header.Get("X-Request-Id") {
				t.Errorf("got %+v", p)
			}
			if c.status == 405 && a.Header.Get("Allow") == "" || c.status == 401 && a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("headers: got %v", a.Header)
			}
		})
	}
	if p := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil); p.Total != 1 {
		t.Errorf("sandboxes: got %d, want the one that was meant", p.Total)
	}
	if l := want[[]v1.FileEntry](h, 200, "GET", box+"/files", nil); len(l) != 0 {
		t.Errorf("files: got %v, want none", l)
	}
	if l := want[v1.TokenList](h, 200, "GET", "/v1/tokens", nil); !reflect.DeepEqual(l.Items, []v1.Token{}) {
		t.Errorf("tokens: got %v, want none", l)
	}
}
