// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
)

// member is a field of an object as JSON has it.
type member struct {
	name string
	is   reflect.Type
}

var marshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// membersOf returns the fields of a type that is an object in JSON, and false for another.
func membersOf(t reflect.Type) (all []member, ok bool) {
	if t == nil {
		return nil, false
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.ContainsFunc(marshalers, func(m reflect.Type) bool { return reflect.PointerTo(t).Implements(m) }) {
		return nil, false
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			inner, ok := membersOf(f.Type)
			if !ok {
				return nil, false
			}
			all = append(all, inner...)
		case !f.IsExported():
		case name == "":
			all = append(all, member{f.Name, f.Type})
		default:
			all = append(all, member{name, f.Type})
		}
	}
	return all, true
}

// fieldReader looks for a field in a template that no value has. It knows the types of what is read by name, and
// leaves out what functions return.
type fieldReader struct {
	root      reflect.Type
	variables []member
	err       error
}

func (r *fieldReader) list(n *parse.ListNode, dot reflect.Type) {
	if n == nil {
		return
	}
	outer := len(r.variables)
	for _, one := range n.Nodes {
		r.node(one, dot)
	}
	r.variables = r.variables[:outer]
}

func (r *fieldReader) node(n parse.Node, dot reflect.Type) {
	outer := len(r.variables)
	switch n := n.(type) {
	case *parse.ActionNode:
		r.declare(n.Pipe, r.pipe(n.Pipe, dot))
		return // what it declares is known to what follows
	case *parse.IfNode:
		r.declare(n.Pipe, r.pipe(n.Pipe, dot))
		r.list(n.List, dot)
		r.list(n.ElseList, dot)
	case *parse.WithNode:
		t := r.pipe(n.Pipe, dot)
		r.declare(n.Pipe, t)
		r.list(n.List, t)
		r.list(n.ElseList, dot)
	case *parse.RangeNode:
		t := r.pipe(n.Pipe, dot)
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		var each reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
			each = t.Elem()
		}
		for i, v := range n.Pipe.Decl {
			is := each
			if i == 0 && len(n.Pipe.Decl) == 2 {
				is = nil // the index
			}
			r.variables = append(r.variables, member{v.Ident[0], is})
		}
		r.list(n.List, each)
		r.list(n.ElseList, dot)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			r.pipe(n.Pipe, dot)
		}
	}
	r.variables = r.variables[:outer]
}

// declare notes the variables of a pipeline, and forgets the types of those that it sets anew.
func (r *fieldReader) declare(p *parse.PipeNode, t reflect.Type) {
	for _, v := range p.Decl {
		if !p.IsAssign {
			r.variables = append(r.variables, member{v.Ident[0], t})
			continue
		}
		for i := range r.variables {
			if r.variables[i].name == v.Ident[0] {
				r.variables[i].is = nil // it may be set in one branch alone
			}
		}
	}
}

// pipe returns the type of a pipeline that only names a value; nil: it is not known.
func (r *fieldReader) pipe(p *parse.PipeNode, dot reflect.Type) (is reflect.Type) {
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			is = r.value(arg, dot)
		}
		if len(p.Cmds) > 1 || len(c.Args) > 1 {
			is = nil
		}
	}
	return is
}

func (r *fieldReader) value(n parse.Node, dot reflect.Type) reflect.Type {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return r.fields(dot, n.Ident)
	case *parse.ChainNode:
		return r.fields(r.value(n.Node, dot), n.Field)
	case *parse.PipeNode:
		return r.pipe(n, dot)
	case *parse.VariableNode:
		t := r.root
		for _, v := range r.variables {
			if v.name == n.Ident[0] {
				t = v.is
			}
		}
		return r.fields(t, n.Ident[1:])
	}
	return nil
}

// fields returns the type of a field of a field of t.
func (r *fieldReader) fields(t reflect.Type, path []string) reflect.Type {
	for i, name := range path {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t != nil && t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		members, ok := membersOf(t)
		if !ok {
			return nil // what is no object, the template itself says
		}
		at := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if at < 0 {
			r.missing(name, path[:i], members)
			return nil
		}
		t = members[at].is
	}
	return t
}

func (r *fieldReader) missing(name string, in []string, members []member) {
	if r.err != nil {
		return
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	where, meant := "", ""
	if len(in) > 0 {
		where = " in " + strings.Join(in, ".")
	}
	if near := spelling.Nearest(name, names); near != "" {
		meant = "; did you mean " + near + "?"
	}
	slices.Sort(names)
	r.err = fault.New(fault.Invalid, "--format: there is no field %q%s%s", name, where, meant).
		WithRemedy("the fields%s are %s", where, strings.Join(names, ", "))
}

// none is an object that is not there. In a template it is false, prints nothing and has every
// field, which is none as well.
type none map[string]none

func (none) String() string { return "" }

// whole returns what was JSON of a t with the fields that JSON left out: nothing, zero or false,
// where a template would print <no value>.
func whole(v any, t reflect.Type) any {
	pointer := false
	for t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	if members, ok := membersOf(t); ok {
		object, ok := v.(map[string]any)
		if !ok {
			return none(nil)
		}
		for _, m := range members {
			object[m.name] = whole(object[m.name], m.is)
		}
		return object
	}
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		list, _ := v.([]any)
		out := make([]any, len(list))
		for i := range list {
			out[i] = whole(list[i], t.Elem())
		}
		return out
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String:
		return typed[string](v)
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Int:
		return typed[json.Number](v)
	case v != nil:
	case t.Kind() == reflect.Bool && !pointer:
		return false
	case (t.Kind() == reflect.Int || t.Kind() == reflect.Int64 || t.Kind() == reflect.Float64) && !pointer:
		return json.Number("0")
	default:
		return ""
	}
	return v
}

// typed returns a map whose missing values are empty.
func typed[T any](v any) map[string]T {
	object, _ := v.(map[string]any)
	out := make(map[string]T, len(object))
	for name, one := range object {
		out[name], _ = one.(T)
	}
	return out
}
