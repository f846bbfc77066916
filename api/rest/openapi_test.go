// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

var update = flag.Bool("update", false, "write testdata anew")

const goldenFile = "testdata/openapi.json"

// document is as much of an OpenAPI document as the tests look at.
type document struct {
	OpenAPI    string                               `json:"openapi"`
	Servers    []struct{ URL string }               `json:"servers"`
	Paths      map[string]map[string]documentedCall `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type documentedCall struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In, Description string }
	RequestBody struct {
		Content map[string]struct {
			Schema  json.RawMessage
			Example any
		}
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string
		Content     map[string]content
	}
}

func (h *house) document() (document, []byte) {
	h.t.Helper()
	a := h.do("GET", "/v1/openapi.json", nil, "Authorization", "")
	if a.StatusCode != 200 {
		h.t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	var d document
	must(h.t, json.Unmarshal(a.body, &d))
	return d, a.body
}

func TestDocument(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Services.Keeper = &shelf{} })
	doc, body := h.document()
	t.Run("IsTheGoldenOne", func(t *testing.T) {
		if *update {
			must(t, os.MkdirAll("testdata", 0o755))
			must(t, os.WriteFile(goldenFile, append(body, '\n'), 0o644))
		}
		golden, err := os.ReadFile(goldenFile)
		must(t, err)
		if diff := cmp.Diff(string(body), string(bytes.TrimSuffix(golden, []byte("\n")))); diff != "" {
			t.Errorf("the API changed; if that is meant, run the test with -update and look at the difference:\n%s", diff)
		}
	})
	t.Run("IsTheSameOnBothBases", func(t *testing.T) {
		if a := h.do("GET", "/api/v1/openapi.json", nil); !bytes.Equal(a.body, body) {
			t.Error("they differ")
		}
		if len(doc.Servers) != 2 || doc.OpenAPI != "3.1.0" {
			t.Errorf("got %+v", doc.Servers)
		}
	})
	t.Run("EveryRouteThatItNamesIsServed", func(t *testing.T) {
		for path, calls := range doc.Paths {
			for method := range calls {
				for _, s := range doc.Servers {
					target := s.URL + strings.NewReplacer("{id}", "nosuch", "{pid}", "nosuch", "{name}", "nosuch", "{path}", "nosuch", "{snapshot}", "nosuch", "{volume}", "nosuch", "{secret}", "nosuch").Replace(path)
					if path == "/events" {
						target += "?follow=false" // else it has no end
					}
					a := h.do(strings.ToUpper(method), target, nil)
					if a.StatusCode == 405 || strings.Contains(string(a.body), "nothing is served") {
						t.Errorf("%s %s: got %d %s", method, target, a.StatusCode, a.body)
					}
				}
			}
		}
	})
	t.Run("EveryReferenceLeadsSomewhere", func(t *testing.T) {
		for part := range strings.SplitSeq(string(body), `"$ref": "`) {
			ref, _, _ := strings.Cut(part, `"`)
			if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok && doc.Components.Schemas[name] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
	})
	t.Run("EveryOperationIsDescribed", func(t *testing.T) {
		seen := make(map[string]bool)
		for path, calls := range doc.Paths {
			for method, c := range calls {
				if c.OperationID == "" || seen[c.OperationID] {
					t.Errorf("%s %s: the id %q is empty or taken", method, path, c.OperationID)
				}
				seen[c.OperationID] = true
				if c.Responses["default"].Content == nil && len(c.Responses) < 2 {
					t.Errorf("%s %s: answers are missing", method, path)
				}
				inPath := make(map[string]bool)
				for _, p := range c.Parameters {
					if p.Description == "" {
						t.Errorf("%s %s: the parameter %s has no description", method, path, p.Name)
					}
					if p.In == "path" {
						inPath[p.Name] = true
					}
				}
				inTemplate := make(map[string]bool)
				for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
					inTemplate[name[1]] = true
				}
				if diff := cmp.Diff(inTemplate, inPath); diff != "" {
					t.Errorf("%s %s: the parameters of the path are others than those of its template:\n%s", method, path, diff)
				}
				for media, body := range c.RequestBody.Content {
					if len(body.Schema) == 0 {
						t.Errorf("%s %s: the body of type %s has no schema", method, path, media)
					}
				}
				for status, r := range c.Responses {
					for media, body := range r.Content {
						if len(body.Schema) == 0 {
							t.Errorf("%s %s: the answer %s of type %s has no schema", method, path, status, media)
						}
						if events := media == "text/event-stream" || media == v1.FramesType; events != (len(body.Events) > 0) {
							t.Errorf("%s %s: the stream %s has no events, or what is no stream has", method, path, media)
						}
					}
				}
			}
		}
	})
	t.Run("EveryExampleFitsItsSchemaAndIsTaken", func(t *testing.T) {
		s := h.create()
		want[any](h, 204, "PUT", "/v1/sandboxes/"+s.ID+"/files/draft.csv", []byte("x"))
		deaf := want[v1.Process](h, 201, "POST", "/v1/sandboxes/"+s.ID+"/processes", object{"command": "trap '' INT; sleep 600", "tty": true})
		want[any](h, 201, "POST", "/v1/templates", object{"name": "listed"})
		want[any](h, 201, "POST", "/v1/projects", object{"name": "example"})
		want[any](h, 201, "POST", "/v1/volumes", object{"name": "example"})
		named := strings.NewReplacer("{template}", "listed", "{id}", s.ID, "{pid}", deaf.ProcessID, "{name}", "example", "{volume}", "example", "{secret}", "EXAMPLE", "{user_id}", "example")
		other := strings.NewReplacer("{id}", h.create().ID)
		fork := strings.NewReplacer("{id}", want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/"+h.create().ID+"/fork", nil).Items[0].ID)
		token := strings.NewReplacer("{id}", want[v1.CreatedToken](h, 201, "POST", "/v1/tokens", object{"name": "example"}).ID)
		hook := strings.NewReplacer("{id}", want[v1.Webhook](h, 201, "POST", "/v1/webhooks", object{"url": "https://hooks.example.org"}).ID)
		n := 0
		for path, calls := range doc.Paths {
			for method, c := range calls {
				for _, content := range c.RequestBody.Content {
					if content.Example == nil {
						continue
					}
					n++
					must(t, doc.schema(t, content.Schema).Validate(content.Example))
					target := named.Replace(path)
					if strings.HasSuffix(path, "/rollback") { // which ends processes
						target = other.Replace(path)
					}
					if strings.HasSuffix(path, "/promote") { // which needs a fork
						target = fork.Replace(path)
					}
					if strings.HasPrefix(path, "/webhooks/") {
						target = hook.Replace(path)
					}
					if strings.HasPrefix(path, "/tokens/") {
						target = token.Replace(path)
					}
					if path == "/session" { // which needs a token that there is
						content.Example = object{"token": adminToken}
					}
					a := h.do(strings.ToUpper(method), "/v1"+target, content.Example)
					if a.StatusCode >= 300 {
						t.Errorf("%s %s: got %d %s", method, path, a.StatusCode, a.body)
					}
				}
			}
		}
		if n < 7 {
			t.Errorf("got %d examples; each operation with a body has one", n)
		}
	})
	t.Run("AnswersFitTheirSchemas", func(t *testing.T) {
		s := h.create()
		want[any](h, 204, "PUT", "/v1/sandboxes/"+s.ID+"/files/f", []byte("x"))
		for _, c := range []struct {
			method, path, documented string
			body                     any
		}{
			{"POST", "/sandboxes", "/sandboxes", object{"key": "fits-1"}},
			{"GET", "/sandboxes/" + s.ID, "/sandboxes/{id}", nil},
			{"GET", "/sandboxes", "/sandboxes", nil},
			{"POST", "/sandboxes/" + s.ID + "/exec", "/sandboxes/{id}/exec", object{"command": "echo hi > g; printf '\\377'"}},
			{"GET", "/sandboxes/" + s.ID + "/processes", "/sandboxes/{id}/processes", nil},
			{"GET", "/sandboxes/" + s.ID + "/activity", "/sandboxes/{id}/activity", nil},
			{"GET", "/sandboxes/" + s.ID + "/stat?path=f", "/sandboxes/{id}/stat", nil},
			{"GET", "/sandboxes/" + s.ID + "/files", "/sandboxes/{id}/files", nil},
			{"GET", "/sandboxes/" + s.ID + "/files?path=f", "/sandboxes/{id}/files", nil},
			{"POST", "/sandboxes/" + s.ID + "/snapshots", "/sandboxes/{id}/snapshots", object{"name": "fits"}},
			{"GET", "/sandboxes/" + s.ID + "/snapshots", "/sandboxes/{id}/snapshots", nil},
			{"GET", "/sandboxes/" + s.ID + "/snapshots/fits", "/sandboxes/{id}/snapshots/{snapshot}", nil},
			{"GET", "/snapshots", "/snapshots", nil},
			{"POST", "/sandboxes/" + s.ID + "/fork", "/sandboxes/{id}/fork", object{}},
			{"GET", "/sandboxes/" + s.ID + "/diff", "/sandboxes/{id}/diff", nil},
			{"POST", "/sandboxes/" + s.ID + "/pause", "/sandboxes/{id}/pause", nil},
			{"POST", "/sandboxes/" + s.ID + "/resume", "/sandboxes/{id}/resume", nil},
			{"POST", "/volumes", "/volumes", object{"name": "fits"}},
			{"GET", "/volumes", "/volumes", nil},
			{"GET", "/volumes/fits", "/volumes/{volume}", nil},
			{"PUT", "/secrets/FITS", "/secrets/{secret}", object{"value": "a value", "hosts": []string{"example.org"}}},
			{"GET", "/secrets", "/secrets", nil},
			{"PUT", "/sandboxes/" + s.ID + "/secrets/MINE", "/sandboxes/{id}/secrets/{secret}", object{"value": "a value"}},
			{"GET", "/sandboxes/" + s.ID + "/secrets", "/sandboxes/{id}/secrets", nil},
			{"GET", "/sandboxes/" + s.ID + "/secrets/FITS", "/sandboxes/{id}/secrets/{secret}", nil},
			{"POST", "/sandboxes", "/sandboxes", object{"from_snapshot": s.ID + "/fits", "volumes": []object{{"volume": "fits", "path": "/mnt"}}}},
			{"POST", "/sandboxes/" + s.ID + "/rollback", "/sandboxes/{id}/rollback", object{"to": "fits"}},
			{"POST", "/sandboxes/" + s.ID + "/restart", "/sandboxes/{id}/restart", nil},
			{"POST", "/tokens", "/tokens", object{"name": "fits"}},
			{"GET", "/tokens", "/tokens", nil},
			{"GET", "/images", "/images", nil},
			{"GET", "/info", "/info", nil},
			{"GET", "/limits", "/limits", nil},
			{"GET", "/sandboxes/nosuch", "default", nil},
			{"POST", "/sandboxes", "default", object{"nosuch": 1}},
		} {
			a := h.do(c.method, "/v1"+c.path, c.body)
			var got any
			must(t, json.Unmarshal(a.body, &got))
			schema := json.RawMessage(`{"$ref":"#/components/schemas/Problem"}`)
			if c.documented != "default" {
				r := doc.Paths[c.documented][strings.ToLower(c.method)].Responses
				code := map[int]string{http.StatusOK: "200", http.StatusCreated: "201"}[a.StatusCode]
				schema = r[code].Content["application/json"].Schema
			}
			if schema == nil {
				t.Errorf("%s %s: %d is not documented: %s", c.method, c.path, a.StatusCode, a.body)
				continue
			}
			if err := doc.schema(t, schema).Validate(got); err != nil {
				t.Errorf("%s %s: %s does not fit: %v", c.method, c.path, a.body, err)
			}
		}
	})
	t.Run("TheLimitsAreWhatIsTaken", func(t *testing.T) {
		l := want[v1.SandboxLimits](h, 200, "GET", "/v1/limits", nil)
		for field, b := range l.Bounds {
			if field == "memory_mb" || field == "disk_mb" || field == "cpu_cores" || field == "pids" {
				want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{field: b.Max + 1})
				want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{field: b.Min - 1})
			}
			want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{field: b.Min})
		}
	})
}

// schema resolves a schema of the document: references look into its components.
func (d document) schema(t *testing.T, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	defs, err := json.Marshal(d.Components.Schemas)
	must(t, err)
	text := `{"$defs":` + string(defs) + `,"allOf":[` + string(raw) + `]}`
	text = strings.ReplaceAll(text, "#/components/schemas/", "#/$defs/")
	var s jsonschema.Schema
	must(t, json.Unmarshal([]byte(text), &s))
	r, err := s.Resolve(nil)
	must(t, err)
	return r
}
