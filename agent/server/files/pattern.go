// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"regexp"
	"regexp/syntax"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// maxProgram bounds what a pattern compiles to, in instructions: a match takes
// time in proportion to it, and nothing ends one match early.
const maxProgram = 4000

// pattern is what lines are held against. A nil one fits nothing.
type pattern struct {
	re   *regexp.Regexp
	must []byte // every match has it; empty: nothing is known
	cost int    // about how many instructions it has
}

// newPattern compiles an expression of RE2, whose matches take linear time.
func newPattern(expr string, fold bool) (*pattern, error) {
	if len(expr) > wire.MaxSearchPattern {
		return nil, fault.InvalidField("pattern", "has %d bytes, more than %d", len(expr), wire.MaxSearchPattern)
	}
	if fold {
		expr = "(?i:" + expr + ")"
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fault.InvalidField("pattern", "%q is not a valid regular expression: %v", message.Clip(expr, 80), err).
			WithRemedy(`it is in the syntax of RE2, without look-around and back references; a special character is taken literally with \ before it`)
	}
	cost := weight(tree)
	if cost > maxProgram {
		return nil, fault.InvalidField("pattern", "%q repeats too much", message.Clip(expr, 80)).
			WithRemedy("use * or + in place of high numbers in braces")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fault.InvalidField("pattern", "%q is not a valid regular expression: %v", message.Clip(expr, 80), err)
	}
	prefix, _ := re.LiteralPrefix()
	return &pattern{re, []byte(prefix), cost}, nil
}

// weight is about how many instructions an expression compiles to, and how much
// memory its classes take. It stops counting at a bound of its own.
func weight(re *syntax.Regexp) int {
	w := 1 + len(re.Rune)/8
	for _, sub := range re.Sub {
		w += weight(sub)
	}
	if re.Op == syntax.OpRepeat {
		w *= max(1, re.Min, re.Max)
	}
	return min(w, 1<<20)
}

// maybe reports whether anything in b can fit.
func (p *pattern) maybe(b []byte) bool {
	return len(p.must) == 0 || bytes.Contains(b, p.must)
}

// find returns where a line fits.
func (p *pattern) find(line []byte) (from, to int, ok bool) {
	if at := p.re.FindIndex(line); at != nil {
		return at[0], at[1], true
	}
	return 0, 0, false
}
