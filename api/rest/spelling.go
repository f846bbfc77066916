// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// spellings reads fields that have two names. It gathers what is wrong, and
// remembers which name was used, so that an error of the engine about the field
// can be told under the name that the caller wrote.
type spellings struct {
	bad     []fault.Field
	written map[string]string // the field's own name → what the caller wrote
	parts   map[string]*spellings
}

// part gives the spellings of an object that is a field.
func (s *spellings) part(field string) *spellings {
	if s.parts == nil {
		s.parts = make(map[string]*spellings)
	}
	if s.parts[field] == nil {
		s.parts[field] = new(spellings)
	}
	return s.parts[field]
}

func (s *spellings) add(name, format string, args ...any) {
	s.bad = append(s.bad, fault.Field{Name: name, Message: fmt.Sprintf(format, args...)})
}

func (s *spellings) wrote(own, other string) {
	if s.written == nil {
		s.written = make(map[string]string)
	}
	s.written[own] = other
}

func (s *spellings) err() error {
	bad := slices.Clone(s.bad)
	for _, field := range slices.Sorted(maps.Keys(s.parts)) {
		bad = append(bad, inside(field, slices.Clone(s.parts[field].bad))...)
	}
	if len(bad) == 0 {
		return nil
	}
	return invalid(bad)
}

// either gives the value of a field that may be written as own or as other.
func either[T comparable](s *spellings, own string, x *T, other string, y *T) *T {
	switch {
	case y == nil:
		return x
	case x == nil:
		s.wrote(own, other)
		return y
	case *x != *y:
		s.disagree(own, *x, other, *y)
	}
	return x
}

// eitherMap is either for maps.
func eitherMap(s *spellings, own string, x map[string]string, other string, y map[string]string) map[string]string {
	switch {
	case y == nil:
		return x
	case x == nil:
		s.wrote(own, other)
		return y
	case !maps.Equal(x, y):
		// Their values may be secrets.
		s.add(own, "and %s disagree; send one of them", other)
		s.add(other, "and %s disagree; send one of them", own)
	}
	return x
}

func (s *spellings) disagree(own string, x any, other string, y any) {
	xs, ys := sandbox.Clip(fmt.Sprint(x), 80), sandbox.Clip(fmt.Sprint(y), 80)
	s.add(own, "is %s while %s is %s; send one of them", xs, other, ys)
	s.add(other, "is %s while %s is %s; send one of them", ys, own, xs)
}

// rename tells an engine's error about fields under the names that were written.
func (s *spellings) rename(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || len(s.written)+len(s.parts) == 0 || len(e.Fields) == 0 {
		return err
	}
	renamed := *e
	renamed.Fields = make([]fault.Field, len(e.Fields))
	for i, f := range e.Fields {
		name := s.renamed(f.Name)
		renamed.Message = strings.ReplaceAll(renamed.Message, f.Name+":", name+":")
		renamed.Fields[i] = fault.Field{Name: name, Message: f.Message}
	}
	return &renamed
}

// renamed gives the name that was written for a field, for a member of it
// (env.PORT), and for one of a list's elements (mounts[0].path).
func (s *spellings) renamed(name string) string {
	root, rest, deep := strings.Cut(name, ".")
	if part := s.parts[root]; part != nil && deep {
		return root + "." + part.renamed(rest)
	}
	root, index, listed := strings.Cut(root, "[")
	if other, ok := s.written[root+"."+rest]; ok && listed {
		rest = other
	}
	if other, ok := s.written[root]; ok {
		root = other
	}
	if listed {
		root += "[" + index
	}
	if deep {
		root += "." + rest
	}
	return root
}

// name is how the caller wrote the field own.
func (s *spellings) name(own string) string {
	if other, ok := s.written[own]; ok {
		return other
	}
	return own
}

// take adds the fields of an Invalid error, under the names that were written.
func (s *spellings) take(err error) {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		for _, f := range e.Fields {
			s.bad = append(s.bad, fault.Field{Name: s.name(f.Name), Message: f.Message})
		}
	}
}
