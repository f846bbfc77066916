// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Document is what an OpenAPI document says beside the operations themselves. Zero fields are
// left out.
type Document struct {
	Info  map[string]any // OpenAPI's info object
	Bases []string       // as [Options] has them
	// Types is the import path of the package whose structs get a schema of their own, under
	// their names.
	Types string
	// Error is the type of the answers that are errors, and ErrorMedia its media type.
	Error      reflect.Type
	ErrorMedia string
	// Also are types of streams, which the document can only describe.
	Also []reflect.Type
	// Bounds returns those of a field of a struct; nil: none is known.
	Bounds func(t reflect.Type, field string) (least, most *float64)
	// Enums are the fields with a fixed list of values, by "Type.field".
	Enums map[string][]any
	// Parameters returns parameters of an operation that its input does not have; nil: there
	// are none.
	Parameters func(*Operation) []Parameter
}

// Parameter is a parameter of an operation as the document describes it.
type Parameter struct {
	In, Name, Description string
	Schema                map[string]any
}

// Make returns the OpenAPI 3.1 document of the operations: the same for the same table.
func (d Document) Make(ops []Operation) ([]byte, error) {
	s := &schemas{of: &d, made: make(map[string]*jsonschema.Schema), types: make(map[reflect.Type]*jsonschema.Schema), asked: make(map[reflect.Type]bool)}
	for _, o := range ops {
		if o.in.object != nil {
			s.ask(o.in.object.typ)
		}
	}
	paths := make(map[string]map[string]any)
	problem := map[string]any{
		"description": "What is wrong, and what to do about it.",
		"content":     media(d.ErrorMedia, s.ref(d.Error)),
	}
	for _, o := range ops {
		path := strings.ReplaceAll(o.Path, "...", "")
		if paths[path] == nil {
			paths[path] = make(map[string]any)
		}
		paths[path][strings.ToLower(o.Method)] = s.operation(o)
	}
	for _, t := range d.Also {
		s.ref(t)
	}
	if s.err != nil {
		return nil, s.err
	}
	return json.MarshalIndent(map[string]any{
		"openapi":  "3.1.0",
		"info":     d.Info,
		"servers":  servers(d.Bases),
		"security": []any{map[string]any{"bearer": []string{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas":         s.made,
			"responses":       map[string]any{"Problem": problem},
			"securitySchemes": map[string]any{"bearer": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
}

func servers(bases []string) (out []any) {
	for _, base := range bases {
		out = append(out, map[string]any{"url": base})
	}
	return out
}

func media(kind string, schema any) map[string]any {
	return map[string]any{kind: map[string]any{"schema": schema}}
}

// EventsKey is the name, in the description of a stream, of the schemas of its events' data by the events' names.
// OpenAPI 3.1 has no word of its own for them.
const EventsKey = "x-events"

// raw returns the description of a body that is not one value of JSON: text, bytes, or a stream of events.
func (s *schemas) raw(o *Operation, kind string) map[string]any {
	schema := map[string]any{"type": "string"}
	switch {
	case kind == "application/json":
		schema = map[string]any{"type": "object"}
	case kind == formType:
		file := map[string]any{"type": "string", "format": "binary"}
		schema = map[string]any{"type": "object", "properties": map[string]any{o.part: file}, "required": []string{o.part}}
	case !strings.HasPrefix(kind, "text/"):
		schema["format"] = "binary"
	}
	out := media(kind, schema)
	if kind != eventsType && kind != o.framed || len(o.events) == 0 {
		return out
	}
	events := make(map[string]any)
	if o.events["error"] == nil {
		events["error"] = s.ref(s.of.Error)
	}
	for name, t := range o.events {
		events[name] = s.ref(t)
	}
	out[kind].(map[string]any)[EventsKey] = events
	return out
}

// schemas makes each type of the document's package once, under its name.
type schemas struct {
	of    *Document
	made  map[string]*jsonschema.Schema
	types map[reflect.Type]*jsonschema.Schema // references by type
	asked map[reflect.Type]bool               // types that are bodies of requests
	err   error
}

// ask notes that t is read from requests, with what it is made of.
func (s *schemas) ask(t reflect.Type) {
	s.asked[t] = true
	for _, f := range reflect.VisibleFields(t) {
		if e := s.inner(f.Type); e != nil && !s.asked[e] {
			s.ask(e)
		}
	}
}

func (s *schemas) operation(o Operation) map[string]any {
	out := map[string]any{"operationId": o.ID, "summary": o.Summary}
	if o.open {
		out["security"] = []any{}
	}
	params := s.parameters(o)
	if s.of.Parameters != nil {
		for _, p := range s.of.Parameters(&o) {
			params = append(params, map[string]any{"name": p.Name, "in": p.In, "description": p.Description, "schema": p.Schema})
		}
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
	} else if len(o.accepts) > 0 {
		content := make(map[string]any)
		for _, kind := range o.accepts {
			maps.Copy(content, s.raw(&o, kind))
		}
		out["requestBody"] = map[string]any{"content": content, "required": true}
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
		if typ == nil {
			maps.Copy(content, s.raw(&o, kind))
			return
		}
		schema := s.ref(typ)
		if before, ok := content[kind].(map[string]any); ok {
			shapes := []any{before["schema"]}
			if several, ok := before["schema"].(map[string]any)["anyOf"].([]any); ok {
				shapes = several
			}
			schema = map[string]any{"anyOf": append(shapes, schema)}
		}
		maps.Copy(content, media(kind, schema))
	}
	add(o.Status, o.produces, o.out, "")
	for _, a := range o.also {
		add(a.status, a.media, a.typ, a.summary)
	}
	out["responses"] = responses
	return out
}

func (s *schemas) parameters(o Operation) (out []any) {
	b := o.in
	for _, p := range b.params {
		all := strings.Contains(o.Path, "{"+p.name+"...}")
		if p.in == "path" && !all && !strings.Contains(o.Path, "{"+p.name+"}") {
			continue // another operation with the same input has it
		}
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
		if all {
			param[SegmentsKey] = true
		}
		if t.Kind() == reflect.Slice {
			param["style"], param["explode"] = "form", false
		}
		out = append(out, param)
	}
	if b.labels != nil {
		out = append(out, map[string]any{
			"name": b.prefix, "in": "query", "description": b.labelsDoc + "; also as " + b.prefix + ".NAME",
			"style": "deepObject", "explode": true,
			"schema": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
		})
	}
	return out
}

// SegmentsKey marks, in a parameter of a path, that its value may have slashes, plain or as %2F. OpenAPI has no word of
// its own for it.
const SegmentsKey = "x-segments"

// ref returns a reference to the schema of t, and makes that schema if need be.
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
		if e := s.inner(f.Type); !f.Anonymous && e != nil {
			s.make(e)
		}
	}
	known := maps.Clone(s.types)
	maps.Copy(known, wireTypes())
	maps.DeleteFunc(known, func(k reflect.Type, _ *jsonschema.Schema) bool { return embedded[k] })
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		s.err = err
		return
	}
	for name, p := range schema.Properties {
		tidy(p)
		if s.of.Bounds != nil {
			p.Minimum, p.Maximum = s.of.Bounds(t, name)
		}
		if e := s.of.Enums[t.Name()+"."+name]; e != nil {
			p.Enum = e
		}
	}
	if !s.asked[t] {
		schema.AdditionalProperties = nil // an answer may get more fields
	}
	s.made[t.Name()] = schema
	s.types[t] = &jsonschema.Schema{Ref: schemaPath + t.Name()}
}

// wireTypes are the schemas of types that JSON has otherwise than Go.
func wireTypes() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Type: "string", Format: "byte", ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {Description: "any JSON"},
	}
}

// inner returns the struct of the document's package that t is made of, or nil.
func (s *schemas) inner(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && t.PkgPath() == s.of.Types {
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
