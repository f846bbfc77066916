// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// desk is a desk whose operator lets clients ask, with a clock of the test's, and a sandbox.
type desk struct {
	*ask.Desk
	t   *testing.T
	w   *wired
	all func(sandbox.EventType) []*sandbox.Event
	box string
	id  sandbox.ID
	now time.Time
}

func openForms(t *testing.T) *desk {
	t.Helper()
	_, w, events := open(t, func(r *permit.Rules) { r.Elicit = true })
	d := &desk{t: t, w: w, all: events}
	return d.with("box")
}

// with returns another desk of the same engine, for another sandbox.
func (d *desk) with(box string) *desk {
	d.t.Helper()
	s, _, err := d.w.Create(d.t.Context(), alice, engine.CreateRequest{Key: box})
	if err != nil {
		d.t.Fatal(err)
	}
	other := &desk{t: d.t, all: d.all, box: box, id: s.ID, now: time.Unix(1_800_000_000, 0)}
	other.w = &wired{Engine: d.w.Engine, rules: d.w.rules, now: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}}
	other.Desk = ask.NewDesk(other.w, func() permit.Rules { return other.w.rules }, func() time.Time { return other.now })
	return other
}

// events returns those of its sandbox.
func (d *desk) events(of sandbox.EventType) []*sandbox.Event {
	return slices.DeleteFunc(d.all(of), func(e *sandbox.Event) bool { return e.Sandbox != d.id })
}

// shown asks for a name, and shows the form.
func (d *desk) shown(c access.Caller, domain string) (ask.Request, string) {
	d.t.Helper()
	r, state, err := d.RequestNetwork(d.t.Context(), c, d.box, nil, []string{domain}, "")
	if err != nil || state != ask.Pending {
		d.t.Fatalf("asked for %s: %q, %v", domain, state, err)
	}
	return r, d.ShowNetwork(c, r)
}

// must shows the form, which has to be.
func (d *desk) must(domain string) (ask.Request, string) {
	d.t.Helper()
	r, form := d.shown(alice, domain)
	if form == "" {
		d.t.Fatalf("no form for %s", domain)
	}
	return r, form
}

func (d *desk) said(c access.Caller, form, domain string, ch ask.Choice) ask.State {
	d.t.Helper()
	_, state, err := d.AnswerNetwork(d.t.Context(), c, form, d.box, nil, []string{domain}, ch)
	if err != nil {
		d.t.Fatal(err)
	}
	return state
}

func (d *desk) waits() (n int) {
	d.t.Helper()
	all, err := d.NetworkRequests(d.t.Context(), alice, d.box)
	if err != nil {
		d.t.Fatal(err)
	}
	return len(all)
}

// unchanged says that nothing was granted.
func (d *desk) unchanged(what string) {
	d.t.Helper()
	if d.w.set != 0 || len(d.events(sandbox.EventNetworkGranted)) != 0 {
		d.t.Errorf("%s granted something: %+v", what, d.w.now)
	}
}

func TestAPersonGrantsByAForm(t *testing.T) {
	d := openForms(t)
	r, form := d.must("own.test")
	d.unchanged("a form that nobody answered")
	if state := d.said(alice, form, "own.test", ask.Allow); state != ask.Granted || !slices.Equal(d.w.now.AllowDomains, []string{"own.test"}) || d.waits() != 0 {
		t.Fatalf("%q: %+v", state, d.w.now)
	}
	got := d.events(sandbox.EventNetworkGranted)
	if len(got) != 1 || got[0].ProcessID != r.ID || got[0].Actor != "alice" || got[0].Via != "mcp" || !strings.Contains(got[0].Detail, "own.test") || !strings.Contains(got[0].Detail, "elicitation") {
		t.Errorf("events %+v", got)
	}
}

func TestAPersonDeniesByAForm(t *testing.T) {
	d := openForms(t)
	_, form := d.must("own.test")
	if state := d.said(alice, form, "own.test", ask.Deny); state != ask.Denied || d.waits() != 0 {
		t.Errorf("%q, and %d wait", state, d.waits())
	}
	d.unchanged("a no")
	if got := d.events(sandbox.EventNetworkDenied); len(got) != 1 || !strings.Contains(got[0].Detail, "elicitation") {
		t.Errorf("events %+v", got)
	}
	// Who said no is not asked again at once, nor is it who dismissed a form: the request waits.
	for range 3 {
		if _, form := d.shown(alice, "other.test"); form != "" {
			t.Fatal("asked again at once")
		}
	}
	other := alice
	other.TokenID = "other"
	if _, form := d.shown(other, "other.test"); form == "" {
		t.Error("another token is not asked")
	}
	d.now = d.now.Add(ask.FormQuiet)
	_, form = d.must("other.test")
	if state := d.said(alice, form, "other.test", ask.Unanswered); state != ask.Pending || d.waits() != 1 {
		t.Errorf("dismissed: %q, and %d wait", state, d.waits())
	}
	if _, form := d.shown(alice, "other.test"); form != "" {
		t.Error("asked again at once after it was dismissed")
	}
	d.unchanged("a form that was dismissed")
}

// A form is good for one answer of the token whose client showed it, for what it showed, and for some time.
func TestAnswersThatGrantNothing(t *testing.T) {
	first := openForms(t)
	for name, say := range map[string]func(d *desk, form string) (ask.State, error){
		"AFormThatNeverWas": func(d *desk, _ string) (ask.State, error) {
			return d.said(alice, "0123456789ABCDEFGHIJKLMNOP", "own.test", ask.Allow), nil
		},
		"NoForm": func(d *desk, _ string) (ask.State, error) { return d.said(alice, "", "own.test", ask.Allow), nil },
		"AnotherToken": func(d *desk, form string) (ask.State, error) {
			c := alice
			c.TokenID = "another"
			return d.said(c, form, "own.test", ask.Allow), nil
		},
		"AnotherProject": func(d *desk, form string) (ask.State, error) {
			_, state, err := d.AnswerNetwork(d.t.Context(), stranger, form, d.box, nil, []string{"own.test"}, ask.Allow)
			return state, err
		},
		"AnotherHost": func(d *desk, form string) (ask.State, error) { return d.said(alice, form, "evil.test", ask.Allow), nil },
		"MoreHosts": func(d *desk, form string) (ask.State, error) {
			_, state, err := d.AnswerNetwork(d.t.Context(), alice, form, d.box, []string{"lists"}, []string{"own.test"}, ask.Allow)
			return state, err
		},
		"AnotherSandbox": func(d *desk, form string) (ask.State, error) {
			if _, _, err := d.w.Create(d.t.Context(), alice, engine.CreateRequest{Key: "more"}); err != nil {
				d.t.Fatal(err)
			}
			_, state, err := d.AnswerNetwork(d.t.Context(), alice, form, "more", nil, []string{"own.test"}, ask.Allow)
			return state, err
		},
		"TooLate": func(d *desk, form string) (ask.State, error) {
			d.now = d.now.Add(ask.FormKept)
			return d.said(alice, form, "own.test", ask.Allow), nil
		},
		"Twice": func(d *desk, form string) (ask.State, error) {
			if state := d.said(alice, form, "own.test", ask.Unanswered); state != ask.Pending {
				d.t.Errorf("%q", state)
			}
			return d.said(alice, form, "own.test", ask.Allow), nil
		},
		"OfAnEarlierServer": func(d *desk, form string) (ask.State, error) {
			d.Desk = ask.NewDesk(d.w, func() permit.Rules { return d.w.rules }, func() time.Time { return d.now })
			return d.said(alice, form, "own.test", ask.Allow), nil
		},
		"AfterAnotherForm": func(d *desk, form string) (ask.State, error) {
			d.must("own.test") // it takes the place of the first
			return d.said(alice, form, "own.test", ask.Allow), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := first.with("box-" + name)
			d.t = t
			_, form := d.must("own.test")
			if state, err := say(d, form); err != nil || state != "" {
				t.Errorf("%q, %v; want nothing", state, err)
			}
			d.unchanged("it")
			if n := d.waits(); n != 1 {
				t.Errorf("%d wait, want the one that was shown", n)
			}
		})
	}
	d := first
	_, form := d.must("own.test")
	if _, _, err := d.AnswerNetwork(t.Context(), reader, form, "box", nil, []string{"own.test"}, ask.Allow); !fault.Is(err, fault.Denied) {
		t.Errorf("who may only read: %v", err)
	}
	if state := d.said(alice, form, "own.test", ask.Allow); state != ask.Granted {
		t.Errorf("and then its own: %q", state)
	}
}

func TestWhereNoFormIsShown(t *testing.T) {
	d := openForms(t)
	off := ask.NewDesk(d.w, func() permit.Rules { r := d.w.rules; r.Elicit = false; return r }, nil)
	r, _, err := off.RequestNetwork(t.Context(), alice, "box", nil, []string{"own.test"}, "")
	if err != nil || off.ShowNetwork(alice, r) != "" {
		t.Errorf("as shipped a form is shown: %v", err)
	}
	if d.ShowNetwork(stranger, r) != "" {
		t.Error("another project's form is shown")
	}
	for n := range ask.MaxHosts {
		r.Names = append(r.Names, sandbox.PresetDomain{Preset: "lists", Domain: fmt.Sprintf("n%d.test", n)})
	}
	if d.ShowNetwork(alice, r) != "" {
		t.Errorf("a form of %d hosts is shown, which nobody reads", ask.MaxHosts+1)
	}
	for n := range ask.MaxForms {
		d.must(fmt.Sprintf("f%d.test", n))
	}
	if _, form := d.shown(alice, "more.test"); form != "" {
		t.Error("a person has too many forms to answer")
	}
	d.now = d.now.Add(ask.FormKept)
	d.must("more.test") // those that nobody answered are gone
}

// What was answered elsewhere meanwhile is told as it is.
func TestAFormOfWhatIsAnswered(t *testing.T) {
	first := openForms(t)
	for _, ch := range []ask.Choice{ask.Allow, ask.Deny, ask.Unanswered} {
		d := first.with(fmt.Sprint("granted-", ch))
		r, form := d.must("own.test")
		if _, err := d.GrantNetwork(t.Context(), alice, r.ID); err != nil {
			t.Fatal(err)
		}
		if state := d.said(alice, form, "own.test", ch); state != ask.Allowed || d.w.set != 1 {
			t.Errorf("granted by hand, then %d: %q", ch, state)
		}
		d = first.with(fmt.Sprint("denied-", ch))
		r, form = d.must("own.test")
		if _, err := d.DenyNetwork(t.Context(), alice, r.ID); err != nil {
			t.Fatal(err)
		}
		if state := d.said(alice, form, "own.test", ch); state != ask.Denied {
			t.Errorf("denied by hand, then %d: %q", ch, state)
		}
		d.unchanged("a form of what is denied")
	}
}

// A preset that stands for more than was shown, or a network that was narrowed meanwhile, is not granted.
func TestNoMoreThanWasShownIsGranted(t *testing.T) {
	d := openForms(t)
	set := func(more ...string) {
		lists, err := preset.New(preset.Options{Lists: map[string][]string{"lists": append([]string{"a.lists.test"}, more...)}})
		if err != nil {
			t.Fatal(err)
		}
		d.w.rules.Presets = lists // the engine's; the desk learns it by asking that
	}
	set()
	r, _, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, nil, "")
	if err != nil || len(r.Names) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	form := d.ShowNetwork(alice, r)
	set("evil.test")
	if _, _, err := d.AnswerNetwork(t.Context(), alice, form, "box", []string{"lists"}, nil, ask.Allow); !fault.Is(err, fault.State) || !strings.Contains(err.Error(), "evil.test") || fault.As(err).Remedy == "" {
		t.Errorf("%v", err)
	}
	d.unchanged("more than was shown")
	if n := d.waits(); n != 1 {
		t.Errorf("%d wait", n)
	}
	// Asked again it is shown as it is now.
	again, _, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, nil, "")
	if err != nil || again.ID != r.ID || len(again.Names) != 2 {
		t.Fatalf("%+v, %v", again, err)
	}
	form = d.ShowNetwork(alice, again)
	if _, state, err := d.AnswerNetwork(t.Context(), alice, form, "box", []string{"lists"}, nil, ask.Allow); err != nil || state != ask.Granted || len(d.w.now.PresetDomains) != 2 {
		t.Errorf("%q, %v: %+v", state, err, d.w.now)
	}
}

// Of many answers that come at once one counts.
func TestAnswersAtOnce(t *testing.T) {
	d := openForms(t)
	_, form := d.must("own.test")
	var answers sync.WaitGroup
	states := make(chan ask.State, 16)
	for range cap(states) {
		answers.Go(func() {
			_, state, err := d.AnswerNetwork(t.Context(), alice, form, "box", nil, []string{"own.test"}, ask.Allow)
			if err != nil {
				t.Error(err)
			}
			states <- state
		})
	}
	answers.Wait()
	close(states)
	granted := 0
	for s := range states {
		if s == ask.Granted {
			granted++
		}
	}
	if granted != 1 || d.w.set != 1 || len(d.events(sandbox.EventNetworkGranted)) != 1 {
		t.Errorf("%d granted, %d set", granted, d.w.set)
	}
}
