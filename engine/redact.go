// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sandpit.dev/sandbox"
)

// redactor takes the values of secrets out of text, and says whose they were. It finds a
// value as it is and as quoting, escaping and encoding make it, and the beginning of one
// that sandbox.Clip cut off; what a program made of a value otherwise it cannot know.
// How long it takes grows with the text and not with the secrets. It is safe for
// concurrent use.
type redactor struct {
	mu    sync.RWMutex
	forms map[[formHead]byte][]*form // by their first bytes
}

// formHead is how many bytes of a value are enough to be taken out.
const formHead = sandbox.MinSecretValue

// form is one spelling of a value.
type form struct {
	text string
	name string
	refs int // of the secrets that have it
}

func newRedactor(secrets []openSecret) *redactor {
	r := &redactor{}
	r.add(secrets)
	return r
}

func (r *redactor) add(secrets []openSecret) {
	r.each(secrets, func(name, text string) {
		head := [formHead]byte([]byte(text[:formHead]))
		if r.forms == nil {
			r.forms = make(map[[formHead]byte][]*form)
		}
		at := slices.IndexFunc(r.forms[head], func(f *form) bool { return f.text == text && f.name == name })
		if at >= 0 {
			r.forms[head][at].refs++
			return
		}
		r.forms[head] = append(r.forms[head], &form{text: text, name: name, refs: 1})
	})
}

// drop takes back one add of the same secrets.
func (r *redactor) drop(secrets []openSecret) {
	r.each(secrets, func(name, text string) {
		head := [formHead]byte([]byte(text[:formHead]))
		at := slices.IndexFunc(r.forms[head], func(f *form) bool { return f.text == text && f.name == name })
		if at < 0 {
			return
		}
		if r.forms[head][at].refs--; r.forms[head][at].refs > 0 {
			return
		}
		if r.forms[head] = slices.Delete(r.forms[head], at, at+1); len(r.forms[head]) == 0 {
			delete(r.forms, head)
		}
	})
}

func (r *redactor) empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.forms) == 0
}

func (r *redactor) each(secrets []openSecret, do func(name, text string)) {
	if len(secrets) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		for _, text := range spellings(s.Value) {
			do(s.Name, text)
		}
	}
}

// span is a part of a text that goes.
type span struct {
	from, to int
	name     string
}

// redact gives the text with each value replaced by the name of its secret.
func (r *redactor) redact(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.forms) == 0 || len(text) < formHead {
		return text
	}
	var spans []span
	for i := 0; i+formHead <= len(text); i++ {
		longest, name := 0, ""
		for _, f := range r.forms[[formHead]byte([]byte(text[i:i+formHead]))] {
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

const cutMark = "…" // what sandbox.Clip leaves

// at gives how many bytes of text's beginning are the form, or what Clip left of it.
func (f *form) at(text string) int {
	if strings.HasPrefix(text, f.text) {
		return len(f.text)
	}
	same := 0
	for same < len(text) && same < len(f.text) && text[same] == f.text[same] {
		same++
	}
	if same >= formHead && strings.HasPrefix(text[same:], cutMark) {
		return same
	}
	return 0
}

// spellings gives a value as it is, and as it is where it was quoted, escaped or encoded.
func spellings(value string) []string {
	if len(value) > sandbox.MaxEventCommand { // no text here holds the whole of it
		return []string{value}
	}
	inner := func(s string) string { return s[1 : len(s)-1] }
	plain := bytes.Buffer{}
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // text in memory
	escaped, _ := json.Marshal(value)
	out := []string{
		value, strings.ToLower(value), // a name of a host has no case
		strings.ReplaceAll(value, "'", `'\''`),
		inner(strconv.Quote(value)), inner(strconv.QuoteToASCII(value)),
		inner(strings.TrimSuffix(plain.String(), "\n")), inner(string(escaped)),
		url.QueryEscape(value), url.PathEscape(value),
		hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))),
	}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, base64Parts(e, value)...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < formHead })
}

// base64Parts gives what of a value's encoding is the same whatever stands before and
// behind it: one for each place that it can begin at.
func base64Parts(e *base64.Encoding, value string) []string {
	const least = 8 // what is shorter may be anything
	var out []string
	for before := range 3 {
		text := e.EncodeToString([]byte("\x00\x00"[:before] + value))
		from, to := (before*8+5)/6, (before+len(value))*8/6 // whole characters of the value
		if to-from >= least {
			out = append(out, text[from:to])
		}
	}
	return out
}

// event takes the values out of all that an event says in words.
func (r *redactor) event(ev *sandbox.Event) {
	for _, s := range []struct {
		text *string
		most int
	}{
		{&ev.Command, sandbox.MaxEventCommand - len(cutMark)}, {&ev.Detail, maxDetail},
		{&ev.Cwd, 0}, {&ev.Path, 0}, {&ev.To, 0}, {&ev.Language, 0}, {&ev.User, 0}, {&ev.Signal, 0},
	} {
		if clean := r.redact(*s.text); clean != *s.text {
			if *s.text = clean; s.most > 0 {
				*s.text = sandbox.Clip(clean, s.most)
			}
		}
	}
	ev.Changes = r.changes(ev.Changes)
}

// changes takes the values out of names of files. What it is given stays as it is.
func (r *redactor) changes(all []sandbox.FileChange) []sandbox.FileChange {
	out := all
	for i, c := range all {
		clean := r.redact(c.Path)
		if clean == c.Path {
			continue
		}
		if &out[0] == &all[0] {
			out = slices.Clone(all)
		}
		out[i].Path = clean
	}
	return out
}

// in gives the name of a secret whose value, of so many bytes at least, one of the texts
// has in it; "" for none.
func (r *redactor) in(least int, texts ...string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, text := range texts {
		for i := 0; i+formHead <= len(text); i++ {
			for _, f := range r.forms[[formHead]byte([]byte(text[i:i+formHead]))] {
				if len(f.text) >= least && f.at(text[i:]) > 0 {
					return f.name
				}
			}
		}
	}
	return ""
}
