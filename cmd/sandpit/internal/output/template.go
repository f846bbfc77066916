// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"
)

// Template is a flag for a template of Go's text/template, which prints one thing. Its fields
// are those of JSON; \t and \n are what they are in Go, since shells hand them on as two letters.
type Template struct{ t *template.Template }

// Given reports whether there is a template.
func (f *Template) Given() bool { return f.t != nil }

func (f *Template) Type() string { return "TEMPLATE" }

func (f *Template) String() string { return "" }

func (f *Template) Set(s string) error {
	t, err := template.New("").Funcs(template.FuncMap{
		"json": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"join": func(sep string, list []any) string {
			var words []string
			for _, one := range list {
				words = append(words, fmt.Sprint(one))
			}
			return strings.Join(words, sep)
		},
	}).Parse(strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(s))
	if err != nil {
		return fmt.Errorf("%q is not a valid template: %s; write it as '{{.id}} {{.status}}', with the fields of -o json",
			s, strings.TrimPrefix(err.Error(), "template: "))
	}
	f.t = t.Option("missingkey=zero")
	return nil
}

// check refuses a template with a field that no value of a type has.
func (f *Template) check(t reflect.Type) error {
	r := &fieldReader{root: t}
	r.list(f.t.Root, t)
	return r.err
}

// Write prints v with the template, and ends the line.
func (f *Template) Write(w io.Writer, v any) error {
	t := reflect.TypeOf(v)
	if err := f.check(t); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // a size stays 1048576, and is not 1.048576e+06
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := f.t.Execute(&out, whole(inert(plain), t)); err != nil {
		return fmt.Errorf("--format cannot print this: %w", err)
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// inert makes all text in v printable: it may come out of a sandbox.
func inert(v any) any {
	switch v := v.(type) {
	case string:
		return Printable(v)
	case []any:
		for i := range v {
			v[i] = inert(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = inert(v[name])
		}
	}
	return v
}
