// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"math"
	"regexp"
	"strings"

	"sandpit.dev/fault"
)

// Size is a name for limits of CPU and memory.
type Size struct {
	Name     string
	CPU      float64
	MemoryMB int
}

// Sizes is a server's table of them, the smallest first. It is the same through every coat.
type Sizes []Size

// DefaultSizes returns the sizes of a server whose operator set no others.
func DefaultSizes() Sizes {
	return Sizes{{"small", 1, 1024}, {"medium", 2, 4096}, {"large", 4, 8192}}
}

// maxSizes bounds a table: tools list the names.
const maxSizes = 16

var sizeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// Check checks a table; the error is Invalid, and names the size below field.
func (t Sizes) Check(field string) error {
	if len(t) == 0 || len(t) > maxSizes {
		return fault.InvalidField(field, "has %d sizes; it may have 1 to %d", len(t), maxSizes)
	}
	for _, s := range t {
		name := field + "." + Clip(s.Name, 40)
		switch {
		case !sizeName.MatchString(s.Name):
			return fault.InvalidField(name, "%q is not a name of lower-case letters, digits, - and _, of at most 32", Clip(s.Name, 40))
		case math.IsNaN(s.CPU) || s.CPU < MinCPU || s.CPU > MaxCPU:
			return fault.InvalidField(name+".cpu_cores", "%v is outside %v to %v cores", s.CPU, MinCPU, MaxCPU)
		case s.MemoryMB < MinMemoryMB || s.MemoryMB > MaxMemoryMB:
			return fault.InvalidField(name+".memory_mb", "%d is outside %d to %d MiB", s.MemoryMB, MinMemoryMB, MaxMemoryMB)
		}
	}
	return nil
}

// Named returns the size of a name. There being none is Invalid, and about the field size.
func (t Sizes) Named(name string) (Size, error) {
	for _, s := range t {
		if s.Name == name {
			return s, nil
		}
	}
	return Size{}, fault.InvalidField("size", "%q is not valid; use %s", Clip(name, 80), strings.Join(t.Names(), ", "))
}

// Fill gives limits the CPU and the memory of a size where they have none; "" is no size.
func (t Sizes) Fill(name string, l Limits) (Limits, error) {
	if name == "" {
		return l, nil
	}
	s, err := t.Named(name)
	if err != nil {
		return l, err
	}
	return l.Or(Limits{CPU: s.CPU, MemoryMB: s.MemoryMB}), nil
}

// Names lists the names.
func (t Sizes) Names() []string {
	all := make([]string, len(t))
	for i, s := range t {
		all[i] = s.Name
	}
	return all
}

// Of returns the name of the size that limits are of; "": none.
func (t Sizes) Of(l Limits) string {
	for _, s := range t {
		if s.CPU == l.CPU && s.MemoryMB == l.MemoryMB {
			return s.Name
		}
	}
	return ""
}
