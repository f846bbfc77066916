// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strconv"
	"strings"

	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Mark is what a caller calls a process by.
type Mark struct {
	Name   string // no other process of the sandbox has it that runs; empty: none
	Labels map[string]string
}

// Empty reports whether nothing is marked.
func (m Mark) Empty() bool { return m.Name == "" && len(m.Labels) == 0 }

// Check adds what is wrong of it.
func (m Mark) Check(k *check.Fields) {
	if m.Name != "" {
		k.Name("name", m.Name)
	}
	k.Labels("labels", m.Labels)
}

// Texts returns its texts by the fields that have them.
func (m Mark) Texts() map[string][]string {
	out := map[string][]string{"name": {m.Name}}
	for n, v := range m.Labels {
		out["labels"] = append(out["labels"], n, v)
	}
	return out
}

// Prefixes of what stands in place of a process's id.
const (
	ByName   = "name:" // and its name
	ByNumber = "pid:"  // and its number inside
)

// Ref is what a caller says of which process is meant: exactly one of the fields is set.
type Ref struct {
	ID   string
	Name string
	PID  int
}

// ParseRef reads an id, name:NAME or pid:N. What is none of them is fault.NotFound, as is an id of no
// process.
func ParseRef(s string) (Ref, error) {
	if name, ok := strings.CutPrefix(s, ByName); ok && check.ValidName(name) {
		return Ref{Name: name}, nil
	}
	if number, ok := strings.CutPrefix(s, ByNumber); ok {
		if n, err := strconv.ParseUint(number, 10, 31); err == nil && n > 0 {
			return Ref{PID: int(n)}, nil
		}
	}
	if !sandbox.ValidID(s) {
		return Ref{}, fault.New(fault.NotFound, "there is no process %q", sandbox.Clip(s, 80)).
			WithRemedy("list the sandbox's processes to see which there are; one is named by its id, by name:NAME, or by pid:N, its number inside")
	}
	return Ref{ID: s}, nil
}

// Has reports whether a process has all of the labels.
func Has(rec *sandbox.Process, labels map[string]string) bool {
	for n, v := range labels {
		if got, ok := rec.Labels[n]; !ok || got != v {
			return false
		}
	}
	return true
}
