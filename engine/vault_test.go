// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// vault adds a secret to the vault of alice's project, for example.com.
func (h *house) vault(name, value string) sandbox.Secret {
	h.t.Helper()
	s, err := h.secrets().AddToVault(h.t.Context(), chief, secrets.VaultRequest{Name: name, Value: value, Hosts: []string{"example.com"}, Description: "for tests"})
	if err != nil {
		h.t.Fatalf("AddToVault %s: %v", name, err)
	}
	return s
}

func (h *house) attach(ref string, all map[string]string) {
	h.t.Helper()
	if err := h.secrets().Attach(h.t.Context(), alice, ref, all); err != nil {
		h.t.Fatalf("Attach %v: %v", all, err)
	}
}

func TestASecretOfTheVaultIsWhereItIsAttached(t *testing.T) {
	t.Parallel()
	h, w, change := webOf(t)
	key := h.vault("anthropic-prod", "value-of-prod")
	h.vault("anthropic", "value-of-the-other")
	h.create(engine.CreateRequest{Key: "without", Network: restricted("127.0.0.0/8")})
	if got := h.variable("without", "KEY"); got != "unset" {
		t.Errorf("a sandbox that has none has %q", got)
	}
	w.got(t, "the stand-in")
	if err := h.engine.Delete(t.Context(), alice, "without"); err != nil {
		t.Fatal(err)
	}
	h.create(engine.CreateRequest{Key: "second", Secrets: map[string]secrets.Request{"KEY": {Vault: "anthropic-prod"}}})
	h.create(engine.CreateRequest{Key: "with", Network: restricted("127.0.0.0/8"), Secrets: map[string]secrets.Request{"KEY": {Vault: "anthropic-prod"}}})
	if got := h.variable("with", "KEY"); got != key.StandIn() || !strings.HasPrefix(got, "sandpit-vault-") {
		t.Errorf("inside it is %q, want %q", got, key.StandIn())
	}
	sent := func(headers, want string) {
		t.Helper()
		all := w.open()
		p := all[len(all)-1].program(t)
		if got, err := p.sends(headers); got != want || err != nil {
			t.Errorf("with %q the server got %q, want %q (%v)", headers, got, want, err)
		}
	}
	sent("Authorization: Bearer "+key.StandIn()+"\r\n", "Bearer value-of-prod")
	sent("Authorization: Bearer of-its-own\r\n", "Bearer of-its-own") // none is put where nobody asked
	h.attach("with", map[string]string{"KEY": "anthropic-prod", "OTHER": "anthropic"})
	other := h.variable("with", "OTHER")
	sent("Authorization: Bearer "+other+"\r\n", "Bearer value-of-the-other")

	changed := "value-of-prod, changed"
	if _, err := h.secrets().ChangeInVault(t.Context(), chief, "anthropic-prod", secrets.VaultChange{Value: &changed}); err != nil {
		t.Fatal(err)
	}
	sent("Authorization: Bearer "+key.StandIn()+"\r\n", "Bearer "+changed)
	h.restart(change)
	if got := h.variable("with", "KEY"); got != key.StandIn() {
		t.Errorf("after a restart it has %q", got)
	}
	sent("Authorization: Bearer "+key.StandIn()+"\r\n", "Bearer "+changed)
	h.attach("with", nil)
	if got := h.variable("with", "KEY") + h.variable("with", "OTHER"); got != "unsetunset" {
		t.Errorf("detached, it has %q", got)
	}
	if err := h.secrets().DeleteFromVault(t.Context(), chief, "anthropic-prod"); err != nil {
		t.Fatal(err)
	}
	if got := h.variable("second", "KEY"); got != "unset" {
		t.Errorf("deleted from the vault, it is %q where it was attached", got)
	}
	left, err := h.secrets().Vault(t.Context(), alice)
	if err != nil || len(left) != 1 || left[0].Name != "anthropic" {
		t.Errorf("the vault has %v, %v", left, err)
	}
}

func TestTheVaultRefuses(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.vault("KEY", "value-of-the-key")
	box := h.create(engine.CreateRequest{Key: "box"})
	h.secret("box", secrets.Request{Name: "OWN", Value: "a value of its own"})
	service, ctx := h.secrets(), t.Context()
	add := func(c access.Caller, r secrets.VaultRequest) error {
		_, err := service.AddToVault(ctx, c, r)
		return err
	}
	hosts := []string{"example.com"}
	stranger := chief
	stranger.Project = "elsewhere"
	for what, c := range map[string]struct {
		err  error
		want fault.Code
	}{
		"a name that is taken":       {add(chief, secrets.VaultRequest{Name: "KEY", Value: "another", Hosts: hosts}), fault.Exists},
		"no host":                    {add(chief, secrets.VaultRequest{Name: "A", Value: "value"}), fault.Invalid},
		"a host that is none":        {add(chief, secrets.VaultRequest{Name: "A", Value: "value", Hosts: []string{"a b"}}), fault.Invalid},
		"a name that is none":        {add(chief, secrets.VaultRequest{Name: "-a", Value: "value", Hosts: hosts}), fault.Invalid},
		"a name with a dot":          {add(chief, secrets.VaultRequest{Name: "a.b", Value: "value", Hosts: hosts}), fault.Invalid},
		"no value":                   {add(chief, secrets.VaultRequest{Name: "A", Hosts: hosts}), fault.Invalid},
		"a value with a line end":    {add(chief, secrets.VaultRequest{Name: "A", Value: "one\ntwo", Hosts: hosts}), fault.Invalid},
		"a long description":         {add(chief, secrets.VaultRequest{Name: "A", Value: "value", Hosts: hosts, Description: strings.Repeat("x", 1025)}), fault.Invalid},
		"who may not":                {add(alice, secrets.VaultRequest{Name: "A", Value: "value", Hosts: hosts}), fault.Denied},
		"who may not delete":         {service.DeleteFromVault(ctx, alice, "KEY"), fault.Denied},
		"to delete what is not":      {service.DeleteFromVault(ctx, chief, "NONE"), fault.NotFound},
		"to delete another's":        {service.DeleteFromVault(ctx, stranger, "KEY"), fault.NotFound},
		"to attach what is not":      {service.Attach(ctx, alice, "box", map[string]string{"A": "NONE"}), fault.NotFound},
		"to attach another's":        {service.Attach(ctx, stranger, "box", map[string]string{"A": "KEY"}), fault.NotFound},
		"a variable that is none":    {service.Attach(ctx, alice, "box", map[string]string{"A-B": "KEY"}), fault.Invalid},
		"the name of one of its own": {service.Attach(ctx, alice, "box", map[string]string{"OWN": "KEY"}), fault.Exists},
	} {
		if !fault.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %s", what, c.err, c.want)
		}
	}
	if _, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Secrets: map[string]secrets.Request{"A": {Vault: "NONE"}}}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a create with what is not there: %v", err)
	}
	other := alice
	other.Project = "elsewhere"
	if _, _, err := h.engine.Create(ctx, other, engine.CreateRequest{Secrets: map[string]secrets.Request{"A": {Vault: "KEY"}}}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a create with another project's: %v", err)
	}
	if got := h.secretNames(alice, "box"); got != "OWN@"+string(box.ID) {
		t.Errorf("after all that the sandbox has %q", got)
	}
}
