// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/store"
)

// notOwned are operations with a parameter in their path that say no otherwise than by 403 or 404, and why.
var notOwned = map[string]string{
	"setSecret": "a name is of the caller's own project: it sets a secret there",
}

// queries are those of operations that need one.
var queries = map[string]string{
	"gitConfig": "key=user.name", "gitUnsetConfig": "key=user.name", "gitDeleteBranch": "name=topic", "gitRemoveRemote": "name=origin", "searchFiles": "pattern=red",
	"diffText": "path=keep.txt",
}

// bodies are those of operations whose document has no example, and of such whose example is not what there is.
var bodies = map[string]any{
	"changeFile":         object{"mode": "0777"},
	"createFileLink":     object{"path": "keep.txt"},
	"createArtifactLink": object{"path": "a.txt"},
	"gitClone":           object{"url": "https://git.example/team/repo.git"},
	"gitAdd":             object{"all": true},
	"gitAddRemote":       object{"name": "origin", "url": "https://git.example/team/repo.git"},
	"gitCheckout":        object{"target": "main"},
	"gitCommit":          object{"message": "a change"},
	"gitCreateBranch":    object{"name": "topic"},
	"gitRestore":         object{"files": []string{"keep.txt"}},
	"installSkills":      object{"skill_ids": []string{"notes"}},
	"rollbackSandbox":    object{"to": "kept"},
	"replaceSkill":       []byte(skillText),
	"writeFileJSON":      object{"path": "keep.txt", "content": "stolen"},
}

// route is an operation of the document.
type route struct{ id, method, path string }

// routes returns the operations whose path has a parameter, by their ids, with the body of each that has one. Images are
// not among them: they are the server's, and engine/images holds who may do what with them.
func routes(t *testing.T) (all []route, body map[string]any) {
	t.Helper()
	text, err := os.ReadFile("testdata/openapi.json")
	must(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body struct {
				Content map[string]struct{ Example any }
			} `json:"requestBody"`
		}
	}
	must(t, json.Unmarshal(text, &doc))
	body = maps.Clone(bodies)
	for path, methods := range doc.Paths {
		if !strings.Contains(path, "{") || strings.HasPrefix(path, "/images/") {
			continue
		}
		for method, o := range methods {
			all = append(all, route{o.ID, strings.ToUpper(method), path})
			for kind, c := range o.Body.Content {
				if body[o.ID] != nil {
					break
				}
				switch kind {
				case "application/json":
					body[o.ID] = c.Example
				case "application/x-tar":
					var b bytes.Buffer
					w := tar.NewWriter(&b)
					must(t, w.WriteHeader(&tar.Header{Name: "stolen", Mode: 0o644}))
					must(t, w.Close())
					body[o.ID] = b.Bytes()
				default:
					body[o.ID] = []byte("stolen")
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int { return strings.Compare(a.id, b.id) })
	return all, body
}

// owned is a project with one of everything, and what the parameters of paths are for it.
func owned(t *testing.T, red *house) map[string]string {
	t.Helper()
	box := want[v1.Sandbox](red, 201, "POST", "/v1/sandboxes", object{"key": "box"})
	at := "/v1/sandboxes/" + box.ID
	if a := red.do("PUT", at+"/files/keep.txt", []byte("red's")); a.StatusCode != http.StatusNoContent {
		t.Fatalf("a file: %s %s", a.Status, a.body)
	}
	process := want[v1.Process](red, 201, "POST", at+"/processes", object{"argv": []string{"sleep", "1000"}, "stream_stdin": true})
	want[v1.ShellExecResult](red, 200, "POST", at+"/shells/main/exec", object{"command": "true"})
	want[v1.Secret](red, 200, "PUT", at+"/secrets/TOKEN", object{"value": "of-red-alone"})
	want[v1.Secret](red, 200, "PUT", "/v1/secrets/KEY", object{"value": "of-red-alone-too"})
	run := want[v1.Run](red, 202, "POST", at+"/runs", object{"commands": []object{{"shell": "echo hi"}}, "wait_seconds": 10})
	snapshot := want[v1.Snapshot](red, 201, "POST", at+"/snapshots", object{"name": "kept"})
	volume := want[v1.Volume](red, 201, "POST", "/v1/volumes", object{"name": "data"})
	template := want[v1.Template](red, 201, "POST", "/v1/templates", object{"name": "web", "image": "node"})
	request := want[v1.NetworkRequest](red, 200, "POST", at+"/network/requests", object{"allow_domains": []string{"pypi.org"}})
	if request.ID == "" {
		t.Fatalf("the request for a network is %+v", request)
	}
	skill := want[v1.Skill](red, 201, "POST", "/v1/skills", object{"name": "notes", "description": "Notes of red's.", "skill_md_content": "# How\n"})
	link := want[v1.PreviewLink](red, 201, "POST", at+"/preview-links", object{"port": 8000})
	hook := want[v1.Webhook](red, 201, "POST", "/v1/webhooks", object{"url": "https://hooks.invalid/red"})
	must(t, red.store.Update(t.Context(), func(tx store.Tx) error {
		return tx.Webhooks().Add(&store.Delivery{
			ID: "del_red", Webhook: hook.ID, EventID: "1-red", Type: "volume.created", Body: []byte("of-red-alone"), State: store.DeliveryDone, CreatedAt: time.Now(), DoneAt: time.Now(),
		})
	}))
	token := want[v1.CreatedToken](red, 201, "POST", "/v1/tokens", object{"name": "desk"})
	return map[string]string{
		"id": box.ID, "pid": process.ProcessID, "name": "main", "secret": "TOKEN", "run": run.RunID, "snapshot": snapshot.ID, "volume": volume.ID,
		"template": template.ID, "skill": skill.ID, "path": "keep.txt", "port": "8000", "link": link.ID, "request": request.ID, "cid": "of-red", "user_id": "red", "delivery": "del_red",
		"/tokens/{id}": token.ID, "/webhooks/{id}": hook.ID, "/projects/{name}": "red", "/secrets/{secret}": "KEY",
	}
}

// changing are fields of answers that change by themselves.
var changing = []string{"run_seconds", "last_used_at", "last_activity_at", "updated_at", "duration_ms"}

// seen is all that a project's holder sees of it, without what changes by itself.
func seen(t *testing.T, red *house, at string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, path := range []string{
		at, at + "/files", at + "/processes", at + "/shells", at + "/secrets", at + "/runs", at + "/activity", at + "/snapshots", at + "/network",
		"/v1/sandboxes", "/v1/snapshots", "/v1/volumes", "/v1/templates", "/v1/secrets", "/v1/skills", "/v1/tokens", "/v1/runs", "/v1/network/requests", "/v1/projects/red", "/v1/webhooks",
	} {
		a := red.do("GET", path, nil)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", path, a.Status, a.body)
		}
		var v any
		if json.Unmarshal(a.body, &v) == nil {
			b, err := json.Marshal(still(v))
			must(t, err)
			a.body = b
		}
		out[path] = string(a.body)
	}
	return out
}

// still takes the fields that change by themselves out of a value.
func still(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range changing {
			delete(v, name)
		}
		for name := range v {
			v[name] = still(v[name])
		}
	case []any:
		for i := range v {
			v[i] = still(v[i])
		}
	}
	return v
}

// TestATokenOfAnotherProjectReachesNothing walks the document, so that a route that is new is in it.
func TestATokenOfAnotherProjectReachesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	red, blue := h.as("red", access.Admin), h.as("blue", access.Admin)
	of := owned(t, red)
	at := "/v1/sandboxes/" + of["id"]
	before := seen(t, red, at)
	all, body := routes(t)
	tried := 0
	for _, r := range all {
		path := "/v1" + r.path
		for name, value := range of {
			if begin, own := strings.CutPrefix(name, "/"); own {
				if full := "/v1/" + begin; strings.HasPrefix(path, full) {
					path = "/v1" + name[:strings.Index(name, "{")] + value + strings.TrimPrefix(path, full)
				}
			}
		}
		for name, value := range of {
			path = strings.ReplaceAll(path, "{"+name+"}", value)
		}
		if strings.ContainsAny(path, "{}") {
			t.Errorf("%s: no value for a parameter of %s: give one in owned", r.id, path)
			continue
		}
		last := r.path[strings.LastIndex(r.path, "/"):]
		if r.method != "POST" && strings.HasPrefix(r.path, "/sandboxes/") && slices.Contains([]string{"/files", "/stat", "/archive", "/watch"}, last) {
			path += "?path=keep.txt"
		}
		if q := queries[r.id]; q != "" {
			path += "?" + q
		}
		a := blue.do(r.method, path, body[r.id])
		if a.StatusCode == http.StatusUpgradeRequired {
			a = blue.do(r.method, path, body[r.id], "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		tried++
		if why, ok := notOwned[r.id]; ok {
			if a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusForbidden {
				t.Errorf("%s %s: %s, though %s: take it out of notOwned", r.method, path, a.Status, why)
			}
			continue
		}
		if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusForbidden {
			t.Errorf("%s, %s %s: %s %.300s", r.id, r.method, path, a.Status, a.body)
		}
		if strings.Contains(string(a.body), "of-red-alone") {
			t.Errorf("%s tells a secret: %s", r.id, a.body)
		}
	}
	t.Logf("%d routes were tried", tried)
	if tried < 90 {
		t.Errorf("only %d routes were tried", tried)
	}
	after := seen(t, red, at)
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s changed (-before +after):\n%s", path, cmp.Diff(was, after[path]))
		}
	}
	if d := want[v1.WebhookDeliveryPage](red, 200, "GET", "/v1/webhooks/"+of["/webhooks/{id}"]+"/deliveries", nil); len(d.Items) != 1 {
		t.Errorf("the deliveries are %+v", d.Items)
	}
	if a := red.do("GET", at+"/files/keep.txt", nil); string(a.body) != "red's" {
		t.Errorf("the file is %q", a.body)
	}
}
