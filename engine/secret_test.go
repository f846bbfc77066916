// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// secret sets one that has to be taken: of a sandbox, or of alice's project.
func (h *house) secret(ref string, r secrets.Request) {
	h.t.Helper()
	if _, err := h.secrets().SetSecret(h.t.Context(), chief, ref, r); err != nil {
		h.t.Fatalf("SetSecret %s: %v", r.Name, err)
	}
}

// variable returns what a command sees under a name, by a way that nothing is masked on.
func (h *house) variable(ref, name string) string {
	h.t.Helper()
	h.exec(ref, fmt.Sprintf(`printf %%s "${%s-unset}" >seen`, name))
	return h.file(ref, "/workspace/seen")
}

func (h *house) file(ref, path string) string {
	h.t.Helper()
	_, r, err := h.files.ReadFile(h.t.Context(), alice, ref, path, sandbox.ReadFileOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

func (h *house) secretNames(c access.Caller, ref string) string {
	h.t.Helper()
	all, err := h.secrets().Secrets(h.t.Context(), c, ref)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		name := s.Name
		if s.Sandbox != "" {
			name += "@" + string(s.Sandbox)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// keyRing is a ring that a test's engines share.
func keyRing(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	r, err := seal.Parse(strings.Join(keys, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func withKeys(r *seal.Ring) func(*engine.Options) {
	return func(o *engine.Options) { o.Keys = r }
}

func TestSecretsAreVariablesOfWhatBeginsFromThenOn(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"BOTH": "sandbox's env", "PLAIN": "as it is"}})
	if got := h.variable("box", "TOKEN"); got != "unset" {
		t.Fatalf("before: %q", got)
	}
	h.secret("", secrets.Request{Name: "TOKEN", Value: "of the project"})
	h.secret("", secrets.Request{Name: "BOTH", Value: "secret wins"})
	h.secret("", secrets.Request{Name: "IMAGE", Value: "over the image's"})
	h.secret("", secrets.Request{Name: "BOUND", Value: "never inside", Hosts: []string{"api.example.org"}})
	h.secret("", secrets.Request{Name: "PLAIN", Value: "bound gives way", Hosts: []string{"api.example.org"}})
	for name, want := range map[string]string{
		"TOKEN": "of the project", "BOTH": "secret wins", "IMAGE": "over the image's",
		"BOUND": "sandpit-secret-BOUND", "PLAIN": "as it is",
	} {
		if got := h.variable("box", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	h.secret("box", secrets.Request{Name: "TOKEN", Value: "of the sandbox"})
	if got := h.variable("box", "TOKEN"); got != "of the sandbox" {
		t.Errorf("the sandbox's own does not go before: %q", got)
	}
	res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
		Shell: `printf %s "$TOKEN$BOUND"`, Env: map[string]string{"TOKEN": "the command's own ", "BOUND": "wins"},
	}, nil)
	if err != nil || string(res.Stdout) != "the command's own wins" {
		t.Errorf("with variables of its own: %q, %v", res.Stdout, err)
	}
	if err := h.secrets().DeleteSecret(t.Context(), alice, "box", "TOKEN"); err != nil {
		t.Fatal(err)
	}
	if got := h.variable("box", "TOKEN"); got != "of the project" {
		t.Errorf("after the delete of the sandbox's own: %q", got)
	}
	if err := h.secrets().DeleteSecret(t.Context(), chief, "", "TOKEN"); err != nil {
		t.Fatal(err)
	}
	if got := h.variable(string(s.ID), "TOKEN"); got != "unset" {
		t.Errorf("after both deletes: %q", got)
	}
	wantCode(t, h.secrets().DeleteSecret(t.Context(), chief, "", "TOKEN"), fault.NotFound)
}

func TestEveryWayToRunHasSecretsAndMasksThem(t *testing.T) {
	needs(t, "bash")
	const value = "opensesame-1234"
	sum := sha256.Sum256([]byte(value))
	want, masked := hex.EncodeToString(sum[:]), strings.Repeat("*", len(value))
	const shell = `echo "<$TOKEN>"; printf %s "$TOKEN" | sha256sum`
	h := open(t, t.TempDir())
	h.faulty.track, h.faulty.changed = true, "a-"+value
	h.secret("", secrets.Request{Name: "TOKEN", Value: value})
	h.create(engine.CreateRequest{Key: "box"})
	for name, run := range map[string]func() string{
		"Exec": func() string { return string(h.exec("box", shell).Stdout) },
		"Terminal": func() string {
			term, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for {
				f, err := term.Next(t.Context())
				if err == io.EOF {
					return out.String()
				}
				if err != nil {
					t.Fatal(err)
				}
				out.Write(f.Data)
			}
		},
		"Process": func() string {
			rec := h.spawn("box", engine.StartRequest{Shell: shell})
			return h.follow("box", rec.ID, engine.FollowRequest{}).stdout.String()
		},
		"Shell": func() string {
			res, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: shell}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return string(res.Stdout)
		},
		"Code": func() string { return string(h.cell("box", code.Request{Language: "bash", Code: shell}).Stdout) },
	} {
		if got := run(); !strings.Contains(got, want) || !strings.Contains(got, "<"+masked+">") || strings.Contains(got, value) {
			t.Errorf("%s gives %q, want the secret masked, and its sum %s", name, got, want)
		}
	}
	for name, run := range map[string]func() []sandbox.FileChange{
		"Exec": func() []sandbox.FileChange { return h.exec("box", "true").Changes },
		"Code": func() []sandbox.FileChange {
			return h.cell("box", code.Request{Language: "bash", Code: "true"}).Changes
		},
	} {
		if text := fmt.Sprint(run()); strings.Contains(text, value) || !strings.Contains(text, "a-[secret TOKEN]") {
			t.Errorf("%s: the changed files are %s", name, text)
		}
	}
}

func TestSecretsOfASandboxComeWithItGoWithForksAndEndWithIt(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Secrets: map[string]secrets.Request{
		"MINE": {Value: "a value of mine"}, "BOUND": {Value: "a bound one", Hosts: []string{"*.example.org"}, Header: "X-Key"},
	}})
	if got := h.variable("box", "MINE"); got != "a value of mine" {
		t.Errorf("it begins with %q", got)
	}
	evs := h.events(s.ID)
	if d := evs[0].Detail; !strings.Contains(d, "with the secrets BOUND, MINE") {
		t.Errorf("the event of its create is %q", d)
	}
	if d := evs[1].Detail; evs[1].Type != sandbox.EventSecret || d != "BOUND, for *.example.org in the header x-key" {
		t.Errorf("the event of its first secret is %s: %q", evs[1].Type, d)
	}
	h.secret("box", secrets.Request{Name: "LATER", Value: "set later on"})
	forks, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range forks {
		id := string(f.ID)
		if got, want := h.secretNames(alice, id), "BOUND@"+id+" LATER@"+id+" MINE@"+id; got != want {
			t.Errorf("a fork has %q, want %q", got, want)
		}
		if a, b := h.variable(id, "MINE"), h.variable(id, "LATER"); a != "a value of mine" || b != "set later on" {
			t.Errorf("in a fork they are %q and %q", a, b)
		}
	}
	if err := h.secrets().DeleteSecret(t.Context(), alice, string(forks[0].ID), "MINE"); err != nil {
		t.Fatal(err)
	}
	if got := h.variable("box", "MINE"); got != "a value of mine" {
		t.Errorf("a delete in a fork changed its parent's: %q", got)
	}
	for _, ref := range []string{"box", string(forks[0].ID), string(forks[1].ID)} {
		if err := h.engine.Delete(t.Context(), alice, ref); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.sealed()); n != 0 {
		t.Errorf("%d secrets are left on record when their sandboxes are deleted", n)
	}
}

// sealed returns all secrets as they are on record.
func (h *house) sealed() (all []*store.SealedSecret) {
	h.t.Helper()
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		all, err = tx.Secrets().All()
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func TestACreateWithABadSecretLeavesNothing(t *testing.T) {
	h := open(t, t.TempDir())
	many := map[string]secrets.Request{}
	for i := range sandbox.MaxSecrets + 1 {
		many[fmt.Sprintf("S%d", i)] = secrets.Request{Value: "value"}
	}
	for field, bad := range map[string]map[string]secrets.Request{
		"secrets.A.value":  {"A": {Value: "no"}, "B": {Value: "good enough"}},
		"secrets.A.hosts":  {"A": {Value: "good enough", Hosts: []string{"http://x"}}},
		"secrets.A.header": {"A": {Value: "good enough", Hosts: []string{"x.org"}, Header: "host"}},
		"secrets":          {"1": {Value: "good enough"}},
		"secrets ":         many,
	} {
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Secrets: bad})
		wantCode(t, err, fault.Invalid)
		if f := fault.As(err).Fields; len(f) != 1 || f[0].Name != strings.TrimSpace(field) {
			t.Errorf("the fields are %+v, want %s", f, field)
		}
	}
	h.nothing()
	if n := len(h.sealed()); n != 0 {
		t.Errorf("%d secrets are on record", n)
	}
}

func TestWhoMayDoWhatWithSecrets(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	reader := access.Caller{Project: "default", Actor: "rita", Via: "rest", Scopes: []access.Scope{access.SandboxesRead}}
	r := secrets.Request{Name: "TOKEN", Value: "a good value"}
	for name, c := range map[string]struct {
		who  access.Caller
		ref  string
		want fault.Code
	}{
		"a project's by whoever may write": {alice, "", fault.Denied},
		"a project's by its administrator": {chief, "", ""},
		"a sandbox's by whoever may write": {alice, "box", ""},
		"a sandbox's by whoever may read":  {reader, "box", fault.Denied},
		"a sandbox's of another project":   {mary, string(s.ID), fault.NotFound},
		"one of no sandbox":                {alice, "none", fault.NotFound},
	} {
		_, err := h.secrets().SetSecret(t.Context(), c.who, c.ref, r)
		if got := fault.Of(err); got != c.want {
			t.Errorf("set %s: %v, want %q", name, err, c.want)
		}
		if c.want == "" {
			continue
		}
		if got := fault.Of(h.secrets().DeleteSecret(t.Context(), c.who, c.ref, "TOKEN")); got != c.want {
			t.Errorf("delete %s: %q, want %q", name, got, c.want)
		}
	}
	if got, want := h.secretNames(reader, "box"), "TOKEN@"+string(s.ID); got != want {
		t.Errorf("of the sandbox: %q, want %q", got, want)
	}
	if got := h.secretNames(reader, ""); got != "TOKEN" {
		t.Errorf("of the project: %q", got)
	}
	if got := h.secretNames(mary, ""); got != "" {
		t.Errorf("of another project: %q", got)
	}
	if _, err := h.secrets().Secrets(t.Context(), mary, string(s.ID)); !fault.Is(err, fault.NotFound) {
		t.Errorf("another project's sandbox: %v", err)
	}
	if _, err := h.secrets().SetSecret(t.Context(), mary, "", r); err != nil {
		t.Fatal(err)
	}
	if got := h.variable("box", "TOKEN"); got != "a good value" {
		t.Errorf("the variable is %q", got)
	}
	other, _, err := h.engine.Create(t.Context(), mary, engine.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.secrets().DeleteSecret(t.Context(), mary, "", "TOKEN"); err != nil {
		t.Fatal(err)
	}
	res, err := h.engine.Exec(t.Context(), mary, string(other.ID), engine.ExecRequest{Shell: `echo "${TOKEN-unset}"`}, nil)
	if err != nil || string(res.Stdout) != "unset\n" {
		t.Errorf("in another project: %q, %v", res.Stdout, err)
	}
}

func TestThereIsABoundToSecrets(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	for _, ref := range []string{"", "box"} {
		for i := range sandbox.MaxSecrets {
			h.secret(ref, secrets.Request{Name: fmt.Sprintf("S%d", i), Value: "a value"})
		}
		_, err := h.secrets().SetSecret(t.Context(), chief, ref, secrets.Request{Name: "MORE", Value: "a value"})
		wantCode(t, err, fault.Exhausted)
		h.secret(ref, secrets.Request{Name: "S0", Value: "another value"})
	}
	if got := h.variable("box", "S0"); got != "another value" {
		t.Errorf("with as many as there can be: %q", got)
	}
	for i := range 5 {
		h.secret("box", secrets.Request{Name: fmt.Sprintf("S%d", i), Value: strings.Repeat("x", sandbox.MaxSecretValue-i)})
	}
	_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "secrets") {
		t.Errorf("with more than a command can have: %v, want fault.Exhausted that says so", err)
	}
	for _, ev := range h.events("") {
		if ev.ProcessID != "" && !ev.Done {
			t.Errorf("a command that was refused is on record: %+v", ev)
		}
	}
}

func TestSecretsOutliveTheServerAndAKeyThatIsGoneLosesNothing(t *testing.T) {
	old, other := seal.Generate(), seal.Generate()
	h := open(t, t.TempDir(), withKeys(keyRing(t, old)))
	h.secret("", secrets.Request{Name: "TOKEN", Value: "a good value"})
	h.create(engine.CreateRequest{Key: "box", Secrets: map[string]secrets.Request{"MINE": {Value: "a value of mine"}}})
	h.restart(withKeys(keyRing(t, old)))
	if a, b := h.variable("box", "TOKEN"), h.variable("box", "MINE"); a != "a good value" || b != "a value of mine" {
		t.Fatalf("after a restart they are %q and %q", a, b)
	}

	onRecord := func() (out string) {
		for _, s := range h.sealed() {
			out += fmt.Sprintf("%+v\n", *s)
		}
		return out
	}
	before := onRecord()
	h.restart(withKeys(keyRing(t, other)))
	_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
	wantCode(t, err, fault.Unavailable)
	if id := keyRing(t, old).KeyID(); !strings.Contains(err.Error(), id) || !strings.Contains(fault.As(err).Remedy, "key") {
		t.Errorf("the error %q (%s) does not name the key %s", err, fault.As(err).Remedy, id)
	}
	if _, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a fork of it: %v, want fault.Unavailable", err)
	}
	if got := h.secretNames(alice, ""); got != "TOKEN" {
		t.Errorf("they are listed as %q", got)
	}
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Errorf("a stop: %v", err)
	}
	if after := onRecord(); after != before {
		t.Error("what is on record was changed")
	}
	h.restart(withKeys(keyRing(t, other, old)))
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if a, b := h.variable("box", "TOKEN"), h.variable("box", "MINE"); a != "a good value" || b != "a value of mine" {
		t.Errorf("with the key back they are %q and %q", a, b)
	}
	// That start has sealed them by the new key, so that the old one can go.
	h.restart(withKeys(keyRing(t, other)))
	if a, b := h.variable("box", "TOKEN"), h.variable("box", "MINE"); a != "a good value" || b != "a value of mine" {
		t.Errorf("without the old key they are %q and %q", a, b)
	}
}

func TestASealedValueInTheRowOfAnotherDoesNotOpen(t *testing.T) {
	ring := keyRing(t, seal.Generate())
	h := open(t, t.TempDir(), withKeys(ring))
	h.secret("", secrets.Request{Name: "A", Value: "the value of A"})
	s := h.create(engine.CreateRequest{Key: "box"})
	for _, c := range []struct {
		name string
		move func(*store.SealedSecret)
	}{
		{"to another name", func(x *store.SealedSecret) { x.Name = "B" }},
		{"to a sandbox", func(x *store.SealedSecret) { x.Sandbox = s.ID }},
		{"to another project", func(x *store.SealedSecret) { x.Project = "other" }},
		{"cut short", func(x *store.SealedSecret) { x.Sealed = x.Sealed[:len(x.Sealed)-1] }},
	} {
		name := c.name
		var moved store.SealedSecret
		err := h.store.Update(t.Context(), func(tx store.Tx) error {
			a, err := tx.Secrets().Get("default", "", "A")
			if err != nil {
				return err
			}
			moved = *a
			c.move(&moved)
			return tx.Secrets().Put(&moved)
		})
		if err != nil {
			t.Fatal(err)
		}
		h.restart(withKeys(ring))
		who, ref := alice, "box"
		if moved.Project == "other" {
			other, _, err := h.engine.Create(t.Context(), mary, engine.CreateRequest{Key: "box"})
			if fault.Of(err) == fault.Unavailable {
				continue // the create says so already
			}
			if err != nil {
				t.Fatal(err)
			}
			who, ref = mary, string(other.ID)
		}
		_, err = h.engine.Exec(t.Context(), who, ref, engine.ExecRequest{Shell: "true"}, nil)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), moved.Name) {
			t.Errorf("%s: %v, want fault.Unavailable that names it", name, err)
		}
		if name == "cut short" {
			break
		}
		err = h.store.Update(t.Context(), func(tx store.Tx) error {
			return tx.Secrets().Delete(moved.Project, moved.Sandbox, moved.Name)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.secret("", secrets.Request{Name: "A", Value: "set again"})
	if got := h.variable("box", "A"); got != "set again" {
		t.Errorf("set again it is %q", got)
	}
}

// counted is a store that counts how often secrets are read.
type counted struct {
	store.Store
	reads *atomic.Int64
}

func (c counted) View(ctx context.Context, fn func(store.Tx) error) error {
	return c.Store.View(ctx, func(tx store.Tx) error { return fn(countedTx{tx, c.reads}) })
}

func (c counted) Update(ctx context.Context, fn func(store.Tx) error) error {
	return c.Store.Update(ctx, func(tx store.Tx) error { return fn(countedTx{tx, c.reads}) })
}

type countedTx struct {
	store.Tx
	reads *atomic.Int64
}

func (c countedTx) Secrets() store.Secrets { c.reads.Add(1); return c.Tx.Secrets() }

func TestACommandReadsNoSecrets(t *testing.T) {
	var reads atomic.Int64
	h := open(t, t.TempDir(), func(o *engine.Options) { o.Store = counted{o.Store, &reads} })
	h.secret("", secrets.Request{Name: "TOKEN", Value: "a good value"})
	h.create(engine.CreateRequest{Key: "first", Secrets: map[string]secrets.Request{"MINE": {Value: "a value of mine"}}})
	h.exec("first", "true")
	h.recorded()
	reads.Store(0)
	for range 5 {
		h.exec("first", "true")
	}
	h.recorded()
	if n := reads.Load(); n != 0 {
		t.Errorf("five commands read secrets %d times", n)
	}
	h.create(engine.CreateRequest{Key: "second"})
	h.exec("second", "true")
	h.recorded()
	if n := reads.Load(); n != 0 {
		t.Errorf("another sandbox of the project, and its first command, read secrets %d times", n)
	}
	h.secret("first", secrets.Request{Name: "MINE", Value: "another of mine"})
	reads.Store(0)
	h.exec("second", "true")
	h.recorded()
	if n := reads.Load(); n != 0 {
		t.Errorf("the change of a sandbox's own had another read secrets %d times", n)
	}
	if got := h.variable("first", "MINE"); got != "another of mine" || reads.Load() == 0 {
		t.Errorf("after the change it is %q, with %d reads", got, reads.Load())
	}
}
