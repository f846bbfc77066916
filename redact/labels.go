// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
	"sync"
)

// Secret is a value, and the name that may be told.
type Secret struct{ Name, Value string }

// Labels replaces values in whole texts by the names of their secrets. It finds a value in
// the spellings of its place, and the beginning of one that was cut off, with [CutMark]
// behind it. How long it takes grows with the text and not with the secrets. A Labels is
// safe for concurrent use.
type Labels struct {
	place Place
	mu    sync.RWMutex
	forms map[[minForm]byte][]*form // by their first bytes
}

// form is one spelling of the value of a secret.
type form struct {
	text  string
	name  string
	upper bool // it is the value in upper case, which may be any name: it is replaced, and not found by In
	refs  int  // how often it was added
}

// CutMark is what stands behind a text that was cut off.
const CutMark = "…"

// NewLabels returns the labels of secrets at a place.
func NewLabels(p Place, secrets ...Secret) *Labels {
	l := &Labels{place: p}
	l.Add(secrets...)
	return l
}

// Add adds secrets.
func (l *Labels) Add(secrets ...Secret) {
	l.each(secrets, func(head [minForm]byte, at int, f form) {
		if at >= 0 {
			l.forms[head][at].refs++
			return
		}
		if l.forms == nil {
			l.forms = make(map[[minForm]byte][]*form)
		}
		l.forms[head] = append(l.forms[head], &f)
	})
}

// Remove takes back one Add of the same secrets.
func (l *Labels) Remove(secrets ...Secret) {
	l.each(secrets, func(head [minForm]byte, at int, f form) {
		if at < 0 {
			return
		}
		if l.forms[head][at].refs--; l.forms[head][at].refs > 0 {
			return
		}
		if l.forms[head] = slices.Delete(l.forms[head], at, at+1); len(l.forms[head]) == 0 {
			delete(l.forms, head)
		}
	})
}

// each calls do for each form of the secrets, with its first bytes and its place among the
// forms that begin with them, or -1.
func (l *Labels) each(secrets []Secret, do func(head [minForm]byte, at int, f form)) {
	if len(secrets) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		for _, text := range l.place.Forms(s.Value) {
			if len(text) < minForm {
				continue
			}
			head := [minForm]byte([]byte(text[:minForm]))
			at := slices.IndexFunc(l.forms[head], func(f *form) bool { return f.text == text && f.name == s.Name })
			upper := text != s.Value && text == strings.ToUpper(s.Value)
			do(head, at, form{text: text, name: s.Name, upper: upper, refs: 1})
		}
	}
}

// Empty reports whether there are no values.
func (l *Labels) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.forms) == 0
}

// span is a part of a text that goes.
type span struct {
	from, to int
	name     string
}

// String returns the text with each value replaced by the name of its secret.
func (l *Labels) String(text string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.forms) == 0 {
		return text
	}
	var spans []span
	for i := 0; i+minForm <= len(text); i++ {
		longest, name := 0, ""
		for _, f := range l.forms[[minForm]byte([]byte(text[i:i+minForm]))] {
			if n := f.at(text[i:]); n > longest {
				longest, name = n, f.name
			}
		}
		if longest == 0 {
			continue
		}
		if n := len(spans); n > 0 && i < spans[n-1].to { // they overlap: one goes with the other
			spans[n-1].to = max(spans[n-1].to, i+longest)
		} else {
			spans = append(spans, span{i, i + longest, name})
		}
	}
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	last := 0
	for _, s := range spans {
		b.WriteString(text[last:s.from])
		b.WriteString("[secret " + s.name + "]")
		last = s.to
	}
	b.WriteString(text[last:])
	return b.String()
}

// In returns the name of a secret that one of the texts has in it, in a spelling of at
// least so many bytes; "" if there is none. A value in upper case is not looked for: a variable
// named POSTGRES_USER has nothing to do with the password "postgres".
func (l *Labels) In(least int, texts ...string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, text := range texts {
		for i := 0; i+minForm <= len(text); i++ {
			for _, f := range l.forms[[minForm]byte([]byte(text[i:i+minForm]))] {
				if !f.upper && len(f.text) >= least && f.at(text[i:]) > 0 {
					return f.name
				}
			}
		}
	}
	return ""
}

// at returns how many bytes of text's beginning are the form, or what was left of it when
// the text was cut off.
func (f *form) at(text string) int {
	if strings.HasPrefix(text, f.text) {
		return len(f.text)
	}
	same := 0
	for same < len(text) && same < len(f.text) && text[same] == f.text[same] {
		same++
	}
	if same >= minForm && strings.HasPrefix(text[same:], CutMark) {
		return same
	}
	return 0
}
