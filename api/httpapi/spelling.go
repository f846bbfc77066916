// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Spellings reads fields that have two names. It gathers what is wrong, and
// remembers which name was used, so that an error of the engine about the field
// can be told under the name that the caller wrote.
type Spellings struct {
	bad     []fault.Field
	written map[string]string // the field's own name → what the caller wrote
	parts   map[string]*Spellings
}

// Part returns the spellings of an object that is a field.
func (s *Spellings) Part(field string) *Spellings {
	if s.parts == nil {
		s.parts = make(map[string]*Spellings)
	}
	if s.parts[field] == nil {
		s.parts[field] = new(Spellings)
	}
	return s.parts[field]
}

// Add notes what is wrong with a field.
func (s *Spellings) Add(name, format string, args ...any) {
	s.bad = append(s.bad, fault.Field{Name: name, Message: fmt.Sprintf(format, args...)})
}

// Wrote notes that the caller wrote the field own as other.
func (s *Spellings) Wrote(own, other string) {
	if s.written == nil {
		s.written = make(map[string]string)
	}
	s.written[own] = other
}

// Err returns one error about all that is wrong, or nil.
func (s *Spellings) Err() error {
	if len(s.bad) == 0 && len(s.parts) == 0 {
		return nil
	}
	bad := slices.Clone(s.bad)
	for _, field := range slices.Sorted(maps.Keys(s.parts)) {
		bad = append(bad, inside(field, slices.Clone(s.parts[field].bad))...)
	}
	if len(bad) == 0 {
		return nil
	}
	return invalid(bad)
}

// Either returns the value of a field that may be written as own or as other.
func Either[T comparable](s *Spellings, own string, x *T, other string, y *T) *T {
	switch {
	case y == nil:
		return x
	case x == nil:
		s.Wrote(own, other)
		return y
	case *x != *y:
		s.Disagree(own, *x, other, *y)
	}
	return x
}

// EitherMap is [Either] for maps.
func EitherMap(s *Spellings, own string, x map[string]string, other string, y map[string]string) map[string]string {
	switch {
	case y == nil:
		return x
	case x == nil:
		s.Wrote(own, other)
		return y
	case !maps.Equal(x, y):
		// Their values may be secrets.
		s.Add(own, "and %s disagree; send one of them", other)
		s.Add(other, "and %s disagree; send one of them", own)
	}
	return x
}

// Disagree notes that a field has two values under two names.
func (s *Spellings) Disagree(own string, x any, other string, y any) {
	xs, ys := sandbox.Clip(fmt.Sprint(x), 80), sandbox.Clip(fmt.Sprint(y), 80)
	s.Add(own, "is %s while %s is %s; send one of them", xs, other, ys)
	s.Add(other, "is %s while %s is %s; send one of them", ys, own, xs)
}

// Rename returns an engine's error about fields under the names that were written.
func (s *Spellings) Rename(err error) error {
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

// renamed returns the name that was written for a field, for a member of it
// (env.PORT), and for one of a list's elements (mounts[0].path). A member may
// have a name of its own (network.allow_domains).
func (s *Spellings) renamed(name string) string {
	member, _, _ := strings.Cut(name, "[")
	if other, ok := s.written[member]; ok && strings.Contains(member, ".") {
		return other + name[len(member):]
	}
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

// Name returns how the caller wrote the field own.
func (s *Spellings) Name(own string) string {
	if other, ok := s.written[own]; ok {
		return other
	}
	return own
}

// Take adds the fields of an Invalid error, under the names that were written.
func (s *Spellings) Take(err error) {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		for _, f := range e.Fields {
			s.bad = append(s.bad, fault.Field{Name: s.Name(f.Name), Message: f.Message})
		}
	}
}

// Has reports whether something is wrong with a field.
func (s *Spellings) Has(name string) bool {
	return slices.ContainsFunc(s.bad, func(f fault.Field) bool { return f.Name == name })
}

// Choice returns the value of a field that is one of a few words, or nil.
func Choice[T ~string](s *Spellings, name string, given *string, words ...T) *T {
	if given == nil {
		return nil
	}
	var all []string
	for _, w := range words {
		if string(w) == *given {
			return &w
		}
		all = append(all, string(w))
	}
	s.Add(name, "%q is not valid; use %s", sandbox.Clip(*given, 80), strings.Join(all, " or "))
	return nil
}
