// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// binder fills an input struct from a request; see [Op]. It is made once per operation.
type binder struct {
	params    []param
	labels    []int  // the index of the field that takes PREFIX.NAME parameters, or nil
	prefix    string // of their names, without the dot
	body      []int  // the index of Body, or nil
	labelsDoc string
	object    *object
	maxBody   int64 // zero: the handler's
}

type param struct {
	in    string // "path" or "query"
	name  string
	doc   string
	index []int
	typ   reflect.Type
}

// labelOf returns the label that a parameter names: PREFIX.NAME, or PREFIX[NAME], as forms have it.
func (b *binder) labelOf(param string) (name string, ok bool) {
	if b.labels == nil {
		return "", false
	}
	if name, ok = strings.CutPrefix(param, b.prefix+"."); ok {
		return name, name != ""
	}
	name, ok = strings.CutPrefix(param, b.prefix+"[")
	if ok {
		name, ok = strings.CutSuffix(name, "]")
	}
	return name, ok && name != ""
}

func newBinder(t reflect.Type) *binder {
	b := new(binder)
	for _, f := range reflect.VisibleFields(t) {
		if f.Name == "Body" {
			b.body, b.object = f.Index, newObject(f.Type)
			continue
		}
		for _, in := range []string{"path", "query"} {
			name := f.Tag.Get(in)
			switch {
			case name == "":
			case strings.HasSuffix(name, ".*"):
				b.labels, b.prefix, b.labelsDoc = f.Index, strings.TrimSuffix(name, ".*"), f.Tag.Get("doc")
			default:
				b.params = append(b.params, param{in: in, name: name, doc: f.Tag.Get("doc"), index: f.Index, typ: f.Type})
			}
		}
	}
	return b
}

// check returns an error for a parameter that cannot be read.
func (o *Operation) check() error {
	for _, p := range o.in.params {
		v := reflect.New(p.typ).Elem()
		if p.in == "path" && p.typ.Kind() == reflect.String || p.in == "query" && setParam(v, []string{""}) != unreadable {
			continue
		}
		return fault.New(fault.Internal, "%s: the parameter %s is of the type %s, which is not read from a %s", o.ID, p.name, p.typ, p.in)
	}
	return nil
}

// bind reads everything that the input asks for. All that is wrong with the
// parameters is told at once, and so is all that is wrong with the body.
func (b *binder) bind(c *Call, in reflect.Value) error {
	var query url.Values
	if c.R.URL.RawQuery != "" {
		var err error
		if query, err = url.ParseQuery(c.R.URL.RawQuery); err != nil {
			return fault.New(fault.Malformed, "the query %q cannot be read: %v", sandbox.Clip(c.R.URL.RawQuery, 100), err).
				WithRemedy("percent-encode its values")
		}
	}
	var bad []fault.Field
	for _, p := range b.params {
		if p.in == "path" {
			in.FieldByIndex(p.index).SetString(c.R.PathValue(p.name))
			continue
		}
		values, ok := query[p.name]
		if !ok {
			continue
		}
		if msg := setParam(in.FieldByIndex(p.index), values); msg != "" {
			bad = append(bad, fault.Field{Name: p.name, Message: msg})
		}
	}
	for name, values := range query {
		label, isLabel := b.labelOf(name)
		switch {
		case slices.ContainsFunc(b.params, func(p param) bool { return p.in == "query" && p.name == name }):
		case isLabel:
			f := in.FieldByIndex(b.labels)
			if f.IsNil() {
				f.Set(reflect.MakeMap(f.Type()))
			}
			if len(values) > 1 || f.MapIndex(reflect.ValueOf(label)).IsValid() { // by either spelling
				bad = append(bad, fault.Field{Name: sandbox.Clip(name, 80), Message: "is given twice"})
				continue
			}
			f.SetMapIndex(reflect.ValueOf(label), reflect.ValueOf(values[0]))
		case c.lenient():
		default:
			var known []string
			for _, p := range b.params {
				if p.in == "query" {
					known = append(known, p.name)
				}
			}
			bad = append(bad, fault.Field{Name: sandbox.Clip(name, 80), Message: "is not a parameter of this route" + Suggest(name, known)})
		}
	}
	if len(bad) > 0 {
		slices.SortFunc(bad, func(x, y fault.Field) int { return strings.Compare(x.Name, y.Name) })
		return invalid(bad)
	}
	if b.body == nil {
		return nil
	}
	return b.object.read(c, in.FieldByIndex(b.body), c.maxBody())
}

// unreadable is what setParam returns for a field of a type that it cannot set.
const unreadable = "cannot be read"

// setParam sets a field from a parameter's values, and returns what is wrong with them.
func setParam(f reflect.Value, values []string) string {
	if f.Kind() == reflect.Slice {
		if f.Type().Elem().Kind() != reflect.String {
			return unreadable
		}
		for _, v := range values {
			for part := range strings.SplitSeq(v, ",") {
				if part != "" {
					f.Set(reflect.Append(f, reflect.ValueOf(part)))
				}
			}
		}
		return ""
	}
	if len(values) > 1 {
		return "is given twice"
	}
	s := values[0]
	if !utf8.ValidString(s) {
		return fmt.Sprintf("%q is not UTF-8", sandbox.Clip(s, 80))
	}
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(s)
	case reflect.Bool:
		v, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Sprintf("%q is neither true nor false", sandbox.Clip(s, 80))
		}
		f.SetBool(v)
	case reflect.Float64:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Sprintf("%q is not a number", sandbox.Clip(s, 80))
		}
		f.SetFloat(v)
	case reflect.Int, reflect.Int64:
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Sprintf("%q is not a whole number", sandbox.Clip(s, 80))
		}
		f.SetInt(v)
	default:
		return unreadable // New refuses it
	}
	return ""
}

// invalid returns one error about all wrong fields.
func invalid(fields []fault.Field) error {
	e := &fault.Error{Code: fault.Invalid, Fields: fields}
	for i, f := range fields {
		if i > 0 {
			e.Message += "; "
		}
		e.Message += f.Name + " " + f.Message
	}
	e.Message = sandbox.Clip(e.Message, 1000)
	return e
}
