// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// document makes the OpenAPI 3.1 document of the operations. It is made once,
// and the same for the same table.
func document(ops []operation, version string) ([]byte, error) {
	s := &schemas{made: make(map[string]*jsonschema.Schema), types: make(map[reflect.Type]*jsonschema.Schema), asked: make(map[reflect.Type]bool)}
	for _, o := range ops {
		if o.in.object != nil {
			s.ask(o.in.object.typ)
		}
	}
	paths := make(map[string]map[string]any)
	problem := map[string]any{
		"description": "What is wrong, and what to do about it.",
		"content":     media(v1.ProblemType, s.ref(reflect.TypeFor[v1.Problem]())),
	}
	for _, o := range ops {
		path := strings.ReplaceAll(o.path, "...", "")
		if paths[path] == nil {
			paths[path] = make(map[string]any)
		}
		paths[path][strings.ToLower(o.method)] = s.operation(o)
	}
	for _, t := range []reflect.Type{reflect.TypeFor[v1.Output](), reflect.TypeFor[v1.ExecOutcome](), reflect.TypeFor[v1.TerminalControl](),
		reflect.TypeFor[v1.CreateExecOutcome](), reflect.TypeFor[v1.ExecStarted](), reflect.TypeFor[v1.OutputGap](), reflect.TypeFor[v1.OutputEnd](), reflect.TypeFor[v1.ProcessControl](),
		reflect.TypeFor[v1.Watching](), reflect.TypeFor[v1.WatchEvent](), reflect.TypeFor[v1.WatchEnd](),
		reflect.TypeFor[v1.CodeStarted](), reflect.TypeFor[v1.CodeValue](), reflect.TypeFor[v1.CodeOutcome]()} {
		s.ref(t) // of streams, which the document can only describe
	}
	if s.err != nil {
		return nil, s.err
	}
	return json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title":       "sandpit",
			"version":     version,
			"description": "Persistent, isolated Linux sandboxes. " + errorTable(),
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  servers(),
		"security": []any{map[string]any{"bearer": []string{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas":         s.made,
			"responses":       map[string]any{"Problem": problem},
			"securitySchemes": map[string]any{"bearer": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
}

func servers() (out []any) {
	for _, base := range bases() {
		out = append(out, map[string]any{"url": base})
	}
	return out
}

// errorTable says which code comes with which status, from the table itself.
func errorTable() string {
	var parts []string
	for _, c := range fault.Codes() {
		parts = append(parts, string(c)+" "+strconv.Itoa(guard.Status(c)))
	}
	return "Errors are " + v1.ProblemType + "; their codes and statuses: " + strings.Join(parts, ", ") + "."
}

func media(kind string, schema any) map[string]any {
	if schema == nil {
		return map[string]any{kind: map[string]any{}}
	}
	return map[string]any{kind: map[string]any{"schema": schema}}
}

// schemas makes each type of package v1 once, under its name.
type schemas struct {
	made  map[string]*jsonschema.Schema
	types map[reflect.Type]*jsonschema.Schema // references by type
	asked map[reflect.Type]bool               // types that are bodies of requests
	err   error
}

// ask notes that t is read from requests, with what it is made of.
func (s *schemas) ask(t reflect.Type) {
	s.asked[t] = true
	for _, f := range reflect.VisibleFields(t) {
		if e := inner(f.Type); e != nil && !s.asked[e] {
			s.ask(e)
		}
	}
}

func (s *schemas) operation(o operation) map[string]any {
	out := map[string]any{"operationId": o.id, "summary": o.summary}
	if o.open {
		out["security"] = []any{}
	}
	params := s.parameters(o.in)
	if o.key != nil {
		params = append(params, map[string]any{
			"name": v1.IdempotencyKey, "in": "header", "description": keyDoc,
			"schema": map[string]any{"type": "string", "minLength": 1, "maxLength": keyed.MaxKey},
		})
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	if o.in.body != nil {
		content := map[string]any{"schema": s.ref(o.in.object.typ)}
		if o.example != nil {
			content["example"] = o.example
		}
		out["requestBody"] = map[string]any{"content": map[string]any{"application/json": content}}
	} else if o.accepts != "" {
		out["requestBody"] = map[string]any{"content": media(o.accepts, nil), "required": true}
	}
	responses := map[string]any{"default": map[string]any{"$ref": "#/components/responses/Problem"}}
	add := func(status int, kind string, typ reflect.Type, summary string) {
		key := strconv.Itoa(status)
		r, ok := responses[key].(map[string]any)
		if !ok {
			if summary == "" {
				summary = http.StatusText(status)
			}
			r = map[string]any{"description": summary}
			responses[key] = r
		}
		switch {
		case kind == "" && typ == nil:
			return
		case kind == "":
			kind = "application/json"
		}
		content, ok := r["content"].(map[string]any)
		if !ok {
			content = make(map[string]any)
			r["content"] = content
		}
		var schema any
		if typ != nil {
			schema = s.ref(typ)
		}
		if before, ok := content[kind].(map[string]any); ok {
			shapes := []any{before["schema"]}
			if several, ok := before["schema"].(map[string]any)["anyOf"].([]any); ok {
				shapes = several
			}
			schema = map[string]any{"anyOf": append(shapes, schema)}
		}
		maps.Copy(content, media(kind, schema))
	}
	add(o.status, o.produces, o.out, "")
	for _, a := range o.also {
		add(a.status, a.media, a.typ, a.summary)
	}
	out["responses"] = responses
	return out
}

// keyDoc describes the header that most POSTs take.
const keyDoc = "a text of the client's own choice, for sending the request again where no answer came: for 24 hours the same key with the same body begins nothing a second time and gets the first answer, with the header " + v1.IdempotentReplayed + "; with another body it is refused (422), and while the first is being served, too (409, with Retry-After)"

func (s *schemas) parameters(b *binder) (out []any) {
	for _, p := range b.params {
		schema := map[string]any{"type": "string"}
		t := p.typ
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Int, reflect.Int64:
			schema["type"] = "integer"
		case reflect.Float64:
			schema["type"] = "number"
		case reflect.Bool:
			schema["type"] = "boolean"
		case reflect.Slice:
			schema = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
		}
		param := map[string]any{"name": p.name, "in": p.in, "description": p.doc, "schema": schema}
		if p.in == "path" {
			param["required"] = true
		}
		if t.Kind() == reflect.Slice {
			param["style"], param["explode"] = "form", false
		}
		out = append(out, param)
	}
	if b.labels != nil {
		out = append(out, map[string]any{
			"name": labelPrefix + "NAME", "in": "query", "description": b.labelsDoc, "schema": map[string]any{"type": "string"},
		})
	}
	return out
}

// ref gives a reference to the schema of t, and makes that schema if need be.
func (s *schemas) ref(t reflect.Type) any {
	if t.Kind() == reflect.Slice {
		return map[string]any{"type": "array", "items": s.ref(t.Elem())}
	}
	s.make(t)
	return map[string]any{"$ref": schemaPath + t.Name()}
}

const schemaPath = "#/components/schemas/"

// make makes the schema of t after those of the types that it is made of, so
// that each is there once and the others refer to it.
func (s *schemas) make(t reflect.Type) {
	if _, ok := s.types[t]; ok {
		return
	}
	embedded := make(map[reflect.Type]bool)
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			embedded[f.Type] = true
		}
	}
	for _, f := range reflect.VisibleFields(t) {
		if e := inner(f.Type); !f.Anonymous && e != nil {
			s.make(e)
		}
	}
	known := maps.Clone(s.types)
	maps.DeleteFunc(known, func(k reflect.Type, _ *jsonschema.Schema) bool { return embedded[k] })
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		s.err = err
		return
	}
	for name, p := range schema.Properties {
		tidy(p)
		p.Minimum, p.Maximum = bounds(t, name)
		if e := enums()[t.Name()+"."+name]; e != nil {
			p.Enum = e
		}
	}
	if !s.asked[t] {
		schema.AdditionalProperties = nil // an answer may get more fields
	}
	s.made[t.Name()] = schema
	s.types[t] = &jsonschema.Schema{Ref: schemaPath + t.Name()}
}

// inner gives the struct of package v1 that t is made of, or nil.
func inner(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[v1.Sandbox]().PkgPath() {
		return t
	}
	return nil
}

// tidy makes of what is inferred from Go what is true of the wire: a list is
// never null, and a reference that may be null is one of two.
func tidy(p *jsonschema.Schema) {
	if slices.Contains(p.Types, "array") {
		p.Type, p.Types = "array", nil
	}
	if p.Ref != "" && len(p.Types) > 0 {
		p.OneOf = []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}}
		p.Ref, p.Types = "", nil
	}
}

// bounds are those of a field of a request about sandboxes.
func bounds(t reflect.Type, name string) (least, most *float64) {
	update := t == reflect.TypeFor[v1.UpdateSandbox]()
	if t != reflect.TypeFor[v1.CreateSandbox]() && !update {
		return nil, nil
	}
	switch name {
	case "cpu":
		name = "cpu_cores"
	case "timeout_seconds":
		name = "ttl_seconds"
	}
	b, ok := requestBounds(sandbox.MaxLimits())[name]
	switch {
	case !ok:
		return nil, nil
	case update && name == "ttl_seconds":
		b.Min = 0 // never
	}
	return &b.Min, &b.Max
}

// enums are the fields with a fixed list of values.
func enums() map[string][]any {
	codes := []any{}
	for _, c := range fault.Codes() {
		codes = append(codes, string(c))
	}
	states := []any{string(sandbox.Deleted)} // in the answer to a stop of one with auto_delete
	for _, s := range liveStates() {
		states = append(states, s)
	}
	return map[string][]any{
		"Problem.code":              codes,
		"Sandbox.status":            states,
		"Sandbox.idle_action":       {"stop", "pause"},
		"Sandbox.checkpoints":       {"off", "command"},
		"Sandbox.ttl_mode":          {"absolute", "sliding", nil},
		"Snapshot.status":           {"creating", "ready", "deleting"},
		"Volume.status":             {"creating", "ready", "deleting"},
		"DiffChange.action":         {"created", "modified", "deleted"},
		"CreateSandbox.size":        {"small", "medium", "large", nil},
		"CreateSandbox.idle_action": {"stop", "pause", nil},
		"UpdateSandbox.idle_action": {"stop", "pause", nil},
		"CreateSandbox.ttl_mode":    {"absolute", "sliding", nil},
		"UpdateSandbox.ttl_mode":    {"absolute", "sliding", nil},
		"CreateSandbox.checkpoints": {"off", "command", nil},
		"UpdateSandbox.checkpoints": {"off", "command", nil},
		"ExecOutcome.status":        {"exited", "running"},
		"ExecResult.status":         {"exited", "running"},
		"Process.status":            {"exited", "running"},
		"Image.status":              {"missing", "building", "ready", "failed"},
		"FileChange.action":         {"created", "modified", "deleted"},
		"WatchEvent.type":           {"created", "modified", "deleted", "renamed", "attributes", "dropped"},
		"WatchEnd.reason":           {"removed", "stopped"},
		"FileContent.encoding":      {"base64"},
	}
}
