// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake_test

import (
	"bytes"
	"testing"

	"sandpit.dev/agent/handshake"
)

func pair(t *testing.T) (*handshake.Private, handshake.Public) {
	t.Helper()
	private, public, err := handshake.NewPair()
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func TestBothSidesAgreeOnAKeyThatNobodyElseHas(t *testing.T) {
	server, serverPublic := pair(t)
	agent, agentPublic := pair(t)
	other, otherPublic := pair(t)
	ours, err := server.AgreeAsServer(agentPublic)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := agent.AgreeAsAgent(serverPublic)
	if err != nil {
		t.Fatal(err)
	}
	if *ours != *theirs {
		t.Error("the two sides have different keys")
	}
	keys := map[handshake.Key]string{*ours: "theirs"}
	for what, get := range map[string]func() (*handshake.Key, error){
		"of another with the agent": func() (*handshake.Key, error) { return other.AgreeAsServer(agentPublic) },
		"with another agent":        func() (*handshake.Key, error) { return server.AgreeAsServer(otherPublic) },
		"of the server as an agent": func() (*handshake.Key, error) { return server.AgreeAsAgent(agentPublic) },
	} {
		k, err := get()
		if err != nil {
			t.Fatal(err)
		}
		if with := keys[*k]; with != "" {
			t.Errorf("the key %s is that %s", what, with)
		}
		keys[*k] = what
	}
}

// Points of small order would have everybody know the key.
func TestNoKeyIsMadeOfAPointOfSmallOrder(t *testing.T) {
	server, _ := pair(t)
	for _, first := range []byte{0, 1} {
		if k, err := server.AgreeAsServer(handshake.Public{first}); err == nil {
			t.Errorf("the point %d gives a key: %v", first, k)
		}
	}
}

func TestPublicHalvesAreText(t *testing.T) {
	_, public := pair(t)
	text, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var again handshake.Public
	if err := again.UnmarshalText(text); err != nil || again != public {
		t.Errorf("got %v, %v", again, err)
	}
	if again, err = handshake.ParseLine(public.Line()); err != nil || again != public {
		t.Errorf("its line gives %v, %v", again, err)
	}
	for _, bad := range []string{"", "panic: no memory", public.Line()[1:], public.Line() + "x"} {
		if _, err := handshake.ParseLine(bad); err == nil {
			t.Errorf("the line %q is taken", bad)
		}
	}
	for _, bad := range [][]byte{nil, []byte("!"), text[:20], bytes.Repeat(text, 2)} {
		if err := again.UnmarshalText(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
