// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
)

// Bounds of forms.
const (
	FormKept  = 10 * time.Minute // how long an answer to one is taken
	FormQuiet = 10 * time.Minute // how long a token's person is not asked again who did not allow it
	MaxForms  = 4                // of a token, that have no answer yet
	MaxHosts  = 40               // in a form: more are not read
)

// Choice is what a person said to a form.
type Choice int

// Choices.
const (
	Unanswered Choice = iota // nothing that the form offers
	Allow
	Deny
)

// who is whose client one is. Another token has other forms.
type who struct{ project, token, actor string }

func whoseClient(c access.Caller) who { return who{c.Project, c.TokenID, c.Actor} }

// form is a request as a client shows it to its person.
type form struct {
	r     Request
	of    who
	until time.Time
}

// forms are those without an answer. They are kept in memory: to one of an earlier server no answer is
// taken, and its request waits. Their zero value is empty. They are safe for concurrent use.
type forms struct {
	mu    sync.Mutex
	open  map[string]form   // by id
	quiet map[who]time.Time // until when no more are shown
}

// show adds a form, and returns its id; ok is false where the client has enough of them.
func (f *forms) show(of who, r Request, now time.Time) (id string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for id, o := range f.open {
		switch {
		case !now.Before(o.until), o.of == of && o.r.ID == r.ID: // the new one takes its place
			delete(f.open, id)
		case o.of == of:
			n++
		}
	}
	for o, until := range f.quiet {
		if !now.Before(until) {
			delete(f.quiet, o)
		}
	}
	if _, quiet := f.quiet[of]; quiet || n >= MaxForms {
		return "", false
	}
	if f.open == nil {
		f.open, f.quiet = make(map[string]form), make(map[who]time.Time)
	}
	id = rand.Text()
	f.open[id] = form{r: r, of: of, until: now.Add(FormKept)}
	return id, true
}

// take removes a form, to which an answer has come. One of another's client stays.
func (f *forms) take(of who, id string, ch Choice, now time.Time) (r Request, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.open[id]
	if !ok || o.of != of {
		return Request{}, false
	}
	delete(f.open, id)
	if ch != Allow {
		f.quiet[of] = now.Add(FormQuiet)
	}
	return o.r, now.Before(o.until)
}

// ShowNetwork begins to ask the caller's own person for a request that waits, and returns the id by which the
// answer comes; the form shows all that [Request] names, and nothing else is granted by it. It returns "" where the
// operator does not have it so, the person did not allow something a short time ago or has enough to answer, or it is too
// much to read.
func (d *Desk) ShowNetwork(c access.Caller, r Request) (form string) {
	if !d.rules().Elicit || len(r.Domains)+len(r.Names) > MaxHosts || c.Project != r.Project {
		return ""
	}
	form, _ = d.forms.show(whoseClient(c), r, d.now())
	return form
}

// AnswerNetwork takes what the caller's person said to a form, once, and returns what became of its request. The sandbox,
// presets and domains are those that the caller asks for in the same breath. The state is "" where there is no such form: it is
// not known, too old, another's, or of something else; then nothing has changed.
func (d *Desk) AnswerNetwork(ctx context.Context, c access.Caller, form, ref string, presets, domains []string, ch Choice) (Request, State, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Request{}, "", err
	}
	r, ok := d.forms.take(whoseClient(c), form, ch, d.now())
	if !ok {
		return Request{}, "", nil
	}
	asked, err := d.rules().Asked(presets, domains)
	if err != nil {
		return Request{}, "", err
	}
	s, err := d.engine.Get(ctx, c, ref)
	if err != nil {
		return Request{}, "", err
	}
	if s.ID != r.Sandbox || !slices.Equal(asked.AllowPresets, r.Presets) || !slices.Equal(asked.AllowDomains, r.Domains) {
		return Request{}, "", nil
	}
	state := Pending
	switch ch {
	case Allow:
		state = Granted
		_, err = d.answer(ctx, c, r.ID, sandbox.EventNetworkGranted, byForm, func(Request) error { return d.widen(ctx, c, r, &asShown{r}) })
	case Deny:
		state = Denied
		_, err = d.answer(ctx, c, r.ID, sandbox.EventNetworkDenied, byForm, func(Request) error { return nil })
	default:
		_, err = d.book.Get(c.Project, r.ID, d.now())
	}
	if !fault.Is(err, fault.NotFound) {
		return r, state, err
	}
	// It was answered elsewhere meanwhile.
	if s, err = d.engine.Get(ctx, c, string(r.Sandbox)); err != nil {
		return Request{}, "", err
	}
	if permit.Covers(d.engine.InForce(s.Network), r.policy()) {
		return r, Allowed, nil
	}
	return r, Denied, nil
}

// byForm is what events say of answers that came by a form.
const byForm = "; answered in the client of the token that asked (elicitation)"

// asShown holds what is granted to what a form showed: what presets stand for may have changed since.
type asShown struct{ Request }

// Within refuses what neither was in force nor was shown.
func (a *asShown) Within(was, becomes sandbox.NetworkPolicy) error {
	if more := permit.Exceeds(becomes, was, a.policy()); more != "" {
		return fault.New(fault.State, "sandbox %s would reach more than was shown to the user: %s", a.Ref, sandbox.Clip(more, 80)).
			WithRemedy("ask again: what the presets stand for, or the sandbox's network, has changed meanwhile")
	}
	return nil
}

// policy is the hosts that a request names.
func (r Request) policy() sandbox.NetworkPolicy {
	p := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: slices.Clone(r.Domains), PresetDomains: r.Names}
	for _, n := range r.Names {
		p.AllowDomains = append(p.AllowDomains, n.Domain)
	}
	return p
}
