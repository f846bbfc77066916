// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestRequestsAreBoundedAndKeptForADay(t *testing.T) {
	var b Book
	at := time.Unix(1_800_000_000, 0)
	first, added, err := b.Add(Request{Sandbox: "a", Ref: "box", Project: "p", Domains: []string{"0.test"}, Why: strings.Repeat("x", 5000)}, at)
	if err != nil || !added || first.ID == "" || len(first.Why) > MaxWhy+4 {
		t.Fatalf("%+v, %v, %v", first, added, err)
	}
	if again, added, err := b.Add(Request{Sandbox: "a", Project: "p", Domains: []string{"0.test"}}, at.Add(time.Second)); err != nil || added || again.ID != first.ID {
		t.Errorf("asked again: %+v, %v, %v", again, added, err)
	}
	for n := 1; n < MaxPending; n++ {
		if _, _, err := b.Add(Request{Sandbox: "a", Project: "p", Domains: []string{fmt.Sprint(n, ".test")}}, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Add(Request{Sandbox: "a", Ref: "box", Project: "p", Presets: []string{"python"}}, at); !fault.Is(err, fault.Exhausted) || !strings.Contains(fault.As(err).Remedy, "sandpit network requests box") {
		t.Errorf("one too many: %v", err)
	}
	other, _, err := b.Add(Request{Sandbox: "b", Project: "q", Presets: []string{"python"}}, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get("p", other.ID, at); !fault.Is(err, fault.NotFound) {
		t.Errorf("another project's: %v", err)
	}
	if n := len(b.List("p", "a", at)); n != MaxPending {
		t.Errorf("%d wait", n)
	}
	if got, err := b.Get("p", first.ID, at); err != nil || got.Ref != "box" || !b.Remove(got) || b.Remove(got) {
		t.Errorf("%+v, %v", got, err)
	}
	b.Forget("a")
	if n := len(b.List("p", "", at)); n != 0 {
		t.Errorf("%d of one that is gone", n)
	}
	if n := len(b.List("q", "", at.Add(Keep))); n != 0 || len(b.all) != 0 {
		t.Errorf("%d after a day", n)
	}
}

// Sandboxes that come and go leave no more requests than one project may have.
func TestRequestsOfAProjectAreBounded(t *testing.T) {
	var b Book
	at := time.Unix(1_800_000_000, 0)
	for n := range MaxProject {
		if b.Full("p") {
			t.Fatalf("full with %d", n)
		}
		if _, _, err := b.Add(Request{Sandbox: sandbox.ID(fmt.Sprint(n)), Project: "p", Presets: []string{"python"}}, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Add(Request{Sandbox: "more", Project: "p", Presets: []string{"python"}}, at); !b.Full("p") || !fault.Is(err, fault.Exhausted) {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := b.Add(Request{Sandbox: "other", Project: "q", Presets: []string{"python"}}, at); err != nil {
		t.Errorf("another project's: %v", err)
	}
	b.Forget("0")
	if b.Full("p") {
		t.Error("full, and one is gone")
	}
}
